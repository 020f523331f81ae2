"""Trade-offs drawn with matplotlib: parallel coordinates, radar, pairs.

Every function takes evaluated policies and returns a matplotlib ``Figure``, made without pyplot: no window, no global
state. ``save_all`` writes them as PNG files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.whole_file import whole
from sb3_fair.fairness.descriptions import NO_WORDS, Words
from sb3_fair.report.content import Curves, charts
from sb3_fair.report.measures import Measure, axes
from sb3_fair.report.selection import axis_order
from sb3_fair.report.shortlist import representatives

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREY = "#b9bcc2"
INK = "#1b2130"
SOFT = "#5d6573"
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "text.parse_math": False,  # names are texts, also those with dollars
}


Draw = TypeVar("Draw", bound=Callable[..., Any])


def styled(draw: Draw) -> Draw:
    """The function with matplotlib's settings as above while it draws."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return cast(Draw, drawn)


@styled
def save_all(
    folder: str | Path,
    front: Front,
    *,
    baselines: Sequence[EvaluatedPolicy] = (),
    curves: Curves | None = None,
    words: Words = NO_WORDS,
) -> list[Path]:
    """Writes radar, parallel, pairs, bars and curves as PNG; what there is nothing to draw for is left out."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "radar": radars({"": front}, baselines, words=words),
        "parallel": parallel(front, words),
        "bars": bars(front, words),
    }
    if len(_optimised(front)) > 1:
        drawn["pairs"] = pairs(front, baselines)
    if charts(curves or {}):
        drawn["curves"] = learning_curves(curves or {})
    for name, figure in drawn.items():
        with whole(folder / f"{name}.png") as file:
            figure.savefig(file, format="png")
    return [folder / f"{name}.png" for name in drawn]


@styled
def radars(
    fronts: Mapping[str, Front], baselines: Sequence[EvaluatedPolicy] = (), *, words: Words = NO_WORDS
) -> "Figure":
    """A radar for each front, with an axis per objective, the same in all. Optimised ones are bold. An axis goes from
    the worst policy to the best at the rim: 0 where 0 is best, as of notions and disparities, else what a policy or
    rule reaches.

    :param fronts: by their titles; what no policy of a front has is left out of its lines
    :param baselines: count for what is reached only
    :param words: what the environment says of its own measures
    """
    measured = {title: {measure.name: measure for measure in axes(front, words)} for title, front in fronts.items()}
    names = axis_order(list(dict.fromkeys(name for each in measured.values() for name in each)))
    shown = {
        title: [each.get(name, Measure(name, optimised=False, final=True, words=words)) for name in names]
        for title, each in measured.items()
    }
    everybody = [*(policy for front in fronts.values() for policy in front), *baselines]
    reached = {measure.name: measure for each in measured.values() for measure in each.values()}
    best = [reached[name].ideal(everybody) for name in names]
    values = {title: _goodness(front, shown[title]) - best for title, front in fronts.items()}
    worst = np.nanmin(np.minimum(np.concatenate(list(values.values())), 0), axis=0)
    figure, panels = grid(len(fronts), 6, 6, projection="polar")
    for polar, (title, front) in zip(panels, fronts.items(), strict=True):
        _draw_radar(polar, front, shown[title], values[title], worst)
        polar.set_title(short(title), color=INK, pad=28)
    if len(fronts) > 1:
        figure.tight_layout()
    return figure


def _draw_radar(
    polar: Any, front: Front, shown: Sequence[Measure], values: NDArray[np.float64], worst: NDArray[np.float64]
) -> None:
    reach = np.where(worst < 0, 1 - values / np.where(worst < 0, worst, 1.0), 1.0)
    below = [" − best" * (one.about.better == "higher" and not one.zero_is_fair) for one in shown]
    lows = [_value(one, low) for one, low in zip(shown, worst, strict=True)]
    labels = [f"{short(one.name)}{of}\n{low:.3g}" for one, of, low in zip(shown, below, lows, strict=True)]
    dots = {"marker": "o", "markersize": 5}
    star(polar, labels, ((line, dots | style) for line, style in zip(0.12 + 0.88 * reach, _styles(front), strict=True)))
    for text, measure in zip(polar.get_xticklabels(), shown, strict=True):
        text.set_fontweight("bold" if measure.optimised else "normal")
    polar.set_yticks([0.12, 0.34, 0.56, 0.78, 1.0], [])
    polar.set_ylim(0, 1.02)
    polar.tick_params(pad=14)


def star(polar: Any, labels: Sequence[str], lines: Iterable[tuple[NDArray[np.float64], dict[str, Any]]]) -> None:
    """Draws closed lines on polar axes that have a spoke per label, the first spoke on top.

    :param lines: values per spoke, and the style of the line
    """
    angles = np.linspace(0, 2 * np.pi, len(labels), endpoint=False)
    polar.set_theta_zero_location("N")
    for values, style in lines:
        polar.plot(np.append(angles, angles[0]), np.append(values, values[0]), **style)
    polar.set_xticks(angles, labels)
    polar.grid(color="#e3e3dd")
    polar.spines["polar"].set_color(GREY)


@styled
def parallel(front: Front, words: Words = NO_WORDS) -> "Figure":
    """One vertical axis per measure, the best on top; one line per policy. Differences within a typical confidence
    interval are not stretched to a whole axis."""
    shown = axes(front, words)
    low, high = np.array([measure.span(front) for measure in shown]).T
    heights = np.where(high > low, (_goodness(front, shown) - low) / np.where(high > low, high - low, 1.0), 0.5)
    figure = blank(1.3 * len(shown) + 2, 4)
    axis = figure.add_subplot()
    for line, style in zip(heights, _styles(front), strict=True):
        axis.plot(range(len(shown)), line, marker="o", markersize=5, **style)
    for x, measure in enumerate(shown):
        axis.vlines(x, 0, 1, color=GREY, linewidth=1, zorder=0)
        for y, goodness in ((1.06, high[x]), (-0.1, low[x])):
            axis.text(x, y, f"{_value(measure, goodness):.3g}", ha="center", color=SOFT)
        weight = "bold" if measure.optimised else "normal"
        axis.text(x, 1.16, short(measure.name), ha="center", color=INK, fontweight=weight, size=12)
    axis.set_ylim(-0.12, 1.2)
    axis.axis("off")
    return figure


def _optimised(front: Front) -> list[Measure]:
    """The objectives that some policy has a value of."""
    return [measure for measure in axes(front) if measure.name in front.objectives]


@styled
def pairs(front: Front, baselines: Sequence[EvaluatedPolicy] = ()) -> "Figure":
    """A scatter for every pair of objectives, with 95 % confidence intervals; rules as diamonds with their names."""
    both = list(combinations(_optimised(front), 2))
    figure, panels = grid(len(both), 4.4, 3.7)
    together: dict[int, tuple[dict[str, Any], list[EvaluatedPolicy]]] = {}
    for policy, style in zip(front, _styles(front), strict=True):
        together.setdefault(id(style), (style, []))[1].append(policy)
    for axis, (first, second) in zip(panels, both, strict=True):
        for policy in baselines:
            point = first.mean(policy), second.mean(policy)
            axis.plot(*point, "D", markersize=6, color="white", markeredgecolor=SOFT)
            axis.annotate(short(policy.name), point, xytext=(6, 5), textcoords="offset points", color=SOFT, size=7)
        for style, alike in together.values():
            axis.errorbar(
                [first.mean(policy) for policy in alike],
                [second.mean(policy) for policy in alike],
                xerr=np.nan_to_num([first.half_width(policy) for policy in alike]),
                yerr=np.nan_to_num([second.half_width(policy) for policy in alike]),
                fmt="o",
                markersize=5,
                elinewidth=0.8,
                color=style["color"],
                alpha=style["alpha"],
                zorder=style["zorder"],
            )
        axis.set_xlabel(short(first.name))
        axis.set_ylabel(short(second.name))
    figure.tight_layout()
    return figure


@styled
def bars(front: Front, words: Words = NO_WORDS) -> "Figure":
    """Mean and standard deviation of each objective over all policies."""
    shown = axes(front, words)
    values = np.array([[measure.mean(policy) for measure in shown] for policy in front])
    figure, panels = grid(len(shown), 1.6, 2.8, columns=len(shown))
    for axis, measure, column in zip(panels, shown, values.T, strict=True):
        axis.bar([0], [np.nanmean(column)], yerr=[np.nanstd(column)], width=0.5, color=GREY, ecolor=INK, capsize=4)
        axis.set_title(short(measure.name), fontweight="bold" if measure.optimised else "normal", color=INK)
        axis.set_xlim(-0.6, 0.6)
        axis.set_xticks([])
        axis.axhline(0, color=SOFT, linewidth=0.8)
    figure.tight_layout()
    return figure


@styled
def learning_curves(curves: Curves) -> "Figure":
    """Hypervolume, loss and reached returns against training steps.

    :param curves: columns of the training log
    """
    drawn = charts(curves)
    figure, panels = grid(len(drawn), 4.4, 3.1)
    for axis, chart in zip(panels, drawn, strict=True):
        for line in chart["series"]:
            axis.plot(line["x"], line["y"], color=GREY if line["context"] else INK, label=line["name"])
        axis.set_title(short(chart["title"]), color=INK)
        axis.set_xlabel("training steps")
        if len(chart["series"]) > 1:
            axis.legend(frameon=False)
    figure.tight_layout()
    return figure


def _goodness(front: Front, shown: Sequence[Measure]) -> NDArray[np.float64]:
    return np.array([measure.goodness(front) for measure in shown]).T


def _value(measure: Measure, goodness: float) -> float:
    """What the measure is where its goodness is this, never -0."""
    return (goodness if measure.about.better == "higher" else -goodness) + 0.0


def _styles(front: Front) -> list[dict[str, Any]]:
    """Line colour, width and opacity of every policy: representatives in their colour, the others grey."""
    palette = {index: colour / 255 for index, colour in representatives(front).items()}
    other = {"color": GREY, "linewidth": 1.75, "alpha": 0.7 * len(palette) / len(front), "zorder": 1}
    return [
        {"color": palette[index], "linewidth": 2, "alpha": 1.0, "zorder": 2} if index in palette else other
        for index in range(len(front))
    ]


def short(name: str) -> str:
    """The name on one line of at most 60 characters, all of which can be drawn."""
    line = " ".join(name.encode(errors="replace").decode().split())
    return "".join(letter if letter.isprintable() else "?" for letter in line[:60])


def blank(width: float, height: float) -> "Figure":
    """A figure of so many inches, without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def grid(count: int, width: float, height: float, *, columns: int = 3, **kind: Any) -> "tuple[Figure, list[Any]]":
    """A figure with ``count`` axes, row after row, each ``width`` by ``height`` inches.

    :param kind: of the axes, as in matplotlib's ``add_subplot``
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = blank(width * columns, height * rows)
    return figure, [figure.add_subplot(rows, columns, place + 1, **kind) for place in range(count)]
