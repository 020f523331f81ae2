"""Are incidents Poisson?"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import poisson

from sb3_fair.zoo.envs.attention.incidents import poisson_quantile


@pytest.mark.parametrize(("low", "high"), [(0, 0.5), (0, 12), (9, 30), (30, 400), (400, 5000)])
def test_counts_are_the_quantiles_of_the_distribution(low, high):
    rng = np.random.default_rng(0)
    rates = rng.uniform(low, high, 60_000)
    uniforms = rng.random(60_000)
    uniforms[:500] = 10 ** -rng.uniform(1, 9, 500)
    uniforms[500:1000] = 1 - 10 ** -rng.uniform(1, 9, 500)
    assert_array_equal(poisson_quantile(uniforms, rates), poisson.ppf(uniforms, rates))


def test_extreme_numbers_have_counts():
    uniforms = np.array([0, 0, 0.5, 1 - 2.0**-53, 1 - 2.0**-53, 1 - 2.0**-53])
    rates = np.array([0, 3, 0, 0, 3, 3000])
    counts = poisson_quantile(uniforms, rates)
    assert_array_equal(counts[:4], 0)
    assert 20 < counts[4] < 40 and 3400 < counts[5] < 3600


def test_every_count_depends_on_its_own_number_and_rate_alone():
    rng = np.random.default_rng(1)
    uniforms, rates = rng.random((40, 5)), rng.uniform(0, 25, (40, 5))
    counts = poisson_quantile(uniforms, rates)
    assert_array_equal(counts, [poisson_quantile(u, r) for u, r in zip(uniforms, rates, strict=True)])


def test_means_and_variances_are_the_rates():
    rng = np.random.default_rng(2)
    for rate in (0.3, 4, 8, 25, 300):
        counts = poisson_quantile(rng.random(50_000), np.full(50_000, rate, dtype=float))
        assert counts.mean() == pytest.approx(rate, abs=3 * (rate / 50_000) ** 0.5)
        assert counts.var() == pytest.approx(rate, rel=0.05)
