"""Do the customers live, buy and come as the published figures say?"""

import copy
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.zoo.envs.fraud.calendar import Calendar
from sb3_fair.zoo.envs.fraud.customers import FRAUD, GENUINE, Customers, expected_arrivals
from sb3_fair.zoo.envs.fraud.settings import FraudConfig
from sb3_fair.zoo.envs.fraud.tables import CLASSES, CONTINENTS, CURRENCIES, amounts, countries, merchants, profiles
from sb3_fair.zoo.envs.fraud.transactions import Shops
from sb3_fair.zoo.envs.fraud.world import FraudWorld
from sb3_fair.zoo.envs.tables import table
from tests.zoo.forms import begun

SHARES = {  # of the continents, genuine and fraud, and the number of their countries
    "EU": (0.834875, 0.657782, 39),
    "AS": (0.023769, 0.028375, 28),
    "NA": (0.113809, 0.306105, 21),
    "AF": (0.003094, 0.001720, 18),
    "OC": (0.022715, 0.006019, 11),
    "SA": (0.001738, 0.000000, 8),
}
OFFSETS = {  # from UTC in the first week of 2016, where the zone that is listed first counts
    -11: "AS UM", -10: "PF", -6: "CR GT HN MX", -5: "BS CO EC JM PA PE US",
    -4: "AG AW BB BM BO DO GP GY LC MQ MS PR VI",
    -3.5: "CA", -3: "GF GL PY", -2: "BR", -1: "CV", 0: "CI FO GB IE IS ML PT",
    1: "AD AO AT BA BE CH CM CZ DE DK ES FR GA GI HR HU IT LI LU MC MT NE NL NO PL SE SI SK SM TD",
    2: "BG CY EE EG FI GR IL LB LT LV MW MZ RO RU SZ TR ZA", 3: "BH MG QA SA TZ UA UG", 4: "AE GE OM RE SC",
    5: "MV UZ", 5.5: "IN LK", 5.75: "NP", 6: "KG KZ", 7: "ID TH VN", 8: "BN CN HK MY SG TW", 9: "JP KR PW", 10: "GU",
    11: "AU NC VU", 12: "TV WF", 13: "NZ",
}  # fmt: skip


def made(n=1, seed=0, **settings):
    """Customers of n banks, and their calendar."""
    config = FraudConfig(**settings)
    calendar = Calendar(config.start_time, config.n_hours, countries().zones)
    customers = Customers(n, config, calendar)
    customers.found(np.arange(n), [np.random.default_rng(seed + index) for index in range(n)])
    return customers, calendar


def test_shares_of_the_continents_follow_from_those_of_the_countries():
    tables = countries()
    assert len(tables.names) == 125
    for code, continent in enumerate(CONTINENTS):
        *shares, number = SHARES[continent]
        assert np.count_nonzero(tables.continent == code) == number
        for kind in (GENUINE, FRAUD):
            chances = np.diff(tables.home_chances[kind], prepend=0)
            here = tables.continent[tables.homes[kind][:, 0]] == code
            assert chances[here].sum() == pytest.approx(shares[kind], abs=1e-5)


def test_profiles_merchants_and_amounts_are_shares():
    for part in (slice(0, 12), slice(12, 43), slice(43, 50), slice(50, 74)):
        assert_allclose(profiles()[:, part].sum(axis=1), 1)
    assert_allclose(merchants().sum(axis=1), 1)
    assert_allclose(amounts().heights.sum(axis=1), 1)
    assert profiles()[0, 5] == pytest.approx(0.128265, rel=1e-4) and profiles()[1, 73] == pytest.approx(
        0.190026, rel=1e-4
    )
    for row in table("fraud/amounts"):
        place = 7 * CLASSES.index(row["class"]) + int(row["merchant"])
        bins = amounts().low[place] + amounts().bin_width[place] * (np.arange(20) + 0.5)
        spread = float(row["high"]) - float(row["low"])
        assert bins @ amounts().heights[place] == pytest.approx(float(row["mean"]), abs=0.03 * spread)


def test_the_first_zones_have_the_offsets_of_january():
    midnight = datetime(2016, 1, 2, tzinfo=UTC)
    tables = countries()
    for zones, differs in ((tables.first_zones, {}), (tables.zones, {"CA": -5, "RU": 3})):
        offsets = {country: offset for offset, names in OFFSETS.items() for country in names.split()} | differs
        for country, zone in zip(tables.names, zones, strict=True):
            offset = midnight.astimezone(ZoneInfo(zone)).utcoffset()
            assert offset == timedelta(hours=offsets[country]), country


