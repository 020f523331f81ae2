"""How does an environment become a fairness MDP: who was decided on, how, and how fair has that been so far?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers.infos import cut, publish, stack, stacked
from sb3_fair.wrappers.layer import VecLayer

Probabilities = Literal["policy", "executed"]
People = dict[str, Any]


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
        self.spec = spec
        self.forget = forget
        self.executed = probabilities == "executed"
        self.tracker = None
        self.names: tuple[str, ...] = ()
        if spec.notions:
            if not isinstance(action_space, spaces.Discrete):
                raise ValueError(
                    f"notions {spec.notions} compare actions and need a Discrete action space, got {action_space}"
                )
            self.tracker = spec.tracker(n, int(action_space.n))
            self.names = self.tracker.names
            self.first_action, self.one_hot = int(action_space.start), np.eye(int(action_space.n))

    def record(self, people: People, actions: NDArray[Any], probabilities: Any) -> NDArray[np.int64]:
        """One decision per copy, or several: (n,) or (n, m) arrays of people, the latter with a mask ``present``.

        :param people: arrays by name: ``group`` (or a dict of arrays), ``features``, ``feedback``; several people per
            copy bring their own ``action``
        :param actions: (n,), executed
        :param probabilities: (n, n_actions) of the policy, or None
        :return: ids, -1 where nobody is present
        """
        assert self.tracker is not None
        own = people.get("action")
        if own is None or np.ndim(own) < 2:
            rows = self._distributions(actions, probabilities)
            features = people.get("features")
            return self.tracker.add(
                people["group"], actions, features=features, probabilities=rows, feedback=people["feedback"]
            )
        own = np.asarray(own)
        present = np.asarray(people.get("present", np.ones(own.shape, dtype=bool)))
        ids = np.full(own.shape, -1)
        for place in range(own.shape[1]):
            which = np.flatnonzero(present[:, place])
            if len(which):
                person = {key: _at(value, which, place) for key, value in people.items()}
                rows = self._distributions(person["action"], person.get("probabilities"))
                ids[which, place] = self.tracker.add(
                    person["group"],
                    person["action"],
                    features=person.get("features"),
                    probabilities=rows,
                    feedback=person["feedback"],
                    which=which,
                )
        return ids

    def _distributions(self, actions: NDArray[Any], probabilities: Any) -> Any:
        """The policy's rows (n, n_actions), else the executed actions as one-hot rows."""
        assert self.tracker is not None
        if not self.tracker.needs_probabilities:
            return None
        if probabilities is None or self.executed:
            return self.one_hot[actions - self.first_action]
        return probabilities

    def restart(self, which: Sequence[int] | NDArray[Any]) -> None:
        """New episodes begin in the copies ``which``."""
        if self.tracker is not None and self.forget:
            self.tracker.reset(which)

    def figures(self) -> dict[str, NDArray[np.float64]]:
        """The notions after what has been recorded, name -> (n,), NaN where undefined."""
        return self.tracker.values() if self.tracker else {}

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Late feedback for individual ``id`` of a copy."""
        return self.tracker is not None and self.tracker.update_feedback(copy, id, value)


def _at(value: Any, which: NDArray[Any], place: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _at(entry, which, place) for key, entry in value.items()}
    return None if value is None else value[which, place]


def _people(spec: FairnessSpec, published: Any) -> People:
    """Arrays of people, as the environment published them, in the form that the tracker takes."""
    person = spec.individual(None, None, {"individual": published})
    return {**published, "group": person.group, "features": person.features, "feedback": person.feedback}


def _describe(spec: FairnessSpec, obs: Any, action: Any, info: Mapping[str, Any]) -> People:
    """The entry ``individual`` of one copy's info, as the spec's callables see it."""
    person = spec.individual(obs, action, info)
    seen = {"group": person.group, "feedback": person.feedback}
    if person.features is not None:
        seen["features"] = person.features
    return {"action": int(action), **info.get("individual", {}), **seen}


def _taken_from_info(spec: FairnessSpec) -> bool:
    """Does the environment itself publish who its individuals are?"""
    return spec.group is None and spec.features is None and spec.feedback is None


def _refuse_second(inside: bool) -> None:
    if inside:
        raise ValueError(
            "env already is a fairness MDP: there is a FairMDP inside (in every sb3_fair ID; pass objectives=, audit= "
            "or spec= to gym.make to change what it measures)"
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
        _refuse_second(env.has_wrapper_attr("fairness_names"))
        self.fairness_spec = spec
        self.reset_on_episode = reset_on_episode
        self._recorder = FairnessRecorder(spec, env.action_space, 1, probabilities, reset_on_episode)
        self._published = _taken_from_info(spec)
        self._obs: Any = None

    @property
    def fairness_names(self) -> tuple[str, ...]:
        """Names of the notions in ``info["fairness"]``."""
        return self._recorder.names

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._recorder.restart([0])
        self._obs, info = self.env.reset(seed=seed, options=options)
        return self._obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        probabilities = getattr(action, "probabilities", None)
        if probabilities is not None:
            action, probabilities = int(action), probabilities[None]
        obs, reward, terminated, truncated, info = self.env.step(action)
        if self._recorder.names:
            if not (self._published and "individual" in info):
                info["individual"] = _describe(self.fairness_spec, self._obs, action, info)
            people = stacked([info["individual"]])
            if self._published:
                people = _people(self.fairness_spec, people)
            ids = self._recorder.record(people, np.array([action]), probabilities)[0]
            info["individual"]["id"] = int(ids) if ids.ndim == 0 else ids[ids >= 0]
        info["fairness"] = {**info.get("fairness", {}), **cut(self._recorder.figures(), 0)}
        self._obs = obs
        return obs, reward, terminated, truncated, info

    def update_feedback(self, id: int, value: float) -> bool:
        """Feedback that came late: the action that would have been right for individual ``id``.

        :return: whether the individual was still in the history
        """
        return self._recorder.update_feedback(0, id, value)


class VecFairMDP(VecLayer):
    """:class:`FairMDP` for a VecEnv: ``stack(infos, "fairness")`` is a dict name -> (n,)."""

    published = ("fairness_spec", "fairness_names", "reset_on_episode")

    def __init__(
        self,
        venv: VecEnv,
        spec: FairnessSpec,
        *,
        probabilities: Probabilities = "policy",
        reset_on_episode: bool = True,
    ) -> None:
        super().__init__(venv)
        _refuse_second(venv.has_attr("fairness_names"))
        self.fairness_spec = spec
        self.reset_on_episode = reset_on_episode
        self._recorder = FairnessRecorder(spec, venv.action_space, venv.num_envs, probabilities, reset_on_episode)
        self._published = _taken_from_info(spec)

    @property
    def fairness_names(self) -> tuple[str, ...]:
        """Names of the notions in ``info["fairness"]``."""
        return self._recorder.names

    def reset(self) -> VecEnvObs:
        self._recorder.restart(np.arange(self.num_envs))
        self._obs = self.venv.reset()
        return self._obs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._probabilities = getattr(actions, "probabilities", None)
        self._actions = np.asarray(actions)
        self.venv.step_async(self._actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        if self._recorder.names:
            published = self._individuals(infos)
            people = _people(self.fairness_spec, published) if self._published else published
            ids = self._recorder.record(people, self._actions, self._probabilities)
            publish(infos, "individual", {**published, "id": ids})
        told = stack(infos, "fairness") if "fairness" in infos[0] else {}
        publish(infos, "fairness", {**told, **self._recorder.figures()})
        which = np.flatnonzero(dones)
        if len(which):
            self._recorder.restart(which)
        self._obs = obs
        return obs, rewards, dones, infos

    def _individuals(self, infos: list[dict[str, Any]]) -> People:
        """Who was decided on in each copy, as published by the environments or seen by the spec's callables."""
        if self._published and "individual" in infos[0]:
            people: People = stack(infos, "individual")
            return people
        observations = (_observation(self._obs, index) for index in range(self.num_envs))
        people = stacked(
            [
                _describe(self.fairness_spec, obs, action, info)
                for obs, action, info in zip(observations, self._actions, infos, strict=True)
            ]
        )
        return people

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Feedback that came late for individual ``id`` of a copy; see :meth:`FairMDP.update_feedback`."""
        return self._recorder.update_feedback(copy, id, value)


def _observation(obs: VecEnvObs, index: int) -> Any:
    """The observation of one copy."""
    if isinstance(obs, dict):
        return {key: value[index] for key, value in obs.items()}
    return obs[index]
