"""How does an environment become a fairness MDP: who was decided on, how, and how fair has that been so far?"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, Individual, Tracker
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.probabilities import half_roots
from sb3_fair.fairness.spec import individual_in
from sb3_fair.fairness.validation import integer, number
from sb3_fair.wrappers.ids import Id, Ids
from sb3_fair.wrappers.infos import publish, stack, stack_people, stacked
from sb3_fair.wrappers.layer import Observations, VecLayer, kept

Probabilities = Literal["policy", "executed"]
People = dict[str, Any]
TOLD = ("group", "action", "features", "feedback", "probabilities")
"""What the tracker is told of each of several people in a step."""


class FairnessRecorder:
    """The arithmetic that both wrappers share: individuals in, fairness figures out, for n copies of an environment.

    :raises ValueError: if ``probabilities`` is unknown, or notions are asked for on an action space without
        discrete actions
    """

    def __init__(
        self, spec: FairnessSpec, action_space: spaces.Space, n: int, probabilities: Probabilities, forget: bool
    ) -> None:
        self.spec = spec
        self.forget = forget
        self.executed = probabilities == "executed"
        self.in_info = spec.features is None and spec.feedback is None and not spec.calls_for_group
        self.n = n
        self.life = 0  # how often all histories and ids have begun anew
        self.tracker: Tracker | None = None
        self.names: tuple[str, ...] = ()
        if spec.notions:
            if not isinstance(action_space, spaces.Discrete):
                raise ValueError(
                    f"notions {spec.notions} compare actions and need a Discrete action space, got {action_space}"
                )
            self.space, self.first_action = action_space, int(action_space.start)
            self.executed_roots = half_roots(np.eye(int(action_space.n)))
            missing = [action for action in spec.favourable if not action_space.contains(action)]
            if missing:
                raise ValueError(f"favourable must have actions of {action_space}, got {missing[0]}")
            self.tracker = self._fresh()
            self.names = self.tracker.names

    def _fresh(self) -> Tracker:
        return self.spec.tracker(self.n, len(self.executed_roots))

    def step(self, infos: Sequence[dict[str, Any]], obs: Sequence[Any], actions: NDArray[Any], rows: Any) -> None:
        """Records the decisions of one step and adds ``individual`` (with ids) and ``fairness`` to the infos.

        :param obs: the observation of each copy on which its action was chosen
        :param actions: (n,)
        :param rows: (n, n_actions) probabilities of the policy, or None
        """
        figures: dict[str, Any] = stack(infos, "fairness") if "fairness" in infos[0] else {}
        if self.tracker is not None:
            published, people = self._individuals(infos, obs, actions)
            ids = self._record(people, actions, rows)
            publish(infos, "individual", {**published, "id": Ids.of(ids, self.life)})
            figures = {**figures, **self.tracker.values()}
        publish(infos, "fairness", figures)

    def _individuals(
        self, infos: Sequence[dict[str, Any]], obs: Sequence[Any], actions: NDArray[Any]
    ) -> tuple[People, People]:
        """Who was decided on: what the infos say of them, and what the tracker is to know, features selected."""
        assert self.tracker is not None
        if self.in_info and "individual" in infos[0]:
            published: People = stack_people(infos)
            if self.spec.group is None:
                if not self.tracker.needs_features or "features" not in published:
                    return published, published
                return published, {**published, "features": self.spec.select(published["features"])}
            if self.spec.finds_group_in(published):
                person = self.spec.individual(None, None, {"individual": published})
                return published, {**published, **person._asdict()}
        seen = zip(obs, actions, infos, strict=True)
        told_of = [_told(self.spec.individual(one, action, info)) for one, action, info in seen]
        described = [
            {"action": int(action), **person, **individual_in(info)}
            for action, person, info in zip(actions, told_of, infos, strict=True)
        ]
        known: People = stacked(described)
        return known, {**known, **stacked(told_of)}

    def _record(self, people: People, actions: NDArray[Any], probabilities: Any) -> NDArray[np.int64]:
        """One decision per copy, or several: (n,) or (n, m) arrays of people, the latter with a mask ``present``.

        :param people: arrays by name: ``group`` (or a dict of arrays), ``features``, ``feedback``, and the executed
            ``action`` if it is told, which it has to be of several people per copy
        :param actions: (n,), executed if nothing else is told
        :param probabilities: (n, n_actions) of the policy, or None
        :return: ids, -1 where nobody is present
        """
        assert self.tracker is not None
        own = np.asarray(people.get("action", actions))
        for name in people.keys() & {"action", "feedback"}:
            self._require_actions(name, people[name], people.get("present", True))
        if own.ndim < 2:
            return self.tracker.add(
                people.get("group"),
                own,
                features=people.get("features"),
                feedback=people.get("feedback"),
                **self._distributions(own, probabilities),
            )
        present = np.asarray(people.get("present", np.ones(own.shape, dtype=bool)))
        ids = np.full(own.shape, -1)
        for place in range(own.shape[1]):
            which = np.flatnonzero(present[:, place])
            if len(which):
                person = {key: _at(key, value, which, place) for key, value in people.items() if key in TOLD}
                ids[which, place] = self.tracker.add(
                    person.get("group"),
                    person["action"],
                    features=person.get("features"),
                    feedback=person.get("feedback"),
                    which=which,
                    **self._distributions(person["action"], person.get("probabilities")),
                )
        return ids

    def _require_actions(self, name: str, values: Any, present: Any = True) -> None:
        """:raises ValueError: if one of the ``values`` is neither unknown (NaN) nor an action"""
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iuf":
            numbers = numbers.astype(np.float64)
        wrong = (numbers < self.first_action) | (numbers >= self.first_action + self.space.n)
        if np.count_nonzero(wrong) and (wrong & present).any():
            raise ValueError(f"{name} must be an action of {self.space}, got {numbers[wrong & present][0]:g}")

    def _distributions(self, actions: NDArray[Any], probabilities: Any) -> dict[str, Any]:
        """For the tracker: the policy's rows (n, n_actions), else the executed actions as one-hot rows."""
        assert self.tracker is not None
        if not self.tracker.needs_probabilities:
            return {}
        if probabilities is None or self.executed:
            return {"roots": self.executed_roots.take(actions - self.first_action, axis=0)}
        return {"probabilities": probabilities}

    def restart(self, which: Sequence[int] | NDArray[Any], seeded: bool = False) -> None:
        """New episodes begin in the copies ``which``; with a seed, so that ids begin at 0 again."""
        if self.tracker is not None and self.forget:
            if seeded:
                self.begin_anew()
            else:
                self.tracker.reset(which)

    def begin_anew(self, copy: int | None = None) -> None:
        """A copy, or all (None), have an empty history; ids of all begin at 0."""
        if self.tracker is None:
            return
        if copy is None:
            self.life += 1
            self.tracker = self._fresh()
        else:
            self.tracker.reset([copy])

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Late feedback for individual ``id`` of a copy."""
        if self.tracker is None:
            return False
        self._require_actions("value", number("value", value))
        known = not isinstance(id, Id) or id.life == self.life
        return known and self.tracker.update_feedback(copy, integer("id", id, low=0), value)


def _told(person: Individual) -> People:
    return {key: value for key, value in person._asdict().items() if key != "features" or value is not None}


def _at(name: str, value: Any, which: NDArray[Any], place: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _at(name, entry, which, place) for key, entry in value.items()}
    if value is None:
        return None
    if np.ndim(value) > 1 and place >= np.shape(value)[1]:
        raise ValueError(f"{name} must have one entry per person, or one for all, got {np.shape(value)[1]}")
    return value[which] if np.ndim(value) == 1 else value[which, place]  # of the whole copy, or of everyone in it


def _refuse_second(inside: bool) -> None:
    if inside:
        raise ValueError(
            "env already is a fairness MDP: there is a FairMDP inside (in every sb3_fair ID; pass objectives=, audit= "
            "or spec= to gym.make to change what it measures)"
        )


@checked
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
        figures then depend on earlier episodes, so that a reward made of them is not Markov, until
        :meth:`forget_history`
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
        self._obs: Any = None

    @property
    def fairness_names(self) -> tuple[str, ...]:
        """Names of the notions in ``info["fairness"]``."""
        return self._recorder.names

    @property
    def compared_groups(self) -> tuple[Hashable, ...] | None:
        """The labels in ``info["individual"]["group"]`` that are compared; None: all."""
        return self.fairness_spec.compared_groups

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._recorder.restart([0], seeded=seed is not None)
        obs, info = self.env.reset(seed=seed, options=options)
        self._obs = kept(obs)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        probabilities = getattr(action, "probabilities", None)
        if probabilities is not None:
            action, probabilities = int(action), probabilities[None]
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._recorder.step([info], [self._obs], np.array([action]), probabilities)
        self._obs = kept(obs)
        return obs, reward, terminated, truncated, info

    def forget_history(self) -> None:
        """Empties the history, also one that is carried over."""
        self._recorder.begin_anew()

    def update_feedback(self, id: int, value: float) -> bool:
        """Feedback that came late: the action that would have been right for an individual.

        :param id: as ``info["individual"]["id"]`` said. It knows its reset: one from before a reset is refused, also
            where ids have begun at 0 again after a seeded reset. A plain number is one since the last seeded reset
        :param value: an action
        :return: whether the individual was still in the history; if not, nothing has changed
        :raises ValueError: if ``value`` is not in the action space, or ``id`` no id
        """
        return self._recorder.update_feedback(0, id, value)


@checked
class VecFairMDP(VecLayer):
    """:class:`FairMDP` for a VecEnv: ``stack(infos, "fairness")`` is a dict name -> (n,)."""

    published = ("fairness_spec", "fairness_names", "reset_on_episode", "compared_groups")
    methods = ("update_feedback", "forget_history")

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
        self._seeded = False
        self._recorder = FairnessRecorder(spec, venv.action_space, venv.num_envs, probabilities, reset_on_episode)

    @property
    def fairness_names(self) -> tuple[str, ...]:
        """Names of the notions in ``info["fairness"]``."""
        return self._recorder.names

    @property
    def compared_groups(self) -> tuple[Hashable, ...] | None:
        """The labels in ``info["individual"]["group"]`` that are compared; None: all."""
        return self.fairness_spec.compared_groups

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seeded = True
        return self.venv.seed(seed)

    def reset(self) -> VecEnvObs:
        self._recorder.restart(np.arange(self.num_envs), seeded=self._seeded)
        self._seeded = False
        self._obs = self.venv.reset()
        return self._obs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._probabilities = getattr(actions, "probabilities", None)
        self._actions = np.asarray(actions)
        self.venv.step_async(self._actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._recorder.step(infos, Observations(self._obs, self.num_envs), self._actions, self._probabilities)
        which = np.flatnonzero(dones)
        if len(which):
            self._recorder.restart(which)
        self._obs = obs
        return obs, rewards, dones, infos

    def forget_history(self, copy: int | None = None) -> None:
        """Empties the history of a copy, None: of all, also those that are carried over."""
        self._recorder.begin_anew(copy)

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Feedback that came late for individual ``id`` of a copy; see :meth:`FairMDP.update_feedback`.

        ``venv.env_method("update_feedback", id, value, indices=copy)`` does the same, on every kind of VecEnv.
        """
        if not 0 <= integer("copy", copy, low=0) < self.num_envs:
            raise ValueError(f"copy must be below the number of copies, {self.num_envs}, got {copy}")
        return self._recorder.update_feedback(copy, id, value)
