"""The study of F-PPO.

Figures 1 to 4 of "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning" (arXiv
2401.06318) on our versions of its scenarios. All learners of an experiment get the same environment, number of steps
and settings of PPO, those of F-PPO in the zoo; all agents play the same episodes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from sb3_fair.f_ppo import EqualOpportunityAgent, MaxAgent, MaxProfitAgent, RandomAgent, evaluate_fairness
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.plan import OURS, PLAN_KEYS, default_settings
from sb3_fair.zoo.studies.curves import Curve, figure, mean_and_interval
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.learners import Learner
from sb3_fair.zoo.studies.sheet import Sheet, interval_text
from sb3_fair.zoo.train import arguments

FIRST_SEED = 100
"""Of the runs that count; settings were chosen on smaller ones."""
EVALUATION_SEED = 20_000
POINTS = 200
"""Of every curve over the steps of an episode."""
FIGURES = {"utility": "utility", "short_term": "short-term disparity", "long_term": "long-term disparity"}
ALONE = ", policy alone"
"""After the name of a learner with massaging: evaluated without it."""
F_PPO, CPO, SB3_PPO = "sb3_fair.f_ppo:FPPO", "sb3_fair.f_ppo:PPOLagrangian", "stable_baselines3:PPO"
A_PPO = {"massage": False, "reg_lambda": 0.0}
AGENTS: dict[str, Any] = {
    "EO": EqualOpportunityAgent,
    "max profit": MaxProfitAgent,
    "Max": MaxAgent,
    "Max, degree": lambda: MaxAgent(rule="degree"),
    "Max, degree, then the hub": lambda: MaxAgent(rule="degree", when_exhausted="hub"),
    "random": RandomAgent,
}


@dataclass(frozen=True)
class Experiment:
    """Learners and rules in one scenario.

    :param env: ID
    :param title: of its pictures
    :param learners: by the name they have in figures
    :param agents: names in :data:`AGENTS`, to compare with
    :param episodes: of every evaluation
    :param steps: of every episode of evaluations
    :param after: steps at the beginning of an episode that means over steps leave out
    """

    env: str
    title: str
    learners: Mapping[str, Learner]
    agents: Sequence[str]
    episodes: int
    steps: int
    after: int = 0


def _learners(**more: Learner) -> dict[str, Learner]:
    return {
        "PPO": Learner(SB3_PPO),
        **more,
        "F-PPO-L": Learner(F_PPO, {"massage": False}),
        "F-PPO": Learner(F_PPO),
    }


EXPERIMENTS: dict[str, Experiment] = {
    "lending": Experiment(
        "sb3_fair/Lending-v0",
        "Lending",
        _learners(
            **{"PPO without entropy": Learner(SB3_PPO, {"ent_coef": 0.0})},
            **{"A-PPO": Learner(F_PPO, {**A_PPO, "beta1": 0.25, "beta2": 0.25, "omega": 0.005})},
        ),
        ("EO", "max profit"),
        episodes=200,
        steps=10_000,
        after=500,
    ),
    "attention": Experiment(
        "sb3_fair/AttentionAllocation-v0",
        "Attention allocation",
        _learners(
            **{"A-PPO": Learner(F_PPO, {**A_PPO, "beta1": 0.15, "beta2": 0.15, "omega": 0.05}), "CPO": Learner(CPO)}
        ),
        ("random",),
        episodes=100,
        steps=1000,
    ),
    "epidemic": Experiment(
        "sb3_fair/EpidemicControl-Hub-v0",
        "Epidemic control, the hub infected first",
        _learners(**{"A-PPO": Learner(F_PPO, {**A_PPO, "beta1": 0.1, "beta2": 0.1, "omega": 0.05})}),
        ("Max", "Max, degree", "Max, degree, then the hub", "random"),
        episodes=1000,
        steps=20,
    ),
    "epidemic-random": Experiment(
        "sb3_fair/EpidemicControl-v0",
        "Epidemic control, anybody infected first",
        _learners(**{"A-PPO": Learner(F_PPO, {**A_PPO, "beta1": 0.1, "beta2": 0.1, "omega": 0.05})}),
        ("Max", "Max, degree", "random"),
        episodes=1000,
        steps=20,
    ),
}


def study(
    experiments: Sequence[str] = tuple(EXPERIMENTS),
    *,
    seeds: int = 5,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/f-ppo",
) -> dict[str, Any]:
    """Trains all learners of the experiments, evaluates them and the rules, prints tables and draws figures.

    Runs that are in ``log_dir`` are taken from there.

    :param experiments: keys of :data:`EXPERIMENTS`
    :param seeds: runs per learner
    :param quick: at most two seeds, a fifth of the steps and of the episodes
    :param n_jobs: processes; -1: one per core
    :return: what ``study.json`` holds: per experiment and agent, mean and 95 % interval over seeds (of a rule: over
        episodes)
    """
    numbers = range(FIRST_SEED, FIRST_SEED + (min(seeds, 2) if quick else seeds))
    folder = Path(log_dir) / ("quick" if quick else "full")
    results = run_grid([job for name in experiments for job in _jobs(name, numbers, quick)], folder, n_jobs)
    found = {}
    for name in experiments:
        learned = {
            label: [results[f"{name}/{label}/{seed}"] for seed in numbers] for label in EXPERIMENTS[name].learners
        }
        rules = {label: results[f"{name}/{label}"] for label in EXPERIMENTS[name].agents}
        played = dict(_played(learned))
        found[name] = {
            **{label: _over_seeds(runs) for label, runs in played.items()},
            **{label: rule["summary"] for label, rule in rules.items()},
        }
        _sheet(EXPERIMENTS[name].title, found[name]).publish(folder / f"{name}.md")
        _draw(name, played, rules, learned, folder)
    (folder / "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _jobs(name: str, seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    chosen = EXPERIMENTS[name]
    episodes = chosen.episodes // (5 if quick else 1)
    for label in chosen.agents:
        yield Job(f"{name}/{label}", play, {"experiment": name, "agent": label, "episodes": episodes})
    settings = {**OURS, **default_settings(find_algorithm("f_ppo"), chosen.env)}
    settings["n_timesteps"] //= 5 if quick else 1
    settings["n_eval_episodes"] = 100  # plays no part here: another number in the zoo must not redo runs
    _, _, fairness = _parts(settings)
    for seed in seeds:
        for label, learner in chosen.learners.items():
            # a run of PPO need not be done again because F-PPO was given another weight
            own = {key: value for key, value in settings.items() if learner.path == F_PPO or key not in fairness}
            given = {"experiment": name, "learner": label, "seed": seed, "episodes": episodes, "settings": own}
            yield Job(f"{name}/{label}/{seed}", run, given)


def _parts(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Settings of F-PPO: those of the run, those that PPO has too, and those of fairness."""
    shared = set(signature(PPO.__init__).parameters)
    given = arguments({key: value for key, value in settings.items() if key not in PLAN_KEYS})
    return (
        {key: value for key, value in settings.items() if key in PLAN_KEYS},
        {key: value for key, value in given.items() if key in shared},
        {key: value for key, value in given.items() if key not in shared},
    )


