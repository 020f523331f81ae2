"""Is what a filter sees before a decision what the environment knows before it, also at an episode's first step?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from numpy.testing import assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from sb3_fair.wrappers.coming import VecComing, coming, first, told


class Tides(gym.Env):
    """Publishes the time and the length of the episode, and an undefined figure at its beginning."""

    observation_space = spaces.Box(0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length, tells=True):
        self.length, self.tells = length, tells

    def _info(self):
        if not self.tells:
            return {}
        undefined = None if self.t == 0 else 1 / self.t
        return {"massage": {"time": self.t, "rest": undefined, "both": np.array([self.t, self.length])}}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), self._info()

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), 0.0, False, self.t == self.length, self._info()


def tides(cls=DummyVecEnv, wrapped=False, **settings):
    venv = cls([lambda length=length: Tides(length, **settings) for length in (2, 3, 5)])
    return VecNormalize(VecMonitor(venv)) if wrapped else venv


def check(record, times):
    assert_array_equal(record["time"], times)
    assert_array_equal(record["both"], np.stack([times, [2, 3, 5]], axis=1))
    assert_array_equal(record["rest"], [np.nan if time == 0 else 1 / time for time in times])


@pytest.mark.parametrize("cls", [DummyVecEnv, partial(SubprocVecEnv, start_method="fork")], ids=["dummy", "subproc"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_after_an_episodes_end_the_next_ones_beginning_counts(cls, wrapped):
    venv = tides(cls, wrapped)
    venv.reset()
    check(first(venv), [0, 0, 0])
    for step in range(1, 31):
        *_, dones, infos = venv.step(np.zeros(3, dtype=int))
        check(coming(venv, infos, dones), [step % 2, step % 3, step % 5])
    venv.close()


def test_the_infos_of_last_steps_stay_as_they_are():
    venv = tides()
    venv.reset()
    for _ in range(2):
        *_, dones, infos = venv.step(np.zeros(3, dtype=int))
    coming(venv, infos, dones)
    assert [info["massage"]["time"] for info in infos] == [2, 2, 2]


def test_an_environment_may_publish_nothing():
    venv = tides(tells=False)
    venv.reset()
    *_, dones, infos = venv.step(np.zeros(3, dtype=int))
    assert first(venv) is None and coming(venv, infos, dones) is None


def test_a_last_step_need_not_tell_it():
    venv = tides()
    venv.reset()
    for step in range(1, 11):
        *_, dones, infos = venv.step(np.zeros(3, dtype=int))
        for copy in np.flatnonzero(dones):
            del infos[copy]["massage"]
        check(coming(venv, infos, dones), [step % 2, step % 3, step % 5])


def test_copies_must_tell_the_same_numbers_of_groups():
    with pytest.raises(ValueError, match=r"info\['massage'\] must have the same shapes in all copies \(groups of"):
        told([{"massage": {"decided": np.zeros(n)}} for n in (1, 2)])


def test_who_publishes_after_steps_must_do_so_after_resets():
    venv = tides()
    venv.reset()
    venv.step(np.zeros(3, dtype=int))
    *_, dones, infos = venv.step(np.zeros(3, dtype=int))
    venv.reset_infos = [{}] * 3
    with pytest.raises(ValueError, match=r"info\['massage'\] after steps must have it after resets too"):
        coming(venv, infos, dones)


def test_a_wrapper_remembers_it():
    venv = VecComing(tides(wrapped=True))
    assert venv.coming is None
    venv.reset()
    check(venv.coming, [0, 0, 0])
    for step in range(1, 7):
        venv.step(np.zeros(3, dtype=int))
        check(venv.coming, [step % 2, step % 3, step % 5])
    venv.reset()
    check(venv.coming, [0, 0, 0])


def test_the_share_of_replaced_decisions_is_told_when_an_episode_ends():
    venv = VecComing(tides(wrapped=True))
    venv.reset()
    told = []
    for step in range(1, 7):
        venv.changed = np.array([step == 1, False, True])
        *_, infos = venv.step(np.zeros(3, dtype=int))
        told.append([info.get("fairness", {}).get("filtered") for info in infos])
    assert told[1][0] == 0.5 and told[3][0] == 0.0, "episodes of two steps"
    assert told[2][1] == 0.0 and told[4][2] == 1.0, "of three and of five"
    assert told[0] == [None, None, None]
    venv.reset()  # which the running episode of five steps does not outlive
    for _ in range(5):
        venv.changed = np.zeros(3, dtype=bool)
        *_, infos = venv.step(np.zeros(3, dtype=int))
    assert infos[2]["fairness"]["filtered"] == 0.0
