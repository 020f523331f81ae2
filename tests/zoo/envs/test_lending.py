"""Does the lending scenario keep its rules? An independent bank of Python lists answers."""

import pickle
from functools import partial
from itertools import combinations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy.stats import wasserstein_distance

import sb3_fair
from sb3_fair.fairness import SlidingWindow
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.lending.settings import distribution_function
from sb3_fair.zoo.envs.lending.world import LendingWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import begun

REPAYS = (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)
THREE_GROUPS = {
    "initial_distribution": ((0.25, 0.25, 0.25, 0.25), (0.7, 0.1, 0.1, 0.1), (0, 0, 0.5, 0.5)),
    "repay_probability": ((0.2, 0.4, 0.6, 0.8), (0.1, 0.3, 0.5, 0.7), (0, 0.5, 0.9, 1)),
    "group_probability": (0.5, 0.2, 0.3),
}

started = partial(begun, LendingWorld)


def guess(observations):
    """A bank's own estimate: it looks at the score, the group and the past."""
    return 0.1 + 0.05 * observations[:, :7] @ np.arange(7) + 0.2 * observations[:, 7] + 0.2 * observations[:, 9]


class Bank:
    """Everything is counted anew from the list of all decisions: (group, score, would repay, granted, estimate)."""

    def __init__(self, config):
        self.config = config
        self.masses = [list(row) for row in config.initial_distribution]
        self.cash, self.decided = config.starting_cash, []

    @property
    def groups(self):
        return range(len(self.masses))

    def rates(self, decisions, known):
        """Would-repay applicants with a loan and all of them, by group."""
        granted, repaying = [0.0 for _ in self.groups], [0.0 for _ in self.groups]
        for group, _, repays, grant, estimate in decisions:
            granted[group] += repays and grant
            repaying[group] += repays if grant or not known else estimate
        return [(a, b) for a, b in zip(granted, repaying, strict=True)]

    def gap(self, decisions, known):
        counts = self.rates(decisions, known and not self.config.oracle_outcomes)
        if self.config.undefined_tpr == "skip" and any(total == 0 for _, total in counts):
            return 0.0
        rates = [hits / total if total else 0.0 for hits, total in counts]
        return max(abs(a - b) for a, b in combinations(rates, 2))

    def w1(self, masses=None):
        scores = range(len(self.masses[0]))
        gaps = []
        for a, b in combinations(self.masses if masses is None else masses, 2):
            gaps.append(wasserstein_distance(scores, scores, a, b) if sum(a) and sum(b) else 0.0)
        return max(gaps)

    def counts(self, people):
        table = [[0 for _ in row] for row in self.masses]
        for group, score, *_ in people:
            table[group][score] += 1
        return table

    def latest(self, size):
        return self.decided[-size:] if size else []

    def window_w1(self, applicant):
        return self.w1(self.counts([*self.latest(self.config.window), applicant]))

    def observation(self, applicant):
        config, latest = self.config, self.latest(self.config.window)
        group, score = applicant[:2]
        one_hot = [float(score == s) for s in range(len(self.masses[0]))] + [float(group == g) for g in self.groups]
        rates = [hits / total if total else 0.0 for hits, total in self.rates(latest, not config.oracle_outcomes)]
        counts = [count / (len(latest) + 1) for row in self.counts(latest) for count in row]
        return one_hot + rates + (counts if config.observation == "full" else [])

    def moved(self, group, score, repays):
        masses = [list(row) for row in self.masses]
        other = min(max(score + (1 if repays else -1), 0), len(masses[0]) - 1)
        mass = min(self.config.score_shift, masses[group][score])
        masses[group][score] -= mass
        masses[group][other] += mass
        return masses

    def step(self, applicant, grant, coming):
        """The figures of a step."""
        group, score, repays, estimate = applicant
        config = self.config
        figures = {
            "d_s_prev": self.gap(self.latest(config.window + 1), True),
            "d_l": self.window_w1(applicant) if config.long_term_source == "window" else self.w1(),
        }
        outcomes = [self.w1(self.moved(group, score, outcome)) if grant else self.w1() for outcome in (False, True)]
        self.decided.append((group, score, repays, grant, estimate))
        if grant:
            self.cash += config.loan_amount * config.interest_rate if repays else -config.loan_amount
            self.masses = self.moved(group, score, repays)
        latest = self.latest(config.window + 1)
        by_source = {
            "exact": self.w1(),
            "expected": (1 - estimate) * outcomes[0] + estimate * outcomes[1],
            "window": self.window_w1(coming),
        }
        return figures | {
            "d_s": self.gap(latest, False),
            "d_s_estimated": self.gap(latest, True),
            "d_l_next": by_source[config.long_term_source],
            "d_l_window": self.window_w1(coming),
            "w1": self.w1(),
            "cash": self.cash,
        }


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"oracle_outcomes": True, "observation": "basic"},
        {"long_term_source": "expected", "undefined_tpr": "skip", "window": 5},
        {"long_term_source": "window", "window": 7, "oracle_outcomes": True, "undefined_tpr": "skip"},
        {"long_term_source": "window", "window": 1, "score_shift": 0.15},
        {"repay_estimator": guess, "window": 20, "long_term_source": "expected"},
        {"loan_amount": 3.0, "interest_rate": 0.25, "starting_cash": 12.0, "score_shift": 0.4, **THREE_GROUPS},
        {"window": 9, "long_term_source": "expected", "score_shift": 1.0, "undefined_tpr": "skip", **THREE_GROUPS},
        {"window": 2, "long_term_source": "window", "oracle_outcomes": True, **THREE_GROUPS},
    ],
)
def test_every_number_is_that_of_a_bank_that_counts_anew(config):
    world = started(3, **{"episode_length": 45, **config})
    rng = np.random.default_rng(0)
    estimates = world.config.repay_estimator or (lambda _: None)

    def applicant(index):
        now = world.applicants
        group, score = int(now.group[index]), int(now.score[index])
        estimate = world.repay_table[group, score] if asked is None else asked[index]
        return group, score, bool(now.repays[index]), estimate

    banks = [Bank(world.config) for _ in range(3)]
    obs = world.reset(np.arange(3))
    ends = 0
    for _ in range(100):
        asked = estimates(obs)
        people = [applicant(index) for index in range(3)]
        for bank, person, row in zip(banks, people, obs, strict=True):
            assert_allclose(row, bank.observation(person), atol=1e-6)
        assert all(world.observation_space.contains(row) for row in obs)
        actions = rng.integers(0, 2, 3)
        massage = world.massage()
        assert_allclose(massage["repay_probability"], [person[3] for person in people], atol=1e-12)
        would_be = world.measures.would_be(massage, actions[:, None])[:, 0]
        cash = world.cash
        obs, rewards, terminated, truncated, record = world.step(actions)
        asked = estimates(obs)
        figures = record["fairness"]
        assert_array_equal(rewards, world.cash - cash)
        for index, bank in enumerate(banks):
            expected = bank.step(people[index], bool(actions[index]), applicant(index))
            for name, value in expected.items():
                assert figures[name][index] == pytest.approx(value, abs=1e-12), name
            counts = bank.rates(bank.latest(world.config.window + 1), not world.config.oracle_outcomes)
            skipped = np.nan if world.config.undefined_tpr == "skip" else 0.0
            assert_allclose(figures["tpr"][index], [hits / all_ if all_ else skipped for hits, all_ in counts])
            assert_allclose(world.distributions[index], bank.masses, atol=1e-12)
            assert terminated[index] == (bank.cash < world.config.loan_amount)
            assert truncated[index] == (len(bank.decided) == 45 and not terminated[index])
        known = np.ones(3, dtype=bool) if world.config.oracle_outcomes else actions == 0
        assert_array_equal(would_be[known], figures["d_s_estimated"][known])
        over = np.flatnonzero(terminated | truncated)
        if len(over):
            obs = obs.copy()
            obs[over] = world.reset(over)
            for index in over:
                banks[index] = Bank(world.config)
        ends += len(over)
    assert ends >= 6


