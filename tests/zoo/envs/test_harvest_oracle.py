"""Does every step of the Allelopathic Harvest do what its rules say, if one plays it turn by turn in plain Python?"""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.zoo.envs.harvest.world import HarvestWorld

DOWN, RIGHT, UP, LEFT = (0, 1), (1, 0), (0, -1), (-1, 0)
NEIGHBOURS = [DOWN, RIGHT, UP, LEFT]
MOVES = {1: UP, 2: DOWN, 3: LEFT, 4: RIGHT}


class Agent:
    def __init__(self, x, y, colour, slow):
        self.x, self.y, self.colour, self.slow = x, y, colour, slow
        self.turns, self.obstructed = 0, 0


class Bush:
    def __init__(self, colour, ripe=False, age=0):
        self.colour, self.ripe, self.age, self.since = colour, ripe, age, None


class Oracle:
    """One world, as the rules are told: a dict of cells, and one agent after the other."""

    def __init__(self, world):
        self.config, self.time = world.config, 0
        self.agents = [
            Agent(*map(int, place), colour, slow)
            for place, colour, slow in zip(world.positions[0], world.lf[0], world.group[0], strict=True)
        ]
        self.cells = {(agent.x, agent.y): agent for agent in self.agents}
        for x, y in np.argwhere(world.bushes[0] >= 0).tolist():
            self.cells[x, y] = Bush(int(world.bushes[0, x, y]))

    def around(self, agent, kind):
        things = [self.cells.get((agent.x + dx, agent.y + dy)) for dx, dy in NEIGHBOURS]
        return [thing for thing in things if isinstance(thing, kind)]

    def target(self, agent, action):
        dx, dy = MOVES[action]
        return agent.x + dx, agent.y + dy

    def valid(self, agent, action):
        if action in MOVES:
            x, y = self.target(agent, action)
            inside = 0 <= x < self.config.width and 0 <= y < self.config.height
            return self.config.movement == "on" and inside and (x, y) not in self.cells
        return action == 0 or bool(self.around(agent, Agent if action == 7 else Bush))

    def eat(self, agent, bush):
        bush.ripe, bush.since = False, self.time
        return {agent.colour: 5, 0: 0}.get(bush.colour, 1)

    def ripen(self, agent, bush):
        bush.ripe = True
        return 3 if bush.colour == agent.colour else 1

    def targets(self, agent, action):
        """What a valid action changes: the cell to move to, bushes, or another agent."""
        if action in MOVES:
            return [self.target(agent, action)]
        bushes = self.around(agent, Bush)
        if action == 5:
            ripe = [bush for bush in bushes if bush.ripe]
            if self.config.scan == "first":
                return ripe[:1] or bushes[:1]
            return bushes[: bushes.index(ripe[0]) + 1] if ripe else bushes
        if action == 6:
            return [bush for bush in bushes if bush.colour != agent.colour][:1]
        return self.around(agent, Agent)[:1] if action == 7 else []

    def act(self, agent, action, targets):
        """The reward of a valid action."""
        reward = 0
        for target in targets:
            if action in MOVES:
                del self.cells[agent.x, agent.y]
                agent.x, agent.y = target
                self.cells[target] = agent
            elif action == 5 and target.ripe:
                eaten = self.eat(agent, target)
                reward = eaten if target.colour else reward
            elif action == 5:
                reward = self.ripen(agent, target)
            elif action == 6:
                target.colour, target.ripe, target.since, reward = agent.colour, False, self.time, 5
            else:
                target.obstructed = self.config.obstruct_turns
                reward = 3 if target.colour != agent.colour else 0
        return reward

    def substitute(self, agent, action, luck):
        untried = list(range(8))

        def other(draw):
            untried.remove(action)
            return untried[int(luck[draw] * len(untried))]

        for attempt in range(3):
            if action == 0:
                return 0
            if action in MOVES:
                if self.valid(agent, action) and not (agent.slow and agent.turns % 2 == 1):
                    return action
                action = other(2 * attempt)
            if action in (5, 6, 7):
                if self.valid(agent, action):
                    return action
                action = other(2 * attempt + 1)
        return 0

    def void(self, agent, action):
        agent.turns += 1
        if agent.obstructed:
            agent.obstructed -= 1
            return True
        idle = agent.slow and agent.turns % 2 == 1
        return idle and (self.config.slow == "all_actions" or action in MOVES)

    def choose(self, agent, action, luck):
        """What is carried out: None if the turn is void."""
        if self.void(agent, action):
            return None
        if self.config.invalid == "substitute":
            return self.substitute(agent, action, luck)
        return action if self.valid(agent, action) else 0

    def turn_by_turn(self, actions, order, luck):
        rewards, executed = np.zeros(len(actions)), np.full(len(actions), -1)
        for turn, number in enumerate(order):
            agent = self.agents[number]
            action = self.choose(agent, int(actions[number]), luck[turn])
            if action is not None:
                executed[number], rewards[number] = action, self.act(agent, action, self.targets(agent, action))
        return rewards, executed

    def at_once(self, actions, order, luck):
        rewards, executed = np.zeros(len(actions)), np.full(len(actions), -1)
        chosen, claimed = [], []
        for turn, number in enumerate(order):
            agent = self.agents[number]
            action = self.choose(agent, int(actions[number]), luck[turn])
            if action is not None:
                targets = self.targets(agent, action)
                beaten = any(target in claimed for target in targets)
                chosen.append((number, 0, []) if beaten else (number, action, targets))
                claimed += [target for target in targets if not isinstance(target, Agent)]
        for number, action, targets in chosen:
            executed[number], rewards[number] = action, self.act(self.agents[number], action, targets)
        return rewards, executed

    def step(self, actions, chances, growth):
        play = self.at_once if self.config.order == "simultaneous" else self.turn_by_turn
        luck = chances.luck[0] if chances.luck.size else [None] * len(actions)
        rewards, executed = play(actions, chances.order[0], luck)
        for place, bush in [item for item in self.cells.items() if isinstance(item[1], Bush)]:
            bush.age += 1
            if self.config.bush_life is not None and bush.age >= self.config.bush_life:
                del self.cells[place]
            elif None not in (self.config.auto_ripen, bush.since) and bush.since + self.config.auto_ripen == self.time:
                bush.ripe = True
        if self.config.growth_interval is not None and self.time % self.config.growth_interval == 0:
            self.grow(*growth)
        self.time += 1
        return rewards, executed

    def count(self, colour):
        return sum(isinstance(thing, Bush) and thing.colour == colour for thing in self.cells.values())

    def grow(self, colour_luck, cell_luck):
        power = 3 if self.config.growth_rule == "cubic" else 1
        red, blue = self.count(1) ** power, self.count(2) ** power
        colour = (1 if colour_luck < red / (red + blue) else 2) if red + blue else 0
        rows = [(x, y) for y in range(self.config.height) for x in range(self.config.width)]
        empty = [place for place in rows if place not in self.cells]
        if empty:
            self.cells[empty[int(cell_luck * len(empty))]] = Bush(colour)

    def distance(self, agent, kind, colour=None):
        return min(
            (
                abs(x - agent.x) + abs(y - agent.y)
                for (x, y), thing in self.cells.items()
                if isinstance(thing, kind) and thing is not agent and colour in (None, thing.colour)
            ),
            default=self.config.width + self.config.height,
        )

    def observation(self, agent, reward):
        seen = [agent.x, agent.y, agent.slow, reward, agent.colour, self.count(1), self.count(2)]
        seen += [self.distance(agent, Bush, 1), self.distance(agent, Bush, 2), self.distance(agent, Agent)]
        if self.config.obs_scale:
            seen = (np.array(seen) / (25, 15, 1, 5, 2, 60, 60, 10, 10, 10)).tolist()
        if self.config.obs_extra:
            for dx, dy in NEIGHBOURS:
                thing = self.cells.get((agent.x + dx, agent.y + dy))
                bush = isinstance(thing, Bush)
                own = bush and thing.colour == agent.colour
                seen += [bush and thing.ripe and own, bush and thing.ripe and not own, bush and not thing.ripe]
            seen += [agent.obstructed > 0, agent.slow and agent.turns % 2 == 0]
        return np.array(seen, dtype=np.float32)

    def mask(self, agent):
        odd = agent.slow and agent.turns % 2 == 0
        idle = range(1, 8) if self.config.slow == "all_actions" else MOVES
        void = set(range(1, 8)) if agent.obstructed else set(idle) if odd else set()
        return [action not in void and self.valid(agent, action) for action in range(8)]


