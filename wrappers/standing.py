"""VecStanding: adds the lead of the agent's group to observations."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.disparity.blocks import Blocks
from sb3_fair.fairness.disparity.populations import Population
from sb3_fair.wrappers.added import Added
from sb3_fair.wrappers.faces import LAST
from sb3_fair.wrappers.labels import Found, Numbers, checked, layer_with, of_arrays, of_infos, same
from sb3_fair.wrappers.layer import VecLayer

STANDING = "standing"
MISSING = (
    "groups must be told by the array slot_group of the VecEnv, or by info['individual']['group'] of every slot in "
    "every step; got neither"
)


def lead(blocks: Blocks, figures: NDArray[np.float64]) -> NDArray[np.float32]:
    """How far the group of each slot is ahead (S,), between -1 and 1, in figures (S,); 0 for who is not compared."""
    elsewhere = 1.0 - np.eye(blocks.sizes.shape[1])
    sums, others = np.einsum("bn,bng->bg", blocks.gather(figures), blocks.belongs), blocks.sizes @ elsewhere
    mean, mean_others = sums / np.maximum(blocks.sizes, 1), sums @ elsewhere / np.maximum(others, 1)
    size = np.abs(mean) + np.abs(mean_others)
    compared = (blocks.sizes > 0) & (others > 0) & (size > 0)
    leads = np.divide(mean - mean_others, size, out=np.zeros_like(mean), where=compared)
    return blocks.scatter((blocks.belongs @ leads[..., None])[..., 0]).astype(np.float32)


class VecStanding(VecLayer):
    """Adds to the observation of every slot how far its own group is ahead in the running episode.

    That is (mean_own - mean_others) / (abs(mean_own) + abs(mean_others)), 0 while both are 0, where the means are those
    of the rewards since the episode began, over the members of the slot's group in its world, and over all members of
    other groups there. With it, agents can learn to stop where a disparity is reached, instead of giving up or going on
    whatever has happened.

    A vector gets it as its last entry, a Dict under the key ``"standing"``. The observation of a reset has 0, the last
    one of an episode that of the whole episode. Slots whose episodes end apart begin anew one by one.

    Rewards are taken as they come: it has its place inside ``VecNormalize``.

    :param venv: a VecEnv with one slot per agent, which tells their groups by arrays ``slot_group`` and ``slot_world``
        (wrappers are looked through) or by ``info["individual"]["group"]`` (and ``"world"``) of every step; where no
        world is told, all slots are in one
    :raises ValueError: if observations are neither vectors nor a Dict without that key; in play, if groups are not
        told, or one changes inside an episode

    Example:
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> venv = make_vec_env("CartPole-v1", 3, seed=0)
        >>> venv.slot_group = np.array([0, 1, 1])
        >>> VecStanding(venv).reset()[:, -1]
        array([0., 0., 0.], dtype=float32)
    """

    def __init__(self, venv: VecEnv) -> None:
        self._added = _added(venv.observation_space)
        super().__init__(venv, observation_space=self._added.space)
        self._rewards = np.zeros(self.num_envs)
        self._found: Found | None = None
        self._numbers: Numbers = {}
        self._blocks: Blocks
        self._goes_on = np.zeros(self.num_envs, dtype=bool)

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        self._rewards[:] = 0
        self._goes_on[:] = False
        self._tell(self._arrays())
        return self._shown(obs, np.zeros(self.num_envs, dtype=np.float32))

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        coming = self._arrays()
        if coming is None:  # an array tells it beforehand
            found = of_infos(infos)
            if found is None:
                raise ValueError(MISSING)
            self._tell(checked(found, self.num_envs, self._numbers))
        self._rewards += rewards
        standing = lead(self._blocks, self._rewards)
        ended = np.flatnonzero(dones).tolist()
        for index in ended:
            infos[index][LAST] = self._shown(infos[index][LAST], standing[index])
        self._goes_on = ~np.asarray(dones, dtype=bool)
        self._tell(coming)
        if ended:
            self._rewards[ended] = 0
            standing = np.where(self._goes_on, lead(self._blocks, self._rewards), np.float32(0))
        return self._shown(obs, standing), rewards, dones, infos

    def _shown(self, obs: Any, standing: Any) -> Any:
        return self._added.to(obs, np.asarray(standing, dtype=np.float32)[..., None])

    def _arrays(self) -> Found | None:
        return of_arrays(layer_with(self.venv, "slot_group"), self._numbers)

    def _tell(self, found: Found | None) -> None:
        if found is None or (self._found is not None and same(found, self._found)):
            return
        if self._found is not None and (found["group"] != self._found["group"])[self._goes_on].any():
            raise ValueError(
                "the group of a slot must stay the same during an episode, got another one: individuals who come one "
                "after the other have no standing"
            )
        self._found, self._blocks = found, Population(found["group"], world=found["world"]).whole


def _added(space: spaces.Space) -> Added:
    if not isinstance(space, spaces.Dict) and (not isinstance(space, spaces.Box) or len(space.shape) != 1):
        raise ValueError(f"venv must have observations that are vectors or Dicts, got {space}")
    part = spaces.Box(-1.0, 1.0, (1,), np.float32)
    return Added(space, STANDING, part, not isinstance(space, spaces.Dict), "the standing is there")
