"""Does the fraud scenario keep its rules, and do all its faces take the same path?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sb3_fair
from sb3_fair.fairness import SlidingWindow
from sb3_fair.zoo.envs.fraud.tables import CONTINENTS, EU, NORTH_AMERICA, countries
from sb3_fair.zoo.envs.fraud.transactions import AUTHENTIC, FRAUD, REFUSED
from sb3_fair.zoo.envs.fraud.world import FraudWorld
from sb3_fair.zoo.envs.world import WorldEnv
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import begun, side_by_side

ID = "sb3_fair:sb3_fair/FraudDetection-v0"
# Few customers, and much fraud by thieves.
BUSY = {"num_customers": 12, "num_fraudsters": 8, "start": "2016-07-20", "fraud_cards_in_genuine": 0.9, "n_hours": 30}

started = partial(begun, FraudWorld, detail=True)


def steps(world, number, seed=0, actions=None):
    """What is decided on, the actions and what comes of them, until the first copy's episode is over."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        now, hours = world.transactions, world.hour.copy()
        action = rng.integers(2, size=world.n_worlds) if actions is None else np.full(world.n_worlds, actions)
        result = world.step(action)
        yield now, hours, action, result
        if result[2].all() or (result[2] | result[3])[0]:
            return


@pytest.mark.parametrize(
    "reward, worth",
    [
        ("sign", lambda amount: {"passed": 1, "undetected": -1, "cancelled": 0}),
        ("main_text", lambda amount: {"passed": 1, "undetected": -1, "cancelled": -1}),
        ("money", lambda amount: {"passed": 0.003 * amount + 0.01, "undetected": -amount, "cancelled": 0}),
    ],
)
@pytest.mark.parametrize("bias, bias_on", [(0, "always"), (1, "always"), (2, "passed")])
def test_rewards_are_those_of_the_table(reward, worth, bias, bias_on):
    world = started(30, reward=reward, bias=bias, bias_on=bias_on, fraud_proportion=0.9, start="2016-08-01")
    seen = set()
    for now, _, actions, (_, rewards, _, _, record) in steps(world, 40):
        for index, action in enumerate(actions):
            kind, amount = now.kind[index], now.amount[index]
            passed = not action or kind == AUTHENTIC
            outcome = ("undetected" if kind == FRAUD else "passed") if passed else "cancelled"
            favoured = now.continent[index] == EU and (bias == 1 or now.merchant[index] == 0) and bias > 0
            favoured = favoured and (bias_on == "always" or not action)
            assert rewards[index] == pytest.approx(worth(amount)[outcome] + 0.1 * favoured)
            assert record["detail"]["passed"][index] == passed
            assert np.isnan(record["detail"]["satisfaction"][index]) == (kind == FRAUD)
            assert record["detail"]["bias"][index] == pytest.approx(0.1 * favoured)
            assert rewards[index] <= world.max_return / world.max_steps
            seen.add((kind, action))
    assert len(seen) == 6


def test_an_authentication_as_a_hand_would_reckon_it():
    """Satisfaction .9: cancelled .855, then authenticated .84645, then let pass .8549145; never above 1."""
    world = started(stay_prob=(1.0, 1.0))
    customers = world.customers
    follow = int(world.transactions.customer[0])
    satisfaction = [customers.eagerness[0, follow]]
    for kind, action in ((REFUSED, 1), (AUTHENTIC, 1), (REFUSED, 0)):
        now = world.transactions
        world.transactions = now._replace(customer=np.array([follow]), kind=np.array([kind]))
        _, _, _, _, record = world.step(np.array([action]))
        satisfaction.append(record["detail"]["satisfaction"][0])
    assert_allclose(satisfaction, [0.9, 0.855, 0.84645, 0.8549145], atol=1e-11)
    for _ in range(30):
        world.transactions = world.transactions._replace(customer=np.array([follow]), kind=np.array([REFUSED]))
        *_, record = world.step(np.array([0]))
    assert record["detail"]["satisfaction"][0] == 1


