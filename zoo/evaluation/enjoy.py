"""The command `sb3-fair enjoy`: films of a trained policy."""

from contextlib import closing
from math import ceil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.wrappers.layer import max_steps_of
from sb3_fair.zoo.evaluation.evaluate import FILMED, audited, chosen, evaluate_again, front_of, held_out, seed_of
from sb3_fair.zoo.evaluation.film import film_format, save_film
from sb3_fair.zoo.evaluation.tables import blank_table
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.layers import single, vectorised
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.policy_file import load_policy

LONGEST = 100
"""Pictures of a film, unless it is said which steps to show."""
Picture = NDArray[np.uint8]


class Camera(gym.Wrapper):
    """Takes a picture at the beginning of an episode, after every so many steps, and at the end.

    :param pictures: to which every picture is added
    :param most: when there are more pictures, every other one goes, and from then on :attr:`every` is twice as long;
        None: all stay
    """

    def __init__(self, env: gym.Env, pictures: list[Picture], every: int = 1, most: int | None = None) -> None:
        super().__init__(env)
        self.pictures = pictures
        self.every = every
        self.most = most
        self._steps = 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if not self._steps:  # not in reset, after which a VecEnv may well stop
            self._shoot()
        outcome = self.env.step(action)
        self._steps += 1
        if self._steps % self.every == 0 or outcome[2] or outcome[3]:
            self._shoot()
        return outcome

    def _shoot(self) -> None:
        picture: Any = self.env.render()
        if picture is None:
            raise NotImplementedError("render returned None")
        self.pictures.append(picture)
        if self.most is not None and len(self.pictures) > self.most:
            del self.pictures[1::2]
            self.every *= 2


def enjoy(
    run: RunFolder,
    film: str | Path,
    *,
    policy: int | str = 0,
    n_episodes: int = 1,
    seed: int | None = None,
    every: int | None = None,
    fps: float = 8.0,
    device: str = "auto",
) -> EvaluatedPolicy:
    """Films episodes of a policy, and tells what each brought.

    :param run: a finished run
    :param film: file to write, ``.gif`` or ``.mp4``
    :param policy: number or name of the policy in the run's report
    :param seed: of the environment and of sampled actions; None: one that no other run has
    :param every: steps from one picture to the next; None: as many as make a film of 100 pictures of the longest
        episodes possible, and at least 1; where episodes have no limit, first 1, and twice as many whenever there are
        more than 100 pictures, of which every other one goes
    :param fps: pictures per second
    :return: the policy with these episodes
    """
    learned = chosen(front_of(run), policy)
    if every is not None and every < 1:
        raise InputError(f"every must be a positive integer, got {every}")
    if not 0 < fps <= 50:
        raise InputError(f"fps must be positive and at most 50, got {fps}")
    try:
        film_format(film)
    except (ValueError, ImportError) as error:
        raise InputError(str(error)) from error
    if not Path(film).parent.is_dir():
        raise InputError(f"film must be in a folder that exists, got {str(film)!r}")
    plan = held_out(Plan.of_run(run))
    seed = seed_of(plan, FILMED) if seed is None else seed
    model = load_policy(plan, run, device)
    pictures: list[Picture] = []
    try:
        env = single(plan, **{**plan.env_kwargs, "audit": audited(plan)}, render_mode="rgb_array")
    except TypeError as error:
        raise InputError(f"env must take render_mode='rgb_array' to be filmed, got {plan.env}: {error}") from error
    limit = max_steps_of(env)
    most = LONGEST if every is None and limit is None else None
    every = every or max(1, ceil((limit or 0) * n_episodes / LONGEST))
    with closing(vectorised(plan, DummyVecEnv([lambda: Camera(env, pictures, every, most)]))) as venv:
        try:
            played = evaluate_again(plan, model, learned, venv, n_episodes, seed)
        except NotImplementedError as error:
            raise InputError(f"env must draw pictures with render, got {plan.env}: {error}") from error
    save_film(pictures, film, fps)
    return played


def episode_table(policy: EvaluatedPolicy) -> Table:
    """What each episode brought: steps, returns of the objectives, fairness figures after the last step."""
    finals = {f"final {name}" if name in policy.objectives else name: values for name, values in policy.final.items()}
    columns = ("episode", "steps", *policy.objectives, *finals)
    table = blank_table(*columns, texts=0, title=policy.name, title_justify="left")
    for episode, (length, returns) in enumerate(zip(policy.lengths, policy.returns, strict=True)):
        cells = [f"{value:.3f}" for value in (*returns, *(values[episode] for values in finals.values()))]
        table.add_row(str(episode), f"{length:.0f}", *cells)
    return table
