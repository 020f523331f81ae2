"""The Allelopathic Harvest: 40 agents, half of them slow.

The Allelopathic Harvest of La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization"
(arXiv 2502.03953). It is not Melting Pot's substrate of this name.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.common.extras import extra
from sb3_fair.fairness import FairnessSpec
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.harvest.baselines import BASELINES
from sb3_fair.zoo.envs.harvest.field import Field
from sb3_fair.zoo.envs.harvest.layout import bush_colours, preferences, read, sensitive_agents
from sb3_fair.zoo.envs.harvest.observation import Observer
from sb3_fair.zoo.envs.harvest.rules import BUSH, N_ACTIONS, OBSTRUCT, RIGHT, STAY, UP, rules, surrounding
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.turns import VOID, Chances, Turns, at_once, in_turn
from sb3_fair.zoo.envs.settings import configure
from sb3_fair.zoo.envs.tapes import Tapes, Uniforms
from sb3_fair.zoo.envs.world import Array, Step, World

_ALL = np.uint8((1 << N_ACTIONS) - 1)
_STANDING = np.uint8(_ALL - sum(1 << move for move in range(UP, RIGHT + 1)))
"""Sets of actions, a bit each: all, and all but moves."""

GROUP_NAMES = ("non-sensitive", "sensitive")


class HarvestWorld(World):
    """40 agents on a field of red and blue bushes; half of them prefer red berries, and half of them are slow.

    Rules, rewards and observations: see :doc:`/harvest`. Individuals are the agents: ``group`` (0 non-sensitive,
    1 sensitive), ``lf`` (the legitimate factor: 1 prefers red, 2 blue), ``world``, ``agent`` and ``action``, (B, N)
    each. When an episode ends, records have ``episode_return`` (B, N).

    Four streams per copy: of layouts, of who is slow, of turns and of growth. What one yields depends neither on the
    others nor on what happens.

    :param n_worlds: number of copies, B
    :param config: the rules, also as a dict; None: the default ones
    :param detail: whether records have ``detail``: ``executed_action`` (B, N) int8, 0 for an invalid action and -1 for
        a void turn; and ``obstructed`` (B, N) bool, who loses the next turn
    :param settings: fields of :class:`~sb3_fair.zoo.envs.harvest.settings.HarvestConfig` that differ from ``config``
    :raises ImportError: if ``backend="numba"`` and numba is not installed
    """

    source = "La Malfa et al., arXiv 2502.03953"
    words: ClassVar[Words] = {"R": {"title": "berries eaten", "sentence": "Reward of an agent in one episode."}}
    picture = "sb3_fair.zoo.envs.harvest.picture:picture"
    rules = BASELINES
    n_agents: int
    observation_space: spaces.Box
    _STATE: ClassVar[tuple[str, ...]] = (
        "lf",
        "group",
        "time",
        "last_reward",
        "returns",
        "field",
        "tapes",
        "growth_tapes",
        "reset_streams",
        "sensitive_streams",
    )

    @checked
    def __init__(
        self,
        n_worlds: int,
        config: HarvestConfig | Mapping[str, Any] | None = None,
        *,
        detail: bool = False,
        **settings: Any,
    ) -> None:
        if isinstance(config, Mapping):
            settings = {**config, **settings}
            config = None
        own = configure(HarvestConfig, settings)
        self.config = config = own if config is None else replace(config, **settings)
        if config.backend == "numba":
            with extra("numba", 'backend="numba"'):
                import numba  # noqa: F401
        self._compiled = config.backend == "numba" or (config.backend == "auto" and find_spec("numba") is not None)
        self.detail = detail
        self.n_agents, self.max_steps = config.n_agents, config.horizon
        self.max_return = 5.0 * config.horizon
        self.end = "terminated" if config.terminate_at_horizon else "truncated"
        self.action_space = spaces.Discrete(N_ACTIONS)
        self.fairness_spec = FairnessSpec(notions=(), group_names=GROUP_NAMES)
        self.field = Field(n_worlds, config.width, config.height, config.n_agents, config.bush_life, config.auto_ripen)
        self.observer = Observer(self.field, config.obs_scale, config.obs_extra)
        self.observation_space = spaces.Box(*self.observer.bounds, dtype=np.float32)
        shape = n_worlds, config.n_agents
        self.agent_id = np.arange(config.n_agents)
        """0, 1, ... (N,)."""
        self.lf = np.tile(preferences(config), (n_worlds, 1))
        """Legitimate factor, the colour that each agent prefers (B, N): 1 red, 2 blue. Replaced, never changed."""
        self.group = np.zeros(shape, dtype=np.int8)
        """1 for slow agents, who are the sensitive ones, else 0 (B, N). Replaced, never changed."""
        self.pair = np.full(shape, -1)
        """The slot of each agent's twin (B, N); -1: none."""
        self.time = np.zeros(n_worlds, dtype=np.int64)
        """Steps since the episode began (B,); every agent has had as many turns."""
        self.last_reward = np.zeros(shape, dtype=np.float32)
        """Of the latest step (B, N), 0 when an episode begins."""
        self.returns = np.zeros(shape, dtype=np.float64)
        """Rewards of the episode so far (B, N)."""
        self.sensitive_streams: list[Any] = [None] * n_worlds
        """A generator per copy, from which :meth:`draw_sensitive` draws."""
        self._world = np.repeat(np.arange(n_worlds)[:, None], config.n_agents, axis=1)
        self._agent = np.repeat(self.agent_id[None], n_worlds, axis=0)
        chances = Chances(config)
        rows = min(max(2**18 // (n_worlds * chances.columns), 16), 1024)
        self.growth_tapes: Tapes[Uniforms] = Tapes(n_worlds, 2)
        super().__init__(n_worlds, Tapes(n_worlds, chances.columns, chances, rows))

    def seed(self, rngs: Sequence[tuple[int, np.random.Generator]]) -> None:
        which = np.array([index for index, _ in rngs], dtype=np.intp)
        layout, attribute, order, growth = zip(*[rng.spawn(4) for _, rng in rngs], strict=True)
        self.tapes.seed(which, order)
        self.growth_tapes.seed(which, growth)
        for index, places, people in zip(which.tolist(), layout, attribute, strict=True):
            self.reset_streams[index], self.sensitive_streams[index] = places, people

    def restart(self, which: Array) -> Array:
        streams = self.restart_streams(which)
        inside, n_agents = self.field.inside, self.n_agents
        cells = inside[np.stack([stream.permutation(len(inside)) for stream in streams])]
        lf = preferences(self.config)
        bushes = cells[:, n_agents : n_agents + self.config.n_bushes]
        self.field.plant(which, cells[:, :n_agents], lf, bushes, bush_colours(self.config))
        return self._begin(which, lf, self.draw_sensitive(which))

    def draw_sensitive(self, which: Array) -> NDArray[np.bool_]:
        """Who is slow in the episodes that begin in the copies ``which`` (k,): (k, N)."""
        luck = np.stack([self.sensitive_streams[index].random(self.n_agents) for index in which.tolist()])
        share, stratified = self.config.sensitive_share, self.config.stratified
        return sensitive_agents(luck, preferences(self.config), share, stratified)

    def install(self, layout: Mapping[str, Any], which: Array | None = None) -> Array:
        """Begins an episode with a given field in the copies ``which`` (k,), None: all; observations (k, N, d).

        The next :meth:`reset` draws a field again. A world that was never reset gets random streams first.

        :param layout: see :func:`~sb3_fair.zoo.envs.harvest.layout.read`; settings for its size are
            ``HarvestConfig().fitting(layout)``
        :raises ValueError: if it is not such a layout, or of another size
        """
        given = read(layout, self.config)
        if None in self.reset_streams:
            self.reset(np.arange(self.n_worlds))
        which = np.arange(self.n_worlds) if which is None else which
        agents, bushes = self.field.cell(given.x, given.y), self.field.cell(given.bush_x, given.bush_y)
        self.field.plant(which, agents, given.lf, bushes, given.colours, given.ripe, given.ages)
        return self._begin(which, given.lf, given.group)

    def _begin(self, which: Array, lf: Array, group: Array) -> Array:
        for name, value in (("lf", lf), ("group", group), ("time", 0), ("last_reward", 0), ("returns", 0)):
            fresh = getattr(self, name).copy()
            fresh[which] = value
            setattr(self, name, fresh)
        return self.observe(which)

    def step(self, actions: Array) -> Step:
        self.tapes.advance()
        self.growth_tapes.advance()
        rewards, executed = self._play(actions)
        self.field.grow_older(self.time)
        if self.config.growth_interval is not None:
            which = np.flatnonzero(self.time % self.config.growth_interval == 0)
            if len(which):
                luck = self.growth_tapes.now.values[which]
                self.field.sprout(which, self.config.growth_rule == "cubic", luck, self.time[which])
        self.time = self.time + 1
        self.last_reward = rewards
        self.returns = self.returns + rewards
        over, never = self.time >= self.max_steps, np.zeros(self.n_worlds, dtype=np.bool_)
        record: Record = {
            "individual": {
                "group": self.group,
                "lf": self.lf,
                "world": self._world,
                "agent": self._agent,
                "action": np.array(actions, dtype=np.int64),
            }
        }
        if self.detail:
            record["detail"] = {"executed_action": executed, "obstructed": self.obstructed}
        if over.any():
            record["episode_return"] = self.returns
        terminated, truncated = (over, never) if self.config.terminate_at_horizon else (never, over)
        return self.observe(), rewards, terminated, truncated, record

    def _play(self, actions: Array) -> tuple[Array, Array]:
        order, luck = self.tapes.now
        idle = odd = self._odd()
        if self.config.slow == "moves_only":
            idle = odd & (actions >= UP) & (actions <= RIGHT)
        able = np.where(odd, _STANDING, _ALL)  # what may be carried out in place of invalid actions
        agents = np.ascontiguousarray(order.T) + np.arange(self.n_worlds) * self.n_agents
        turns = Turns(
            agents,
            self.lf.reshape(-1).take(agents),
            np.where(idle, VOID, actions).reshape(-1).take(agents),
            luck.swapaxes(0, 1),
            able.reshape(-1).take(agents),
            self.time,
        )
        table = rules(self.config.movement, self.config.scan)
        played = self._order()(self.field, table, turns, self.config.obstruct_turns)
        rewards, executed = np.empty(self.lf.shape, dtype=np.float32), np.empty(self.lf.shape, dtype=np.int8)
        rewards.reshape(-1)[agents], executed.reshape(-1)[agents] = played
        return rewards, executed

    def _order(self) -> Any:
        if self.config.order == "simultaneous":
            return at_once
        if self._compiled:
            from sb3_fair.zoo.envs.harvest import kernel  # numba is optional and slow to import

            return kernel.in_turn
        return in_turn

    def _odd(self) -> NDArray[np.bool_]:
        """Who is slow and has an odd turn next (B, N)."""
        return (self.group == 1) & (self.time % 2 == 0)[:, None]

    def observe(self, which: Any = slice(None)) -> NDArray[np.float32]:
        """What the agents of the copies ``which`` (k,) see now (k, N, d)."""
        seen = self.observer(which, self.lf[which], self.group[which], self.last_reward[which])
        if self.config.obs_extra:
            seen[..., -2] = self.field.obstructed(which)
            seen[..., -1] = self._odd()[which]
        return seen

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are valid now (B, N, 8): as every agent would find the field if it had the next turn.

        Only 0 for those whose next turn is void.
        """
        table = rules(self.config.movement, self.config.scan)
        valid = table.valid.take(surrounding(self.field.neighbours())).reshape(self.lf.shape)
        masks = np.unpackbits(valid[..., None], axis=-1, bitorder="little").astype(np.bool_)
        odd = self._odd()
        masks[odd, UP : (OBSTRUCT if self.config.slow == "all_actions" else RIGHT) + 1] = False
        masks[self.obstructed, STAY + 1 :] = False
        return masks

    @property
    def positions(self) -> NDArray[np.int64]:
        """x and y of each agent (B, N, 2)."""
        cells = self.field.places - self.field.offsets
        return np.stack([self.field.x[cells], self.field.y[cells]], axis=-1)

    @property
    def obstructed(self) -> NDArray[np.bool_]:
        """Who loses the next turn to an obstruction (B, N)."""
        return self.field.obstructed()

    @property
    def bushes(self) -> NDArray[np.int8]:
        """Colour of the bush in each cell (B, width, height): 0 colourless, 1 red, 2 blue; -1: no bush."""
        cells = self.field.within(self.field.cells)
        return np.where(cells >= BUSH, ((cells >> 1) & 3).astype(np.int8), np.int8(-1))

    @property
    def ripe(self) -> NDArray[np.bool_]:
        """Where ripe bushes are (B, width, height)."""
        cells = self.field.within(self.field.cells)
        return (cells >= BUSH) & (cells & 1 == 1)

    @property
    def ages(self) -> NDArray[np.int64]:
        """Age of the bush in each cell (B, width, height); -1: no bush."""
        return np.where(self.bushes >= 0, self.time[:, None, None] - self.field.within(self.field.born), -1)

    def state_dict(self) -> dict[str, Any]:
        """A copy of the complete state, random streams included."""
        return deepcopy({name: getattr(self, name) for name in self._STATE})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was asked for.

        :raises ValueError: if it is of a world of another size
        """
        given, own = ((of["lf"].shape, of["field"].cells.shape) for of in (state, vars(self)))
        if given != own:
            raise ValueError(f"state must be of {own[0]} agents and {own[1]} cells, got {given[0]} and {given[1]}")
        vars(self).update(deepcopy(dict(state)))
        self.observer.field = self.field
