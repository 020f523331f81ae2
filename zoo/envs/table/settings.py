"""Settings of a table of people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sb3_fair.fairness.validation import number
from sb3_fair.zoo.envs.settings import (
    COUNT,
    COUNT_OR_0,
    Settings,
    between,
    choice,
    parameter,
    require_not_negative,
    several,
)

OURS = "this package"
PARTS = ("train", "test", "all")


def _not_positive(name: str, value: Any) -> None:
    if number(name, value) > 0:
        raise ValueError(f"{name} must not be positive, as in -3, got {value!r}")


def _column(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be the name of a column, got {value!r}")


def _columns(name: str, value: Any, least: int) -> None:
    if not several(value) or len(value) < least or len({*value}) < len(value):
        raise ValueError(f"{name} must be a list of {'different ' if value else ''}columns, got {value!r}")
    for each in value:
        _column(f"each of {name}", each)


@dataclass(frozen=True)
class TableConfig(Settings):
    """What the columns of a table mean, and what decisions bring.

    :param table: a CSV, Parquet or JSON-lines file with one person per row; in Python also a DataFrame or a dict
    :param outcome: column that says what came, or would come, of accepting the person; it has two values
    :param good: the value of the outcome that is good, by default yes, true or 1
    :param features: columns that the policy sees
    :param nominal: those features whose values are names
    :param person: column that names the person: rows of one person are all for training or all for evaluation
    :param score: column with a score of the person, for rules that accept the highest ones
    :param gain: reward for accepting somebody whose outcome is good
    :param loss: reward for accepting somebody whose outcome is bad, not positive
    :param feedback: whose outcomes become known: of all, or of the accepted
    :param feedback_missing: how unknown outcomes count in notions: undefined, reweight or ignore
    :param capacity: most acceptances in a period; then everybody is refused until the next one begins
    :param period: steps of a period, by default the whole episode
    :param moves: what an accepted person's features change by, as in income: 1.5 after a good outcome, or income: [1.5,
        -2] after a good and a bad one
    :param missing: what to do about missing values: refuse the table, impute features, or drop the rows
    :param split: whom to draw: train, test or all; by default train in training and test in evaluations
    :param test_share: share of the people who are for evaluation
    :param split_seed: of the choice who is for evaluation
    :param episode_length: people in an episode
    :param sha256: checksum that the file must have
    """

    table: Any = parameter(None, "file or table", OURS)  # noqa: RUF009 (a field, not shared)
    outcome: str | None = parameter(None, "column", OURS, _column)
    good: Any = parameter(None, "value", OURS)  # noqa: RUF009
    features: Sequence[str] = parameter((), "columns", OURS, partial(_columns, least=0))
    nominal: Sequence[str] = parameter((), "columns", OURS, partial(_columns, least=0))
    person: str | None = parameter(None, "column", OURS, _column)
    score: str | None = parameter(None, "column", OURS, _column)
    gain: float = parameter(1.0, "reward", OURS, require_not_negative)
    loss: float = parameter(-1.0, "reward", OURS, _not_positive)
    feedback: str = choice("all", ("all", "accepted"), OURS)
    feedback_missing: str = choice("undefined", ("undefined", "reweight", "ignore"), OURS)
    capacity: int | None = parameter(None, "people", OURS, COUNT)
    period: int | None = parameter(None, "steps", OURS, COUNT)
    moves: Mapping[str, Any] | None = parameter(None, "amounts by feature", OURS)
    missing: str = choice("refuse", ("refuse", "impute", "drop"), OURS)
    split: str = choice("train", PARTS, OURS)
    test_share: float = parameter(0.3, "share", OURS, between(0.01, 0.99))
    split_seed: int = parameter(0, "seed", OURS, COUNT_OR_0)
    episode_length: int = parameter(200, "steps", OURS, COUNT)
    sha256: str | None = parameter(None, "checksum", OURS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("table", "outcome"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} must be given for a table of people")
        if not self.seen:
            raise ValueError("features must name at least one column, got none")
        if self.outcome in self.seen:
            raise ValueError(f"features must not have the outcome, which is not known yet, got {self.outcome!r}")
        if self.period is not None and self.capacity is None:
            raise ValueError(f"period must be left out without a capacity, got {self.period!r}")
        for name in self.changes:
            if name not in self.seen or name in self.nominal:
                raise ValueError(f"moves must be of features that are numbers, got {name!r}")

    @property
    def seen(self) -> tuple[str, ...]:
        """All features, the nominal ones that are not among ``features`` at the end."""
        return tuple(dict.fromkeys((*self.features, *self.nominal)))

    @property
    def changes(self) -> dict[str, tuple[float, float]]:
        """What each feature in ``moves`` changes by after a good outcome, and after a bad one."""
        if not isinstance(self.moves, Mapping | None):
            raise ValueError(f"moves must be numbers by feature, as in {{'income': 1.5}}, got {self.moves!r}")
        pairs = {name: move if several(move) else (move, 0.0) for name, move in (self.moves or {}).items()}
        for name, pair in pairs.items():
            if len(pair) != 2:
                raise ValueError(f"moves must be a number per feature, or one after each outcome, got {pair!r}")
            for move in pair:
                number(f"moves of {name}", move)
        return {str(name): (float(good), float(bad)) for name, (good, bad) in pairs.items()}
