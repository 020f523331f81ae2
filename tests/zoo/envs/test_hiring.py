"""Does the hiring scenario keep its rules? An independent company of Python lists answers."""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness import SlidingWindow, group_notion
from sb3_fair.zoo.envs.groups import Groups
from sb3_fair.zoo.envs.hiring.applicants import ApplicantPool, HiringConfig
from sb3_fair.zoo.envs.hiring.world import HiringWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from tests.zoo.forms import begun

AGE, GENDER, DEGREE, EXTRA, NATIONALITY, MARRIED, EXPERIENCE = range(7)

started = partial(begun, HiringWorld, detail=True)


def entropy(labels, base):
    counts = Counter(labels)
    total = sum(counts.values())
    return -sum(c / total * math.log(c / total, base) for c in counts.values()) if total else 0.0


class Company:
    """A list of members, each the eleven features; everything is counted anew."""

    def __init__(self, size, weight=0.0, level=False):
        self.size, self.weight, self.level, self.members = size, weight, level, []

    def languages(self, members):
        return [language for member in members for language in range(4) if member[7 + language]]

    def genders(self, members):
        return [member[GENDER] for member in members]

    def nationalities(self, members):
        return [member[NATIONALITY] for member in members]

    def goodness(self, person):
        """Without noise, and the parts of skill and diversity in it."""
        after = [*self.members, person]
        before = [] if self.level else self.members

        def gain(labels, base):
            return entropy(labels(after), base) - entropy(labels(before), base)

        held = sum(person[feature] > 0 for feature in (DEGREE, EXTRA, EXPERIENCE))
        skills = [held / 3, person[DEGREE], person[EXTRA], person[EXPERIENCE], gain(self.languages, 4)]
        diversity = [gain(self.genders, 2), gain(self.nationalities, 2)]
        parts = (1 - self.weight) * sum(skills) / 5, self.weight * sum(diversity) / 2
        return max(-1.0, min(1.0, sum(parts))), parts

    def observation(self):
        held = [sum(m[feature] > 0 for feature in (DEGREE, EXTRA, EXPERIENCE)) / 3 for m in self.members]
        state = [sum(held) / self.size]
        state += [sum(m[feature] for m in self.members) / self.size for feature in (DEGREE, EXTRA, EXPERIENCE)]
        spoken = self.languages(self.members)
        state += [spoken.count(language) / max(1, len(spoken)) for language in range(4)]
        for feature in (GENDER, NATIONALITY):
            state += [sum(m[feature] == code for m in self.members) / max(1, len(self.members)) for code in (0, 1)]
        return state


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("entropy_", ["difference", "level"])
@pytest.mark.parametrize("leaving", [False, True])
def test_goodness_reward_and_company_are_those_of_a_company_of_lists(weight, entropy_, leaving):
    settings = {"diversity_weight": weight, "entropy": entropy_, "leaving": leaving, "steps_per_year": 20, "bias": 2}
    world = started(3, noise=False, team_size=12, episode_length=60, **settings)
    companies, members = [Company(12, weight, entropy_ == "level") for _ in range(3)], [[] for _ in range(3)]
    begun = [0, 0, 0]
    rng = np.random.default_rng(5)
    left = 0
    for step in range(200):
        people, stay = world.applicants.features.copy(), world.applicants.stay.copy()
        predicted = world.goodness()
        actions = (rng.random(3) < 0.25).astype(np.int64)
        obs, reward, terminated, truncated, record = world.step(actions)
        for copy, company in enumerate(companies):
            person = people[copy].tolist()
            goodness, (skill, diversity) = company.goodness(person)
            detail = {key: value[copy] for key, value in record["detail"].items()}
            assert detail["goodness"] == pytest.approx(goodness, abs=1e-12)
            assert detail["goodness"] == predicted[copy]
            assert detail["skill"] == pytest.approx(skill, abs=1e-12)
            assert detail["diversity"] == pytest.approx(diversity, abs=1e-12)
            bias = 0.1 if person[GENDER] == 0 and person[NATIONALITY] == 0 else 0.0
            assert detail["bias"] == bias and detail["noise"] == 0
            worth = max(-1.0, min(1.0, goodness - 0.5 + bias))
            assert reward[copy] == pytest.approx(worth if actions[copy] else -worth, abs=1e-12)
            assert detail["right_action"] == record["individual"]["feedback"][copy] == (goodness >= 0.5)
            assert detail["team_size"] == len(company.members)
            assert_array_equal(record["individual"]["features"][copy], person)
            if actions[copy]:
                members[copy].append((step + stay[copy] - 1, person))
            remaining = [member for member in members[copy] if not leaving or member[0] > step]
            left += len(members[copy]) - len(remaining)
            members[copy] = remaining
            company.members = [member for _, member in remaining]
            assert_allclose(obs[copy, :12], company.observation(), atol=1e-6)
            assert_array_equal(obs[copy, 12:], world.applicants.features[copy].astype(np.float32))
            assert terminated[copy] == (len(remaining) == 12)
            assert truncated[copy] == (step - begun[copy] == 59 and not terminated[copy])
            if terminated[copy] or truncated[copy]:
                assert not world.reset(np.array([copy]))[0, :12].any()
                begun[copy], company.members, members[copy] = step + 1, [], []
    assert (left > 5) == leaving


