"""Results of F-PPO's evaluation: curves per step, sums and intervals."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.plain import plain
from sb3_fair.f_ppo.legacy_cloud import LegacyCloud
from sb3_fair.fairness.intervals import Interval, mean_and_interval

Array = NDArray[np.float64]
Summary: TypeAlias = dict[str, dict[str, Interval]]
"""Figure -> statistic -> mean and confidence interval."""


@dataclass(frozen=True, eq=False)
class FairnessEvaluation:
    """The figures of an agent after every step of some episodes.

    :param env_id: of the environment
    :param settings: its keyword arguments
    :param seeds: of the episodes
    :param deterministic: whether actions were those with the highest probability (True) or sampled
    :param massage: whether actions were massaged; None: as the agent was set up
    :param keys: figure -> key in ``info["fairness"]``, or ``"reward"``; ``"utility"``, ``"short_term"`` and
        ``"long_term"`` are always there
    :param figures: figure -> (n_episodes, n_steps) float32, NaN after the end of an episode that ended early
    :param lengths: (n_episodes,) int, steps of each episode
    :param legacy: the published measures of the same episodes, if they were asked for
    """

    env_id: str
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]
    deterministic: bool
    massage: bool | None
    keys: Mapping[str, str]
    figures: Mapping[str, NDArray[np.float32]]
    lengths: NDArray[np.int64]
    legacy: LegacyCloud | None = None

    @property
    def n_steps(self) -> int:
        """Number of steps that were evaluated."""
        return self.figures["short_term"].shape[1]

    def curve(self, figure: str) -> Interval:
        """Mean over episodes after every step, (n_steps,), and its 95 % confidence interval."""
        return mean_and_interval(self.figures[figure])

    def per_episode(self, after: int = 0, fair_below: float = 0.1) -> dict[str, dict[str, Array]]:
        """Figure -> statistic -> one number per episode, (n_episodes,).

        ``final``: after the last step; ``mean``: over the steps after step ``after``; ``area``: sum over all steps;
        ``share_fair``, of the short-term disparity only: share of the steps after step ``after`` in which it is
        below ``fair_below``.

        :param after: steps at the beginning that means and shares leave out; NaN where an episode was not longer
        :raises ValueError: if ``after`` leaves out all steps
        """
        if not 0 <= after < self.n_steps:
            raise ValueError(f"after must be a number of steps from 0 to {self.n_steps - 1}, got {after!r}")
        rows, last = np.arange(len(self.lengths)), self.lengths - 1
        statistics: dict[str, dict[str, Array]] = {}
        for figure, values in self.figures.items():
            late = values[:, after:]
            statistics[figure] = {
                "final": values[rows, last].astype(np.float64),
                "mean": mean_and_interval(late, axis=1).mean,
                "area": np.where(np.isnan(values), 0.0, values).sum(axis=1, dtype=np.float64),
            }
        late = self.figures["short_term"][:, after:]
        fair = np.where(np.isnan(late), np.nan, late < fair_below)
        statistics["short_term"]["share_fair"] = mean_and_interval(fair, axis=1).mean
        return statistics

    def summary(self, after: int = 0, fair_below: float = 0.1) -> Summary:
        """The statistics of :meth:`per_episode`: means over episodes and their 95 % confidence intervals."""
        found = self.per_episode(after, fair_below)
        return {
            figure: {name: mean_and_interval(values) for name, values in statistics.items()}
            for figure, statistics in found.items()
        }


Agents: TypeAlias = Mapping[str, Sequence[FairnessEvaluation]]
"""Name of an agent -> its evaluations, one per training seed."""


def summarise_seeds(evaluations: Sequence[FairnessEvaluation], after: int = 0, fair_below: float = 0.1) -> Summary:
    """Means over training seeds and their 95 % confidence intervals, of the means over episodes.

    :param evaluations: of one agent, one per training seed
    :param after: see :meth:`FairnessEvaluation.per_episode`
    :param fair_below: see :meth:`FairnessEvaluation.per_episode`
    :raises ValueError: if there are no evaluations
    """
    if not evaluations:
        raise ValueError(f"evaluations must hold at least one evaluation, got {evaluations!r}")
    each = [evaluation.summary(after, fair_below) for evaluation in evaluations]
    return {
        figure: {name: mean_and_interval([one[figure][name].mean for one in each]) for name in statistics}
        for figure, statistics in each[0].items()
    }


def write_table(path: str | Path, agents: Agents, every: int = 1) -> None:
    """Writes a tidy table as CSV: agent, training (0, 1, ...), figure, step, mean, low, high; empty: unknown.

    :param every: only every so many-th step, and the last; the legacy measures have the steps they were taken at
    """
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["agent", "training", "figure", "step", "mean", "low", "high"])
        for agent, evaluations in agents.items():
            for training, evaluation in enumerate(evaluations):
                for row in _rows(evaluation, every):
                    writer.writerow([agent, training, *row])


def _rows(evaluation: FairnessEvaluation, every: int) -> Iterator[list[Any]]:
    """Figure, step, and what is known of the mean."""
    steps = np.arange(1, evaluation.n_steps + 1)
    steps = steps[(steps % every == 0) | (steps == evaluation.n_steps)]
    for figure in evaluation.figures:
        for step, *numbers in zip(steps, *(part[steps - 1] for part in evaluation.curve(figure)), strict=True):
            yield [figure, int(step), *plain(numbers, finite=True)]
    legacy = evaluation.legacy
    if legacy is not None:
        for figure, values in (("cloud distance", legacy.distance), ("gap of mean TPR", legacy.gap_of_mean_tpr)):
            if values is not None:
                for step, value in zip(legacy.steps, values, strict=True):
                    yield [figure, int(step), plain(value, finite=True), None, None]


def write_summary(path: str | Path, agents: Agents, after: int = 0, fair_below: float = 0.1) -> None:
    """Writes what is known in sum as JSON: what was evaluated, and for each agent the statistics over training seeds
    and of every training; each is [mean, low, high], null where unknown.

    :param after: see :meth:`FairnessEvaluation.per_episode`
    :param fair_below: see :meth:`FairnessEvaluation.per_episode`
    """
    told = ("env_id", "settings", "seeds", "deterministic", "massage", "keys")
    content = {
        agent: {
            "over trainings": plain(summarise_seeds(evaluations, after, fair_below), finite=True),
            "trainings": [
                {name: plain(getattr(evaluation, name)) for name in told}
                | {"steps": evaluation.n_steps, "summary": plain(evaluation.summary(after, fair_below), finite=True)}
                for evaluation in evaluations
            ],
        }
        for agent, evaluations in agents.items()
    }
    written = json.dumps({"after": after, "fair_below": fair_below, "agents": content}, indent=1)
    Path(path).write_text(written, encoding="utf-8")
