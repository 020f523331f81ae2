"""The Allelopathic Harvest for one learning agent among others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import check
from sb3_fair.fairness.validation import integer
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.harvest.layout import preferences
from sb3_fair.zoo.envs.harvest.others import Others, acting
from sb3_fair.zoo.envs.harvest.rules import N_ACTIONS
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Step, World

FEATURES = (
    "x", "y", "slow", "last reward", "preference", "red bushes", "blue bushes",
    "way to red", "way to blue", "way to others",
)  # fmt: skip
RANDOM, ANY = "random", "any"


class _Game(HarvestWorld):
    """Games in which one agent of each copy, the ego, has the attribute that was asked for.

    :param wanted: 0, 1 or ``"any"``
    """

    def __init__(self, n_worlds: int, wanted: int | str, **settings: Any) -> None:
        super().__init__(n_worlds, **settings)
        self.wanted = wanted
        self.ego = np.zeros(n_worlds, dtype=np.int64)
        self.luck = np.zeros(n_worlds)
        """Decides with whom the ego swaps its attribute, if it has another one."""

    def draw_sensitive(self, which: Array) -> NDArray[np.bool_]:
        sensitive = super().draw_sensitive(which)
        if self.wanted == ANY:
            return sensitive
        copies, ego = np.arange(len(which)), self.ego[which]
        fit = sensitive == bool(self.wanted)
        lf = preferences(self.config)
        same_colour = fit & (lf == lf[ego][:, None])
        partners = np.where(same_colour.any(axis=1, keepdims=True), same_colour, fit)
        numbers = partners.cumsum(axis=1)
        if not numbers[:, -1].all():
            raise ValueError(f"ego_group must be {ANY!r} or a group that somebody is in, got {self.wanted!r}")
        partner = (numbers > (self.luck[which] * numbers[:, -1])[:, None]).argmax(axis=1)
        partner = np.where(fit[copies, ego], ego, partner)
        sensitive[copies, partner] = sensitive[copies, ego]
        sensitive[copies, ego] = bool(self.wanted)
        return sensitive


class EgoHarvestWorld(World):
    """Games of the Allelopathic Harvest in which one agent, the ego, is moved from outside.

    Observations, actions and rewards are those of :class:`~sb3_fair.zoo.envs.harvest.world.HarvestWorld`, for the ego
    alone.
    Individuals are the egos; their features are the ten numbers they see. Nobody says what would have been right.
    ``info["individual"]`` has ``lf`` (1: prefers red, 2: blue), ``agent`` (which one is the ego) and ``action``, too.

    :param n_worlds: number of games
    :param ego: number of the agent, or ``"random"``: another one in every episode
    :param ego_group: 0 or 1: the ego is never or always slow; if it was drawn otherwise, it swaps with an agent of its
        colour, of another one if there is none. ``"any"``: as it was drawn
    :param others: what the other agents do: ``"random"``, ``"stay"``, a model of Stable-Baselines3, or a function
        (observations (N - 1, d), generator) -> actions (N - 1,), in the order of their numbers
    :param group: which attributes group notions compare: ``"group"``, ``"lf"`` or several of them
    :param detail: whether records have ``detail``: ``executed_action`` of the ego, -1 for a void turn, and
        ``all_rewards`` (N,)
    :param settings: further arguments of :class:`~sb3_fair.zoo.envs.harvest.world.HarvestWorld`
    """

    one_individual: ClassVar[bool] = True
    source = HarvestWorld.source
    words = HarvestWorld.words
    rules = HarvestWorld.rules

    def __init__(
        self,
        n_worlds: int,
        *,
        ego: int | str = 0,
        ego_group: int | str = ANY,
        others: Others = "random",
        group: Group = "group",
        detail: bool = False,
        **settings: Any,
    ) -> None:
        check("ego_group", ego_group, Literal["any", 0, 1])
        self.game = game = _Game(n_worlds, ego_group, detail=detail, **settings)
        self.config, self.detail = game.config, detail
        agents = self.config.n_agents
        if ego != RANDOM and integer("ego", ego, 0) >= agents:
            raise ValueError(f"ego must be {RANDOM!r} or a number below {agents}, got {ego!r}")
        self.ego = ego
        self.groups = Groups(group, {"group": game.fairness_spec.group_names, "lf": ("colourless", "red", "blue")})
        self.observation_space: spaces.Box = game.observation_space
        self.action_space = game.action_space
        low, high = self.observation_space.low[: len(FEATURES)], self.observation_space.high[: len(FEATURES)]
        self.fairness_spec = replace(
            game.fairness_spec,
            group=self.groups.source,
            group_names=self.groups.names,
            feature_names=FEATURES,
            nominal=(FEATURES.index("preference"),),
            sensitive=(FEATURES.index("slow"),),
            low=low,
            high=np.maximum(high, low + 1),  # on a field of a single column, all have the same x
        )
        self.max_steps, self.max_return, self.end = game.max_steps, game.max_return, game.end
        self._others = acting(others, self.observation_space, N_ACTIONS)
        self._others_streams: list[np.random.Generator | None] = [None] * n_worlds
        self._rows = np.arange(n_worlds)
        self._obs = np.zeros((n_worlds, agents, *self.observation_space.shape), dtype=np.float32)
        super().__init__(n_worlds, Tapes(n_worlds, max(agents - 1, 1)))

    def seed(self, rngs: Sequence[tuple[int, np.random.Generator]]) -> None:
        self.game.seed(rngs)  # first, so that it plays what a HarvestWorld with these generators plays
        super().seed(rngs)
        for index, rng in rngs:
            self._others_streams[index] = rng.spawn(1)[0]

    def restart(self, which: Array) -> Array:
        luck = np.array([self.reset_streams[index].random(2) for index in which.tolist()])
        ego = (luck[:, 0] * self.config.n_agents).astype(np.int64) if self.ego == RANDOM else self.ego
        self.game.ego = self.game.ego.copy()
        self.game.ego[which] = ego
        self.game.luck[which] = luck[:, 1]
        self._obs[which] = self.game.restart(which)
        return self._obs[which, self.game.ego[which]]

    def step(self, actions: Array) -> Step:
        self.tapes.advance()
        rows, ego = self._rows, self.game.ego
        seen = self._obs[rows, ego]
        joint = self._joint(actions)
        self._obs, rewards, terminated, truncated, record = self.game.step(joint)
        told = {key: record["individual"][key][rows, ego].astype(np.int64) for key in ("group", "lf", "action")}
        individual = {
            "group": self.groups.record(self.groups.codes(group=told["group"], lf=told["lf"])),
            "features": seen[:, : len(FEATURES)].astype(np.float64),
            "action": told["action"],
            "lf": told["lf"],
            "agent": ego,
        }
        own: Record = {"individual": individual}
        if self.detail:
            executed = record["detail"]["executed_action"][rows, ego].astype(np.int64)
            own["detail"] = {"executed_action": executed, "all_rewards": rewards}
        return self._obs[rows, ego], rewards[rows, ego].astype(np.float64), terminated, truncated, own

    def _joint(self, actions: Array) -> NDArray[np.int64]:
        agents = self.config.n_agents
        joint = np.empty((self.n_worlds, agents), dtype=np.int64)
        joint[self._rows, self.game.ego] = actions
        if agents > 1:
            others = np.arange(agents - 1) + (np.arange(agents - 1) >= self.game.ego[:, None])
            rows = self._rows[:, None]
            joint[rows, others] = self._others(self._obs[rows, others], self.tapes.now.values, self._others_streams)
        return joint

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions of the ego are valid now (n, 8)."""
        return self.game.action_masks()[self._rows, self.game.ego]

    def install(self, layout: Mapping[str, Any], which: Array | None = None) -> Array:
        if None in self.reset_streams:
            self.reset(self._rows)
        which = self._rows if which is None else which
        self._obs[which] = self.game.install(layout, which)
        return self._obs[which, self.game.ego[which]]

    def render(self, index: int) -> NDArray[np.uint8]:
        return self.game.render(index)
