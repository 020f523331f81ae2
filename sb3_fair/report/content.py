"""Contents of a report: tables and figures as plain data."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.report.selection import AXES, axis_order, base, colours, representative_set
from sb3_fair.report.words import long_name, meaning

Array = NDArray[np.float64]
HYPERVOLUMES = {"eval/hypervolume": "evaluated policies", "pcn/hypervolume": "training episodes"}
CONTEXT = ("asked", "training episodes")
"""Curves that are there to compare the other one with."""
Curves = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Measure:
    """One column of the table: a figure that every policy has.

    :param name: objective or notion
    :param optimised: whether the policies were trained for it
    :param final: True: the fairness figure after an episode's last step; False: the return of the episode
    """

    name: str
    optimised: bool
    final: bool

    def samples(self, policy: EvaluatedPolicy) -> Array:
        """The figure in each evaluation episode that has it, (m,)."""
        if self.final:
            values = np.asarray(policy.final.get(self.name, ()), dtype=np.float64)
        elif self.name in policy.objectives:
            values = policy.returns[:, policy.objectives.index(self.name)]
        else:
            values = np.empty(0)
        return values[~np.isnan(values)]

    def mean(self, policy: EvaluatedPolicy) -> float:
        """Mean over the episodes that have the figure, NaN if none has."""
        return float(mean_and_interval(self.samples(policy)).mean)

    def half_width(self, policy: EvaluatedPolicy) -> float:
        """Half the width of the 95 % confidence interval of the mean, NaN with fewer than two episodes."""
        mean, low, _ = mean_and_interval(self.samples(policy))
        return float(mean - low)


def measures(front: Front) -> list[Measure]:
    """The optimised objectives, then every fairness figure after the last step that does not repeat one of them."""
    returns = [Measure(name, optimised=True, final=False) for name in axis_order(front.objectives)]
    names = dict.fromkeys(name for policy in front for name in policy.final)
    finals = [Measure(name, optimised=name in front.objectives, final=True) for name in axis_order(list(names))]
    return returns + [final for final in finals if not (final.optimised and _repeats(front, final))]


def axes(front: Front) -> list[Measure]:
    """The measures that get an axis in radar and parallel coordinates: one for each name that some policy has."""
    found: dict[str, Measure] = {}
    for measure in measures(front):
        if any(len(measure.samples(policy)) for policy in front):
            found.setdefault(measure.name, measure)
    return [found[name] for name in axis_order(list(found))]


def best_performance(front: Front, baselines: Sequence[EvaluatedPolicy] = ()) -> float:
    """Largest mean performance of a policy or rule: the 0 of the radar's R axis. NaN without an objective R."""
    performance = Measure("R", optimised=True, final=False)
    known = (mean for mean in map(performance.mean, (*front, *baselines)) if not np.isnan(mean))
    return max(known, default=float("nan"))


def content(
    front: Front,
    *,
    baselines: Sequence[EvaluatedPolicy] = (),
    curves: Curves | None = None,
    made: Mapping[str, Any] | None = None,
    title: str | None = None,
    run: RunFolder | None = None,
) -> dict[str, Any]:
    """Everything the page shows, as numbers, strings, lists and dicts; what is undefined is None."""
    shown = measures(front)
    objectives = axis_order(front.objectives)
    best = best_performance(front, baselines)
    chosen = representative_set(front.means) if len(front) else []
    palette = dict(zip(chosen, colours(front.means[chosen], front.objectives), strict=True)) if chosen else {}
    policies = [
        {
            "id": index,
            "colour": f"rgb({', '.join(map(str, palette[index]))})" if index in palette else None,
            "command": _command(policy),
            "use": _use(policy, index, run),
            **_figures(policy, shown),
        }
        for index, policy in enumerate(front)
    ]
    return {
        "title": title or _title(made or {}),
        "lead": _lead(front),
        "objectives": objectives,
        "axes": [shown.index(measure) for measure in axes(front)],
        "measures": [
            {
                "name": measure.name,
                "label": f"final {measure.name}" if measure.final and measure.optimised else measure.name,
                "words": long_name(measure.name),
                "meaning": meaning(measure.name),
                "optimised": measure.optimised,
                "shift": _number(best) if base(measure.name) == "R" else 0.0,
            }
            for measure in shown
        ],
        "policies": policies,
        "baselines": [_figures(policy, shown) for policy in baselines],
        "curves": charts(curves or {}),
        "made": [[str(key), str(value)] for key, value in (made or {}).items()],
    }