def test_the_horizon_truncates_and_an_empty_till_terminates():
    env = WorldEnv(LendingWorld, episode_length=5)
    env.reset(seed=0)
    assert [env.step(1)[2:4] for _ in range(5)] == [(False, False)] * 4 + [(False, True)]
    for cash, ends in ((2.5, (True, False)), (3, (False, True))):
        poor = WorldEnv(LendingWorld, starting_cash=cash, repay_probability=(0,) * 7, episode_length=2)
        poor.reset(seed=0)
        assert [poor.step(1)[2:4] for _ in range(2)] == [(False, False), ends]


def test_an_episode_without_a_horizon_goes_on():
    world = started(3, episode_length=None, window=10)
    for _ in range(2100):
        *_, terminated, truncated, _ = world.step(np.zeros(3, dtype=np.int64))
        assert not terminated.any() and not truncated.any()
    assert world.max_steps is None and world.max_return == np.inf


def check_masses(n, steps, **config):
    world = started(n, episode_length=None, starting_cash=1e9, **config)
    start = world.distributions
    rng = np.random.default_rng(0)
    for _ in range(steps):
        world.step(rng.integers(0, 2, n))
    masses = world.distributions
    assert_allclose(masses.sum(axis=2), 1, atol=1e-9)
    assert masses.min() >= 0 and (masses != start).any()
    first, second = (row.cumsum() for row in masses[0])
    assert world.fairness_arrays()["w1"][0] == pytest.approx(np.abs(first - second).sum(), abs=1e-12)


