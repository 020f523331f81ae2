"""Does learning go on with whole episodes after it was stopped, or the environment used, in the middle of one?"""

import pytest
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_fair import FPPO, FairPPO, FairQCM, make_vec
from sb3_fair.f_ppo import PPOLagrangian
from sb3_fair.fair_qcm import RecurrentDQN, TabularFairQCM

DOUGHNUTS, LENDING = "sb3_fair/Doughnut-Small-v0", "sb3_fair/Lending-v0"
ROLLOUTS = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu"}
REPLAY = {"learning_starts": 20, "batch_size": 32, "buffer_size": 500, "device": "cpu"}
LEARNERS = pytest.mark.parametrize(
    ("algorithm", "env", "settings"),
    [
        (FPPO, LENDING, ROLLOUTS),
        (PPOLagrangian, LENDING, ROLLOUTS),
        (FairPPO, LENDING, ROLLOUTS),
        (FairQCM, DOUGHNUTS, {**REPLAY, "storage": "virtual"}),
        (FairQCM, DOUGHNUTS, {**REPLAY, "storage": "rows"}),
        (RecurrentDQN, DOUGHNUTS, REPLAY),
        (TabularFairQCM, DOUGHNUTS, {}),
    ],
)


def watched(algorithm, env, settings):
    """A model, and the numbers of steps after which its environment was reset."""
    arguments = () if algorithm is TabularFairQCM else ("MlpPolicy",)
    model = algorithm(*arguments, make_vec(env, n_envs=2, seed=0), seed=0, **settings)
    resets = []
    plain = model.env.reset
    model.env.reset = lambda: resets.append(model.num_timesteps) or plain()
    return model, resets


class Interrupt(BaseCallback):
    """Someone presses Ctrl-C."""

    def _on_step(self):
        if self.num_timesteps >= 30:
            raise KeyboardInterrupt
        return True


@pytest.mark.parametrize("how", ["callback", "keyboard"])
@LEARNERS
def test_the_environment_is_reset_before_learning_goes_on(algorithm, env, settings, how):
    model, resets = watched(algorithm, env, settings)
    if how == "keyboard":
        with pytest.raises(KeyboardInterrupt):
            model.learn(100, callback=Interrupt())
    else:
        model.learn(100, callback=lambda told, _: model.num_timesteps < 30)
    assert resets == [0] and model.num_timesteps == 30
    model.learn(100, reset_num_timesteps=False)
    assert resets == [0, 30]
    stopped_at = model.num_timesteps
    model.learn(10, reset_num_timesteps=False)
    assert resets == [0, 30] and model.num_timesteps > stopped_at


@LEARNERS
def test_the_environment_is_reset_after_an_evaluation_in_it(algorithm, env, settings):
    model, resets = watched(algorithm, env, settings)
    model.learn(32)
    evaluate_policy(model, model.get_env(), n_eval_episodes=2, warn=False)
    assert resets == [0, 32]
    model.learn(32, reset_num_timesteps=False)
    assert resets == [0, 32, 32] and model.num_timesteps == 64
    model.learn(32, reset_num_timesteps=False)
    assert resets == [0, 32, 32]


@pytest.mark.parametrize("storage", ["virtual", "rows"])
def test_counterfactual_learning_goes_on_after_a_number_of_episodes(storage):
    """SB3's own callback stops where an episode ends."""
    model = FairQCM("MlpPolicy", DOUGHNUTS, storage=storage, seed=0, **REPLAY)
    model.learn(300, callback=StopTrainingOnMaxEpisodes(2))
    model.learn(300, reset_num_timesteps=False)
    assert model.num_timesteps > 300
