"""GroupLabel: adds the group of the next individual to observations."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.added import Added
from sb3_fair.wrappers.faces import LAST, Core, Face, VecFace, Wrapped
from sb3_fair.wrappers.labels import slots
from sb3_fair.wrappers.observations import each

GROUP = "group"
Label: TypeAlias = int | str | Callable[[Any, dict[str, Any]], int]
Labels: TypeAlias = Callable[[Any, list[dict[str, Any]]], ArrayLike]


class Labelling(Core):
    """Observations show the group of whom the next action is for."""

    def __init__(self, env: Wrapped, group: Any, n_groups: int, flatten: bool) -> None:
        super().__init__(env, group=group, n_groups=n_groups, flatten=flatten)
        self.group = group
        self._n_groups = n_groups
        space, label = env.observation_space, spaces.Discrete(n_groups)
        self._added = Added(space, GROUP, label, flatten, "no further label is needed")
        self.observation_space = self._added.space

    def _with(self, observation: Any, groups: ArrayLike) -> Any:
        """Observations with their groups: one and a number, or those of n copies and (n,)."""
        labels = np.asarray(groups)
        if labels.dtype.kind not in "iub" or (labels < 0).any() or (labels >= self._n_groups).any():
            raise ValueError(f"group must be whole numbers from 0 to {self._n_groups - 1}, got {groups!r}")
        return self._added.to(observation, labels.astype(np.int64)[()])


@checked
class GroupLabelObs(Labelling, Face):
    """Adds to the observation the group of whom the next action is for, so that each group may have its own networks.

    The observation becomes a Dict: ``"state"``, the environment's own observation (a Dict keeps its keys), and
    ``"group"``, a whole number. Batched twin: :class:`VecGroupLabelObs`.

    :param group: the group of all individuals; the name of an attribute of ``env`` that holds the present one; or
        f(obs, info) -> group, of the observation it is added to
    :param n_groups: groups are 0, ..., n_groups - 1
    :param flatten: whether the observation is one vector with the group last, instead of a Dict
    :raises ValueError: if the observations have a label already or cannot be flattened, or a label is no group

    Example:
        >>> import gymnasium as gym
        >>> env = GroupLabelObs(gym.make("CartPole-v1"), group=lambda obs, info: int(obs[0] > 0), flatten=True)
        >>> obs, _ = env.reset(seed=0)
        >>> obs
        array([ 0.01369617, -0.02302133, -0.04590265, -0.04834723,  1.        ],
              dtype=float32)
    """

    def __init__(self, env: gym.Env, group: Label, *, n_groups: int = 2, flatten: bool = False) -> None:
        if isinstance(group, int) and not 0 <= group < n_groups:
            raise ValueError(f"group must be a whole number from 0 to {n_groups - 1}, got {group!r}")
        super().__init__(env, group, n_groups, flatten)

    def _labelled(self, obs: Any, info: dict[str, Any]) -> Any:
        group: Any = self.group
        if callable(group):
            group = group(obs, info)
        elif isinstance(group, str):
            if not self.env.has_wrapper_attr(group):
                raise ValueError(f"group must be an attribute of env, a group or a callable, got {group!r}")
            group = self.env.get_wrapper_attr(group)
        return self._with(obs, group)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return self._labelled(obs, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._labelled(obs, info), reward, terminated, truncated, info


@checked
class VecGroupLabelObs(Labelling, VecFace):
    """:class:`GroupLabelObs` for a VecEnv.

    :param group: the groups (n_envs,) of all copies; f(obs, infos) -> (n_envs,), of the observations they are added to
        (infos are those of the reset where an episode begins); None: the array ``slot_group`` of ``venv``, which an
        episode keeps to its end
    :raises ValueError: if nothing tells the groups, or a group is no number from 0 to ``n_groups`` - 1
    """

    def __init__(
        self,
        venv: VecEnv,
        group: Sequence[int] | NDArray[np.integer[Any]] | Labels | None = None,
        *,
        n_groups: int = 2,
        flatten: bool = False,
    ) -> None:
        if group is None and slots(venv, "slot_group") is None:
            raise ValueError("group must be given for a VecEnv without the array 'slot_group', got None")
        if group is not None and not callable(group) and np.shape(group) != (venv.num_envs,):
            raise ValueError(f"group must be one group per copy ({venv.num_envs}), got {group!r}")
        super().__init__(venv, group if group is None or callable(group) else np.array(group), n_groups, flatten)

    def _groups(self, obs: Any, infos: Sequence[dict[str, Any]]) -> NDArray[Any]:
        if callable(self.group):
            return np.asarray(self.group(obs, infos))
        return self.group if self.group is not None else np.array(slots(self.venv, "slot_group"))

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        self._now = self._groups(obs, self.venv.unwrapped.reset_infos)
        return self._with(obs, self._now)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        ended = np.flatnonzero(dones).tolist()
        if ended:
            self._label_last(obs, infos, ended)
        resets = self.venv.unwrapped.reset_infos
        self._now = self._groups(obs, [resets[i] if dones[i] else info for i, info in enumerate(infos)])
        return self._with(obs, self._now), rewards, dones, infos

    def _label_last(self, obs: Any, infos: list[dict[str, Any]], ended: list[int]) -> None:
        groups = self._now
        if callable(self.group):

            def with_last(rows: NDArray[Any], *last: Any) -> NDArray[Any]:
                rows = rows.copy()
                rows[ended] = last
                return rows

            seen = each(with_last, obs, *(infos[index][LAST] for index in ended))
            groups = self._groups(seen, infos)
        for index in ended:
            infos[index][LAST] = self._with(infos[index][LAST], groups[index])
