"""Are the applicants those of the published tables?"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sb3_fair.zoo.envs.hiring.population import LANGUAGES, VARIANTS, Population, cells, language_sets

DRAWS = 200_000

# population: (BE men, BE women, foreign men, foreign women), P(man), P(Belgian), P(married), P(degree), P(extra), age
MARGINALS = {
    "belgian": ((0.304186, 0.312575, 0.195252, 0.187986), 0.499439, 0.616761, 0.360789, 0.665301, 0.384033, 39.40),
    "gender": ((0.426339, 0.187335, 0.273661, 0.112665), 0.70, 0.613674, 0.356986, 0.656489, 0.372947, 39.38),
    "nationality-gender": ((0.40, 0.40, 0.15, 0.05), 0.55, 0.80, 0.353269, 0.672924, 0.379875, 39.97),
    "marital": ((0.334174, 0.276709, 0.215826, 0.173291), 0.55, 0.610884, 0.55, 0.656454, 0.387302, 40.96),
}

# P(bracket | nationality, gender) of 18-19, 20-24, ..., 60-64
BRACKETS = {
    (0, 0): (0.01737, 0.11286, 0.12250, 0.12529, 0.11960, 0.11584, 0.11018, 0.10153, 0.09253, 0.08229),
    (0, 1): (0.01619, 0.11077, 0.12472, 0.12151, 0.10931, 0.10658, 0.10765, 0.10808, 0.10090, 0.09429),
    (1, 0): (0.00891, 0.09280, 0.15139, 0.18143, 0.15868, 0.13464, 0.10125, 0.07479, 0.05424, 0.04187),
    (1, 1): (0.00880, 0.11793, 0.17497, 0.17799, 0.14331, 0.11434, 0.08982, 0.07175, 0.05682, 0.04427),
}


@pytest.fixture(scope="module")
def people():
    population = Population("belgian")
    drawn = population.draw(np.random.default_rng(0).random((DRAWS, Population.columns)))
    return population.cells, drawn


@pytest.mark.parametrize("variant", VARIANTS)
def test_marginals_follow_from_the_weights(variant):
    kinds = cells(variant)
    share = kinds.share
    combined, man, belgian, married, degree, extra, age = MARGINALS[variant]
    for (nationality, gender), wanted in zip(BRACKETS, combined, strict=True):
        among = (kinds.nationality == nationality) & (kinds.gender == gender)
        assert share[among].sum() == pytest.approx(wanted, abs=1e-4)
    assert len(share) == 1120
    assert share.sum() == pytest.approx(1)
    assert share[kinds.gender == 0].sum() == pytest.approx(man, abs=1e-4)
    assert share[kinds.nationality == 0].sum() == pytest.approx(belgian, abs=1e-4)
    assert share[kinds.married == 1].sum() == pytest.approx(married, abs=1e-4)
    assert share[kinds.education > 0].sum() == pytest.approx(degree, abs=1e-4)
    assert share[kinds.education > 1].sum() == pytest.approx(extra, abs=1e-4)
    assert share @ kinds.age == pytest.approx(age, abs=0.01)


def test_reweighting_sets_the_cells_asked_for_and_keeps_the_rest_in_proportion():
    plain = cells("belgian")
    for variant, requested in VARIANTS.items():
        kinds = cells(variant)
        for (nationality, gender, married), share in requested.items():
            among = np.ones(len(kinds.share), dtype=bool)
            for column, value in ((kinds.nationality, nationality), (kinds.gender, gender), (kinds.married, married)):
                among &= True if value is None else column == value
            assert kinds.share[among].sum() == pytest.approx(share)
            assert_allclose(kinds.share[among] / share, plain.share[among] / plain.share[among].sum(), atol=1e-15)


def test_ages_and_education_given_nationality_and_gender():
    kinds = cells("belgian")
    starts = np.array([18, *range(20, 65, 5)])
    for (nationality, gender), shares in BRACKETS.items():
        among = (kinds.nationality == nationality) & (kinds.gender == gender)
        bracket = np.searchsorted(starts, kinds.age[among], side="right") - 1
        share = kinds.share[among] / kinds.share[among].sum()
        assert_allclose(np.bincount(bracket, share), shares, atol=1e-4)
    young_men = (kinds.nationality == 0) & (kinds.gender == 0) & (kinds.age < 20)
    education = np.bincount(kinds.education[young_men], kinds.share[young_men], minlength=3)
    assert_allclose(education / education.sum(), (0.676, 0.324, 0.0), atol=1e-3)


def test_draws_follow_the_shares(people):
    kinds, drawn = people
    assert_allclose(np.bincount(kinds.gender[drawn[0]]) / DRAWS, (0.499, 0.501), atol=0.01)
    assert_allclose(np.bincount(kinds.education[drawn[0]]) / DRAWS, (0.335, 0.281, 0.384), atol=0.01)
    assert kinds.age[drawn[0]].mean() == pytest.approx(39.4, abs=0.1)


def test_languages_by_education(people):
    kinds, drawn = people
    education = kinds.education[drawn[0]]
    assert_allclose(drawn[2].mean(axis=0), (0.53, 0.67, 0.475, 0.107), atol=0.01)
    spoken = ((0.49, 0.58, 0.19, 0.046), (0.515, 0.67, 0.455, 0.096), (0.573, 0.757, 0.736, 0.170))
    numbers = ((0.768, 0.174, 0.048, 0.011), (0.501, 0.299, 0.164, 0.036), (0.227, 0.394, 0.293, 0.086))
    for level in range(3):
        languages = drawn[2][education == level]
        assert_allclose(languages.mean(axis=0), spoken[level], atol=0.01)
        assert_allclose(np.bincount(languages.sum(axis=1), minlength=5)[1:] / len(languages), numbers[level], atol=0.01)


def test_language_sets_are_those_of_drawing_one_after_the_other():
    """The same by simulation, for the highest education."""
    rng = np.random.default_rng(1)
    weights, numbers = np.array([0.087, 0.216, 0.466, 0.020]), np.array([0.108, 0.345, 0.275, 0.086])
    counts = np.zeros(16)
    for _ in range(20_000):
        if rng.random() < 0.186:
            spoken = {int(rng.integers(2))}
        else:
            m = rng.choice(4, p=numbers / numbers.sum()) + 1
            spoken = set(rng.choice(4, size=m, replace=False, p=weights / weights.sum()).tolist())
            if not spoken & {0, 1}:
                spoken.add(int(rng.integers(2)))
        counts[sum(1 << language for language in spoken)] += 1
    sets, probability = language_sets()
    assert_allclose(counts / counts.sum(), probability[2], atol=0.012)
    assert_allclose(probability.sum(axis=1), 1)
    assert LANGUAGES[0] == "dutch" and list(sets[0b0101]) == [1, 0, 1, 0]
    assert not probability[:, [0b0000, 0b0100, 0b1000, 0b1100]].any()


def test_experience_is_proportional_to_the_years_passed_plus_one(people):
    kinds, drawn = people
    assert drawn[1].mean() == pytest.approx(12.5, abs=0.1)
    assert drawn[1].std() == pytest.approx(10.2, abs=0.1)
    population = Population("belgian")
    grid = (np.arange(10_000) + 0.5) / 10_000
    for education, age, most in ((0, 24, 6), (1, 24, 3), (2, 24, 1), (2, 20, 0)):
        cell = np.flatnonzero((kinds.education == education) & (kinds.age == age))[0]
        assert kinds.max_experience[cell] == most
        shares = np.concatenate([[0], np.cumsum(kinds.share)])
        uniforms = np.column_stack([np.full(len(grid), shares[cell : cell + 2].mean()), grid, grid])
        years = population.draw(uniforms)[1]
        wanted = np.arange(1, most + 2) / np.arange(1, most + 2).sum()
        assert_allclose(np.bincount(years) / len(grid), wanted, atol=2e-4)


def test_the_largest_and_smallest_uniforms_are_people():
    population = Population("belgian")
    for uniform in (0.0, np.nextafter(1.0, 0.0)):
        cells_, years, languages = population.draw(np.full((1, 3), uniform))
        assert 0 <= cells_[0] < 1120 and 0 <= years[0] <= 46 and languages[0].sum() >= 1
