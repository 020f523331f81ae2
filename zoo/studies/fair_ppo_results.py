"""Tables and figures of the study of fair-PPO."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
WEIGHTS = ("alpha", "beta", "tolerance")
"""What a setting consists of; the last only where that is what changes."""
LENGTHS = ("short", "long")
PICTURED = ("grid", "csp", "cf")
"""Experiments of the paper's figures."""
FAIREST = 4
"""Settings beside classic PPO in pictures of actions, as in the paper's table 1."""


@dataclass(frozen=True)
class Curves:
    """Runs of an experiment.

    :param over: what changes along a curve: ``"alpha"`` and ``"beta"`` grow, ``"tolerance"`` falls
    :param disparities: name in figures -> column of the evaluation
    :param trend: whether the disparity is expected to fall along a curve
    :param runs: curve -> settings from that without a penalty on, each with its runs, one per seed
    :param classic: runs without a penalty of the same seeds
    """

    over: str
    disparities: Mapping[str, str]
    trend: bool
    runs: Mapping[str, Sequence[tuple[Setting, Sequence[Result]]]]
    classic: Sequence[Result]


def compare(curves: Curves) -> dict[str, Figures]:
    """Per curve: figures of every setting by its name, ``"(0.5, 0)"``; and how the disparities fall along it."""
    found: dict[str, Figures] = {}
    for curve, arms in curves.runs.items():
        figures = {_name(setting): _figures(runs, curves) for setting, runs in arms}
        found[curve] = {"settings": figures}
        if curves.trend:
            weights = _weights(curves, arms)
            found[curve]["trend"] = {
                words: trend(weights, [each["short"]["disparities"][words]["absolute"] for each in figures.values()])
                for words in curves.disparities
            }
    return found


def has(found: Mapping[str, Figures], length: str) -> bool:
    """Whether all settings of the curves were evaluated in episodes of this length."""
    return all(length in each for figures in found.values() for each in figures["settings"].values())


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


def _figures(runs: Sequence[Result], curves: Curves) -> Figures:
    return {
        **{
            length: _of_length(runs, curves, length)
            for length in LENGTHS
            if all(length in run for run in (*runs, *curves.classic))
        },
        "actions": {
            kind: {group: dict(zip(ACTIONS, shares, strict=True)) for group, shares in zip(GROUPS, rows, strict=True)}
            for kind, rows in ((kind, actions(runs, kind).tolist()) for kind in ("chosen", "executed"))
        },
        "obstructed": {group: float(_means(runs, f"obstructed_{group}").mean()) for group in GROUPS},
    }


def _of_length(runs: Sequence[Result], curves: Curves, length: str) -> Figures:
    """Figures of evaluations seed by seed; cuts in % of what the same seed has without a penalty."""

    def both(column: str, kind: str = "mean") -> list[NDArray[np.float64]]:
        return [_means(each, column, kind, length) for each in (runs, curves.classic)]

    disparities = {}
    for words, column in curves.disparities.items():
        (sizes, before), (signed, signed_before) = both(column, "absolute"), both(column)
        disparities[words] = {
            "absolute": mean_and_interval(sizes),
            "signed": mean_and_interval(signed),
            "cut": mean_and_interval(100 * (1 - sizes / before)),
            "cut_of_mean": mean_and_interval(100 * (1 - np.abs(signed / signed_before))),
        }
    found: Figures = {"disparities": disparities, "returns": {}, "prices": {}}
    for group in GROUPS:
        returns, before = both(f"mean_{group}")
        found["returns"][group] = mean_and_interval(returns)
        percent, *ends = map(float, price_of_fairness(returns, before))
        found["prices"][group] = [percent, *(percent if np.isnan(end) else end for end in ends)]
    return found


def _means(runs: Sequence[Result], column: str, kind: str = "mean", length: str = "short") -> NDArray[np.float64]:
    """Of each seed, (seeds,)."""
    return np.array([run[length]["averages"][column][kind] for run in runs], dtype=np.float64)


def actions(runs: Sequence[Result], kind: str) -> NDArray[np.float64]:
    """Share of each action in those of each group, mean over seeds: (groups, actions).

    :param kind: ``"chosen"`` or ``"executed"``
    """
    return np.array([[_means(runs, f"{kind}_{group}_{action}").mean() for action in ACTIONS] for group in GROUPS])


def table(
    title: str, curves: Curves, found: Mapping[str, Figures], rules: Mapping[str, Result], length: str = "short"
) -> Sheet:
    """Disparity, return and price of every setting, with 95 % confidence intervals.

    :param found: what :func:`compare` says of the curves
    :param rules: evaluations of what did not learn, to compare with
    :param length: of the episodes, ``"short"`` or ``"long"``
    """
    setting = f"({', '.join(WEIGHTS if curves.over == 'tolerance' else WEIGHTS[:2])})"
    disparities = [column for words in curves.disparities for column in (f"|{words}|", words, "cut in %")]
    prices = [f"{column} {group}" for column in ("return of", "price in %,") for group in GROUPS]
    rows = [
        [curve, setting, *_cells(each[length])]
        for curve, figures in found.items()
        for setting, each in figures["settings"].items()
    ]
    dim = [[rule, "", *_cells(_of_rule(result[length]["averages"], curves))] for rule, result in rules.items()]
    short = length == "short"
    notes = [*_trends(curves, found)] if short else []
    return Sheet(title if short else f"{title}, long episodes", ["", setting, *disparities, *prices], rows, dim, notes)


