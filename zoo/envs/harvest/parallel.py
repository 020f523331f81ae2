"""PettingZoo's parallel API for the Allelopathic Harvest."""

import operator
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray

from sb3_fair.common.extras import extra
from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.infos import cut
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.envs.world import ActionCheck, Array, RenderMode

try:
    from pettingzoo import ParallelEnv
except ImportError:  # which is said where an environment is made
    ParallelEnv = object

COLOURS = {1: "red", 2: "blue"}


class HarvestParallelEnv(ParallelEnv):
    """One Allelopathic Harvest as a PettingZoo ``ParallelEnv``; needs the package ``pettingzoo``.

    Agents are ``red_0`` ... ``blue_39``. Infos have ``individual`` (``group``, ``lf``, ``agent``; after a step
    ``action``) and ``action_mask`` (8,), 1 for what is valid in the coming turn; with ``detail`` after a step also
    ``detail`` (``executed_action``, ``obstructed``).

    :param config: the rules; None: the default ones; or fields of
        :class:`~sb3_fair.zoo.envs.harvest.settings.HarvestConfig` in a dict
    :param render_mode: None or ``"rgb_array"``
    :param detail: whether infos have ``detail``
    :raises ImportError: if ``pettingzoo`` is not installed

    Example:
        >>> env = parallel_env({"horizon": 100})
        >>> observations, infos = env.reset(seed=0)
        >>> list(observations)[19:21]
        ['red_19', 'blue_20']
        >>> rewards = env.step({agent: 0 for agent in env.agents})[1]
        >>> sum(rewards.values())
        0.0
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "allelopathic_harvest_v0",
        "render_modes": ["rgb_array"],
        "render_fps": 4,
        "is_parallelizable": True,
    }

    @checked
    def __init__(
        self,
        config: HarvestConfig | Mapping[str, Any] | None = None,
        render_mode: RenderMode = None,
        detail: bool = False,
    ) -> None:
        with extra("pettingzoo", "parallel_env"):
            import pettingzoo  # noqa: F401
        self.world = world = HarvestWorld(1, config, detail=detail)
        self.render_mode = render_mode
        self.possible_agents = self._names()
        self.agents: list[str] = []
        # One object each, so that each is seeded on its own.
        self.observation_spaces = {agent: deepcopy(world.observation_space) for agent in self.possible_agents}
        self.action_spaces = {agent: deepcopy(world.action_space) for agent in self.possible_agents}
        self._check = ActionCheck(world)
        self._seeded = False

    def _names(self) -> list[str]:
        return [f"{COLOURS[lf]}_{agent}" for agent, lf in enumerate(self.world.lf[0].tolist())]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """A new episode.

        :param seed: from which all later chances follow; None: they go on
        :param options: ``{"layout": ...}`` begins with that state, see
            :meth:`~sb3_fair.zoo.envs.harvest.world.HarvestWorld.install`
        :raises ValueError: if its agents are not those of this environment
        """
        rngs = None if self._seeded and seed is None else [np_random(None if seed is None else operator.index(seed))[0]]
        self._seeded = True
        self.agents = self.possible_agents[:]
        obs = self.world.reset(np.arange(1), rngs)
        if options and "layout" in options:
            obs = self.world.install(options["layout"])
            if self._names() != self.possible_agents:
                raise ValueError(f"layout must have the agents {self.possible_agents}, got {self._names()}")
        individual = {"group": self.world.group, "lf": self.world.lf, "agent": self.world.agent_id[None]}
        return self._by_agent(obs[0]), self._infos({"individual": individual})

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:  # fmt: skip
        """One action per agent.

        :raises ValueError: if an agent has none, or one outside its space
        """
        if not self.agents and not actions:  # the episode is over
            return {}, {}, {}, {}, {}
        if actions.keys() != set(self.agents):
            odd = sorted(actions.keys() ^ set(self.agents))
            raise ValueError(f"actions must be one for each of {self.agents}, got missing or unknown {odd}")
        joint = self._check([[actions[agent] for agent in self.possible_agents]])
        obs, rewards, terminated, truncated, record = self.world.step(joint)
        results = (
            self._by_agent(obs[0]),
            self._by_agent(rewards[0].tolist()),
            dict.fromkeys(self.agents, bool(terminated[0])),
            dict.fromkeys(self.agents, bool(truncated[0])),
            self._infos({key: record[key] for key in ("individual", "detail") if key in record}),
        )
        if terminated[0] or truncated[0]:
            self.agents = []
        return results

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def _infos(self, record: dict[str, Any]) -> dict[str, dict[str, Any]]:
        record["action_mask"] = self.world.action_masks().astype(np.int8)
        agents = cut(record, 0)
        return {agent: cut(agents, index) for index, agent in enumerate(self.possible_agents)}

    def render(self) -> NDArray[np.uint8] | None:
        return None if self.render_mode is None else self.world.render(0)

    def close(self) -> None:
        pass


parallel_env = HarvestParallelEnv
"""PettingZoo's name for it."""
