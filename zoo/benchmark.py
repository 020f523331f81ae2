"""Speed of environments, fairness core and algorithms (`sb3-fair benchmark speed`).

Everything runs in this process, on one core if torch has one thread.
"""

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.table import Table

from sb3_fair.common.run_folder import versions
from sb3_fair.f_ppo import FPPO, EqualOpportunityAgent
from sb3_fair.fair_qcm import FairQCM, TabularFairQCM
from sb3_fair.fairness import NOTIONS, SlidingWindow, Tracker
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.harvest_benchmark import harvest
from sb3_fair.zoo.plan import AUDIT, make_plan
from sb3_fair.zoo.tables import show
from sb3_fair.zoo.timing import ROUNDS, Figure, in_turns, learning, steps_of, steps_per_second
from sb3_fair.zoo.train import build_model, training_env

HIRING = "sb3_fair/JobHiring-v0"
FRAUD, MULTIMAUS = "sb3_fair/FraudDetection-v0", "sb3_fair/FraudDetection-MultiMAuS-v0"
TREASURE = "mo_gymnasium:deep-sea-treasure-v0"
DOUGHNUT, SMALL_DOUGHNUT = "sb3_fair/Doughnut-v0", "sb3_fair/Doughnut-Small-v0"
LOANS = "sb3_fair/LoanAllocation-Code-v0"
LENDING, ATTENTION = "sb3_fair/Lending-v0", "sb3_fair/AttentionAllocation-v0"
EPIDEMIC = "sb3_fair/EpidemicControl-v0"
WINDOWS = (100, 500, 1000)
FEATURES = 7


def speed(path: str | Path | None = None, *, quick: bool = False) -> list[Figure]:
    """Measures everything, prints a table, and writes JSON for comparison between versions.

    :param path: of the JSON file; None: no file
    :param quick: a tenth of the work
    """
    scale = 0.1 if quick else 1.0
    console = Console()
    figures = []
    for figure in measured(scale):
        console.print(f"  {figure.work}: {_text(figure.value)} {figure.unit}", style="dim", highlight=False)
        figures.append(figure)
    show(_table(figures))
    if path is not None:
        content = {"versions": versions(), "figures": [asdict(figure) for figure in figures]}
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return figures


def measured(scale: float) -> Iterator[Figure]:
    """The figures one after the other.

    :param scale: share of the work
    """
    rate = "steps/s"
    yield Figure("hiring env, single", _single_env({}, scale, bare=True), rate, 10_000)
    yield Figure("hiring env, single, its SP and EO tracked", _single_env({}, scale), rate, 10_000)
    yield Figure("hiring env, 1024 copies", _batched_env(1024, {}, scale, bare=True), rate, 300_000)
    yield from _fraud(scale)
    for window in WINDOWS:
        for notion in NOTIONS:
            yield Figure(f"fairness core: {notion}, window {window}", _tracker(notion, window, scale), rate)
    for window, target in ((500, 4_000), (1000, 3_000)):
        settings = {"audit": AUDIT, "window": window, "reset_on_episode": False}  # so that the window stays full
        yield Figure(f"env + seven notions, window {window}", _single_env(settings, scale), rate, target)
        yield Figure(f"env + seven notions, window {window}, 8 copies", _batched_env(8, settings, scale), rate)
    yield Figure("PCN on hiring, R:SP:IF, window 500", _pcn_on_hiring(scale), rate, 3_000)
    yield from _deep_sea_treasure(scale)
    yield from _fair_qcm(scale)
    yield from _f_ppo(scale)
    yield from harvest(scale)
    yield Figure("PPO (SB3) on CartPole-v1", _ppo(_cartpole, scale), rate)
    ppo = _ppo(_tracked, scale)
    yield Figure("PPO (SB3) on hiring, SP and EO tracked", ppo, rate)
    tracking = 1 / steps_of(_tracked(), scale) - 1 / steps_of(_untracked(), scale)
    yield Figure("share of SP and EO in PPO's time", 100 * tracking * ppo, "%", 20, lower_is_better=True)
    yield Figure("memory of seven notions, window 1000", _memory(), "MB", 20, lower_is_better=True)
    yield Figure("import sb3_fair / import stable_baselines3", _import_ratio(), "x", 1.3, lower_is_better=True)


def _fraud(scale: float) -> Iterator[Figure]:
    """Worlds whose steps look for the next transaction of many customers."""
    rate, settings = "steps/s", {"audit": AUDIT, "window": 500, "reset_on_episode": False}
    single = _single_env({}, scale, bare=True, env_id=FRAUD)
    yield Figure("fraud env, single, 100 customers", single, rate, 10_000)
    many = _single_env({}, scale, bare=True, env_id=MULTIMAUS)
    yield Figure("fraud env, single, 3333 customers", many, rate, 5_000)
    batched = _batched_env(1024, {}, scale, bare=True, env_id=FRAUD)
    yield Figure("fraud env, 1024 copies", batched, rate, 200_000)
    tracked = _single_env(settings, scale, env_id=FRAUD)
    yield Figure("fraud env + seven notions, window 500", tracked, rate, 5_000)
    several = _batched_env(8, settings, scale, env_id=FRAUD)
    yield Figure("fraud env + seven notions, window 500, 8 copies", several, rate)


