"""FairnessScheme: the reward is a fairness scheme."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.scheme_tracker import SchemeTracker
from sb3_fair.fairness.schemes import Scheme
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.ends import Ends
from sb3_fair.wrappers.events import EventOf, FairEvent, events_of, increments, served_by, stakeholders_of
from sb3_fair.wrappers.infos import publish, stack
from sb3_fair.wrappers.layer import Observations, VecLayer, attribute, attribute_of, kept
from sb3_fair.wrappers.recompute import needs_differences_only

SchemeLike: TypeAlias = Scheme | Mapping[str, Any]


def as_reward(scheme: SchemeLike) -> Scheme:
    """The scheme whose assessed welfare, summed over an episode, is the score of ``scheme``.

    :raises TypeError: if it is neither a scheme nor its arguments by name
    :raises ValueError: if there is none, since its temporal aggregation is no sum
    """
    if isinstance(scheme, Mapping):
        for name in scheme:
            if name not in Scheme.__dataclass_fields__:
                known = list(Scheme.__dataclass_fields__)
                raise TypeError(f"scheme has no argument {name!r}{did_you_mean(str(name), known)}, only {known}")
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


class Assessment:
    """The arithmetic that both wrappers share, for n copies of an environment.

    :param masked: whether the mask of the environment's events holds for this scheme too
    :raises ValueError: if the scheme cannot be a reward or does not fit the actions
    """

    def __init__(
        self,
        n: int,
        scheme: SchemeLike,
        action_space: spaces.Space,
        stakeholders: Sequence[int] | None,
        reward_dim: int | None,
        event: EventOf | None,
        masked: bool,
    ) -> None:
        self.n, self.event, self.masked = n, event, masked
        self.scheme = as_reward(scheme)
        self.tracker: SchemeTracker | None = None
        if self.scheme.status == "counts":
            numbers, self.first_action = stakeholders_of(action_space, stakeholders)
            self.served = served_by(numbers)
            self.tracker = SchemeTracker(self.scheme, n, self.served.shape[1])
        elif self.scheme.status == "rewards":
            if reward_dim is None:
                raise ValueError("status 'rewards' needs a vector reward, one entry per stakeholder")
            self.tracker = SchemeTracker(self.scheme, n, reward_dim)

    def restart(self, which: Any) -> None:
        """New episodes begin in the copies ``which``."""
        if self.tracker is not None:
            self.tracker.restart(which)

    def step(
        self, observations: Any, actions: NDArray[Any], infos: Sequence[dict[str, Any]], ended: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Rewards (n,) of one step; the infos get the event and the welfare.

        :param observations: on which the actions were chosen, copy by copy
        """
        if self.event is None:
            granted, base, mask = events_of(infos)
            mask = mask if self.masked else np.ones_like(mask)
        else:
            told = [self.event(*seen) for seen in zip(observations, actions, infos, strict=True)]
            granted, base, mask = (np.array(column) for column in zip(*told, strict=True))
        gains = self._increments(actions, infos, granted)
        if self.tracker is None:
            self.tracker = SchemeTracker(self.scheme, self.n, gains.shape[1])
        welfare, assessed = self.tracker.step(gains, ended)
        if self.scheme.time_based:
            mask = mask * assessed
        publish(infos, "fair_event", FairEvent(granted, base, mask))
        figures = stack(infos, "fairness") if "fairness" in infos[0] else {}
        status = self.tracker.status
        figures = {**figures, "welfare": welfare, "spread": status.max(axis=1) - status.min(axis=1)}
        publish(infos, "fairness", figures)
        return base + np.where(mask * assessed, mask * welfare, 0.0)

    def _increments(
        self, actions: NDArray[Any], infos: Sequence[dict[str, Any]], granted: NDArray[Any]
    ) -> NDArray[Any]:
        if self.scheme.status == "counts":
            return increments(self.served, actions, granted, self.first_action)
        if self.scheme.status == "rewards":
            return stack(infos, "vector_reward")
        gain: Any = self.scheme.status
        return np.array([gain(info) for info in infos], dtype=np.float64)


