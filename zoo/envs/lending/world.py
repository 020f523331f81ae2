"""Lending: loans move the scores of the applicants' groups.

The case study "bank loans" of "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning"
(arXiv 2401.06318).
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.lending.measures import LendingMeasures, true_positive_rates
from sb3_fair.zoo.envs.lending.settings import GRAIN, LendingConfig, distribution_function
from sb3_fair.zoo.envs.lending.window import EXPECTED, GRANTED, REPAYING, DecisionWindow
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World, of_two

REJECT, GRANT = 0, 1
_EVERYBODY = slice(None)


class _Chances(NamedTuple):
    """The group of the next applicant, his or her place in it and luck with the repayment (...)."""

    group: NDArray[np.int64]
    place: NDArray[np.float64]
    luck: NDArray[np.float64]


def _draws(uniforms: NDArray[np.float64], edges: NDArray[np.float64]) -> _Chances:
    group, place, luck = np.ascontiguousarray(np.moveaxis(uniforms, -1, 0))
    return _Chances((group[..., None] >= edges).sum(axis=-1), place, luck)


class Applicants(NamedTuple):
    """Who is decided on next in each copy (n,).

    :param group: 0 to G - 1
    :param score: 0 to M - 1, one less than the score itself
    :param repays: whether a loan would be repaid
    :param estimate: the bank's estimate of that
    """

    group: NDArray[np.int64]
    score: NDArray[np.int64]
    repays: NDArray[np.bool_]
    estimate: NDArray[np.float64]


def _max_profit(world: "LendingWorld") -> Array:
    """Grants where the expected profit of the loan alone is positive."""
    now = world.applicants
    repays = world.repay_table[now.group, now.score]
    return of_two(world, repays * world.config.interest_rate > 1 - repays)


class LendingWorld(World):
    """A bank sees one applicant per step and rejects (0) or grants (1) a loan of fixed size. See :doc:`/lending`.

    Observation, for M scores and G groups: the applicant's score (M) and group (G) as one-hot vectors; then of the
    latest w decided applicants the true positive rate of each group (G) and, unless ``observation="basic"``, the
    number by group and score over their number + 1 (G * M). Reward: the change of the cash. Terminated when the cash is
    less than a loan, truncated after ``episode_length`` steps.

    Whether a rejected applicant would have repaid is hidden: in what the bank knows, the estimated probability stands
    for it, unless ``oracle_outcomes``. Figures (``info["fairness"]``), after the step where nothing else is said:
    ``d_s``, the gap between the groups' true positive rates over the latest w + 1 applicants, with true outcomes and
    hence for evaluation only; ``d_s_estimated``, as the bank knows it, and ``d_s_prev``, the same one step before;
    ``tpr`` (G,), as the bank knows them, None where undefined with ``undefined_tpr="skip"``; ``w1``, the 1-Wasserstein
    distance between the groups' scores; ``d_l`` and ``d_l_next``, long-term disparity before and after the decision
    took effect; ``d_l_window``, the 1-Wasserstein distance between the scores of the latest w + 1 applicants, the next
    one among them; ``cash``. With several groups gaps are the largest between two.

    :param group: what group notions compare: ``"group"`` is all there is
    :param detail: whether records have ``detail``: ``groups``, the distributions (G, M) after the step;
        ``outlook_before`` and ``outlook`` (G, M - 1), by what a line can tell the groups' future: the share above each
        score but the highest, with ``long_term_source="expected"`` as it was to be expected after the step;
        ``behind``, whether the mean score of the applicant's group was below that of all groups; ``would_repay`` of
        the applicant; and ``tpr`` (G,) with true outcomes
    :param config: fields of :class:`~sb3_fair.zoo.envs.lending.settings.LendingConfig`
    """

    own_settings = ("window",)
    picture = "sb3_fair.zoo.envs.lending.picture:picture"
    source = "arXiv 2401.06318"
    words: ClassVar[Words] = {
        "R": {"title": "profit", "sentence": "Repaid loans less defaults in one episode.", "unit": "loans"},
        "people": "applicants",
        "favourable": "granted a loan",
        "deserving": "would repay",
        "d_s": {"title": "gap in granted loans", "sentence": "Between those of the two groups who repay."},
        "d_l": {
            "title": "gap between the groups' scores",
            "sentence": "Credit scores, as decisions moved them.",
        },
        "w1": {"title": "distance of the groups' scores", "sentence": "Wasserstein distance, in score levels."},
        "cash": {"title": "the bank's cash", "better": "higher"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "never": lambda world: of_two(world, 0),
        "always": lambda world: of_two(world, 1),
        "random": lambda world: of_two(world, 0.5),
        "max-profit": _max_profit,
        "score-3": lambda world: of_two(world, world.applicants.score + 1 >= 3),  # loses at first and gains later
    }

    def __init__(self, n_worlds: int, *, group: Group = "group", detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, LendingConfig, config)
        n_groups, n_scores = self._shape = settings.shape
        names = ("advantaged", "disadvantaged") if n_groups == 2 else [f"group {index}" for index in range(n_groups)]
        self.groups = Groups(group, {"group": names})
        self.measures = LendingMeasures(settings.undefined_tpr)
        self.fairness_spec = FairnessSpec(
            notions=("SP", "PP", "EO") if settings.oracle_outcomes else ("SP", "PP"),
            history=SlidingWindow(settings.window + 1),
            group=self.groups.source,
            group_names=self.groups.names,
            feedback_missing="ignore",
            feature_names=("score",),
            low=1,
            high=n_scores,
            measures=self.measures,
        )
        self.max_steps = settings.episode_length  # type: ignore[assignment]  # None: episodes need not end
        self.action_space = spaces.Discrete(2)
        self._basic = n_scores + 2 * n_groups
        columns = self._basic + (n_groups * n_scores if settings.observation == "full" else 0)
        self.observation_space = spaces.Box(0.0, 1.0, (columns,), np.float32)
        self.repay_table = np.broadcast_to(np.asarray(settings.repay_probability, dtype=np.float64), self._shape).copy()
        """True probability of repayment by group and score (G, M)."""
        self.cash = np.full(n_worlds, float(settings.starting_cash))
        nobody = np.zeros(n_worlds, dtype=np.int64)
        self.applicants = Applicants(nobody, nobody, nobody.astype(np.bool_), nobody.astype(np.float64))
        """Who is decided on in the coming step."""
        self._window = DecisionWindow(n_worlds, settings.window, n_groups, n_scores)
        self._estimates = self._grained(self.repay_table.ravel())
        cells = np.arange(n_groups * n_scores)
        one_hot = np.eye(n_scores)[cells % n_scores], np.eye(n_groups)[cells // n_scores]
        self._labels = np.concatenate(one_hot, axis=1, dtype=np.float32)
        self._up_to = np.tri(n_scores, dtype=np.float32)
        # By code of a decision: what it pays, and which way it moves mass. See DecisionWindow.
        code = np.arange(4 * len(cells))
        score, repays, granted = (code >> 2) % n_scores, code & 2 > 0, code & 1 > 0
        gain = float(settings.loan_amount * settings.interest_rate)
        self.max_return = gain * (self.max_steps or np.inf) if gain else 0.0
        self._pay = np.where(granted, np.where(repays, gain, -settings.loan_amount), 0.0)
        inside = np.where(repays, score < n_scores - 1, score > 0)
        self._direction = np.where(granted & inside, np.where(repays, -1.0, 1.0), 0.0)
        self._share = np.round(settings.score_shift / GRAIN) * GRAIN
        self._start = distribution_function(settings.initial_distribution)[:, :, None]
        # Mass of each group below score index k: (G, M + 1, n), the copies last for speed.
        self._below = np.repeat(self._start, n_worlds, axis=2)
        self._rows = np.arange(n_worlds)
        self._steps = np.zeros(n_worlds, dtype=np.int64)
        self._w1 = np.zeros(n_worlds)
        self._window_w1 = np.zeros(n_worlds)
        self._d_s = np.zeros(n_worlds)  # as the bank knows it
        self._figures: dict[str, Array] = {}
        draws = partial(_draws, edges=distribution_function(settings.group_probability)[1:-1])
        super().__init__(n_worlds, Tapes(n_worlds, 3, draws, rows=min(max(8192 // n_worlds, 64), 1024)))

    @property
    def distributions(self) -> NDArray[np.float64]:
        """Of the scores in each group (n, G, M)."""
        return np.ascontiguousarray(np.moveaxis(np.diff(self._below, axis=1), -1, 0))

    def massage(self) -> Record:
        granted, repaying = self._known(self._window.counts)
        now = self.applicants
        massage: Record = {
            "granted": granted.T,
            "repaying": repaying.T,
            "group": now.group,
            "repay_probability": now.estimate,
        }
        return massage | {"would_repay": now.repays} if self.config.oracle_outcomes else massage

    def fairness_arrays(self) -> dict[str, Array]:
        """``info["fairness"]`` of the latest step, (n, ...) by name; empty before the first one."""
        return self._figures

    def restart(self, which: Array) -> Array:
        self._window.clear(which)
        self._below[:, :, which] = self._start
        self._steps[which] = 0
        self.cash = _put(self.cash, which, self.config.starting_cash)
        self._d_s = _put(self._d_s, which, 0.0)
        self._w1 = _put(self._w1, which, _widest(self._start[:, 1:-1]))
        self.tapes.redraw(which, self.restart_streams(which))
        fresh, obs, window_w1 = self._arrive(which)
        pairs = zip(self.applicants, fresh, strict=True)
        self.applicants = Applicants._make([_put(old, which, new) for old, new in pairs])
        self._window_w1 = _put(self._window_w1, which, window_w1)
        return obs

    def step(self, actions: Array) -> Step:
        now = self.applicants
        actions = np.array(actions, dtype=np.int64)
        code = 4 * (now.group * self._shape[1] + now.score) + 2 * now.repays + actions
        reward = self._pay.take(code)
        self.cash = self.cash + reward
        counts = self._window.add(code, now.estimate)
        known = self._known(counts)
        d_s, d_s_prev = self.measures.gap(known[0].T, known[1].T), self._d_s
        true = d_s if self.config.oracle_outcomes else self.measures.gap(counts[GRANTED].T, counts[REPAYING].T)
        before = self._w1, self._window_w1
        below_before = self._below.copy() if self.detail else None
        expected = after = None
        if self.config.long_term_source == "expected":
            expected, after = self._expected(code, now.estimate)
        self._move(self._below, code)
        self._d_s, self._w1 = d_s, _widest(self._below[:, 1:-1])
        self.tapes.advance()
        self.applicants, obs, self._window_w1 = self._arrive()
        self._steps += 1
        d_l, d_l_next = (
            (before[1], self._window_w1)
            if self.config.long_term_source == "window"
            else (before[0], self._w1 if expected is None else expected)
        )
        self._figures = {
            "d_s": true,
            "d_s_estimated": d_s,
            "d_s_prev": d_s_prev,
            "d_l": d_l,
            "d_l_next": d_l_next,
            "d_l_window": self._window_w1,
            "w1": self._w1,
            "tpr": self._rates(*known),
            "cash": self.cash,
        }
        record: Record = {
            "fairness": self._figures,
            "individual": {
                "group": self.groups.record(now.group[:, None]),
                "features": now.score[:, None] + 1.0,
                "action": actions,
                "feedback": self._feedback(now.repays, actions),
            },
        }
        if below_before is not None:
            outlook = _above(below_before)
            means = outlook.sum(axis=2)
            behind = means < means.mean(axis=1, keepdims=True)  # whose mean score is below that of all groups
            record["detail"] = {
                "groups": self.distributions,
                "outlook_before": outlook,
                "outlook": _above(self._below if after is None else after),
                "behind": behind[self._rows, now.group],
                "would_repay": now.repays,
                "tpr": self._rates(counts[GRANTED], counts[REPAYING]),
            }
        terminated = self.cash < self.config.loan_amount
        over = np.zeros(self.n_worlds, dtype=bool) if self.max_steps is None else self._steps >= self.max_steps
        return obs, reward, terminated, over & ~terminated, record

    def _feedback(self, repays: NDArray[np.bool_], actions: Array) -> NDArray[np.float64]:
        outcome = repays.astype(np.float64)
        return outcome if self.config.oracle_outcomes else np.where(actions == GRANT, outcome, np.nan)

    def _known(self, counts: NDArray[np.float64]) -> tuple[Array, Array]:
        """Would-repay applicants with a loan, and all, as far as the bank knows: (G, n) each."""
        if self.config.oracle_outcomes:
            return counts[GRANTED], counts[REPAYING]
        return counts[GRANTED], counts[GRANTED] + counts[EXPECTED]

    def _rates(self, granted: Array, repaying: Array) -> NDArray[np.float64]:
        rates = true_positive_rates(granted, repaying)
        return rates.T if self.config.undefined_tpr == "zero" else np.where(repaying > 0, rates, np.nan).T

    def _move(self, below: Array, code: Array) -> None:
        """A share of the applicant's group moves from its score to the next higher or lower one."""
        edges = below.reshape(-1)
        cell = code >> 2
        lower = (cell + cell // self._shape[1]) * self.n_worlds + self._rows
        upper = lower + self.n_worlds
        share = np.minimum(edges.take(upper) - edges.take(lower), self._share)
        edge = np.where(code & 2, upper, lower)
        edges[edge] += self._direction.take(code) * share

    def _expected(self, code: Array, estimate: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """W1 (n,) and distribution functions (G, M + 1, n) that the decisions lead to on average."""
        default, repaid = self._below.copy(), self._below.copy()
        self._move(default, code & ~2)
        self._move(repaid, code | 2)
        w1 = (1 - estimate) * _widest(default[:, 1:-1]) + estimate * _widest(repaid[:, 1:-1])
        return w1, (1 - estimate) * default + estimate * repaid

    def _arrive(self, rows: Any = _EVERYBODY) -> tuple[Applicants, Array, NDArray[np.float64]]:
        """The next applicants of the copies ``rows`` (k,), their observations, and W1 of the window with them."""
        chances, window = self.tapes.now, self._window
        n_groups, n_scores = self._shape
        group, place, luck = chances.group[rows].copy(), chances.place[rows], chances.luck[rows]
        copies = np.arange(len(group))
        scores: NDArray[np.int64] = (place >= self._below[:, 1:-1, rows]).sum(axis=1)
        score = scores.reshape(-1).take(group * len(group) + copies)
        cell = group * n_scores + score
        repays = luck < self.repay_table.reshape(-1).take(cell)

        seen = window.scores[:, rows]
        obs = np.empty((len(group), self.observation_space.shape[0]), dtype=np.float32)  # type: ignore[index]
        obs[:, : n_scores + n_groups] = self._labels.take(cell, axis=0)
        granted, repaying = self._known(window.counts[:, :, rows])
        obs[:, n_scores + n_groups : self._basic] = true_positive_rates(granted, repaying).T
        if obs.shape[1] > self._basic:
            obs[:, self._basic :] = (seen / (window.sizes[rows] + 1)).T

        present = seen.copy()
        present.reshape(-1)[cell * len(group) + copies] += 1
        window_w1 = _widest_of_counts(self._up_to @ present.reshape(n_groups, n_scores, -1))

        estimator = self.config.repay_estimator
        estimate = self._estimates.take(cell) if estimator is None else self._asked(estimator, obs)
        return Applicants(group, score, repays, estimate), obs, window_w1

    def _asked(self, estimator: Callable[[Any], Any], obs: Array) -> NDArray[np.float64]:
        answer = np.asarray(estimator(obs), dtype=np.float64)
        if answer.shape != obs.shape[:1] or not ((answer >= 0) & (answer <= 1)).all():
            raise ValueError(
                f"repay_estimator must return probabilities in [0, 1] of shape {obs.shape[:1]}, got {answer!r}"
            )
        return self._grained(answer)

    def _grained(self, estimates: Array) -> NDArray[np.float64]:
        return np.round(estimates / self._window.grain) * self._window.grain


def _above(below: Array) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.moveaxis(1 - below[:, 1:-1], -1, 0))


def _widest(below: Array) -> NDArray[np.float64]:
    """The largest 1-Wasserstein distance between two groups (...), from distribution functions (G, M - 1, ...)."""
    return _largest([np.abs(a - b).sum(axis=0) for a, b in combinations(below, 2)])


def _widest_of_counts(up_to: Array) -> NDArray[np.float64]:
    """The same from counts up to each score (G, M, n); 0 between groups of which one is empty.

    Whole numbers until the last division, so that the order of the sums does not matter.
    """
    counts, gaps = up_to.astype(np.float64), []
    for a, b in combinations(counts, 2):
        gap = np.abs(a[:-1] * b[-1] - b[:-1] * a[-1]).sum(axis=0)
        gaps.append(gap / np.maximum(a[-1] * b[-1], 1))
    return _largest(gaps)


def _largest(gaps: list[Array]) -> Array:
    return gaps[0] if len(gaps) == 1 else np.max(gaps, axis=0)


def _put(array: Array, which: Array, values: Any) -> Array:
    """A copy of ``array`` (n, ...) with other values for ``which``: what was handed out stays as it is."""
    changed = array.copy()
    changed[which] = values
    return changed
