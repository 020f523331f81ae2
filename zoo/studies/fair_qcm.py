"""The study of FairQCM.

All learners of an experiment get the same batch, the same real history and the same number of updates; what differs
is what they remember and whether they learn from memories that might have been.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule

from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.envs import doughnut_exact, loans_exact
from sb3_fair.zoo.rules import RuleAgent
from sb3_fair.zoo.studies import schemes
from sb3_fair.zoo.studies.curves import Curve, figure, mean_and_interval
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.learners import Learner
from sb3_fair.zoo.studies.sheet import Sheet, interval_text, number_text

FIRST_SEED = 100
"""Of the runs that count; settings were chosen on smaller ones."""
EPISODES, FINAL_EPISODES, RULE_EPISODES = 100, 200, 2000
EVALUATION_SEED, FINAL_SEED = 10_000, 20_000
COPIES = 100


@dataclass(frozen=True)
class Experiment:
    """Learners on one environment.

    :param env: ID
    :param title: of the panel
    :param n_timesteps: real steps
    :param learners: by the name they have in figures
    :param settings: arguments that all of them share
    :param n_envs: copies of the environment
    :param rules: of the environment, to compare with
    :param optimum: value of the best policy there is
    :param low: where the axis of returns begins
    :param points: how often learners are evaluated
    :param exact: f(model) -> exact value of its greedy policy, instead of playing
    """

    env: str
    title: str
    n_timesteps: int
    learners: Mapping[str, Learner]
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_envs: int = 8
    rules: Sequence[str] = ("oracle",)
    optimum: Callable[[], float] | None = None
    low: float | None = None
    points: int = 20
    exact: Callable[[Any], float | None] | None = None


FAIR_QCM, RECURRENT, TABULAR = (f"sb3_fair.fair_qcm:{name}" for name in ("FairQCM", "RecurrentDQN", "TabularFairQCM"))
PPO_SETTINGS = {
    "policy": "MlpLstmPolicy",
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "gamma": 0.95,
    "policy_kwargs": {"lstm_hidden_size": 64},
}


def _memories(**names: str) -> dict[str, Learner]:
    """Plain DQN with other memories."""
    return {label: Learner(FAIR_QCM, {"memory": name, "n_counterfactual": 0}) for label, name in names.items()}


GRU = Learner(
    RECURRENT,
    {"policy": "MlpPolicy", "sequence_length": 20, "burn_in": 20, "policy_kwargs": {"hidden_size": 64}},
)


def _loans(env: str, title: str, optimum: Callable[[], float] | None, **more: Learner) -> Experiment:
    return Experiment(
        env,
        title,
        60_000,
        {
            "FairQCM": Learner(FAIR_QCM),
            "Difference": Learner(FAIR_QCM, {"n_counterfactual": 0}),
            **_memories(Full="full"),
            **more,
        },
        {
            "reward_scale": 0.025,
            "learning_rate": LinearSchedule(1e-3, 0, 1),
            "train_freq": 1,
            "gradient_steps": 4,
            "policy_kwargs": {"net_arch": [128, 128]},
        },
        optimum=optimum,
        low=-200,
    )


def _tabular(window: Any = None, n_counterfactual: Any = 32, memory: str = "full") -> Learner:
    settings = {"memory": memory, "n_counterfactual": n_counterfactual}
    return Learner(TABULAR, settings if window is None else {**settings, "window": window})


def _exact_on_small_doughnuts(model: Any) -> float | None:
    """Of a greedy table over who is present and all counts."""
    if model.memory.name != "full":
        return None

    def act(present: Any, counts: Any, time: int) -> Any:
        observation = {"state": present.astype(np.float32), "memory": counts.astype(np.float32)}
        return np.asarray(model.predict(observation, deterministic=True)[0])

    return doughnut_exact.policy_value(act, n_people=3, episode_length=12)


EXPERIMENTS: dict[str, Experiment] = {
    "doughnut": Experiment(
        "sb3_fair/Doughnut-v0",
        "Doughnuts: five people, 100 steps",
        25_000,
        {
            "FairQCM": Learner(FAIR_QCM),
            **_memories(Full="full", Min="min", Reset="reset"),
            "GRU": replace(GRU, settings={**GRU.settings, "reward_scale": 0.02}),
            "RecurrentPPO": Learner("sb3_contrib:RecurrentPPO", PPO_SETTINGS, normalise=True),
        },
        {"train_freq": 1, "gradient_steps": 1},
        rules=("oracle", "random-present"),
        optimum=lambda: doughnut_exact.optimum(),
        low=950,
    ),
    "loans": _loans(
        "sb3_fair/LoanAllocation-Code-v0",
        "Loans, scores .6 and .9",
        lambda: loans_exact.optimum(start_levels=(4, 4, 7, 7)),
        GRU=GRU,
    ),
    "gaussian": _loans("sb3_fair/LoanAllocation-Gaussian-v0", "Loans, scores that move by normal steps", None),
    "tabular": Experiment(
        "sb3_fair/Doughnut-Small-v0",
        "Doughnuts in a table: three people, 12 steps",
        100_000,
        {
            "FairQCM": _tabular(),
            "FairQCM, the paper's window": _tabular("paper", "all"),
            "Full": _tabular(n_counterfactual=0),
            "Min": _tabular(n_counterfactual=0, memory="min"),
            "Reset": _tabular(n_counterfactual=0, memory="reset"),
        },
        n_envs=8,
        rules=("oracle", "random-present"),
        optimum=lambda: doughnut_exact.optimum(n_people=3, episode_length=12),
        low=20,
        exact=_exact_on_small_doughnuts,
    ),
    "visits": Experiment(
        "sb3_fair/HomeVisits-v0",
        "Home visits: fairness assessed once a day",
        40_000,
        {
            "FairQCM": Learner(FAIR_QCM, {"window": 1}),
            **_memories(Full="rounds(14)", Min="min+counter(14)", Reset="reset+counter(14)"),
            "GRU": GRU,
        },
        {"gamma": 0.99},
        rules=("oracle", "random-present"),
        low=-0.1,
    ),
}

NAMES = (*EXPERIMENTS, "schemes")


def study(
    experiments: Sequence[str] = NAMES,
    *,
    seeds: int = 10,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/fair-qcm",
) -> dict[str, Any]:
    """Trains all learners of the experiments, evaluates them, prints tables and draws figures.

    Runs that are in ``log_dir`` are taken from there.

    :param experiments: of :data:`NAMES`
    :param seeds: runs per learner
    :param quick: at most two seeds and a fifth of the steps
    :param n_jobs: processes; -1: one per core
    :return: what ``study.json`` holds: per experiment and learner, mean and 95 % interval over seeds
    """
    numbers = range(FIRST_SEED, FIRST_SEED + (min(seeds, 2) if quick else seeds))
    folder = Path(log_dir) / ("quick" if quick else "full")
    jobs = [job for seed in numbers for name in experiments if name in EXPERIMENTS for job in _jobs(name, seed, quick)]
    results = run_grid(jobs, folder, n_jobs)
    found: dict[str, Any] = {}
    for name in experiments:
        if name == "schemes":
            found[name] = schemes.study(numbers, quick=quick, n_jobs=n_jobs, folder=folder)
            continue
        chosen = EXPERIMENTS[name]
        runs = {label: [results[f"{name}/{label}/{seed}"] for seed in numbers] for label in chosen.learners}
        found[name] = {
            label: {key: mean_and_interval([run["final"][key] for run in each]) for key in each[0]["final"]}
            for label, each in runs.items()
        }
        rules = rule_figures(name)
        _sheet(chosen.title, found[name], rules).publish(folder / f"{name}.md")
        _draw(name, runs, rules, folder)
    (folder / "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _jobs(name: str, seed: int, quick: bool) -> Iterator[Job]:
    steps = EXPERIMENTS[name].n_timesteps // (5 if quick else 1)
    for label in EXPERIMENTS[name].learners:
        arguments = {"experiment": name, "learner": label, "seed": seed, "n_timesteps": steps}
        yield Job(f"{name}/{label}/{seed}", run, arguments)


def run(experiment: str, learner: str, seed: int, n_timesteps: int) -> dict[str, Any]:
    """Trains one learner and evaluates it on the way and on fresh episodes in the end."""
    chosen = EXPERIMENTS[experiment]
    model = _model(chosen, chosen.learners[learner], seed)
    curve = Curves(chosen, n_timesteps)
    model.learn(n_timesteps, callback=curve)
    policy = _evaluated(model, chosen.env, FINAL_EPISODES, FINAL_SEED)
    final = {"return": float(policy.mean[0]), **_means(policy)}
    exact = chosen.exact(model) if chosen.exact else None
    if exact is not None:
        final["return"] = exact
    return {"steps": curve.steps, "returns": curve.returns, "final": final}


def _model(experiment: Experiment, learner: Learner, seed: int) -> Any:
    shared: dict[str, Any] = dict(experiment.settings) if learner.path.startswith("sb3_fair") else {}
    if learner.path != TABULAR:
        shared = {"policy": "MultiInputPolicy", "device": "cpu", **shared}
    return learner.build(make_vec(experiment.env, n_envs=experiment.n_envs, seed=seed), seed, shared)


class Curves(BaseCallback):
    """Evaluates the greedy policy of a learner at evenly spaced steps."""

    def __init__(self, experiment: Experiment, n_timesteps: int) -> None:
        super().__init__()
        self.experiment = experiment
        self.due = np.linspace(0, n_timesteps, experiment.points + 1)[1:].tolist()
        self.steps: list[int] = []
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        if self.due and self.num_timesteps >= self.due[0]:
            while self.due and self.num_timesteps >= self.due[0]:
                self.due.pop(0)
            exact = self.experiment.exact(self.model) if self.experiment.exact else None
            if exact is None:
                exact = float(_evaluated(self.model, self.experiment.env, EPISODES, EVALUATION_SEED).mean[0])
            self.steps.append(self.num_timesteps)
            self.returns.append(exact)
        return True


def _evaluated(model: Any, env: str, episodes: int, seed: int) -> EvaluatedPolicy:
    venv: Any = make_vec(env, n_envs=COPIES, monitor=False, objectives=("R",))
    if hasattr(model, "follow"):
        venv = model.follow(venv)
    return evaluate_vector(model, venv, episodes, seed=seed)


def rule_figures(experiment: str) -> dict[str, dict[str, float]]:
    """What the rules of an experiment's environment reach, and the best there is."""
    chosen = EXPERIMENTS[experiment]
    figures: dict[str, dict[str, float]] = {}
    if chosen.optimum is not None:
        figures["optimum"] = {"return": chosen.optimum()}
    for rule in chosen.rules:
        venv = make_vec(chosen.env, n_envs=COPIES, monitor=False, objectives=("R",))
        policy = evaluate_vector(RuleAgent(rule, venv, FINAL_SEED), venv, RULE_EPISODES, seed=FINAL_SEED)
        figures[rule.replace("-", " ")] = {"return": float(policy.mean[0]), **_means(policy)}
    return figures


def _means(policy: EvaluatedPolicy) -> dict[str, float]:
    return {key: float(np.nanmean(values)) for key, values in policy.final.items()}


def _sheet(title: str, learners: dict[str, dict[str, list[float]]], rules: dict[str, dict[str, float]]) -> Sheet:
    names = list(next(iter(learners.values())))
    rows = [[label, *(interval_text(figure, 2) for figure in figures.values())] for label, figures in learners.items()]
    dim = [
        [rule, *(number_text(values[name], 2) if name in values else "" for name in names)]
        for rule, values in rules.items()
    ]
    return Sheet(title, ["", *names], rows, dim)


def _draw(name: str, runs: dict[str, list[dict[str, Any]]], rules: dict[str, dict[str, float]], folder: Path) -> None:
    chosen = EXPERIMENTS[name]
    curves: dict[str, Curve] = {
        label: (np.array(each[0]["steps"], dtype=float), np.array([run["returns"] for run in each]))
        for label, each in runs.items()
    }
    lines = {rule: figures["return"] for rule, figures in rules.items()}
    figure(folder / f"{name}.png", [(chosen.title, curves, lines, "return of the greedy policy", chosen.low)])
