"""VecDisparity: short- and long-term disparity for any environment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, Measures
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.measures import keys_of
from sb3_fair.fairness.parity import DemographicParity, rate_gap
from sb3_fair.fairness.partition import Columns, Partition, ProductPartition
from sb3_fair.fairness.requests import Attribute, attribute_name
from sb3_fair.wrappers.coming import MASSAGE, coming, first
from sb3_fair.wrappers.infos import Info, Record, cut, publish, stack, stack_people, stacked
from sb3_fair.wrappers.layer import Observations, VecLayer, attribute, forget_history
from sb3_fair.wrappers.starts import check_discrete


def measured(venv: VecEnv, measures: Measures | None = None) -> VecEnv:
    """``venv``, so that its infos say what ``measures`` are about.

    :param venv: an environment that publishes measures of its own, or any fairness MDP with Discrete actions and one
        group label per individual
    :param measures: None: those of the environment, else :class:`DemographicParity` of the favourable actions and
        groups of its fairness spec. A :class:`DemographicParity` takes the place of other measures. Any other ones
        are taken as published by the environment.
    :return: ``venv`` itself, or with a :class:`VecDisparity` around it
    :raises ValueError: if the environment has no measures and cannot be given any, or has others
    :raises TypeError: if ``measures`` are not :class:`Measures`

    Example:
        >>> import gymnasium as gym
        >>> from stable_baselines3.common.vec_env import DummyVecEnv
        >>> from sb3_fair.fairness import FairnessSpec
        >>> from sb3_fair.wrappers import VecFairMDP
        >>> spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0))
        >>> venv = measured(VecFairMDP(DummyVecEnv([lambda: gym.make("CartPole-v1")]), spec))
        >>> obs = venv.reset()
        >>> venv.step([1])[3][0]["fairness"]["d_s"]
        0.0
    """
    spec: FairnessSpec | None = attribute(venv, "fairness_spec")
    published = None if spec is None else spec.measures
    if measures is None:
        return VecDisparity(venv) if published is None else venv
    if not isinstance(measures, Measures):
        raise TypeError(f"measures must have all that sb3_fair.fairness.Measures has, got {measures!r}")
    if published is not None and measures == published:
        return venv
    if isinstance(measures, DemographicParity):
        return VecDisparity(venv, measures)
    if published is not None and keys_of(measures) != keys_of(published):
        raise ValueError(
            f"measures must be those that the environment publishes, {published!r}, or a DemographicParity, "
            f"got {measures!r}"
        )
    return venv


@checked
class VecDisparity(VecLayer):
    """Publishes what a :class:`DemographicParity` is about, for one individual per copy and step.

    ``info["fairness"]`` gets ``d_s``, ``d_s_prev`` (0 at an episode's first step), ``d_l`` and ``d_l_next``, also
    where the environment has figures of these names. Decisions are counted over an episode, or, where the environment
    has ``reset_on_episode=False``, over all episodes of a copy until :meth:`forget_history`.

    ``info["massage"]`` gets the counts and the coming individual's group, besides what the environment tells there;
    that of a step is about the coming decision, after an auto-reset the first one of the new episode, and
    ``venv.unwrapped.reset_infos`` have it too. Groups are those of the fairness spec. Before a decision they are asked
    of its callable, which gets the coming observation (before a ``VecNormalize``) and an info with nothing but what is
    known then, else of ``info["massage"]["group"]``, or of the entry there that bears the attribute's name.

    :param measures: None: with the favourable actions and groups of the environment's fairness spec
    :raises ValueError: if the environment is no fairness MDP, its actions are not Discrete, or its spec has several
        attributes; at the first reset, if the coming individual's group is not known
    """

    published = ("fairness_spec",)
    methods = ("forget_history",)

    def __init__(self, venv: VecEnv, measures: DemographicParity | None = None) -> None:
        super().__init__(venv)
        spec = _checked_spec(attribute(venv, "fairness_spec"))
        attribute_ = spec.attributes[0] if spec.attributes else ""
        parts = (attribute_,) if isinstance(attribute_, str) else attribute_
        check_discrete(venv.action_space, "DemographicParity")
        self.measures = _parity_of(spec, attribute_, venv.action_space) if measures is None else measures
        if not all(map(venv.action_space.contains, self.measures.favourable)):
            raise ValueError(
                f"favourable must be made of the actions of {venv.action_space}, got {self.measures.favourable}"
            )
        self.fairness_spec = replace(spec, measures=self.measures)
        self._labels_of = replace(spec, features=None, feedback=None)
        self._forgets = bool(attribute(venv, "reset_on_episode", True))
        self._asks = spec.calls_for_group and not isinstance(spec.group, str)
        self._parts = parts
        groups = self.measures.groups
        self._partition = Partition(groups) if len(parts) == 1 else ProductPartition(len(parts), groups)
        n = self.num_envs
        self._window = np.zeros((self.measures.window, n), dtype=np.int64)  # rings of codes; 0: empty
        self._slot = 0
        self._recent = self._whole = np.zeros((n, 2, 0), dtype=np.int64)  # decided, favoured; by group
        self._short_term = self._long_term = np.zeros(n)
        self._massage: Record = {}

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        everybody = np.ones(self.num_envs, dtype=bool)
        if self._forgets:
            self._forget(everybody)
        self._announce(obs, first(self.venv), everybody)
        return obs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        figures = stack(infos, "fairness") if "fairness" in infos[0] else {}
        publish(infos, "fairness", {**figures, **self._decide(_executed(infos, self._actions))})
        known = coming(self.venv, infos, dones)
        if self._forgets and dones.any():
            self._forget(dones)
        self._announce(obs, known, dones)
        publish(infos, MASSAGE, self._massage)
        return obs, rewards, dones, infos

    def _decide(self, actions: NDArray[Any]) -> Record:
        """Counts one decision of each copy; the figures of the step."""
        codes = 2 * self._massage["column"] + 2 + self.measures.favours(actions)
        short_term = self.measures.would_be(self._massage, actions[:, None])[:, 0]
        decision = self._marks(codes)
        self._recent = self._recent + decision - self._marks(self._window[self._slot])
        self._whole = self._whole + decision
        self._window[self._slot] = codes
        self._slot = (self._slot + 1) % len(self._window)
        long_term = rate_gap(self._whole[:, 1], self._whole[:, 0])
        figures = {"d_s": short_term, "d_s_prev": self._short_term, "d_l": self._long_term, "d_l_next": long_term}
        self._short_term, self._long_term = short_term, long_term
        return figures

    def _marks(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What decisions add to the counts (n, 2, groups); a code is twice the column plus one if favourable."""
        own = (codes >> 1)[:, None] == np.arange(1, self._recent.shape[2] + 1)
        return np.stack((own, own & (codes & 1 > 0)[:, None]), axis=1).astype(np.int64)

    def _forget(self, ended: NDArray[np.bool_]) -> None:
        """Empties the counts of the copies ``ended`` (n,) bool; in fresh arrays, since the old ones are published."""
        self._window[:, ended] = 0
        self._recent = np.where(ended[:, None, None], 0, self._recent)
        self._whole = np.where(ended[:, None, None], 0, self._whole)
        self._short_term = np.where(ended, 0.0, self._short_term)
        self._long_term = np.where(ended, 0.0, self._long_term)

    def forget_history(self, copy: int | None = None) -> None:
        """Empties the history of a copy, None: of all, also those that are carried over."""
        self._forget(np.ones(self.num_envs, bool) if copy is None else np.arange(self.num_envs) == copy)
        self._massage = {**self._massage, **self._counts()}
        forget_history(self.venv, copy)

    def _counts(self) -> Record:
        return {"decided": self._recent[:, 0], "favoured": self._recent[:, 1]}

    def _announce(self, obs: VecEnvObs, known: Record | None, begun: NDArray[np.bool_]) -> None:
        """Says what is known before the coming decision, also in the reset infos of the copies that have begun."""
        columns = self._columns(obs, known or {})
        new = self._partition.size - 1 - self._recent.shape[2]
        if new:
            self._recent, self._whole = (np.pad(c, ((0, 0), (0, 0), (0, new))) for c in (self._recent, self._whole))
        self._massage = {**(known or {}), **self._counts(), "column": columns - 1}
        reset_infos: Any = getattr(self.venv.unwrapped, "reset_infos", ())
        for copy in np.flatnonzero(begun).tolist() if reset_infos else ():
            info = reset_infos[copy]
            if isinstance(info, Info) and info.index == copy:
                publish([info], MASSAGE, self._massage)
            else:
                info[MASSAGE] = cut(self._massage, copy)

    def _columns(self, obs: VecEnvObs, known: Record) -> Columns:
        """Columns (n,) of the coming individuals' groups."""
        try:
            labels = self._labels(obs, known)
            labels = [labels[part] for part in self._parts] if isinstance(labels, Mapping) else [labels]
            if any(np.shape(label) != (self.num_envs,) for label in labels):
                raise ValueError(f"group must be one label per copy and step, got {labels!r}")
            return self._partition.columns(labels[0] if len(labels) == 1 else labels)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "the group of the coming individual must be known before the decision, from the observation "
                f"(a callable FairnessSpec.group) or from info[{MASSAGE!r}]['group']: {error}"
            ) from error

    def _labels(self, obs: VecEnvObs, known: Record) -> Any:
        if not self._asks:
            return self._label(None, known)
        normaliser = unwrap_vec_normalize(self.venv)
        seen = Observations(obs if normaliser is None else normaliser.get_original_obs(), self.num_envs)
        return stacked([self._label(one, cut(known, copy)) for copy, one in enumerate(seen)])

    def _label(self, obs: Any, known: Mapping[str, Any]) -> Any:
        return self._labels_of.individual(obs, None, {**known, "individual": known}).group


