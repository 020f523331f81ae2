"""Loan allocation: four people in two groups.

The loan scenario of Alamdari et al. ("Remembering to Be Fair").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sb3_fair.fairness.arguments import Proportion, Range, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.zoo.envs.allocation import AllocationWorld, random_all, random_present
from sb3_fair.zoo.envs.doughnut.world import PAPER
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.settings import parameter
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule

GROUPS = (0, 0, 1, 1)
"""The group of each person: A, A, B, B."""
TOP = 7
"""The highest credit level; the lowest is 0."""


@checked
@dataclass(frozen=True)
class LoansConfig:
    """The parameters of the scenario.

    :param start_levels: credit level of each of the four people when an episode begins, 0 to 7
    :param credit: ``"discrete"``: a level up after repayment, one down after default; ``"gaussian"``: the score moves
        by N(0.05, 0.1) and N(-0.05, 0.1)
    :param apply_probability: that a person applies in a step
    :param episode_length: loans per episode
    :param margin: repayments minus defaults that are asked for at the end, as a share of ``episode_length``
    :param end: whether an episode is ``"terminated"`` or ``"truncated"`` after its last loan; None: terminated,
        truncated with ``paper``
    :param clock: whether the observation shows the time; None: True, False with ``paper``
    :param paper: the published setting, which hides the time and goes on beyond the end
    """

    start_levels: Sequence[int] = parameter((3, 3, 7, 7), "level", PAPER + "; (4, 4, 7, 7) in the published code")
    credit: Literal["discrete", "gaussian"] = parameter("discrete", "name", PAPER)
    apply_probability: Proportion = parameter(0.9, "probability", PAPER)
    episode_length: int = parameter(40, "loans", PAPER)
    margin: Annotated[float, Range("[-1, 1]")] = parameter(0.1, "share of the episode", PAPER)
    end: Literal["truncated", "terminated"] | None = parameter(None, "name", "ours; truncated in the paper")
    clock: bool | None = parameter(None, "yes or no", "ours; no clock in the paper")
    paper: bool = parameter(False, "yes or no", PAPER)

    def __post_init__(self) -> None:
        levels = self.start_levels
        if len(levels) != len(GROUPS) or not 0 <= min(levels) <= max(levels) <= TOP:
            raise ValueError(f"start_levels must be {len(GROUPS)} levels from 0 to {TOP}, got {levels!r}")

    @property
    def required(self) -> float:
        """Repayments minus defaults below which the margin is missed."""
        return self.margin * self.episode_length - 1e-9  # 0.1 * 30 is a little more than 3


class _Day(NamedTuple):
    """Who applies (..., 4), and what decides on repayment and change of score (...)."""

    applied: NDArray[np.bool_]
    luck: NDArray[np.float64]
    swing: NDArray[np.float64]


def _day(uniforms: NDArray[np.float64], apply_probability: float, gaussian: bool) -> _Day:
    applied, luck = uniforms[..., : len(GROUPS)] < apply_probability, uniforms[..., len(GROUPS)]
    # A uniform may be 0, where the normal quantile is infinite.
    swing = ndtri(np.maximum(uniforms[..., -1], 2**-54)) if gaussian else np.zeros_like(luck)
    return _Day(applied, luck, swing)


def _best(world: "LoanAllocationWorld", able: NDArray[np.bool_]) -> Array:
    """The best credit among those who are able (n, 4), the first of several."""
    return np.eye(len(GROUPS))[np.where(able, world.levels, -1.0).argmax(axis=1)]


def _oracle(world: "LoanAllocationWorld") -> Array:
    """The group behind first, the best credit within it, applicants only."""
    behind = world.lead[:, None] * np.where(np.array(GROUPS) == 0, 1, -1) <= 0
    first = world.present & behind
    return _best(world, np.where(first.any(axis=1, keepdims=True), first, world.present))


class LoanAllocationWorld(AllocationWorld):
    """Each step one loan goes to one of four people, the action; 0 and 1 are group A, 2 and 3 group B.

    Observation: who applies (4), credit level / 7 or score (4), net / T, and the share of the episode that has passed,
    if there is a clock. Rewards, figures and individuals: see :doc:`/loans`.

    :param group: what group notions compare: ``"group"`` is all there is
    :param detail: whether records have ``detail``: ``counts`` (loans of A and B), ``levels`` and ``net`` after the step
    :param config: fields of :class:`LoansConfig`
    """

    default_memory = "difference"
    merit_name = "score"
    source = "Alamdari et al., Remembering to Be Fair"
    words: ClassVar[Words] = {
        "R": {"title": "parity and survival", "sentence": "Minus the gap between the groups' loans, and penalties."},
        "difference": {"title": "gap between the groups' loans", "better": "lower"},
        "refused": {"title": "steps without a loan", "better": "lower"},
        "margin_met": {"title": "the bank survives", "better": "higher"},
        "parity": {"title": "parity without penalties", "better": "higher"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "oracle": _oracle,
        "random-applicants": random_present,
        "random-all": random_all,
        "best-credit": lambda world: _best(world, world.present),
    }

    def __init__(self, n_worlds: int, *, group: Group = "group", detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, LoansConfig, config)
        self.gaussian = settings.credit == "gaussian"
        self.clock = not settings.paper if settings.clock is None else settings.clock
        self.end = settings.end or ("truncated" if settings.paper else "terminated")
        super().__init__(
            n_worlds,
            Tapes(
                n_worlds,
                len(GROUPS) + 1 + self.gaussian,
                partial(_day, apply_probability=settings.apply_probability, gaussian=self.gaussian),
            ),
            Groups(group, {"group": ("A", "B")}),
            scheme=Scheme(status="counts", welfare="relaxed_parity", temporal="sum", when="every"),
            steps=settings.episode_length,
            bounds=[(0, 1)] * 4 + [(0.2, 0.9) if self.gaussian else (0, 1)] * 4 + [(-1, 1)],
            stakeholders=GROUPS,
        )
        self.max_return = -float((self.max_steps + 1) // 2)  # every other step is off by one
        self.levels = np.zeros((n_worlds, len(GROUPS)))
        """Credit of each person; a score is (level + 2) / 10, also where it is no whole level."""
        self.net = np.zeros(n_worlds)
        """Repayments minus defaults."""
        self.parity = np.zeros(n_worlds)
        """Sum of -abs(L_A - L_B) over the steps so far."""

    @property
    def present(self) -> NDArray[np.bool_]:
        return self.tapes.now.applied

    @property
    def lead(self) -> NDArray[np.float64]:
        """L_A - L_B (n,)."""
        return self.counts[:, 0] - self.counts[:, 1]

    def merit(self) -> NDArray[np.float64]:
        return (self.levels + 2) / 10

    def restart(self, which: Array) -> Array:
        self.levels[which] = self.config.start_levels
        self.net[which] = 0
        self.parity[which] = 0
        return super().restart(which)

    def give(self, given: NDArray[np.bool_], granted: NDArray[np.bool_]) -> NDArray[np.float64]:
        now = self.tapes.now
        repaid = now.luck[:, None] < self.merit()
        direction = np.where(repaid, 1.0, -1.0)
        change = 0.5 * direction + now.swing[:, None] if self.gaussian else direction
        self.levels = np.where(given, np.clip(self.levels + change, 0, TOP), self.levels)
        self.net += (direction * given).sum(axis=1)
        self.parity -= np.abs(self.lead)
        return np.where(given, repaid, np.nan)

    def terms(self, granted: NDArray[np.bool_], last: NDArray[np.bool_]) -> tuple[Array, Array]:
        missed = last & (self.net < self.config.required)
        base = np.where(granted, 0.0, -1.0 * self.max_steps)
        return np.where(missed, -10.0 * self.max_steps, base), granted & ~missed

    def figures(self) -> dict[str, NDArray[np.float64]]:
        return {
            "difference": np.abs(self.lead),
            "refused": self.refused,
            "margin_met": (self.net >= self.config.required).astype(np.float64),
            "parity": self.parity.copy(),
        }

    def observed(self) -> list[Array]:
        credit = self.merit() if self.gaussian else self.levels / TOP
        return [*super().observed(), credit, self.net[:, None] / self.max_steps]

    def particulars(self) -> dict[str, Any]:
        return super().particulars() | {"levels": self.levels.copy(), "net": self.net.copy()}
