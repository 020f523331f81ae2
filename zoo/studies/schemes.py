"""The study of fairness schemes on vaccine delivery."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.utils import LinearSchedule

from sb3_fair.fair_qcm import TabularFairQCM
from sb3_fair.fairness import NewMultiple, Scheme, Welfare, count_status
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.envs.vaccines import VaccinesConfig
from sb3_fair.zoo.envs.vaccines_exact import solved
from sb3_fair.zoo.studies.curves import COLOURS, mean_and_interval
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.sheet import Sheet, interval_text, number_text

ENV = "sb3_fair/VaccineDelivery-v0"
PARITY = Welfare("relaxed_parity")
SCHEMES = {
    "anytime": Scheme(welfare=PARITY),
    "periodic": Scheme(welfare=PARITY, when=("period", 6)),
    "bounded": Scheme(welfare=PARITY, when=NewMultiple(6)),
    "long-term": Scheme(welfare=PARITY, temporal="last"),
}
MEANING = {
    "anytime": "after every shipment",
    "periodic": "after every sixth step",
    "bounded": "after every sixth shipment that arrived",
    "long-term": "at the end",
}
SETTINGS: dict[str, Any] = {"gamma": 1.0, "learning_rate": LinearSchedule(0.3, 0.02, 1)}
N_TIMESTEPS, COPIES, EPISODES, SEED, SHOWN = 200_000, 64, 200, 20_000, 3


def study(seeds: range, *, quick: bool, n_jobs: int, folder: Path) -> dict[str, Any]:
    """Trains under every scheme, scores what it does under all of them, prints a table and draws routes.

    :return: per scheme learned and scheme of the score, mean and 95 % interval over seeds
    """
    n_timesteps = N_TIMESTEPS // (5 if quick else 1)
    jobs = [
        Job(f"schemes/{name}/{seed}", run, {"scheme": name, "seed": seed, "n_timesteps": n_timesteps})
        for seed in seeds
        for name in SCHEMES
    ]
    results = run_grid(jobs, folder, n_jobs)
    runs = {name: [results[job.name] for job in jobs if job.arguments["scheme"] == name] for name in SCHEMES}
    found = {
        name: {scored: mean_and_interval([run["scores"][scored] for run in each]) for scored in SCHEMES}
        for name, each in runs.items()
    }
    _sheet(found).publish(folder / "schemes.md")
    draw(folder / "schemes.png", {name: each[0] for name, each in runs.items()})
    return found


def run(scheme: str, seed: int, n_timesteps: int) -> dict[str, Any]:
    """Trains under one scheme; how the greedy policy scores under all, and the first routes it takes."""
    venv = make_vec(ENV, n_envs=COPIES, seed=seed, scheme=SCHEMES[scheme])
    model = TabularFairQCM(venv, seed=seed, **SETTINGS).learn(n_timesteps)
    actions, arrived, costs = _played(model, scheme)
    status = count_status(actions, arrived, stakeholders=(0, 1))
    return {
        "scores": {name: float((each.score(status) + costs.sum(axis=1)).mean()) for name, each in SCHEMES.items()},
        "routes": actions[:SHOWN],
        "arrived": arrived[:SHOWN],
    }


def _played(model: Any, scheme: str) -> tuple[Any, Any, Any]:
    """Actions, whether shipments arrived, and costs (negative), each (episodes, T)."""
    venv = model.follow(make_vec(ENV, n_envs=EPISODES, seed=SEED, scheme=SCHEMES[scheme]))
    observations, steps = venv.reset(), []
    for _ in range(venv.get_attr("max_steps")[0]):
        actions, _ = model.predict(observations, deterministic=True)
        observations, _, _, infos = venv.step(actions)
        event = stack(infos, "fair_event")
        steps.append((actions, event.granted, event.base))
    chosen, arrived, costs = (np.stack(column, axis=1) for column in zip(*steps, strict=True))
    return chosen, arrived, costs


def _sheet(found: Mapping[str, Mapping[str, Sequence[float]]]) -> Sheet:
    rows = [[name, *(interval_text(score, 2) for score in scores.values())] for name, scores in found.items()]
    config = VaccinesConfig()
    best = ["optimum", *(number_text(solved(config, scheme).value, 2) for scheme in SCHEMES.values())]
    return Sheet("Learned for (rows), scored by (columns)", ["", *SCHEMES], rows, [best])


def draw(path: Path, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Which country each shipment went to in the same three episodes; pale: it was lost on the way."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    picture = Figure(figsize=(9, 4.6), dpi=110, layout="constrained")
    for axes, (name, run) in zip(picture.subplots(len(runs), 1, sharex=True), runs.items(), strict=True):
        routes, arrived = np.array(run["routes"]), np.array(run["arrived"], dtype=bool)
        for row, (countries, there) in enumerate(zip(routes, arrived, strict=True)):
            for step, (country, came) in enumerate(zip(countries, there, strict=True)):
                axes.barh(-row, 0.94, left=step, height=0.8, color=COLOURS[country], alpha=1.0 if came else 0.3)
        axes.set_yticks([])
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        axes.spines[:].set_visible(False)
        axes.set_title(f"fairness assessed {MEANING[name]}", fontsize="small", loc="left")
    axes.set_xlabel("shipment")
    legend = [Patch(color=COLOURS[country], label=f"country {'AB'[country]}") for country in (0, 1)]
    picture.legend(handles=legend, loc="outside upper right", ncols=2, fontsize="small", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
