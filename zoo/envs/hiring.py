"""Whom does a company hire, one applicant after the other, to build a skilled and diverse team?

The job-hiring environment of Cimpean et al. (FAReL), with applicants from STATBEL's figures on Belgium.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.hiring_applicants import (
    ATTRIBUTES,
    FEATURES,
    NOMINAL,
    SENSITIVE,
    YEARS,
    ApplicantPool,
    Applicants,
    HiringConfig,
)
from sb3_fair.zoo.envs.settings import configure, require_integer, require_one_of
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Record, Rule, Step, World

REJECT, HIRE = 0, 1

# Columns of the counts (Applicants.counts). The totals are those of the four languages and of the four kinds of people.
SKILLS, CATEGORIES, TOTALS, MEMBERS = slice(0, 4), slice(4, 12), slice(12, 14), 13


def _hire_all(world: "HiringWorld", rng: np.random.Generator) -> Array:
    return np.full(world.n_worlds, HIRE)


def _reject_all(world: "HiringWorld", rng: np.random.Generator) -> Array:
    return np.full(world.n_worlds, REJECT)


def _random(world: "HiringWorld", rng: np.random.Generator) -> Array:
    return rng.integers(2, size=world.n_worlds)


def _hire_at_random(world: "HiringWorld", rng: np.random.Generator) -> Array:
    """Hires so few that an episode without leaving fills a fifth of the team."""
    probability = min(1.0, world.config.team_size / (5 * world.config.episode_length))
    return (rng.random(world.n_worlds) < probability).astype(np.int64)


def _threshold_oracle(world: "HiringWorld", rng: np.random.Generator) -> Array:
    """Hires whoever is good enough."""
    return (world.goodness() >= world.config.hiring_threshold).astype(np.int64)


def _patient_oracle(world: "HiringWorld", rng: np.random.Generator) -> Array:
    """Hires whoever is good enough, but never fills the team, so that the episode goes on."""
    return np.where(world.team_sizes < world.config.team_size - 1, _threshold_oracle(world, rng), REJECT)


class HiringWorld(World):
    """A company sees one applicant per step and rejects (0) or hires (1).

    Observation: the company (0-11): potential, degrees, extra degrees and experience per place in the team, shares of
    the languages, of men and women, of Belgians and foreigners; then the applicant (12-22). Reward (Cimpean et al.,
    Eqs. 18-20): the applicant's goodness minus the threshold for hiring; its negative for rejecting. An episode is
    terminated when the team is full and truncated after ``episode_length`` applicants.

    With ``entropy="level"`` rejecting everybody is as good as hiring whoever is good enough, since it keeps the
    episode going; with ``"difference"`` the latter is clearly better.

    :param n_worlds: number of copies
    :param group: what group notions compare: ``"gender"``, ``"nationality"``, a tuple for their product partition, or
        a list of several
    :param detail: whether records have ``detail``: goodness, its parts, and those of the reward
    :param config: fields of :class:`~sb3_fair.zoo.envs.hiring_applicants.HiringConfig`
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "hire-all": _hire_all,
        "reject-all": _reject_all,
        "random": _random,
        "hire-at-random": _hire_at_random,
        "threshold-oracle": _threshold_oracle,
        "patient-oracle": _patient_oracle,
    }

    def __init__(self, n_worlds: int, *, group: Group = "gender", detail: bool = False, **config: Any) -> None:
        require_integer("n_worlds", n_worlds, 1)
        require_one_of("detail", detail, (False, True))
        self.config = settings = configure(HiringConfig, config)
        self.detail = detail
        self.groups = Groups(group, ATTRIBUTES)
        self.max_steps = settings.episode_length
        self.max_return = float(settings.episode_length)
        self.action_space = spaces.Discrete(2)
        low, high = np.zeros(23, np.float32), np.ones(23, np.float32)
        low[0], high[0] = -0.05, 1.05
        self.observation_space = spaces.Box(low, high)
        self.fairness_spec = FairnessSpec(
            nominal=NOMINAL,
            sensitive=SENSITIVE,
            notions=("SP", "EO"),
            history=SlidingWindow(500),
            group_names=self.groups.names,
            feature_names=FEATURES,
        )
        size, diversity = settings.team_size, settings.diversity_weight
        self._skill_share = (1 - diversity) / 5
        self._skill_scale = 1 / (size * np.array([3, 1, 1, YEARS]))
        # Languages in base 4 count as a skill; gender and nationality, in base 2, are diversity.
        self._entropy_weights = np.array([self._skill_share / np.log(4), diversity / 2 / np.log(2)])
        self._entropy_before = 1.0 if settings.entropy == "difference" else 0.0
        self._categorisations = np.array([1, 2])  # the totals are split by language; by gender and by nationality
        numbers = np.arange(4 * (size + 1) + 1)
        self._n_log_n = numbers * np.log(np.maximum(numbers, 1))
        self.team = np.zeros((n_worlds, 14), dtype=np.int64)
        """Sums of the members' counts."""
        self.entropy = np.zeros((n_worlds, 2))
        """Of the present team, weighted as in goodness: languages; gender and nationality."""
        self.team_noise = np.zeros(n_worlds)
        self.time = np.zeros(n_worlds, dtype=np.int64)
        self._clock = 0
        self._episode = [0] * n_worlds
        self._departures: dict[int, list[tuple[int, int, NDArray[np.int64]]]] = {}
        pool = ApplicantPool(settings, self.groups)
        super().__init__(n_worlds, Tapes(n_worlds, pool.columns, pool.draw))

    @property
    def applicants(self) -> Applicants:
        """Who is decided on in the coming step."""
        return self.tapes.now

    @property
    def team_sizes(self) -> NDArray[np.int64]:
        """Members of each team (n,)."""
        return self.team[:, MEMBERS]

    def goodness(self) -> NDArray[np.float64]:
        """Of the present applicants (n,), in [-1, 1] (Eq. 18)."""
        skill, diversity, _, _ = self._prospect()
        return _clip(skill + diversity)

    def restart(self, which: Array) -> Array:
        self.team[which] = 0
        self.entropy[which] = 0
        self.team_noise[which] = 0
        self.time[which] = 0
        for index in which.tolist():
            self._episode[index] += 1
        self.tapes.redraw(which, [self.reset_streams[index] for index in which.tolist()])
        return self._observation()[which]

    def step(self, actions: Array) -> Step:
        now, config = self.tapes.now, self.config
        skill, diversity, team, entropy = self._prospect()
        goodness = _clip(skill + diversity)
        right = goodness >= config.hiring_threshold
        hire = actions == HIRE
        if not config.end_when_full:
            hire &= self.team_sizes < config.team_size
        worth = _clip(goodness - config.hiring_threshold + now.reward_noise + now.bias)
        reward = np.where(hire, worth, -worth)
        feedback = right.astype(np.float64)
        if config.feedback == "hired":
            feedback[~hire] = np.nan
        record: Record = {
            "individual": {
                "group": self.groups.record(now.group),
                "features": now.features,
                "action": hire.astype(np.int64),
                "feedback": feedback,
            }
        }
        column = hire[:, None]
        self.team = np.where(column, team, self.team)
        self.entropy = np.where(column, entropy, self.entropy)
        self.team_noise = np.where(hire, now.team_noise, self.team_noise)
        self._leave(hire)
        if self.detail:
            record["detail"] = {
                "goodness": goodness,
                "skill": skill,
                "diversity": diversity,
                "right_action": right.astype(np.int64),
                "noise": now.reward_noise,
                "bias": now.bias,
                "refused": (actions == HIRE) & ~hire,
                "team_size": self.team_sizes.copy(),
            }
        self.time += 1
        self._clock += 1
        terminated = (self.team_sizes >= config.team_size) & config.end_when_full
        truncated = (self.time >= config.episode_length) & ~terminated
        self.tapes.advance()
        return self._observation(), reward, terminated, truncated, record

    def _prospect(self) -> tuple[Array, Array, Array, Array]:
        """If the present applicants joined: their skill and diversity parts (n,), and the counts and entropies then."""
        now = self.tapes.now
        team = self.team + now.counts
        entropy = self._entropy(team)
        gain = entropy - self._entropy_before * self.entropy
        skill = self._skill_share * (now.merit - self.team_noise) + gain[:, 0]
        return skill, gain[:, 1], team, entropy

    def _entropy(self, team: NDArray[np.int64]) -> NDArray[np.float64]:
        """(m, 2): -sum p log p = (n log n - sum c log c) / n of the counts c (m, 14), 0 for an empty team."""
        terms = self._n_log_n[team[:, CATEGORIES.start :]]
        spread = terms[:, 8:] * self._categorisations - terms[:, :8].reshape(-1, 2, 4).sum(axis=2)
        return spread / np.maximum(team[:, TOTALS], 1) * self._entropy_weights

    def _leave(self, hired: NDArray[np.bool_]) -> None:
        """Plans when those just hired leave and removes whoever leaves in this step."""
        now = self.tapes.now
        for copy in np.flatnonzero(hired & (now.stay <= self.max_steps - self.time)).tolist():
            last_step = self._clock + int(now.stay[copy]) - 1
            self._departures.setdefault(last_step, []).append((copy, self._episode[copy], now.counts[copy]))
        for copy, episode, counts in self._departures.pop(self._clock, ()):
            if episode == self._episode[copy]:
                self.team[copy] -= counts
                self.entropy[copy] = self._entropy(self.team[copy, None])
                self.team_noise[copy] = now.team_noise[copy] if self.team[copy, MEMBERS] else 0.0

    def _observation(self) -> NDArray[np.float32]:
        team, n = self.team, self.n_worlds
        obs = np.empty((n, 23), dtype=np.float32)
        np.multiply(team[:, SKILLS], self._skill_scale, out=obs[:, SKILLS])
        obs[:, 0] += self.team_noise / self.config.team_size
        totals = np.maximum(team[:, TOTALS], 1)[:, :, None]
        np.divide(team[:, CATEGORIES].reshape(n, 2, 4), totals, out=obs[:, CATEGORIES].reshape(n, 2, 4))
        obs[:, 12:] = self.tapes.now.shown
        return obs

    def render(self, index: int) -> NDArray[np.uint8]:
        from sb3_fair.zoo.envs.hiring_picture import picture  # matplotlib is slow to import

        return picture(self, index)


def _clip(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(np.maximum(values, -1.0), 1.0)


def _variants() -> dict[str, dict[str, Any]]:
    populations = {"": "belgian", "-Gender": "gender", "-NationalityGender": "nationality-gender", "-Marital": "marital"}
    ids: dict[str, dict[str, Any]] = {"sb3_fair/JobHiring-Small-v0": {"team_size": 20, "episode_length": 100}}
    for name, population in populations.items():
        for suffix, bias in {"": 0, "-BiasMen": 1, "-BiasBelgianMen": 2}.items():
            ids[f"sb3_fair/JobHiring{name}{suffix}-v0"] = {"population": population, "bias": bias}
    return ids


HIRING_IDS = _variants()
"""Settings of the registered IDs; everything else has its default."""
