"""Are the welfare functions the formulas they are named after?"""

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.fairness import WELFARES, Welfare, find_welfare

# Not so tiny that the plain formulas would divide by a square of 0
amounts = st.one_of(st.integers(0, 30).map(float), st.floats(1e-6, 100))
statuses = st.lists(amounts, min_size=1, max_size=6)
signed = st.lists(st.floats(-100, 100), min_size=1, max_size=6)


def gini(u):
    mean = sum(u) / len(u)
    return sum(abs(x - y) for x in u for y in u) / (2 * len(u) ** 2 * mean) if mean else 0.0


def alpha_fair(u, alpha):
    total = 0.0
    for x in u:
        if alpha >= 1 and x <= 0:
            return -math.inf
        total += math.log(x) if alpha == 1 else x ** (1 - alpha) / (1 - alpha)
    return total


def generalised_gini(u, weights):
    return sum(w * x for w, x in zip(weights, sorted(u), strict=True))


def parity(u, groups):
    sums = dict.fromkeys(groups, 0.0)
    for x, group in zip(u, groups, strict=True):
        sums[group] += x
    return -(max(sums.values()) - min(sums.values()))


FORMULAS = {
    "utilitarian": sum,
    "rawls": min,
    "nash": math.prod,
    "log_nash": lambda u: sum(math.log(x + 1) for x in u),
    "nash_geometric": lambda u: math.prod(u) ** (1 / len(u)),
    "gini": gini,
    "neg_gini": lambda u: -gini(u),
    "gini_welfare": lambda u: sum(u) / len(u) * (1 - gini(u)),
    "alpha_fair": lambda u: alpha_fair(u, 0.5),
    "jain": lambda u: sum(u) ** 2 / (len(u) * sum(x * x for x in u)) if any(u) else 1.0,
    "ggf": lambda u: generalised_gini(u, [2.0**-k for k in range(len(u))]),
    "relaxed_parity": lambda u: parity(u, range(len(u))),
}

# u: utilitarian, rawls, nash, log_nash, gini, gini_welfare, jain, alpha_fair .5, alpha_fair 2 (offset 1), ggf
TABLE = {
    (6, 8, 10): (24, 6, 480, 6.541030, 0.111111, 7.111111, 0.96, 16.880389, -0.344877, 12.5),
    (8, 8, 8): (24, 8, 512, 6.591674, 0, 8, 1, 16.970563, -0.333333, 14),
    (0, 3, 9): (12, 0, 0, 3.688879, 0.5, 2, 0.533333, 9.464102, -1.35, 3.75),
    (2, 1, 1): (4, 1, 2, 2.484907, 0.166667, 1.111111, 0.888889, 6.828427, -1.333333, 2),
}
COLUMNS = (
    *(Welfare(name) for name in ("utilitarian", "rawls", "nash", "log_nash", "gini", "gini_welfare", "jain")),
    Welfare("alpha_fair", alpha=0.5),
    Welfare("alpha_fair", alpha=2, offset=1),
    Welfare("ggf", weights=(1, 0.5, 0.25)),
)


@pytest.mark.parametrize("column", range(len(COLUMNS)), ids=[welfare.name for welfare in COLUMNS])
def test_worked_examples(column):
    values = COLUMNS[column](list(TABLE))
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, [row[column] for row in TABLE.values()], atol=5e-7)


def test_every_name_has_a_formula_here():
    assert set(FORMULAS) == set(WELFARES)
    assert all(name == formula.name and formula.title for name, formula in WELFARES.items())


@given(u=statuses)
def test_each_function_is_its_formula(u):
    for name, formula in FORMULAS.items():
        np.testing.assert_allclose(Welfare(name)(u), formula(u), rtol=1e-9, atol=1e-9, err_msg=name)


@given(u=signed.filter(lambda u: abs(sum(u)) > 1e-3))
def test_functions_without_products_roots_and_logarithms_take_losses_too(u):
    u = [round(x, 3) for x in u]
    for name in ("utilitarian", "rawls", "gini_welfare", "jain", "ggf", "relaxed_parity"):
        np.testing.assert_allclose(Welfare(name)(u), FORMULAS[name](u), rtol=1e-7, atol=1e-7)


@given(u=statuses, offset=st.floats(0.5, 3))
def test_the_offset_is_added_to_every_entry(u, offset):
    shifted = [x + offset for x in u]
    for name in WELFARES:
        assert Welfare(name, offset=offset)(u) == Welfare(name, offset=0)(shifted), name


@given(u=statuses, alpha=st.floats(0, 3), offset=st.sampled_from([0.0, 1.0]))
def test_alpha_fairness_is_its_formula(u, alpha, offset):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = Welfare("alpha_fair", alpha=alpha, offset=offset)(u)
    np.testing.assert_allclose(value, alpha_fair([x + offset for x in u], alpha), rtol=1e-9)


