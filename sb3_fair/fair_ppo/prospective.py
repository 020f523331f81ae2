"""Prospective penalties of FairPPO: the disparity of expected rewards, the values of the critic.

Values V replace the cumulated rewards of retrospective penalties. Source: La Malfa et al., "Fairness Aware
Reinforcement Learning via Proximal Policy Optimization" (arXiv 2502.03953); ``advantage_clip`` takes the form of Yu et
al., "Policy Optimization with Advantage Regularization for Long-Term Fairness in Decision Systems" (NeurIPS 2022).

-k (gamma D(V_{t+1}) - D(V_t)) is not among the modes: it is potential-based reward shaping, which does not change the
optimal policy (Ng et al., ICML 1999).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fair_ppo.apart_run import Key, keys_of, same, weighed
from sb3_fair.fair_ppo.retrospective import check_shapes
from sb3_fair.fair_ppo.stream_run import StreamRun
from sb3_fair.fairness.disparity.populations import Disparity, Population

Array: TypeAlias = NDArray[np.float64]


class Future(NamedTuple):
    """Disparity of the values of the states of a rollout, both (T, S), each slot with that of its world.

    :param disparity: D of the values
    :param normalised: D_norm = D / (m scale), 0 if the scale is
    :param compared: whether somebody is compared in that world
    """

    disparity: Array
    normalised: Array
    compared: NDArray[np.bool_]

    def means(self) -> tuple[float, float]:
        """Of D and D_norm where somebody is compared, 0 if nobody is."""
        if not self.compared.any():
            return 0.0, 0.0
        return float(self.disparity[self.compared].mean()), float(self.normalised[self.compared].mean())


def value_disparity(
    values: ArrayLike,
    populations: Sequence[Population],
    disparity: Disparity,
    scale: float,
    streaming: bool = False,
    apart: bool = False,
) -> Future:
    """D with values in the place of cumulated rewards.

    :param values: (T, S) of the states, in units of rewards
    :param populations: T, the labels of each step
    :param scale: of :class:`~sb3_fair.fair_ppo.retrospective.Retrospective`
    :param streaming: True: abs(mean_U V - mean_S V) over the states of the rollout so far, slot by slot
    :param apart: True, where episodes end apart: what the values of a step add to D of the groups' mean values, whose
        states are not all at the same point of their episodes; its mean over the steps is that D
    :raises ValueError: if the shapes do not fit, or labels that D needs are missing
    """
    values = np.asarray(values, dtype=np.float64)
    check_shapes("values", values, populations)
    if streaming:
        stream = StreamRun(disparity, None, values, populations)
        found, size = stream.mean_gaps(), stream.sizes()
    else:
        found, size = np.empty_like(values), np.empty_like(values)
        for population, steps in same(populations):
            if not apart:
                found[steps] = population.spread(disparity(values[steps], population))
            size[steps] = population.spread(disparity.size(population))
    if apart and not streaming:
        found = weighed(values, populations, disparity, mean_values(values, populations, disparity))
    compared = size > 0
    normalised = np.divide(found, size * scale, out=np.zeros_like(found), where=compared & (scale > 0))
    return Future(found, normalised, compared)


def state_cost(disparities: Array, gamma: float) -> Array:
    """Penalty rewards (T, S) for k = 1: -(1 - gamma) D, which sum to -D if D stays as it is for ever."""
    return -(1 - gamma) * disparities


def advantage_clip(
    normalised: Array, dones: ArrayLike, last_normalised: ArrayLike | None = None, threshold: float = 0.05
) -> Array:
    """What is added to normalised advantages (T, S), for k = 1.

    min(0, w - D_t) + [D_t > w] min(0, D_t - D_{t+1}), where the second is 0 at the end of an episode.

    :param normalised: (T, S) D_norm of the values; ``last_normalised`` (S,) of the states after the last step, None:
        as in the last step
    :param dones: (T, S) whether a step ended its slot's episode
    :param threshold: w
    """
    last = normalised[-1] if last_normalised is None else np.asarray(last_normalised, dtype=np.float64)
    following = np.concatenate([normalised[1:], [last]])
    worsening = (normalised > threshold) & ~np.asarray(dones, dtype=bool)
    clipped: Array = np.minimum(0.0, threshold - normalised)
    return clipped + np.where(worsening, np.minimum(0.0, normalised - following), 0.0)


def mean_values(values: Array, populations: Sequence[Population], disparity: Disparity) -> Mapping[Key, float]:
    """(legitimate factor, group) -> mean of the values (T, S) of its members."""
    found: dict[Key, list[float]] = {}
    everybody = np.ones(values.shape[1], dtype=bool)
    for population, steps in same(populations):
        for key, column in zip(keys_of(disparity, population, everybody), values[steps].T, strict=True):
            found.setdefault(key, []).extend(column.tolist())
    return {key: float(np.mean(column)) for key, column in found.items()}
