"""Speed of environments, fairness core and algorithms (`sb3-fair benchmark speed`).

Everything runs in this process, on one core if torch has one thread.
"""

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from rich.console import Console
from rich.table import Table

from sb3_fair.common.run_folder import versions
from sb3_fair.f_ppo import EqualOpportunityAgent
from sb3_fair.fairness import NOTIONS, SlidingWindow, Tracker
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.evaluation.tables import show
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.runs.plan import AUDIT, Plan, make_plan
from sb3_fair.zoo.runs.settings import DEFAULT
from sb3_fair.zoo.runs.train import build_model, training_env
from sb3_fair.zoo.studies.fair_ppo import Arm, zoo_arm

HIRING = "sb3_fair/JobHiring-v0"
FRAUD, MULTIMAUS = "sb3_fair/FraudDetection-v0", "sb3_fair/FraudDetection-MultiMAuS-v0"
TREASURE = "mo_gymnasium:deep-sea-treasure-v0"
DOUGHNUT, SMALL_DOUGHNUT = "sb3_fair/Doughnut-v0", "sb3_fair/Doughnut-Small-v0"
LOANS = "sb3_fair/LoanAllocation-Code-v0"
LENDING, ATTENTION = "sb3_fair/Lending-v0", "sb3_fair/AttentionAllocation-v0"
EPIDEMIC = "sb3_fair/EpidemicControl-v0"
WINDOWS = (100, 500, 1000)
FEATURES = 7
RATE = "steps/s"
HARVESTS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("one after the other", {}, 500_000),
    ("simultaneous", {"order": "simultaneous"}, 2_000_000),
    ("one after the other, numba", {"backend": "numba"}, 2_000_000),
)
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
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.lower_is_better else self.value >= self.target


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
    yield Figure("hiring env, single", _single_env(HIRING, scale, bare=True), RATE, 10_000)
    yield Figure("hiring env, single, its SP and EO tracked", _single_env(HIRING, scale), RATE, 10_000)
    yield Figure("hiring env, 1024 copies", _batched_env(HIRING, 1024, scale, bare=True), RATE, 300_000)
    yield Figure("fraud env, single, 100 customers", _single_env(FRAUD, scale, bare=True), RATE, 10_000)
    yield Figure("fraud env, single, 3333 customers", _single_env(MULTIMAUS, scale, bare=True), RATE, 5_000)
    yield Figure("fraud env, 1024 copies", _batched_env(FRAUD, 1024, scale, bare=True), RATE, 200_000)
    yield from _with_all_notions("fraud env", FRAUD, 500, 5_000, scale)
    for window in WINDOWS:
        for notion in NOTIONS:
            yield Figure(f"fairness core: {notion}, window {window}", _tracker(notion, window, scale), RATE)
    for window, target in ((500, 4_000), (1000, 3_000)):
        yield from _with_all_notions("env", HIRING, window, target, scale)
    pcn = _model(make_plan("pcn", HIRING, hyperparams={"eval_freq": 0}))
    yield Figure("PCN on hiring, R:SP:IF, window 500", learning(pcn, int(40_000 * scale)), RATE, 3_000)
    yield from _deep_sea_treasure(scale)
    yield from _fair_qcm(scale)
    yield from _f_ppo(scale)
    yield from _harvest(scale)
    yield Figure("PPO (SB3) on CartPole-v1", _ppo(_cartpole, scale), RATE)
    ppo = _ppo(_tracked, scale)
    yield Figure("PPO (SB3) on hiring, SP and EO tracked", ppo, RATE)
    tracking = 1 / steps_of(_tracked(), scale) - 1 / steps_of(_untracked(), scale)
    yield Figure("share of SP and EO in PPO's time", 100 * tracking * ppo, "%", 20, lower_is_better=True)
    yield Figure("memory of seven notions, window 1000", _memory(), "MB", 20, lower_is_better=True)
    yield Figure("import sb3_fair / import stable_baselines3", _import_ratio(), "x", 1.3, lower_is_better=True)