def test_the_ledger_of_an_independent_bank_agrees():
    """Who is a customer, how satisfied, who leaves when, kept in dicts from what is decided alone."""
    world = started(3, seed=5, fraud_proportion=0.5, stay_after_fraud=0.4, fraud_cards_in_genuine=0.8)
    customers = world.customers
    ledgers = [{int(row): customers.eagerness[bank, row] for row in rows(world, bank)} for bank in range(3)]
    leaving, victims, bought, left = [set(), set(), set()], [set(), set(), set()], [set(), set(), set()], 0
    for now, hours, actions, (obs, _, _, _, _) in steps(world, 400, seed=1):
        for bank, ledger in enumerate(ledgers):
            row, kind = int(now.customer[bank]), now.kind[bank]
            assert row in ledger and row not in bought[bank], "one purchase an hour, by customers"
            bought[bank].add(row)
            assert (kind == FRAUD) == customers.fraud[bank, row]
            if kind != FRAUD:
                factor = 1.01 if not actions[bank] else 0.99 if kind == AUTHENTIC else 0.95
                ledger[row] = min(1, ledger[row] * factor)
            if now.stay[bank] >= (ledger[row] * 0.9 if kind != FRAUD else 0.6):
                leaving[bank].add(row)
            if kind == FRAUD and not actions[bank]:
                owners = [other for other in ledger if customers.card[bank, other] == now.card[bank]]
                victims[bank] |= {other for other in owners if not customers.fraud[bank, other]}
            if world.hour[bank] != hours[bank]:
                present = set(rows(world, bank))
                assert not present & leaving[bank], "leavers are gone when the hour is over"
                gone = set(ledger) - present
                assert gone <= leaving[bank] | victims[bank], "nobody else leaves"
                left += len(gone)
                came = present - set(ledger)
                ledgers[bank] = {
                    other: ledger.get(other, 1.0 if customers.fraud[bank, other] else 0.9) for other in present
                }
                assert all(other > max(ledger) - 300 for other in came)
                leaving[bank], victims[bank], bought[bank] = set(), set(), set()
            genuine = [value for other, value in ledgers[bank].items() if not customers.fraud[bank, other]]
            assert obs[bank, 0] == pytest.approx(np.mean(genuine), abs=1e-6)
            assert customers.genuine[bank] == len(genuine)
    assert left > 100


def rows(world, bank):
    """Rows of the customers of a bank."""
    return np.flatnonzero(world.customers.eagerness[bank]).tolist()


def test_cards_are_numbered_as_they_are_first_used_and_some_fraudsters_use_those_of_customers():
    world = started(150, fraud_proportion=0.5, start="2016-08-01", fraud_cards_in_genuine=0.5, stay_prob=(1, 1))
    known, stolen, first, largest = [{} for _ in range(150)], 0, 0, np.full(150, -1)
    tables = countries()
    for now, *_ in steps(world, 100, actions=1):
        for bank in range(150):
            card, row, fraud = now.card[bank], now.customer[bank], now.fraud[bank]
            if row in known[bank]:
                assert known[bank][row] == card
                continue
            known[bank][row] = card
            first += fraud
            if card <= largest[bank]:
                stolen += 1
                assert fraud, "customers never use the cards of others"
                place = now.features[bank, 6] * 124
                assert tables.attacked[round(place)]
                assert now.features[bank, 9] * 4 < 2.5, "euro, dollar or pound"
            else:
                assert card == largest[bank] + 1
                largest[bank] = card
    assert stolen / first == pytest.approx(0.5, abs=0.06)


