"""What the columns of a log of decisions mean."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sb3_fair.fairness.validation import did_you_mean


@dataclass(frozen=True)
class Columns:
    """Names of columns. Each row is a decision about a person; see :func:`sb3_fair.audit.audit`."""

    action: str
    group: tuple[str, ...]
    feedback: str | None = None
    features: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    score: str | None = None
    time: str | None = None
    reward: str | None = None
    stakeholder: str | None = None
    propensity: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("group", "features", "nominal"):
                object.__setattr__(self, field.name, _names(field.name, value))
            elif not (isinstance(value, str) and value) and (value is not None or field.name == "action"):
                raise ValueError(f"{field.name} must be the name of a column, got {value!r}")
        if not self.group:
            raise ValueError("group must name at least one column, got none")
        # Nominal columns that are not listed as features are features too.
        object.__setattr__(self, "features", tuple(dict.fromkeys((*self.features, *self.nominal))))
        for one, two in (("action", "feedback"), ("action", "score"), ("feedback", "score")):
            if getattr(self, one) == getattr(self, two) is not None:
                raise ValueError(f"{one} and {two} must be different columns, got {getattr(self, one)!r} for both")
        if self.action in self.group:
            raise ValueError(f"group must not be the column of the action, got {self.action!r}")
        if self.score is not None and not self.features:
            raise ValueError(
                f"features must be given with score, which only individual notions use, got {self.score!r}"
            )
        if self.stakeholder is not None and self.reward is None:
            raise ValueError(f"reward must be given with stakeholder, got {self.stakeholder!r} alone")
        if self.reward is not None and (self.stakeholder, self.propensity) == (None, None):
            raise ValueError(f"reward must be given with stakeholder or propensity, got {self.reward!r} alone")
        if self.propensity is not None and self.target is None:
            raise ValueError(f"propensity must be given with target, got {self.propensity!r} alone")

    @property
    def used(self) -> list[str]:
        """Every column that is read, once."""
        decided = (self.action, self.feedback, self.score, self.time)
        single = (*decided, self.reward, self.stakeholder, self.propensity, self.target)
        return list(dict.fromkeys(name for name in (*self.group, *self.features, *single) if name is not None))


def check_columns(used: Iterable[str], there: Sequence[str], where: str = "the table") -> None:
    """Do all columns exist?

    :raises ValueError: if one does not, naming the closest, or a name stands for two columns
    """
    for name in used:
        if name not in there:
            shown = ", ".join(repr(each) for each in there[:12]) + (", ..." if len(there) > 12 else "")
            raise ValueError(f"{where} has no column {name!r}{did_you_mean(name, there)}: it has {shown}")
        if there.count(name) > 1:
            raise ValueError(f"{where} must have one column {name!r}, got {there.count(name)}")


def _names(argument: str, value: Any) -> tuple[str, ...]:
    listed = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(name, str) and name for name in listed):
        raise ValueError(f"{argument} must be names of columns, got {value!r}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"{argument} must not repeat a column, got {value!r}")
    return listed