def _executed(infos: Sequence[dict[str, Any]], actions: NDArray[Any]) -> NDArray[Any]:
    """The actions (n,) that were carried out, where infos tell that of one individual per copy, else those chosen."""
    told: NDArray[Any] = stack_people(infos).get("action", actions) if "individual" in infos[0] else actions
    return told if np.shape(told) == actions.shape else actions


def _checked_spec(spec: FairnessSpec | None) -> FairnessSpec:
    if spec is None:
        raise ValueError(
            "env must be a fairness MDP, which has a fairness_spec, to be given measures of disparity: wrap it in "
            "FairMDP or VecFairMDP"
        )
    if len(spec.attributes) > 1:
        raise ValueError(
            "group of the fairness spec must be one attribute (or one tuple, their product partition) for measures of "
            f"disparity, got {list(spec.attributes)}"
        )
    return spec


def _parity_of(spec: FairnessSpec, attribute_: Attribute, actions: Any) -> DemographicParity:
    """The measure of what the spec calls favourable, for the groups that it compares."""
    groups = spec.groups.get(attribute_name(attribute_)) if isinstance(spec.groups, Mapping) else spec.groups
    favourable = spec.favourable
    if callable(favourable):
        favourable = np.flatnonzero(spec.decided(np.arange(actions.n))).tolist()
    return DemographicParity(favourable=favourable, groups=groups)