def test_mass_is_kept_whatever_is_moved():
    check_masses(20, 2000, score_shift=0.3)
    check_masses(20, 2000, score_shift=np.pi / 100)


@pytest.mark.slow
def test_mass_is_kept_for_100_000_steps():
    check_masses(8, 100_000)


def test_no_mass_is_below_zero_however_many_scores_there_are():
    rows = np.random.default_rng(0).random((2000, 100))
    rows[:, -1] = 0
    masses = np.diff(distribution_function(rows / rows.sum(axis=1, keepdims=True)), axis=1)
    assert masses.min() >= 0 and (masses.sum(axis=1) == 1).all()


def test_w1_is_scipys():
    scores = range(1, 8)
    world = started(100, score_shift=0.2, starting_cash=1000.0)
    rng = np.random.default_rng(0)
    seen = set()
    for step in range(200):
        figures = world.step(rng.integers(0, 2, 100))[4]["fairness"]
        if step % 20 == 19:
            for rows, w1 in zip(world.distributions, figures["w1"], strict=True):
                assert w1 == pytest.approx(wasserstein_distance(scores, scores, *rows), abs=1e-12)
                seen.add(rows.tobytes())
    assert len(seen) > 900


def differing(**config):
    """Keys in which two banks differ whose rejected applicants would have done the opposite, and observations."""
    ours, theirs = (started(30, window=50, starting_cash=30.0, **config) for _ in range(2))
    rng = np.random.default_rng(0)
    names = set()

    def compare(one, other, name):
        if isinstance(one, dict):
            for key in one.keys() | other.keys():
                compare(one[key], other[key], key)
        elif not np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"):
            names.add(name)

    for _ in range(150):
        actions = rng.integers(0, 2, 30)
        theirs.applicants = theirs.applicants._replace(repays=ours.applicants.repays ^ (actions == 0))
        one, other = ours.step(actions), theirs.step(actions)
        for place, name in enumerate(("obs", "reward", "terminated", "truncated")):
            compare(one[place], other[place], name)
        compare(one[4], other[4], "record")
        compare(ours.massage(), theirs.massage(), "massage")
    return names


def test_nobody_learns_whether_the_rejected_would_have_repaid():
    assert differing() == {"d_s"}
    assert differing(undefined_tpr="skip", long_term_source="window") == {"d_s"}


def test_an_oracle_does():
    assert {"d_s", "d_s_estimated", "obs", "feedback", "repaying", "tpr"} <= differing(oracle_outcomes=True)


def test_individuals_are_the_applicants():
    env = WorldEnv(LendingWorld)
    obs, info = env.reset(seed=0)
    assert set(info) == {"massage"}
    for action in (1, 0, 1, 1, 0):
        after, reward, *_, info = env.step(action)
        assert set(info) == {"fairness", "individual", "massage"}
        person = info["individual"]
        assert person["features"] == [obs[:7].argmax() + 1]
        assert (person["group"], person["action"]) == (obs[7:9].argmax(), action)
        assert person["feedback"] == ((reward > 0) if action else None)
        assert info["massage"]["group"] == after[7:9].argmax()
        assert info["massage"]["repay_probability"] == pytest.approx(REPAYS[after[:7].argmax()])
        obs = after


def test_equal_opportunity_is_minus_d_s_for_an_oracle():
    env = sb3_fair.make_vec("sb3_fair/Lending-Oracle-v0", 5, seed=0)
    assert set(env.get_attr("fairness_spec")[0].notions) == {"SP", "PP", "EO"}
    env.reset()
    seen = 0
    for actions in np.random.default_rng(0).integers(0, 2, (500, 5)):
        figures = stack(env.step(actions)[3], "fairness")
        defined = ~np.isnan(figures["EO"])
        assert_allclose(figures["EO"][defined], -figures["d_s"][defined], atol=1e-12)
        seen += defined.sum()
    assert seen > 2000


def test_the_spec_says_what_is_measured():
    spec = WorldEnv(LendingWorld, window=50).fairness_spec
    assert tuple(spec.notions) == ("SP", "PP") and spec.history == SlidingWindow(51)
    assert spec.group_names == ("advantaged", "disadvantaged")
    assert spec.select(np.array([[1.0], [4.0], [7.0]])).ravel().tolist() == [0, 0.5, 1]
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert LendingWorld(1, **THREE_GROUPS).fairness_spec.group_names == ("group 0", "group 1", "group 2")


