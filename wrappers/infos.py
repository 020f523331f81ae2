"""Infos: lazy info dicts over the arrays of a batched step.

Two forms carry the same content. *Dicts*: one plain dict per copy, as ``DummyVecEnv`` hands out; what is missing is
None. *Record*: one dict of arrays with the copies as first axis, shared by light :class:`Info` objects that cut out
their entry when asked, and are made when asked for (:class:`Infos`); what is missing is NaN. :func:`stack` reads and
:func:`publish` writes either form. What a wrapper sets in an info stays its own, and the record knows the key; changes
inside an entry are not noticed.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from enum import Enum
from functools import wraps
from itertools import chain
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.spec import individual_in
from sb3_fair.fairness.validation import as_array, is_missing

Record: TypeAlias = dict[str, Any]
NO_VECTOR = (
    "env must have a vector reward in info['vector_reward']: make it with objectives=('R', 'SP'), wrap it in "
    "VectorReward, or use a MO-Gymnasium env"
)


class Shared(Record):
    """The record behind the infos of a step, and the keys under which one of them may have something of its own."""

    __slots__ = ("own",)

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.own: set[str] = set()


def cut(value: Any, index: int, rows: Any = ...) -> Any:
    """Entry of copy ``index``: plain Python numbers, None instead of NaN, arrays where a copy has several numbers.

    :param value: an array with the copies as first axis, or a (nested) dict or named tuple of such arrays. A boolean
        array ``present`` (n, m) in a dict selects which of the m rows of its neighbours exist.
    :param rows: which rows of the copy's entry exist
    """
    if _is_named(value):
        return value._make([cut(entry, index, rows) for entry in value])
    if isinstance(value, dict):
        present = value.get("present")
        if present is None:
            return {key: cut(entry, index, rows) for key, entry in value.items()}
        return {key: cut(entry, index, present[index]) for key, entry in value.items() if key != "present"}
    entry = value[index]
    return _without_nan(entry if rows is ... or np.ndim(entry) == 0 else entry[rows])


def _without_nan(entry: Any) -> Any:
    if isinstance(entry, np.ndarray):
        if entry.ndim and entry.dtype.kind == "f" and np.isnan(entry).any():
            known = entry.astype(object)
            known[np.isnan(entry)] = None
            return known
        return entry.copy() if entry.ndim else _without_nan(entry[()])
    if isinstance(entry, np.generic):
        entry = entry.item()
    return None if isinstance(entry, float) and entry != entry else entry


REQUIRED: Any = object()
"""In place of a value that counts where a copy published none: there is none."""
UNREAD: Any = object()
"""Stands in the storage of an :class:`Info` or :class:`Infos` for what has not been cut out of the record yet. C code
that looks into the storage finds it not empty, as does ``json`` when it decides to ask for the items."""


def _of_all(base: type, names: str, note: Callable[..., Any] = lambda *_: None) -> Callable[[type], type]:
    """Gives a class the methods ``names`` of ``base``, which first ``note`` what they change and make everything that
    has not been read yet."""

    def methods(cls: type) -> type:
        for name in names.split():
            setattr(cls, name, _on_filled(getattr(base, name), note))
        return cls

    return methods


def _on_filled(method: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def on_filled(lazy: Any, *arguments: Any, **options: Any) -> Any:
        note(lazy, *arguments)
        return method(lazy._filled(), *arguments, **options)

    return on_filled


@_of_all(dict, "__iter__ __reversed__ __len__ __eq__ __ne__ __repr__ __or__ __ror__ keys items values")
@_of_all(dict, "__delitem__ pop", lambda info, key, *_: info.record.own.add(key))
@_of_all(dict, "popitem clear", lambda info: info.record.own.update(info.record))
class Info(dict[str, Any]):
    """The info of one copy: a dict that cuts an entry out of the shared record when it is asked for.

    Single entries are read one by one; every other method of a dict fills in all entries first, in the order of the
    record. ``copy()`` is linked to the record too, deep copies and pickles are plain dicts.
    """

    __slots__ = ("index", "record")
    fromkeys = staticmethod(dict.fromkeys)  # type: ignore[assignment]
    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    _put = dict.__setitem__

    def __init__(self, record: Shared, index: int) -> None:
        self._put(UNREAD, None)
        self.record = record
        self.index = index

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)
        self.record.own.add(key)

    def __ior__(self, entries: Any) -> "Info":  # type: ignore[override,misc]
        self.update(entries)
        return self

    def __missing__(self, key: str) -> Any:
        if key not in self.record or not dict.__contains__(self, UNREAD):
            raise KeyError(key)
        value = cut(self.record[key], self.index)
        self._put(key, value)
        return value

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or (key in self.record and dict.__contains__(self, UNREAD))

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self.record:  # as SB3 asks for every copy in every step
            return dict.get(self, key, default)
        try:
            return self[key]
        except KeyError:  # taken out
            return default

    def _filled(self) -> "Info":
        if dict.pop(self, UNREAD, self) is None:
            set_before = dict(dict.items(self))
            dict.clear(self)
            for key, value in self.record.items():
                self._put(key, set_before[key] if key in set_before else cut(value, self.index))
            dict.update(self, set_before)
        return self

    def renew(self, key: str) -> None:
        """The record has another value under ``key``."""
        if dict.__contains__(self, UNREAD):
            dict.pop(self, key, None)
        else:
            self._put(key, cut(self.record[key], self.index))

    def copy(self) -> "Info":
        clone = Info(self.record, self.index)
        dict.clear(clone)
        dict.update(clone, dict.items(self))
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return deepcopy(dict(self), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@_of_all(
    list,
    "__iter__ __reversed__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __repr__ "
    "__add__ __mul__ __rmul__ copy count index",
)
@_of_all(
    list,
    "__iadd__ __imul__ __setitem__ __delitem__ append clear extend insert pop remove reverse sort",
    lambda infos, *_: setattr(infos, "mixed", True),
)
class Infos(list[Any]):
    """The infos of a step: a list with one :class:`Info` per copy on a shared record, each made when it is asked for.

    Every other method of a list makes all of them first; deep copies and pickles are plain lists of plain dicts.

    :param record: arrays with the copies as first axis
    :param n: number of copies
    """

    def __init__(self, record: Record, n: int) -> None:
        super().__init__([UNREAD] * n)
        self.record = Shared(record)
        self.mixed = False  # whether others may be among them by now, or they in another order
        self._made: list[Info] = []
        self._whole = False

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list.__getitem__(self._filled(), index)
        info = super().__getitem__(index)
        if info is UNREAD:
            index = range(len(self))[index]
            info = Info(self.record, index)
            super().__setitem__(index, info)
            self._made.append(info)
        return info

    def made(self) -> Iterator[Any]:
        """Those that somebody asked for."""
        return list.__iter__(self) if self._whole else iter(self._made)

    def _filled(self) -> "Infos":
        if not self._whole:
            self._whole = True
            record = self.record
            for index, info in enumerate(list.__iter__(self)):
                if info is UNREAD:
                    info = dict.__new__(Info)  # as Info(record, index), whose call would take as long as all of this
                    dict.__setitem__(info, UNREAD, None)
                    info.record = record
                    info.index = index
                    list.__setitem__(self, index, info)
        return self

    def __radd__(self, other: list[Any]) -> list[Any]:
        return other + list(self)  # list has none of its own, and looks behind our back

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def record_of(infos: Sequence[Mapping[str, Any]], *keys: str) -> Shared | None:
    """The shared record behind the infos of one step, None if they are plain dicts or of several steps, or if one of
    them may have something of its own under one of ``keys``."""
    if isinstance(infos, Infos) and not infos.mixed:
        record = infos.record
    elif infos and isinstance(infos[0], Info):
        record, first = infos[0].record, infos[0].index
        for place, info in enumerate(infos):
            if not (isinstance(info, Info) and info.record is record and info.index == first + place):
                return None
    else:
        return None
    return record if record.own.isdisjoint(keys) else None


def taken_over(infos: list[Any]) -> list[Any]:
    """The infos of a step to add to: copies of plain dicts, which environments may keep, or share among copies."""
    return infos if record_of(infos) is not None else [info.copy() for info in infos]


def tells(infos: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a copy published something under ``key``."""
    record = record_of(infos, key)
    return any(key in info for info in infos) if record is None else key in record