def charts(curves: Curves) -> list[dict[str, Any]]:
    """The learning curves worth a picture: hypervolume, loss, and what was asked for beside what was reached.

    :param curves: as :class:`~sb3_fair.pcn.PCN` and SB3's algorithms log them
    """
    time = next((key for key in curves if key.endswith("total_timesteps")), None)
    if time is None:
        return []
    pictures: dict[str, dict[str, str]] = {"Hypervolume": {}, "Loss": {}}
    for key in curves:
        name = key.rpartition("/")[2]
        commanded = re.fullmatch(r"(desired|reached)_(.+)", name)
        if commanded and f"pcn/reached_{commanded[2]}" in curves:
            role = "asked" if commanded[1] == "desired" else "reached"
            pictures.setdefault(f"Return of {commanded[2]}", {})[role] = key
        elif name == "hypervolume":
            pictures["Hypervolume"][HYPERVOLUMES.get(key, name)] = key
        elif name == "loss":
            pictures["Loss"]["loss"] = key
    if not any(title.startswith("Return") for title in pictures) and "rollout/ep_rew_mean" in curves:
        pictures["Reward of an episode"] = {"mean": "rollout/ep_rew_mean"}
    drawn = []
    for title, lines in sorted(pictures.items(), key=lambda picture: _place(picture[0])):
        series = [
            {"name": name, "context": name in CONTEXT, **_series(curves[time], curves[key])}
            for name, key in sorted(lines.items())
        ]
        if series and all(line["x"] for line in series):
            drawn.append({"title": title, "series": series})
    return drawn


def _place(title: str) -> int:
    """Where a picture stands: returns last, in the order of the axes."""
    name = title.removeprefix("Return of ")
    return 0 if name == title else 1 + (AXES.index(base(name)) if base(name) in AXES else -1)


def _series(time: Sequence[float | None], values: Sequence[float | None]) -> dict[str, list[float]]:
    points = [(x, y) for x, y in zip(time, values, strict=True) if x is not None and y is not None and np.isfinite(y)]
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


def _figures(policy: EvaluatedPolicy, shown: Sequence[Measure]) -> dict[str, Any]:
    return {
        "name": policy.name,
        "length": policy.length,
        "episodes": len(policy.returns),
        "deterministic": policy.deterministic,
        "mean": [_number(measure.mean(policy)) for measure in shown],
        "half": [_number(measure.half_width(policy)) for measure in shown],
        "chance": [_number(policy.chance.get(measure.name, float("nan"))) for measure in shown],
    }


def _repeats(front: Front, final: Measure) -> bool:
    """Is the figure after the last step the return of the episode, as with differences or terminal rewards?"""
    column = front.objectives.index(final.name)
    for policy in front:
        values = np.asarray(policy.final.get(final.name, np.full(len(policy.returns), np.nan)))
        known = ~np.isnan(values)
        if not np.allclose(policy.returns[known, column], values[known], atol=1e-9):
            return False
    return True


def _command(policy: EvaluatedPolicy) -> dict[str, Any] | None:
    if policy.command is None:
        return None
    return {
        "returns": dict(zip(policy.objectives, policy.command.desired_return.tolist(), strict=False)),
        "horizon": float(policy.command.desired_horizon),
    }


def _use(policy: EvaluatedPolicy, index: int, run: RunFolder | None) -> dict[str, str] | None:
    """The lines that run this policy, in a shell and in Python."""
    if run is None or policy.command is None:
        return None
    return {
        "shell": f"sb3-fair evaluate --run {shlex.quote(str(run.path))} --policy {index}",
        "python": "\n".join(
            (
                "from sb3_fair import make_vec",
                "from sb3_fair.common.run_folder import RunFolder",
                "from sb3_fair.zoo.evaluation.evaluate import load_run",
                "from sb3_fair.zoo.runs.plan import Plan",
                "",
                f"run = RunFolder.open({str(run.path)!r})",
                "plan = Plan.of_run(run)",
                "model = load_run(plan, run)",
                f"model.set_command(run.front[{index}])",
                "env = model.follow(make_vec(plan.env, n_envs=1, **plan.env_kwargs))",
                "obs = env.reset()",
                f"action, _ = model.predict(obs, deterministic={bool(policy.deterministic)})",
            )
        ),
    }


def _title(made: Mapping[str, Any]) -> str:
    environment = str(made.get("environment", "")).rpartition("/")[2]
    return f"Performance and fairness: {environment}" if environment else "Performance and fairness"


def _lead(front: Front) -> str:
    if len(front) < 2:
        return "The figures of one policy: how much its decisions earn, and how fairly they treat people."
    return (
        f"Below are {len(front)} ways of deciding that the program has learned. None of them is better than another "
        "in everything: to gain in one respect is to give up something in another. Which compromise is right is for "
        "people to choose, so look, compare, and pick one."
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
