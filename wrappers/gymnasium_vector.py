"""Gymnasium's vector API on top of an SB3 VecEnv."""

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.infos import record_of, stack
from sb3_fair.wrappers.layer import seed_copies

SB3S = ("TimeLimit.truncated", "terminal_observation")
"""Entries of infos that only SB3's VecEnvs have."""


@checked
class GymnasiumVector(VectorEnv):
    """A VecEnv with light infos as a Gymnasium vector environment that restarts a finished copy in the same step.

    Infos are arrays with Gymnasium's masks (``infos["individual"]["group"]`` and ``infos["individual"]["_group"]``);
    what is missing is NaN, and named tuples stand copy by copy in an array of objects. The last step of a finished copy
    is in ``final_obs`` and ``final_info``. The ``options`` of a reset hold for all copies.

    :param venv: a stack of VecEnv wrappers on a ``WorldVecEnv``, whose infos are light, or on copies of any env
    """

    metadata = {  # noqa: RUF012 (Gymnasium's way)
        "render_modes": ["rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, venv: VecEnv) -> None:
        self.venv = venv
        self.num_envs = venv.num_envs
        self.render_mode = venv.render_mode
        self.single_observation_space = venv.observation_space
        self.single_action_space = venv.action_space
        self.observation_space = batch_space(venv.observation_space, venv.num_envs)
        self.action_space = batch_space(venv.action_space, venv.num_envs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "venv":
            raise AttributeError(name)
        return self.get_attr(name)[0]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if isinstance(seed, int | np.integer):
            self.venv.seed(operator.index(seed))
        elif seed is not None:
            if len(seed) != self.num_envs:
                raise ValueError(f"seed must be one number, or one per copy ({self.num_envs}), got {seed!r}")
            seed_copies(self.venv, seed)
        if options:
            if "reset_mask" in options:
                raise ValueError("options must not have a 'reset_mask': copies restart by themselves, in the same step")
            self.venv.set_options(options)
        return self.venv.reset(), self._restarted(0, np.ones(self.num_envs, dtype=bool))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, dones, light = self.venv.step(actions)
        told = self._masker(light)
        truncated = stack(light, "TimeLimit.truncated").astype(bool)
        infos = told(~dones)
        if dones.any():
            final = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(dones):
                final[index] = light[index]["terminal_observation"]
            infos |= self._restarted(int(dones.argmax()), dones)
            infos |= {"final_obs": final, "_final_obs": dones.copy()}
            infos |= {"final_info": told(dones), "_final_info": dones.copy()}
        return obs, rewards.astype(np.float64), dones & ~truncated, truncated, infos

    def _restarted(self, copy: int, which: NDArray[np.bool_]) -> dict[str, Any]:
        """What the copies ``which``, of light infos all, published when ``copy`` restarted, the last time."""
        infos = self.venv.unwrapped.reset_infos
        light = record_of(infos[copy : copy + 1])  # others may have begun earlier
        return self._masker(infos)(which) if light is None else _masked(light, np.ones_like(which))

    def _masker(self, infos: Sequence[dict[str, Any]]) -> Callable[[NDArray[np.bool_]], dict[str, Any]]:
        record = record_of(infos)
        if record is not None and record.own.issubset(SB3S):
            shared = {key: value for key, value in record.items() if key not in SB3S}
            return lambda mask: _masked(shared, mask)

        def masked(mask: NDArray[np.bool_]) -> dict[str, Any]:
            told: dict[str, Any] = {}
            which = np.flatnonzero(mask).tolist()
            for index, info in zip(which, _known([infos[index] for index in which]), strict=True):
                told = self._add_info(told, info, index)
            return told

        return masked

    def env_method(self, name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """What the copies, or those of ``indices``, answer when their method ``name`` is called; as a VecEnv's does."""
        return self._knowing(name).env_method(name, *args, indices=indices, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """What the copies have under ``name``, as in Gymnasium's own vector environments."""
        return tuple(self._knowing(name).get_attr(name))

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of all copies: to the value of each in a list or tuple, or to one value for all."""
        if not isinstance(values, list | tuple):
            self.venv.set_attr(name, values)
            return
        if len(values) != self.num_envs:
            raise ValueError(f"values must be one per copy ({self.num_envs}), got {len(values)}")
        for copy, value in enumerate(values):
            self.venv.set_attr(name, value, indices=copy)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The same for all copies, as in Gymnasium's own vector environments."""
        return tuple(self._knowing(name).env_method(name, *args, **kwargs))

    def _knowing(self, name: str) -> VecEnv:
        """The VecEnv, if its copies have ``name``: processes end when they are asked for what they do not have."""
        if not self.venv.has_attr(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.venv

    def render(self) -> tuple[Any, ...] | None:
        return None if self.render_mode is None else tuple(self.venv.get_images())

    def close_extras(self, **kwargs: Any) -> None:
        self.venv.close()


def _known(infos: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The infos of some copies as Gymnasium puts them together: where one has None, the numbers of all are floats and
    None is NaN; of anything else, None is left out. Arrays of different shapes become lists."""
    told: list[dict[str, Any]] = [{} for _ in infos]
    for key in dict.fromkeys(chain(*infos)):
        values = {index: info[key] for index, info in enumerate(infos) if key in info}
        there = {index: value for index, value in values.items() if value is not None}
        if any(isinstance(value, Mapping) for value in there.values()):
            values = dict(zip(there, _known(list(there.values())), strict=True))
        elif len({np.shape(value) for value in there.values() if isinstance(value, np.ndarray)}) > 1:
            values = {index: np.atleast_1d(value).tolist() for index, value in there.items()}
        elif len(there) < len(values):
            numbers = all(isinstance(value, Number | np.number) for value in there.values())
            values = {index: float(there.get(index, np.nan)) for index in values} if numbers else there
        if key not in SB3S:
            for index, value in values.items():
                told[index][key] = value
    return told


def _masked(record: Mapping[str, Any], mask: NDArray[np.bool_]) -> dict[str, Any]:
    infos: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, tuple):  # arrays of the parts of a FairEvent, of which each copy has one
            parts = (column.tolist() for column in value)
            value = np.fromiter(map(type(value), *parts), dtype=object, count=len(mask))
            value[~mask] = None
        infos[key] = _masked(value, mask) if isinstance(value, Mapping) else value.copy()  # a World may keep its own
        infos[f"_{key}"] = mask.copy()
    return infos
