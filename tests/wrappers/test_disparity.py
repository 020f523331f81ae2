"""Does an environment without measures come to publish the disparities of its decisions, episode by episode?"""

from itertools import combinations

import gymnasium as gym
import hypothesis
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecNormalize

import sb3_fair  # noqa: F401 (registers the IDs)
from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.disparity.parity import DemographicParity
from sb3_fair.wrappers import Disparity, FairMDP, GymnasiumVector, VecFairMDP, VectorReward, VecVectorReward
from sb3_fair.wrappers.coming import coming, first
from sb3_fair.wrappers.disparity import VecDisparity, measured
from sb3_fair.zoo.registry.build import make_batch, make_vec

HIRING = {"env_id": "sb3_fair/JobHiring-v0", "team_size": 6, "episode_length": 12}
FIGURES = ("d_s", "d_s_prev", "d_l", "d_l_next")


class Queue(gym.Env):
    """Whoever is next in the queue has one of three actions done to him or her; each episode has its own queue.

    :param episodes: a list of groups for each episode
    :param tells: whether ``info["massage"]`` says whose turn it is
    """

    observation_space = spaces.Box(-10, 10, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, episodes, tells=False):
        self.episodes, self.tells, self.episode = episodes, tells, -1

    def _seen(self):
        now = self.queue[self.t] if self.t < len(self.queue) else 0
        return np.array([now, self.t], dtype=float), {"massage": {"group": now}} if self.tells else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode = (self.episode + 1) % len(self.episodes)
        self.queue, self.t = self.episodes[self.episode], 0
        return self._seen()

    def step(self, action):
        self.t += 1
        obs, info = self._seen()
        return obs, 0.0, False, self.t == len(self.queue), info


@pytest.mark.parametrize("carried_over", [False, True])
def test_one_environment_has_the_figures_of_a_batch(carried_over):
    spec = FairnessSpec(group=in_front, notions=())
    episodes = [[0, 1, 1, 2], [2, 0, 1], [1, 1, 0, 0, 2]]
    env = Disparity(FairMDP(Queue(episodes), spec, reset_on_episode=not carried_over))
    inside = VecFairMDP(DummyVecEnv([lambda: Queue(episodes)]), spec, reset_on_episode=not carried_over)
    venv = VecDisparity(inside)
    venv.reset()
    coming = env.reset()[1]["massage"]
    for action in np.random.default_rng(0).integers(3, size=30).tolist():
        *_, truncated, info = env.step(action)
        _, _, dones, (batched,) = venv.step([action])
        assert figures(info) == figures(batched) and info["fairness"].keys() == batched["fairness"].keys()
        would = env.get_wrapper_attr("measures").would_be({key: [value] for key, value in coming.items()}, [[action]])
        assert would == info["fairness"]["d_s"] and truncated == dones[0]
        coming = env.reset()[1]["massage"] if truncated else info["massage"]
        for key, value in batched["massage"].items():
            assert_array_equal(coming[key], value)


@pytest.mark.parametrize("batched", [False, True])
def test_differences_of_carried_over_disparities_sum_to_the_last_over_all_episodes(batched):
    spec, carried = FairnessSpec(group=in_front, notions=()), {"reset_on_episode": False}
    rewarded = {"objectives": FIGURES, "emit": "difference"}

    def queue():
        return Queue([[0, 1, 1], [2, 0], [1]])

    if batched:
        venv = VecVectorReward(VecDisparity(VecFairMDP(DummyVecEnv([queue]), spec, **carried)), **rewarded)
    else:
        venv = DummyVecEnv([lambda: VectorReward(Disparity(FairMDP(queue(), spec, **carried)), **rewarded)])
    venv.reset()
    total = np.zeros(len(FIGURES))
    for action in np.random.default_rng(0).integers(3, size=20):
        _, _, _, (info,) = venv.step([action])
        total += info["vector_reward"]
        assert_allclose(total, [-info["fairness"][name] for name in FIGURES], atol=1e-12)
    assert total.all()


def test_favourable_may_be_a_function_of_the_action():
    found = []
    for favourable in ((1, 2), lambda actions: actions > 0):
        spec = FairnessSpec(group=in_front, notions=(), favourable=favourable)
        found.append(measured(VecFairMDP(DummyVecEnv([lambda: Queue([[0, 1]])]), spec)).measures)
    assert found[0] == found[1]


def in_front(obs, info):
    return int(obs[0])


def by_name(obs, info):
    return "abc"[int(obs[0])]


def queues(copies, spec, **settings):
    return VecFairMDP(DummyVecEnv([lambda episodes=each: Queue(episodes, **settings) for each in copies]), spec)


