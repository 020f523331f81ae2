"""Learning curves with intervals."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import cycle, product
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.studies.study import mean_and_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#9c6b4e", "#9498a0", "#97bbf5")
"""Observable's categorical palette, which stays distinguishable for the colour-blind."""
STYLES = ("-", "--", ":")
"""Of lines, one after the other when the colours are used up."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Steps (p,) and one row of values per seed (seeds, p)."""


class Panel(NamedTuple):
    """One diagram: means over seeds with 95 % confidence intervals.

    :param curves: by name; those of one step are drawn as points
    :param label: what the values are
    :param lines: horizontal, to compare with
    :param low: where the axis of values begins; None: where they do
    :param along: what the steps are; empty: nothing, they only set points apart
    """

    title: str
    curves: Mapping[str, Curve]
    label: str
    lines: Mapping[str, float] = {}
    low: float | None = None
    along: str = "steps"


def curve(runs: Sequence[Mapping[str, Any]], *path: str) -> Curve:
    """Steps, and seed by seed what runs noted under ``path``, as far as all of them got."""
    noted: list[Any] = [reduce(getitem, path, run) for run in runs]
    known = min(map(len, noted))
    values = np.array([each[:known] for each in noted], dtype=np.float64)
    return np.array(runs[0]["steps"][:known], dtype=np.float64), values


def draw(axes: "Axes", panel: Panel) -> None:
    """Curves, lines, and a legend beside them."""
    for (name, (steps, values)), (style, colour) in zip(panel.curves.items(), product(STYLES, COLOURS), strict=False):
        middle, bottom, top = np.array([mean_and_interval(column) for column in values.T]).T
        if len(steps) == 1:
            axes.errorbar(steps, middle, [middle - bottom, top - middle], fmt="o", color=colour, label=name)
            continue
        axes.plot(steps, middle, style, color=colour, label=name, linewidth=1.8)
        axes.fill_between(steps, bottom, top, color=colour, alpha=0.2, linewidth=0)
    for (name, value), style in zip(panel.lines.items(), cycle(("-", "--", ":", "-.")), strict=False):
        axes.axhline(value, color="#444444", linestyle=style, linewidth=1, label=f"{name} ({value:.1f})")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    axes.set_ylabel(panel.label)
    if not panel.along:
        axes.set_xticks([])
    axes.set_ylim(bottom=panel.low)
    tidy(axes)


def tidy(axes: "Axes") -> None:
    """No frame, and a legend on the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def figure(path: str | Path, panels: Sequence[Panel]) -> None:
    """A picture of panels one below the other; neighbours that show the same learners share a legend."""
    from matplotlib.figure import Figure

    shown = [(list(panel.curves), panel.lines) for panel in panels]
    picture = Figure(figsize=(7.6, 3.8 * len(panels)), dpi=110, layout="constrained")
    all_axes = np.atleast_1d(picture.subplots(len(panels), 1))
    for axes, panel, here, below in zip(all_axes, panels, shown, [*shown[1:], None], strict=True):
        draw(axes, panel)
        axes.get_legend().set_visible(here != below)
        axes.get_legend().set_in_layout(here != below)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