def test_whose_card_was_used_in_a_fraud_leaves_or_gets_a_new_one():
    world = started(400, fraud_proportion=0.6, stay_after_fraud=0.3, stay_prob=(1.0, 1.0))
    for _ in range(40):
        world.step(np.ones(400, dtype=int))
    customers = world.customers
    genuine = (customers.card >= 0) & (customers.eagerness > 0) & ~customers.fraud
    everyone, owners, hour = np.arange(400), genuine.argmax(axis=1), world.hour.copy()
    cards, issued = customers.card[everyone, owners], customers.cards.copy()
    customers.corrupt(everyone, cards)
    customers.end_hour(everyone, hour)
    before = customers.eagerness[everyone, owners] > 0  # a few wanted to leave anyway
    customers.begin_hour(everyone, hour + 1)
    stays = customers.eagerness[everyone, owners] > 0
    assert before.mean() > 0.9 and stays[before].mean() == pytest.approx(0.3, abs=0.07)
    assert (customers.card[everyone, owners][stays] >= issued[stays]).all()
    customers.begin_hour(everyone, hour + 2)
    assert_array_equal(stays, customers.eagerness[everyone, owners] > 0)


def test_observations_and_features_are_the_specified_ones():
    env = WorldEnv(FraudWorld, detail=True, fraud_proportion=0.9, start="2016-12-31T20:00", n_hours=30)
    obs, info = env.reset(seed=1)
    assert obs.shape == (12,) and obs.dtype == np.float32 and obs[1] == 0 and obs[0] == pytest.approx(0.9)
    codes = {continent: code for code, continent in enumerate(CONTINENTS)}
    assert codes == {"EU": 0, "AS": 1, "NA": 2, "AF": 3, "OC": 4, "SA": 5}
    found = 0
    for number in range(1, 30):
        before = obs
        obs, _, terminated, truncated, info = env.step(1)
        features, detail = info["individual"]["features"], info["detail"]
        assert_allclose(features, before[2:], atol=1e-6)
        month, day, weekday, hour, card, _, country, continent, amount, _ = features * (
            [12, 31, 6, 23, 10_000, 6, 124, 5, 8000, 4]
        )
        assert (round(month), round(day)) in ((12, 31), (1, 1), (1, 2)) and 0 <= round(hour) <= 23
        assert round(weekday) == {31: 5, 1: 6, 2: 0}[round(day)], "31 December 2016 was a Saturday"
        assert (round(card), round(continent)) == (detail["card"], detail["continent"])
        assert countries().continent[round(country)] == round(continent)
        assert amount == pytest.approx(detail["amount"])
        found += detail["fraud"]
        assert obs[1] == pytest.approx(found / number)
        if terminated or truncated:
            break
    spec = env.fairness_spec
    names = {kind: [spec.feature_names[column] for column in getattr(spec, kind)] for kind in ("nominal", "sensitive")}
    assert names["nominal"] == ["card", "merchant", "country", "continent", "currency"]
    assert names["sensitive"] == ["card", "country", "continent"]
    assert len(spec.select(features)) == 7
    assert spec.history == SlidingWindow(500) and spec.notions == ("SP", "PP") and spec.groups == (EU, NORTH_AMERICA)


def test_undetected_frauds_are_counted_only_where_observations_may_leak():
    for percentage, counts in (("known", False), ("all", True)):
        world = started(50, fraud_proportion=0.9, start="2016-08-01", fraud_percentage=percentage)
        frauds = np.zeros(50)
        for number, (now, _, _, (obs, *_)) in enumerate(steps(world, 20, actions=0), start=1):
            frauds += now.fraud
            assert_allclose(obs[:, 1], counts * frauds / number, atol=1e-6)
        assert frauds.sum() > 100


def test_an_episode_ends_with_its_transactions_its_hours_or_its_customers():
    world = started(20, max_transactions=7)
    ends = [truncated.all() for *_, (_, _, terminated, truncated, _) in steps(world, 7) if not terminated.any()]
    assert ends == [False] * 6 + [True]
    world = started(n_hours=24, max_transactions=None)
    assert world.max_steps is None and world.max_return == np.inf
    *_, (_, hours, _, (obs, _, terminated, truncated, _)) = steps(world, 1000)
    assert truncated[0] and not terminated[0] and hours[0] < 24 and world.hour[0] == 24
    assert not obs[0, 2:].any() and obs[0, 0] > 0
    world = started(num_customers=2, stay_prob=(0.0, 0.0), fraud_proportion=0.99, n_hours=1000)
    *_, (_, _, _, (obs, _, terminated, truncated, _)) = steps(world, 1000)
    assert terminated[0] and not truncated[0] and world.customers.genuine[0] == 0
    assert obs[0, 0] == 0 and not obs[0, 2:].any()


