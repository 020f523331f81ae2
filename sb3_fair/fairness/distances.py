"""Distances between individuals: HMOM, HEOM, Bray-Curtis, kernels.

u, v are feature vectors of length p, numerical or nominal column by column; with

- S = sum of (u - v)^2 over the numerical columns + number of nominal columns that differ,
- M = sum of |u - v| over the numerical columns + number of nominal columns that differ,

=============  ==========================================  =============================
name           raw distance                                normalised to [0, 1]
=============  ==========================================  =============================
``heom``       sqrt(S) (``root=True``), S (``root=False``) sqrt(S / p), S / p
``hmom``       M                                           M / p
``braycurtis`` sum |u - v| / sum |u + v|                   the same
a callable     f(u, V) -> one number per row of V,         divided by ``scale``, if given
               or f(u, v) -> a number
=============  ==========================================  =============================

Features in [0, 1] give normalised distances in [0, 1]. ``braycurtis`` takes nominal columns as numbers too, so that it
depends on how names are coded.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import Numbers, Positive, checked
from sb3_fair.fairness.validation import columns, one_of

Array: TypeAlias = NDArray[np.float64]
DISTANCES = ("heom", "hmom", "braycurtis")
SLACK = 1e-9  # rounding errors of a feature at the end of its range
_CHUNK = 4_000_000  # numbers in the largest temporary array


@checked
@dataclass(frozen=True)
class Distance:
    """A distance between people, for IF, LIP and CSC.

    :param name: ``"heom"`` (Wilson and Martinez 1997), ``"hmom"``, ``"braycurtis"`` (Bray and Curtis 1957), which takes
        the codes of nominal columns as amounts, or a callable f(u, V) -> vector of distances of u to the rows of V, or
        f(u, v) -> float
    :param normalise: False: IF and LIP use the raw distance
    :param kernel: ``"exp"``: d = exp(-lam * raw), the exponential kernel of Cimpean et al. (FAReL, Eqs. 12-13).
        **This is a similarity (1 for identical people), not a distance.** It enters IF and LIP only; CSC always looks
        for neighbours by raw distance
    :param lam: of the kernel, positive
    :param root: of ``heom``; None: True without a kernel, False with it (the published experiments used exp(-0.1 S))
    :param scale: of a callable: what its values are divided by
    :raises ValueError: if an argument is not allowed
    """

    name: str | Callable[..., Any] = "hmom"
    normalise: bool = True
    kernel: Literal["exp"] | None = None
    lam: Positive = 0.1
    root: bool | None = None
    scale: Positive | None = None

    def __post_init__(self) -> None:
        if not callable(self.name):
            one_of("distance name", self.name, DISTANCES, "a callable")
        if self.root is not None and self.name != "heom":
            raise ValueError(f"root is only for distance 'heom', got root={self.root!r} with {self.name!r}")
        if self.scale is not None and not callable(self.name):
            raise ValueError(f"scale is only for a callable, got {self.scale!r}")

    @property
    def label(self) -> str:
        """Short name, as in "IF@heom"."""
        name = getattr(self.name, "__name__", type(self.name).__name__) if callable(self.name) else self.name
        return name if self.kernel is None else f"{name}-{self.kernel}"


DistanceLike: TypeAlias = str | Callable[..., Any] | Distance


class Metric:
    """A distance whose nominal columns are known, on arrays: many newcomers against many people at once."""

    def __init__(self, distance: Any, nominal: Sequence[int] = ()) -> None:
        self.distance = distance if isinstance(distance, Distance) else Distance(distance)
        self.label = self.distance.label
        self._nominal = columns("nominal", nominal)
        self._nominal_columns = _slice_if_possible(self._nominal)
        self._function = self.distance.name
        self._takes_rows: bool | None = None
        root = self.distance.kernel is None if self.distance.root is None else self.distance.root
        self._rooted = self._function == "heom" and root

    def check(self, features: Array) -> None:
        """Can these features (m, d) be compared?"""
        if self._nominal and max(self._nominal) >= features.shape[1]:
            raise ValueError(f"nominal has column {max(self._nominal)}, but features have {features.shape[1]} columns")
        if self._function == "braycurtis" and np.minimum.reduce(features, axis=None) < 0:
            raise ValueError(f"features must not be negative with distance 'braycurtis', got {features.min()}")
        if self._function in ("heom", "hmom") and self.distance.kernel is None:
            self._check_range(features)
        if callable(self._function) and self._takes_rows is None:
            self._takes_rows = self._probe(self._function, features[0])

    def _check_range(self, features: Array) -> None:
        """These distances are normalised for numerical features in [0, 1]."""
        numerical = features
        if self._nominal:
            numerical = features.take(other_columns(self._nominal, features.shape[1]), axis=1)
        low, high = (extreme.reduce(numerical, axis=None, initial=0.5) for extreme in (np.minimum, np.maximum))
        if low < -SLACK or high > 1 + SLACK:
            raise ValueError(
                f"features must be in [0, 1] with distance {self._function!r}, got {low if low < -SLACK else high}: "
                "low and high of FairnessSpec scale them"
            )

    def raw(self, newcomers: Array, people: Array, absent: Array | None = None) -> Array:
        """Raw distances (m, w).

        :param newcomers: (m, d), checked
        :param people: (m or 1, d, w): the w people that each newcomer is compared with
        :param absent: (m or 1, w), 0 for those who exist, None: all do. The value for others is any finite number
        """
        if callable(self._function):
            return self._called(self._function, newcomers, people, absent)
        differences = people - newcomers[:, :, None]
        np.abs(differences, out=differences)
        if self._function == "braycurtis":
            together = np.add.reduce(people + newcomers[:, :, None], axis=1)
            return np.add.reduce(differences, axis=1) / (together + (together == 0))
        if self._nominal:
            differences[:, self._nominal_columns] = np.sign(differences[:, self._nominal_columns])
        if self._function == "heom":
            np.square(differences, out=differences)
        distances: Array = np.add.reduce(differences, axis=1)
        return np.sqrt(distances, out=distances) if self._rooted else distances

    def value(self, raw: Array, n_features: int) -> Array:
        """d for IF and LIP from the raw distances: normalised, or the kernel's similarity."""
        if self.distance.kernel == "exp":
            return np.exp(raw * -self.distance.lam)
        if self.distance.scale is not None:
            return raw * (1.0 / self.distance.scale)
        if not self.distance.normalise or self._function not in ("heom", "hmom"):
            return raw * 1.0
        return raw * (1.0 / (math.sqrt(n_features) if self._rooted else n_features))

    def _probe(self, function: Callable[..., Any], person: Array) -> bool:
        """Does a callable take all people at once? Asked once, with more copies of one person than it has features."""
        crowd = np.tile(person, (len(person) + 1, 1))
        try:
            answer: Any = np.shape(function(person.copy(), crowd))
        except Exception as error:
            answer = repr(error)
        if answer == (len(crowd),):
            return True
        try:
            float(function(person.copy(), person.copy()))
        except Exception as error:
            raise ValueError(
                f"distance must give one number per row of V for f(u, V), or a number for f(u, v); {self.label} gave "
                f"{f'shape {answer}' if isinstance(answer, tuple) else answer} and {error!r}"
            ) from error
        return False

    def _called(self, function: Callable[..., Any], newcomers: Array, people: Array, absent: Array | None) -> Array:
        """Raw distances by a function of the user, who gets copies, as it may work in place."""
        distances = np.zeros((len(newcomers), people.shape[2]))
        for row, newcomer in enumerate(newcomers):
            crowd = people[row if len(people) > 1 else 0].T
            who = slice(None) if absent is None else absent[row if len(absent) > 1 else 0] == 0
            those = np.array(crowd[who])
            if self._takes_rows and len(those):
                distances[row, who] = function(newcomer.copy(), those)
            else:
                pairs = zip(np.repeat(newcomer[None], len(those), axis=0), those, strict=True)
                distances[row, who] = [float(function(one, other)) for one, other in pairs]
        return distances


