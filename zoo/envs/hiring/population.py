"""The population of Belgium, from which applicants come.

Aggregate figures of STATBEL, the Belgian statistical office (statbel.fgov.be): employment and unemployment 2023 by
age, gender, nationality and education; civil status 2022; languages in the survey of adult education.
"""

from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.tables import ages, cumulated, table

LANGUAGES = ("dutch", "french", "english", "german")
EDUCATION = ("none", "degree", "extra_degree")
NATIONALITIES = ("belgian", "foreign")
GENDERS = ("male", "female")

VARIANTS: Mapping[str, Mapping[tuple[int | None, int | None, int | None], float]] = {
    "belgian": {},
    "gender": {(None, 0, None): 0.7, (None, 1, None): 0.3},
    "nationality-gender": {(0, 0, None): 0.40, (0, 1, None): 0.40, (1, 0, None): 0.15, (1, 1, None): 0.05},
    "marital": {(None, 0, 0): 0.25, (None, 0, 1): 0.30, (None, 1, 0): 0.20, (None, 1, 1): 0.25},
}
"""Requested shares of (nationality, gender, married), None: any; everything else stays in proportion."""


class Cells(NamedTuple):
    """The kinds of applicants, arrays (cells,); ``share`` sums to 1."""

    nationality: NDArray[np.int64]
    gender: NDArray[np.int64]
    age: NDArray[np.int64]
    education: NDArray[np.int64]
    married: NDArray[np.int64]
    share: NDArray[np.float64]

    @property
    def max_experience(self) -> NDArray[np.int64]:
        """Years since the end of education: three for a degree, two more for an extra one."""
        return np.maximum(0, self.age - 18 - 3 * (self.education > 0) - 2 * (self.education > 1))


@cache
def cells(variant: str) -> Cells:
    """The population: a share is uniform over the single years of a bracket, and marriage depends on age, nationality
    and gender only."""
    marriage = {int(row["age"]): row for row in table("hiring/marriage")}
    rows: list[tuple[Any, ...]] = []
    for row in table("hiring/population"):
        years = ages(row["ages"])
        for age in years:
            married = float(marriage[age][f"{row['nationality']}_{row['gender']}"])
            who = NATIONALITIES.index(row["nationality"]), GENDERS.index(row["gender"]), age
            for level, name in enumerate(EDUCATION):
                share = float(row[name]) / len(years)
                if share > 0:
                    rows += [(*who, level, 0, share * (1 - married)), (*who, level, 1, share * married)]
    nationality, gender, age_, education, married_, share_ = map(np.array, zip(*rows, strict=True))
    share_ = share_ / share_.sum()
    factor = np.ones_like(share_)
    for wanted, requested in VARIANTS[variant].items():
        among = np.ones(len(share_), dtype=bool)
        for column, value in zip((nationality, gender, married_), wanted, strict=True):
            among &= (column == value) if value is not None else True
        factor[among] = requested / share_[among].sum()
    share_ = share_ * factor
    return Cells(nationality, gender, age_, education, married_, share_ / share_.sum())


@cache
def language_sets() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All sets of languages (sets, 4), 0/1, and their probabilities (education, sets).

    No foreign language: Dutch or French. Otherwise a number of languages, drawn one after the other with probabilities
    proportional to their weights among those left; if neither Dutch nor French is among them one of the two is added.
    """
    sets = np.array([[number >> bit & 1 for bit in range(4)] for number in range(16)])
    probability = np.zeros((len(EDUCATION), len(sets)))
    for level, row in enumerate(table("hiring/languages")):
        numbers = np.array([float(row[f"number_{m}"]) for m in (1, 2, 3, 4)])
        weights = [float(row[language]) for language in LANGUAGES]
        foreign = 1 - float(row["no_foreign"])
        probability[level, [0b01, 0b10]] += float(row["no_foreign"]) / 2
        for m, share in enumerate(numbers / numbers.sum(), start=1):
            for order in permutations(range(4), m):
                left, chance = sum(weights), foreign * share
                for language in order:
                    chance *= weights[language] / left
                    left -= weights[language]
                spoken = sum(1 << language for language in order)
                for added in (0b00,) if spoken & 0b11 else (0b01, 0b10):
                    probability[level, spoken | added] += chance if spoken & 0b11 else chance / 2
    return sets, probability


class Population:
    """Draws applicants from uniforms, so that equal uniforms are equal people.

    :param variant: a key of :data:`VARIANTS`
    """

    columns = 3
    """Uniforms per applicant."""

    def __init__(self, variant: str) -> None:
        self.cells = cells(variant)
        self._shares = cumulated(self.cells.share)
        self._years = self.cells.max_experience
        self._sets, probability = language_sets()
        self._languages = (cumulated(probability) + np.arange(len(EDUCATION))[:, None]).ravel()

    def draw(self, uniforms: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
        """Cells of applicants (...), years of experience, and languages (..., 4), from uniforms (..., 3)."""
        cell = np.searchsorted(self._shares, uniforms[..., 0], side="right")
        # P(year) is proportional to year + 1 (Cimpean et al., Eq. 16), so its sum up to a year is a triangular number.
        years = self._years[cell]
        passed = np.sqrt(uniforms[..., 1] * ((years + 1) * (years + 2)) + 0.25) - 0.5
        experience = np.minimum(passed.astype(np.int64), years)
        education = self.cells.education[cell]
        drawn = np.searchsorted(self._languages, education + uniforms[..., 2], side="right")
        drawn = np.minimum(drawn - len(self._sets) * education, len(self._sets) - 1)
        return cell, experience, self._sets[drawn]
