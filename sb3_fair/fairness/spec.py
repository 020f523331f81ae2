"""FairnessSpec: individuals, groups, favourable actions, feedback and notions of an environment."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Count, checked
from sb3_fair.fairness.distances import SLACK, DistanceLike, other_columns
from sb3_fair.fairness.histories.history import DEFAULT_HISTORY
from sb3_fair.fairness.notions.table import FeedbackMissing
from sb3_fair.fairness.tracking.partition import check_groups
from sb3_fair.fairness.tracking.requests import Attribute, attribute_name
from sb3_fair.fairness.tracking.tracker import Tracker
from sb3_fair.fairness.validation import actions, as_array, columns, integer, is_missing


class Individual(NamedTuple):
    """The individual of a decision, ready for :meth:`Tracker.add`; arrays if a step decides on several.

    :param group: a label, or a dict attribute -> label
    :param features: (d,) scaled, without the sensitive columns
    :param feedback: the right action, None where unknown
    """

    group: Any
    features: NDArray[np.float64] | None
    feedback: Any


@checked
@dataclass(frozen=True, kw_only=True)
class FairnessSpec:
    """Defines the fairness MDP of an environment: individuals, groups, favourable actions, feedback and notions.

    Callables get the observation on which the action was chosen and the info that the step returned. If ``group``,
    ``features`` or ``feedback`` is None, it is read from ``info["individual"]``. A spec with named functions pickles.

    :param group: f(obs, info) -> label, or the name of a key in info; a tuple of these is their product partition
        (each combination a group); a list of these, or a dict name -> one of these, asks for several attributes
    :param groups: the labels to compare, None: all that occur; with several attributes a dict attribute -> labels
    :param features: columns of the observation (slice or numbers), a key in info, or f(obs, info) -> vector
    :param nominal: columns, within the features, whose values are names
    :param sensitive: columns, within the features, that tell the groups apart
    :param feedback: f(obs, action, info) -> the right action or None, or the name of a key in info, which is
        there in every step, None while the right action is unknown
    :param low: lowest value of each feature, or of all; with ``high``: scales the features to [0, 1]
    :param high: highest value
    :param notions: names from :data:`NOTIONS`, optionally "SP@gender" or "IF@heom" for one attribute or distance
    :param history: which past decisions count, one recipe or a dict notion -> recipe
    :param distance: between people: a name, a callable, a :class:`Distance`, or a list of them
    :param measures: the scenario's short- and long-term measures
    :param favourable: the favourable actions; or f(actions) -> bool, for actions of any space: from (n, ...) to (n,),
        or to (n, m) if each action decides on m people. Feedback is then 1 if a favourable action would have been
        right, else 0
    :param k: number of neighbours in CSC
    :param exclude_sensitive: leave the sensitive columns out of the distances
    :param group_names: names of integer codes, for reports
    :param feature_names: names of the features, for reports and error messages
    :param feedback_missing: what unknown outcomes mean, see :func:`group_notion`
    :param feedback_delay: for simulations: feedback becomes known this many steps later; a number, or f(obs, info) -> a
        number, None for never
    :param treatment: what IF and LIP compare instead of action probabilities: f(actions (n, ...)) -> (n, e), whose
        Euclidean distances should be in [0, 1]. None: Hellinger distance of the probabilities; for Box actions, the
        Euclidean distance of the actions, scaled by the bounds of the space
    :raises ValueError: if an argument is not allowed
    """

    group: Any = None
    groups: Iterable[Hashable] | Mapping[str, Iterable[Hashable] | None] | None = None
    features: Annotated[Any, str | slice | Callable[..., Any] | Sequence[int] | None] = None
    nominal: Sequence[int] = ()
    sensitive: Sequence[int] = ()
    feedback: str | Callable[..., Any] | None = None
    low: Any = None
    high: Any = None
    notions: Iterable[str] = ("SP",)
    history: Any = DEFAULT_HISTORY
    distance: DistanceLike | Sequence[DistanceLike] = "hmom"
    measures: Any = None
    favourable: Annotated[Any, Iterable[int] | Callable[..., Any]] = (1,)
    k: int = 5
    exclude_sensitive: bool = True
    group_names: Annotated[Any, Sequence[str] | Mapping[str, Sequence[str]] | None] = None
    feature_names: Sequence[str] | None = None
    feedback_missing: FeedbackMissing = "undefined"
    feedback_delay: Count | Callable[..., Any] | None = None
    treatment: Callable[..., Any] | None = None
    attributes: tuple[Attribute, ...] = field(init=False, repr=False, compare=False)
    _parts: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._set("notions", tuple(self.notions))
        self._set("nominal", columns("nominal", self.nominal))
        self._set("sensitive", columns("sensitive", self.sensitive))
        if not callable(self.favourable):
            self._set("favourable", actions("favourable", self.favourable))
        if self.groups is not None and not isinstance(self.groups, Mapping):
            self._set("groups", check_groups(self.groups))
        parts, attributes = _attributes(self.group)
        self._set("_parts", parts)
        self._set("attributes", attributes)
        if not (self.features is None or callable(self.features) or isinstance(self.features, (str, slice))):
            self._set("features", columns("features", self.features))
            if not self.features:
                raise ValueError("features must be at least one column, got none")
        self._check_scale()
        self.tracker(1)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_scale(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError(f"low and high must be given together, got low={self.low!r}, high={self.high!r}")
        if self.low is None:
            return
        try:
            low, high = np.broadcast_arrays(np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float))
        except ValueError as error:
            raise ValueError(
                f"low and high must have one number per feature, got {self.low!r}, {self.high!r}"
            ) from error
        if low.ndim > 1 or not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
            raise ValueError(f"low must be finite and below high, got low={self.low!r}, high={self.high!r}")
        for name, bound in (("low", low), ("high", high)):
            self._set(name, bound.tolist() if bound.ndim == 0 else tuple(bound.tolist()))

    @property
    def calls_for_group(self) -> bool:
        """Is a label of the individual computed by a callable, or read outside ``info["individual"]``?"""
        return isinstance(self.group, str) or any(callable(source) for source in self._parts.values())

    @property
    def compared_groups(self) -> tuple[Hashable, ...] | None:
        """The labels that are compared, where there is one attribute; None: all."""
        return None if self.groups is None or self.attributes else tuple(self.groups)

    def compared(self, attribute: str) -> Sequence[Hashable] | None:
        """The labels of an attribute that are compared, None: all; ``""`` where there is no attribute."""
        found: Any = self.groups.get(attribute) if isinstance(self.groups, Mapping) else self.groups
        return found

    def parts_of(self, attribute: str) -> tuple[str, ...]:
        """The attributes that a product partition such as "gender+nationality" is of; of others, themselves."""
        products = {attribute_name(each): each for each in self.attributes if not isinstance(each, str)}
        return products.get(attribute, (attribute,))

    def group_name(self, attribute: str, label: Any) -> str:
        """What a group is called: by ``group_names`` if labels are their numbers."""
        parts = self.parts_of(attribute)
        if len(parts) > 1:
            named = [self.group_name(part, own) for part, own in zip(parts, label, strict=True)]
            return "+".join(repr(name) if "+" in name else name for name in named)
        names = self.group_names
        if isinstance(names, Mapping):
            names = names.get(attribute, ())
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # steps on nobody make floats of whole numbers
        return str(names[label]) if names and isinstance(label, int) and 0 <= label < len(names) else str(label)

    def finds_group_in(self, published: Mapping[str, Any]) -> bool:
        """Does an ``info["individual"]`` alone tell every label?"""
        group = published.get("group")
        return isinstance(group, Mapping) and all(source in group for source in self._parts.values())

    @property
    def selected_nominal(self) -> list[int]:
        """The nominal columns, numbered among those that :meth:`select` keeps."""
        excluded = self.sensitive if self.exclude_sensitive else ()
        return [c - sum(s < c for s in excluded) for c in self.nominal if c not in excluded]

    def tracker(self, n: int, n_actions: int | None = None) -> Tracker:
        """A fresh tracker of ``notions`` for n copies of the environment."""
        return Tracker(
            n,
            notions=self.notions,
            history=self.history,
            distance=self.distance,
            nominal=self.selected_nominal,
            groups=self.groups,
            attributes=self.attributes,
            favourable=(1,) if callable(self.favourable) else self.favourable,
            k=self.k,
            n_actions=n_actions,
            feedback_missing=self.feedback_missing,
            group_name=self.group_name if self.group_names else None,
        )

    def decided(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The actions, or with a predicate ``favourable`` 1 where it holds and 0 elsewhere, (n,) or (n, m).

        :param actions: (n, ...)
        :raises ValueError: if the predicate raises, or does not return a bool per action
        """
        if not callable(self.favourable):
            return actions
        found = np.asarray(_called("favourable", self.favourable, actions))
        if found.ndim not in (1, 2) or len(found) != len(actions) or found.dtype.kind not in "biu":
            raise ValueError(
                f"favourable must return one bool per action ({len(actions)}), as lambda actions: actions[:, 0] > 0 "
                f"does, got shape {found.shape} of {found.dtype}"
            )
        return found.astype(np.int64)

    def delay(self, obs: Any, info: Mapping[str, Any]) -> int | None:
        """After how many steps the feedback on a step becomes known, None: never."""
        steps = self.feedback_delay
        if callable(steps):
            steps = _called("feedback_delay", steps, obs, info)
        return None if steps is None else integer("feedback_delay", steps, 0)

    def individual(self, obs: Any, action: Any, info: Mapping[str, Any]) -> Individual:
        """The individual that a step decided on.

        :param obs: the observation on which the action was chosen
        :param info: what the step returned
        :raises ValueError: if a callable raises, a key is missing, or a feature is outside its range. A step decides
            on nobody, and its labels are None, if the keys of ``group`` are missing and the individual has the group
            None; several keys may also be missing together with the individual
        """
        record = individual_in(info)
        features = record.get("features") if self.features is None else self._features(obs, info)
        return Individual(
            self.group_of(obs, info),
            None if features is None else self.select(features),
            self._feedback(obs, action, info, record),
        )

    def select(self, features: Any) -> NDArray[np.float64]:
        """Features (..., all columns) scaled to [0, 1], without the sensitive columns: (..., d).

        :raises ValueError: if a feature is outside [low, high]; names the column
        """
        values = as_array(features, np.float64)
        if self.low is not None:
            values = self._scaled(values)
        if not (self.sensitive and self.exclude_sensitive):
            return values
        return values.take(_kept(self.sensitive, values.shape[-1]), axis=-1)

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = np.asarray(self.low), np.asarray(self.high)
        if low.ndim and values.shape[-1:] != low.shape:
            raise ValueError(f"features must have {len(low)} columns, as low and high, got {values.shape[-1]}")
        scaled = (values - low) / (high - low)
        outside = ~((scaled >= -SLACK) & (scaled <= 1 + SLACK))
        if outside.any():
            place = tuple(np.argwhere(outside)[0])
            column = int(place[-1])
            name = f" ({self.feature_names[column]})" if self.feature_names is not None else ""
            low, high = np.broadcast_to(low, values.shape[-1:]), np.broadcast_to(high, values.shape[-1:])
            raise ValueError(
                f"features must be within [low, high] = [{low[column]}, {high[column]}] in column {column}{name}, "
                f"got {values[place]}"
            )
        return np.clip(scaled, 0.0, 1.0)

    def group_of(self, obs: Any, info: Mapping[str, Any]) -> Any:
        """The label of the individual that a step decided on, or a dict attribute -> label; see :meth:`individual`."""
        record = individual_in(info)
        labels = {name: self._label(source, obs, info, record) for name, source in self._parts.items()}
        return labels if self.attributes else labels[""]

    def tells_group(self, info: Mapping[str, Any]) -> bool:
        """Do callables, or keys that ``info`` has, tell every label?"""
        return all(callable(source) or (source is not None and source in info) for source in self._parts.values())

    def _label(self, source: Any, obs: Any, info: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
        if callable(source):
            return _called("group", source, obs, info)
        published = record.get("group")
        if source is None:
            return published
        if isinstance(published, Mapping) and source in published:
            return published[source]
        return None if self._decides_on_nobody(info, record) else _entry("group", source, info)

    def _decides_on_nobody(self, info: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
        """Are the keys of labels missing because there is nobody, rather than misspelled?"""
        several = len(self._parts) > 1 and not self.calls_for_group
        unlabelled = is_missing(record.get("group")) and ("group" in record or (several and not record))
        return unlabelled and not any(source in info for source in self._parts.values())

    def _features(self, obs: Any, info: Mapping[str, Any]) -> Any:
        if callable(self.features):
            return _called("features", self.features, obs, info)
        if isinstance(self.features, str):
            return _entry("features", self.features, info)
        index = self.features if isinstance(self.features, slice) else list(self.features)
        return _called("features", lambda: np.asarray(obs)[..., index])

    def _feedback(self, obs: Any, action: Any, info: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
        if callable(self.feedback):
            value = _called("feedback", self.feedback, obs, action, info)
        elif self.feedback is None:
            value = record.get("feedback")
        else:
            value = _entry("feedback", self.feedback, info)
        return read_feedback(value)


def read_feedback(value: Any) -> Any:
    """The right action or actions as a float or an array of floats, None where there is none.

    :raises ValueError: if they are no numbers
    """
    if is_missing(value):
        return None
    try:
        known = as_array(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"feedback must be a number or an array of numbers, got {value!r}") from None
    return known if known.ndim else float(known)  # floats also where they are whole: others may be unknown


def is_labelled(person: Mapping[str, Any]) -> bool:
    """Has an ``info["individual"]`` a label, of several attributes at least one?"""
    group = person.get("group")
    return any(not is_missing(label) for label in (group.values() if isinstance(group, Mapping) else [group]))


def individual_in(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """``info["individual"]``, empty where it is missing or None."""
    told = info.get("individual")
    if isinstance(told, Mapping):
        return told
    if told is not None:
        raise TypeError(
            "info['individual'] must be a dict: of one person, or of several with an array per key "
            f"({{'group': array, 'action': array, ...}}), got {told!r}"
        )
    return {}


@cache
def _kept(sensitive: tuple[int, ...], width: int) -> NDArray[np.intp]:
    """The columns that are left of ``width``."""
    missing = [column for column in sensitive if column >= width]
    if missing:
        raise ValueError(f"sensitive has column {missing[0]}, but features have {width} columns")
    return other_columns(sensitive, width)


def _called(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise ValueError(f"FairnessSpec.{name} raised {error!r}") from error


def _entry(name: str, key: str, info: Mapping[str, Any]) -> Any:
    try:
        return info[key]
    except KeyError:
        raise ValueError(f"FairnessSpec.{name} asks for {key!r}, but info has only {sorted(map(str, info))}") from None


def _attributes(group: Any) -> tuple[dict[str, Any], tuple[Attribute, ...]]:
    """The sources of the labels by name, and the attributes made of them; without several: {"": source}, ()."""
    if group is None or isinstance(group, str) or callable(group):
        return {"": group}, ()
    parts: dict[str, Any] = {}

    def named(source: Any) -> str:
        name = getattr(source, "__name__", None) if callable(source) else source
        if not isinstance(name, str) or not name or name == "<lambda>":
            raise ValueError(
                f"group must consist of keys in info and named functions, or be a dict name -> these, got {source!r}"
            )
        if parts.setdefault(name, source) is not source and parts[name] != source:
            raise ValueError(f"group must not name two attributes {name!r}, got {group!r}")
        return name

    if isinstance(group, Mapping):
        parts.update(group)
        attributes: list[Attribute] = [str(name) for name in group]
        for source in group.values():
            if not callable(source):
                named(source)
        parts = dict(group)
    elif isinstance(group, tuple):
        attributes = [tuple(named(source) for source in group)]
    elif isinstance(group, list):
        attributes = [tuple(map(named, each)) if isinstance(each, tuple) else named(each) for each in group]
    else:
        raise ValueError(f"group must be a callable, a key in info, a tuple, a list or a dict of them, got {group!r}")
    if not attributes or len(set(attributes)) < len(attributes) or any(not attribute for attribute in attributes):
        raise ValueError(f"group must hold different attributes, got {group!r}")
    return parts, tuple(attributes)