def _cells(evaluation: Figures) -> Iterator[str]:
    for each in evaluation["disparities"].values():
        yield interval_text(each["absolute"], 3)
        yield number_text(each["signed"][0], 3)
        yield interval_text(each["cut"], 0) if "cut" in each else ""
    for kind in ("returns", "prices"):
        for group in GROUPS:
            yield interval_text(evaluation[kind][group], 1) if kind in evaluation else ""


def _of_rule(averages: Mapping[str, Figures], curves: Curves) -> Figures:
    return {
        "disparities": {
            words: {"absolute": [averages[column]["absolute"]] * 3, "signed": [averages[column]["mean"]]}
            for words, column in curves.disparities.items()
        },
        "returns": {group: [averages[f"mean_{group}"]["mean"]] * 3 for group in GROUPS},
    }


def _trends(curves: Curves, found: Mapping[str, Figures]) -> Iterator[str]:
    for curve, figures in found.items():
        for words, each in figures.get("trend", {}).items():
            rises = "never rises" if each["monotone"] else "rises somewhere"
            yield f"{curve}: Spearman({curves.over}, |{words}|) = {each['spearman']:.2f}, {rises} beyond its interval"


def _name(setting: Setting) -> str:
    return f"({', '.join(f'{weight:g}' for weight in setting)})"


def draw(compared: Mapping[str, Curves], found: Mapping[str, Mapping[str, Figures]], folder: Path) -> None:
    """Box plots and actions of the paper's experiments, and trade-offs of those with a trend, as PNG files."""
    panels = [panel for name in PICTURED if name in compared for panel in _panels(compared[name])]
    if panels:
        boxes = {title: {setting: _episodes(runs, column) for setting, runs in arms} for title, column, arms in panels}
        plot_box_grid(boxes).savefig(folder / "boxes.png")
        plot_box_grid(boxes, order="alpha").savefig(folder / "boxes-by-alpha.png")
        radars = {
            title: {setting: actions(runs, "chosen") for setting, runs in _fairest(arms, column)}
            for title, column, arms in panels
        }
        plot_action_radar(radars, ACTIONS).savefig(folder / "actions.png")
    for name, curves in compared.items():
        for words, column in curves.disparities.items() if curves.trend else ():
            lines = {curve: _trade_off(curves, curve, found[name][curve], words) for curve in curves.runs}
            picture = plot_tradeoff(lines, disparity=f"|{words}|", weight=curves.over)
            picture.savefig(folder / f"{name}-{column}.png")


Arms: TypeAlias = Sequence[tuple[Setting, Sequence[Result]]]


def _weights(curves: Curves, arms: Arms) -> list[float]:
    """What changes along a curve."""
    return [setting[WEIGHTS.index(curves.over)] for setting, _ in arms]


def _panels(curves: Curves) -> Iterator[tuple[str, str, Arms]]:
    """Titles, columns and settings of panels: one for all curves if no two of them share a setting."""
    together = {setting: runs for arms in curves.runs.values() for setting, runs in arms}
    apart = len(together) < 1 + sum(setting != CLASSIC for arms in curves.runs.values() for setting, _ in arms)
    for words, column in curves.disparities.items():
        if not apart:
            yield words, column, list(together.items())
            continue
        for curve, arms in curves.runs.items():
            yield f"{words}, {curve}", column, arms


def _episodes(runs: Sequence[Result], column: str) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(run["short"]["episodes"][column]) for run in runs])


def _fairest(arms: Arms, column: str) -> Arms:
    """Classic PPO and the settings with the smallest disparity."""

    def size(arm: tuple[Setting, Sequence[Result]]) -> tuple[bool, float]:
        return tuple(arm[0]) != CLASSIC, float(_means(arm[1], column, "absolute").mean())

    return sorted(arms, key=size)[: FAIREST + 1]


def _trade_off(curves: Curves, curve: str, figures: Figures, words: str) -> TradeOff:
    shown = [each["short"] for each in figures["settings"].values()]
    weights = np.array(_weights(curves, curves.runs[curve]))
    return TradeOff(
        alphas=np.where(np.isinf(weights), np.nan, weights),
        disparity=np.array([each["disparities"][words]["absolute"] for each in shown]),
        returns=np.array([[each["returns"][group] for group in GROUPS] for each in shown]),
        prices=np.array([[each["prices"][group] for group in GROUPS] for each in shown]),
    )
