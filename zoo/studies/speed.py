"""Speed of environments, fairness core and algorithms (`sb3-fair benchmark speed`).

Everything runs in this process, on one core if torch has one thread.
"""

import json
import subprocess
import sys
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from rich.console import Console
from stable_baselines3.common.env_util import make_vec_env

from sb3_fair.common.plain import plain
from sb3_fair.common.run_folder import versions
from sb3_fair.f_ppo import EqualOpportunityAgent
from sb3_fair.fairness import NOTIONS, SlidingWindow, Tracker
from sb3_fair.zoo.evaluation.tables import show
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.runs.plan import AUDIT, make_plan
from sb3_fair.zoo.runs.settings import DEFAULT
from sb3_fair.zoo.runs.train import build_model, training_env
from sb3_fair.zoo.studies.sheet import Sheet
from sb3_fair.zoo.studies.study import read

HIRING, DOUGHNUT = "sb3_fair/JobHiring-v0", "sb3_fair/Doughnut-v0"
WINDOWS = (100, 500, 1000)
FEATURES = 7
RATE = "steps/s"
ROUNDS = 3
"""The best counts, since other work on the machine only ever makes a round slower."""


@dataclass(frozen=True)
class Figure:
    """One line of the benchmark.

    :param target: what it should reach, None if nothing was promised
    :param lower_is_better: whether the target is an upper bound
    """

    work: str
    value: float
    unit: str
    target: float | None = None
    lower_is_better: bool = False

    @property
    def cells(self) -> list[str]:
        """Its row in a table."""
        value = _text(self.value)
        if self.target is None:
            return [self.work, value, self.unit, "", ""]
        sign, reached = ("<=", self.value <= self.target) if self.lower_is_better else (">=", self.value >= self.target)
        return [self.work, value, self.unit, f"{sign} {_text(self.target)}", "reached" if reached else "missed"]


def speed(path: str | Path | None = None, *, quick: bool = False) -> list[Figure]:
    """Measures everything, prints a table, and writes JSON for comparison between versions.

    :param path: of the JSON file; None: no file
    :param quick: a tenth of the work
    """
    console = Console()
    figures = []
    for figure in measured(0.1 if quick else 1.0):
        console.print(f"  {figure.work}: {_text(figure.value)} {figure.unit}", style="dim", highlight=False)
        figures.append(figure)
    sheet = Sheet("Speed", ["", "figure", "unit", "should be", "is"], [figure.cells for figure in figures])
    show(sheet.rich())
    if path is not None:
        content = plain({"versions": versions(), "figures": figures, **sheet.content})
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return figures


def measured(scale: float) -> Iterator[Figure]:
    """The figures one after the other.

    :param scale: share of the work
    """
    cases = read("speed")
    for work, case in cases["envs"].items():
        if "needs" not in case or find_spec(case["needs"]) is not None:
            yield Figure(work, _env(case, scale), case.get("unit", RATE), case.get("target"))
    for window in WINDOWS:
        for notion in NOTIONS:
            yield Figure(f"fairness core: {notion}, window {window}", _tracker(notion, window, scale), RATE)
    for work, case in cases["trainings"].items():
        yield from _training(work, scale, **case)
    yield from _counterfactuals(scale)
    yield _equal_opportunity(scale)
    yield Figure("PPO (SB3) on CartPole-v1", _ppo(make_vec_env("CartPole-v1", n_envs=8, seed=0), scale), RATE)
    spec = make_vec(HIRING).get_attr("fairness_spec")[0]
    tracked, untracked = (
        make_vec(HIRING, n_envs=8, seed=0, spec=replace(spec, notions=notions)) for notions in (("SP", "EO"), ())
    )
    ppo = _ppo(tracked, scale)
    yield Figure("PPO (SB3) on hiring, SP and EO tracked", ppo, RATE)
    tracking = 1 / steps_of(tracked, scale) - 1 / steps_of(untracked, scale)
    yield Figure("share of SP and EO in PPO's time", 100 * tracking * ppo, "%", 20, lower_is_better=True)
    yield Figure("memory of seven notions, window 1000", _memory(), "MB", 20, lower_is_better=True)
    yield Figure("import sb3_fair / import stable_baselines3", _import_ratio(), "x", 1.3, lower_is_better=True)


def _env(case: Mapping[str, Any], scale: float) -> float:
    """Steps per second with random actions of an environment, or of its copies in a batch."""
    settings = case.get("settings", {})
    if "copies" in case:
        venv = make_vec(case["env"], n_envs=case["copies"], seed=0, monitor=False, **settings)
        return steps_of(venv.unwrapped if case.get("bare") else venv, scale)
    env = gym.make(case["env"], disable_env_checker=True, **settings)
    env = env.unwrapped if case.get("bare") else env
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=1000).tolist()

    def play() -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    play()
    return per_second(play, scale, len(actions))


def _decisions(tracker: Tracker, n: int) -> Callable[[], None]:
    """Adds n random decisions and reads the notions after each."""
    rng = np.random.default_rng(0)
    features, probabilities = rng.random((n, 1, FEATURES)), rng.dirichlet([1, 1], size=(n, 1))
    group, action = rng.integers(2, size=(2, n, 1))
    feedback = rng.integers(2, size=(n, 1)).astype(np.float64)

    def decide() -> None:
        for i in range(n):
            people = {"features": features[i], "probabilities": probabilities[i], "feedback": feedback[i]}
            tracker.add(group[i], action[i], **people)
            tracker.values()

    return decide


