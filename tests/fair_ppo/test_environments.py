"""Fair-PPO trains in every mode and environment, continues from files, and names wrong arguments."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch as th
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair import FairPPO, make_vec
from sb3_fair.fair_ppo.penalty_critic import PenaltyCritic
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from tests.fair_ppo.models import GROUPED, PROSP, RETRO, logs, model_of
from tests.fair_ppo.toys import SEEN, Earner, Pairs, earners
from tests.models import FORK, Watch, learned, weights
from tests.wrappers.bank import Foreign

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `render_mode` attribute"),
    pytest.mark.filterwarnings("ignore:alpha and beta are 0"),
]


# ---------------------------------------------------------------- environments


@pytest.mark.parametrize("retro", RETRO)
@pytest.mark.parametrize("fairness", ["dp", "cf"])
def test_twins_and_worlds_train_in_every_mode(retro, fairness):
    model = model_of(Pairs(n_worlds=2, length=3, twins=True), fairness=fairness, alpha=0.5, beta=0.5, retro=retro)
    found = logs(learned(model, 192))
    assert found["fair/D_retro"] >= 0 and weights(model).isfinite().all()


@pytest.mark.parametrize("prosp", PROSP)
@pytest.mark.parametrize("retro", RETRO)
def test_a_stream_of_applicants_trains_in_every_mode(retro, prosp):
    venv = make_vec("sb3_fair/Lending-v0", n_envs=3)
    model = learned(model_of(venv, alpha=0.5, beta=0.5, retro=retro, prosp=prosp), 96)
    assert model.labels.streaming
    assert {"fair/D_retro", "fair/D_prosp", "fair/D_norm", "fair/return_0", "fair/return_1"} <= set(logs(model))
    assert weights(model).isfinite().all()


@pytest.mark.parametrize(
    ("fairness", "counterfactual"), [("dp", None), ("csp", None), ("cf", "none_vs_all"), ("cf", "swap")]
)
def test_harvesters_of_two_groups_train_with_networks_of_their_own(fairness, counterfactual):
    venv = HarvestVecEnv(2, {"horizon": 20, "obs_scale": True}, seed=0, counterfactual=counterfactual)
    settings = {"policy": "GroupedPolicy", "batch_size": 512, "fairness": fairness, "alpha": 1.0, "beta": 0.5}
    model = learned(model_of(VecMonitor(venv), **settings), 32 * venv.num_envs)
    assert not model.labels.streaming and weights(model).isfinite().all()
    assert logs(model)["fair/D_retro"] > 0 and len(model.penalty_critic.members) == 2


def test_a_stream_may_have_networks_for_each_group():
    model = learned(model_of(earners(2, stream=True, length=10), policy="GroupedPolicy", alpha=1.0), 128)
    assert model.labels.streaming and len(model.penalty_critic.members) == 2


@pytest.mark.parametrize("settings", [{}, {"stream": True}, {"action": "box"}, {"pay": 0.1}], ids=str)
def test_processes_change_nothing(settings):
    first, second = earners(cls=DummyVecEnv, **settings), earners(cls=FORK, **settings)
    ours = [weights(model_of(venv, alpha=1.0, beta=0.5).learn(192)) for venv in (first, second)]
    second.close()
    assert th.equal(*ours)


def test_labels_may_come_from_a_function():
    by_function = model_of(earners(tells=False), alpha=1.0, group_fn=lambda obs, infos: obs[:, 2].astype(int))
    assert th.equal(weights(by_function.learn(192)), weights(model_of(earners(), alpha=1.0).learn(192)))


@pytest.mark.parametrize("policy", ["GroupedPolicy"])
def test_a_seed_fixes_the_training(policy):
    runs = [weights(model_of(Pairs(length=5), policy=policy, alpha=1.0, seed=seed).learn(192)) for seed in (3, 3, 4)]
    assert th.equal(runs[0], runs[1]) and not th.equal(runs[0], runs[2])


def test_critics_of_penalties_learn_from_their_own_group():
    critic = PenaltyCritic(SEEN, 2, lambda obs: obs[:, 2].astype(int), seed=0, hidden=(8,), learning_rate=0.01)
    first, second = critic.members
    obs = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    obs[:, 2] = np.arange(64) % 2
    before = [first.values(obs), second.values(obs)]
    assert_allclose(critic.values(obs), np.where(obs[:, 2] == 0, *before))
    assert not np.array_equal(*before), "each critic has a seed of its own"
    critic.fit(obs[1::2], np.full(32, 7.0), epochs=3, batch_size=16)
    assert_array_equal(first.values(obs), before[0])
    assert abs(second.values(obs).mean() - 7) < 1


# ---------------------------------------------------------------- save, load, continue


@pytest.mark.parametrize("keyed", [False, True])
def test_a_saved_model_continues(tmp_path, keyed):
    venv = partial(Pairs, length=5, keyed=keyed)
    kwargs = {"net_arch": [8]} if keyed else GROUPED
    model = model_of(venv(), policy="GroupedPolicy", policy_kwargs=kwargs, alpha=1.0, lam="dual", lam_target=0.0)
    model.learn(192).save(tmp_path / "model")
    loaded = [FairPPO.load(tmp_path / "model", venv(), device="cpu") for _ in range(2)]
    assert th.equal(weights(loaded[0]), weights(model))
    assert (loaded[0].coefficient.value, loaded[0].retrospective.scale) == (
        model.coefficient.value,
        model.retrospective.scale,
    )
    ours, theirs = (m.penalty_critic.state_dict() for m in (model, loaded[0]))
    assert all(th.equal(ours[key], theirs[key]) for key in ours)
    th.manual_seed(1), np.random.seed(1)  # noqa: NPY002
    first = weights(loaded[0].learn(192, reset_num_timesteps=False))
    th.manual_seed(1), np.random.seed(1)  # noqa: NPY002
    assert th.equal(first, weights(loaded[1].learn(192, reset_num_timesteps=False)))
    assert loaded[0].num_timesteps == 384
    obs = venv().reset()
    assert_array_equal(
        FairPPO.load(tmp_path / "model").predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0]
    )


def test_other_weights_may_be_given_to_a_loaded_model_or_between_rollouts(tmp_path):
    model = model_of(Pairs(length=5)).learn(64)
    model.save(tmp_path / "classic")
    fair = FairPPO.load(tmp_path / "classic", Pairs(length=5), alpha=1.0).learn(64, reset_num_timesteps=False)
    assert fair.penalty_critic is not None and fair.coefficient.retrospective == 1.0
    fair.save(tmp_path / "fair")
    again = FairPPO.load(tmp_path / "fair", Pairs(length=5), alpha=0.0).learn(64, reset_num_timesteps=False)
    assert again.penalties is None
    again.alpha = 0.5
    again.learn(64, reset_num_timesteps=False)
    assert again.penalties is not None
    again.alpha = 0.0
    assert again.learn(64, reset_num_timesteps=False).penalties is None


def test_episodes_begin_anew_after_an_interruption():
    model = model_of(Pairs(length=1000), alpha=1.0)
    model.learn(64, Watch(stop=6))
    model.learn(64, reset_num_timesteps=False)
    begin = model.rollout_buffer.episode_starts
    assert begin[0].all() and not begin[1:].any()
    earned = model.rollout_buffer.columns["reward"].reshape(4, 16).sum(axis=1)
    assert model.retrospective.past.returns[0] == pytest.approx(earned[::2].mean())


def test_controls_without_labels_can_be_interrupted():
    model = model_of(Pairs(length=1000), fairness="csp")
    model.learn(64, Watch(stop=6))
    model.learn(64, reset_num_timesteps=False)
    assert model.num_timesteps >= 64


def test_several_binary_actions_can_be_charged():
    assert model_of(earners(action="binary"), alpha=1.0).learn(128).penalised_rollouts > 0


def test_a_function_that_tells_groups_sees_observations_before_they_are_normalised():
    seen = []
    venv = VecNormalize(earners(tells=False))
    model = model_of(venv, alpha=1.0, group_fn=lambda obs, infos: seen.append(obs) or obs[:, 2].astype(int))
    model.learn(64)
    assert len(seen) == 16 and all(np.array_equal(obs[:, 2], [0, 1, 0, 1]) for obs in seen)
    assert [obs[0, 0] for obs in seen] == [0, 1, 2, 3] * 4  # before the step, not after it


# ---------------------------------------------------------------- errors


def test_what_is_not_allowed_is_named():
    for settings, words in (
        ({"alpha": -1.0}, "alpha must be a non-negative number, got -1.0"),
        ({"beta": -0.5}, "beta must be a non-negative number, got -0.5"),
        ({"alpha": "much"}, "alpha must be a non-negative number, got 'much'"),
        ({"threshold": -1}, "threshold must be a non-negative number, got -1"),
        ({"tolerance": -0.1}, "tolerance must be a non-negative number, got -0.1"),
        ({"retro": "telescope"}, "did you mean 'telescoped'"),
        ({"prosp": "statecost"}, "did you mean 'state_cost'"),
        ({"fairness": "pd"}, "fairness must be one of"),
        ({"sign": "two_sided"}, "did you mean 'one_sided'"),
        ({"aggregate": "mean"}, "aggregate must be one of"),
        ({"g": "now"}, "g must be one of"),
        ({"stream": "rewards"}, "did you mean 'reward'"),
        ({"mode": "streams"}, "did you mean 'streaming'"),
        ({"lam": "automatic"}, "lam must be"),
        ({"penalty_gamma": 1.5}, "penalty_gamma must be in .* or None, got 1.5"),
        ({"rollout_buffer_class": dict}, "subclass of .*RolloutBuffer"),
    ):
        with pytest.raises(ValueError, match=words):
            model_of(earners(), **settings)
    with pytest.raises(ValueError, match="env must be given"):
        model_of(None)


@pytest.mark.parametrize(
    ("venv", "settings", "words"),
    [
        (partial(earners, tells=False), {"alpha": 1.0}, "slot_group.*individual.*group_fn"),
        (partial(earners, tells=False), {"beta": 1.0}, "slot_group.*individual.*group_fn"),
        (partial(earners), {"alpha": 1.0, "fairness": "cf"}, "pair must be given for fairness='cf'"),
        (partial(earners), {"beta": 1.0, "fairness": "csp"}, "lf must be given for fairness='csp'"),
    ],
)
def test_labels_that_are_missing_are_named(venv, settings, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model_of(venv(), **settings).learn(64)


@pytest.mark.parametrize(
    ("venv", "settings", "words"),
    [
        (partial(earners, 1), {}, r"got \['0'\] in 64 steps, and never two of them were in a world at once"),
        (partial(earners), {"mode": "streaming"}, r"got \['0', '1'\] in 64 steps, and never one slot met two of them"),
    ],
)
def test_groups_that_never_meet_are_warned_about(venv, settings, words):
    with pytest.warns(UserWarning, match=words):
        model_of(venv(), alpha=1.0, **settings).learn(64)


def test_that_they_never_met_is_said_after_a_while(monkeypatch):
    monkeypatch.setattr("sb3_fair.fair_ppo.labels.LONG", 32)
    with pytest.warns(UserWarning, match="in 32 steps") as said:
        model_of(earners(1), alpha=1.0).learn(64)
    assert sum("in 32 steps" in str(warning.message) for warning in said) == 1


def test_a_rare_group_may_come_late():
    class Late(Earner):
        def _observe(self):
            observation = super()._observe()
            self.present = observation[2] = int(self.t == 40)
            return observation

    venv = DummyVecEnv([lambda: Late(None, length=50)])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="group must have")
        model = model_of(venv, alpha=1.0).learn(64)
    assert model.labels.streaming


def test_gamma_is_below_1_for_a_cost_of_states():
    with pytest.raises(ValueError, match="gamma must be below 1"):
        model_of(earners(), beta=1.0, gamma=1.0)


def test_without_weights_it_says_so_once():
    with pytest.warns(UserWarning, match="alpha and beta are 0: this is plain PPO"):
        model_of(earners())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="alpha and beta are 0")
        model_of(earners(), beta=0.1)


class Labelled(Foreign):
    """Groups by these names."""

    def __init__(self, venv, *names):
        super().__init__(venv)
        self.names = names

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            info["individual"]["group"] = self.names[info["individual"]["group"]]
        return obs, rewards, dones, infos


@pytest.mark.parametrize("stream", [False, True])
def test_groups_may_have_names(stream):
    settings = {"alpha": 1.0, "beta": 0.5, "retro": "linear"}
    numbers = learned(model_of(Labelled(earners(stream=stream), 0, 1), **settings), 192)
    names = learned(model_of(Labelled(earners(stream=stream), "men", "women"), **settings), 192)
    assert th.equal(weights(numbers), weights(names))
    found = {key for key in logs(names) if key.startswith("fair/return")}
    assert found == {"fair/return_men", "fair/return_women"}
    by_function = {"group_fn": lambda obs, infos: obs[:, 2].astype(int)}
    model = model_of(Labelled(earners(stream=stream), "all", "all"), **settings, **by_function)
    assert th.equal(weights(model.learn(192)), weights(numbers))


def test_names_keep_their_numbers_in_a_saved_model(tmp_path):
    model = model_of(Labelled(earners(), "women", "men"), alpha=1.0).learn(64)
    model.save(tmp_path / "model")
    loaded = FairPPO.load(tmp_path / "model", Labelled(earners(), "men", "women")).learn(64)
    assert [loaded.labels.name(number) for number in range(2)] == ["women", "men"]
