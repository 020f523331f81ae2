"""Disparity, VecDisparity: short- and long-term disparity for any environment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, FullHistory, Measures, SlidingWindow
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.measures import keys_of
from sb3_fair.fairness.disparity.parity import DemographicParity, rate_gap
from sb3_fair.fairness.spec import individual_in, is_labelled
from sb3_fair.fairness.tracking.counts import GroupCounts
from sb3_fair.fairness.tracking.partition import Columns, Partition, ProductPartition
from sb3_fair.fairness.tracking.requests import Attribute, attribute_name
from sb3_fair.wrappers.coming import MASSAGE, coming, first, told
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.infos import Info, Record, cut, missing_labels, people_in, publish, publish_figures, stacked
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.starts import check_discrete

UNKNOWN = (
    "the group of the coming individual must be known before the decision, from the observation (a callable "
    f"FairnessSpec.group) or from info[{MASSAGE!r}], under the key that FairnessSpec.group names, else 'group'"
)


def measured(venv: Any, measures: Measures | None = None) -> Any:
    """``venv``, so that its infos say what ``measures`` are about.

    :param venv: an environment, or a VecEnv, that publishes measures of its own, or any fairness MDP with Discrete
        actions and one group label per individual
    :param measures: None: those of the environment, else :class:`DemographicParity` of the favourable actions and
        groups of its fairness spec. A :class:`DemographicParity` takes the place of other measures. Any other ones
        are taken as published by the environment.
    :return: ``venv`` itself, or with a :class:`VecDisparity` (or :class:`Disparity`) around it
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
    face = VecDisparity if isinstance(venv, VecEnv) else Disparity
    if measures is None:
        return face(venv) if published is None else venv
    if not isinstance(measures, Measures):
        raise TypeError(f"measures must have all that sb3_fair.fairness.Measures has, got {measures!r}")
    if published is not None and measures == published:
        return venv
    if isinstance(measures, DemographicParity):
        return face(venv, measures)
    if published is not None and keys_of(measures) != keys_of(published):
        raise ValueError(
            f"measures must be those that the environment publishes, {published!r}, or a DemographicParity, "
            f"got {measures!r}"
        )
    return venv


