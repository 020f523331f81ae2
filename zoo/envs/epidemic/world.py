"""Epidemic control: one vaccine a step in a social network.

The epidemic of the F-PPO paper, "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning"
(arXiv 2401.06318).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from scipy import sparse

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.arguments import Proportion, Range, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.epidemic import measures
from sb3_fair.zoo.envs.epidemic.graph import network
from sb3_fair.zoo.envs.recent import Recent
from sb3_fair.zoo.envs.settings import parameter, several
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World

Mask: TypeAlias = NDArray[np.bool_]

PAPER = "the paper"
CODE = "the published experiments; not in the paper"
OURS = "ours"
_NEAREST = np.nextafter(np.float32(-1), np.float32(0))  # to -1, which some uniforms are rounded to


@checked
@dataclass(frozen=True)
class EpidemicConfig:
    """The parameters of the scenario.

    :param graph: who meets whom: an undirected networkx graph or a symmetric adjacency matrix; None: Zachary's karate
        club. Nodes are numbered in the graph's order
    :param communities: a label per node, two or more different ones; None: the first split of Girvan and Newman
    :param infection_probability: that one infected neighbour infects a susceptible node in a step
    :param recovery_probability: that an infected node recovers in a step
    :param initial_infected: how many random nodes are infected at first, or their numbers
    :param burn_in: steps without treatment before an episode, of which nothing is counted
    :param episode_length: vaccines per episode
    :param window: steps before the present one that count in the short-term disparity; None: all of the episode. Unless
        it is None or 0, notions look at as many of the latest decisions, one per susceptible node and step
    :param distance: between communities in the long-term disparity, ``"l2"`` or ``"w1"``
    :param count_wasted: whether a vaccine for somebody who is not susceptible counts as given
    :param observe_vaccinated: whether the observation shows who has got a vaccine
    :param massage_allow_wasted: whether action massaging may choose those who are not susceptible
    """

    graph: Any = parameter(None, "graph, matrix", PAPER)
    communities: Any = parameter(None, "label per node", PAPER)
    infection_probability: Proportion = parameter(0.5, "probability", CODE)
    recovery_probability: Proportion = parameter(0.005, "probability", CODE)
    initial_infected: Annotated[int, Range("[1, 1_000_000]")] | Sequence[int] = parameter(
        1, "nodes", PAPER + "; always node 0 in the published code"
    )
    burn_in: int = parameter(0, "steps", PAPER + "; 1 in the published code")
    episode_length: int = parameter(20, "steps", CODE)
    window: Annotated[int, Range("[0, 10_000_000]")] | None = parameter(None, "steps", CODE)
    distance: Literal["l2", "w1"] = parameter("l2", "name", OURS)
    count_wasted: bool = parameter(True, "yes or no", PAPER)
    observe_vaccinated: bool = parameter(True, "yes or no", PAPER)
    massage_allow_wasted: bool = parameter(False, "yes or no", OURS)

    def __post_init__(self) -> None:
        places = self.initial_infected
        if several(places) and not 0 < len(places) == len(set(places)):
            raise ValueError(f"initial_infected must name different nodes, got {places!r}")


class Chances(NamedTuple):
    """What chance holds for each node in a step, (..., nodes)."""

    withstands: NDArray[np.float32]
    """How many infected neighbours leave a susceptible node as it is; more of them infect it."""
    recovers: NDArray[np.bool_]


def _chances(uniforms: NDArray[np.float64], infection_probability: float, recovery_probability: float) -> Chances:
    """From one uniform per node to what it can bear: nobody is susceptible and infected at once.

    A uniform u infects if u < 1 - (1 - tau)^k for k infected neighbours, hence if k > log(1 - u) / log(1 - tau).
    """
    with np.errstate(divide="ignore"):
        # With probability 0 everybody withstands all neighbours: nearly infinitely many.
        log_spared = np.minimum(np.log1p(-infection_probability), -1e-30).astype(np.float32)
    withstands = -uniforms.astype(np.float32)  # not 1 - uniforms, in which those next to 0 are lost
    np.maximum(withstands, _NEAREST, out=withstands)
    np.log1p(withstands, out=withstands)
    withstands /= log_spared
    return Chances(withstands, uniforms < recovery_probability)


def _spread(
    susceptible: Mask, infected: Mask, neighbours: NDArray[np.float32], chances: Chances
) -> tuple[Mask, Mask, Mask]:
    """Who is susceptible and infected after the disease has spread, and who was infected by that; (k, nodes) each."""
    caught = susceptible & (neighbours > chances.withstands)
    return susceptible & ~caught, caught | (infected & ~chances.recovers), caught


def _surely(world: "EpidemicWorld", actions: Array) -> Array:
    return (actions[:, None] == np.arange(world.nodes + 1)).astype(np.float64)


def _random(world: "EpidemicWorld") -> Array:
    """Any susceptible node, or nobody."""
    able = np.concatenate((world.susceptible, ~world.susceptible.any(axis=1, keepdims=True)), axis=1)
    return able / able.sum(axis=1, keepdims=True)


def _most(world: "EpidemicWorld", merit: Array) -> Array:
    """The susceptible node with most merit (n, nodes), the first of several, or nobody."""
    best = np.where(world.susceptible, merit, -1.0).argmax(axis=1)
    return _surely(world, np.where(world.susceptible.any(axis=1), best, world.nodes))


class EpidemicWorld(World):
    """Each step one node of a social network is vaccinated, the action, or nobody (the last action).

    Observation, four numbers per node: susceptible, infected, recovered (or immune), and whether it got a vaccine in
    the episode. Reward: the share of nodes that are not infected after the step. An episode is truncated. See
    :doc:`/epidemic`.

    Figures (``info["fairness"]``): ``d_s``, the short-term disparity (Eq. 10) after the step, ``d_s_prev`` after the
    step before; ``vaccines`` and ``new_infections`` (communities,) in its window; ``d_l`` and ``d_l_next``, the
    long-term disparity before and after the step, of the communities' ``proportions`` (communities, 3) of susceptible,
    infected and recovered, after the step; ``d_l_counts``, the Euclidean distance of numbers in place of proportions,
    for comparison with published curves; ``wasted``, vaccines so far in the episode that were.

    :param detail: whether records have ``detail``: ``outlook_before`` and ``groups`` = ``outlook`` (communities, 3),
        the numbers of susceptible, infected and recovered before and after the step
    :param config: fields of :class:`EpidemicConfig`
    """

    own_settings = ("window", "distance")
    picture = "sb3_fair.zoo.envs.epidemic.picture:picture"
    source = "arXiv 2401.06318"
    words: ClassVar[Words] = {
        "R": {"title": "people not infected", "sentence": "Their share, summed over the steps."},
        "d_s": {"title": "gap in vaccines", "sentence": "Between the communities."},
        "d_l": {"title": "gap in infections", "sentence": "Between the communities, as vaccines changed them."},
        "wasted": {"title": "wasted vaccines", "better": "lower"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "random": _random,
        "nobody": lambda world: _surely(world, np.full(world.n_worlds, world.nodes)),
        "infected-neighbours": lambda world: _most(world, world.infected_neighbours(world.infected)),
        "highest-degree": lambda world: _most(world, world.degrees),
    }

    def __init__(self, n_worlds: int, *, detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, EpidemicConfig, config)
        self.adjacency, self.degrees, self.communities, names = network(settings.graph, settings.communities)
        self.nodes = len(self.degrees)
        initial = settings.initial_infected
        if isinstance(initial, int | np.integer):
            if initial > self.nodes:
                raise ValueError(f"initial_infected must be at most the {self.nodes} nodes, got {initial}")
        elif max(initial) >= self.nodes:
            raise ValueError(f"each of initial_infected must be a node below {self.nodes}, got {max(initial)}")
        self.max_steps = settings.episode_length
        self.max_return = float(settings.episode_length)
        self.action_space = spaces.Discrete(self.nodes + 1)
        self._columns = 3 + settings.observe_vaccinated
        self.observation_space = spaces.Box(0, 1, (self.nodes * self._columns,), np.float32)
        self.fairness_spec = FairnessSpec(
            notions=(),
            history=SlidingWindow(config.get("window") or 500),
            group_names=names,
            feature_names=("degree", "infected neighbours"),
            low=0,
            high=max(int(self.degrees.max()), 1),
            measures=measures.EpidemicMeasures(
                tuple(self.communities.tolist()), settings.count_wasted, settings.massage_allow_wasted
            ),
        )
        self.susceptible = np.zeros((n_worlds, self.nodes), dtype=bool)
        self.infected = np.zeros((n_worlds, self.nodes), dtype=bool)
        """Who is neither susceptible nor infected has recovered, or is immune."""
        self.vaccinated = np.zeros((n_worlds, self.nodes), dtype=bool)
        """Who got a vaccine in the present episode."""
        self.d_s = np.zeros(n_worlds)
        self.d_l = np.zeros(n_worlds)
        self.time = np.zeros(n_worlds, dtype=np.int64)
        """Steps since the episode began."""
        membership = np.eye(len(names))[self.communities]
        self._sizes = membership.sum(axis=0)
        self._membership = membership.astype(np.float32)
        self._receiver = np.concatenate((membership, np.zeros((1, len(names)))))  # nobody is in no community
        self._counted = Recent((n_worlds, 2, len(names)), settings.window)
        self._wasted = np.zeros(n_worlds)
        self._places = np.arange(self.nodes)
        self._group = np.broadcast_to(self.communities, (n_worlds, self.nodes))
        derive = partial(
            _chances,
            infection_probability=settings.infection_probability,
            recovery_probability=settings.recovery_probability,
        )
        rows = min(max(8192 // n_worlds, 16), max(2**22 // (n_worlds * self.nodes), 1), 1024)
        super().__init__(n_worlds, Tapes(n_worlds, self.nodes, derive, rows))

    def infected_neighbours(self, infected: NDArray[np.bool_]) -> NDArray[np.float32]:
        """How many neighbours of each node are infected.

        :param infected: (k, nodes)
        :return: (k, nodes)
        """
        if sparse.issparse(self.adjacency):
            return np.ascontiguousarray((self.adjacency @ infected.T.astype(np.float32)).T)
        return infected.astype(np.float32) @ self.adjacency

    def restart(self, which: Array) -> Array:
        initial, burn_in = self.config.initial_infected, self.config.burn_in
        listed = not isinstance(initial, int | np.integer)
        rows, columns = burn_in + (not listed), self.nodes
        streams = self.restart_streams(which)
        uniforms = np.stack([stream.random((rows, columns)) for stream in streams])
        infected = np.zeros((len(which), columns), dtype=bool)
        if listed:
            infected[:, np.asarray(initial)] = True
        else:
            lowest = np.argpartition(uniforms[:, -1], initial - 1, axis=1)[:, :initial]  # type: ignore[operator]
            np.put_along_axis(infected, lowest, True, axis=1)
        susceptible = ~infected
        for step in range(burn_in):
            neighbours = self.infected_neighbours(infected)
            susceptible, infected, _ = _spread(susceptible, infected, neighbours, self.tapes.derive(uniforms[:, step]))
        self.susceptible[which], self.infected[which], self.vaccinated[which] = susceptible, infected, False
        self.time[which] = 0
        self._counted.restart(which)
        self._wasted[which] = 0
        self.d_s[which] = 0
        self.d_l[which] = measures.long_term(self._states(which) / self._sizes[:, None], self.config.distance)
        return self._observation(which)

    def step(self, actions: Array) -> Step:
        self.tapes.advance()
        before, states_before = self.susceptible, self._states() if self.detail else None
        neighbours = self.infected_neighbours(self.infected)  # the same after the treatment
        given = actions[:, None] == self._places
        self.susceptible, self.infected, caught = _spread(before & ~given, self.infected, neighbours, self.tapes.now)
        self.vaccinated = self.vaccinated | given
        self.time += 1
        states = self._states()
        record: Record = {
            "individual": self._individuals(before, neighbours, given, caught),
            "fairness": self._figures(actions, (given & before).any(axis=1), caught, states),
        }
        if self.detail:
            record["detail"] = {"outlook_before": states_before, "groups": states, "outlook": states}
        reward = 1 - states[..., measures.INFECTED].sum(axis=1) / self.nodes
        terminated = np.zeros(self.n_worlds, dtype=bool)
        return self._observation(), reward, terminated, self.time >= self.max_steps, record

    def _individuals(self, present: Mask, neighbours: NDArray[np.float32], given: Mask, caught: Mask) -> Record:
        features = np.empty((self.n_worlds, self.nodes, 2))
        features[..., 0], features[..., 1] = self.degrees, neighbours
        feedback = caught.astype(np.float64)
        np.copyto(feedback, np.nan, where=given)
        return {
            "group": self._group,
            "features": features,
            "action": given.astype(np.int64),
            "feedback": feedback,
            "present": present,
        }

    def _figures(self, actions: Array, effective: Mask, caught: Mask, states: NDArray[np.float64]) -> Record:
        """Counts the step and compares the communities.

        :param effective: whether the vaccine made somebody immune (n,)
        :param states: after the step (n, communities, 3)
        """
        self._wasted += (actions < self.nodes) & ~effective
        vaccines = self._receiver[actions]
        if not self.config.count_wasted:
            vaccines *= effective[:, None]
        self._counted.add(np.stack((vaccines, caught.astype(np.float32) @ self._membership), axis=1))
        counted = self._counted.total
        proportions = states / self._sizes[:, None]
        d_s_before, d_l_before = self.d_s, self.d_l
        self.d_s = measures.short_term(counted[:, 0], counted[:, 1])
        self.d_l = measures.long_term(proportions, self.config.distance)
        return {
            "d_s": self.d_s.copy(),
            "d_s_prev": d_s_before,
            "d_l": d_l_before,
            "d_l_next": self.d_l.copy(),
            "d_l_counts": measures.long_term(states),
            "vaccines": counted[:, 0],
            "new_infections": counted[:, 1],
            "proportions": proportions,
            "wasted": self._wasted.copy(),
        }

    def massage(self) -> Record:
        staying = self._counted.staying
        return {"vaccines": staying[:, 0], "new_infections": staying[:, 1], "susceptible": self.susceptible.copy()}

    def _states(self, which: Any = slice(None)) -> NDArray[np.float64]:
        """How many of each community are susceptible, infected and recovered (k, communities, 3)."""
        susceptible = self.susceptible[which].astype(np.float32) @ self._membership
        infected = self.infected[which].astype(np.float32) @ self._membership
        states = np.empty((*susceptible.shape, 3))
        states[..., measures.SUSCEPTIBLE], states[..., measures.INFECTED] = susceptible, infected
        states[..., measures.RECOVERED] = self._sizes - susceptible - infected
        return states

    def _observation(self, which: Any = slice(None)) -> NDArray[np.float32]:
        susceptible, infected = self.susceptible[which], self.infected[which]
        shown = np.empty((*susceptible.shape, self._columns), dtype=bool)
        shown[..., measures.SUSCEPTIBLE], shown[..., measures.INFECTED] = susceptible, infected
        shown[..., measures.RECOVERED] = ~(susceptible | infected)
        if self.config.observe_vaccinated:
            shown[..., -1] = self.vaccinated[which]
        return shown.reshape(len(shown), -1).astype(np.float32)

    @cached_property
    def layout(self) -> tuple[Array, Array]:
        """Where the nodes are in pictures, and which of them are neighbours."""
        from sb3_fair.zoo.envs.epidemic.picture import layout  # matplotlib is slow to import

        return layout(self.adjacency)
