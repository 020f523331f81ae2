"""Do scales and wrappers of an entry stand around the copies in training, evaluation and films alike?"""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecNormalize

import sb3_fair
from sb3_fair.common.connection import connected
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecChoices
from sb3_fair.zoo.evaluation.enjoy import enjoy
from sb3_fair.zoo.evaluation.evaluate import evaluate_run, evaluation_env
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.layers import copies
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.policy_file import load_policy
from sb3_fair.zoo.runs.train import build_model, train, training_env

SMALL = "sb3_fair/JobHiring-Small-v0"
CLIP = "gymnasium.wrappers.TransformReward"
RESCALE = {"gymnasium.wrappers.RescaleObservation": {"min_obs": -3.0, "max_obs": -2.0}}
STACK = {"stable_baselines3.common.vec_env.VecFrameStack": {"n_stack": 2}}


def test_a_scale_is_learned_in_training_and_used_ever_after(quick_plan, tmp_path):
    run = train(quick_plan("ppo", normalize=True), log_dir=tmp_path, device="cpu")
    assert Plan.from_config(run.config).normalize == {}
    assert run.normaliser.is_file()
    (trained,) = run.front
    (again,) = evaluate_run(run, n_eval_episodes=2, seed=300_000 + 10_000)
    np.testing.assert_array_equal(again.returns, trained.returns)
    scale = load_policy(Plan.of_run(run), run).get_vec_normalize_env().obs_rms
    assert scale.count > 600 and (scale.mean != 0).any()


def test_evaluations_leave_the_scale_as_it_is(quick_plan):
    plan = quick_plan("ppo", normalize={"norm_reward": True})
    venv = training_env(plan)
    model = build_model(plan, venv, "cpu")
    model.learn(64)
    before = venv.obs_rms.mean.copy()
    twin = connected(model, evaluation_env(plan, 3))
    assert isinstance(twin, VecNormalize) and twin.num_envs == 3
    twin.reset()
    _, rewards, _, infos = twin.step(np.zeros(3, dtype=int))
    np.testing.assert_allclose(rewards, [info["vector_reward"][0] for info in infos])
    np.testing.assert_array_equal(venv.obs_rms.mean, before)


def test_rewards_are_scaled_for_the_discount_of_the_algorithm():
    for more, gamma in (({}, 0.99), ({"gamma": 0.5}, 0.5)):
        venv = training_env(make_plan("ppo", SMALL, hyperparams={"normalize": True, **more}))
        assert venv.gamma == gamma and isinstance(venv.venv, VecChoices)


def test_wrappers_are_named_with_their_arguments_innermost_first():
    plan = make_plan("ppo", SMALL, n_envs=2, hyperparams={"env_wrapper": [RESCALE], "vec_env_wrapper": STACK})
    assert Plan.from_config(plan.config) == plan
    plain = copies(make_plan("ppo", SMALL), 2)
    for venv in (training_env(plan), evaluation_env(plan, 2)):
        assert venv.observation_space.shape == (2 * plain.observation_space.shape[0],)
        seen = venv.reset()[:, plain.observation_space.shape[0] :]
        assert ((seen >= -3) & (seen <= -2)).all()


def test_a_wrapped_environment_is_trained_evaluated_and_filmed(quick_plan, tmp_path):
    plan = quick_plan("ppo", n_timesteps=64, env_wrapper=RESCALE, vec_env_wrapper=STACK, normalize=True)
    run = train(plan, log_dir=tmp_path, device="cpu")
    (again,) = evaluate_run(run, n_eval_episodes=2, seed=300_000 + 10_000)
    np.testing.assert_array_equal(again.returns, run.front[0].returns)
    assert len(run.baselines) == 6
    played = enjoy(run, tmp_path / "film.gif", n_episodes=1, every=20)
    assert len(played.returns) == 1


class Parts(gym.Env):
    """Observations of a vector and a number, which has no scale."""

    observation_space = gym.spaces.Dict({"branch": gym.spaces.Discrete(3), "person": gym.spaces.Box(0, 9, (2,))})
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._seen(), {}

    def _seen(self):
        vector = self.np_random.uniform(0, 9, 2).astype(np.float32)
        return {"branch": int(self.np_random.integers(3)), "person": vector}

    def step(self, action):
        self.t += 1
        return self._seen(), float(action), False, self.t == 8, {}


def test_parts_of_observations_that_are_no_vectors_have_no_scale(tmp_path, registries):
    sb3_fair.register("test/Parts-v0", Parts, FairnessSpec(group=lambda obs, info: int(obs["branch"])))
    settings = {"n_steps": 16, "n_eval_episodes": 2, "normalize": True}
    run = train(make_plan("ppo", "test/Parts-v0", n_timesteps=64, hyperparams=settings), log_dir=tmp_path)
    (again,) = evaluate_run(run, n_eval_episodes=2, seed=300_000 + 10_000)
    np.testing.assert_array_equal(again.returns, run.front[0].returns)
    assert list(load_policy(Plan.of_run(run), run).get_vec_normalize_env().obs_rms) == ["person"]


def test_what_is_left_out_is_not_written_down():
    config = make_plan("dqn", SMALL).config
    assert not config.keys() & {"normalize", "env_wrapper", "vec_env_wrapper"}
    assert make_plan("ppo", SMALL, hyperparams={"normalize": False}).normalize is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"normalize": 3}, "normalize must be true, false or arguments of VecNormalize"),
        ({"normalize": {"norm_ob": True}}, "did you mean 'norm_obs'"),
        ({"env_wrapper": "gymnasium.wrappers.NoSuch"}, "env_wrapper must be the dotted name"),
        ({"env_wrapper": "NoDots"}, "env_wrapper must be the dotted name"),
        ({"env_wrapper": "pathlib.Path"}, "env_wrapper must name a Wrapper"),
        ({"vec_env_wrapper": CLIP}, "vec_env_wrapper must name a VecEnvWrapper"),
        ({"env_wrapper": CLIP}, rf"^env_wrapper must name wrappers .* but {CLIP} with {{}} fails: TypeError: .*'func'"),
        (
            {"env_wrapper": {"gymnasium.wrappers.RescaleObservation": {"min_obs": 1.0, "max_obs": 0.0}}},
            "^env_wrapper must .*RescaleObservation with {'min_obs': 1.0, 'max_obs': 0.0} fails: [A-Z]",
        ),
        (
            {"vec_env_wrapper": "stable_baselines3.common.vec_env.VecFrameStack"},
            "^vec_env_wrapper must name wrappers .* but .*VecFrameStack with {} fails: TypeError: .*'n_stack'",
        ),
        ({"env_wrapper": "gymnasium.wrappers.NormalizeObservation"}, "learns a scale: give normalize"),
        ({"vec_env_wrapper": "stable_baselines3.common.vec_env.VecNormalize"}, "learns a scale: give normalize"),
    ],
    ids=["kind", "argument", "missing", "undotted", "no wrapper", "wrong kind", "lacking", "bounds", "lacking of all"]
    + ["scale", "scale of all"],
)
def test_wrong_layers_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        training_env(make_plan("ppo", SMALL, hyperparams=settings))


def test_algorithms_with_scales_of_their_own_take_no_other():
    with pytest.raises(InputError, match="normalize must be left out for pcn"):
        training_env(make_plan("pcn", SMALL, hyperparams={"normalize": True}))


def test_the_environment_of_a_wrapper_is_the_registered_one():
    venv = copies(make_plan("ppo", SMALL, hyperparams={"env_wrapper": RESCALE}), 1)
    assert isinstance(venv.unwrapped.envs[0], gym.wrappers.RescaleObservation)
