"""Drawings of an audit as inline SVG: intervals of shares, and notions over time."""

import math
from collections.abc import Iterator, Sequence

from sb3_fair.audit.markup import Markup, join, tag
from sb3_fair.audit.result import Series, Share
from sb3_fair.audit.words import percent

_WIDTH, _HEIGHT = 420, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 24


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
    floor = _round_floor(min(known, default=-0.1))
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    span = max(1, series.rows[-1] - series.rows[0]) if series.times is None else max(1, len(series.rows) - 1)
    steps = range(len(series.rows)) if series.times is not None else [row - series.rows[0] for row in series.rows]

    def x(index: int) -> float:
        return _LEFT + plot_width * steps[index] / span

    def y(value: float) -> float:
        return _TOP + plot_height * value / floor

    grid = join(*(_grid(value, y(value)) for value in (0.0, floor / 2, floor)))
    bands = join(*(
        tag("polygon", points=" ".join(
            [*(f"{x(i):.1f},{y(series.low[i]):.1f}" for i in part),
             *(f"{x(i):.1f},{y(series.high[i]):.1f}" for i in reversed(part))]), class_="band")
        for part in _parts(series.low)
    ))  # fmt: skip
    limit = None
    if not math.isnan(series.limit):
        limit = tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y(series.limit):.1f}", y2=f"{y(series.limit):.1f}",
                    class_="limit")  # fmt: skip
    lines = [
        tag("polyline", points=" ".join(f"{x(i):.1f},{y(values[i]):.1f}" for i in part), class_=kind)
        for values, kind in ((series.lowest, "lowest"), (series.values, "value"))
        for part in _parts(values)
    ]
    names = series.times or [f"row {row:,}" for row in series.rows]
    ends = join(
        tag("text", names[0], x=_LEFT, y=_HEIGHT - 6, class_="tick"),
        tag("text", names[-1], x=_WIDTH - _RIGHT, y=_HEIGHT - 6, class_="tick", text_anchor="end"),
    )
    lowest = min((value for value in series.lowest if not math.isnan(value)), default=math.nan)
    label = f"{series.notion} over time, from {names[0]} to {names[-1]}; lowest {lowest:.3f}"
    return tag("svg", tag("title", label), grid, bands, limit, *lines, ends, viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
               role="img", class_="course")  # fmt: skip


def _grid(value: float, y: float) -> Markup:
    text = "0" if value == 0 else f"{value:.2f}".replace("-", "−")
    return join(
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="axis"),
        tag("text", text, x=_LEFT - 6, y=f"{y + 4:.1f}", class_="tick", text_anchor="end"),
    )


def _round_floor(lowest: float) -> float:
    """The lower end of an axis that holds this value."""
    return next((-end for end in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 2.0) if lowest >= -end), lowest)


def _parts(values: Sequence[float]) -> Iterator[list[int]]:
    """Indices of successive values that are defined."""
    part: list[int] = []
    for index, value in enumerate(values):
        if not math.isnan(value):
            part.append(index)
        elif part:
            yield part
            part = []
    if part:
        yield part