@checked
class FairnessScheme(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a step with the welfare of all stakeholders after it, if fairness is assessed then.

    The reward is ``base + mask * B * W(U)``, so that the undiscounted return of an episode is the score of the scheme
    (Alamdari et al., "Remembering to Be Fair", Sections 5.1, 5.3) plus what the environment demands of its own: base
    and mask come from its ``info["fair_event"]``, else they are 0 and 1. ``info["fair_event"]`` tells the new ones,
    ``info["fairness"]`` has ``welfare`` and ``spread`` (largest minus smallest status). The attributes ``scheme`` and
    ``status`` (n,) show the scheme and the present status, ``default_memory`` names a memory that is enough.
    Batched twin: :class:`VecFairnessScheme`.

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

    def __init__(
        self,
        env: gym.Env,
        scheme: SchemeLike,
        *,
        stakeholders: Sequence[int] | None = None,
        event: EventOf | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, scheme=scheme, stakeholders=stakeholders, event=event)
        super().__init__(env)
        self.stakeholders = attribute_of(env, "stakeholders") if stakeholders is None else tuple(stakeholders)
        dim = attribute_of(env, "reward_dim")
        masked = not attribute_of(env, "masked_by_scheme", False)
        self._assessment = Assessment(1, scheme, env.action_space, self.stakeholders, dim, event, masked)
        self.scheme = self._assessment.scheme
        self.default_memory = memory_enough(
            self.scheme, attribute_of(env, "default_memory"), attribute_of(env, "clock", False)
        )
        self.max_return = np.inf
        self._ends = Ends("a scheme that is assessed at the end" if self.scheme.when == "end" else None)
        self._obs: Any = None

    @property
    def status(self) -> NDArray[np.float64] | None:
        """How each stakeholder fares now, (n,); None before the first step if the scheme's status is a function."""
        tracker = self._assessment.tracker
        return None if tracker is None else tracker.status[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._assessment.restart(slice(None))
        self._ends.restart(self, seed)
        obs, info = self.env.reset(seed=seed, options=options)
        self._obs = kept(obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = self.env.step(action)
        ended = np.array([self._ends.step(terminated or truncated)])
        reward = self._assessment.step([self._obs], np.asarray(action)[None], [info], ended)
        self._obs = kept(obs)
        return obs, float(reward[0]), terminated, truncated, info


@checked
class VecFairnessScheme(VecLayer):
    """:class:`FairnessScheme` for a VecEnv; ``status`` is (n_envs, n)."""

    published = ("scheme", "stakeholders", "default_memory", "max_return")
    max_return = np.inf

    def __init__(
        self,
        venv: VecEnv,
        scheme: SchemeLike,
        *,
        stakeholders: Sequence[int] | None = None,
        event: EventOf | None = None,
    ) -> None:
        super().__init__(venv)
        self.stakeholders = attribute(venv, "stakeholders") if stakeholders is None else tuple(stakeholders)
        dim = attribute(venv, "reward_dim")
        masked = not attribute(venv, "masked_by_scheme", False)
        self._assessment = Assessment(venv.num_envs, scheme, venv.action_space, self.stakeholders, dim, event, masked)
        self.scheme = self._assessment.scheme
        self.default_memory = memory_enough(
            self.scheme, attribute(venv, "default_memory"), attribute(venv, "clock", False)
        )

    @property
    def status(self) -> NDArray[np.float64] | None:
        """How each stakeholder of each copy fares now, (n_envs, n)."""
        tracker = self._assessment.tracker
        return None if tracker is None else tracker.status

    def reset(self) -> VecEnvObs:
        self._assessment.restart(slice(None))
        self._obs = self.venv.reset()
        return self._obs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, _, dones, infos = self.venv.step_wait()
        rewards = self._assessment.step(Observations(self._obs, self.num_envs), self._actions, infos, dones)
        self._assessment.restart(dones)
        self._obs = obs
        return obs, rewards, dones, infos