def _with_all_notions(name: str, env: str, window: int, target: float, scale: float) -> Iterator[Figure]:
    settings: dict[str, Any] = {"audit": AUDIT, "window": window}
    settings["reset_on_episode"] = False  # so that the window stays full
    work = f"{name} + seven notions, window {window}"
    yield Figure(work, _single_env(env, scale, **settings), RATE, target)
    yield Figure(f"{work}, 8 copies", _batched_env(env, 8, scale, **settings), RATE)


def _single_env(env_id: str, scale: float, *, bare: bool = False, **settings: Any) -> float:
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


def _batched_env(env_id: str, n: int, scale: float, *, bare: bool = False, **settings: Any) -> float:
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


def _model(plan: Plan) -> Any:
    """Ready to learn in the copies of its plan."""
    return build_model(plan, training_env(plan), "cpu")


def _learner(algo: str, env: str, n_envs: int, **hyperparams: Any) -> Any:
    """With the algorithm's defaults but for some."""
    return _model(make_plan(algo, env, preset=DEFAULT, objectives=["R"], n_envs=n_envs, hyperparams=hyperparams))


def _deep_sea_treasure(scale: float) -> Iterator[Figure]:
    """PCN with the settings of the comparison, ours and, where it is installed, that of MORL-Baselines."""
    if find_spec("mo_gymnasium") is None:
        return
    from sb3_fair.pcn import PCN

    steps = int(20_000 * scale)
    env = gym.make(TREASURE, disable_env_checker=True)
    ours = learning(PCN("MlpPolicy", env, seed=0, device="cpu", eval_freq=0, n_updates=20), steps)
    theirs = _morl_baselines(steps)
    yield Figure("PCN on deep-sea-treasure", ours, RATE, None if theirs is None else 2 * theirs)
    if theirs is not None:
        yield Figure("PCN of MORL-Baselines on deep-sea-treasure", theirs, RATE)


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
    for name, env in (("doughnut", DOUGHNUT), ("loans", LOANS)):
        yield Figure(f"{name} env, 1024 copies", _batched_env(env, 1024, scale, bare=True), RATE, 200_000)
    one_update: dict[str, Any] = {"train_freq": 1, "gradient_steps": 1}
    doughnuts = _learner("fair_qcm", DOUGHNUT, 8, **one_update)
    yield Figure("FairQCM on doughnuts", learning(doughnuts, int(20_000 * scale)), RATE, 2_000)
    fused = {"optimizer_kwargs": {"fused": True}}
    loans = _learner("fair_qcm", LOANS, 32, learning_rate=2e-3, reward_scale=0.025, policy_kwargs=fused, **one_update)
    yield Figure("FairQCM on loans", learning(loans, int(60_000 * scale)), RATE, 4_830)
    table = _learner("tabular_fair_qcm", SMALL_DOUGHNUT, 256)
    yield Figure("tabular FairQCM on doughnuts", learning(table, int(300_000 * scale)), RATE, 60_000)
    relabelled, plain = _filled(4), _filled(0)
    share = _size(relabelled.replay_buffer) / _size(plain.replay_buffer)
    yield Figure("memory of the replay buffer / DQN's", share, "x", 1.1, lower_is_better=True)
    batch = relabelled.replay_buffer.sample(2048)
    memory, action = batch.observations["memory"].numpy(), batch.actions[:, 0].numpy()
    event, recompute = np.ones((2048, 3)), relabelled.replay_buffer.recompute
    rng = np.random.default_rng(0)
    relabelling = _milliseconds(
        lambda: recompute(relabelled.memory.sample_counterfactuals(memory, rng), action, event), scale
    )
    yield Figure("relabelling 2048 rows", relabelling, "ms", 1.0, lower_is_better=True)
    ours, theirs = (_milliseconds(partial(model.train, 10, 256), scale) for model in (relabelled, plain))
    yield Figure("gradient step of FairQCM / of DQN", ours / theirs, "x", 1.3, lower_is_better=True)


