"""What tests of several algorithms share: weights, a callback that looks, an agent that always acts alike."""

from functools import partial

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import SubprocVecEnv
from torch.nn.utils import parameters_to_vector

FORK = partial(SubprocVecEnv, start_method="fork")


def weights(of):
    """Those of a model or of a module, as one vector (a copy)."""
    return parameters_to_vector(getattr(of, "policy", of).parameters()).detach().cpu()


def learned(model, steps, callback=None, **more):
    """``model`` after training whose logs were not written, so that they can be looked at."""
    return model.learn(steps, callback, log_interval=1000, **more)


class Watch(BaseCallback):
    """Calls ``look(model, locals)`` after every step, ``end(model)`` after every rollout; ends after ``stop`` steps."""

    def __init__(self, look=None, end=None, stop=np.inf):
        super().__init__()
        self.look, self.end, self.stop = look, end, stop

    def _on_step(self):
        if self.look is not None:
            self.look(self.model, self.locals)
        return self.n_calls < self.stop

    def _on_rollout_end(self):
        if self.end is not None:
            self.end(self.model)


class Always:
    def __init__(self, action):
        self.action = action

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.full(len(observation), self.action), state