CROWD = {"width": 7, "height": 5, "n_agents": 12, "n_bushes": 9, "bush_life": 14}
SETTINGS = [
    {},
    {"order": "fixed", "obs_extra": True, "growth_rule": "cubic"},
    {"slow": "moves_only", "obs_extra": True, "obs_scale": True},
    {"scan": "all", "auto_ripen": 3, "obstruct_turns": 2, "obs_extra": True},
    {"invalid": "substitute", "auto_ripen": 1},
    {"invalid": "substitute", "slow": "moves_only"},
    {"movement": "off", "invalid": "substitute", "scan": "all", "obstruct_turns": math.inf, "obs_extra": True},
    {"growth_interval": None, "bush_life": None},
    {"order": "simultaneous", "obs_extra": True},
    {"order": "simultaneous", "scan": "all", "auto_ripen": 3, "slow": "moves_only"},
    {"order": "simultaneous", "invalid": "substitute", "obstruct_turns": 3, "slow": "moves_only"},
]


COMPILED = [settings | {"backend": "numba"} for settings in SETTINGS if settings.get("order") != "simultaneous"]


@pytest.mark.parametrize("settings", SETTINGS + COMPILED, ids=str)
def test_every_step_follows_the_rules_turn_by_turn(settings):
    if "backend" in settings:
        pytest.importorskip("numba")
    world = HarvestWorld(1, detail=True, **(CROWD | settings))
    seen = world.reset(np.arange(1), [np.random.default_rng(3)])
    oracle, rng = Oracle(world), np.random.default_rng(4)
    for _ in range(40):
        actions = rng.choice(8, p=[0.04] + [0.08] * 4 + [0.3, 0.17, 0.17], size=(1, world.n_agents))
        masks = [oracle.mask(agent) for agent in oracle.agents]
        assert_array_equal(world.action_masks()[0], masks)
        seen, rewards, _, _, record = world.step(actions)
        theirs, executed = oracle.step(actions[0], world.tapes.now, world.growth_tapes.now.values[0])
        assert_array_equal(rewards[0], theirs)
        assert_array_equal(record["detail"]["executed_action"][0], executed)
        assert_array_equal(record["detail"]["obstructed"][0], [agent.obstructed > 0 for agent in oracle.agents])
        assert_array_equal(world.positions[0], [(agent.x, agent.y) for agent in oracle.agents])
        bushes = {place: thing for place, thing in oracle.cells.items() if isinstance(thing, Bush)}
        colours, ripe, ages = world.bushes[0], world.ripe[0], world.ages[0]
        assert {(x, y) for x, y in np.argwhere(colours >= 0).tolist()} == set(bushes)
        for place, bush in bushes.items():
            assert (colours[place], ripe[place], ages[place]) == (bush.colour, bush.ripe, bush.age)
        expected = [oracle.observation(agent, reward) for agent, reward in zip(oracle.agents, theirs, strict=True)]
        np.testing.assert_allclose(seen[0], expected, rtol=1e-6)