def _f_ppo(scale: float) -> Iterator[Figure]:
    """Worlds with measures of disparity, and what both halves of F-PPO cost at the last threshold of training."""
    rollouts: dict[str, Any] = {"n_steps": 64, "batch_size": 1024, "n_epochs": 6}
    for name, env, n, target in (
        ("lending", LENDING, 2048, 1_000_000),
        ("attention", ATTENTION, 1024, 300_000),
        ("epidemic", EPIDEMIC, 1024, 300_000),
    ):
        venv = make_vec(env, n_envs=n, seed=0, monitor=False).unwrapped
        yield Figure(f"{name} env, {n} copies", steps_of(venv, scale), RATE, target)
        last = venv.get_attr("fairness_spec")[0].measures.threshold(1000)
        models = _learner("f_ppo", env, 64, **rollouts, massage_threshold=last), _learner("ppo", env, 64, **rollouts)
        ours, theirs = in_turns(models, int(16_384 * scale))
        yield Figure(f"speed of FPPO on {name} / of PPO", 100 * ours / theirs, "%", 70)
    venv = make_vec(LENDING, seed=0)
    agent, observation = EqualOpportunityAgent(), venv.reset()
    agent.bind(venv)
    decision = _milliseconds(lambda: agent.predict(observation), scale)
    yield Figure("equal opportunity, a decision", decision, "ms", 1, lower_is_better=True)


def _harvest(scale: float) -> Iterator[Figure]:
    """Steps of single agents: of the game with random actions, and of training with the zoo's settings."""
    rate, worlds = "agent-steps/s", 1024
    for name, rules, target in HARVESTS:
        if "backend" not in rules or find_spec(rules["backend"]) is not None:
            speed = steps_of(HarvestVecEnv(worlds, rules, seed=0), scale)
            yield Figure(f"harvest, {worlds} games, {name}", speed, rate, target)
    models = [_model(arm.plan(seed=0)) for arm in (Arm(), zoo_arm())]
    steps = max(int(200_000 * scale), models[0].n_steps * models[0].n_envs)
    without, within = in_turns(models, steps)
    yield Figure("fair-PPO on the harvest", within, rate, 20_000)
    share = 100 * (1 - within / without)
    yield Figure("share of penalties in its time", share, "%", 15, lower_is_better=True)


def _milliseconds(work: Callable[[], Any], scale: float) -> float:
    def step() -> int:
        work()
        return 1

    return 1e3 / steps_per_second(step, scale)


def _filled(n_counterfactual: int) -> Any:
    return _learner("fair_qcm", DOUGHNUT, 8, n_counterfactual=n_counterfactual).learn(3000)


def _size(buffer: Any) -> int:
    """Bytes of all arrays of a replay buffer."""
    entries = [
        part for value in vars(buffer).values() for part in (value.values() if isinstance(value, dict) else [value])
    ]
    return sum(entry.nbytes for entry in entries if isinstance(entry, np.ndarray))


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


def steps_per_second(step: Callable[[], int], scale: float) -> float:
    """Best of three rounds of about a second; ``step`` returns how many steps it took."""
    best = 0.0
    for _ in range(ROUNDS):
        steps, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < scale:
            steps += step()
        best = max(best, steps / elapsed)
    return best


def steps_of(venv: Any, scale: float) -> float:
    """Steps of all copies per second with random actions, Gaussian ones in a Box."""
    venv.reset()
    rng, size = np.random.default_rng(0), (1000 // venv.num_envs + 1, venv.num_envs)
    boxed = isinstance(venv.action_space, spaces.Box)
    actions = (
        rng.normal(size=(*size, *venv.action_space.shape)) if boxed else rng.integers(venv.action_space.n, size=size)
    )

    def step() -> int:
        for row in actions:
            venv.step(row)
        return len(actions) * int(venv.num_envs)

    step()
    return steps_per_second(step, scale)


def learning(model: Any, steps: int) -> float:
    """Steps per second of ``model.learn(steps)``."""
    started = time.perf_counter()
    model.learn(steps)
    return float(model.num_timesteps / (time.perf_counter() - started))


def in_turns(models: Sequence[Any], steps: int) -> list[float]:
    """Best of three rounds of :func:`learning` of each of several models, which take turns."""
    rounds = [[learning(model, steps) for model in models] for _ in range(ROUNDS)]
    return [max(speeds) for speeds in zip(*rounds, strict=True)]