@cache
def other_columns(these: tuple[int, ...], width: int) -> NDArray[np.intp]:
    """The columns of so many that are not among ``these``."""
    return np.array([column for column in range(width) if column not in these], dtype=np.intp)


def _slice_if_possible(numbers: tuple[int, ...]) -> Any:
    """Neighbouring columns as a slice, which numpy reads and writes in place."""
    ordered = sorted(numbers)
    if ordered and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return slice(ordered[0], ordered[-1] + 1)
    return ordered


def blocks(features: Array) -> list[slice]:
    """Rows of ``features`` (n, d) in portions whose distances to all rows fit into a bounded temporary array."""
    size = max(1, _CHUNK // max(1, features.size))
    return [slice(start, start + size) for start in range(0, len(features), size)]


def feature_array(features: ArrayLike) -> Array:
    """``features`` as (n, d) float64."""
    array = np.asarray(features, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"features must have shape (individuals, columns), got shape {array.shape}")
    return array


@checked
def distance_matrix(
    features: Numbers,
    *,
    distance: DistanceLike = "hmom",
    nominal: Sequence[int] = (),
    normalise: bool | None = None,
    kernel: Literal["exp"] | None = None,
    lam: Positive = 0.1,
    root: bool | None = None,
) -> Array:
    """All distances between people as IF uses them, shape (n, n).

    :param features: (n, d), numbers in [0, 1]
    :param distance: a name or callable, refined by the further arguments, or a whole :class:`Distance`
    :param nominal: column numbers whose values are names
    :raises ValueError: if an argument is not allowed
    """
    if not isinstance(distance, Distance):
        distance = Distance(distance, True if normalise is None else normalise, kernel, lam, root)
    people = feature_array(features)
    metric = Metric(distance, nominal)
    if not len(people):
        return np.zeros((0, 0))
    metric.check(people)
    return np.concatenate(
        [metric.value(metric.raw(people[rows], people.T[None]), people.shape[1]) for rows in blocks(people)]
    )