def test_people_who_left_take_nothing_with_them_that_they_did_not_bring():
    world = started(team_size=5, episode_length=400, steps_per_year=2, end_when_full=False)
    for _ in range(400):
        world.step(np.array([1]))
        assert 0 <= world.team_sizes[0] <= 5
        assert (world.team >= 0).all()
        if world.team_sizes[0] == 0:
            assert not world.team.any() and not world.company.any() and world.team_noise[0] == 0


def test_noise_has_the_sizes_of_the_equations():
    world = started(200, team_size=50, episode_length=100, leaving=False)
    company = [Company(50) for _ in range(200)]
    goodness_noise, reward_noise, potential_noise = [], [], []
    for step in range(40):
        people = world.applicants.features.copy()
        obs, reward, *_, record = world.step(np.full(200, step % 2))
        detail = record["detail"]
        worth = detail["goodness"] - 0.5 + detail["noise"] + detail["bias"]
        assert_allclose(reward, worth if step % 2 else -worth, atol=1e-12)
        reward_noise.append(detail["noise"])
        for copy in range(0, 200, 10):
            goodness_noise.append(detail["goodness"][copy] - company[copy].goodness(people[copy].tolist())[0])
            if step % 2:
                company[copy].members.append(people[copy].tolist())
                potential_noise.append(50 * (obs[copy, 0] - company[copy].observation()[0]))
    assert np.std(reward_noise) == pytest.approx(0.01, rel=0.05)
    assert np.std(potential_noise) == pytest.approx(0.01, rel=0.15)
    assert np.std(goodness_noise) == pytest.approx(0.2 * 0.01 * math.sqrt(2), rel=0.15)
    assert abs(np.mean(goodness_noise)) < 0.0005


def test_the_noise_of_a_team_is_kept_until_it_changes():
    world = started(team_size=50)
    noises = []
    for action in (0, 1, 0, 0, 1, 0):
        world.step(np.array([action]))
        noises.append(world.team_noise[0])
    assert noises[0] == 0 and noises[1] == noises[2] == noises[3] != noises[4] == noises[5] != 0


def test_without_noise_the_same_people_apply():
    quiet, loud = started(noise=False), started()
    for _ in range(20):
        assert_array_equal(quiet.applicants.features, loud.applicants.features)
        quiet.step(np.array([1]))
        loud.step(np.array([1]))
    assert not quiet.team_noise.any() and loud.team_noise.all()


def test_the_yearly_figures_on_leaving_become_those_of_a_step():
    pool = ApplicantPool(HiringConfig(), Groups("gender", {"gender": ("man", "woman")}))
    uniforms = np.random.default_rng(0).random((200_000, pool.columns))
    person = pool.draw(uniforms)
    age = np.round(18 + 47 * person.features[:, AGE])
    per_step = {(18, 24): 0.000297, (25, 34): 0.000144, (35, 44): 0.0000769, (45, 54): 0.0000481, (55, 64): 0.0000212}
    for (young, old), probability in per_step.items():
        stay = person.stay[(age >= young) & (age <= old)]
        assert stay.min() >= 1
        assert np.mean(stay) * probability == pytest.approx(1, abs=4 / math.sqrt(len(stay)))
        yearly = 1 - (1 - probability) ** 1000
        assert np.mean(stay <= 1000) == pytest.approx(yearly, abs=4 * math.sqrt(yearly / len(stay)) + 1e-4)


def test_the_smallest_uniforms_are_no_boundless_noise():
    pool = ApplicantPool(HiringConfig(), Groups("gender", {"gender": ("man", "woman")}))
    person = pool.draw(np.zeros((1, pool.columns)))
    assert person.reward_noise[0] == person.team_noise[0] == -0.05 and person.merit[0] == 0.2 * -0.05


def test_leaving_can_be_switched_off():
    world = started(50, leaving=False, steps_per_year=1, team_size=30)
    for hired in range(1, 20):
        world.step(np.ones(50, dtype=np.int64))
        assert (world.team_sizes == hired).all()