@pytest.mark.parametrize("start", ["2016-01-01T00:00", "2016-03-26", "2016-06-01T05:00+02:00", "2016-12-30T07:00"])
def test_the_calendar_shows_the_time_of_day_and_daylight_saving(start):
    config = FraudConfig(start=start, n_hours=72)
    tables = countries()
    calendar = Calendar(config.start_time, 72, tables.zones)
    for country in ("FR", "US", "IN", "NP", "NZ", "UM"):
        code = tables.names.index(country)
        clock = ZoneInfo(tables.zones[code])
        for hour in range(72):
            dawn = (config.start_time + timedelta(hours=24 * (hour // 24))).astimezone(clock)
            local = dawn.replace(tzinfo=None) + timedelta(hours=hour % 24)  # converted once a day
            assert_array_equal(
                calendar.moments[hour, code], [local.month, local.day, local.weekday(), local.hour], err_msg=country
            )
    own = [config.start_time + timedelta(hours=hour) for hour in range(72)]
    assert calendar.months.tolist() == [moment.month - 1 for moment in own]


def test_summer_time_moves_the_clock():
    france = countries().names.index("FR")
    hours = [
        Calendar(FraudConfig(start=start).start_time, 24, countries().zones).moments[0, france, 3]
        for start in ("2016-01-01T00:00", "2016-07-01T00:00")
    ]
    assert hours == [9, 10]


def test_an_episode_begins_at_eight_utc():
    assert FraudConfig().start_time == datetime(2016, 1, 1, 8, tzinfo=UTC)


def test_rates_are_those_of_the_formula():
    customers, calendar = made(2, start="2016-06-29")
    config, tables = customers.config, countries()
    rows = np.arange(0, customers.capacity, 7)
    for day in (0, 1, 3):
        rates = customers.rates(np.array([[1]]), rows[None], np.array([[day]]))[0]
        for place, row in enumerate(rows.tolist()):
            clock = ZoneInfo(tables.zones[customers.country[1, row]])
            dawn = (config.start_time + timedelta(days=day)).astimezone(clock).replace(tzinfo=None)
            profile = customers.profile[1, row].astype(float)
            for hour in range(24):
                local = dawn + timedelta(hours=hour)
                shares = profile[[local.month - 1, 11 + local.day, 43 + local.weekday(), 50 + local.hour]]
                assert rates[place, hour] == pytest.approx(customers.rate[1, row] * shares.prod(), rel=1e-5)
    assert calendar.dates.shape == (7, 125, 2, 3)


def test_a_person_of_the_class_profile_buys_at_the_rate_of_the_class():
    """rate * 12 m * 24 h * 30.5 d * 7 w: over a year as many as the class makes in all."""
    customers, _ = made(noise_level=0.0, fraud_proportion=0.5)
    genuine = ~customers.fraud[0, : customers.config.num_customers]
    assert genuine.all()
    rate = customers.rate[0, 0] / (12 * 24 * 30.5 * 7)
    assert rate == pytest.approx(45178.5 / 366 / 24 / 100, rel=1e-6)
    assert_allclose(customers.profile[0, 0, :74], profiles()[0], rtol=1e-6)


def test_people_differ_by_the_noise_of_the_figures():
    customers, _ = made(60)
    genuine = ~customers.fraud
    for part, deviation, base in (
        (slice(0, 12), 0.00913, 5),
        (slice(12, 43), 0.01811, None),
        (slice(43, 50), 0.0378, 0),
        (slice(50, 74), 0.0204, 23),
    ):
        shares = customers.profile[..., part][genuine]
        assert shares.min() >= 0
        if base is not None:  # one so large that hardly anybody's is cut off at 0
            assert shares[:, base].std() == pytest.approx(deviation, rel=0.04)
    assert_array_equal(customers.profile[..., 74:], customers.profile[..., 50:74])
    yearly = customers.rate[genuine]
    assert yearly.std() / yearly.mean() == pytest.approx(0.1, abs=0.01)
    patience = customers.patience[genuine] / 0.8
    assert (patience.mean(), patience.var()) == pytest.approx((10 / 12, 20 / 144 / 13), abs=0.002)
    assert (customers.patience[customers.fraud] == -np.inf).all()


def test_homes_follow_the_shares():
    customers, _ = made(200)
    everyone = customers.rate > 0
    for kind in (GENUINE, FRAUD):
        country = customers.country[everyone & (customers.fraud == kind)]
        shares = np.bincount(countries().continent[country], minlength=6) / len(country)
        assert_allclose(shares, [SHARES[continent][kind] for continent in CONTINENTS], atol=0.016)
    norway = everyone & ~customers.fraud & (customers.country == countries().names.index("NO"))
    assert np.mean(customers.trade[norway] == CURRENCIES.index("NOK")) == pytest.approx(0.9458, abs=0.02)


@pytest.mark.parametrize(
    "settings, expected", [({"fraud_proportion": 0.5}, (0.397, 0.206)), ({"fraud_proportion": 0}, (0.794, 0))]
)
def test_expected_arrivals_have_the_check_values(settings, expected):
    config = FraudConfig(**settings)
    arrivals = expected_arrivals(config, Calendar(config.start_time, 24, countries().zones))
    assert_allclose(arrivals, np.tile(expected, (24, 1)), atol=0.001)


def test_as_many_arrive_as_expected_from_the_satisfied():
    for settings, kind in (
        ({"fraud_proportion": 0.5, "init_satisfaction": 0.5}, "few"),
        ({"preset": "multimaus"}, "crowd"),
    ):
        world = begun(FraudWorld, 40, n_hours=30, **settings)
        customers, everyone = world.customers, np.arange(40)
        before = customers.genuine.copy(), world.fraudsters
        for hour in range(20):
            customers.end_hour(everyone, np.full(40, hour))
        came = [(customers.genuine - before[0]).mean(), (world.fraudsters - before[1]).mean()]
        expected = 20 * customers.immigration[0] * [0.5 if kind == "few" else 1.0, 1.0]
        assert_allclose(came, expected, atol=4 * (20 / 40) ** 0.5 / 2)
        customers.immigration[25] = 0
        before = customers.genuine.copy(), world.fraudsters
        customers.end_hour(everyone, np.full(40, 25))
        assert_array_equal(before, (customers.genuine, world.fraudsters))


def test_customers_buy_as_often_as_rate_and_satisfaction_say():
    customers, _ = made(300, fraud_proportion=0.5, customer_dynamics=False, n_hours=24)
    everyone = np.arange(300)
    rates = customers.rates(everyone[:, None], np.arange(customers.capacity), np.zeros((300, 1), dtype=int))
    customers.eagerness *= 0.7
    bought, expected = 0, np.minimum(rates, 1).transpose(2, 0, 1) * customers.eagerness
    for hour in range(24):
        bought += customers.begin_hour(everyone, np.full(300, hour)).sum()
    assert bought == pytest.approx(expected.sum(), abs=4 * expected.sum() ** 0.5)
    assert expected.sum() / 300 / 24 / 0.7 == pytest.approx(4, abs=0.6), "about four attempts an hour"


def test_those_who_buy_in_an_hour_come_in_random_order():
    customers, _ = made(1000, num_customers=30, n_hours=24, fraud_proportion=0.0, start="2016-06-01")
    numbers = customers.begin_hour(np.arange(1000), np.zeros(1000, dtype=int))
    pairs = np.flatnonzero(numbers >= 2)
    first, second = customers.buyers(pairs), customers.buyers(pairs)
    assert (first != second).all()
    assert np.mean(first < second) == pytest.approx(0.5, abs=4 * 0.5 / len(pairs) ** 0.5) and len(pairs) > 200


def test_fraudsters_who_would_buy_several_times_an_hour_are_not_the_last_to_buy():
    customers, _ = made(300, num_customers=40, n_hours=24, start="2016-06-01")
    everyone, first, last = np.arange(300), [], []
    for hour in range(24):
        numbers = customers.begin_hour(everyone, np.full(300, hour))
        for world in np.flatnonzero(numbers >= 2):
            queue = [customers.buyers(np.array([world]))[0] for _ in range(numbers[world])]
            fraud = customers.fraud[world, queue]
            if fraud.any() and not fraud.all():
                share = 1 - fraud.mean()
                first.append(~fraud[0] - share)
                last.append(~fraud[-1] - share)
    assert len(first) > 300
    for luck in (first, last):
        assert np.mean(luck) == pytest.approx(0, abs=4 * np.std(luck) / len(luck) ** 0.5)


def test_merchants_follow_from_currency_and_class_and_authentication_from_patience():
    customers, calendar = made(1, num_customers=1, num_fraudsters=1)
    shop = Shops(customers, calendar)
    n = 20_000
    rng = np.random.default_rng(0)
    customers.buyers = lambda worlds: np.full(len(worlds), row)
    for kind, row in ((GENUINE, 0), (FRAUD, int(np.flatnonzero(customers.fraud[0])[0]))):
        for currency, shares in ((1, merchants()[5 * kind + 1]), (0, merchants()[5 * kind])):
            customers.trade[0, row], customers.card[0, row] = 5 * kind + currency, 3
            if kind == GENUINE:
                customers.patience[0, row] = 0.8 * 0.75
            now = shop.next(np.zeros(n, dtype=int), np.zeros(n, dtype=int), rng.random((n, 6)))
            assert_allclose(np.bincount(now.merchant, minlength=7) / n, shares, atol=0.015)
            for merchant in np.flatnonzero(shares > 0.1):
                amount, place = now.amount[now.merchant == merchant], 7 * kind + merchant
                bins = amounts().low[place] + amounts().bin_width[place] * (np.arange(20) + 0.5)
                mean, spread = bins @ amounts().heights[place], np.ptp(bins)
                assert amount.mean() == pytest.approx(mean, abs=4 * 0.5 * spread / len(amount) ** 0.5)
                assert amounts().low[place] <= amount.min() and amount.max() <= bins[-1] + amounts().bin_width[place]
            assert (now.fraud == kind).all()
            if kind == GENUINE:
                chance = 0.8 * 0.75 + 0.2 * now.amount / amounts().largest[now.merchant]
                assert now.kind.mean() == pytest.approx(chance.mean(), abs=0.015)


@pytest.mark.parametrize("at_once", [1, 2**18])
def test_a_day_is_planned_by_its_date_also_for_those_who_are_made_in_the_course_of_it(at_once, monkeypatch):
    monkeypatch.setattr("sb3_fair.zoo.envs.fraud.customers._LARGEST_BLOCK", at_once)
    customers, _ = made(2, n_hours=48)
    banks, days = np.arange(2), np.array([[0], [1]])
    customers.found(banks, [np.random.default_rng(0) for _ in banks])  # the same people and luck

    def luck():
        rates = customers.rates(banks[:, None], np.arange(customers.capacity), days).swapaxes(1, 2)
        at_most = np.where(customers.fraud[:, None], np.minimum(rates, 1), rates)
        buys = (rates > 0).all(axis=0)
        return customers.reluctance[:, buys] * at_most[:, buys]

    customers.begin_hour(banks, np.array([0, 24]))
    assert_allclose(*luck(), rtol=1e-5)
    here = np.flatnonzero(customers.eagerness[0])
    customers.card[:] = np.arange(customers.capacity)
    kept = {name: getattr(customers, name)[:, here] for name in customers._arrays}
    customers._end[:], customers._doors[:] = customers._next, 0  # nobody is in reserve any more, and somebody comes
    customers.end_hour(banks, np.array([5, 29]))
    for name, values in kept.items():
        assert_array_equal(getattr(customers, name)[:, : len(here)], values)
    assert np.count_nonzero(customers.eagerness[0]) == len(here) + 2
    assert_allclose(*luck(), rtol=1e-5)
    assert (customers.reluctance[0] != customers.reluctance[1]).any()


@pytest.mark.parametrize("day", [0, 2])
def test_a_thief_lives_by_his_victims_clock_from_now_on(day):
    customers, _ = made(1, num_customers=3, num_fraudsters=1, fraud_proportion=0.9, start="2016-08-01")
    everyone, hours, days = np.zeros(1, dtype=int), np.array([24 * day]), np.array([[day]])
    customers.begin_hour(everyone, hours)
    thief = int(np.flatnonzero(customers.fraud[0] & (customers.eagerness[0] > 0))[0])
    names = countries().names
    customers.country[0, :3], customers.country[0, thief] = names.index("JP"), names.index("US")
    customers.trade[0, :3], customers.card[0, 1] = 1, 17
    customers.rate[0, thief] /= 1000  # not always at the cap of 1
    before = customers.rates(everyone[:, None], np.array([[thief]]), days)
    luck, stream = customers.reluctance[0, :, thief].copy(), copy.deepcopy(customers.streams[0])
    customers.issue(everyone, np.array([thief]), np.array([[0.0, 0.99]]), hours)
    assert (customers.card[0, thief], customers.country[0, thief], customers.trade[0, thief]) == (
        17,
        names.index("JP"),
        6,
    )
    after = customers.rates(everyone[:, None], np.array([[thief]]), days)
    new = stream.random(24, dtype=np.float32)
    buys = after[0, 0] > 0
    at_most = np.minimum(after[0, 0, buys], 1)
    assert_allclose(customers.reluctance[0, buys, thief] * at_most, new[buys], rtol=1e-5)
    shift = 14  # from the east of the United States in summer, -4, to Japan, +9: 13 hours later by the clock
    assert_allclose(np.argmax(after[0, 0]), (np.argmax(before[0, 0]) - shift + 1) % 24)
    assert (customers.reluctance[0, :, thief] != luck).any()
    assert Counter(customers.card[0].tolist())[17] == 2