@checked
class Disparities(Core):
    """The disparities of decisions, and the counts that tell those of the coming one."""

    published: ClassVar[tuple[str, ...]] = ("fairness_spec", "carried_disparities")

    def __init__(self, env: Wrapped, measures: DemographicParity | None = None) -> None:
        super().__init__(env, measures=measures)
        spec: FairnessSpec | None = attribute(env, "fairness_spec")
        self._asks = spec is not None and spec.calls_for_group and not isinstance(spec.group, str)
        if spec is None or (self._asks and attribute(env, "fairness_names") is None):
            raise ValueError(
                "env must be a fairness MDP to be given measures of disparity: wrap it in FairMDP or VecFairMDP"
            )
        if len(spec.attributes) > 1:
            raise ValueError(
                "group must be one attribute for measures of disparity (F-PPO needs them), got "
                f"{list(spec.attributes)}; give one of these, or a tuple of them to compare combinations"
            )
        attribute_ = spec.attributes[0] if spec.attributes else ""
        self._parts = (attribute_,) if isinstance(attribute_, str) else attribute_
        space = env.action_space
        check_discrete(space, "DemographicParity")
        self.measures = _parity_of(spec, attribute_, space) if measures is None else measures
        if not all(map(space.contains, self.measures.favourable)):
            raise ValueError(f"favourable must be made of the actions of {space}, got {self.measures.favourable}")
        self.fairness_spec = replace(spec, measures=self.measures)
        self._labels_of = replace(spec, features=None, feedback=None)
        self._forgets = bool(attribute(env, "reset_on_episode", True))
        self.carried_disparities: tuple[str, ...] = () if self._forgets else keys_of(self.measures)
        groups, n, window = self.measures.groups, self._n_copies, self.measures.window
        self._partition = Partition(groups) if len(self._parts) == 1 else ProductPartition(len(self._parts), groups)
        self._recent = GroupCounts(n, SlidingWindow(window), self._partition)
        self._whole = GroupCounts(n, FullHistory(late=1), self._partition)
        self._decisions = np.zeros(n, dtype=np.int64)
        self._present = np.ones(n, dtype=np.bool_)  # in whose coming step somebody is decided on
        self._short_term = self._long_term = np.zeros(n)
        self._massage: Record = {}

    def _record(self, step: Step) -> None:
        self._require_nobody(step.infos)
        actions = _executed(step.infos, step.actions)
        would_be = self.measures.would_be(self._massage, actions[:, None])[:, 0]
        short_term = np.where(self._present, would_be, self._short_term)
        which, window = np.flatnonzero(self._present), self.measures.window
        cells = self.measures.favours(actions).view(np.uint8)[which]
        columns = self._massage["column"][which] + 1
        self._recent.add(which, which * window + self._decisions[which] % window, cells, columns)
        self._whole.add(which, which, cells, columns)
        self._decisions[which] += 1
        long_term = rate_gap(*self._counted(self._whole)[::-1])
        figures = {"d_s": short_term, "d_s_prev": self._short_term, "d_l": self._long_term, "d_l_next": long_term}
        publish_figures(step.infos, figures)
        self._short_term, self._long_term = short_term, long_term

    def _require_nobody(self, infos: Sequence[dict[str, Any]]) -> None:
        """:raises ValueError: if somebody was decided on in a copy in which nobody was announced"""
        for copy in np.flatnonzero(~self._present).tolist():
            person = individual_in(infos[copy])
            if is_labelled(person):
                raise ValueError(f"{UNKNOWN}: it was None, and then {person['group']!r}")

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        if self._forgets:
            self._empty(which)

    def _empty(self, which: NDArray[np.intp]) -> None:
        """Empties the counts of the copies ``which``; figures in fresh arrays, since the old ones are published."""
        self._recent.reset(which, self.measures.window)
        self._whole.reset(which, 1)
        goes_on = ~np.isin(np.arange(self._n_copies), which)
        self._short_term = np.where(goes_on, self._short_term, 0.0)
        self._long_term = np.where(goes_on, self._long_term, 0.0)

    def _counted(self, counts: GroupCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Decisions (n, groups), and how many of them were favourable."""
        groups = self._partition.size - 1
        cells = counts.compared[:, :groups].astype(np.int64)
        if cells.shape[1] < groups:  # nobody of the latest was decided on yet
            cells = np.pad(cells, ((0, 0), (0, groups - cells.shape[1]), (0, 0)))
        return cells.sum(axis=-1), cells[..., 1::2].sum(axis=-1)

    def _coming(self) -> Sequence[Any]:
        """The coming observations, copy by copy, as the fairness MDP inside gives them out."""
        raise NotImplementedError

    def _announce(self, known: Record | None) -> Record:
        columns = self._columns(known or {})
        decided, favoured = self._counted(self._recent)
        self._massage = {**(known or {}), "decided": decided, "favoured": favoured, "column": columns - 1}
        return self._massage

    def _columns(self, known: Record) -> Columns:
        try:
            labels = (
                stacked([self._label(one, cut(known, copy)) for copy, one in enumerate(self._coming())])
                if self._asks
                else self._label(None, known)
            )
            labels = [labels[part] for part in self._parts] if isinstance(labels, Mapping) else [labels]
            if any(np.shape(label) != (self._n_copies,) for label in labels):
                raise ValueError(f"group must be one label per copy and step, got {labels!r}")
            self._present = ~np.all([missing_labels(each) for each in labels], axis=0)
            labels = [label[self._present] for label in labels]
            columns = np.zeros(self._n_copies, dtype=np.intp)
            columns[self._present] = self._partition.columns(labels[0] if len(labels) == 1 else labels)
            return columns
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{UNKNOWN}: {error}") from error

    def _label(self, obs: Any, known: Mapping[str, Any]) -> Any:
        return self._labels_of.individual(obs, None, {**known, "individual": known}).group

    def _forget(self, which: NDArray[np.intp]) -> None:
        self._empty(which)
        decided, favoured = self._counted(self._recent)
        self._massage = {**self._massage, "decided": decided, "favoured": favoured}


class Disparity(Disparities, Face):
    """Publishes what a :class:`DemographicParity` is about, for one individual per step: :class:`VecDisparity` for one
    environment.

    The info of a reset has ``info["massage"]`` too, and that of an episode's last step what the environment tells
    there, since no decision comes. F-PPO's filter in a VecEnv of several copies needs a spec with ``groups``, so that
    all copies count the same groups.

    :param measures: None: with the favourable actions and groups of the environment's fairness spec
    :raises ValueError: as :class:`VecDisparity`
    """

    def _coming(self) -> Sequence[Any]:
        return [self.env.get_wrapper_attr("coming_observation")()]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = super().reset(seed=seed, options=options)
        publish([info], MASSAGE, self._announce(told([info])))
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        if not (terminated or truncated):
            publish([info], MASSAGE, self._announce(told([info])))
        return obs, reward, terminated, truncated, info


class VecDisparity(Disparities, VecFace):
    """Publishes what a :class:`DemographicParity` is about, for one individual per copy and step.

    ``info["fairness"]`` gets ``d_s``, ``d_s_prev`` (0 at the first decision counted), ``d_l`` and ``d_l_next``, also
    where the environment has figures of these names. Decisions are counted over an episode, or, where the environment
    has ``reset_on_episode=False``, over all episodes of a copy until :meth:`forget_history`.

    ``info["massage"]`` gets the counts and the coming individual's group, besides what the environment tells there;
    that of a step is about the coming decision, after an auto-reset the first one of the new episode, and
    ``venv.unwrapped.reset_infos`` have it too. Groups are those of the fairness spec. Before a decision they are asked
    of its callable, which gets the fairness MDP's coming observation (not what wrappers outside make of it) and an info
    with nothing but what is known then, else of ``info["massage"]["group"]``, or of the entry there that bears the
    attribute's name.

    :param measures: None: with the favourable actions and groups of the environment's fairness spec
    :raises ValueError: if the environment is no fairness MDP, its actions are not Discrete, or its spec has several
        attributes; at the first reset, if the coming individual's group is not known
    """

    def _coming(self) -> Sequence[Any]:
        return self.venv.env_method("coming_observation")

    def reset(self) -> VecEnvObs:
        obs = super().reset()
        self._tell(first(self.venv), np.arange(self.num_envs))
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = super().step_wait()
        self._tell(coming(self.venv, infos, dones), np.flatnonzero(dones))
        publish(infos, MASSAGE, self._massage)
        return obs, rewards, dones, infos

    def _tell(self, known: Record | None, begun: NDArray[np.intp]) -> None:
        """Says what is known before the coming decision, also in the reset infos of the copies that have begun."""
        massage = self._announce(known)
        reset_infos: Any = getattr(self.venv.unwrapped, "reset_infos", ())
        for copy in begun.tolist() if reset_infos else ():
            info = reset_infos[copy]
            if isinstance(info, Info) and info.index == copy:
                publish([info], MASSAGE, massage)
            else:
                info[MASSAGE] = cut(massage, copy)


def _executed(infos: Sequence[dict[str, Any]], actions: NDArray[Any]) -> NDArray[Any]:
    """The actions (n,) that were carried out, where infos tell that of one individual per copy, else those chosen."""
    people = people_in(infos) or {}
    found = np.asarray(people.get("action", actions))
    if found.shape != actions.shape:
        return actions
    return np.where(people.get("present", True) & (found == found), found, actions)  # NaN where it is not told


def _parity_of(spec: FairnessSpec, attribute_: Attribute, actions: Any) -> DemographicParity:
    favourable = spec.favourable
    if callable(favourable):
        favourable = np.flatnonzero(spec.decided(np.arange(actions.n))).tolist()
    return DemographicParity(favourable=favourable, groups=spec.compared(attribute_name(attribute_)))
