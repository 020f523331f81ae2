"""The study of fair-PPO.

The experiments of La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv
2502.03953), on our version of its game, with what they lack: several seeds, confidence intervals, penalties that reach
the policy, larger coefficients, and controls. All runs have the same game and steps, and those of a curve the same
settings of PPO; all policies play the same fresh episodes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.fairness import average
from sb3_fair.report.disparities import Setting
from sb3_fair.zoo.evaluation.harvest_evaluation import harvest_figures
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.studies.fair_ppo_results import LENGTHS, WEIGHTS, Runs, compare, draw, table
from sb3_fair.zoo.studies.grid import Job, Result
from sb3_fair.zoo.studies.study import Results, Study, read

PRESET = "study"
"""The zoo's settings of PPO with which penalties are compared."""
ENV, TWINS_ENV = "sb3_fair/AllelopathicHarvest-All-v0", "sb3_fair/AllelopathicHarvest-AllTwins-v0"
TWINS = "none_vs_all"
EVALUATION_SEED = 20_000
EPISODES = 200
LONG_EPISODES, LONG_HORIZON = 50, 3000
SCALE = 10
"""How many times more a training at the paper's scale does."""
QUICK = 10
"""How many times less a quick study does."""
GAME = ("twins", "standing", "scale", "tuned")
"""What an arm has in common with the classic PPO that it is compared with."""


@dataclass(frozen=True)
class Arm:
    """A way to train: arguments of FairPPO, whether worlds are pairs of twins, and what agents see.

    :param twins: whether worlds are pairs of twins, in one of which nobody is slow, and in the other everybody
    :param standing: whether agents see how far their group is ahead
    :param scale: whether episodes are as long as in the paper, and trainings ten times as long
    :param tuned: whether PPO has the tuned settings of the zoo
    """

    alpha: float = 0.0
    beta: float = 0.0
    fairness: str = "dp"
    retro: str = "telescoped"
    tolerance: float = 0.0
    aggregate: str = "pairs"
    twins: bool = False
    standing: bool = False
    scale: bool = False
    tuned: bool = False

    @property
    def name(self) -> str:
        """Of its files; without a penalty, all notions and modes are the same classic PPO."""
        if self.alpha == self.beta == 0:
            return self.classic
        more = {
            self.aggregate: self.aggregate != "pairs",
            f"tolerance-{self.tolerance:g}": self.tolerance > 0,
            **{word: getattr(self, word) for word in GAME if word != "twins"},  # of which the notion tells
        }
        weights = f"{self.alpha:g}-{self.beta:g}"
        return "/".join((self.fairness, self.retro, "-".join([weights, *(word for word in more if more[word])])))

    @property
    def classic(self) -> str:
        """The name of PPO without a penalty in the same game."""
        return "-".join(["classic", *(name for name in GAME if getattr(self, name))])

    def setting(self, over: str) -> Setting:
        """The weights, and the tolerance if that is what changes: without a penalty, everything is tolerated."""
        if over != "tolerance":
            return self.alpha, self.beta
        return self.alpha, self.beta, math.inf if self.alpha == self.beta == 0 else self.tolerance

    def plan(self, seed: int, quick: bool = False) -> Plan:
        """The zoo's training with the penalty of the arm."""
        game = {name: getattr(self, name) for name in GAME}
        arm = self if self.name != self.classic else Arm(**game)
        penalty = {name: value for name, value in asdict(arm).items() if name not in game}
        standing = {"vec_env_wrapper": "sb3_fair.wrappers.VecStanding"} if self.standing else {}
        env, preset = TWINS_ENV if self.twins else ENV, None if self.tuned else PRESET
        plan = make_plan("fair_ppo", env, seed=seed, preset=preset, hyperparams={**penalty, **standing})
        longer = {"horizon": LONG_HORIZON} if self.scale else {}
        steps = plan.n_timesteps * (SCALE if self.scale else 1) // (QUICK if quick else 1)
        return replace(plan, n_timesteps=steps, env_kwargs={**plan.env_kwargs, **longer})


