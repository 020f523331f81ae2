"""Does lambda follow its rule?"""

import pickle

import pytest

from sb3_fair.fair_ppo.coefficient import Coefficient


def test_a_number_stays():
    coefficient = Coefficient(alpha=0.5, beta=0.25, lam=2.0)
    assert coefficient.update(past=0.3, future=0.2, loss=7.0) == 2.0
    assert (coefficient.retrospective, coefficient.prospective) == (1.0, 0.5)


def test_auto_is_the_size_of_the_loss_over_the_penalty():
    coefficient = Coefficient(alpha=0.5, beta=1.0, lam="auto")
    assert coefficient.update(past=0.4, future=0.3) == pytest.approx(1 / 0.5)
    assert coefficient.update(past=0.4, future=0.3, loss=-0.1) == pytest.approx(0.1 / 0.5)
    assert coefficient.update(past=0.0, future=0.0, loss=0.1) == 10.0
    assert Coefficient(alpha=1.0, lam="auto", lam_max=3).update(0.0, 0.0) == 3.0


def test_dual_rises_while_the_average_is_above_target():
    coefficient = Coefficient(alpha=2.0, lam="dual", eta=0.1, target=0.05)
    assert coefficient.update(past=0.25, future=9.0) == pytest.approx(1 + 0.1 * 0.2)  # alpha does not scale D_norm
    average = 0.95 * 0.25
    assert coefficient.update(past=0.0, future=9.0) == pytest.approx(1.02 + 0.1 * (average - 0.05))
    fair = Coefficient(alpha=1.0, lam="dual", eta=100.0)
    assert fair.update(0.0, 0.0) == 0.0
    unfair = Coefficient(beta=1.0, lam="dual", eta=100.0, lam_max=4.0)
    assert unfair.update(0.0, 1.0) == 4.0


def test_dual_goes_on_after_saving():
    coefficient = Coefficient(alpha=1.0, lam="dual")
    coefficient.update(0.9, 0.0)
    loaded = pickle.loads(pickle.dumps(coefficient))
    assert loaded.update(0.1, 0.0) == coefficient.update(0.1, 0.0)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"alpha": -0.5}, "alpha must be a non-negative number, got -0.5"),
        ({"beta": -1}, "beta must be a non-negative number, got -1"),
        ({"lam": -1.0}, "lam must be a non-negative number .*, got -1.0"),
        ({"eta": -1.0}, "eta must be a non-negative number"),
        ({"lam": "duel"}, r"lam must be a non-negative number or one of .* got 'duel' \(did you mean 'dual'\?\)"),
        ({"alpha": "much"}, "alpha must be a non-negative number, got 'much'"),
        ({"lam": None}, "lam must be a non-negative number .*, got None"),
    ],
)
def test_settings_that_are_not_allowed(argument, words):
    with pytest.raises(ValueError, match=words):
        Coefficient(**argument)


def test_it_goes_on_where_other_settings_change():
    coefficient = Coefficient(alpha=1.0, lam="dual")
    coefficient.update(0.9, 0.0)
    heavier = Coefficient(alpha=2.0, lam="dual")
    heavier.go_on(coefficient)
    assert heavier.value == coefficient.value and heavier.update(0.1, 0.0) == coefficient.update(0.1, 0.0)
    lower = Coefficient(alpha=1.0, lam="dual", lam_max=0.5)
    lower.go_on(coefficient)
    assert lower.value == 0.5 < coefficient.value
    number = Coefficient(alpha=2.0, lam=3.0)
    number.go_on(coefficient)
    assert number.value == 3.0
