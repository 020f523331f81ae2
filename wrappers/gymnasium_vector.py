"""How does an SB3 VecEnv look to those who use Gymnasium's vector API?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.infos import record_of
from sb3_fair.wrappers.layer import seed_copies


@checked
class GymnasiumVector(VectorEnv):
    """A VecEnv with light infos as a Gymnasium vector environment that restarts a finished copy in the same step.

    Infos are arrays with Gymnasium's masks (``infos["individual"]["group"]`` and ``infos["individual"]["_group"]``);
    what is missing is NaN. The last step of a finished copy is in ``final_obs`` and ``final_info``. The ``options`` of
    a reset hold for all copies.

    :param venv: a stack of VecEnv wrappers on a ``WorldVecEnv``
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
        return self.venv.get_attr(name)[0]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if isinstance(seed, int | np.integer):
            self.venv.seed(int(seed))
        elif seed is not None:
            if len(seed) != self.num_envs:
                raise ValueError(f"seed must be one number, or one per copy ({self.num_envs}), got {seed!r}")
            seed_copies(self.venv, seed)
        if options:
            if "reset_mask" in options:
                raise ValueError("options must not have a 'reset_mask': copies restart by themselves, in the same step")
            self.venv.set_options(options)
        return self.venv.reset(), _masked(self._restarted(0), np.ones(self.num_envs, dtype=bool))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, dones, light = self.venv.step(actions)
        record = dict(record_of(light) or {})
        truncated = record.pop("TimeLimit.truncated")
        infos = _masked(record, ~dones)
        if dones.any():
            final = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(dones):
                final[index] = light[index]["terminal_observation"]
            infos |= _masked(self._restarted(int(dones.argmax())), np.ones_like(dones))
            infos |= {"final_obs": final, "_final_obs": dones.copy()}
            infos |= {"final_info": _masked(record, dones), "_final_info": dones.copy()}
        return obs, rewards.astype(np.float64), dones & ~truncated, truncated, infos

    def _restarted(self, copy: int) -> Mapping[str, Any]:
        """What all copies published when ``copy`` restarted, the last time."""
        return record_of(self.venv.unwrapped.reset_infos[copy : copy + 1]) or {}  # others may have begun earlier

    def env_method(self, name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """What the copies, or those of ``indices``, answer when their method ``name`` is called; as a VecEnv's does."""
        return self.venv.env_method(name, *args, indices=indices, **kwargs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The same for all copies, as in Gymnasium's own vector environments."""
        return tuple(self.venv.env_method(name, *args, **kwargs))

    def render(self) -> tuple[Any, ...] | None:
        return None if self.render_mode is None else tuple(self.venv.get_images())

    def close_extras(self, **kwargs: Any) -> None:
        self.venv.close()


def _masked(record: Mapping[str, Any], mask: NDArray[np.bool_]) -> dict[str, Any]:
    infos: dict[str, Any] = {}
    for key, value in record.items():
        infos[key] = _masked(value, mask) if isinstance(value, Mapping) else value
        infos[f"_{key}"] = mask.copy()
    return infos
