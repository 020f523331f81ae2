"""Settings of a table of people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from sb3_fair.fairness.arguments import Count, NotNegative, Range, checked
from sb3_fair.zoo.envs.settings import parameter, several

OURS = "this package"


@checked
@dataclass(frozen=True)
class TableConfig:
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

    table: Any = parameter(None, "file or table", OURS)
    outcome: str | None = parameter(None, "column", OURS)
    good: Any = parameter(None, "value", OURS)
    features: Sequence[str] = parameter((), "columns", OURS)
    nominal: Sequence[str] = parameter((), "columns", OURS)
    person: str | None = parameter(None, "column", OURS)
    score: str | None = parameter(None, "column", OURS)
    gain: NotNegative = parameter(1.0, "reward", OURS)
    loss: Annotated[float, Range("(-inf, 0]")] = parameter(-1.0, "reward", OURS)
    feedback: Literal["all", "accepted"] = parameter("all", "name", OURS)
    feedback_missing: Literal["undefined", "reweight", "ignore"] = parameter("undefined", "name", OURS)
    capacity: Count | None = parameter(None, "people", OURS)
    period: Count | None = parameter(None, "steps", OURS)
    moves: Mapping[Any, float | Sequence[float]] | None = parameter(None, "amounts by feature", OURS)
    missing: Literal["refuse", "impute", "drop"] = parameter("refuse", "name", OURS)
    split: Literal["train", "test", "all"] = parameter("train", "name", OURS)
    test_share: Annotated[float, Range("[0.01, 0.99]")] = parameter(0.3, "share", OURS)
    split_seed: Annotated[int, Range("[0, inf)")] = parameter(0, "seed", OURS)
    episode_length: int = parameter(200, "steps", OURS)
    sha256: str | None = parameter(None, "checksum", OURS)

    def __post_init__(self) -> None:
        for name in ("table", "outcome"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} must be given for a table of people")
        for name, columns in (("features", self.features), ("nominal", self.nominal)):
            if len({*columns}) < len(columns):
                raise ValueError(f"{name} must be different columns, got {columns!r}")
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
        moves = self.moves or {}
        pairs: dict[Any, Any] = {name: move if several(move) else (move, 0.0) for name, move in moves.items()}
        for pair in pairs.values():
            if len(pair) != 2:
                raise ValueError(f"moves must be a number per feature, or one after each outcome, got {pair!r}")
        return {str(name): (float(good), float(bad)) for name, (good, bad) in pairs.items()}
