"""How does an environment become a fairness MDP: who was decided on, how, and how fair has that been so far?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, Tracker
from sb3_fair.wrappers.infos import cut, publish, record_of, stack

Probabilities = Literal["policy", "executed"]
Figures = dict[str, NDArray[np.float64]]


class FairnessRecorder:
    """The arithmetic that both wrappers share: individuals in, fairness figures out, for n copies of an environment.

    :raises ValueError: if ``probabilities`` is unknown, or notions are asked for on an action space without
        discrete actions
    """

    def __init__(
        self, spec: FairnessSpec, action_space: spaces.Space, n: int, probabilities: Probabilities, forget: bool
    ) -> None:
        if probabilities not in ("policy", "executed"):
            raise ValueError(f"probabilities must be 'policy' or 'executed', got {probabilities!r}")
        if spec.notions and not isinstance(action_space, spaces.Discrete):
            raise ValueError(
                f"notions {tuple(spec.notions)!r} compare actions and need a Discrete action space, got {action_space!r}"
            )
        self.forget = forget
        self.executed = probabilities == "executed"
        self.tracker: Tracker | None = spec.tracker(n) if spec.notions else None
        self.names: tuple[str, ...] = self.tracker.names if self.tracker else ()
        self.needs_probabilities = bool(self.tracker and self.tracker.needs_probabilities)
        if isinstance(action_space, spaces.Discrete):
            self.start, self.one_hot = int(action_space.start), np.eye(int(action_space.n))

    def distributions(self, actions: NDArray[Any], probabilities: Any) -> NDArray[np.float64] | None:
        """Rows (n, n_actions) for the tracker: the policy's, else the one-hot rows of the executed actions."""
        if not self.needs_probabilities:
            return None
        if probabilities is None or self.executed:
            rows: NDArray[np.float64] = self.one_hot[actions - self.start]
            return rows
        return np.asarray(probabilities, dtype=np.float64)

    def restart(self, which: Sequence[int] | NDArray[Any]) -> None:
        """New episodes begin in the copies ``which``."""
        if self.tracker is not None and self.forget:
            self.tracker.reset(which)

    def figures(self) -> Figures:
        """The notions after what has been recorded, name -> (n,), NaN where undefined."""
        return self.tracker.values() if self.tracker else {}


def refuse_second(env_has: bool) -> None:
    """:raises ValueError: if the environment is a fairness MDP already"""
    if env_has:
        raise ValueError(
            "env already is a fairness MDP: FairMDP is inside (registered sb3_fair IDs have one; pass objectives=, "
            "audit= or spec= to gym.make to change what it measures)"
        )


class FairMDP(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Measures how fairly the individuals in an environment are treated.

    After every step ``info["fairness"]`` holds the notions of ``spec`` (0 is fair, negative is unfair, None is
    undefined) and ``info["individual"]`` whom the step's action was for, with an ``id`` for late feedback.
    Observations and rewards are unchanged. Batched twin: :class:`VecFairMDP`.

    :param env: any Gymnasium environment with a Discrete action space (another one if ``spec.notions`` is empty)
    :param spec: who is an individual, which group, what would have been right, and which notions over which history
    :param probabilities: ``"policy"``: notions that compare distributions see the probabilities that travel with the
        action (:mod:`sb3_fair.wrappers.choices`); ``"executed"``: they see the executed action as a one-hot row
    :param reset_on_episode: whether each episode begins with an empty history. False carries the history over; the
        figures then depend on earlier episodes, so that a reward made of them is not Markov
    :raises ValueError: if ``env`` already is a fairness MDP, or ``spec`` asks for notions the env cannot have

    Example:
        >>> import gymnasium as gym
        >>> from sb3_fair.fairness import FairnessSpec, SlidingWindow
        >>> spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), notions=("SP",), history=SlidingWindow(100))
        >>> env = FairMDP(gym.make("CartPole-v1"), spec)
        >>> _ = env.reset(seed=0)
        >>> env.step(1)[4]["individual"]["id"]
        0
    """

    def __init__(
        self,
        env: gym.Env,
        spec: FairnessSpec,
        *,
        probabilities: Probabilities = "policy",
        reset_on_episode: bool = True,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, spec=spec, probabilities=probabilities, reset_on_episode=reset_on_episode, _disable_deepcopy=True
        )
        super().__init__(env)
        refuse_second(env.has_wrapper_attr("fairness_recorder"))
        self.fairness_spec = spec
        self.reset_on_episode = reset_on_episode
        self.fairness_recorder = FairnessRecorder(spec, env.action_space, 1, probabilities, reset_on_episode)
        self._obs: Any = None

    @property
    def fairness_names(self) -> tuple[str, ...]:
        """Names of the notions in ``info["fairness"]``."""
        return self.fairness_recorder.names

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.fairness_recorder.restart([0])
        self._obs, info = self.env.reset(seed=seed, options=options)
        return self._obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        probabilities = getattr(action, "probabilities", None)
        if probabilities is not None:
            action = int(action)
        obs, reward, terminated, truncated, info = self.env.step(action)
        recorder = self.fairness_recorder
        if recorder.tracker is not None:
            person = self.fairness_spec.individual(self._obs, action, info)
            actions = person.actions
            ids = recorder.tracker.add(
                person.group,
                actions,
                features=person.features,
                probabilities=recorder.distributions(actions, None if probabilities is None else probabilities[None]),
                feedback=person.feedback,
                which=person.which,
            )
            info["individual"] = {**info.get("individual", person.described), "id": person.single(ids)}
        info["fairness"] = {**info.get("fairness", {}), **cut(recorder.figures(), 0)}
        self._obs = obs
        return obs, reward, terminated, truncated, info

    def update_feedback(self, id: int, value: float) -> bool:
        """Feedback that came late: the action that would have been right for individual ``id`` of this history.

        :return: whether the individual was still in the history
        """
        tracker = self.fairness_recorder.tracker
        return tracker is not None and tracker.update_feedback(0, id, value)