@given(u=signed, data=st.data())
def test_generalised_gini_and_parity_are_their_formulas(u, data):
    weights = sorted(data.draw(st.lists(st.floats(0, 1), min_size=len(u), max_size=len(u))), reverse=True)
    groups = data.draw(st.lists(st.integers(0, 9), min_size=len(u), max_size=len(u)))
    np.testing.assert_allclose(Welfare("ggf", weights=tuple(weights))(u), generalised_gini(u, weights), atol=1e-9)
    np.testing.assert_allclose(Welfare("relaxed_parity", groups=tuple(groups))(u), parity(u, groups), atol=1e-9)


def test_two_groups_are_compared_by_the_difference_of_their_loans():
    parity = Welfare("relaxed_parity", groups=(0, 0, 1, 1))
    np.testing.assert_array_equal(parity([[1, 2, 4, 0], [0, 0, 5, 1], [0, 0, 0, 0]]), [-1, -6, 0])


@given(u=statuses)
def test_known_identities(u):
    n = len(u)
    weights = tuple((2 * (n - k) + 1) / n**2 for k in range(1, n + 1))
    np.testing.assert_allclose(Welfare("ggf", weights=weights)(u), Welfare("gini_welfare")(u), atol=1e-9)
    np.testing.assert_allclose(Welfare("alpha_fair", alpha=0)(u), Welfare("utilitarian")(u))
    np.testing.assert_allclose(Welfare("alpha_fair", alpha=1, offset=1)(u), Welfare("log_nash")(u))
    np.testing.assert_allclose(Welfare("nash_geometric")(u) ** n, Welfare("nash")(u), rtol=1e-9, atol=1e-9)


@given(u=statuses, data=st.data())
def test_the_order_of_the_stakeholders_does_not_matter(u, data):
    other = data.draw(st.permutations(u))
    for name in WELFARES:
        np.testing.assert_allclose(Welfare(name)(other), Welfare(name)(u), rtol=1e-9, atol=1e-9, err_msg=name)


@given(u=st.lists(st.integers(0, 30), min_size=2, max_size=6), share=st.floats(0, 0.5), data=st.data())
def test_giving_from_the_rich_to_the_poor_lowers_no_welfare(u, share, data):
    i, j = data.draw(st.permutations(range(len(u))))[:2]
    after = [float(x) for x in u]
    after[i] += share * (u[j] - u[i])
    after[j] -= share * (u[j] - u[i])
    for name, formula in WELFARES.items():
        sign = -1 if formula.index else 1
        before = Welfare(name)(u)
        assert sign * Welfare(name)(after) >= sign * before - 1e-12 * abs(before) - 1e-9, name


@given(u=statuses, factor=st.floats(0.1, 10))
def test_indices_have_bounds_and_no_unit(u, factor):
    n = len(u)
    index, jain = Welfare("gini"), Welfare("jain")
    assert 0 <= index(u) <= 1 - 1 / n + 1e-12
    assert 1 / n - 1e-12 <= jain(u) <= 1 + 1e-12
    scaled = [x * factor for x in u]
    np.testing.assert_allclose([index(scaled), jain(scaled)], [index(u), jain(u)], atol=1e-9)


@given(value=st.floats(0, 1e300), n=st.integers(1, 7))
def test_equal_shares_are_exactly_fair(value, n):
    assert Welfare("gini")([value] * n) == 0
    assert Welfare("relaxed_parity")([value] * n) == 0
    assert Welfare("jain")([value] * n) == 1


def test_tiny_and_large_amounts_neither_vanish_nor_overflow():
    np.testing.assert_allclose(Welfare("jain")([1e-200, 0]), 0.5)
    np.testing.assert_allclose(Welfare("gini")([1e-320, 0]), 0.5)
    np.testing.assert_allclose(Welfare("nash_geometric")(np.full(200, 1e10)), 1e10)
    assert Welfare("nash_geometric")([0, 5]) == 0


CANDIDATES = (
    *(Welfare(name) for name in WELFARES),
    Welfare("relaxed_parity", groups=(0, 0, 1, 1)),
    Welfare("relaxed_parity", groups=(3, 1, 3, 1)),
    Welfare("relaxed_parity", groups=(0, 0, 0, 1)),
    Welfare("relaxed_parity", groups=(0, 1, 1, 2)),
    Welfare("ggf", weights=(2, 1, 1, 0)),
)


@given(u=st.lists(amounts, min_size=4, max_size=4), constant=st.floats(0, 100))
def test_what_claims_to_depend_on_differences_only_does(u, constant):
    for welfare in CANDIDATES:
        if welfare.shift_invariant:
            np.testing.assert_allclose(welfare(np.add(u, constant)), welfare(u), atol=1e-9, err_msg=str(welfare))


@pytest.mark.parametrize("welfare", CANDIDATES, ids=str)
def test_what_does_not_claim_it_depends_on_the_level(welfare):
    u = np.array([0.0, 1.0, 2.0, 4.0])
    assert welfare.shift_invariant == np.isclose(welfare(u + 3), welfare(u))


