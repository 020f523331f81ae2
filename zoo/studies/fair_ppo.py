"""The study of fair-PPO.

The experiments of La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv
2502.03953), on our version of its game, with what they lack: several seeds, confidence intervals, penalties that reach
the policy, larger coefficients, and controls. All runs have the same game, steps and settings of PPO, those of the zoo;
all policies play the same fresh episodes.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness import average
from sb3_fair.report.disparities import Setting
from sb3_fair.wrappers import VecStanding
from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.harvest_evaluation import Columns, harvest_figures
from sb3_fair.zoo.plan import OURS, PLAN_KEYS, default_settings
from sb3_fair.zoo.studies.fair_ppo_results import LENGTHS, Curves, compare, draw, has, sheet
from sb3_fair.zoo.studies.grid import Job, Result, run_grid
from sb3_fair.zoo.train import arguments

ENV = "sb3_fair/AllelopathicHarvest-All-v0"
FIRST_SEED = 100
"""Of the runs that count; settings were chosen on smaller ones."""
EVALUATION_SEED = 20_000
EPISODES = 200
LONG_EPISODES, LONG_HORIZON = 50, 3000
QUICK = 10
"""How many times less a quick study does."""
WEIGHTS = (0.25, 0.5, 0.75, 1.0)
"""Of the paper."""
TWINS = "none_vs_all"
BACKEND = {"backend": "auto"}
"""Faster, with the same paths: so it is no setting of the runs."""
LATER = ("tolerance", "standing", "aggregate")
"""Fields of an arm that older runs do not have."""


@dataclass(frozen=True)
class Arm:
    """A way to train: arguments of FairPPO, whether worlds are pairs of twins, and what agents see.

    :param counterfactual: None, or the mode of the twins
    :param standing: whether agents see how far their group is ahead
    """

    alpha: float = 0.0
    beta: float = 0.0
    fairness: str = "dp"
    retro: str = "telescoped"
    counterfactual: str | None = None
    tolerance: float = 0.0
    standing: bool = False
    aggregate: str = "pairs"

    @property
    def name(self) -> str:
        """Of its files; without a penalty, all notions and modes are the same classic PPO."""
        if self.alpha == self.beta == 0:
            return self.classic
        more = {
            self.aggregate: self.aggregate != "pairs",
            f"tolerance-{self.tolerance:g}": self.tolerance > 0,
            "standing": self.standing,
        }
        weights = f"{self.alpha:g}-{self.beta:g}"
        return "/".join((self.fairness, self.retro, "-".join([weights, *(word for word in more if more[word])])))

    @property
    def classic(self) -> str:
        """The name of PPO without a penalty in the same game."""
        return "classic" + "-twins" * (self.counterfactual is not None) + "-standing" * self.standing

    @property
    def fields(self) -> dict[str, Any]:
        """Arguments that make it; of those that came later, the ones that matter, so that older files stay valid.
        Without a penalty, only what agents see and their twins matter: experiments share these runs."""
        arm = self if self.name != self.classic else Arm(counterfactual=self.counterfactual, standing=self.standing)
        return {name: value for name, value in asdict(arm).items() if name not in LATER or value != getattr(Arm, name)}

    @property
    def penalty(self) -> dict[str, Any]:
        """Arguments of FairPPO."""
        return {name: value for name, value in asdict(self).items() if name not in ("counterfactual", "standing")}

    def setting(self, over: str) -> Setting:
        """The weights, and the tolerance if that is what changes: without a penalty, everything is tolerated."""
        if over != "tolerance":
            return self.alpha, self.beta
        return self.alpha, self.beta, math.inf if self.alpha == self.beta == 0 else self.tolerance


@dataclass(frozen=True)
class Experiment:
    """Curves of arms, each with classic PPO at its beginning.

    :param title: of its table
    :param arms: by the name of their curve
    :param disparities: name in figures -> column of the evaluation
    :param over: what changes along a curve: ``"alpha"`` and ``"beta"`` grow, ``"tolerance"`` falls
    :param seeds: at most so many
    :param trend: whether curves are to be judged for how the disparity falls
    """

    title: str
    arms: Mapping[str, Sequence[Arm]]
    disparities: Mapping[str, str]
    over: str = "alpha"
    seeds: int | None = None
    trend: bool = True


DP = {"DP": "dp_norm"}


def _modes(weights: Sequence[float], *modes: str, **arm: Any) -> dict[str, list[Arm]]:
    """A curve over alpha for each mode of the past."""
    return {mode: [Arm(alpha, retro=mode, **arm) for alpha in (0.0, *weights)] for mode in modes}


EXPERIMENTS: dict[str, Experiment] = {
    "alpha": Experiment(
        "Demographic disparity: weight of past returns",
        _modes((*WEIGHTS, 2.0), "telescoped")
        | _modes((0.25, 0.5, 0.7, 0.75, 1.0, 2.0), "own_reweight")
        | _modes((0.5, 1.0, 2.0), "linear"),
        DP,
    ),
    "beta": Experiment(
        "Demographic disparity: weight of expected returns",
        {"state_cost": [Arm(beta=beta) for beta in (0.0, *WEIGHTS)]},
        DP,
        over="beta",
        seeds=3,
    ),
    "grid": Experiment(
        "Demographic disparity: the paper's grid",
        {f"beta {beta:g}": [Arm(alpha, beta) for alpha in (0.0, *WEIGHTS)] for beta in (0.0, *WEIGHTS)},
        DP,
        seeds=1,
        trend=False,
    ),
    "csp": Experiment(
        "Conditional statistical disparity",
        _modes((0.5, 1.0), "telescoped", "own_reweight", fairness="csp"),
        {"CSP G1": "csp_G1_pc_norm", "CSP G2": "csp_G2_pc_norm"},
        seeds=3,
    ),
    "cf": Experiment(
        "Counterfactual unfairness: nobody or everybody slow",
        _modes((0.5, 1.0), "telescoped", "own_reweight", fairness="cf", counterfactual=TWINS),
        {"CF": "cf_norm"},
        seeds=3,
    ),
    "tolerance": Experiment(
        "Demographic disparity: stopping where it is tolerated",
        {
            "telescoped": [
                Arm(),
                *(
                    Arm(2.0, aggregate="group_mean", tolerance=tolerance, standing=True)
                    for tolerance in (0.45, 0.3, 0.2, 0.1)
                ),
            ]
        },
        DP,
        over="tolerance",
        seeds=3,
    ),
    "controls": Experiment(
        "Controls: the loss as printed",
        {"constant": [Arm(), Arm(1.0, retro="constant")]},
        DP,
        seeds=1,
        trend=False,
    ),
}
NAMES = ("chosen", *EXPERIMENTS)
"""The zoo's setting, and all of the above."""
RANDOM = {"random": None, "random-twins": TWINS}
"""Names of random play -> mode of the twins."""


