"""Do off-policy estimates tell what another policy would have earned?"""

import numpy as np
import pytest

from sb3_fair.audit import audit
from sb3_fair.audit.off_policy import off_policy
from sb3_fair.fairness.proportions import wilson

RNG = np.random.default_rng


def bank(n, seed):
    """Loans by chance; applicants repay with probability x, a loan earns 1 or loses 1.5. The other policy prefers
    large x. Returns arguments and the truth: the mean reward of the other policy."""
    rng = RNG(seed)
    x = rng.random(n)
    logging, target = 0.3 + 0.4 * x, np.clip(1.6 * x - 0.3, 0.02, 0.98)
    accepted = rng.random(n) < logging
    repaid = rng.random(n) < x
    rewards = np.where(accepted, np.where(repaid, 1.0, -1.5), 0.0)
    grid = np.linspace(0, 1, 100_001)
    truth = float(np.mean(np.clip(1.6 * grid - 0.3, 0.02, 0.98) * (grid - 1.5 * (1 - grid))))
    propensity = np.where(accepted, logging, 1 - logging)
    return {"rewards": rewards, "accepted": accepted, "propensity": propensity, "target": target, "features": x}, truth


def test_estimates_are_near_the_truth_and_the_doubly_robust_one_is_the_surest():
    given, truth = bank(50_000, 0)
    found = off_policy(**given)
    for one in found.estimates:
        assert one.low <= truth <= one.high
    width = {one.name: one.high - one.low for one in found.estimates}
    assert width["dr"] <= width["snips"]
    assert found.effective < found.n and found.mean_weight == pytest.approx(1, abs=0.02)


def test_of_the_logging_policy_itself_they_are_the_logged_mean():
    given, _ = bank(2000, 1)
    given["target"] = np.where(given["accepted"], given["propensity"], 1 - given["propensity"])
    found = off_policy(**given)
    assert found.effective == pytest.approx(2000)
    for one in found.estimates[:2]:
        assert one.value == pytest.approx(found.logged.value)


def test_any_regressor_can_model_the_reward():
    linear = pytest.importorskip("sklearn.linear_model")
    given, _ = bank(2000, 1)
    mine, other = off_policy(**given), off_policy(**given, regressor=linear.Ridge(alpha=1e-9))
    assert mine.estimates[2].value == pytest.approx(other.estimates[2].value, abs=1e-3)


class NeverSeen:
    """Predicts the rewards of people whom it was not fitted on."""

    def fit(self, people, rewards):
        self.known = set(people[:, 0].tolist())
        return self

    def predict(self, people):
        assert self.known.isdisjoint(people[:, 0].tolist())
        return np.zeros(len(people))


def test_rewards_are_predicted_from_other_people():
    given, _ = bank(500, 0)
    found = off_policy(**given, regressor=NeverSeen())
    assert found.estimates[2].value == pytest.approx(found.estimates[0].value)


def test_a_sample_that_is_a_tiny_part_of_the_log_is_too_small():
    """The other policy accepts everybody, the log one in a hundred, or in two hundred."""
    for n, told in ((10_000, True), (20_000, False)):
        took = np.arange(n) < 100
        chance = np.where(took, 100 / n, 1 - 100 / n)
        found = off_policy(took * 1.0, took, chance, np.ones(n), regressor=NeverSeen(), features=np.arange(n))
        assert found.effective == pytest.approx(100) and bool(found.estimates) == told


def test_without_overlap_nothing_is_estimated():
    given, _ = bank(2000, 1)
    given["propensity"] = np.where(RNG(0).random(2000) < 0.01, 1e-4, 0.999)
    found = off_policy(**given)
    assert found.estimates == [] and "the overlap is too small" in found.refused
    given, _ = bank(2000, 1)
    given["propensity"] = np.full(2000, 0.9)
    assert "the mean weight is" in off_policy(**given).refused


def test_a_log_without_rewards_of_the_refused_does_not_tell_the_mean_reward():
    """Although the other policy grants as many loans, so that the weights of the known ones are 1 on average."""
    given, _ = bank(20_000, 0)
    given["propensity"], given["target"] = np.full(20_000, 0.5), 0.3 + 0.4 * given["features"]
    given["accepted"] = RNG(1).random(20_000) < 0.5
    given["rewards"] = np.where(given["accepted"], given["features"], np.nan)
    for rows in (slice(None), given["accepted"]):
        found = off_policy(**{name: column[rows] for name, column in given.items()})
        assert found.estimates == []
        assert found.refused == "no reward of unfavourable decisions is known, and the other policy makes some"
    log = {name: given[name] for name in ("rewards", "accepted", "propensity", "target")} | {"g": ["a", "b"] * 10_000}
    asked = {"action": "accepted", "group": "g", "propensity": "propensity", "target": "target", "reward": "rewards"}
    whole = audit(log, **asked, n_boot=2, n_permutations=2)
    assert np.isnan(whole.off_policy.logged.value) and "nan" not in whole.table()
    assert any(text.startswith("Selective reward: 'rewards' is known after favourable") for text in whole.warnings)
    given["target"] = np.ones(20_000)  # needs no reward of the refused
    assert off_policy(**given).estimates[2].value == pytest.approx(0.5, abs=0.01)


