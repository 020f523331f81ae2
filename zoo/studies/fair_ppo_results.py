"""Tables and figures of the study of fair-PPO."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from sb3_fair.fairness import price_of_fairness
from sb3_fair.report.disparities import CLASSIC, Setting, TradeOff, plot_action_radar, plot_box_grid, plot_tradeoff
from sb3_fair.zoo.evaluation.harvest_evaluation import ACTIONS, GROUPS
from sb3_fair.zoo.studies.grid import Result
from sb3_fair.zoo.studies.sheet import Sheet, interval_text, number_text
from sb3_fair.zoo.studies.study import mean_and_interval

Figures: TypeAlias = dict[str, Any]
Experiment: TypeAlias = Mapping[str, Any]
Runs: TypeAlias = Mapping[str, Sequence[tuple[Setting, Sequence[Result]]]]
"""Curve -> settings, the first curve's from that without a penalty on, each with its runs, one per seed."""
WEIGHTS = ("alpha", "beta", "tolerance")
"""What a setting consists of; the last only where that is what changes."""
LENGTHS = ("short", "long")
PICTURED = {"grid": True, "csp": False, "cf": False}
"""Experiments of the paper's figures -> whether all curves are in one panel."""
FAIREST = 4
"""Settings beside classic PPO in pictures of actions, as in the paper's table 1."""


def compare(experiment: Experiment, runs: Runs) -> dict[str, Figures]:
    """Per curve: figures of every setting by its name, ``"(0.5, 0)"``; and how the disparities fall along it. A curve
    without a classic PPO of its own is compared with that of the one before."""
    classic: Sequence[Result] = ()
    found: dict[str, Figures] = {}
    for curve, arms in runs.items():
        first, untreated = arms[0]
        if first[:2] == CLASSIC:
            classic = untreated
        figures = {
            f"({', '.join(f'{weight:g}' for weight in setting)})": _figures(each, classic, experiment["disparities"])
            for setting, each in arms
        }
        found[curve] = {"settings": figures}
        if experiment["trend"]:
            weights = _weights(experiment, arms)
            found[curve]["trend"] = {
                words: trend(weights, [each["short"]["disparities"][words]["absolute"] for each in figures.values()])
                for words in experiment["disparities"]
            }
    return found


def trend(weights: Sequence[float], intervals: Sequence[Sequence[float]]) -> Figures:
    """Does a mean fall along a curve?

    :param weights: (m,) rising or falling
    :param intervals: (m, 3) mean and ends of its confidence interval
    :return: Spearman's rank correlation of weights and means, and whether the mean never rises from one weight to the
        next by more than half its interval
    """
    means, _, high = np.asarray(intervals, dtype=np.float64).T
    return {
        "spearman": float(spearmanr(weights, means).statistic),
        "monotone": bool((np.diff(means) <= (high - means)[1:]).all()),
    }


def _figures(runs: Sequence[Result], classic: Sequence[Result], columns: Mapping[str, str]) -> Figures:
    lengths = [length for length in LENGTHS if all(length in run for run in (*runs, *classic))]
    return {
        **{length: _of_length(runs, classic, columns, length) for length in lengths},
        "actions": {
            kind: {
                group: {action: float(_means(runs, f"{kind}_{group}_{action}").mean()) for action in ACTIONS}
                for group in GROUPS
            }
            for kind in ("chosen", "executed")
        },
        "obstructed": {group: float(_means(runs, f"obstructed_{group}").mean()) for group in GROUPS},
    }


def _of_length(runs: Sequence[Result], classic: Sequence[Result], columns: Mapping[str, str], length: str) -> Figures:
    """Figures of evaluations seed by seed; cuts in % of what the same seed has without a penalty."""

    def both(column: str, kind: str = "mean") -> list[NDArray[np.float64]]:
        return [_means(each, column, kind, length) for each in (runs, classic)]

    found: Figures = {"disparities": {}, "returns": {}, "prices": {}}
    for words, column in columns.items():
        sizes, before = both(column, "absolute")
        found["disparities"][words] = {
            "absolute": mean_and_interval(sizes),
            "signed": mean_and_interval(_means(runs, column, length=length)),
            "cut": mean_and_interval(100 * (1 - sizes / before)),
        }
    for group in GROUPS:
        returns, before = both(f"mean_{group}")
        found["returns"][group] = mean_and_interval(returns)
        percent, *ends = map(float, price_of_fairness(returns, before))
        found["prices"][group] = [percent, *(percent if np.isnan(end) else end for end in ends)]
    return found


def _means(runs: Sequence[Result], column: str, kind: str = "mean", length: str = "short") -> NDArray[np.float64]:
    """Of each seed, (seeds,)."""
    return np.array([run[length]["averages"][column][kind] for run in runs], dtype=np.float64)