def test_observation_of_an_empty_team_and_the_names_of_its_columns():
    env = WorldEnv(HiringWorld, noise=False)
    obs, info = env.reset(seed=3)
    assert set(info) == {"massage"}
    assert not obs[:12].any()
    assert_array_equal(env.observation_space.low, np.float32([-0.05, *[0] * 22]))
    assert_array_equal(env.observation_space.high, np.float32([1.05, *[1] * 22]))
    spec = env.fairness_spec
    assert spec.feature_names[:2] == ("age", "gender") and len(spec.feature_names) == 11
    names = {kind: [spec.feature_names[column] for column in getattr(spec, kind)] for kind in ("nominal", "sensitive")}
    assert names["sensitive"] == ["age", "gender", "nationality", "married"]
    assert names["nominal"] == ["gender", "nationality", "married", "dutch", "french", "english", "german"]
    assert spec.history == SlidingWindow(500) and tuple(spec.notions) == ("SP", "EO")
    obs, *_, info = env.step(1)
    features = info["individual"]["features"]
    assert obs[0] * 100 == pytest.approx(np.count_nonzero(features[[DEGREE, EXTRA, EXPERIENCE]]) / 3, abs=1e-5)
    assert obs[[4, 5, 6, 7]].sum() == pytest.approx(1) and obs[[8, 9]].sum() == 1 and obs[[10, 11]].sum() == 1


def test_the_record_is_about_the_applicant_whom_the_action_was_for():
    env = WorldEnv(HiringWorld)
    before, _ = env.reset(seed=0)
    for action in (1, 0, 1, 1, 0):
        after, *_, info = env.step(action)
        assert_allclose(info["individual"]["features"], before[12:], atol=1e-6)
        assert info["individual"]["group"] == before[13]
        assert info["individual"]["action"] == action
        before = after


def test_hide_sensitive_blanks_the_observation_but_not_the_record():
    shown, hidden = started(64), started(64, hide_sensitive=True)
    for _ in range(3):
        obs, *_ = shown.step(np.ones(64, dtype=np.int64))
        blank, *_, record = hidden.step(np.ones(64, dtype=np.int64))
        assert not blank[:, [12, 13, 16, 17]].any() and obs[:, [12, 13, 16, 17]].any(axis=0).all()
        kept = [column for column in range(23) if column not in (12, 13, 16, 17)]
        assert_array_equal(obs[:, kept], blank[:, kept])
        assert record["individual"]["features"][:, :2].any()


def test_a_bias_is_added_for_hiring_and_subtracted_for_rejecting():
    for bias, favoured in ((1, lambda f: f[:, GENDER] == 0), (2, lambda f: (f[:, GENDER] + f[:, NATIONALITY]) == 0)):
        plain, biased = started(500), started(500, bias=bias)
        for action in (1, 0):
            people = plain.applicants.features
            difference = biased.step(np.full(500, action))[1] - plain.step(np.full(500, action))[1]
            assert_allclose(difference, np.where(favoured(people), 0.1 if action else -0.1, 0), atol=1e-12)


def test_feedback_may_be_known_for_the_hired_only():
    world = started(100, feedback="hired")
    actions = np.arange(100) % 2
    record = world.step(actions)[-1]
    assert_array_equal(np.isnan(record["individual"]["feedback"]), actions == 0)
    hired = record["individual"]["feedback"][1::2]
    assert_array_equal(hired, record["detail"]["goodness"][1::2] >= 0.5)


def test_a_full_team_ends_the_episode_unless_it_is_told_not_to():
    ending, going = started(team_size=3), started(team_size=3, episode_length=10, end_when_full=False, leaving=False)
    for step in range(10):
        people = going.applicants.features.copy()
        *_, terminated, truncated, record = going.step(np.array([step != 5]))
        assert not terminated[0] and truncated[0] == (step == 9)
        assert record["detail"]["refused"][0] == (step >= 3 and step != 5)
        assert record["individual"]["action"][0] == (step < 3)
        assert_array_equal(record["individual"]["features"], people)
        if step < 3:
            assert ending.step(np.array([1]))[2][0] == (step == 2)


def test_an_executed_rejection_is_rewarded_as_one():
    world = started(team_size=1, end_when_full=False, leaving=False)
    world.step(np.array([1]))
    _, reward, *_, record = world.step(np.array([1]))
    assert reward[0] == pytest.approx(0.5 - record["detail"]["goodness"][0] - record["detail"]["noise"][0])


def test_the_threshold_is_the_one_asked_for():
    world = started(300, hiring_threshold=0.2)
    _, reward, *_, record = world.step(np.ones(300, dtype=np.int64))
    detail = record["detail"]
    assert_array_equal(detail["right_action"], detail["goodness"] >= 0.2)
    assert_allclose(reward, detail["goodness"] - 0.2 + detail["noise"], atol=1e-12)