@pytest.mark.parametrize("name", WELFARES)
def test_leading_axes_are_kept(name):
    u = np.random.default_rng(0).integers(0, 9, (2, 3, 4))
    values = Welfare(name)(u)
    assert values.shape == (2, 3)
    assert Welfare(name)(u[:0]).shape == (0, 3)
    one = Welfare(name)(u[1, 2])
    assert np.ndim(one) == 0
    np.testing.assert_allclose(one, values[1, 2])


def test_inputs_stay_as_they_are():
    u = np.array([[3.0, 1.0, 2.0]])
    for name in WELFARES:
        Welfare(name)(u)
    np.testing.assert_array_equal(u, [[3, 1, 2]])


@pytest.mark.parametrize(
    ("welfare", "u", "message"),
    [
        (Welfare("log_nash"), [0, -1], r"log_nash needs entries above 0 once the offset \(1\) is added, got 0"),
        (Welfare("log_nash", offset=0), [0, 1], "log_nash needs entries above 0"),
        (Welfare("log_nash"), [0, np.nan], "log_nash needs entries above 0"),
        (Welfare("nash"), [-1, -2], r"nash needs entries of at least 0 once the offset \(0\) is added, got -2"),
        (Welfare("nash_geometric"), [-1, -1], "nash_geometric needs entries of at least 0"),
        (Welfare("gini"), [-1, 2], "gini needs entries of at least 0"),
        (Welfare("neg_gini"), [-1, 2], "neg_gini needs entries of at least 0"),
        (Welfare("alpha_fair"), [-1, 2], "alpha_fair needs entries of at least 0"),
        (Welfare("rawls"), 3.0, "at least one stakeholder"),
        (Welfare("rawls"), [], "at least one stakeholder"),
        (Welfare("ggf", weights=(2, 1)), [1, 2, 3], r"weights must have one entry per stakeholder \(3\)"),
        (Welfare("relaxed_parity", groups=(0, 1)), [1, 2, 3], r"groups must have one entry per stakeholder \(3\)"),
    ],
)
def test_undefined_input_is_refused(welfare, u, message):
    with pytest.raises(ValueError, match=message):
        welfare(u)


@pytest.mark.parametrize("alpha", [1, 2])
def test_strong_aversion_to_nothing_is_minus_infinity_with_one_warning(alpha):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = Welfare("alpha_fair", alpha=alpha)([[0, 1], [1, 1], [0, 0], [-2, 3]])
    assert np.isneginf(values).tolist() == [True, False, True, True]
    assert len(caught) == 1 and "is -inf where an entry" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (lambda: Welfare("log_nsh"), r"name must be one of \[.*\], got 'log_nsh' \(did you mean 'log_nash'\?\)"),
        (lambda: Welfare(3), "name must be a string, got 3"),
        (lambda: Welfare("rawls", offset=np.nan), "offset must be a finite number or None, got nan"),
        (lambda: Welfare("alpha_fair", alpha=-1), "alpha must be a non-negative number, got -1"),
        (lambda: Welfare("rawls", alpha=2), "alpha is only for 'alpha_fair', got 'rawls'"),
        (lambda: Welfare("rawls", weights=(1,)), "weights is only for 'ggf', got 'rawls'"),
        (lambda: Welfare("ggf", groups=(0, 1)), "groups is only for 'relaxed_parity', got 'ggf'"),
        (lambda: Welfare("ggf", weights=(1, 2)), r"weights must not increase .*, got \(1, 2\)"),
        (lambda: Welfare("ggf", weights=()), r"weights must be a sequence of numbers, .*, got \(\)"),
        (lambda: Welfare("ggf", weights="21"), "weights must be a sequence"),
        (lambda: Welfare("ggf", weights=(1, "a")), "weights must be a sequence .*, got \\(1, 'a'\\)"),
        (
            lambda: Welfare("relaxed_parity", groups=(0, -1)),
            r"groups must be a sequence \(each entry a non-negative integer\) or None, got \(0, -1\)",
        ),
        (lambda: find_welfare("rawl"), r"welfare must be a callable or one of .* \(did you mean 'rawls'\?\)"),
        (lambda: find_welfare(None), "welfare must be a callable or one of"),
    ],
)
def test_wrong_arguments(recipe, message):
    with pytest.raises(ValueError, match=message):
        recipe()


def test_finding_a_function():
    def mean(u):
        return np.mean(u, axis=-1)

    ready = Welfare("ggf", weights=[2, 1])
    assert find_welfare(mean) is mean
    assert find_welfare(ready) is ready
    assert find_welfare("gini") == Welfare("gini")


def test_welfare_functions_pickle_and_hash():
    for welfare in (*CANDIDATES, Welfare("ggf", weights=[2, 1])):
        again = pickle.loads(pickle.dumps(welfare))
        assert again == welfare and hash(again) == hash(welfare)