def study(
    experiments: Sequence[str] = NAMES,
    *,
    seeds: int = 5,
    first_seed: int = FIRST_SEED,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/fair-ppo",
) -> dict[str, Any]:
    """Trains all arms of the experiments, evaluates them and random play, prints tables and draws figures.

    Runs that are in ``log_dir`` are taken from there.

    :param experiments: of :data:`NAMES`
    :param seeds: runs per arm; of some experiments fewer
    :param first_seed: of the runs; below 100 to choose settings
    :param quick: at most two seeds, a tenth of the steps and of the episodes
    :param n_jobs: processes; -1: one per core
    :return: what ``study.json`` holds: per experiment, curve by curve, what all seeds together say, and the trends
    """
    settings, chosen = zoo_settings()
    both = {"zoo": [Arm(), chosen]}
    known = {"chosen": Experiment("Demographic disparity: the zoo's setting", both, DP, trend=False), **EXPERIMENTS}
    name = ("quick" if quick else "full") + (f"-{first_seed}" if first_seed != FIRST_SEED else "")
    folder = Path(log_dir) / name
    numbers = range(first_seed, first_seed + (min(seeds, 2) if quick else seeds))
    jobs = {job.name: job for name in experiments for job in _jobs(known[name], numbers, settings, chosen, quick)}
    results = run_grid([*_random(settings, quick), *jobs.values()], folder, n_jobs)
    found, compared = {}, {}
    for name in experiments:
        experiment = known[name]
        compared[name] = curves = _curves(experiment, results, numbers)
        found[name] = compare(curves)
        rules = {rule: results[rule] for rule, twins in RANDOM.items() if twins == _twins(experiment)}
        for length in LENGTHS:
            if has(found[name], length):
                sheet(experiment.title, curves, found[name], rules, length).publish(folder / f"{name}-{length}.md")
    draw(compared, found, folder)
    (folder / "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def zoo_settings() -> tuple[dict[str, Any], Arm]:
    """The zoo's settings without the penalty, and its penalty as an arm."""
    settings = {**OURS, **default_settings(find_algorithm("fair_ppo"), ENV)}
    given = {field.name: settings.pop(field.name) for field in fields(Arm) if field.name in settings}
    game = {name: value for name, value in settings["env_kwargs"].items() if name != "objectives"}
    return {**settings, "env_kwargs": game}, Arm(**given)


def _jobs(
    experiment: Experiment, seeds: Sequence[int], settings: Mapping[str, Any], chosen: Arm, quick: bool
) -> Iterator[Job]:
    share = QUICK if quick else 1
    shared = {
        "settings": {**settings, "n_timesteps": settings["n_timesteps"] // share},
        "episodes": EPISODES // share,
    }
    for arm in (arm for arms in experiment.arms.values() for arm in arms):
        long = LONG_EPISODES // share if arm.name in (Arm().name, chosen.name) else 0
        for seed in seeds[: experiment.seeds]:
            yield Job(f"{arm.name}/{seed}", run, {"arm": arm.fields, "seed": seed, "long_episodes": long, **shared})


def _random(settings: Mapping[str, Any], quick: bool) -> Iterator[Job]:
    share = QUICK if quick else 1
    for name, twins in RANDOM.items():
        given = {"counterfactual": twins, "game": settings["env_kwargs"], "episodes": EPISODES // share}
        yield Job(name, play_randomly, {**given, "long_episodes": LONG_EPISODES // share})


def run(
    arm: Mapping[str, Any], seed: int, settings: Mapping[str, Any], episodes: int, long_episodes: int
) -> dict[str, Any]:
    """Trains one arm and evaluates it on fresh episodes.

    :param arm: fields of an :class:`Arm`
    :param settings: the zoo's, without the penalty
    :param long_episodes: episodes of :data:`LONG_HORIZON` steps; 0: none
    """
    way = Arm(**arm)
    model = learner(way, seed, settings)
    training = TrainingFigures()
    model.learn(settings["n_timesteps"], callback=training)
    evaluated = _evaluated(model, settings["env_kwargs"], way.counterfactual, episodes, long_episodes)
    return {"training": training.figures, **evaluated}


def learner(arm: Arm, seed: int, settings: Mapping[str, Any]) -> Any:
    """The FairPPO of an arm, ready to play all agents of its games.

    :param settings: as :func:`zoo_settings` gives them
    """
    game = settings["env_kwargs"] | BACKEND
    venv: VecEnv = HarvestVecEnv(settings["n_envs"], game, seed=seed, counterfactual=arm.counterfactual)
    if arm.standing:
        venv = VecStanding(venv)
    given = arguments({name: value for name, value in settings.items() if name not in PLAN_KEYS})
    return find_algorithm("fair_ppo").cls(settings["policy"], venv, seed=seed, device="cpu", **given, **arm.penalty)


def play_randomly(
    counterfactual: str | None, game: Mapping[str, Any], episodes: int, long_episodes: int
) -> dict[str, Any]:
    """Evaluates random play."""
    return _evaluated("random", game, counterfactual, episodes, long_episodes)


class TrainingFigures(BaseCallback):
    """What FairPPO logged under ``fair/`` when each rollout was complete."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: dict[str, list[float]] = {"steps": []}

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        logged = self.logger.name_to_value
        known = len(self.figures["steps"])
        self.figures["steps"].append(self.num_timesteps)
        for name in {*self.figures, *(name for name in logged if name.startswith("fair/"))} - {"steps"}:
            values = self.figures.setdefault(name, [float("nan")] * known)
            values.append(float(logged.get(name, float("nan"))))


def _evaluated(
    model: Any, game: Mapping[str, Any], counterfactual: str | None, episodes: int, long_episodes: int
) -> dict[str, Any]:
    """Of episodes as long as in training, and of long ones if there are any: averages of all columns over episodes, and
    sizes of the disparities episode by episode."""
    given = {name: value for name, value in game.items() if name != "horizon"} | BACKEND
    columns = {column for experiment in EXPERIMENTS.values() for column in experiment.disparities.values()}
    found = {}
    for length, horizon, n in zip(LENGTHS, (game["horizon"], LONG_HORIZON), (episodes, long_episodes), strict=True):
        if n:
            rows = harvest_figures(model, n, horizon, EVALUATION_SEED, counterfactual, **given)
            found[length] = {
                "averages": {name: average(rows[name])._asdict() for name in rows if name != "seed"},
                "episodes": {name: _rounded(rows, name) for name in sorted(columns & set(rows))},
            }
    return found


def _rounded(rows: Columns, name: str) -> list[float]:
    return np.round(np.abs(rows[name]), 5).tolist()


def _curves(experiment: Experiment, results: Mapping[str, Result], seeds: Sequence[int]) -> Curves:
    """The runs of an experiment, seed by seed, beside those of classic PPO."""
    some = seeds[: experiment.seeds]
    return Curves(
        over=experiment.over,
        disparities=dict(experiment.disparities),
        trend=experiment.trend,
        runs={
            curve: [(arm.setting(experiment.over), [results[f"{arm.name}/{seed}"] for seed in some]) for arm in arms]
            for curve, arms in experiment.arms.items()
        },
        classic=[results[f"{_first(experiment).classic}/{seed}"] for seed in some],
    )


def _first(experiment: Experiment) -> Arm:
    return next(iter(experiment.arms.values()))[0]


def _twins(experiment: Experiment) -> str | None:
    return _first(experiment).counterfactual
