"""Base of the scenarios in which every step gives one thing to one of several people."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.events import FairEvent, served_by
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.groups import Groups
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World


def random_all(world: "AllocationWorld") -> Array:
    """A rule: anybody."""
    people = len(world.stakeholders)
    return np.full((world.n_worlds, people), 1 / people)


def random_present(world: "AllocationWorld") -> Array:
    """A rule: any of those who are there, or of all if nobody is."""
    able = world.present | ~world.present.any(axis=1, keepdims=True)
    return able / able.sum(axis=1, keepdims=True)


RANDOM: dict[str, Rule] = {"random-all": random_all, "random-present": random_present}


class Presence(NamedTuple):
    """Who is there, (..., people)."""

    present: NDArray[np.bool_]


def arrivals(uniforms: NDArray[np.float64], chances: NDArray[np.float64]) -> Presence:
    """From uniforms to who is there, each with the chance (people,) that is his or hers."""
    return Presence(uniforms < chances)


class AllocationWorld(World):
    """n copies in which every step gives one thing to one of m people, the action.

    People who are not there get nothing: nothing changes then but the time. The reward is ``base + mask * W(U)``,
    where U counts what each stakeholder has got so far; what it takes to recompute it for other counts is in
    ``fair_event``. Those who are there are the individuals of a step, and the action on each is whether he or she got
    the thing; how often that has happened to each is what fairness is about.

    A scenario writes :meth:`merit`, :meth:`give` and :meth:`figures`, :attr:`present` if its tapes are not of
    :func:`arrivals`, and extends the rest.

    :param n_worlds: number of copies
    :param tapes: the chances of the steps
    :param groups: which groups the people form, by one attribute; each is a stakeholder
    :param scheme: the fairness scheme of the reward, in which the status are the counts
    :param steps: length of an episode
    :param bounds: lowest and highest value of each observation, without the clock
    :param stakeholders: whom each action serves (m,); None: each another one
    :raises ValueError: if ``groups`` are not those of one attribute
    """

    picture = "sb3_fair.zoo.envs.allocation_picture:picture"
    scheme: Scheme
    stakeholders: tuple[int, ...]
    merit_name: ClassVar[str]
    """What :meth:`merit` is."""
    masked_by_scheme = False
    """Whether the mask of events only says when ``scheme`` is assessed, so that it does not hold for another one."""

    def __init__(
        self,
        n_worlds: int,
        tapes: Tapes[Any],
        groups: Groups,
        *,
        scheme: Scheme,
        steps: int,
        bounds: list[tuple[float, float]],
        stakeholders: tuple[int, ...] | None = None,
    ) -> None:
        if not groups.alone:
            raise ValueError(f"group must be the name of one attribute, got {groups.source!r}")
        self.max_steps, self.scheme = steps, scheme
        self.stakeholders = tuple(range(len(groups.names))) if stakeholders is None else stakeholders
        people = len(self.stakeholders)
        self.action_space = spaces.Discrete(people)
        low, high = np.array(bounds + [(0, 1)] * self.clock, np.float32).T
        self.observation_space = spaces.Box(low, high)
        self.fairness_spec = FairnessSpec(notions=(), group_names=groups.names, feature_names=(self.merit_name,))
        self.counts = np.zeros((n_worlds, len(groups.names)))
        """What each stakeholder has got in the present episode."""
        self.time = np.zeros(n_worlds, dtype=np.int64)
        """Steps since the episode began."""
        self._welfare = scheme.W
        self._served = served_by(self.stakeholders).astype(bool)
        self._places, self._rows = np.arange(people), np.arange(n_worlds)
        self._group = np.broadcast_to(np.array(self.stakeholders), (n_worlds, people))
        super().__init__(n_worlds, tapes)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Who can be given something in the coming step (n, m): whoever has arrived, if the tape says so."""
        return self.tapes.now.present

    @property
    def refused(self) -> NDArray[np.float64]:
        """Steps of the present episode in which nobody got anything (n,)."""
        return self.time - self.counts.sum(axis=1)

    def merit(self) -> NDArray[np.float64]:
        """What is known of each person (n, m), in [0, 1]: the feature of the individuals."""
        raise NotImplementedError

    def give(self, given: NDArray[np.bool_], granted: NDArray[np.bool_]) -> NDArray[np.float64] | None:
        """What follows from who got something (n, m), and from whether anybody did (n,), but for the counts.

        :return: which action would have been right, NaN where unknown (n, m); None: nowhere known
        """
        return None

    def terms(self, granted: NDArray[np.bool_], last: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Base (n,) and mask (n,) of the reward of a step after which episodes end where ``last`` (n,)."""
        return np.zeros(len(granted)), granted

    def figures(self) -> dict[str, NDArray[np.float64]]:
        """How fair the present episode has been after its last step: arrays (n,) by name."""
        raise NotImplementedError

    def observed(self) -> list[Array]:
        """Parts of the observation (n, ...), without the clock."""
        return [self.present]

    def particulars(self) -> Record:
        """``detail`` of a step."""
        return {"counts": self.counts.copy()}

    def restart(self, which: Array) -> Array:
        self.counts[which] = 0
        self.time[which] = 0
        self.tapes.redraw(which, self.restart_streams(which))
        return self._observation()[which]

    def step(self, actions: Array) -> Step:
        present, merit = self.present, self.merit()
        given = (actions[:, None] == self._places) & present
        granted = present[self._rows, actions]
        self.time += 1
        self.counts += self._served[actions] & granted[:, None]
        feedback = self.give(given, granted)
        last = self.time >= self.max_steps
        base, mask = self.terms(granted, last)
        reward = np.where(mask, base + self._welfare(self.counts), base)
        individual = {
            "group": self._group,
            "features": merit[:, :, None],
            "action": given.astype(np.int64),
            "present": present,
        }
        if feedback is not None:
            individual["feedback"] = feedback
        record: Record = {
            "individual": individual,
            "fair_event": FairEvent(granted, base, mask),
            "fairness": self.figures(),
        }
        if self.detail:
            record["detail"] = self.particulars()
        self.tapes.advance()
        terminated = last if self.end == "terminated" else np.zeros_like(last)
        return self._observation(), reward, terminated, last & ~terminated, record

    def _observation(self) -> NDArray[np.float32]:
        parts = self.observed()
        if self.clock:
            parts.append(self.time[:, None] / self.max_steps)
        return np.concatenate(parts, axis=1, dtype=np.float32)