def table(
    experiment: Experiment, found: Mapping[str, Figures], rules: Mapping[str, Result], length: str = "short"
) -> Sheet:
    """Disparity, return and price of every setting, with 95 % confidence intervals.

    :param found: what :func:`compare` says of the curves
    :param rules: evaluations of what did not learn, to compare with
    :param length: of the episodes, ``"short"`` or ``"long"``
    """
    setting = f"({', '.join(WEIGHTS if experiment['over'] == 'tolerance' else WEIGHTS[:2])})"
    disparities = [
        column for words in experiment["disparities"] for column in (f"|{words}|", words, f"cut of |{words}| in %")
    ]
    prices = [f"{column} {group}" for column in ("return of", "price in %,") for group in GROUPS]
    rows = [
        [curve, name, *_cells(each[length])]
        for curve, figures in found.items()
        for name, each in figures["settings"].items()
    ]
    dim = [
        [rule, "", *_cells(_of_rule(result[length]["averages"], experiment["disparities"]))]
        for rule, result in rules.items()
    ]
    columns = ["", setting, *disparities, *prices]
    if length == "long":
        return Sheet(f"{experiment['title']}, long episodes", columns, rows, dim)
    return Sheet(experiment["title"], columns, rows, dim, [*_trends(experiment, found)])


def _cells(evaluation: Figures) -> Iterator[str]:
    for each in evaluation["disparities"].values():
        yield interval_text(each["absolute"], 3)
        yield number_text(each["signed"][0], 3)
        yield interval_text(each["cut"], 0) if "cut" in each else ""
    for kind in ("returns", "prices"):
        for group in GROUPS:
            yield interval_text(evaluation[kind][group], 1) if kind in evaluation else ""


def _of_rule(averages: Mapping[str, Figures], columns: Mapping[str, str]) -> Figures:
    return {
        "disparities": {
            words: {"absolute": [averages[column]["absolute"]] * 3, "signed": [averages[column]["mean"]]}
            for words, column in columns.items()
        },
        "returns": {group: [averages[f"mean_{group}"]["mean"]] * 3 for group in GROUPS},
    }


def _trends(experiment: Experiment, found: Mapping[str, Figures]) -> Iterator[str]:
    for curve, figures in found.items():
        for words, each in figures.get("trend", {}).items():
            rises = "never rises" if each["monotone"] else "rises somewhere"
            correlation = f"Spearman({experiment['over']}, |{words}|) = {each['spearman']:.2f}"
            yield f"{curve}: {correlation}, {rises} beyond its interval"


def draw(
    experiments: Mapping[str, Experiment],
    runs: Mapping[str, Runs],
    found: Mapping[str, Mapping[str, Figures]],
    folder: Path,
) -> None:
    """Box plots and actions of the paper's experiments, and trade-offs of those with a trend, as PNG files.

    :param runs: by experiment
    :param found: what :func:`compare` says of them
    """
    boxes: dict[str, dict[Setting, Any]] = {}
    radars: dict[str, dict[Setting, Any]] = {}
    sizes: dict[str, dict[Setting, float]] = {}
    for title, words, column, arms, figures in _panels(experiments, runs, found):
        for (setting, of_seeds), each in zip(arms, figures["settings"].values(), strict=True):
            episodes = [run["short"]["episodes"][column] for run in of_seeds]
            boxes.setdefault(title, {})[setting] = np.concatenate(episodes)
            shares = [[*shares.values()] for shares in each["actions"]["chosen"].values()]
            radars.setdefault(title, {})[setting] = np.array(shares)
            sizes.setdefault(title, {})[setting] = each["short"]["disparities"][words]["absolute"][0]
    if boxes:
        plot_box_grid(boxes).savefig(folder / "boxes.png")
        plot_box_grid(boxes, order="alpha").savefig(folder / "boxes-by-alpha.png")
        shown = {title: {setting: radars[title][setting] for setting in fairest(sizes[title])} for title in radars}
        plot_action_radar(shown, ACTIONS).savefig(folder / "actions.png")
    for name, curves in runs.items():
        experiment = experiments[name]
        for words, column in experiment["disparities"].items() if experiment["trend"] else ():
            lines = {
                curve: _trade_off(_weights(experiment, arms), found[name][curve], words)
                for curve, arms in curves.items()
            }
            picture = plot_tradeoff(lines, disparity=f"|{words}|", weight=experiment["over"])
            picture.savefig(folder / f"{name}-{column}.png")


def _panels(experiments: Mapping[str, Experiment], runs: Mapping[str, Runs], found: Any) -> Iterator[tuple[Any, ...]]:
    """Title, disparity, its column, settings with runs, and figures, curve by curve."""
    for name, together in PICTURED.items():
        for words, column in experiments[name]["disparities"].items() if name in runs else ():
            for curve, arms in runs[name].items():
                yield words if together else f"{words}, {curve}", words, column, arms, found[name][curve]


def fairest(sizes: Mapping[Setting, float]) -> list[Setting]:
    """Classic PPO and the settings with the smallest disparity."""
    return sorted(sizes, key=lambda setting: (setting != CLASSIC, sizes[setting]))[: FAIREST + 1]


def _weights(experiment: Experiment, arms: Sequence[tuple[Setting, Any]]) -> list[float]:
    """What changes along a curve."""
    return [setting[WEIGHTS.index(experiment["over"])] for setting, _ in arms]


def _trade_off(weights: Sequence[float], figures: Figures, words: str) -> TradeOff:
    shown = [each["short"] for each in figures["settings"].values()]
    return TradeOff(
        alphas=np.where(np.isinf(weights), np.nan, weights),
        disparity=np.array([each["disparities"][words]["absolute"] for each in shown]),
        returns=np.array([[*each["returns"].values()] for each in shown]),
        prices=np.array([[*each["prices"].values()] for each in shown]),
    )