def _single_env(settings: dict[str, Any], scale: float, *, bare: bool = False, env_id: str = HIRING) -> float:
    env = gym.make(env_id, disable_env_checker=True, **settings)
    env = env.unwrapped if bare else env
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=1000).tolist()

    def step() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    step()
    return steps_per_second(step, scale)


def _batched_env(n: int, settings: dict[str, Any], scale: float, *, bare: bool = False, env_id: str = HIRING) -> float:
    venv: Any = make_vec(env_id, n_envs=n, seed=0, monitor=False, **settings)
    while bare and hasattr(venv, "venv"):
        venv = venv.venv
    return steps_of(venv, scale)


def _decisions(tracker: Tracker, n: int) -> Callable[[], int]:
    """Adds n random decisions and reads the notions after each."""
    rng = np.random.default_rng(0)
    features, probabilities = rng.random((n, 1, FEATURES)), rng.dirichlet([1, 1], size=(n, 1))
    group, action = rng.integers(2, size=(2, n, 1))
    feedback = rng.integers(2, size=(n, 1)).astype(np.float64)

    def step() -> int:
        for i in range(n):
            tracker.add(
                group[i],
                action[i],
                features=features[i],
                probabilities=probabilities[i],
                feedback=feedback[i],
            )
            tracker.values()
        return n

    return step


def _tracker(notion: str, window: int, scale: float) -> float:
    step = _decisions(Tracker(1, notions=(notion,), history=SlidingWindow(window)), 1000)
    step()  # fill the window
    return steps_per_second(step, 0.3 * scale)


def _memory() -> float:
    tracemalloc.start()
    tracker = Tracker(1, notions=AUDIT, history=SlidingWindow(1000))
    before = tracemalloc.get_traced_memory()[0]
    _decisions(tracker, 2000)()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return size / 1e6


def _pcn_on_hiring(scale: float) -> float:
    plan = make_plan("pcn", HIRING, hyperparams={"eval_freq": 0})
    model = build_model(plan, training_env(plan), "cpu")
    return learning(model, int(40_000 * scale))


def _deep_sea_treasure(scale: float) -> Iterator[Figure]:
    """PCN with the settings of the comparison, ours and, where it is installed, that of MORL-Baselines."""
    if find_spec("mo_gymnasium") is None:
        return
    from sb3_fair.pcn import PCN

    steps = int(20_000 * scale)
    env = gym.make(TREASURE, disable_env_checker=True)
    ours = learning(PCN("MlpPolicy", env, seed=0, device="cpu", eval_freq=0), steps)
    theirs = _morl_baselines(steps)
    yield Figure("PCN on deep-sea-treasure", ours, "steps/s", None if theirs is None else 2 * theirs)
    if theirs is not None:
        yield Figure("PCN of MORL-Baselines on deep-sea-treasure", theirs, "steps/s")


def _morl_baselines(steps: int) -> float | None:
    try:
        from morl_baselines.multi_policy.pcn.pcn import PCN as Theirs
    except ImportError:
        return None
    env, eval_env = (gym.make(TREASURE, disable_env_checker=True) for _ in range(2))
    agent = Theirs(env, scaling_factor=np.array([0.1, 0.1, 0.01]), learning_rate=1e-3, batch_size=256, log=False)
    started = time.perf_counter()
    agent.train(
        total_timesteps=steps,
        eval_env=eval_env,
        ref_point=np.array([0.0, -200.0]),
        num_er_episodes=50,
        max_buffer_size=100,
        num_model_updates=20,
        max_return=np.array([124.0, -1.0]),
    )
    return steps / (time.perf_counter() - started)


def _fair_qcm(scale: float) -> Iterator[Figure]:
    """Worlds with stakeholders, and training at the settings whose quality the documentation shows."""
    rate = "steps/s"
    for name, env in (("doughnut", DOUGHNUT), ("loans", LOANS)):
        venv = make_vec(env, n_envs=1024, seed=0, monitor=False).unwrapped
        yield Figure(f"{name} env, 1024 copies", steps_of(venv, scale), rate, 200_000)
    one_update: dict[str, Any] = {"train_freq": 1, "gradient_steps": 1}
    yield Figure(
        "FairQCM on doughnuts", learning(_learner(DOUGHNUT, 8, **one_update), int(20_000 * scale)), rate, 2_000
    )
    fused = {"optimizer_kwargs": {"fused": True}}
    model = _learner(LOANS, 32, learning_rate=2e-3, reward_scale=0.025, policy_kwargs=fused, **one_update)
    yield Figure("FairQCM on loans", learning(model, int(60_000 * scale)), rate, 4_830)
    table = TabularFairQCM(make_vec(SMALL_DOUGHNUT, n_envs=256, seed=0), seed=0)
    yield Figure("tabular FairQCM on doughnuts", learning(table, int(300_000 * scale)), rate, 60_000)
    relabelled, plain = _filled(4), _filled(0)
    share = _size(relabelled.replay_buffer) / _size(plain.replay_buffer)
    yield Figure("memory of the replay buffer / DQN's", share, "x", 1.1, lower_is_better=True)
    batch = relabelled.replay_buffer.sample(2048)
    memory, action = batch.observations["memory"].numpy(), batch.actions[:, 0].numpy()
    event, recompute = np.ones((2048, 3)), relabelled.replay_buffer.recompute
    rng = np.random.default_rng(0)

    def relabel() -> int:
        recompute(relabelled.memory.sample_counterfactuals(memory, rng), action, event)
        return 1

    yield Figure("relabelling 2048 rows", 1e3 / steps_per_second(relabel, scale), "ms", 1.0, lower_is_better=True)
    ratio = _gradient_step(relabelled, scale) / _gradient_step(plain, scale)
    yield Figure("gradient step of FairQCM / of DQN", ratio, "x", 1.3, lower_is_better=True)