def test_detail_is_there_only_when_asked_for():
    env = WorldEnv(HiringWorld)
    env.reset(seed=0)
    assert set(env.step(1)[4]) == {"individual", "massage"}
    assert set(env.step(1)[4]["individual"]) == {"group", "features", "action", "feedback"}


def test_groups_are_published_as_the_spec_reads_them():
    for group, attributes in (
        ("gender", ()),
        ("nationality", ()),
        (("gender", "nationality"), (("gender", "nationality"),)),
        (["gender", ("gender", "nationality")], ("gender", ("gender", "nationality"))),
    ):
        env = WorldVecEnv(HiringWorld, 50, group=group)
        env.seed(0)
        env.reset()
        spec = env.get_attr("fairness_spec")[0]
        assert spec.attributes == attributes
        infos = env.step(np.ones(50, dtype=np.int64))[3]
        person, info = infos[7]["individual"], infos[7]
        if attributes:
            assert person["group"] == {
                "gender": person["features"][GENDER],
                "nationality": person["features"][NATIONALITY],
            }
            assert spec.group_names == {"gender": ("man", "woman"), "nationality": ("Belgian", "foreign")}
            assert spec.individual(None, 1, info).group == person["group"]
        else:
            assert person["group"] == person["features"][GENDER if group == "gender" else NATIONALITY]
            assert spec.group_names == (("man", "woman") if group == "gender" else ("Belgian", "foreign"))
        tracker = spec.tracker(50)
        tracker.add(infos[0].record["individual"]["group"], np.ones(50, dtype=int))
        assert (tracker.names == ("SP", "EO")) == (len(attributes) < 2)


def test_hiring_every_man_and_rejecting_every_woman_is_as_unfair_as_can_be():
    world = started(40, team_size=100)
    actions, feedback, groups = [], [], []
    for _ in range(30):
        record = world.step((world.applicants.features[:, GENDER] == 0).astype(np.int64))[-1]["individual"]
        actions.append(record["action"])
        feedback.append(record["feedback"])
        groups.append(record["group"])
    actions, feedback, groups = map(np.array, (actions, feedback, groups))
    for copy in range(40):
        history = {"actions": actions[:, copy], "feedback": feedback[:, copy], "groups": groups[:, copy]}
        assert [group_notion(name, **history) for name in ("SP", "EO", "PE")] == [-1, -1, -1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"team_size": 0}, "team_size must be a positive integer, got 0"),
        ({"team_size": 2.5}, "team_size must be a positive integer, got 2.5"),
        ({"episode_length": 0}, "episode_length must be a positive integer, got 0"),
        ({"diversity_weight": 1.5}, r"diversity_weight must be in \[0, 1\], got 1.5"),
        ({"diversity_weight": float("nan")}, r"diversity_weight must be in \[0, 1\], got nan"),
        ({"hiring_threshold": "half"}, r"hiring_threshold must be in \[-1, 1\], got 'half'"),
        ({"steps_per_year": 0}, "steps_per_year must be in"),
        ({"entropy": "levels"}, r"entropy must be one of 'difference', 'level', got 'levels'"),
        ({"population": "dutch"}, "population must be one of .*'marital'.*, got 'dutch'"),
        ({"bias": 3}, r"bias must be one of 0, 1, 2, got 3"),
        ({"bias": True}, r"bias must be one of 0, 1, 2, got True"),
        ({"feedback": None}, r"feedback must be one of 'all', 'hired', got None"),
        ({"leaving": 1}, r"leaving must be True or False, got 1"),
        ({"noise": "no"}, r"noise must be True or False, got 'no'"),
        ({"group": ()}, "group must be made of the attributes"),
        ({"group": ["gender", ("gender", "x")]}, "group must be made of the attributes"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        HiringWorld(1, **settings)


def test_the_rules_do_what_their_names_say():
    world = started(400, team_size=3)
    good = world.goodness() >= 0.5

    def hire(rule, of=world):
        rows = of.rules[rule](of)
        np.testing.assert_allclose(rows.sum(axis=1), 1)
        return rows[:, 1]

    assert (hire("hire-all") == 1).all() and (hire("reject-all") == 0).all() and (hire("random") == 0.5).all()
    assert_array_equal(hire("threshold-oracle"), good)
    assert_array_equal(hire("patient-oracle"), good)
    for _ in range(30):
        world.step(hire("patient-oracle").astype(int))
    assert world.team_sizes.max() == 2 and 0 < good.mean() < 1
    assert (hire("hire-at-random", HiringWorld(3)) == 0.02).all()