def _tracker(notion: str, window: int, scale: float) -> float:
    decide = _decisions(Tracker(1, notions=(notion,), history=SlidingWindow(window)), 1000)
    decide()  # fill the window
    return per_second(decide, 0.3 * scale, 1000)


def _memory() -> float:
    tracemalloc.start()
    tracker = Tracker(1, notions=AUDIT, history=SlidingWindow(1000))
    before = tracemalloc.get_traced_memory()[0]
    _decisions(tracker, 2000)()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return size / 1e6


def _model(**wishes: Any) -> Any:
    """Ready to learn in the copies of its plan."""
    plan = make_plan(**wishes)
    return build_model(plan, training_env(plan), "cpu")


def _training(work: str, scale: float, *, n_timesteps: int, beside: Any = None, **case: Any) -> Iterator[Figure]:
    wishes = {name: value for name, value in case.items() if name not in ("target", "unit", "ratio", "percent")}
    models = [_model(**wishes)] if beside is None else [_model(**wishes), _model(**{**wishes, **beside})]
    ours, *theirs = in_turns(models, int(n_timesteps * scale), 1 if beside is None else ROUNDS)
    yield Figure(work, ours, case.get("unit", RATE), case.get("target"))
    for speed in theirs:
        yield Figure(case["ratio"], 100 * ours / speed, "%", case["percent"])


def _counterfactuals(scale: float) -> Iterator[Figure]:
    """What the memories that might have been cost FairQCM on doughnuts."""
    task: dict[str, Any] = {"algo": "fair_qcm", "env": DOUGHNUT, "preset": DEFAULT, "objectives": ["R"], "n_envs": 8}
    relabelled, plain = (_model(**task, hyperparams={"n_counterfactual": n}).learn(3000) for n in (4, 0))
    share = _size(relabelled.replay_buffer) / _size(plain.replay_buffer)
    yield Figure("memory of the replay buffer / DQN's", share, "x", 1.1, lower_is_better=True)
    batch = relabelled.replay_buffer.sample(2048)
    memory, action = batch.observations["memory"].cpu().numpy(), batch.actions[:, 0].cpu().numpy()
    event, recompute = np.ones((2048, 3)), relabelled.replay_buffer.recompute
    rng = np.random.default_rng(0)
    relabelling = 1e3 / per_second(
        lambda: recompute(relabelled.memory.sample_counterfactuals(memory, rng), action, event), scale
    )
    yield Figure("relabelling 2048 rows", relabelling, "ms", 1.0, lower_is_better=True)
    ours, theirs = (1e3 / per_second(partial(model.train, 10, 256), scale) for model in (relabelled, plain))
    yield Figure("gradient step of FairQCM / of DQN", ours / theirs, "x", 1.3, lower_is_better=True)


def _equal_opportunity(scale: float) -> Figure:
    venv = make_vec("sb3_fair/Lending-v0", seed=0)
    agent, observation = EqualOpportunityAgent(), venv.reset()
    agent.bind(venv)
    decision = 1e3 / per_second(lambda: agent.predict(observation), scale)
    return Figure("equal opportunity, a decision", decision, "ms", 1, lower_is_better=True)


def _size(buffer: Any) -> int:
    """Bytes of all arrays of a replay buffer."""
    entries = [
        part for value in vars(buffer).values() for part in (value.values() if isinstance(value, dict) else [value])
    ]
    return sum(entry.nbytes for entry in entries if isinstance(entry, np.ndarray))


def _ppo(venv: Any, scale: float) -> float:
    from stable_baselines3 import PPO

    return in_turns([PPO("MlpPolicy", venv, seed=0, device="cpu")], int(32_768 * scale))[0]


def _import_ratio() -> float:
    def seconds(package: str) -> float:
        command = [sys.executable, "-c", f"import {package}"]
        return min(timeit.repeat(lambda: subprocess.run(command, check=True), number=1, repeat=5))

    return seconds("sb3_fair") / seconds("stable_baselines3")


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def per_second(work: Callable[[], Any], scale: float, steps: int = 1) -> float:
    """Best of three rounds of about a second of work, each time of so many steps."""
    best = 0.0
    for _ in range(ROUNDS):
        done, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < scale:
            work()
            done += steps
        best = max(best, done / elapsed)
    return best


def steps_of(venv: Any, scale: float) -> float:
    """Steps of all copies per second with random actions, Gaussian ones in a Box."""
    venv.reset()
    rng, size = np.random.default_rng(0), (1000 // venv.num_envs + 1, venv.num_envs)
    boxed = isinstance(venv.action_space, spaces.Box)
    actions = (
        rng.normal(size=(*size, *venv.action_space.shape)) if boxed else rng.integers(venv.action_space.n, size=size)
    )

    def play() -> None:
        for row in actions:
            venv.step(row)

    play()
    return per_second(play, scale, len(actions) * int(venv.num_envs))


def in_turns(models: Sequence[Any], steps: int, rounds: int = ROUNDS) -> list[float]:
    """Steps per second of ``learn(steps)`` of models that take turns: the best of some rounds."""

    def learning(model: Any) -> float:
        started = time.perf_counter()
        model.learn(steps)
        return float(model.num_timesteps / (time.perf_counter() - started))

    speeds = [[learning(model) for model in models] for _ in range(rounds)]
    return [max(of_model) for of_model in zip(*speeds, strict=True)]
