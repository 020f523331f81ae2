"""What measures are called, and which of their values are better: for reports, tables and tuning."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from sb3_fair.fairness.notions.table import NOTIONS

Better: TypeAlias = Literal["higher", "lower", "zero"]
Words: TypeAlias = Mapping[str, Any]
"""Name of a measure -> its title, or a dict with ``title``, ``sentence``, ``unit`` and ``better``; also what
``"favourable"`` decisions are called, as in "hired", the ``"people"``, as in "applicants", and who is ``"deserving"``,
as in "qualified"."""
NO_WORDS: Words = MappingProxyType({})
MEAN, RETURN = "mean_", " (return)"
DISPARITY = "d_"  # short- and long-term disparities (d_s, d_l, ...) are 0 if fair and grow with unfairness


@dataclass(frozen=True)
class Description:
    """A measure in words.

    :param name: as in objectives and ``info["fairness"]``
    :param title: its name written out
    :param sentence: what it says; empty: unknown
    :param unit: of its values; empty: none
    :param better: ``"higher"`` or ``"lower"`` values, or those nearer to ``"zero"``; None: unknown
    """

    name: str
    title: str
    sentence: str = ""
    unit: str = ""
    better: Better | None = None

    def sizes(self, values: Any) -> Any:
        """The values; their sizes where 0 is best, as gaps of opposite signs are not small on average."""
        return abs(values) if self.better == "zero" else values

    def goodness(self, value: Any) -> Any:
        """Numbers that are larger where the measure is better; NaN where that is unknown."""
        if self.better is None:
            return value * float("nan")
        return value if self.better == "higher" else -abs(value) if self.better == "zero" else -value


_PARTICULAR = (
    Description("R", "performance", "What the decisions earn in one episode.", better="higher"),
    *(Description(notion.name, notion.title, notion.sentence, better="higher") for notion in NOTIONS.values()),
    Description("d_s", "short-term disparity", "How far apart the groups are in the latest decisions.", better="lower"),
    Description("d_l", "long-term disparity", "How far apart decisions have brought the groups.", better="lower"),
    Description(
        "d_l_next", "long-term disparity ahead", "How far apart the groups are to be expected next.", better="lower"
    ),
    Description("w1", "distance of the groups", "Wasserstein distance between the groups' states.", better="lower"),
    Description("filtered", "changed by the filter", "Share of the decisions that the filter replaced by fairer ones."),
    Description("gini", "Gini coefficient of the returns", "0: all agents have the same.", better="lower"),
    Description("jain", "Jain index of the returns", "1: all agents have the same.", better="higher"),
    Description("nash", "Nash welfare of the returns", "The geometric mean of what agents have.", better="higher"),
    Description("nash_norm", "relative Nash welfare of the returns", "1: all agents have the same.", better="higher"),
    Description("dp", "gap between the groups' returns", "Positive: the first group is ahead.", better="zero"),
    Description("dp_norm", "relative gap between the groups' returns", "As a share of all returns.", better="zero"),
)
_KNOWN = {description.name: description for description in _PARTICULAR}


def describe(name: str, words: Words = NO_WORDS) -> Description:
    """A measure in words; one that nobody has described has its name alone.

    :param name: of an objective, notion or other figure; also with an attribute or distance (``"SP@gender"``), of a
        variant (``"d_l_raw"``), of a mean over steps (``"mean_d_s"``), or of a return (``"d_s (return)"``), of which
        more is better, since disparities enter negated
    :param words: what an environment says of its own measures
    """
    if name not in words and name not in _KNOWN:
        if name.startswith(MEAN):
            whole = describe(name.removeprefix(MEAN), words)
            return replace(whole, name=name, title=f"{whole.title}, mean over steps")
        if name.endswith(RETURN):
            summed = describe(name.removesuffix(RETURN), words)
            title = f"{summed.title}, sum over steps"
            return replace(summed, name=name, title=title, better=summed.better and "higher")
        base, at, detail = name.partition("@")
        if not at and name.startswith(("d_s_", "d_l_")):
            base, detail = name[:3], name[4:].replace("_", " ")
        if detail:
            known = describe(base, words)
            return replace(known, name=name, title=f"{known.title} ({detail})")
    known = _KNOWN.get(name, Description(name, name))
    own = words.get(name, {})
    return Description(**{**vars(known), **({"title": own} if isinstance(own, str) else own), "name": name})


def check_words(words: Any) -> dict[str, Any]:
    """``words`` as a dict."""
    if not isinstance(words, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str | Mapping) for key, value in words.items()
    ):
        raise TypeError(f"words must be a dict of texts by name, got {words!r}")
    if isinstance(words.get("groups"), str):
        raise TypeError(f"groups must be a dict of names by label, got {words['groups']!r}")
    for name in ("favourable", "people", "deserving"):
        if isinstance(words.get(name), Mapping):
            raise TypeError(f"{name} must be a text, got {words[name]!r}")
    for name, entry in words.items():
        if isinstance(entry, str) or name == "groups":
            continue
        parts = {"title", "sentence", "unit", "better"}
        if not entry.keys() <= parts or not all(isinstance(text, str) for text in entry.values()):
            raise ValueError(f"words must have title, sentence, unit and better, got {name}: {dict(entry)!r}")
        if entry.get("better", "higher") not in get_args(Better):
            raise ValueError(f"better must be one of {', '.join(get_args(Better))}, got {entry['better']!r}")
    return dict(words)
