"""Notions and objectives in plain words."""

from sb3_fair.report.selection import base

WORDS = {
    "R": ("performance", "What the decisions earn in one episode; more is better."),
    "SP": ("statistical parity", "Every group gets the favourable decision equally often."),
    "EO": ("equal opportunity", "Of those who deserve it, every group gets the favourable decision equally often."),
    "OAE": ("overall accuracy equality", "Decisions are right equally often in every group."),
    "PP": ("predictive parity", "Of those who got the favourable decision, equally many deserved it in every group."),
    "PE": ("predictive equality", "Of those who do not deserve it, every group gets it equally often."),
    "EqOdds": ("equalised odds", "Equal opportunity and predictive equality at once."),
    "CUAE": ("conditional use accuracy equality", "Either decision is right equally often in every group."),
    "TE": ("treatment equality", "Wrong decisions are of the same kinds in every group."),
    "IF": ("individual fairness", "People who are alike are treated alike."),
    "LIP": ("Lipschitz fairness", "Nobody is treated more differently from another than the two people differ."),
    "CSC": ("consistency", "A person is treated as those who are most alike."),
}


def long_name(objective: str) -> str:
    """The objective's name written out; its own short name if it is not a known one."""
    name, _, detail = objective.partition("@")
    words = WORDS[name][0] if name in WORDS else name
    return f"{words} ({detail})" if detail else words


def meaning(objective: str) -> str:
    """One sentence; empty for objectives that are not known here."""
    name = base(objective)
    return WORDS[name][1] if name in WORDS else ""