def stack(infos: Sequence[Mapping[str, Any]], key: str, otherwise: Any = REQUIRED) -> Any:
    """What all copies published under ``key``, copies as first axis, NaN for None; dicts and named tuples of arrays.

    :param otherwise: what counts as published by a copy that did not publish it
    :raises KeyError: if a copy did not publish it, and nothing is said to count instead
    """
    record = record_of(infos, key)
    if record is not None and key in record:
        return record[key]
    if otherwise is not REQUIRED:
        return stacked([info.get(key, otherwise) for info in infos])
    for info in infos:
        if key not in info:
            raise KeyError(f"{key!r} is not in the infos of this environment, which have {sorted(info)}")
    return stacked([info[key] for info in infos])


def vector_rewards(infos: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """The vector rewards (n, K) of one step.

    :raises ValueError: if the environment has none
    """
    try:
        return np.asarray(stack(infos, "vector_reward"), dtype=np.float64)
    except KeyError as error:
        raise ValueError(NO_VECTOR) from error


def figures_in(info: Mapping[str, Any]) -> dict[str, Any]:
    """``info["fairness"]``, empty where it is missing or None."""
    told = info.get("fairness")
    if told is not None and not isinstance(told, Mapping):
        raise TypeError(f"info['fairness'] must be a dict of figures by name, got {told!r}")
    return dict(told or {})


def figures_of(infos: Sequence[Mapping[str, Any]]) -> Record:
    """The figures that the copies have under "fairness": name -> (n, ...), NaN where a copy has none."""
    record = record_of(infos, "fairness")
    if record is not None:
        return record.get("fairness", {})
    found: Record = stacked([figures_in(info) for info in infos])
    return found


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the labels (n,) are missing, (n,)."""
    if labels.dtype.kind not in "Of":
        return np.zeros(len(labels), dtype=np.bool_)
    return np.array([is_missing(label) for label in labels.tolist()], dtype=np.bool_)


def stack_people(infos: Sequence[Mapping[str, Any]]) -> Record:
    """What all copies published of their individuals, as :func:`stacked_people`."""
    if record_of(infos, "individual") is not None:
        return stack(infos, "individual")
    told = [individual_in(info) for info in infos]
    if not all(told):
        raise ValueError(f"info['individual'] must tell whom every copy decided on, or be missing in all, got {told}")
    return stacked_people(told)


def people_in(infos: Sequence[dict[str, Any]]) -> Record | None:
    """What the copies tell of whom they decided on; ``present`` says in which there was somebody. None: in none."""
    if record_of(infos, "individual") is not None:
        return stack_people(infos)
    here = np.array([info.get("individual") is not None for info in infos])
    if not here.any():
        return None
    somebody = infos[int(here.argmax())]
    people = stack_people([info if is_ else somebody for info, is_ in zip(infos, here, strict=True)])
    if not here.all():
        present = here[:, None] if np.ndim(people.get("id", 0)) > 1 else here
        people = {**people, "present": people.get("present", True) & present}
    return people


def stacked_people(told: Sequence[Mapping[str, Any]]) -> Record:
    """The individuals of all copies as arrays; where their numbers of them differ, ``present`` (n, m) tells who is
    there."""
    told = [{**those, "group": _labels(those["group"])} if "group" in those else those for those in told]
    sizes = [len(those["action"]) if np.ndim(those.get("action", 0)) else -1 for those in told]
    if len(set(sizes)) < 2 or -1 in sizes:
        return stacked(told)
    most = max(sizes)
    donor = told[sizes.index(most)]
    padded = [
        {key: _padded(value, donor.get(key), size, most) for key, value in those.items()}
        for those, size in zip(told, sizes, strict=True)
    ]
    return {**stacked(padded), "present": np.arange(most) < np.array(sizes)[:, None]}


def _labels(group: Any) -> Any:
    """The labels of a copy, integers that no float holds and names of several people as objects: numpy makes floats of
    integers that it joins with NaN, names of numbers that it joins with names, and columns of tuples."""
    if isinstance(group, np.ndarray):
        return group.astype(object) if group.dtype.kind in "SU" else group
    if _is_large(group):
        return np.array(int(group), dtype=object)
    if isinstance(group, list) and any(isinstance(label, (str, bytes, tuple)) or _is_large(label) for label in group):
        return np.fromiter(group, dtype=object)
    return {name: _labels(labels) for name, labels in group.items()} if isinstance(group, dict) else group


def _padded(value: Any, other: Any, size: int, most: int) -> Any:
    """The entries of ``size`` people and, in the places up to ``most``, of somebody else's."""
    if isinstance(value, Mapping):
        return {key: _padded(entry, other[key], size, most) for key, entry in value.items()}
    if np.ndim(other) == 0 or len(other) != most:  # of the copy, not of its people
        return value
    return np.concatenate([as_array(value), as_array(other)[size:]]) if size else as_array(other)


def stacked(values: Sequence[Any]) -> Any:
    """The entries of all copies as one array, NaN for None; a dict of arrays for dicts, with the keys of all of them,
    objects for names and integers beyond int64."""
    first: Any = next((value for value in values if value is not None), np.nan)
    if _is_named(first):
        return first._make([stacked(column) for column in zip(*values, strict=True)])
    if isinstance(first, dict):
        told = [value or {} for value in values]
        return {key: stacked([each.get(key) for each in told]) for key in dict.fromkeys(chain(*told))}
    if not all(value is None or (is_numeric(value) and not _is_large(value, 2**63)) for value in values):
        labels = np.empty(len(values), dtype=object)
        for index, value in enumerate(values):
            labels[index] = value
        return labels
    nothing = np.full(np.shape(first), np.nan)
    array = np.stack([nothing if value is None else as_array(value) for value in values])
    if array.dtype != object or any(isinstance(entry, (str, bytes)) or _is_large(entry) for entry in array.flat):
        return array  # "1" is no number
    try:
        return array.astype(float)
    except (TypeError, ValueError):  # other labels of several people
        return array


def is_numeric(value: Any) -> bool:
    """Numbers and arrays, tensors included, whose labels would else all be different."""
    return (isinstance(value, Number | list) or hasattr(value, "__array__")) and not isinstance(value, str | Enum)


def _is_large(value: Any, limit: int = 2**53) -> bool:
    return isinstance(value, int | np.integer) and not -limit <= int(value) < limit


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_make")


def publish(infos: Sequence[dict[str, Any]], key: str, value: Any) -> None:
    """Hands ``value`` (arrays with the copies as first axis, or a dict of them) to every copy under ``key``."""
    record = record_of(infos)
    if record is not None:
        record[key] = value
        record.own.discard(key)
    for index, info in enumerate(infos.made() if isinstance(infos, Infos) else infos):
        if isinstance(info, Info) and info.record is record:
            info.renew(key)
        else:
            info[key] = cut(value, index)


def publish_figures(infos: Sequence[dict[str, Any]], figures: Record) -> None:
    """Adds ``figures``, arrays by name, to those that the copies have under "fairness"."""
    publish(infos, "fairness", {**figures_of(infos), **figures})
