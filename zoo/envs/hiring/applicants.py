"""Applicants of job hiring."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sb3_fair.fairness.arguments import Proportion, Range, checked
from sb3_fair.zoo.envs.groups import Groups
from sb3_fair.zoo.envs.hiring.population import LANGUAGES, Population
from sb3_fair.zoo.envs.settings import parameter
from sb3_fair.zoo.envs.tables import ages, table

FEATURES = ("age", "gender", "degree", "extra_degree", "nationality", "married", "experience", *LANGUAGES)
NOMINAL = (1, 4, 5, 7, 8, 9, 10)
SENSITIVE = (0, 1, 4, 5)
ATTRIBUTES = {"gender": ("man", "woman"), "nationality": ("Belgian", "foreign")}

YEARS = 47
"""Scale of age - 18 and of experience."""
NOISE = 0.01
BIAS = 0.1
PAPER = "Cimpean et al., "


@checked
@dataclass(frozen=True)
class HiringConfig:
    """Parameters of the scenario.

    :raises ValueError: if one is outside what is allowed
    """

    team_size: int = parameter(100, "employees wanted", PAPER + "section 4.1")
    episode_length: int = parameter(1000, "applicants at most", PAPER + "section 4.1")
    hiring_threshold: Annotated[float, Range("[-1, 1]")] = parameter(
        0.5, "goodness from which hiring is right", PAPER + "Eq. 19"
    )
    diversity_weight: Proportion = parameter(0.0, "share of diversity in goodness", PAPER + "Eq. 18")
    entropy: Literal["difference", "level"] = parameter(
        "difference", "how much joining changes the entropy, or 'level': the entropy then", PAPER + "Eq. 18"
    )
    leaving: bool = parameter(True, "whether employees leave", PAPER + "Appendix A")
    steps_per_year: Annotated[float, Range("[1, 1e9]")] = parameter(
        1000, "applicants a year", "chosen here: the figures on leaving are yearly"
    )
    population: Literal["belgian", "gender", "nationality-gender", "marital"] = parameter(
        "belgian", "who applies", PAPER + "Appendix A"
    )
    bias: Literal[0, 1, 2] = parameter(
        0, "whose hiring earns 0.1 more: 0 nobody's, 1 men's, 2 Belgian men's", PAPER + "section 4.1"
    )
    feedback: Literal["all", "hired"] = parameter("all", "for whom the right action is known", PAPER + "Eq. 21")
    end_when_full: bool = parameter(True, "whether a full team ends the episode", PAPER + "section 4.1")
    noise: bool = parameter(True, "whether potential, goodness and reward have normal noise", PAPER + "Eqs. 18-20")
    hide_sensitive: bool = parameter(False, "whether the observation blanks sensitive features", "chosen here")

    @property
    def skill_share(self) -> float:
        """What each of the five skills counts in goodness."""
        return (1 - self.diversity_weight) / 5


class Applicants(NamedTuple):
    """Everything about applicants that depends on no action; arrays (rows, m, ...)."""

    features: NDArray[np.float64]
    """(..., 11): the individual as fairness sees it."""
    shown: NDArray[np.float32]
    """(..., 11): the individual as the observation shows it."""
    counts: NDArray[np.int64]
    """(..., 14): what joining adds to the team's counts: skills held, degree, extra degree, years of experience; the
    four languages and their number; man, woman, Belgian, foreign and one member."""
    merit: NDArray[np.float64]
    """Their own part of their goodness, whatever the team (Eq. 18), with its noise."""
    reward_noise: NDArray[np.float64]
    bias: NDArray[np.float64]
    margin: NDArray[np.float64]
    """Noise and bias minus the threshold: what hiring earns besides goodness (Eq. 19)."""
    team_noise: NDArray[np.float64]
    """Noise in the potential of the team if it changes in their step."""
    stay: NDArray[np.int64]
    """Steps they would stay, the one that hires them included."""
    leaves: NDArray[np.bool_]
    """Whether that is short enough to matter."""
    group: NDArray[np.int64]
    """(..., attributes): codes of their groups."""


class ApplicantPool:
    """Draws applicants from uniforms.

    Noise is cut at five standard deviations, so that the potential stays within the bounds of the observation.
    """

    columns = Population.columns + 4
    """Uniforms per applicant."""

    def __init__(self, config: HiringConfig, groups: Groups) -> None:
        self.config = config
        self.population = Population(config.population)
        cells = self.population.cells
        degree, extra = cells.education > 0, cells.education > 1
        later = np.zeros_like(cells.age)
        known = [(cells.age - 18) / YEARS, cells.gender, degree, extra, cells.nationality, cells.married]
        self._features = np.stack([*known, *[later] * 5], axis=-1)
        kinds = [1 - cells.gender, cells.gender, 1 - cells.nationality, cells.nationality]
        adds = [degree + 1 * extra, degree, extra, *[later] * 6, *kinds, later + 1]
        self._counts = np.stack(adds, axis=-1).astype(np.int64)
        favoured = (cells.gender == 0) & ((cells.nationality == 0) | (config.bias == 1))
        self._bias = BIAS * (favoured & (config.bias > 0))
        self._group = groups.codes(gender=cells.gender, nationality=cells.nationality)
        yearly = {age: float(row["probability"]) for row in table("hiring/leaving") for age in ages(row["ages"])}
        # P(stays another step) = P(stays another year) ** (1 / steps per year): here its logarithm.
        self._log_stay = np.log1p([-yearly[age] for age in cells.age.tolist()]) / config.steps_per_year

    def draw(self, uniforms: NDArray[np.float64]) -> Applicants:
        """Applicants (...) from uniforms (..., 7)."""
        cell, experience, languages = self.population.draw(uniforms)
        features, counts = self._features[cell], self._counts[cell]
        features[..., 6] = experience / YEARS
        features[..., 7:] = languages
        counts[..., 0] += experience > 0
        counts[..., 3] = experience
        counts[..., 4:8] = languages
        counts[..., 8] = languages.sum(axis=-1)
        shown = features.astype(np.float32)
        if self.config.hide_sensitive:
            shown[..., SENSITIVE] = 0
        noise = NOISE * self.config.noise * np.clip(ndtri(uniforms[..., 3:6]), -5, 5)
        skills = counts[..., 0] / 3 + counts[..., 1] + counts[..., 2] + features[..., 6]
        bias = self._bias[cell]
        stay = (np.log1p(-uniforms[..., 6]) / self._log_stay[cell]).astype(np.int64) + 1
        return Applicants(
            features=features,
            shown=shown,
            counts=counts,
            merit=self.config.skill_share * (skills + noise[..., 0]),
            reward_noise=noise[..., 1],
            bias=bias,
            margin=noise[..., 1] + bias - self.config.hiring_threshold,
            team_noise=noise[..., 2],
            stay=stay,
            leaves=(stay <= self.config.episode_length) & self.config.leaving,
            group=self._group[cell],
        )
