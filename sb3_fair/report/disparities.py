"""Figures of fair-PPO: disparity, price and behaviour over the weight of the penalty.

Figures 1 and 2 of La Malfa et al. (arXiv 2502.03953), and what they lack: disparity against return, price and alpha,
with confidence intervals. A setting is the pair (alpha, beta) of weights of the penalty on past and on expected
returns; (0, 0) is classic PPO. Every function returns a matplotlib ``Figure``, made without pyplot.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.validation import one_of
from sb3_fair.report.figures import GREY, INK, SOFT, blank, grid, star, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.float64]
Setting: TypeAlias = tuple[float, ...]
Colour: TypeAlias = tuple[float, float, float]

CLASSIC: Setting = (0.0, 0.0)
ORDERS = ("median", "alpha")
GROUPS = ("not sensitive", "sensitive")
MARKERS = ("o", "s")


class TradeOff(NamedTuple):
    """What growing weights of a penalty lead to. On the last axis: mean and ends of a confidence interval (or NaN).

    :param alphas: (m,) the weights, rising or falling; NaN: not shown over the weight
    :param disparity: (m, 3) size of the disparity
    :param returns: (m, 2, 3) mean return of the agents without and with the sensitive attribute
    :param prices: (m, 2, 3) price of fairness of both in %
    """

    alphas: ArrayLike
    disparity: ArrayLike
    returns: ArrayLike
    prices: ArrayLike


def setting_colour(setting: Setting) -> Colour:
    """RGB in [0, 1]: the hue tells alpha, the lightness beta; of classic PPO, ink. The same in every figure."""
    import matplotlib
    from matplotlib.colors import to_rgb

    if tuple(setting) == CLASSIC:
        return to_rgb(INK)
    alpha, beta = setting[:2]
    hue = np.array(to_rgb(matplotlib.colormaps["viridis"](1 - np.exp(-1.5 * alpha))))
    red, green, blue = hue + (1 - hue) * 0.6 * (1 - np.exp(-1.5 * beta))
    return float(red), float(green), float(blue)


@styled
def plot_box_grid(panels: Mapping[str, Mapping[Any, ArrayLike]], *, order: str = "median") -> "Figure":
    """One panel per disparity, one box per setting: classic PPO first and in bold, then the others.

    :param panels: title -> setting -> values of test episodes
    :param order: of the others: ``"median"``, the smallest first, or ``"alpha"``, then beta
    :raises ValueError: if there is no panel, a panel has no setting, or the order is unknown
    """
    one_of("order", order, ORDERS)
    if not panels or not all(panels.values()):
        raise ValueError(f"panels must have at least one setting each, got {dict(panels)!r}")
    width = max(4.6, 0.36 * max(map(len, panels.values())) + 1.4)
    figure, axes = grid(len(panels), width, 3.6, columns=2)
    for axis, (title, boxes) in zip(axes, panels.items(), strict=True):
        arrays = {setting: np.asarray(values, dtype=np.float64).ravel() for setting, values in boxes.items()}
        samples = {setting: values[~np.isnan(values)] for setting, values in arrays.items()}
        shown = _ordered(samples, order)
        drawn = axis.boxplot(
            [samples[setting] for setting in shown],
            widths=0.65,
            patch_artist=True,
            medianprops={"color": INK},
            flierprops={"marker": ".", "markersize": 2, "markeredgecolor": GREY},
        )
        for box, setting in zip(drawn["boxes"], shown, strict=True):
            box.set(facecolor=setting_colour(setting), edgecolor=INK, linewidth=0.8)
            if tuple(setting) == CLASSIC:
                drawn["medians"][0].set_color("white")
        axis.set_xticklabels([_name(setting) for setting in shown], rotation=90, size=8)
        for text, setting in zip(axis.get_xticklabels(), shown, strict=True):
            text.set_fontweight("bold" if tuple(setting) == CLASSIC else "normal")
        axis.axhline(0, color=SOFT, linewidth=0.8, zorder=0)
        axis.set_title(title, color=INK)
    figure.supxlabel("(alpha, beta)", size=10, color=INK)
    figure.tight_layout()
    return figure


@styled
def plot_action_radar(panels: Mapping[str, Mapping[Any, ArrayLike]], actions: Sequence[str]) -> "Figure":
    """How often each group takes each action: an axis per action, a line per setting, a row of panels per group.

    :param panels: title -> setting -> (groups, actions) frequencies of agents without and with the sensitive attribute
    :param actions: their names
    :raises ValueError: if frequencies have another shape
    """
    frequencies = {
        title: {setting: np.asarray(values, dtype=np.float64) for setting, values in lines.items()}
        for title, lines in panels.items()
    }
    drawn, shape = [values for lines in frequencies.values() for values in lines.values()], (len(GROUPS), len(actions))
    for values in drawn:
        if values.shape != shape:
            raise ValueError(f"panels must have frequencies of shape {shape}, got {values.shape}")
    reach = max(map(np.nanmax, drawn), default=1.0)
    figure, axes = grid(len(GROUPS) * len(panels), 4.6, 4.2, columns=len(panels), projection="polar")
    shown = product(enumerate(GROUPS), frequencies.items())
    for polar, ((row, group), (title, lines)) in zip(axes, shown, strict=True):
        polar.set_theta_direction(-1)
        star(polar, actions, ((values[row], _line(setting)) for setting, values in lines.items()))
        polar.set_ylim(0, 1.05 * reach)
        polar.tick_params(pad=8, labelsize=8)
        polar.set_title(f"{title}: {group}", color=INK, pad=18)
        if row == 0:
            polar.legend(loc="upper left", bbox_to_anchor=(1.05, 1.1), frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


@styled
def plot_tradeoff(curves: Mapping[str, TradeOff], *, disparity: str = "|DP|", weight: str = "alpha") -> "Figure":
    """Return and price of fairness over disparity, and disparity over the weight, with confidence intervals, one below
    the other.

    Circles are the agents without the sensitive attribute, hollow squares those with it.

    :param curves: name -> what it leads to
    :param disparity: its name
    :param weight: name of what grows
    :raises ValueError: if the arrays of a curve do not fit each other
    """
    import matplotlib

    figure = blank(5, 11.7)
    returns, prices, weights = figure.subplots(3, 1)
    for number, (name, curve) in enumerate(curves.items()):
        colour = matplotlib.colormaps["tab10"](number % 10)
        alphas, sizes, *outcomes = (np.asarray(values, dtype=np.float64) for values in curve)
        m = len(alphas)
        for field, values, shape in zip(
            curve._fields[1:], (sizes, *outcomes), ((m, 3), (m, 2, 3), (m, 2, 3)), strict=True
        ):
            if values.shape != shape:
                raise ValueError(f"{field} of {name!r} must have shape {shape}, got {values.shape}")
        for axis, values in zip((returns, prices), outcomes, strict=True):
            for group, marker in enumerate(MARKERS):
                style = {"color": colour, "marker": marker, "markerfacecolor": "white" if group else colour}
                _bars(axis, sizes, values[:, group], label=None if group else name, **style)
        _bars(weights, np.repeat(alphas[:, None], 3, axis=1), sizes, color=colour, marker="o", label=name)
    for axis, x, y in (
        (returns, disparity, "mean return"),
        (prices, disparity, "price of fairness in %"),
        (weights, weight, disparity),
    ):
        axis.set_xlabel(x)
        axis.set_ylabel(y)
    prices.axhline(0, color=SOFT, linewidth=0.8, zorder=0)
    weights.set_ylim(bottom=0)
    weights.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _bars(axis: "Axes", x: Array, y: Array, **style: Any) -> None:
    """Points (m, 3), joined by a line, with what is known of their intervals."""
    xerr, yerr = (np.nan_to_num(np.abs(each[:, 1:] - each[:, :1]).T) for each in (x, y))
    axis.errorbar(x[:, 0], y[:, 0], xerr=xerr, yerr=yerr, linewidth=1.2, elinewidth=0.8, markersize=5, **style)


def _ordered(samples: Mapping[Setting, Array], order: str) -> list[Setting]:
    def place(setting: Setting) -> tuple[Any, ...]:
        values = samples[setting]
        median = np.median(values) if len(values) else np.inf
        return tuple(setting) != CLASSIC, median if order == "median" else 0.0, tuple(setting)

    return sorted(samples, key=place)


def _line(setting: Setting) -> dict[str, Any]:
    heavy = {"linewidth": 2.4, "zorder": 3} if tuple(setting) == CLASSIC else {"linewidth": 1.6, "zorder": 2}
    return {"color": setting_colour(setting), "label": _name(setting), **heavy}


def _name(setting: Setting) -> str:
    return f"({setting[0]:g}, {setting[1]:g})"