def _experiment(curves: Mapping[str, Mapping[str, Any]], **entry: Any) -> dict[str, Any]:
    """An entry of the YAML file with the arms of every curve, and what changes along them: ``"alpha"`` and ``"beta"``
    grow, ``"tolerance"`` falls."""
    (over,) = {name for curve in curves.values() for name in WEIGHTS if isinstance(curve.get(name), list)}
    arms = {
        label: [Arm() if value == math.inf else Arm(**{**curve, over: value}) for value in curve[over]]
        for label, curve in curves.items()
    }
    return {"trend": True, "seeds": None, **entry, "over": over, "arms": arms}


def zoo_arm() -> Arm:
    """The tuned settings of the zoo."""
    given = make_plan("fair_ppo", ENV).hyperparams
    return Arm(**{field.name: given[field.name] for field in fields(Arm) if field.name in given}, tuned=True)


EXPERIMENTS = {name: _experiment(**entry) for name, entry in read("fair_ppo").items()}
EXPERIMENTS["chosen"]["arms"] |= {"tuned": [Arm(tuned=True), zoo_arm()]}
RANDOM = {"random": False, "random-twins": True}
"""Names of random play -> whether worlds are pairs of twins."""


def _jobs(name: str, seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    experiment, share = EXPERIMENTS[name], QUICK if quick else 1
    chosen = {arm.name for arms in EXPERIMENTS["chosen"]["arms"].values() for arm in arms}
    given = {"episodes": EPISODES // share, "long_episodes": LONG_EPISODES // share}
    for rule, twins in RANDOM.items():
        yield Job(rule, play, {"model": "random", "game": Arm().plan(0).env_kwargs, "twins": twins, **given})
    for arm in (arm for arms in experiment["arms"].values() for arm in arms):
        episodes = {
            "episodes": given["long_episodes" if arm.scale else "episodes"],
            "long_episodes": given["long_episodes"] if arm.name in chosen else 0,
        }
        for seed in seeds[: experiment["seeds"]]:
            told = {"twins": arm.twins, **episodes}
            yield Job(f"{arm.name}/{seed}", evaluate, told, arm.plan(seed, quick))


def evaluate(plan: Plan, model: Any, **given: Any) -> Result:
    """Evaluates an arm on fresh episodes."""
    return play(model, plan.env_kwargs, **given)


def play(model: Any, game: Mapping[str, Any], twins: bool, episodes: int, long_episodes: int) -> Result:
    """Of episodes as long as in training, and of long ones if there are any: averages of all columns over episodes, and
    sizes of the disparities episode by episode."""
    given = {name: value for name, value in game.items() if name not in ("objectives", "horizon")}
    columns = {column for experiment in EXPERIMENTS.values() for column in experiment["disparities"].values()}
    found = {}
    for length, horizon, n in zip(LENGTHS, (game["horizon"], LONG_HORIZON), (episodes, long_episodes), strict=True):
        if n:
            rows = harvest_figures(model, n, horizon, EVALUATION_SEED, TWINS if twins else None, **given)
            found[length] = {
                "averages": {name: average(rows[name])._asdict() for name in rows if name != "seed"},
                "episodes": {name: np.round(np.abs(rows[name]), 5) for name in sorted(columns & set(rows))},
            }
    return found


def _runs(name: str, results: Results, seeds: Sequence[int]) -> Runs:
    experiment = EXPERIMENTS[name]
    return {
        curve: [
            (arm.setting(experiment["over"]), [results[f"{arm.name}/{seed}"] for seed in seeds[: experiment["seeds"]]])
            for arm in arms
        ]
        for curve, arms in experiment["arms"].items()
    }


def _tell(name: str, results: Results, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    experiment = EXPERIMENTS[name]
    found = compare(experiment, _runs(name, results, seeds))
    first = next(iter(experiment["arms"].values()))[0]
    rules = {rule: results[rule] for rule, twins in RANDOM.items() if twins == first.twins}
    if first.scale:
        rules = {rule: {"short": result["long"]} for rule, result in rules.items()}
    for length in LENGTHS:
        if all(length in each for figures in found.values() for each in figures["settings"].values()):
            table(experiment, found, rules, length).publish(folder / f"{name}-{length}.md")
    return found


def _finish(found: Mapping[str, Any], results: Results, seeds: Sequence[int], folder: Path) -> None:
    draw(EXPERIMENTS, {name: _runs(name, results, seeds) for name in found}, found, folder)


study = Study(tuple(EXPERIMENTS), _jobs, _tell, finish=_finish)
"""A quick one takes a tenth of the steps and of the episodes."""
