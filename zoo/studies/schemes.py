"""The study of fairness schemes on vaccine delivery."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.fairness import NewMultiple, Scheme, Welfare, count_status
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.vaccines.exact import solved
from sb3_fair.zoo.envs.vaccines.world import VaccinesConfig
from sb3_fair.zoo.registry.layers import copies
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.settings import DEFAULT
from sb3_fair.zoo.studies.curves import COLOURS
from sb3_fair.zoo.studies.grid import Job, by_label
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, over

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
SETTINGS = {"gamma": 1.0, "learning_rate": "lin_0.3_0.02"}
N_TIMESTEPS, COPIES, EPISODES, SEED, SHOWN = 200_000, 64, 200, 20_000, 3


def jobs(seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    """A training per scheme and seed."""
    for seed in seeds:
        for name, scheme in SCHEMES.items():
            plan = make_plan(
                "tabular_fair_qcm",
                ENV,
                seed=seed,
                preset=DEFAULT,
                n_timesteps=N_TIMESTEPS // (5 if quick else 1),
                n_envs=COPIES,
                env_kwargs={"scheme": scheme},
                hyperparams=SETTINGS,
            )
            yield Job(f"schemes/{name}/{seed}", judge, plan=plan)


def tell(results: Results, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Prints what was learned under every scheme, scored under all of them, and draws routes.

    :return: per scheme learned and scheme of the score, mean and 95 % interval over seeds
    """
    runs = by_label(results, "schemes", SCHEMES, seeds)
    found = {name: over([run["scores"] for run in each]) for name, each in runs.items()}
    best = {name: solved(VaccinesConfig(), scheme).value for name, scheme in SCHEMES.items()}
    title, columns = "Learned for (rows), scored by (columns)", {name: name for name in SCHEMES}
    sheet(title, columns, found, {"optimum": best}, digits=2).publish(folder / "schemes.md")
    draw(folder / "schemes.png", {name: each[0] for name, each in runs.items()})
    return found


def judge(plan: Plan, model: Any) -> dict[str, Any]:
    """How the greedy policy scores under all schemes, and the first routes it takes."""
    venv = model.follow(copies(plan, EPISODES, seed=SEED))
    observations, steps = venv.reset(), []
    for _ in range(venv.get_attr("max_steps")[0]):
        chosen, _ = model.predict(observations, deterministic=True)
        observations, _, _, infos = venv.step(chosen)
        event = stack(infos, "fair_event")
        steps.append((chosen, event.granted, event.base))
    actions, arrived, costs = (np.stack(column, axis=1) for column in zip(*steps, strict=True))
    status = count_status(actions, arrived, stakeholders=(0, 1))
    return {
        "scores": {name: float((each.score(status) + costs.sum(axis=1)).mean()) for name, each in SCHEMES.items()},
        "routes": actions[:SHOWN],
        "arrived": arrived[:SHOWN],
    }


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
