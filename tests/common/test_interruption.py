"""Does learning go on with whole episodes after it was stopped in the middle of one?"""

import pytest
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnMaxEpisodes

from sb3_fair import FPPO, FairPPO, FairQCM, make_vec
from sb3_fair.f_ppo import PPOLagrangian
from sb3_fair.fair_qcm import RecurrentDQN, TabularFairQCM

DOUGHNUTS, LENDING = "sb3_fair/Doughnut-Small-v0", "sb3_fair/Lending-v0"
ROLLOUTS = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu"}
REPLAY = {"learning_starts": 20, "batch_size": 32, "buffer_size": 500, "device": "cpu"}


class Interrupt(BaseCallback):
    """Someone presses Ctrl-C."""

    def _on_step(self):
        if self.num_timesteps >= 30:
            raise KeyboardInterrupt
        return True


@pytest.mark.parametrize("how", ["callback", "keyboard"])
@pytest.mark.parametrize(
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
def test_the_environment_is_reset_before_learning_goes_on(algorithm, env, settings, how):
    arguments = () if algorithm is TabularFairQCM else ("MlpPolicy",)
    model = algorithm(*arguments, make_vec(env, n_envs=2, seed=0), seed=0, **settings)
    resets = []
    plain = model.env.reset
    model.env.reset = lambda: resets.append(model.num_timesteps) or plain()
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


@pytest.mark.parametrize("storage", ["virtual", "rows"])
def test_counterfactual_learning_goes_on_after_a_number_of_episodes(storage):
    """SB3's own callback stops where an episode ends."""
    model = FairQCM("MlpPolicy", DOUGHNUTS, storage=storage, seed=0, **REPLAY)
    model.learn(300, callback=StopTrainingOnMaxEpisodes(2))
    model.learn(300, reset_num_timesteps=False)
    assert model.num_timesteps > 300