def test_rewards_that_are_known_less_often_after_refusals_are_not_counted_less():
    covered = dict.fromkeys(("logged", "ips", "snips", "dr"), 0)
    for seed in range(50):
        given, truth = bank(2000, seed)
        rewards, took = given["rewards"] + 1, given["accepted"]
        given["rewards"] = np.where(took | (RNG(seed + 1000).random(2000) < 0.2), rewards, np.nan)
        found = off_policy(**given)
        for one in found.all:
            covered[one.name] += one.low <= (rewards.mean() if one.name == "logged" else truth + 1) <= one.high
    assert all(number >= 44 for number in covered.values()), covered
    log = {"h": took, "g": ["a", "b"] * 1000, "p": given["propensity"], "t": given["target"], "gain": given["rewards"]}
    asked = {"action": "h", "group": "g", "propensity": "p", "target": "t", "reward": "gain"}
    said = [text for text in audit(log, **asked, n_boot=2, n_permutations=2).warnings if "for the mean reward" in text]
    assert len(said) == 1 and "and 0 of" in said[0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("propensity", [0.0, 0.5], r"propensity must be an array \(each entry in \(0, 1\]\), got 0"),
        ("target", [1.5, 0.5], r"target must be .*in \[0, 1\]\), got 1.5"),
        ("accepted", [True], "accepted must have the shape of rewards"),
    ],
)
def test_wrong_arguments_are_refused(name, value, message):
    given = {"rewards": [1.0, 0.0], "accepted": [True, False], "propensity": [0.5, 0.5], "target": [0.5, 0.5]}
    with pytest.raises(ValueError, match=message):
        off_policy(**{**given, name: value})


@pytest.mark.slow
def test_intervals_cover_the_truth_of_300_logs():
    covered = {"ips": 0, "snips": 0, "dr": 0}
    for seed in range(300):
        given, truth = bank(1000, seed)
        for one in off_policy(**given).estimates:
            covered[one.name] += one.low <= truth <= one.high
    assert all(270 <= number <= 297 for number in covered.values()), covered


def bank_log(n, seed):
    """The bank's log with groups, of whom one has smaller x, and with outcomes of the accepted only."""
    given, _ = bank(n, seed)
    rng = RNG(seed + 1000)
    deserves = rng.random(n) < given["features"]
    reward = np.where(given["accepted"], np.where(deserves, 1.0, -1.5), 0.0)
    group = np.where(rng.random(n) < given["features"], "a", "b")
    names = {"granted": given["accepted"], "group": group, "p": given["propensity"], "new": given["target"]}
    return {**names, "reward": reward, "repaid": np.where(given["accepted"], deserves, np.nan)}, deserves


ASKED = {"action": "granted", "group": "group", "feedback": "repaid", "propensity": "p", "target": "new"}
LIGHT = {"reward": "reward", "n_boot": 5, "n_permutations": 5}


def test_rates_of_another_policy_are_told_although_outcomes_are_selective():
    log, deserves = bank_log(20_000, 0)
    found = audit(log, **ASKED, **LIGHT)
    for rate in found.other_rates:
        people = log["group"] == rate.group
        truth = log["new"][people if rate.among == "everybody" else people & deserves].mean()
        assert rate.low - 0.01 <= truth <= rate.high + 0.01
        assert rate.low <= rate.other <= rate.high
        assert rate.logged == pytest.approx(
            log["granted"][people if rate.among == "everybody" else people & deserves].mean(), abs=0.02
        )
    assert [rate.among for rate in found.other_rates] == ["everybody", "everybody", "deserving", "deserving"]
    assert [one.name for one in found.off_policy.estimates] == ["ips", "snips", "dr"]
    assert "Another policy" in found.to_html() and "doubly robust" in found.table()
    assert found.to_dict()["off_policy"]["effective"] == found.off_policy.effective
    assert max(map(len, found.table().splitlines())) <= 79
    assert any("cannot be told from the outcomes of this log alone" in text for text in found.sentences)
    assert any(text.startswith("group: by new, b would have got the favourable decision (") for text in found.sentences)


def test_outcomes_may_be_known_of_the_refused_only():
    """As of tax returns that were checked: each stands for others, and without propensities nothing is told."""
    log, deserves = bank_log(20_000, 0)
    log["repaid"] = np.where(log["granted"], np.nan, deserves)
    for rate in audit(log, **ASKED, **LIGHT).other_rates[2:]:
        people = (log["group"] == rate.group) & deserves
        assert rate.low - 0.01 <= log["new"][people].mean() <= rate.high + 0.01
        assert rate.logged == pytest.approx(log["granted"][people].mean(), abs=0.02)
    blind = audit(log, **{**ASKED, "propensity": None}, n_boot=5, n_permutations=5)
    assert [rate.among for rate in blind.other_rates] == ["everybody", "everybody"]