def test_the_arrays_of_the_latest_step_are_those_of_the_infos():
    env = WorldVecEnv(LendingWorld, 2)
    env.reset()
    infos = env.step(np.array([0, 1]))[3]
    for arrays in (env.fairness_arrays(), env.world.fairness_arrays()):
        assert_equal(arrays, stack(infos, "fairness"))


def test_detail_shows_what_is_hidden():
    world = started(6, detail=True)
    groups, repays = world.applicants.group, world.applicants.repays
    detail = world.step(np.ones(6, dtype=np.int64))[4]["detail"]
    assert_array_equal(detail["would_repay"], repays)
    assert_array_equal(detail["groups"], world.distributions)
    assert detail["groups"].shape == (6, 2, 7)
    assert_array_equal(detail["behind"], groups == 1)
    for actions in np.random.default_rng(0).integers(0, 2, (80, 6)):
        record = world.step(actions)[4]
    assert_allclose(np.ptp(record["detail"]["tpr"], axis=1), record["fairness"]["d_s"], atol=1e-12)


def test_detail_tells_what_was_to_be_expected_of_the_groups():
    """Of many copies with the same applicant, the mean over who repays and who does not."""
    world = started(4000, detail=True, long_term_source="expected", score_shift=0.05)
    for name, value in (("group", 1), ("score", 3), ("estimate", 0.6)):
        getattr(world.applicants, name)[:] = value
    world.applicants.repays[:] = np.arange(4000) % 5 < 3  # a share of 0.6
    detail = world.step(np.arange(4000) // 2000)[4]["detail"]
    above = 1 - np.cumsum(detail["groups"], axis=2)[:, :, :-1]
    refused, granted = detail["outlook"][:2000], detail["outlook"][2000:]
    assert_allclose(refused, detail["outlook_before"][:2000])
    assert_allclose(granted, np.broadcast_to(above[2000:].mean(axis=0), granted.shape), atol=1e-12)
    assert np.abs(granted - refused).max() > 0.01


def test_the_outlook_is_the_share_above_each_score():
    world = started(6, detail=True)
    before = world.distributions
    detail = world.step(np.ones(6, dtype=np.int64))[4]["detail"]
    assert_allclose(detail["outlook_before"], 1 - np.cumsum(before, axis=2)[:, :, :-1])
    assert_allclose(detail["outlook"], 1 - np.cumsum(detail["groups"], axis=2)[:, :, :-1])


def test_applicants_come_as_often_as_is_said():
    world = started(500, **THREE_GROUPS)
    config = world.config
    people = []
    for _ in range(40):
        people.append(world.applicants)
        world.step(np.zeros(500, dtype=np.int64))
    group, score, repays, _ = map(np.concatenate, zip(*people, strict=True))
    assert_allclose(np.bincount(group) / 20_000, config.group_probability, atol=0.015)
    for label, row in enumerate(config.initial_distribution):
        here = group == label
        share = np.bincount(score[here], minlength=4) / here.sum()
        assert_allclose(share, row, atol=0.03)
        assert not share[np.array(row) == 0].any()
        for each in np.flatnonzero(share):
            repaid = repays[here & (score == each)].mean()
            assert repaid == pytest.approx(config.repay_probability[label][each], abs=0.07)


def test_the_rules_do_what_their_names_say():
    world = started(300)
    score = world.applicants.score + 1
    granting = {name: rule(world)[:, 1] for name, rule in world.rules.items()}
    assert all((granting[name] == chance).all() for name, chance in (("never", 0), ("always", 1), ("random", 0.5)))
    assert_array_equal(granting["max-profit"], score >= 4)
    assert_array_equal(granting["score-3"], score >= 3)
    dear = started(300, interest_rate=1.5)  # 0.45 * 1.5 > 0.55
    assert_array_equal(dear.rules["max-profit"](dear), world.rules["score-3"](world))
    env = WorldVecEnv(LendingWorld, 4)
    env.seed(0)
    actions, _ = RuleAgent("max-profit", env).predict(env.reset())
    assert_array_equal(actions, env.world.applicants.score >= 3)


def final_figures(copies, steps, least):
    """Cash, W1 and whole-episode true positive rates (copies, 2), where loans are granted from the score ``least``."""
    n = copies * len(least)
    least = np.repeat(least, copies)
    world = started(n, episode_length=None, oracle_outcomes=True)
    granted, repaying = np.zeros((2, n)), np.zeros((2, n))
    for _ in range(steps):
        now = world.applicants
        actions = (now.score + 1 >= least).astype(np.int64)
        for group in (0, 1):
            would = now.repays & (now.group == group)
            repaying[group] += would
            granted[group] += would & (actions == 1)
        world.step(actions)
    figures = world.fairness_arrays()
    tables = figures["cash"], figures["w1"], (granted / repaying).T
    return [table.reshape(len(least) // copies, copies, *table.shape[1:]) for table in tables]


@pytest.mark.slow
def test_fixed_policies_end_where_they_are_known_to():
    cash, w1, rates = final_figures(50, 10_000, (8, 1, 4, 3))
    assert (cash[0] == 10_000).all() and (w1[0] == 1).all() and not rates[0].any() and (rates[1] == 1).all()

    def agree(values, expected):
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - expected) <= 3 * error).all()

    for policy, money, distance in ((1, 9016, 0.528), (2, 11449, 0.634), (3, 11864, 0.649)):
        agree(cash[policy], money)
        agree(w1[policy], distance)
    agree(rates[2], (0.606, 0.445))
    agree(rates[3], (0.834, 0.740))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window must be a positive integer, got 0"),
        ({"episode_length": 2.5}, "episode_length must be a positive integer or None, got 2.5"),
        ({"loan_amount": 0}, "loan_amount must be a positive number, got 0"),
        ({"interest_rate": -1}, "interest_rate must be a non-negative number, got -1"),
        ({"interest_rate": "much"}, "interest_rate must be a non-negative number, got 'much'"),
        ({"starting_cash": 0.5}, r"starting_cash must be at least a loan \(1.0\), got 0.5"),
        ({"score_shift": 1.5}, r"score_shift must be in \[0, 1\], got 1.5"),
        ({"observation": "rich"}, r"observation must be one of 'full', 'basic', got 'rich'"),
        ({"oracle_outcomes": 1}, r"oracle_outcomes must be True or False, got 1"),
        ({"long_term_source": "w1"}, "long_term_source must be one of .*, got 'w1'"),
        ({"undefined_tpr": None}, r"undefined_tpr must be one of 'zero', 'skip', got None"),
        ({"repay_estimator": 0.5}, "repay_estimator must be a callable or None, got 0.5"),
        ({"initial_distribution": ((0.5, 0.5),)}, "initial_distribution must have a row for each of at"),
        ({"initial_distribution": ((1,), (1,))}, "column for each of at least two scores"),
        ({"initial_distribution": (0.5, 0.5)}, "initial_distribution must be a sequence .each entry a seq"),
        ({"initial_distribution": ((0.5, 0.5), (1,))}, "initial_distribution must have .* in all of them"),
        (
            {"initial_distribution": ((0.5, 0.5), (0.5, 0.4))},
            r"initial_distribution must sum to 1 within 1e-9 in every row, got .*0\.4",
        ),
        ({"group_probability": (0.5, 0.6)}, "group_probability must sum to 1 within 1e-9, got"),
        ({"group_probability": (1,)}, "group_probability must have one number for each of 2 groups"),
        ({"group_probability": (1.5, -0.5)}, r"group_probability must be a sequence .* in \[0, 1\]"),
        ({"repay_probability": (0.5, 0.5)}, "repay_probability must have one number for each of 7 scores"),
        ({"repay_probability": 0.5}, "repay_probability must be a sequence .* or a sequence .* got 0.5"),
        ({"repay_probability": ((0.5,), (0.5, 0.5))}, "repay_probability must have .* 2 groups"),
        ({"repay_probability": [REPAYS] * 3}, "repay_probability must have .* 2 groups"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        LendingWorld(1, **settings)


@pytest.mark.parametrize("answer", [0.5, np.full(3, 1.5), np.full((3, 1), 0.5), np.full(3, np.nan)])
def test_an_estimator_must_answer_with_probabilities(answer):
    world = LendingWorld(3, repay_estimator=lambda _: answer)
    with pytest.raises(ValueError, match=r"repay_estimator must return probabilities in \[0, 1\] of shape \(3,\), got"):
        world.reset(np.arange(3))


def test_the_variants_are_what_their_names_say():
    assert gym.make("sb3_fair/Lending-v0").observation_space.shape == (25,)
    assert gym.make("sb3_fair/Lending-Basic-v0").observation_space.shape == (11,)
    assert gym.make("sb3_fair/Lending-Long-v0").unwrapped.max_steps == 10_000
    assert gym.make("sb3_fair/Lending-Oracle-v0").unwrapped.world.config.oracle_outcomes
