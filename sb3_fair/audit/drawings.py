"""Drawings of an audit as inline SVG: intervals of shares, and notions over time."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from sb3_fair.audit.markup import Markup, join, tag
from sb3_fair.audit.result import Series, Share
from sb3_fair.audit.words import number, percent

_WIDTH, _HEIGHT = 420, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 24
_FLOORS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 2.0)


def interval(share: Share) -> Markup:
    """A share as a dot with its interval as a line, on an axis from 0 to 100 %."""
    low, middle, high = (2 + 116 * value for value in (share.low, share.rate, share.high))
    label = f"{percent(share.rate)}, interval {percent(share.low)} to {percent(share.high)}"
    return tag(
        "svg",
        tag("title", label),
        tag("line", x1=2, x2=118, y1=9, y2=9, class_="axis"),
        tag("line", x1=f"{low:.1f}", x2=f"{high:.1f}", y1=9, y2=9, class_="interval"),
        tag("circle", cx=f"{middle:.1f}", cy=9, r=4, class_="dot-mark"),
        viewBox="0 0 120 18", width=120, height=18, role="img",
    )  # fmt: skip


def course(series: Series) -> Markup:
    """A notion over time: its value, its band, the lowest values between, and its limit."""
    known = [value for value in (*series.low, *series.values, *series.lowest, series.limit) if not math.isnan(value)]
    lowest_known = min(known, default=-0.1)
    floor = next((-end for end in _FLOORS if lowest_known >= -end), lowest_known)
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    span = max(1, series.rows[-1] - series.rows[0]) if series.times is None else max(1, len(series.rows) - 1)
    steps = range(len(series.rows)) if series.times is not None else [row - series.rows[0] for row in series.rows]

    def x(index: int) -> float:
        return _LEFT + plot_width * steps[index] / span

    def y(value: float) -> float:
        return _TOP + plot_height * value / floor

    def line(value: float, kind: str) -> Markup:
        return tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y(value):.1f}", y2=f"{y(value):.1f}", class_=kind)

    def points(indices: Iterable[int], values: Sequence[float]) -> str:
        return " ".join(f"{x(i):.1f},{y(values[i]):.1f}" for i in indices)

    grid = [
        join(line(value, "axis"), tag("text", number(value, 2) if value else "0", x=_LEFT - 6, y=f"{y(value) + 4:.1f}",
                                      class_="tick", text_anchor="end"))
        for value in (0.0, floor / 2, floor)
    ]  # fmt: skip
    bands = [
        tag("polygon", points=f"{points(part, series.low)} {points(reversed(part), series.high)}", class_="band")
        for part in _parts(series.low)
    ]
    lines = [
        tag("polyline", points=points(part, values), class_=kind)
        for values, kind in ((series.lowest, "lowest"), (series.values, "value"))
        for part in _parts(values)
    ]
    names = series.times or [f"row {row:,}" for row in series.rows]
    ends = [
        tag("text", names[0], x=_LEFT, y=_HEIGHT - 6, class_="tick"),
        tag("text", names[-1], x=_WIDTH - _RIGHT, y=_HEIGHT - 6, class_="tick", text_anchor="end"),
    ]
    lowest = min((value for value in series.lowest if not math.isnan(value)), default=math.nan)
    label = f"{series.notion} over time, from {names[0]} to {names[-1]}; lowest {lowest:.3f}"
    limit = None if math.isnan(series.limit) else line(series.limit, "limit")
    return tag("svg", tag("title", label), *grid, *bands, limit, *lines, *ends, viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
               role="img", class_="course")  # fmt: skip


def _parts(values: Sequence[float]) -> Iterator[list[int]]:
    """Indices of successive values that are defined."""
    for undefined, part in groupby(range(len(values)), key=lambda index: math.isnan(values[index])):
        if not undefined:
            yield list(part)