def test_propensities_that_do_not_fit_tell_nothing_about_the_deserving():
    """As where a column holds the probability of the favourable decision in place of that of the one made."""
    log, deserves = bank_log(20_000, 0)
    log["p"] = np.where(log["granted"], log["p"], 1 - log["p"]) ** 2
    found = audit(log, **ASKED, n_boot=5, n_permutations=5)
    assert [rate.among for rate in found.other_rates] == ["everybody", "everybody"]
    (told,) = [text for text in found.warnings if text.startswith("The propensities do not fit")]
    assert "a (group), b (group)" in told or "b (group), a (group)" in told
    log["repaid"] = deserves.astype(float)  # of known outcomes nobody stands for others
    assert len(audit(log, **ASKED, n_boot=5, n_permutations=5).other_rates) == 4


def test_right_propensities_of_few_people_are_not_called_wrong():
    log = {"granted": [1, 0] * 300 + [1] * 11 + [0], "group": ["a", "b"] * 300 + ["c"] * 12}
    log |= {"repaid": [1 if granted else None for granted in log["granted"]], "p": [0.5] * 612, "new": [0.7] * 612}
    found = audit(log, **ASKED, n_boot=5, n_permutations=5)
    assert not any("do not fit" in text for text in found.warnings)
    (few,) = (rate for rate in found.other_rates if (rate.group, rate.among) == ("c", "deserving"))
    assert few.logged > 0 and np.isnan([few.other, few.low, few.high]).all(), "each of the 11 stands for another one"
    log["granted"][600:] = [1] * 12
    log["repaid"][600:] = [1] * 12
    assert not any("do not fit" in text for text in audit(log, **ASKED, n_boot=5, n_permutations=5).warnings)


@pytest.mark.parametrize("known", ["one", 0.3, 0.9])
def test_some_outcomes_of_the_refused_do_not_spoil_the_rates(known):
    log, deserves = bank_log(20_000, 0)
    before = audit(log, **ASKED, **LIGHT).other_rates[2:]
    refused = np.flatnonzero(~log["granted"] & (log["group"] == "a"))
    told = refused[:1] if known == "one" else refused[RNG(1).random(len(refused)) < known]
    log["repaid"][told] = deserves[told]
    for rate, old in zip(audit(log, **ASKED, **LIGHT).other_rates[2:], before, strict=True):
        people = (log["group"] == rate.group) & deserves
        assert rate.low - 0.01 <= log["new"][people].mean() <= rate.high + 0.01
        assert rate.logged == pytest.approx(log["granted"][people].mean(), abs=0.02)
        assert rate.effective > 0.99 * old.effective
    blind = audit(log, **{**ASKED, "propensity": None}, n_boot=5, n_permutations=5).other_rates
    assert {rate.group for rate in blind if rate.among == "deserving"} == {"a"}


def test_small_groups_leave_their_rates_unsure():
    log = {"granted": [1, 0, 1, 0, 1, 0], "group": list("abbccc"), "new": [1, 1, 1, 0.5, 0.5, 0.5]}
    found = audit(log, action="granted", group="group", target="new", n_boot=5, n_permutations=5)
    rates = found.other_rates
    assert not any("by new" in text for text in found.sentences)
    for rate, hits, people in zip(rates, (1, 2, 1.5), (1, 2, 3), strict=True):
        np.testing.assert_allclose((rate.other, rate.low, rate.high), wilson(hits, people, variance=0.0))


def test_which_group_comes_first_does_not_matter():
    log, _ = bank_log(2000, 0)
    log["group"][::3] = "c"
    undecided = {"granted": None, "p": np.nan, "new": np.nan, "reward": np.nan, "repaid": np.nan}
    values = []
    for group in "ab":
        first = {**undecided, "group": group}
        found = audit({name: [first[name], *column.tolist()] for name, column in log.items()}, **ASKED, **LIGHT)
        values.append([one.value for one in found.off_policy.estimates])
    np.testing.assert_allclose(*values, rtol=1e-9)


def test_without_propensity_only_rates_are_told():
    log, _ = bank_log(500, 0)
    del log["p"], log["reward"]
    found = audit(log, action="granted", group="group", target="new", n_boot=5, n_permutations=5)
    assert found.off_policy is None and len(found.other_rates) == 2
    assert any(text.startswith("Without the propensity") for text in found.warnings)


def test_a_refusal_is_said_on_the_page():
    log, _ = bank_log(500, 0)
    log["p"] = np.full(500, 0.9)
    found = audit(log, **ASKED, **LIGHT)
    assert found.off_policy.refused in found.to_html()


@pytest.mark.slow
def test_rates_among_the_deserving_cover_the_truth_of_300_logs():
    covered = []
    for seed in range(300):
        log, _ = bank_log(1500, seed)
        rates = [rate for rate in audit(log, **ASKED, **LIGHT).other_rates if rate.among == "deserving"]
        x = np.linspace(0, 1, 100_001)
        new = np.clip(1.6 * x - 0.3, 0.02, 0.98)
        for rate, share in zip(sorted(rates, key=lambda rate: rate.group), (x, 1 - x), strict=True):
            truth = (new * x * share).sum() / (x * share).sum()
            covered.append(rate.low <= truth <= rate.high)
    assert 0.9 <= np.mean(covered) <= 0.99