def run(experiment: str, learner: str, seed: int, episodes: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Trains one learner; how unfair its steps were in training, and evaluations with and without massaging.

    :param settings: the zoo's of F-PPO, on which those of the learner come
    """
    chosen = EXPERIMENTS[experiment]
    way = chosen.learners[learner]
    ours, shared, fairness = _parts(settings)
    model = way.build(
        make_vec(chosen.env, n_envs=ours["n_envs"], seed=seed, **ours["env_kwargs"]),
        seed,
        {"policy": ours["policy"], "device": "cpu", **shared, **(fairness if way.path == F_PPO else {})},
    )
    training = TrainingDisparity()
    model.learn(ours["n_timesteps"], callback=training)
    filters = (False, True) if getattr(model, "massage", False) else (False,)
    return {
        "training": {"steps": training.steps, "short_term": training.short_term},
        "evaluations": [_evaluated(model, chosen, episodes, massage=massage or None) for massage in filters],
    }


def play(experiment: str, agent: str, episodes: int) -> dict[str, Any]:
    """Evaluates a rule."""
    return _evaluated(AGENTS[agent](), EXPERIMENTS[experiment], episodes, massage=None)


class TrainingDisparity(BaseCallback):
    """Mean short-term disparity of the steps of every rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []
        self.short_term: list[float] = []
        self._rollout: list[float] = []

    def _on_step(self) -> bool:
        self._rollout.append(float(np.mean(stack(self.locals["infos"], "fairness")["d_s"])))
        return True

    def _on_rollout_end(self) -> None:
        self.steps.append(self.num_timesteps)
        self.short_term.append(float(np.mean(self._rollout)))
        self._rollout = []


def _evaluated(agent: Any, chosen: Experiment, episodes: int, massage: bool | None) -> dict[str, Any]:
    """Per figure: final value, mean after the beginning and share of fair steps; and its curve."""
    found = evaluate_fairness(agent, chosen.env, episodes, chosen.steps, EVALUATION_SEED, massage=massage)
    steps = np.unique(np.linspace(0, chosen.steps - 1, POINTS).round().astype(int))
    return {
        "summary": {
            name: {statistic: [float(number) for number in interval] for statistic, interval in statistics.items()}
            for name, statistics in found.summary(after=chosen.after).items()
        },
        "steps": (steps + 1).tolist(),
        "curves": {name: found.curve(name).mean[steps].tolist() for name in FIGURES},
    }


def _played(learned: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The evaluations of every learner; those with massaging have its name, those without say so."""
    for label, runs in learned.items():
        for number, massaged in enumerate([False, True][: len(runs[0]["evaluations"])]):
            alone = len(runs[0]["evaluations"]) > 1 and not massaged
            yield label + ALONE * alone, [run["evaluations"][number] for run in runs]


def _over_seeds(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    return {
        name: {
            statistic: mean_and_interval([one["summary"][name][statistic][0] for one in evaluations])
            for statistic in statistics
        }
        for name, statistics in evaluations[0]["summary"].items()
    }


def _sheet(title: str, found: Mapping[str, Any]) -> Sheet:
    columns = {
        "utility, last step": ("utility", "final"),
        "utility, mean": ("utility", "mean"),
        "short-term disparity": ("short_term", "mean"),
        "steps below 0.1": ("short_term", "share_fair"),
        "long-term disparity, last step": ("long_term", "final"),
    }
    rows = [
        [label, *(interval_text(figures[name][statistic]) for name, statistic in columns.values())]
        for label, figures in found.items()
    ]
    return Sheet(title, ["", *columns], rows)


def _draw(
    name: str,
    played: Mapping[str, Sequence[dict[str, Any]]],
    rules: Mapping[str, dict[str, Any]],
    learned: Mapping[str, Sequence[dict[str, Any]]],
    folder: Path,
) -> None:
    everybody = {**played, **{label: [rule] for label, rule in rules.items()}}
    panels: list[Any] = []
    for key, words in FIGURES.items():
        curves: dict[str, Curve] = {
            label: (np.array(each[0]["steps"], dtype=float), np.array([one["curves"][key] for one in each]))
            for label, each in everybody.items()
        }
        panels.append((words, curves, {}, words, None))
    figure(folder / f"{name}.png", panels)
    training: dict[str, Curve] = {
        label: (
            np.array(runs[0]["training"]["steps"], dtype=float),
            np.array([run["training"]["short_term"] for run in runs]),
        )
        for label, runs in learned.items()
        if label.startswith("F-PPO")
    }
    if training:
        figure(folder / f"{name}-training.png", [(EXPERIMENTS[name].title, training, {}, "d_s in training", None)])
