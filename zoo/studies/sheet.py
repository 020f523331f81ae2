"""Tables of studies in terminals and in Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sb3_fair.common.whole_file import write_whole
from sb3_fair.zoo.evaluation.tables import blank_table, show


@dataclass(frozen=True)
class Sheet:
    """A table of text.

    :param dim: rows to compare with
    :param notes: lines below
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    dim: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()

    def publish(self, path: Path) -> None:
        """Prints it, and writes it down as Markdown, and as JSON that tables in the docs are compared with."""
        show(self.rich())
        write_whole(path, self.markdown() + "\n")
        write_whole(path.with_suffix(".table.json"), json.dumps(self.content, indent=1, ensure_ascii=False))

    @property
    def content(self) -> dict[str, Any]:
        """For JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [*self.rows, *self.dim]}

    def rich(self) -> Table:
        """For the terminal."""
        table = blank_table(*self.columns, title=self.title, title_justify="left", caption_justify="left")
        for row in self.rows:
            table.add_row(*row)
        for row in self.dim:
            table.add_row(*row, style="dim")
        table.caption = "\n".join(self.notes) or None
        return table

    def markdown(self) -> str:
        """For a page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows, *self.dim]
        rows = ["| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines]
        return "\n".join([f"**{self.title}**", "", *rows, *(f"\n{note}" for note in self.notes)])


def sheet(
    title: str,
    columns: Mapping[str, str],
    found: Mapping[str, Mapping[str, Any]],
    rules: Mapping[str, Mapping[str, Any]] | None = None,
    digits: int | None = None,
) -> Sheet:
    """A row per learner, and per rule to compare with.

    :param columns: heading -> name of a figure; ``"outer/inner"`` of nested ones
    :param found: figures by name: a mean with the ends of its interval, a number, or text; empty where there is none
    :param digits: see :func:`number_text`
    """

    def rows(some: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
        return [
            [label, *(_cell(figures, path, digits) for path in columns.values())] for label, figures in some.items()
        ]

    return Sheet(title, ["", *columns], rows(found), rows(rules or {}))


def _cell(figures: Any, path: str, digits: int | None) -> str:
    for name in path.split("/"):
        figures = figures.get(name, "")
    if isinstance(figures, str):
        return figures
    return number_text(figures, digits) if isinstance(figures, float) else interval_text(figures, digits)


def interval_text(interval: Sequence[float], digits: int | None = None) -> str:
    """A mean and the ends of its confidence interval, if it has one whose ends look different.

    :param digits: after the point; None: as :func:`number_text` has it
    """
    mean, low, high = (number_text(value, digits) for value in interval)
    return mean if mean == low == high or np.isnan(interval[1]) else f"{mean} [{low}, {high}]"


def number_text(value: float, digits: int | None = None) -> str:
    """So many digits after the point; by default three in all, or all before the point."""
    if np.isnan(value):
        return "–"
    if digits is None:
        return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:z.3g}"
    return f"{value:z.{digits}f}"