def gap(decisions, favourable):
    """Largest difference between two groups' shares of favourable actions, counted person by person."""
    shares = []
    for group in {group for group, _ in decisions}:
        actions = [action for who, action in decisions if who == group]
        shares.append(sum(action in favourable for action in actions) / len(actions))
    return max((abs(a - b) for a, b in combinations(shares, 2)), default=0.0)


def expected(past, decision, window, favourable):
    """The figures of a decision after the ``past`` ones of its episode, and the history with it."""
    history = [*past, decision]
    return {
        "d_s": gap(history[-window - 1 :], favourable),
        "d_s_prev": gap(past[-window - 1 :], favourable),
        "d_l": gap(past, favourable),
        "d_l_next": gap(history, favourable),
    }, history


def figures(info):
    return [info["fairness"][name] for name in FIGURES]


FEW = hypothesis.settings(max_examples=40, deadline=None)
EPISODES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=3)


@FEW
@given(
    copies=st.lists(EPISODES, min_size=1, max_size=3),
    window=st.integers(1, 6),
    favourable=st.sampled_from([(1,), (0, 2)]),
    group=st.sampled_from([in_front, by_name, None]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_step_has_the_disparities_of_its_episode(copies, window, favourable, group, seed):
    spec = FairnessSpec(group=group, notions=(), favourable=favourable)
    venv = VecDisparity(queues(copies, spec, tells=group is None), DemographicParity(window, favourable))
    rng = np.random.default_rng(seed)
    venv.reset()
    pasts, episodes, times = [[] for _ in copies], [0] * len(copies), [0] * len(copies)
    for _ in range(25):
        actions = rng.integers(3, size=len(copies))
        _, _, dones, infos = venv.step(actions)
        for copy, action in enumerate(actions.tolist()):
            queue = copies[copy][episodes[copy]]
            decision = (queue[times[copy]], action)
            figures_, pasts[copy] = expected(pasts[copy], decision, window, favourable)
            assert_allclose(figures(infos[copy]), list(figures_.values()), rtol=0, atol=1e-12)
            times[copy] += 1
            assert dones[copy] == (times[copy] == len(queue))
            if dones[copy]:
                pasts[copy], times[copy] = [], 0
                episodes[copy] = (episodes[copy] + 1) % len(copies[copy])


@FEW
@given(seed=st.integers(0, 2**32 - 1), window=st.integers(1, 5))
def test_what_would_be_comes_true(seed, window):
    """What infos say before a decision, after resets and auto-resets too, tells the disparity after each action."""
    rng = np.random.default_rng(seed)
    copies = [[rng.integers(3, size=rng.integers(1, 7)).tolist() for _ in range(2)] for _ in range(3)]
    measures = DemographicParity(window)
    venv = VecDisparity(queues(copies, FairnessSpec(group=in_front, notions=())), measures)
    venv.reset()
    known = first(venv)
    for _ in range(15):
        actions = rng.integers(3, size=3)
        would_be = measures.would_be(known, np.tile(np.arange(3), (3, 1)))
        _, _, dones, infos = venv.step(actions)
        assert_array_equal([info["fairness"]["d_s"] for info in infos], would_be[np.arange(3), actions])
        known = coming(venv, infos, dones)


def but_nobody(obs, info):
    return None if obs[0] == 2 else int(obs[0])


@FEW
@given(copies=EPISODES, window=st.integers(1, 5), named=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_steps_on_nobody_change_nothing(copies, window, named, seed):
    """Everybody else has the figures of an episode without these steps."""

    def group(obs, info):
        label = but_nobody(obs, info)
        return label if label is None or not named else "ab"[label]

    venv = VecDisparity(queues([[queue] for queue in copies], FairnessSpec(group=group)), DemographicParity(window))
    venv.reset()
    actions = np.random.default_rng(seed).integers(3, size=(max(map(len, copies)), len(copies)))
    told = [venv.step(step)[3] for step in actions]
    for copy, queue in enumerate(copies):
        past, latest = [], [0.0] * 4
        for t, label in enumerate(queue):
            if label == 2:
                assert figures(told[t][copy]) == [latest[0], latest[0], latest[3], latest[3]]
            else:
                expected_, past = expected(past, (label, actions[t, copy]), window, (1,))
                latest = figures(told[t][copy])
                assert_allclose([latest[0], *latest[2:]], [expected_[name] for name in ("d_s", "d_l", "d_l_next")])


def test_a_group_that_is_told_too_late_is_not_nobody():
    class Late(Queue):
        def step(self, action):
            group = self.queue[self.t]
            obs, reward, terminated, truncated, info = super().step(action)
            return obs, reward, terminated, truncated, {**info, "later": group}

    spec = FairnessSpec(group=lambda obs, info: info.get("later"))
    venv = VecDisparity(VecFairMDP(DummyVecEnv([lambda: Late([[0, 1]])]), spec))
    venv.reset()
    with pytest.raises(ValueError, match=r"must be known before the decision.*: it was None, and then 0"):
        venv.step(np.array([1]))


@pytest.mark.parametrize("acting", [0, 1])
def test_nobody_acts_for_another_copy(acting):
    """One copy tells that something else was carried out, the other tells nothing."""

    class Other(Queue):
        def step(self, action):
            *step, info = super().step(action)
            return *step, {**info, "individual": {"group": int(step[0][0]), "action": 0}}

    queue = [[0, 1, 1]]
    envs = [(lambda: Other(queue)) if copy == acting else (lambda: Queue(queue)) for copy in range(2)]
    venv = VecDisparity(VecFairMDP(DummyVecEnv(envs), FairnessSpec(group=in_front, notions=())))
    venv.reset()
    venv.step(np.array([1, 1]))
    infos = venv.step(np.array([0, 0]))[3]
    assert [info["fairness"]["d_s"] for info in infos] == [float(copy != acting) for copy in range(2)]


def test_groups_that_are_not_compared_fill_the_window_only():
    venv = VecDisparity(
        queues([[[0, 1, 2, 2, 0, 1]]], FairnessSpec(group=in_front, notions=())),
        DemographicParity(window=2, groups=(0, 1)),
    )
    venv.reset()
    seen = [figures(venv.step(np.array([action]))[3][0]) for action in (1, 0, 1, 1, 1, 1)]
    assert [d_s for d_s, *_ in seen] == [0, 1, 1, 0, 0, 0]
    assert [d_l for *_, d_l in seen] == [0, 1, 1, 1, 1, 0.5]


def test_groups_and_favourable_actions_are_those_of_the_spec_by_default():
    spec = FairnessSpec(group=in_front, notions=(), groups=(1, 2), favourable=(0, 2))
    venv = measured(queues([[[1, 2]]], spec))
    assert venv.get_attr("fairness_spec")[0].measures == DemographicParity(favourable=(0, 2), groups=(1, 2))
    named = FairnessSpec(group={"turn": in_front}, notions=(), groups={"turn": (1, 2)})
    assert measured(queues([[[1, 2]]], named)).measures.groups == (1, 2)


@pytest.mark.parametrize("window", [3, 20])
def test_short_term_disparity_is_minus_statistical_parity(window):
    venv = VecDisparity(make_batch(n_envs=4, history=SlidingWindow(window + 1), **HIRING), DemographicParity(window))
    venv.seed(0)
    venv.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        fairness = venv.step(rng.integers(2, size=4))[3][0].record["fairness"]
        assert_allclose(fairness["d_s"], -np.nan_to_num(fairness["SP"]), atol=1e-12)


def test_a_product_of_attributes_is_one_partition():
    """Four groups, told apart as the audit does."""
    group = ("gender", "nationality")
    venv = VecDisparity(make_batch(n_envs=4, history=SlidingWindow(9), group=group, **HIRING), DemographicParity(8))
    venv.seed(1)
    venv.reset()
    rng = np.random.default_rng(0)
    for _ in range(30):
        fairness = venv.step(rng.integers(2, size=4))[3][0].record["fairness"]
        assert_allclose(fairness["d_s"], -np.nan_to_num(fairness["SP"]), atol=1e-12)


def paths(venv):
    """Figures and what was known before each decision, of 30 random steps."""
    rng = np.random.default_rng(0)
    venv.seed(3)
    venv.reset()
    known, seen = [first(venv)], []
    for _ in range(30):
        _, _, dones, infos = venv.step(rng.integers(2, size=venv.num_envs))
        seen.append([figures(info) for info in infos])
        known.append(coming(venv, infos, dones))
    venv.close()
    return np.array(seen), {key: np.stack([record[key] for record in known]) for key in known[0]}


def test_dummy_subproc_and_batched_publish_the_same():
    settings = {"team_size": 6, "episode_length": 12}
    env_id = "sb3_fair:sb3_fair/JobHiring-v0"
    kinds = [
        make_vec(env_id, 3, **settings),
        make_vec_env(env_id, 3, env_kwargs=settings),
        make_vec_env(
            env_id, 3, env_kwargs=settings, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"}
        ),
    ]
    (batched, known), *others = [paths(measured(venv)) for venv in kinds]
    assert batched.any() and (known["group"] == 1).any() and known["decided"].max() > 3
    for figures_, same in others:
        assert_array_equal(figures_, batched)
        assert same.keys() == known.keys()
        for key in known:
            assert_array_equal(same[key], known[key])


def test_what_was_published_never_changes():
    venv = VecDisparity(make_batch(n_envs=16, **HIRING))
    venv.seed(0)
    venv.reset()
    published, copies = [], []
    for step in range(30):
        record = venv.step((np.arange(16) + step) % 3 % 2)[3][0].record
        for key in ("fairness", "massage"):
            for name, array in record[key].items():
                published.append(array)
                copies.append(np.array(array))
                assert isinstance(array, np.ndarray), name
        if step == 20:
            venv.reset()
    for array, copy in zip(published, copies, strict=True):
        assert_array_equal(array, copy)


def test_other_figures_stay_and_the_reset_infos_of_a_batch_are_one_record():
    venv = VecDisparity(make_batch(n_envs=2, audit=("SP",), **HIRING))
    gymnasium = GymnasiumVector(venv)
    _, infos = gymnasium.reset(seed=0)
    assert_array_equal(infos["massage"]["decided"], np.zeros_like(infos["massage"]["decided"]))
    *_, infos = gymnasium.step(np.array([1, 0]))
    assert set(infos["fairness"]) >= {"SP", *FIGURES}
    assert infos["massage"]["decided"].sum() == 2


def test_a_filter_may_know_the_group_that_observations_hide():
    venv = make_batch(n_envs=5, hide_sensitive=True, **HIRING)
    venv.seed(0)
    venv.reset()
    known, ended = first(venv), 0
    for _ in range(30):
        _, _, dones, infos = venv.step(np.ones(5, dtype=int))
        assert_array_equal([info["individual"]["group"] for info in infos], known["group"])
        known, ended = coming(venv, infos, dones), ended + dones.sum()
    assert ended > 5


def turned(env):
    return gym.wrappers.TransformObservation(env, np.negative, env.observation_space)


@pytest.mark.parametrize(
    "around",
    [
        lambda env, spec: VecNormalize(VecFairMDP(DummyVecEnv([env]), spec)),
        lambda env, spec: VecFrameStack(VecFairMDP(DummyVecEnv([env]), spec), 3),
        lambda env, spec: VecFrameStack(DummyVecEnv([lambda: turned(FairMDP(env(), spec))]), 3),
        lambda env, spec: SubprocVecEnv([lambda: turned(FairMDP(env(), spec))], start_method="fork"),
    ],
    ids=["normalised", "stacked", "in each copy", "in processes"],
)
def test_the_spec_sees_the_observations_of_its_fairness_mdp_whatever_is_around_it(around):
    spec = FairnessSpec(group=in_front, notions=(), groups=(1, 2))
    venv = measured(around(lambda: Queue([[1, 2, 2], [2, 1]]), spec))
    venv.reset()
    known = first(venv)
    for group in (1, 2, 2, 2, 1, 1):
        assert known["column"] == [group - 1]
        _, _, dones, infos = venv.step(np.array([0]))
        assert infos[0]["individual"]["group"] == group
        known = coming(venv, infos, dones)
    venv.close()


def test_around_one_environment_too():
    env = Disparity(turned(FairMDP(Queue([[1, 2]]), FairnessSpec(group=in_front, notions=(), groups=(1, 2)))))
    assert [env.reset()[1]["massage"]["column"], env.step(0)[-1]["massage"]["column"]] == [0, 1]


def test_a_second_measure_goes_by_the_same_labels():
    """Also of people that the first one does not compare."""
    inside = queues([[[2, 0, 1, 0, 2, 1, 0]]], FairnessSpec(group=None, notions=()), tells=True)
    twice = measured(measured(inside, DemographicParity(groups=(1, 2))), DemographicParity(groups=(1, 0)))
    twice.reset()
    seen = [figures(twice.step(np.array([action]))[3][0])[0] for action in (1, 1, 0, 1, 1, 1, 1)]
    assert seen == [0, 0, 1, 1, 1, 0.5, 0.5]


class Measures(DemographicParity):
    """Measures that an environment has of its own."""


class OtherMeasures(DemographicParity):
    """Measures of other names."""

    short_term = "other"


def test_measures_of_ones_own_are_left_alone():
    own = Measures()
    venv = queues([[[0, 1]]], FairnessSpec(group=in_front, notions=(), measures=own))
    assert measured(venv) is venv and measured(venv, Measures()) is venv
    assert measured(venv, DemographicParity(7)).get_attr("fairness_spec")[0].measures == DemographicParity(7)
    again = measured(queues([[[0, 1]]], FairnessSpec(group=in_front, notions=())))
    assert measured(again) is again


class Published:
    """Measures that are no demographic parity."""

    short_term, short_term_prev, long_term, long_term_next, reported = "s", "s_prev", "l", "l_next", {}

    def threshold(self, iteration):
        return 0.0

    def candidates(self, massage, actions, probabilities):
        raise NotImplementedError

    def would_be(self, massage, candidates):
        raise NotImplementedError


def test_what_the_environment_publishes_by_itself_is_taken_at_its_word():
    bare = DummyVecEnv([lambda: Queue([[0, 1]])])
    assert measured(bare, Published()) is bare


class Specified(Queue):
    """Has a spec that asks about observations, which nothing keeps for it."""

    fairness_spec = FairnessSpec(group=in_front)

    def __init__(self):
        super().__init__([[0]])


@pytest.mark.parametrize(
    ("venv", "measures", "error", "message"),
    [
        (lambda: DummyVecEnv([lambda: Queue([[0]])]), None, ValueError, "env must be a fairness MDP"),
        (lambda: make_batch(n_envs=1, group=["gender", "nationality"], **HIRING), None, ValueError, "one attribute"),
        (lambda: DummyVecEnv([Specified]), None, ValueError, "env must be a fairness MDP"),
        (lambda: queues([[[0]]], FairnessSpec()), DemographicParity(favourable=(3,)), ValueError, "favourable must be"),
        (lambda: queues([[[0]]], FairnessSpec()), "parity", TypeError, "measures must have all"),
        (
            lambda: queues([[[0]]], FairnessSpec(measures=DemographicParity())),
            Published(),
            ValueError,
            "measures must be those that the environment publishes",
        ),
    ],
)
def test_environments_that_cannot_be_measured_are_refused(venv, measures, error, message):
    with pytest.raises(error, match=message):
        measured(venv(), measures)


def test_other_actions_than_discrete_ones_are_refused():
    env = FairMDP(gym.make("Pendulum-v1"), FairnessSpec(group=in_front, notions=()))
    with pytest.raises(ValueError, match=r"env must have a Discrete action space .* for DemographicParity, got Box"):
        measured(DummyVecEnv([lambda: env]))


def several(obs, info):
    return [0, 1]


def unknown(obs, info):
    return info["later"]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (None, "got [None]"),
        ("later", "asks for 'later'"),
        (unknown, "raised KeyError"),
        (several, "one label per copy and step"),
    ],
)
def test_a_group_that_is_not_known_before_the_decision_is_an_error_at_reset(group, message):
    venv = measured(queues([[[0, 1]], [[1]]], FairnessSpec(group=group, notions=())))
    with pytest.raises(ValueError, match="group of the coming individual must be known before the decision") as caught:
        venv.reset()
    assert message in str(caught.value)


def test_the_group_before_the_decision_is_told_under_the_key_of_the_spec():
    class Named(Queue):
        def _seen(self):
            obs, _ = super()._seen()
            return obs, {"massage": {"district": "ab"[int(obs[0])]}}

        def step(self, action):
            district = "ab"[self.queue[self.t]]
            obs, reward, terminated, truncated, info = super().step(action)
            return obs, reward, terminated, truncated, {**info, "district": district}

    def named(env):
        return measured(VecFairMDP(DummyVecEnv([lambda: env([[0, 1, 0]])]), FairnessSpec(group="district")))

    venv = named(Named)
    venv.reset()
    assert [venv.step([action])[3][0]["fairness"]["d_s"] for action in (1, 0)] == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"from info\['massage'\], under the key that FairnessSpec\.group names"):
        named(Queue).reset()


def test_what_was_carried_out_counts_not_what_was_asked_for():
    """The team is full after the first two, and hires nobody any more."""
    settings = {"team_size": 2, "episode_length": 40, "end_when_full": False, "leaving": False, "window": 1000}
    venv = measured(make_vec("sb3_fair/JobHiring-Small-v0", n_envs=1, seed=0, **settings))
    venv.reset()
    favoured, told = np.zeros(2), np.zeros(2)
    for _ in range(40):
        infos = venv.step([1])[3]
        person = infos[0]["individual"]
        favoured[person["group"]] += person["action"]
        told[person["group"]] += 1
    rates = favoured / told
    assert favoured.sum() == 2 and infos[0]["fairness"]["d_l_next"] == pytest.approx(abs(rates[0] - rates[1]))
    assert infos[0]["fairness"]["SP"] == pytest.approx(-abs(rates[0] - rates[1]))
