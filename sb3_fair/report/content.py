"""Contents of a report: tables and figures as plain data."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.plain import plain
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.common.shell import shell_line
from sb3_fair.fairness.descriptions import NO_WORDS, Words, describe
from sb3_fair.report.groups import group_rates
from sb3_fair.report.measures import Measure, axes, measures
from sb3_fair.report.selection import ANCHORS, axis_order, kind
from sb3_fair.report.shortlist import beaten, representatives, same, short_list, told_apart

HYPERVOLUMES = {"eval/hypervolume": "evaluated policies", "pcn/hypervolume": "training episodes"}
CONTEXT = ("asked", "training episodes")
"""Curves that are there to compare the other one with."""
KEY = {"performance": "good performance", "group": "fair to groups", "individual": "fair to individuals"}
"""What the colours of :data:`~sb3_fair.report.selection.ANCHORS` mean."""
Curves = Mapping[str, Sequence[float | None]]


def content(
    front: Front,
    *,
    baselines: Sequence[EvaluatedPolicy] = (),
    curves: Curves | None = None,
    made: Mapping[str, Any] | None = None,
    title: str | None = None,
    run: RunFolder | None = None,
    words: Words = NO_WORDS,
) -> dict[str, Any]:
    """Everything the page shows, as numbers, strings, lists and dicts; what is undefined is None."""
    shown = measures(front, words)
    both = {measure.name for measure in shown if measure.final and measure.optimised}
    on_axes = axes(front, words)
    everybody = (*front, *baselines)
    palette = representatives(front)
    first = same(everybody)
    roles, rule = short_list(front, baselines)
    worse, dominated = beaten(front, baselines), beaten(front, front)
    good = np.array([measure.goodness(everybody) for measure in shown]).T
    policies = [
        {
            "id": index,
            "colour": _css(palette[index]) if index in palette else None,
            "command": policy.command
            and {
                "returns": dict(zip(policy.objectives, policy.command.desired_return.tolist(), strict=False)),
                "horizon": float(policy.command.desired_horizon),
            },
            "use": _use(policy, index, run),
            "roles": roles.get(index, []),
            "beaten": [baselines[other].name for other in np.flatnonzero(worse[index]).tolist()],
            "dominated": [front[other].name for other in np.flatnonzero(dominated[index]).tolist()],
            "same": [everybody[other].name for other, leader in enumerate(first) if leader == index != other],
            **_figures(policy, shown, good[index], words),
        }
        for index, policy in enumerate(front)
        if first[index] == index
    ]
    environment = str((made or {}).get("environment", "")).rpartition("/")[2]
    told = {
        "title": title or f"Performance and fairness{f': {environment}' if environment else ''}",
        "deserving": words.get("deserving", ""),
        "lead": _lead(len(policies), len(told_apart(front))),
        "objectives": axis_order(front.objectives),
        "key": [[_css(ANCHORS[name]), KEY[name]] for name in KEY if name in map(kind, front.objectives)],
        "axes": [shown.index(measure) for measure in on_axes],
        "measures": [
            {
                "name": measure.name,
                "label": measure.label,
                "title": f"{measure.about.title}{_when(measure) if measure.name in both else ''}",
                "sentence": measure.about.sentence,
                "unit": measure.about.unit,
                "better": measure.about.better,
                "optimised": measure.optimised,
                "final": measure.final,
                "zero_is_fair": measure.zero_is_fair,
                "ideal": measure.ideal(everybody),
                "span": measure.span(front),
                "reach": measure.span(everybody),
            }
            for measure in shown
        ],
        "policies": policies,
        "baselines": [
            {"closest": index == rule, **_figures(policy, shown, good[len(front) + index], words)}
            for index, policy in enumerate(baselines)
        ],
        "curves": charts(curves or {}, words),
        "made": [[str(key), str(value)] for key, value in (made or {}).items()],
    }
    return plain(told, finite=True)


def charts(curves: Curves, words: Words = NO_WORDS) -> list[dict[str, Any]]:
    """The learning curves worth a picture: hypervolume, loss, and what was asked for beside what was reached; of one
    point, none.

    :param curves: as :class:`~sb3_fair.pcn.PCN` and SB3's algorithms log them
    """
    time = next((key for key in curves if key.endswith("total_timesteps")), None)
    if time is None:
        return []
    names = {key: key.rpartition("/")[2] for key in curves}
    reached = [key.removeprefix("pcn/reached_") for key in curves if key.startswith("pcn/reached_")]
    returns = [
        (f"Return of {describe(name, words).title}", {"asked": f"pcn/desired_{name}", "reached": f"pcn/reached_{name}"})
        for name in axis_order(reached)
    ]
    pictures = [
        ("Hypervolume", {HYPERVOLUMES.get(key, name): key for key, name in names.items() if name == "hypervolume"}),
        ("Loss", {name: key for key, name in names.items() if name == "loss"}),
        *(returns or [("Reward of an episode", {"mean": "rollout/ep_rew_mean"})]),
    ]
    drawn = []
    for title, lines in pictures:
        series: list[dict[str, Any]] = []
        for name, key in sorted((name, key) for name, key in lines.items() if key in curves):
            rows = zip(curves[time], curves[key], strict=True)
            known = [(x, y) for x, y in rows if x is not None and y is not None and np.isfinite(y)]
            x, y = ([point[side] for point in known] for side in (0, 1))
            series.append({"name": name, "context": name in CONTEXT, "x": x, "y": y})
        points = [len(line["x"]) for line in series]
        if points and min(points) > 0 and max(points) > 1:
            drawn.append({"title": title, "series": series})
    return drawn


def _figures(
    policy: EvaluatedPolicy, shown: Sequence[Measure], good: NDArray[np.float64], words: Words
) -> dict[str, Any]:
    return {
        "name": policy.name,
        "length": policy.length,
        "episodes": len(policy.returns),
        "deterministic": policy.deterministic,
        "mean": [measure.mean(policy) for measure in shown],
        "half": [measure.half_width(policy) for measure in shown],
        "good": good,
        "chance": [measure.chance(policy) for measure in shown],
        "groups": group_rates(policy, words),
    }


def _when(measure: Measure) -> str:
    """Tells a return and the figure after the last step apart."""
    return " at the end" if measure.final else ", sum over steps"


def _use(policy: EvaluatedPolicy, index: int, run: RunFolder | None) -> dict[str, str] | None:
    """The lines that run this policy, in a shell and in Python."""
    if run is None or policy.command is None:
        return None
    return {
        "shell": shell_line(["sb3-fair", "evaluate", "--run", str(run.path), "--policy", str(index)]),
        "python": "\n".join(
            (
                "from sb3_fair import make_vec",
                "from sb3_fair.common.run_folder import RunFolder",
                "from sb3_fair.zoo.runs.plan import Plan",
                "from sb3_fair.zoo.runs.policy_file import load_policy",
                "",
                f"run = RunFolder.open({str(run.path)!r})",
                "plan = Plan.of_run(run)",
                "model = load_policy(plan, run)",
                f"model.set_command(run.front[{index}])",
                "env = model.follow(make_vec(plan.env, n_envs=1, **plan.env_kwargs))",
                "obs = env.reset()",
                f"action, _ = model.predict(obs, deterministic={bool(policy.deterministic)})",
            )
        ),
    }


def _css(colour: Iterable[int]) -> str:
    return f"rgb({', '.join(map(str, colour))})"


def _lead(different: int, apart: int) -> str:
    if different < 2:
        return "One way of deciding that the program has learned, and simple rules beside it."
    told = f"The program has learned {different} ways of deciding. "
    if 1 < apart < different:
        told += f"At least {apart} of them differ from each other by more than chance. "
    return told + (
        "None is better than another in everything: to gain in one respect is to give up something in another. Which "
        "compromise is right is for people to choose."
    )
