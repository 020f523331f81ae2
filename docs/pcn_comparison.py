"""Fronts and seconds of PCN and of MORL-Baselines' PCN in environments of MO-Gymnasium, the table of pcn.md.

``pip install mo-gymnasium morl-baselines && python docs/pcn_comparison.py SEED...`` writes it into this folder.
"""

import contextlib
import io
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import mo_gymnasium
import numpy as np
import torch as th
from joblib import Parallel, delayed
from morl_baselines.multi_policy.pcn.pcn import PCN as Theirs
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.common.pareto import hypervolume
from sb3_fair.pcn import PCN
from sb3_fair.wrappers import Scalarise
from sb3_fair.zoo.studies.sheet import Sheet

STEPS, EPISODES = 20_000, 10
TREASURE: dict[str, Any] = {"ref": [0, -50], "scale": [0.1, 0.1, 0.01], "most": [124, -1]}
ENVS: dict[str, dict[str, Any]] = {
    "fruit-tree": {"ref": [-0.01] * 6, "scale": [0.1] * 7, "most": [10] * 6},
    "deep-sea-treasure-concave": TREASURE,
    "deep-sea-treasure-mirrored": TREASURE,
    "resource-gathering": {"ref": [-1] * 3, "scale": [1, 1, 1, 0.1], "most": [0, 1, 1]},
    "four-room": {"ref": [-1] * 3, "scale": [1, 1, 1, 0.1], "most": [8, 8, 8]},
}
"""Reference point of the hypervolume, and the arguments that MORL-Baselines' PCN wants."""
FIVE_COPIES: dict[str, Any] = {"n_envs": 5, "learning_rate": 2e-3, "batch_size": 512}
SETTINGS: dict[str, dict[str, Any]] = {
    "fruit-tree": {"n_envs": 10},
    "deep-sea-treasure-concave": FIVE_COPIES | {"fill": "mixed", "scaling_factor": "auto"},
    "deep-sea-treasure-mirrored": FIVE_COPIES | {"fill": "mixed", "scaling_factor": "auto"},
    "resource-gathering": FIVE_COPIES | {"crowding_penalty": "one", "n_updates": 100},
    "four-room": FIVE_COPIES,
}
"""Over our defaults, chosen on seeds 10 to 19; where episodes differ in length, fewer copies wait for each other."""


def ours(name: str, seed: int) -> list[float]:
    """Hypervolumes of the coverage set and of its part with the most probable actions, seconds of training."""

    def make() -> gym.Env:
        env = mo_gymnasium.make(f"{name}-v0", disable_env_checker=True)
        return Scalarise(env, np.ones(env.unwrapped.reward_space.shape))

    settings = dict(SETTINGS[name])
    venv = DummyVecEnv([make] * settings.pop("n_envs"))
    model = PCN("MlpPolicy", venv, seed=seed, eval_freq=0, device="cpu", **settings)
    started = time.process_time()
    model.learn(STEPS)
    seconds = time.process_time() - started
    fronts = [model.coverage_set(EPISODES, deterministic=way) for way in ("both", True)]
    return [*(hypervolume(front.means, ENVS[name]["ref"]) for front in fronts), seconds]


def theirs(name: str, seed: int) -> list[float]:
    """Hypervolume of the mean returns under the commands of all stored episodes, seconds of training."""
    env, settings = mo_gymnasium.make(f"{name}-v0", disable_env_checker=True), ENVS[name]
    th.manual_seed(seed)
    agent = Theirs(env, np.array(settings["scale"]), log=False, seed=seed, device="cpu")
    evaluate, agent.evaluate, agent.save = agent._run_episode, lambda *_, **__: ([], None, None), lambda: None
    most = np.array(settings["most"], dtype=np.float32)
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        agent.train(STEPS, env, np.array(settings["ref"]), num_er_episodes=50, max_return=most)
    seconds = time.process_time() - started
    commands = {(*episode[0].reward.tolist(), len(episode)) for *_, episode in agent.experience_replay}
    means = []
    for *desired, horizon in commands:
        played = [
            evaluate(Seeded(env, j), np.float32(desired), np.float32(horizon), most, True) for j in range(EPISODES)
        ]
        means.append(np.mean([sum(step.reward for step in steps) for steps in played], axis=0))
    return [hypervolume(means, settings["ref"]), seconds]


class Seeded(gym.Wrapper):
    """Episodes of one seed, as the other side has them."""

    def __init__(self, env: gym.Env, seed: int) -> None:
        super().__init__(env)
        self.seed = seed

    def reset(self, **_: Any) -> Any:
        return self.env.reset(seed=self.seed)


def row(name: str, seed: int) -> tuple[str, int, list[float]]:
    th.set_num_threads(1)
    return name, seed, [*ours(name, seed), *theirs(name, seed)]


if __name__ == "__main__":
    seeds = [int(seed) for seed in sys.argv[1:]] or [30, 31, 32]
    jobs = (delayed(row)(name, seed) for name in ENVS for seed in seeds)
    rows = [
        [name, f"{seed}", f"{both:,.5g}", f"{likely:,.5g}", f"{seconds:.1f}", f"{other:,.5g}", f"{its_seconds:.1f}"]
        for name, seed, (both, likely, seconds, other, its_seconds) in Parallel(2, return_as="generator")(jobs)
    ]
    columns = (
        "environment",
        "seed",
        "coverage set",
        "most probable actions",
        "seconds",
        "MORL-Baselines",
        "its seconds",
    )
    Sheet("PCN and that of MORL-Baselines", columns, rows).publish(Path("pcn-comparison.md"))
