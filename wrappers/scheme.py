"""FairnessScheme: the reward is a fairness scheme."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme, SchemeTracker
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.events import EventOf, FairEvent, events_of, increments, served_by, stakeholders_of
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.infos import publish, publish_figures, stack
from sb3_fair.wrappers.layer import attribute, shows_time
from sb3_fair.wrappers.recompute import needs_differences_only

SchemeLike: TypeAlias = Scheme | Mapping[str, Any]


def as_reward(scheme: SchemeLike) -> Scheme:
    """The scheme whose assessed welfare, summed over an episode, is the score of ``scheme``."""
    if isinstance(scheme, Mapping):
        for name in scheme:
            if name not in Scheme.__dataclass_fields__:
                known = list(Scheme.__dataclass_fields__)
                raise TypeError(f"scheme has no argument {name!r}{did_you_mean(name, known)}, only {known}")
        scheme = Scheme(**scheme)
    if not isinstance(scheme, Scheme):
        raise TypeError(f"scheme must be a Scheme, or its arguments in a dict, got {scheme!r}")
    if scheme.temporal == "last" and scheme.when in ("every", "end"):
        return replace(scheme, temporal="sum", when="end")
    if scheme.temporal not in ("sum", "discounted"):
        raise ValueError(
            "temporal must be 'sum' or 'discounted' (or 'last' of every step) for a reward, which is added up, "
            f"got {scheme.temporal!r}"
        )
    return scheme


def memory_enough(scheme: Scheme, inside: str | None, clock: bool) -> str:
    """The name of the memory with which the reward of ``scheme`` is Markov.

    :param inside: the memory that the environment asks for; one that restarts is of no use to a scheme that does not
    :param clock: whether its observations show the time
    """
    if scheme.restart:
        return f"rounds({scheme.period})"
    enough = "full"
    if inside and not inside.startswith("rounds") and needs_differences_only(scheme):
        enough = inside
    if clock or not scheme.time_based:
        return enough
    return f"{enough}+counter({scheme.period})" if scheme.period else f"{enough}+clock"


@checked
class Assessing(Core):
    """The reward is the welfare of the stakeholders when fairness is assessed."""

    published: ClassVar[tuple[str, ...]] = ("scheme", "stakeholders", "default_memory", "max_return")
    max_return = np.inf
    _looks_back = True

    def __init__(
        self,
        env: Wrapped,
        scheme: SchemeLike,
        *,
        stakeholders: Sequence[int] | None = None,
        event: EventOf | None = None,
    ) -> None:
        super().__init__(env, scheme=scheme, stakeholders=stakeholders, event=event)
        self.stakeholders = attribute(env, "stakeholders") if stakeholders is None else tuple(stakeholders)
        self.scheme = as_reward(scheme)
        self.default_memory = memory_enough(self.scheme, attribute(env, "default_memory"), shows_time(env))
        self._unpaid = "a scheme that is assessed at the end" if self.scheme.when == "end" else None
        self._event = event
        self._masked = not attribute(env, "masked_by_scheme", False)
        n = None  # stakeholders, where they are known before the first step
        if self.scheme.status == "counts":
            numbers, self._first_action = stakeholders_of(env.action_space, self.stakeholders)
            self._served = served_by(numbers)
            n = self._served.shape[1]
        elif self.scheme.status == "rewards":
            n = attribute(env, "reward_dim")
            if n is None:
                raise ValueError("status 'rewards' needs a vector reward, one entry per stakeholder")
        self._tracker = None if n is None else SchemeTracker(self.scheme, self._n_copies, n)

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        if self._tracker is not None:
            self._tracker.restart(which)

    def _record(self, step: Step) -> NDArray[np.float64]:
        infos = step.infos
        if self._event is None:
            granted, base, mask = events_of(infos)
            mask = mask if self._masked else np.ones_like(mask)
        else:
            told = [self._event(*seen) for seen in zip(step.obs, step.actions, infos, strict=True)]
            granted, base, mask = (np.array(column) for column in zip(*told, strict=True))
        gains = self._gains(step, granted)
        if self._tracker is None:
            self._tracker = SchemeTracker(self.scheme, self._n_copies, gains.shape[1])
        welfare, assessed = self._tracker.step(gains, step.ended)
        if self.scheme.time_based:
            mask = mask * assessed
        publish(infos, "fair_event", FairEvent(granted, base, mask))
        status = self._tracker.status
        spread = status.max(axis=1) - status.min(axis=1)
        publish_figures(infos, {"welfare": welfare, "spread": spread})
        return base + np.where(mask * assessed, mask * welfare, 0.0)

    def _gains(self, step: Step, granted: NDArray[Any]) -> NDArray[Any]:
        if self.scheme.status == "counts":
            return increments(self._served, step.actions, granted, self._first_action)
        if self.scheme.status == "rewards":
            return stack(step.infos, "vector_reward")
        gain: Any = self.scheme.status
        return np.array([gain(info) for info in step.infos], dtype=np.float64)


class FairnessScheme(Assessing, Face):
    """Rewards a step with the welfare of all stakeholders after it, if fairness is assessed then.

    The reward is ``base + mask * B * W(U)``, so that the undiscounted return of an episode is the score of the scheme
    (Alamdari et al., "Remembering to Be Fair", Sections 5.1, 5.3) plus what the environment demands of its own: base
    and mask come from its ``info["fair_event"]``, else they are 0 and 1. ``info["fair_event"]`` tells the new ones,
    ``info["fairness"]`` has ``welfare`` and ``spread`` (largest minus smallest status). The attributes ``scheme`` and
    ``status`` (n,) show the scheme and the present status, ``default_memory`` names a memory that is enough for
    ``status="counts"``. Batched twin: :class:`VecFairnessScheme`.

    :param scheme: status, welfare, temporal aggregation and filter, or these by name in a dict; ``temporal="last"`` is
        paid at the end, ``"discounted"`` leaves discounting to the algorithm
    :param stakeholders: whom each action serves, in the order of the actions, -1 if nobody; None: what the environment
        says, else one each
    :param event: (observation, action, info) -> (granted, base, mask), for environments that do not tell; the
        observation is that on which the action was chosen
    :raises ValueError: if the scheme is no sum over time, or does not fit the environment

    The bound ``max_return`` of the environment's own reward no longer holds: it is infinite here.

    Example:
        >>> import gymnasium as gym
        >>> from sb3_fair.fairness import Scheme
        >>> env = FairnessScheme(gym.make("CartPole-v1"), Scheme(welfare="rawls"))
        >>> _ = env.reset(seed=0)
        >>> [env.step(action)[1] for action in (0, 1, 1, 0)]
        [0.0, 1.0, 1.0, 2.0]
    """

    @property
    def status(self) -> NDArray[np.float64] | None:
        """How each stakeholder fares now, (n,); None before the first step if the scheme's status is a function."""
        return None if self._tracker is None else self._tracker.status[0]


class VecFairnessScheme(Assessing, VecFace):
    """:class:`FairnessScheme` for a VecEnv; ``status`` is (n_envs, n)."""

    @property
    def status(self) -> NDArray[np.float64] | None:
        """How each stakeholder of each copy fares now, (n_envs, n)."""
        return None if self._tracker is None else self._tracker.status