def test_without_dynamics_customers_only_ever_arrive():
    world = started(4, customer_dynamics=False, init_satisfaction=0.3, fraud_cards_in_genuine=1.0, n_hours=100)
    before = world.customers.genuine.copy()
    for _, _, _, (obs, _, _, _, record) in steps(world, 300, actions=1):
        assert (obs[:, 0] == 1).all() and (world.customers.genuine >= before).all()
        assert not world.customers.corrupted.any()
        before = world.customers.genuine.copy()
        assert np.nanmin(record["detail"]["satisfaction"], initial=1) == 1
    assert (before > 100).all()


def test_the_path_of_a_bank_does_not_depend_on_the_room_that_others_need(monkeypatch):
    monkeypatch.setattr("sb3_fair.zoo.envs.fraud.customers._RESERVE_HOURS", 2)  # so rows are packed and arrays grow
    ends, capacities = 0, set()
    actions = np.random.default_rng(0).integers(2, size=(300, 3))
    for dones, banks in side_by_side(FraudWorld, 3, 4, actions, detail=True, **BUSY):
        ends += dones.sum()
        capacities.add(len({bank.world.customers.capacity for bank in banks}))
    assert ends and max(capacities) > 1


def test_groups_are_published_as_the_spec_compares_them():
    for group, names in (
        ("continent", ("SP",)),
        ("merchant", ("SP",)),
        (("continent", "merchant"), ("SP",)),
        (["continent", ("continent", "merchant")], ("SP@continent", "SP@continent+merchant")),
    ):
        env = gym.make(ID, group=group, objectives=("R", "SP"), fraud_proportion=0.3)
        _, info = env.reset(seed=0)
        assert env.get_wrapper_attr("objective_names") == ("R", *names)
        for action in np.random.default_rng(0).integers(2, size=100):
            told = info["massage"]["group"] if isinstance(group, str) else info["massage"]
            *_, info = env.step(action)
            assert info["individual"]["group"] == told, "the coming transaction's group is known"
        assert all(-1 <= info["fairness"][name] <= 0 for name in names)


def test_other_continents_are_not_compared():
    env = gym.make(ID, audit=("SP",), detail=True)
    env.reset(seed=0)
    actions, continents = [], []
    for action in np.random.default_rng(0).integers(2, size=200):
        *_, info = env.step(action)
        actions.append(action)
        continents.append(info["detail"]["continent"])
    actions, continents = np.array(actions), np.array(continents)
    assert len(set(continents)) > 2
    rates = [actions[continents == group].mean() for group in (EU, NORTH_AMERICA)]
    assert info["fairness"]["SP"] == pytest.approx(-abs(rates[0] - rates[1]))


@pytest.mark.parametrize("rule", ["authenticate-eu", "authenticate-na"])
def test_authenticating_one_continent_is_as_unfair_as_can_be(rule):
    venv = sb3_fair.make_vec(ID, 3, seed=0, monitor=False)
    agent, obs = RuleAgent(rule, venv, seed=0), venv.reset()
    for _ in range(100):
        obs, _, _, infos = venv.step(agent.predict(obs)[0])
    assert [info["fairness"]["SP"] for info in infos] == [-1] * 3


def test_the_rules_do_what_their_names_say():
    world = started(60, fraud_proportion=0.9, start="2016-08-01")
    now = world.transactions

    def authenticate(rule):
        chances = world.rules[rule](world)
        assert_allclose(chances.sum(axis=1), 1)
        return chances[:, 1]

    assert (authenticate("ignore") == 0).all() and (authenticate("authenticate") == 1).all()
    assert (authenticate("random") == 0.5).all()
    assert_array_equal(authenticate("oracle"), now.kind == FRAUD)
    assert_array_equal(authenticate("authenticate-eu"), now.continent == EU)
    assert_array_equal(authenticate("authenticate-na"), now.continent == NORTH_AMERICA)
    assert 0 < now.fraud.mean() < 1


