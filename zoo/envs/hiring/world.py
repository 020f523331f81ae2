"""Job hiring: a company hires one applicant after the other.

The job-hiring environment of Cimpean et al. (FAReL), with applicants from STATBEL's figures on Belgium.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.hiring import applicants as people
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World, of_two

REJECT, HIRE = 0, 1

# Columns of the counts (Applicants.counts): skills, and two totals, each behind the four categories it is made of.
SKILLS, CATEGORISED, TOTALS, MEMBERS = slice(0, 4), slice(4, 14), slice(8, 14, 5), 13
_STARTS = np.array([0, 5])

# Arrays, since numpy is slower with Python's numbers.
_ONE, _MINUS_ONE = np.array(1.0), np.array(-1.0)
_SIGN = np.array([-1.0, 1.0])


class HiringWorld(World):
    """A company sees one applicant per step and rejects (0) or hires (1). See :doc:`/hiring`.

    Observation (23): the company (0-11), then the applicant (12-22). Reward: Cimpean et al., Eqs. 18-20. An episode is
    terminated when the team is full and truncated after ``episode_length`` applicants.

    :param group: what group notions compare: ``"gender"``, ``"nationality"``, a tuple for their product partition, or
        a list of several
    :param detail: whether records have ``detail``: goodness and its parts skill and diversity (weighted), the right
        action, noise and bias of the reward, the team's size before the decision, and whether hiring was refused
        since the team was full
    :param config: fields of :class:`~sb3_fair.zoo.envs.hiring.applicants.HiringConfig`
    """

    picture = "sb3_fair.zoo.envs.hiring.picture:picture"
    source = "Cimpean et al., FAReL; STATBEL"
    words: ClassVar[Words] = {
        "R": {"title": "performance", "sentence": "What the team gains from those hired and rejected in one episode."},
        "people": "applicants",
        "favourable": "hired",
        "deserving": "qualified",
        "groups": {"man": "men", "woman": "women"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "hire-all": lambda world: of_two(world, 1),
        "reject-all": lambda world: of_two(world, 0),
        "random": lambda world: of_two(world, 0.5),
        # So few that an episode without leaving fills a fifth of the team.
        "hire-at-random": lambda world: of_two(
            world, min(1.0, world.config.team_size / (5 * world.config.episode_length))
        ),
        "threshold-oracle": lambda world: of_two(world, world.goodness() >= world.config.hiring_threshold),
        # Never fills the team, so that the episode goes on.
        "patient-oracle": lambda world: of_two(
            world,
            (world.team_sizes < world.config.team_size - 1) & (world.goodness() >= world.config.hiring_threshold),
        ),
    }

    def __init__(self, n_worlds: int, *, group: Group = "gender", detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, people.HiringConfig, config)
        self.groups = Groups(group, people.ATTRIBUTES)
        self.max_steps = settings.episode_length
        self.max_return = float(settings.episode_length)
        self.action_space = spaces.Discrete(2)
        low, high = np.zeros(23, np.float32), np.ones(23, np.float32)
        low[0], high[0] = -0.05, 1.05
        self.observation_space = spaces.Box(low, high)
        self.fairness_spec = FairnessSpec(
            nominal=people.NOMINAL,
            sensitive=people.SENSITIVE,
            notions=("SP", "EO"),
            history=SlidingWindow(500),
            group=self.groups.source,
            group_names=self.groups.names,
            feedback_missing="ignore",
            feature_names=people.FEATURES,
        )
        size, diversity = settings.team_size, settings.diversity_weight
        numbers = np.arange(4 * (size + 1) + 1)
        self._n_log_n = numbers * np.log(np.maximum(numbers, 1))
        self._inverse = np.where(numbers > 0, 1 / np.maximum(numbers, 1), 0.0)
        # Languages in base 4 are a skill; gender and nationality, in base 2, are diversity.
        language, diverse = settings.skill_share / np.log(4), diversity / 2 / np.log(2)
        self._entropy_weights = np.repeat([language, diverse], 5) * [-1, -1, -1, -1, 1, -1, -1, -1, -1, 2]
        self._entropy_before = np.array(1.0 if settings.entropy == "difference" else 0.0)
        self._skill_share = np.array(settings.skill_share)
        self._skill_scale = 1 / (size * np.array([3, 1, 1, people.YEARS]))
        self._threshold = np.array(settings.hiring_threshold)
        self._place = np.array(1 / size)
        self._size = np.array(size)
        self._full = np.array(size if settings.end_when_full else np.iinfo(np.int64).max)
        self.team = np.zeros((n_worlds, 14), dtype=np.int64)
        """Sums of the members' counts."""
        self.team_noise = np.zeros(n_worlds)
        """In the potential of the present team."""
        self.company = np.zeros((n_worlds, 12), dtype=np.float32)
        """The observation of the present team."""
        self._baseline = np.zeros(n_worlds)  # what the present team takes off everybody's goodness
        self._clock = 0
        self._deadline = np.zeros(n_worlds, dtype=np.int64)
        self._episode = [0] * n_worlds
        self._departures: dict[int, list[tuple[int, int, NDArray[np.int64]]]] = {}
        pool = people.ApplicantPool(settings, self.groups)
        super().__init__(n_worlds, Tapes(n_worlds, pool.columns, pool.draw))

    @property
    def applicants(self) -> people.Applicants:
        """Who is decided on in the coming step."""
        return self.tapes.now

    @property
    def team_sizes(self) -> NDArray[np.int64]:
        """Members of each team (n,)."""
        return self.team[:, MEMBERS]

    def goodness(self) -> NDArray[np.float64]:
        """Of the present applicants (n,), in [-1, 1] (Eq. 18)."""
        return self._prospect()[0]

    def restart(self, which: Array) -> Array:
        for state in (self.team, self.team_noise, self.company, self._baseline):
            state[which] = 0
        self._deadline[which] = self._clock + self.max_steps
        for copy in which.tolist():
            self._episode[copy] += 1
        now = self.tapes.now
        self.tapes.now = now._replace(group=now.group.copy())  # massage() told of those who come no more
        self.tapes.redraw(which, self.restart_streams(which))
        return np.concatenate((self.company[which], self.tapes.now.shown[which]), axis=1)

    def step(self, actions: Array) -> Step:
        now = self.tapes.now
        goodness, team, entropy = self._prospect()
        right = goodness >= self._threshold
        hire = actions.astype(bool) & (self.team_sizes < self._size)  # nobody joins a full team
        action = hire.astype(np.int64)
        reward = _clip(goodness + now.margin) * _SIGN[action]
        feedback = right.astype(np.float64)
        if self.config.feedback == "hired":
            feedback[~hire] = np.nan
        record: Record = {
            "individual": {
                "group": self.groups.record(now.group),
                "features": now.features,
                "action": action,
                "feedback": feedback,
            }
        }
        if self.detail:
            record["detail"] = self._detail(goodness, entropy) | {
                "right_action": right.astype(np.int64),
                "refused": actions.astype(bool) & ~hire,
            }
        hired = np.count_nonzero(hire)
        if hired:
            self._join(hire, team, entropy)
        leavers = self._departures.pop(self._clock, ())
        for leaver in leavers:
            self._leave(*leaver)
        if hired or leavers:
            self.company = self._company()
        self._clock += 1
        self.tapes.advance()
        terminated = self.team_sizes >= self._full
        truncated = (self._deadline <= self._clock) & ~terminated
        obs = np.concatenate((self.company, self.tapes.now.shown), axis=1)
        return obs, reward, terminated, truncated, record

    def massage(self) -> Record:
        return self.groups.massage(self.tapes.now.group)  # also if observations hide them

    def _prospect(self) -> tuple[Array, Array, Array]:
        """Goodness of the present applicants (n,), and counts (n, 14) and entropies (n, 2) of the teams with them."""
        now = self.tapes.now
        team = self.team + now.counts
        entropy = self._entropy(team)
        return _clip(now.merit + entropy[:, 0] + entropy[:, 1] - self._baseline), team, entropy

    def _entropy(self, team: NDArray[np.int64]) -> NDArray[np.float64]:
        """(m, 2): of the languages; of gender and nationality together; weighted as in goodness, 0 for nobody.

        -sum p log p = (n log n - sum c log c) / n for the counts c that make up the total n.
        """
        terms = self._n_log_n[team[:, CATEGORISED]] * self._entropy_weights
        return np.add.reduceat(terms, _STARTS, axis=1) * self._inverse[team[:, TOTALS]]

    def _join(self, hire: NDArray[np.bool_], team: Array, entropy: Array) -> None:
        now = self.tapes.now
        np.copyto(self.team, team, where=hire[:, None])
        np.copyto(self.team_noise, now.team_noise, where=hire)
        np.copyto(self._baseline, self._taken_off(now.team_noise, entropy), where=hire)
        leaves = hire & now.leaves
        if np.count_nonzero(leaves):
            for copy in np.flatnonzero(leaves).tolist():
                last_step = self._clock + int(now.stay[copy]) - 1
                self._departures.setdefault(last_step, []).append((copy, self._episode[copy], now.counts[copy]))

    def _leave(self, copy: int, episode: int, counts: Array) -> None:
        """One employee leaves, with everything that he or she added, unless a new episode has begun since."""
        if episode == self._episode[copy]:
            self.team[copy] -= counts
            self.team_noise[copy] = self.tapes.now.team_noise[copy] if self.team_sizes[copy] else 0.0
            one = slice(copy, copy + 1)
            self._baseline[one] = self._taken_off(self.team_noise[one], self._entropy(self.team[one]))

    def _taken_off(self, team_noise: Array, entropy: Array) -> NDArray[np.float64]:
        """What a team takes off an applicant's goodness: noise in its potential and, for the difference, entropy."""
        return self._skill_share * team_noise + self._entropy_before * (entropy[:, 0] + entropy[:, 1])

    def _company(self) -> NDArray[np.float32]:
        skills = self.team[:, SKILLS] * self._skill_scale
        skills[:, 0] += self.team_noise * self._place
        counts = self.team[:, CATEGORISED].reshape(-1, 2, 5)
        shares = counts * self._inverse[counts[:, :, 4:]]
        return np.concatenate((skills, shares[:, 0, :4], shares[:, 1, :4]), axis=1, dtype=np.float32)

    def _detail(self, goodness: Array, entropy: Array) -> Record:
        now = self.tapes.now
        gain = entropy - self._entropy_before * self._entropy(self.team)
        return {
            "goodness": goodness,
            "skill": now.merit - self._skill_share * self.team_noise + gain[:, 0],
            "diversity": gain[:, 1],
            "noise": now.reward_noise,
            "bias": now.bias,
            "team_size": self.team_sizes.copy(),
        }


def _clip(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(np.maximum(values, _MINUS_ONE), _ONE)
