"""Group notions: SP, EO, OAE, PP, PE, EqOdds, CUAE, TE as rows of one table.

One law holds for all: **0 is exactly fair, negative is unfair**.

Four questions about a decision put it into one of 16 *cells*: was the action favourable, is there feedback (which
action would have been right), was the action the right one, would a favourable one have been right? A rate is "how
many of these cells among those", so the rates of all groups and notions follow from one product of the counts per
cell with a matrix of zeros and ones.

Source of the notions: Cimpean, Orzan, Jonker, Libin, Nowé, *Fairness-Aware Reinforcement Learning (FAReL)*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.validation import one_of

CELLS = 16
_CELL = np.arange(CELLS)
_MANY = 32

Mask: TypeAlias = NDArray[np.bool_]
FeedbackMissing: TypeAlias = Literal["undefined", "reweight", "ignore"]
EVERYONE: Mask = _CELL >= 0
ACCEPTED: Mask = _CELL & 1 > 0  # the action was favourable
KNOWN: Mask = _CELL & 2 > 0  # feedback has arrived
RIGHT: Mask = KNOWN & (_CELL & 4 > 0)  # the action was the right one
DESERVING: Mask = KNOWN & (_CELL & 8 > 0)  # a favourable action would have been right
UNDESERVING: Mask = KNOWN & ~DESERVING
KINDS = (~ACCEPTED, ACCEPTED)
"""The two kinds of decisions: unfavourable, favourable."""


def among(values: NDArray[Any], favourable: Sequence[int]) -> NDArray[np.bool_]:
    """Which of ``values`` are favourable actions; False for NaN."""
    found: NDArray[np.bool_] = values == favourable[0]
    for action in favourable[1:]:
        found |= values == action
    return found


def cells_of(actions: NDArray[Any], feedback: NDArray[Any] | None, favourable: Sequence[int]) -> NDArray[np.uint8]:
    """The cell of each decision (n,): one bit per question; feedback NaN, or None for all: unknown."""
    accepted = among(actions, favourable)
    if feedback is None:
        return accepted.view(np.uint8)
    known = feedback == feedback
    if np.count_nonzero(np.rint(feedback) == feedback) < np.count_nonzero(known):
        raise ValueError(f"feedback must be the right actions, whole numbers or NaN, got {feedback.tolist()}")
    bits = np.array((accepted, known, feedback == actions, among(feedback, favourable)))
    return np.packbits(bits, axis=0, bitorder="little")[0]


class Rate(NamedTuple):
    """P(hit | among), estimated per group."""

    among: Mask
    hit: Mask


@dataclass(frozen=True)
class Notion:
    """A row of the table :data:`NOTIONS`.

    :param name: short name, as in objectives
    :param title: name in words
    :param source: paper and equation
    :param sentence: what it asks for
    :param bounds: lowest and highest value
    """

    name: str
    title: str
    source: str
    sentence: str
    bounds: tuple[float, float] = (-1.0, 0.0)

    needs_groups = False
    needs_feedback = False
    needs_features = False
    needs_probabilities = False


@dataclass(frozen=True, eq=False)
class GroupNotion(Notion):
    """All groups should have the same rate(s); value: minus the largest gap between two groups."""

    rates: tuple[Rate, ...] = ()

    needs_groups = True

    @property
    def needs_feedback(self) -> bool:  # type: ignore[override]
        return any(KNOWN[rate.among].all() for rate in self.rates)

    @property
    def needed_kinds(self) -> tuple[bool, bool]:
        """Whether it needs the outcomes of unfavourable decisions, and of favourable ones."""
        rates = [rate.among for rate in self.rates if KNOWN[rate.among].all()]
        unfavourable, favourable = (any((among & kind).any() for among in rates) for kind in KINDS)
        return unfavourable, favourable


@dataclass(frozen=True)
class PairNotion(Notion):
    """Similar people should have similar chances: ``offset`` + mean over the pairs of d(i, j) - D(M_i || M_j).

    :param offset: added to the mean
    :param violations_only: pairs count only where D exceeds d
    :param smallest: with fewer people the value is 0
    """

    offset: float = 0.0
    violations_only: bool = False
    smallest: int = 2

    needs_features = True
    needs_probabilities = True


@dataclass(frozen=True)
class NeighbourNotion(Notion):
    """Each person should be treated as the k most similar people are."""

    needs_features = True


_FAREL = "Cimpean et al., FAReL"
_ACCEPTED_IF_DESERVING = Rate(DESERVING, ACCEPTED)
_ACCEPTED_IF_UNDESERVING = Rate(UNDESERVING, ACCEPTED)
_DESERVING_IF_ACCEPTED = Rate(KNOWN & ACCEPTED, DESERVING)
_UNDESERVING_IF_REJECTED = Rate(KNOWN & ~ACCEPTED, UNDESERVING)
_REJECTED_IF_WRONGED = Rate(KNOWN & (ACCEPTED != DESERVING), ~ACCEPTED)

NOTIONS: dict[str, Notion] = {
    notion.name: notion
    for notion in (
        GroupNotion(
            "SP",
            "statistical parity",
            f"{_FAREL}, Eq. 3",
            "Every group gets the favourable decision equally often.",
            rates=(Rate(EVERYONE, ACCEPTED),),
        ),
        GroupNotion(
            "EO",
            "equal opportunity",
            f"{_FAREL}, Eq. 4",
            "Of those who deserve it, every group gets the favourable decision equally often.",
            rates=(_ACCEPTED_IF_DESERVING,),
        ),
        GroupNotion(
            "OAE",
            "overall accuracy equality",
            f"{_FAREL}, Eq. 5",
            "Decisions are right equally often in every group.",
            rates=(Rate(KNOWN, RIGHT),),
        ),
        GroupNotion(
            "PP",
            "predictive parity",
            f"{_FAREL}, Eq. 6",
            "Of those who got the favourable decision, equally many deserved it in every group.",
            rates=(_DESERVING_IF_ACCEPTED,),
        ),
        GroupNotion(
            "PE",
            "predictive equality",
            f"{_FAREL}, Eq. 7",
            "Of those who do not deserve it, every group gets the favourable decision equally often.",
            rates=(_ACCEPTED_IF_UNDESERVING,),
        ),
        GroupNotion(
            "EqOdds",
            "equalised odds",
            "Hardt, Price, Srebro 2016",
            "Equal opportunity and predictive equality at once.",
            rates=(_ACCEPTED_IF_UNDESERVING, _ACCEPTED_IF_DESERVING),
        ),
        GroupNotion(
            "CUAE",
            "conditional use accuracy equality",
            "Berk et al. 2018",
            "Either decision is right equally often in every group.",
            rates=(_UNDESERVING_IF_REJECTED, _DESERVING_IF_ACCEPTED),
        ),
        GroupNotion(
            "TE",
            "treatment equality",
            "Berk et al. 2018 (there FN / FP, which is unbounded; here FN / (FN + FP))",
            "Wrong decisions are of the same kinds in every group.",
            rates=(_REJECTED_IF_WRONGED,),
        ),
        PairNotion(
            "IF",
            "individual fairness",
            f"{_FAREL}, Eq. 8",
            "People who are alike are treated alike. As published, it is 0 only where nobody resembles anybody: "
            "whoever treats everybody alike gets the mean distance between people minus 1.",
            (-2.0, 0.0),
            offset=-1.0,
            smallest=3,
        ),
        PairNotion(
            "LIP",
            "Lipschitz fairness",
            "Dwork et al. 2012, definition 2.1",
            "Nobody is treated more differently from another than the two people differ.",
            violations_only=True,
        ),
        NeighbourNotion(
            "CSC",
            "consistency",
            f"{_FAREL}, Eq. 14 (consistency score complement); Zemel et al. 2013",
            "A person is treated as those who are most alike.",
        ),
    )
}


def find_notion(name: str) -> Notion:
    """The row of a notion, also by the name of one of its values, such as ``"SP@gender"``.

    :raises ValueError: if there is no such notion; names the closest one
    """
    return notion_named(name.partition("@")[0] if isinstance(name, str) else name)


def notion_named(name: str) -> Notion:
    """The row of the notion of exactly this name; otherwise as :func:`find_notion`."""
    one_of("each name in notions", name, NOTIONS)
    return NOTIONS[name]


class GapTable:
    """The values of several group notions from the same counts; ``feedback_missing`` as in :func:`group_notion`."""

    def __init__(self, notions: Sequence[GroupNotion], feedback_missing: FeedbackMissing = "undefined") -> None:
        asked = [(rate, notion.needed_kinds) for notion in notions for rate in notion.rates]
        different = {(id(rate), kinds): (rate, kinds) for rate, kinds in asked}  # notions may share rates
        rates = [rate for rate, _ in different.values()]
        people = np.array([rate.among for rate in rates])
        hits = np.array([rate.among & rate.hit for rate in rates])
        self._masks = np.concatenate([people, hits]).T.astype(float)
        self._rates = len(rates)
        self._starts = np.cumsum([0] + [len(notion.rates) for notion in notions])[:-1]
        self._places = np.array([list(different).index((id(rate), kinds)) for rate, kinds in asked])
        self.rates_of = np.split(self._places, self._starts[1:])
        """Which of the different rates each notion has."""
        self._needs = np.array([kinds for _, kinds in different.values()])
        self._judges = feedback_missing != "ignore" and bool(self._needs.any())
        if self._judges:
            self._masks = np.concatenate([self._masks, _BY_KIND], axis=1)
        if feedback_missing == "reweight":
            from_feedback = np.tile(self._needs.any(axis=1), 2)
            self._plain = self._masks[:, : 2 * self._rates] * ~from_feedback
            self._weighted = self._masks[:, : 2 * self._rates] * from_feedback
        self.reweights = self._judges and feedback_missing == "reweight"
        self.unseen: NDArray[np.float64] | None = None
        """(n, groups, 2) decisions of a kind without a single known outcome, when other outcomes were last known."""

    def __call__(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (n, number of notions), NaN where fewer than two groups have a rate.

        :param counts: (n, groups, CELLS), at least two groups; sums of weights
        """
        return self.worst(_gaps(*self.hits_and_people(counts)))

    def worst(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        """The lowest (n, number of notions) of each notion's gaps (n, rates), NaN where none is defined."""
        if len(self._starts) == self._rates == len(self._places):
            return gaps
        return np.fmin.reduceat(gaps.take(self._places, axis=1), self._starts, axis=1)

    def hits_and_people(self, counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both sides of the different rates of all notions, (n, groups, rates) each.

        People are 0 where a rate is undefined, also because nothing is known of the outcomes it needs.
        """
        if len(counts) < _MANY:
            sums = counts @ self._masks
        else:  # one large product is faster than many small ones
            sums = (counts.reshape(-1, CELLS) @ self._masks).reshape(*counts.shape[:-1], self._masks.shape[1])
        if self._judges:
            decided, known = sums[..., -4:-2], sums[..., -2:]
            sums = self._reweighted(counts, decided, known) if self.reweights else sums[..., :-4]
            if np.minimum.reduce(known, axis=None) == 0:
                unseen = decided * (known == 0)
                blind = (unseen > 0) @ self._needs.T  # (n, groups, rates)
                if known.any():
                    self.unseen = unseen
                sums[..., : self._rates][blind] = 0.0
                sums[..., self._rates :][blind] = 0.0
        return sums[..., self._rates :], sums[..., : self._rates]

    def _reweighted(
        self, counts: NDArray[np.float64], decided: NDArray[np.float64], known: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The sums where a known outcome stands for the unknown ones of its group and kind of decision."""
        weights = np.divide(decided, known, out=np.zeros_like(known), where=known > 0)
        return counts @ self._plain + counts * (weights @ np.array(KINDS)) @ self._weighted


_BY_KIND = np.array([*KINDS, *(kind & KNOWN for kind in KINDS)]).T.astype(float)


def feedback_counts(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Decisions (..., groups, 2), unfavourable and favourable, and how many of them have a known outcome, from counts
    (..., groups, CELLS)."""
    sums = counts @ _BY_KIND
    return sums[..., :2], sums[..., 2:]


def _gaps(hits: NDArray[np.float64], people: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lowest minus highest of the rates hits / people (n, groups, rates), NaN with fewer than two."""
    if np.minimum.reduce(people, axis=None) > 0:  # the usual case, without a thought of NaN
        rates = hits / people
        return np.minimum.reduce(rates, axis=1) - np.maximum.reduce(rates, axis=1)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, which sorts last
        rates = hits / people
        rates.sort(axis=1)
        gaps = rates[:, 0] - np.fmax.reduce(rates[:, 1:], axis=1)
    return gaps