def _f_ppo(scale: float) -> Iterator[Figure]:
    """Worlds with measures of disparity, and what both halves of F-PPO cost at the last threshold of training."""
    for name, env, n, target in (
        ("lending", LENDING, 2048, 1_000_000),
        ("attention", ATTENTION, 1024, 300_000),
        ("epidemic", EPIDEMIC, 1024, 300_000),
    ):
        venv = make_vec(env, n_envs=n, seed=0, monitor=False).unwrapped
        yield Figure(f"{name} env, {n} copies", steps_of(venv, scale), "steps/s", target)
        last = venv.get_attr("fairness_spec")[0].measures.threshold(1000)
        share = _share_of_ppo(env, int(16_384 * scale), massage_threshold=last)
        yield Figure(f"speed of FPPO on {name} / of PPO", 100 * share, "%", 70)
    venv = make_vec(LENDING, seed=0)
    agent, observation = EqualOpportunityAgent(), venv.reset()
    agent.bind(venv)

    def decide() -> int:
        agent.predict(observation)
        return 1

    yield Figure("equal opportunity, a decision", 1e3 / steps_per_second(decide, scale), "ms", 1, lower_is_better=True)


def _share_of_ppo(env: str, steps: int, **settings: Any) -> float:
    """Speed of FPPO's training as a share of PPO's, both in turns."""
    from stable_baselines3 import PPO

    rollouts: dict[str, Any] = {"n_steps": 64, "batch_size": 1024, "n_epochs": 6, "seed": 0, "device": "cpu"}
    models = [
        kind("MlpPolicy", make_vec(env, n_envs=64, seed=0), **rollouts, **own)
        for kind, own in ((FPPO, settings), (PPO, {}))
    ]
    ours, theirs = in_turns(models, steps)
    return ours / theirs


def _learner(env: str, n_envs: int, **settings: Any) -> Any:
    return FairQCM("MultiInputPolicy", make_vec(env, n_envs=n_envs, seed=0), seed=0, device="cpu", **settings)


def _filled(n_counterfactual: int) -> Any:
    return _learner(DOUGHNUT, 8, n_counterfactual=n_counterfactual).learn(3000)


def _size(buffer: Any) -> int:
    """Bytes of all arrays of a replay buffer."""
    entries = [
        part for value in vars(buffer).values() for part in (value.values() if isinstance(value, dict) else [value])
    ]
    return sum(entry.nbytes for entry in entries if isinstance(entry, np.ndarray))


def _gradient_step(model: Any, scale: float) -> float:
    """Seconds per gradient step."""

    def step() -> int:
        model.train(10, 256)
        return 10

    return 1 / steps_per_second(step, scale)


def _cartpole() -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CartPole-v1", n_envs=8, seed=0)


def _untracked() -> Any:
    spec = make_vec(HIRING).get_attr("fairness_spec")[0]
    return make_vec(HIRING, n_envs=8, seed=0, spec=replace(spec, notions=()))


def _tracked() -> Any:
    return make_vec(HIRING, n_envs=8, seed=0, audit=("SP", "EO"))


def _ppo(make: Callable[[], Any], scale: float) -> float:
    from stable_baselines3 import PPO

    return max(learning(PPO("MlpPolicy", make(), seed=0, device="cpu"), int(32_768 * scale)) for _ in range(ROUNDS))


def _import_ratio() -> float:
    def seconds(package: str) -> float:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {package}"], check=True)
            times.append(time.perf_counter() - started)
        return min(times)

    return seconds("sb3_fair") / seconds("stable_baselines3")


def _table(figures: list[Figure]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("work", no_wrap=True)
    for column in ("figure", "unit", "should be", ""):
        table.add_column(column, justify="left" if column == "unit" else "right", no_wrap=True)
    for figure in figures:
        bound = "" if figure.target is None else f"{'<=' if figure.lower_is_better else '>='} {_text(figure.target)}"
        verdict = {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[figure.reached]
        table.add_row(figure.work, _text(figure.value), figure.unit, bound, verdict)
    return table


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