def test_presets_are_sets_of_defaults():
    paper, simulator = FraudWorld(1).config, FraudWorld(1, preset="multimaus").config
    assert (paper.num_customers, paper.fraud_proportion, paper.stay_prob) == (100, 0.6, (0.9, 0.6))
    assert (simulator.num_customers, simulator.num_fraudsters, simulator.max_transactions) == (3333, 55, None)
    assert (simulator.init_satisfaction, simulator.stay_prob) == (1.0, (0.516122, 0.333333))
    assert (simulator.n_hours, simulator.fraud_proportion) == (365 * 24, None)
    assert_array_equal(simulator.volumes, [89_194, 1_163])
    assert FraudWorld(1, preset="multimaus", num_customers=50, n_hours=9).config.num_customers == 50
    ids = {"": {}, "-BiasEU": {"bias": 1}, "-BiasEUM0": {"bias": 2}, "-MultiMAuS": {"num_customers": 3333}}
    ids["-Static"] = {"customer_dynamics": False, "fraud_proportion": 0.5}
    for variant, settings in ids.items():
        config = gym.make(f"sb3_fair/FraudDetection{variant}-v0").unwrapped.world.config
        assert {name: getattr(config, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_customers": 0}, "num_customers must be a positive integer, got 0"),
        ({"num_fraudsters": 0}, "num_fraudsters must be a positive integer, got 0"),
        ({"fraud_proportion": 1.5}, r"fraud_proportion must be in \[0, 1\] or None, got 1.5"),
        ({"init_satisfaction": 0}, r"init_satisfaction must be in \[0.01, 1\], got 0"),
        ({"stay_prob": 0.9}, r"stay_prob must be a sequence of 2 \(each in \[0, 1\]\), got 0.9"),
        ({"stay_prob": (0.9, 2)}, r"stay_prob must be a sequence of 2 \(each in \[0, 1\]\), got \(0.9, 2\)"),
        ({"stay_after_fraud": -1}, "stay_after_fraud must be in"),
        ({"noise_level": -0.1}, r"noise_level must be in \[0, 1\], got -0.1"),
        ({"fraud_cards_in_genuine": None}, "fraud_cards_in_genuine must be in"),
        ({"start": "tomorrow"}, "start must be a date such as '2016-06-01', got 'tomorrow'"),
        ({"start": "9999-12-31"}, "start must be a date from which n_hours = 168 are within the years 1"),
        ({"start": "0001-01-01T00:00+09:00", "n_hours": 2}, "start must be a date from which n_hours = 2 "),
        ({"start": 2016}, "start must be a string, got 2016"),
        ({"n_hours": 0}, "n_hours must be a positive integer, got 0"),
        ({"max_transactions": 0}, "max_transactions must be a positive integer or None, got 0"),
        ({"customer_dynamics": 1}, r"customer_dynamics must be True or False, got 1"),
        ({"reward": "signs"}, "reward must be one of .*'money'.*, got 'signs'"),
        ({"bias": 3}, r"bias must be one of 0, 1, 2, got 3"),
        ({"bias_on": "never"}, r"bias_on must be one of 'always', 'passed', got 'never'"),
        ({"feedback": None}, r"feedback must be one of 'authenticated', 'all', got None"),
        ({"fraud_percentage": "no"}, "fraud_percentage must be one of"),
        ({"zones": "last"}, r"zones must be one of 'main', 'first', got 'last'"),
        ({"preset": "ours"}, r"preset must be one of \['paper', 'multimaus'\], got 'ours'"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        FraudWorld(1, **settings)


def test_an_episode_in_which_nobody_can_ever_buy_is_an_error():
    with pytest.raises(ValueError, match="settings must be such that somebody buys something"):
        started(fraud_proportion=1.0, noise_level=0.0)
