"""Checks of arguments, with one form of error: argument, what is allowed, what came."""

import math
import numbers
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray


def integer(name: str, value: Any, low: int) -> int:
    """``value`` as int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be a {'positive' if low else 'non-negative'} integer, got {value!r}")
    return int(value)


def number(name: str, value: Any) -> float:
    """``value`` as float."""
    try:
        finite = not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        finite = False
    if not finite:
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas' NA and a masked entry of an array; not an array or a column."""
    if hasattr(value, "__array__") and np.ndim(value):
        return False
    try:
        masked = isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)
        return value is None or masked or bool(value != value)
    except TypeError:  # pandas.NA
        return True


def out_of_array(value: Any) -> Any:
    """The plain number of an array or tensor without axes, the list of one with axes; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def as_array(values: Any, dtype: Any = None) -> NDArray[Any]:
    """``values`` as an array of ``dtype``, which must be able to hold NaN where entries are masked: these are NaN."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = np.ma.filled(values.astype(np.float64 if values.dtype.kind in "biuf" else object), np.nan)
    return np.asarray(values, dtype=dtype)


def columns(name: str, value: Any) -> tuple[int, ...]:
    """Column numbers as a tuple of different non-negative ints."""
    numbers_ = tuple(map(int, value))
    if len(set(numbers_)) < len(numbers_):
        raise ValueError(f"{name} must not repeat a column, got {value!r}")
    return numbers_


def actions(name: str, value: Any) -> tuple[int, ...]:
    """A non-empty set of action numbers as a sorted tuple."""
    given = list(value)
    if not given or any(isinstance(a, bool) or not isinstance(a, numbers.Integral) for a in given):
        raise ValueError(f"{name} must hold at least one action number, got {value!r}")
    return tuple(sorted({int(action) for action in given}))


def function_of_vectors(name: str, function: Callable[..., Any], width: int, n_arguments: int = 1) -> None:
    """Refuses a function that does not map vectors (..., width) to (...).

    It is tried on more vectors than a vector has entries, of which ``lambda v: v[0]`` would pick one by mistake.
    """
    vectors = [np.zeros((width + 1, width)) for _ in range(n_arguments)]
    wanted = f"{name} as a function must map (..., {width}) to (...), as lambda v: v[..., 0] does"
    try:
        with np.errstate(all="ignore"):
            shape = np.shape(function(*vectors))
    except Exception as error:
        raise ValueError(f"{wanted}, but of {width + 1} vectors it raised {error!r}") from error
    if shape != (width + 1,):
        raise ValueError(f"{wanted}, but of {width + 1} vectors it made shape {shape}")


def on_copies(function: Callable[..., Any], *vectors: Any) -> Any:
    """``function`` of copies of the vectors, for functions of users, which may sort in place."""
    return function(*map(np.array, vectors))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """ " (did you mean 'SP'?)", or nothing if no known name is close in whatever case; the end of an error message."""
    spelt = {each.lower(): each for each in known}
    nearest = get_close_matches(str(name).lower(), spelt, 1)
    return f" (did you mean {spelt[nearest[0]]!r}?)" if nearest else ""


def one_of(name: str, value: Any, known: Iterable[str], otherwise: str = "") -> None:
    """Refuses a name that is not known; ``otherwise`` says what else is allowed, as in "a callable"."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        allowed = f"{otherwise} or one of" if otherwise else "one of"
        raise ValueError(f"{name} must be {allowed} {names}, got {value!r}{did_you_mean(str(value), names)}")
