"""A bank of two groups, small enough to recount by hand; its loans may be decided on in several forms of actions."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_fair.fairness import FairnessSpec

FORMS = ("discrete", "parts", "box")


def shares_gap(granted, seen):
    """|difference of the two groups' shares of granted loans|, (...) from (..., 2); 0 for a group of nobody."""
    rates = granted / np.maximum(seen, 1)
    return np.abs(rates[..., 0] - rates[..., 1])


@dataclass(frozen=True)
class BankMeasures:
    """Short-term: gap of the groups' shares of granted loans so far; long-term: gap of their skills.

    Actions: a loan is granted (1) or not, by two clerks who both have to agree ("parts"), or where the first of two
    numbers is the larger ("box", nearly equal numbers may be exchanged).
    """

    form: str = "discrete"
    start: int = 0
    tau: float = 0.5

    short_term = "d_s"
    long_term = "d_l"
    long_term_next = "d_l_next"

    def threshold(self, iteration):
        return self.tau if iteration >= self.start else 0.0

    def candidates(self, massage, actions, probabilities):
        n = len(actions)
        if self.form == "box":
            swapped = actions[:, None, ::-1]
            return swapped, np.abs(actions[:, :1] - actions[:, 1:]), np.ones((n, 1), bool)
        if self.form == "parts":  # one clerk says the opposite
            others = np.repeat(actions[:, None], 2, axis=1)
            others[:, [0, 1], [0, 1]] = 1 - actions
            return others, np.abs(probabilities[..., 1] - probabilities[..., 0]), np.ones((n, 2), bool)
        return 1 - actions[:, None], np.abs(probabilities[:, :1] - probabilities[:, 1:]), np.ones((n, 1), bool)

    def would_be(self, massage, candidates):
        applicant = np.eye(2)[massage["group"]][:, None]
        granted = decided(self.form, candidates)[..., None] * applicant + massage["granted"][:, None]
        return shares_gap(granted, massage["seen"][:, None] + applicant)


def decided(form, actions):
    if form == "discrete":
        return actions == 1
    return actions[..., 0] > actions[..., 1] if form == "box" else actions.all(axis=-1)


class Bank(gym.Env):
    """One of two loans was granted in each group before an episode begins. Who of group g gets one pays it back with
    probability ``skill[g]``, which a loan repaid raises by 0.1 and one not repaid lowers by as much.

    :param moves: "loans": as said; "luck": every step moves the skills at random, whatever is decided
    :param kind: of observation: box or dict
    :param reward: what a repaid loan brings; as much is lost with one that is not
    :param tells: what there is besides observation and reward
    """

    def __init__(
        self,
        length=5,
        form="discrete",
        moves="loans",
        kind="box",
        reward=1.0,
        start=0,
        tau=0.5,
        tells=("spec", "massage", "fairness"),
        end="truncated",
    ):
        self.length, self.form, self.moves, self.kind, self.tells, self.end = length, form, moves, kind, tells, end
        self.reward = reward
        seen = spaces.Box(-1, 1, (3,), np.float32)
        self.observation_space = seen if kind == "box" else spaces.Dict({"who": seen, "time": spaces.Discrete(100)})
        self.action_space = {
            "discrete": spaces.Discrete(2),
            "parts": spaces.MultiDiscrete([2, 2]),
            "uneven": spaces.MultiDiscrete([2, 3]),
            "bits": spaces.MultiBinary(2),
            "box": spaces.Box(-0.4, 0.4, (2,), np.float32),
        }[form]
        if "spec" in tells:
            self.fairness_spec = FairnessSpec(measures=BankMeasures(form, start, tau), notions=())

    def _observation(self):
        seen = np.array([2 * self.group - 1, *self.skill], dtype=np.float32)
        return seen if self.kind == "box" else {"who": seen, "time": self.t}

    def _known(self):
        if "massage" not in self.tells:
            return {}
        return {"massage": {"group": self.group, "granted": self.granted.copy(), "seen": self.seen.copy()}}

    def _arrives(self):
        self.group = int(self.np_random.integers(2))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.skill, self.granted, self.seen = np.array([0.4, 0.8]), np.ones(2), np.full(2, 2.0)
        self.t, self.d_s = 0, 0.0
        self._arrives()
        return self._observation(), self._known()

    def step(self, action):
        granted = bool(decided(self.form, np.asarray(action)))
        before, d_s_prev, luck = abs(self.skill[0] - self.skill[1]), self.d_s, self.np_random.random()
        repaid = luck < self.skill[self.group]
        self.granted[self.group] += granted
        self.seen[self.group] += 1
        if self.moves == "luck":
            self.skill[self.group] += 0.1 if luck < 0.5 else -0.1
        elif granted:
            self.skill[self.group] += 0.1 if repaid else -0.1
        self.skill = self.skill.clip(0, 1)
        self.d_s = float(shares_gap(self.granted, self.seen))
        self.t += 1
        self._arrives()
        info = self._known()
        if "fairness" in self.tells:
            after = abs(self.skill[0] - self.skill[1])
            info["fairness"] = {"d_s": self.d_s, "d_s_prev": d_s_prev, "d_l": float(before), "d_l_next": float(after)}
        info["executed"], info["t"] = np.array(action), self.t
        over = self.t == self.length
        reward = granted * (self.reward if repaid else -self.reward)
        return self._observation(), reward, over and self.end == "terminated", over and self.end == "truncated", info
