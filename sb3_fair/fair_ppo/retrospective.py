"""Retrospective penalties of FairPPO: the disparity of past rewards.

Source: La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv 2502.03953).
Its term in the loss is a constant for the gradient. Here penalties are rewards, on which the policy gradient acts.

==================  ===============================================================================================
mode                F_t for k = 1, the same for all agents of a world
==================  ===============================================================================================
``"telescoped"``    -(D_t - D_{t-1}), which sums to -D_T over an episode of T steps
``"terminal"``      -D_T in the last step, else 0
``"linear"``        minus the growth of D if its absolute values were differences of means with a fixed sign, that of
                    an average over episodes: -sgn m (mean_U r_t - mean_S r_t)
``"own_reweight"``  none: rewards become r_x (1 - k g_x), where g_x is the mean of sign(C_x - C_y) over those whom x
                    is compared with
``"constant"``      0, as in the paper, where D is only a number
==================  ===============================================================================================

If episodes have no common end, there is no D_T. In populations whose episodes end at different times, D is that of the
groups' latest returns (:class:`~sb3_fair.fair_ppo.apart_run.ApartRun`). There ``"telescoped"`` pays what a step's
rewards add to D, like ``"linear"``, and ``"terminal"`` pays the same at the end of an episode. In streams whose rewards
are carried over, such as episodes of one decision, ``"terminal"`` pays at the end of an episode what it has added to D.

With a tolerance w, D is replaced by max(0, D - w m level), where level is the mean of abs(C_x) at that step over
those who are compared in the world. ``"linear"`` and ``"own_reweight"`` then charge only in steps with an excess.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fair_ppo.apart_run import ApartRun, Finished, end_apart
from sb3_fair.fair_ppo.episodes import Array, Averages, Episodes, renewed
from sb3_fair.fair_ppo.population_run import PopulationRun
from sb3_fair.fair_ppo.stream_run import StreamRun, Tally
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.populations import Disparity, Population

Retro: TypeAlias = Literal["telescoped", "terminal", "linear", "own_reweight", "constant"]
Envy: TypeAlias = Literal["running", "episode"]
Run: TypeAlias = PopulationRun | StreamRun


class Past(NamedTuple):
    """Figures of the episodes that ended in the last rollout; if none did, of the latest ones. Worlds in which nobody
    is compared do not count.

    :param disparity: mean of D at the end of episodes
    :param normalised: mean of D_norm = D / (m scale)
    :param returns: group label -> mean return of its members, of a stream: mean sum of the group's rewards
    """

    disparity: float
    normalised: float
    returns: Mapping[int, float]


@checked
class Retrospective:
    """Penalty rewards of whole rollouts, without the coefficient k = lambda alpha.

    Cumulated rewards C and disparities D continue from one rollout to the next, and restart when an episode ends. In
    streams that carry over, they never restart: earlier rewards count half as much with every further rollout.

    :param retro: the mode
    :param disparity: what D is; None: demographic parity
    :param g: of ``"own_reweight"``: from the current C (``"running"``), or an average over episodes of the mean g of
        the agent's group (``"episode"``; before one ended: from the current C)
    :param tolerance: w; of streams, level is over the sums of rewards of groups (with ``"csp"``, by legitimate factor)
    :raises ValueError: if a name is unknown, or the tolerance negative
    """

    apart = False
    """Whether episodes of the population have been seen to end apart."""
    _finished: Finished = MappingProxyType({})
    _owed: Array | float = 0.0
    _charged: Array | float = 0.0
    """What of D (S,) the running episodes have been charged with."""

    def __init__(
        self,
        retro: Retro = "telescoped",
        disparity: Disparity | None = None,
        g: Envy = "running",
        tolerance: float = 0.0,
    ) -> None:
        self.retro, self.g, self.tolerance = retro, g, tolerance
        self.disparity = disparity or Disparity()
        self.gaps, self.envies = Averages(), Averages()
        self.past = Past(0.0, 0.0, {})
        """Figures of the last rollout."""
        self.scale = 0.0
        """Exponential average over episodes of the mean of abs(R_x) over those who are compared; before one ended: of
        what they have so far."""
        self._episodes_ended = False
        self._kind: type[Run] | None = None
        self._slots = 0
        self._state: Any = None

    @property
    def reweights(self) -> bool:
        """Whether the mode gives factors g instead of penalty rewards F."""
        return self.retro == "own_reweight"

    def __call__(
        self,
        rewards: ArrayLike,
        populations: Sequence[Population],
        dones: ArrayLike,
        streaming: bool = False,
        carries: bool = False,
    ) -> Array:
        """F (T, S) of the next T steps for k = 1; of ``"own_reweight"`` the factors g (T, S).

        :param rewards: (T, S), not normalised
        :param populations: T, the labels of each step
        :param dones: (T, S) whether a step ended its slot's episode
        :param streaming: whether each slot is a stream of individuals
        :param carries: whether what groups of a stream got is carried over to the next episode
        :raises ValueError: if the shapes do not fit, or labels that D needs are missing
        """
        rewards, dones = np.asarray(rewards, dtype=np.float64), np.asarray(dones, dtype=bool)
        check_shapes("rewards", rewards, populations, dones)
        kind: type[Run] = StreamRun if streaming else PopulationRun
        if (kind, rewards.shape[1]) != (self._kind, self._slots):
            self.restart()
            self._kind, self._slots = kind, rewards.shape[1]
        self.apart = not streaming and (self.apart or end_apart(populations, dones, self.disparity))
        if self.apart:
            return self._of_apart(rewards, populations, dones)
        if streaming and carries:
            return self._of_carried(rewards, populations, dones)
        penalties = np.zeros_like(rewards)
        ended: list[Episodes] = []
        so_far: list[Episodes] = []
        for steps in stretches(populations, dones, streaming):
            run, last = kind(self.disparity, self._state, rewards[steps], populations[steps]), dones[steps][-1]
            penalties[steps] = self._of_mode(self.retro, run, last)
            self._state = run.closing(last)
            over = bool(last.any())
            if self._episodes_ended and not over:
                continue
            episodes = run.episodes(last if over else np.ones_like(last))
            if episodes is None:
                continue
            if over:
                ended.append(episodes)
                self.scale = renewed(self.scale if self._episodes_ended else None, episodes.level)
                self._learn(run, last)
            else:
                so_far = [episodes]
                self.scale = float(episodes.level.mean())
        if ended or so_far:
            self.past = summary(ended or so_far, self.scale)
        return penalties

    def _of_carried(self, rewards: Array, populations: Sequence[Population], dones: NDArray[np.bool_]) -> Array:
        """Of streams that go on over the ends of episodes; a rollout is what averages and figures are of."""
        opening: Tally | None = self._state
        run = StreamRun(self.disparity, opening and opening.faded(), rewards, populations)
        nowhere = np.zeros(rewards.shape[1], dtype=bool)
        self._state, self._charged = run.closing(nowhere), self.excess(run)[0]
        so_far = run.episodes(~nowhere)
        if so_far is not None:
            self.scale = float(so_far.level.mean())
            self.past = summary([so_far], self.scale)
        if self.retro == "terminal":
            penalties = self._at_ends(self._of_mode("telescoped", run, nowhere), dones)
        else:
            penalties = self._of_mode(self.retro, run, nowhere)
        self._learn(run, ~nowhere)
        return penalties

    def _of_apart(self, rewards: Array, populations: Sequence[Population], dones: NDArray[np.bool_]) -> Array:
        """Of populations whose episodes end apart."""
        run = ApartRun(self.disparity, self._state, rewards, populations, dones, self._finished)
        self._state, self._finished = run.closing, run.finished
        episodes = run.episodes
        if episodes is not None:
            self.scale = float(episodes.level.mean())
            self.past = summary([episodes], self.scale)
            self._episodes_ended = True
        mode = "linear" if self.retro in ("telescoped", "terminal") else self.retro
        penalties = self._of_mode(mode, run, dones[-1])
        return self._at_ends(penalties, dones) if self.retro == "terminal" else penalties

    def _at_ends(self, penalties: Array, dones: NDArray[np.bool_]) -> Array:
        """Penalties (t, S), summed up to be paid where episodes end."""
        due = np.zeros_like(penalties)
        for step, ends in enumerate(dones):
            self._owed = self._owed + penalties[step]
            due[step] = np.where(ends, self._owed, 0.0)
            self._owed = np.where(ends, 0.0, self._owed)
        return due

    def restart(self) -> None:
        """All slots begin new episodes (the VecEnv was reset); averages over episodes stay."""
        self._state, self._owed, self._charged = None, 0.0, 0.0

    def excess(self, run: Run | ApartRun) -> Array:
        """What of D (t + 1, S) is not tolerated, before the first step and after each."""
        if self.tolerance == 0:
            return run.disparities
        return np.maximum(run.disparities - self.tolerance * run.units, 0.0)

    def _of_mode(self, mode: str, run: Any, ended: NDArray[np.bool_]) -> Array:
        """F (t, S), or the factors g, of steps the last of which ends the episodes of some slots (S,)."""
        if mode == "telescoped":
            excess = self.excess(run)[1:]
            before = np.broadcast_to(self._charged, excess[:1].shape)
            self._charged = np.where(ended, 0.0, excess[-1])
            return -np.diff(excess, prepend=before, axis=0)
        penalties = np.zeros_like(run.rewards)
        if mode == "terminal" and ended.any():
            penalties[-1] = np.where(ended, -self.excess(run)[-1], 0.0)
        if mode not in ("linear", "own_reweight"):
            return penalties
        averages = self.envies if self.g == "episode" else None
        penalties = run.linear(self.gaps) if mode == "linear" else run.envy(averages)
        return penalties if self.tolerance == 0 else penalties * (self.excess(run)[1:] > 0)

    def _learn(self, run: Run, last: NDArray[np.bool_]) -> None:
        self._episodes_ended = True
        if self.retro == "linear":
            self.gaps.learn(*run.gaps(last))
        elif self.reweights and self.g == "episode":
            self.envies.learn(*run.envies(last))


def summary(episodes: Sequence[Episodes], scale: float) -> Past:
    """Means over all of these episodes."""
    disparity = np.concatenate([each.disparity for each in episodes])
    size = np.concatenate([each.size for each in episodes])
    labels = sorted({label for each in episodes for label in each.returns})
    returns = {
        label: float(np.concatenate([each.returns[label] for each in episodes if label in each.returns]).mean())
        for label in labels
    }
    normalised = disparity / (size * scale) if scale > 0 else np.zeros_like(disparity)
    return Past(float(disparity.mean()), float(normalised.mean()), returns)


def stretches(populations: Sequence[Population], dones: NDArray[np.bool_], streaming: bool) -> list[slice]:
    """The steps cut after those that end an episode and, but for streams, before those with other labels."""
    cuts = dones[:-1].any(axis=1)
    if not streaming:
        cuts = cuts | np.array([first is not second for first, second in pairwise(populations)], dtype=bool)
    borders = [0, *(np.flatnonzero(cuts) + 1).tolist(), len(dones)]
    return [slice(*border) for border in pairwise(borders)]


def check_shapes(
    name: str, figures: Array, populations: Sequence[Population], dones: NDArray[np.bool_] | None = None
) -> None:
    """Raises a ValueError unless there is one figure (T, S), population and end for each step and slot."""
    shape = len(populations), len(populations[0]) if populations else 0
    if not populations or figures.shape != shape or (dones is not None and dones.shape != shape):
        others = "" if dones is None else f" and dones {dones.shape}"
        raise ValueError(f"{name} must have one entry per step and slot {shape}, got shape {figures.shape}{others}")
