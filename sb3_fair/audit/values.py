"""Values of a column, chunk by chunk: labels as small integers, numbers, points in time.

A column is a numpy array, a list, or an array of pyarrow. Rows are counted from 1, below the header of a file.
"""

import math
import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc

from sb3_fair.fairness.validation import is_missing

Array: TypeAlias = NDArray[np.float64]
UNKNOWN = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "<na>", "?")
"""How files write that a value is not known; of a group only the empty text, since "NA" may be a country."""
MOST_LABELS = 1000
_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def text(value: Any, comma: bool = False) -> str:
    """A label as it is shown: whole numbers without a point, truth values in lower case also where a file has them as
    text, no blanks at the ends.

    :param comma: whether "1,0" is 1, as "1.0" always is
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    shown = (value.decode(errors="replace") if isinstance(value, bytes) else str(value)).strip()
    if shown.lower() in ("true", "false"):
        return shown.lower()
    whole = _WHOLE.fullmatch(shown.replace(",", ".") if comma else shown)
    return whole[1] if whole else shown


def rows_text(rows: NDArray[Any], start: int = 0) -> str:
    """ "row 3", or "rows 3, 8, 9 and 20 others", of indices from 0."""
    numbers = ", ".join(str(start + 1 + row) for row in rows[:3].tolist())
    more = f" and {len(rows) - 3:,} others" if len(rows) > 3 else ""
    return f"row{'s' * (len(rows) > 1)} {numbers}{more}"


def is_arrow(values: Any) -> bool:
    """Whether these are an array of pyarrow, in one piece or in chunks."""
    return isinstance(values, pa.Array | pa.ChunkedArray)


class Labels:
    """The different labels of a column, numbered from 1 in the order they were met; 0 is a missing one.

    :param name: of the column
    :param missing: texts, in lower case, that stand for a missing label
    :param most: how many labels there may be; None: any number
    :param comma: whether "1,0" is 1
    """

    def __init__(
        self, name: str, missing: tuple[str, ...] = ("",), most: int | None = MOST_LABELS, comma: bool = False
    ) -> None:
        self.name = name
        self.names: list[str] = []
        self._missing, self._most, self._comma = missing, most, comma
        self._of_text: dict[str, int] = {}

    def codes(self, values: Any) -> NDArray[np.int32]:
        """Codes (n,) of a chunk of the column (n,).

        :raises ValueError: if there are too many different labels, or lists and the like instead of labels
        """
        if is_arrow(values):
            try:
                # a dictionary of its own may have indices too small for what comes from other chunks
                plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
                encoded = plain.dictionary_encode()
            except pa.ArrowException as error:
                raise ValueError(f"{self.name!r} must hold single values, got {values.type}") from error
            encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
            places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
            different = [*encoded.dictionary.to_pylist(), None]
        elif isinstance(values, np.ndarray) and values.dtype.kind in "biufM":
            found, first, sorted_places = np.unique(values, return_index=True, return_inverse=True)
            order = np.argsort(first)  # as they were met
            places = np.argsort(order)[sorted_places]
            different = [None if value != value else value for value in found[order]]
        else:
            index: dict[Any, int] = {}
            try:
                places = np.fromiter((index.setdefault(value, len(index)) for value in values), np.intp, len(values))
            except TypeError as error:
                raise ValueError(f"{self.name!r} must hold single values: {error}") from error
            different = list(index)
        return np.array([self._code(value) for value in different], dtype=np.int32)[places]

    def _code(self, value: Any) -> int:
        shown = "" if is_missing(value) else text(value, self._comma)
        if shown.lower() in self._missing:
            return 0
        if shown not in self._of_text:
            if len(self.names) == self._most:
                raise ValueError(
                    f"{self.name!r} must have at most {self._most} different values, got more, such as {shown!r}"
                )
            self.names.append(shown)
            self._of_text[shown] = len(self.names)
        return self._of_text[shown]


def numbers(name: str, values: Any, start: int = 0, comma: bool = False) -> Array:
    """A chunk of a column of numbers (n,); NaN where the value is missing.

    :param start: rows before this chunk
    :param comma: whether "0,5" is a number
    :raises ValueError: if something is no number; says in which rows
    """
    if is_arrow(values):
        try:
            known = pc.if_else(pc.equal(values, ""), None, values) if pa.types.is_string(values.type) else values
            values = known.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            values = values.to_pylist()
    listed: Any = values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        found = values.astype(np.float64)
    else:
        listed = list(values)
        found = np.array([_number(value, comma) for value in listed], dtype=np.float64)
    wrong = np.flatnonzero(np.isinf(found))
    if len(wrong):
        shown: Any = str(listed[wrong[0]])[:40]
        shown = shown if isinstance(listed[wrong[0]], float) else repr(shown)
        raise ValueError(f"{name!r} must hold finite numbers, got {shown} in {rows_text(wrong, start)}")
    return found


def _number(value: Any, comma: bool) -> float:
    """inf where it is no number."""
    if is_missing(value):
        return math.nan
    shown = text(value)
    if shown.lower() in UNKNOWN:
        return math.nan
    if shown in ("true", "false"):
        return float(shown == "true")
    try:
        found = float(shown.replace(",", ".") if comma and shown.count(",") == 1 else shown)
    except ValueError:
        return math.inf
    return math.inf if "_" in shown else found


def is_number(label: str) -> bool:
    """Whether a label is written as a number."""
    return text(label) not in ("true", "false") and math.isfinite(_number(label, comma=True))


def times(name: str, values: Any, start: int = 0, comma: bool = False) -> NDArray[Any]:
    """A chunk of a column of times (n,): datetime64 in microseconds, or numbers; NaT or NaN where it is missing.

    :param start: rows before this chunk
    :param comma: whether "0,5" is a number
    :raises ValueError: if something is neither a number nor a date such as 2026-01-31, or numbers stand beside dates;
        says in which rows
    """
    if is_arrow(values):
        for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()):
            # nanoseconds and integers above 2^53 may lose their last digits
            options = pc.CastOptions(kind, allow_time_truncate=True, allow_float_truncate=True)
            with suppress(pa.ArrowException):
                values = pc.cast(values, options=options).to_numpy(zero_copy_only=False)
                break
        else:
            values = values.to_pylist()
    array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")
    with suppress(ValueError):
        return numbers(name, array, start, comma)
    shown = [None if is_missing(value) else str(value).strip() for value in array]
    found = np.array([_moment(value) for value in shown], dtype="datetime64[us]")
    known = np.array([(value or "").lower() not in UNKNOWN for value in shown], dtype=np.bool_)
    odd = np.flatnonzero(np.isnat(found) & known)
    wrong = odd[np.array([math.isinf(_number(shown[row], comma)) for row in odd], dtype=bool)]
    if len(wrong):
        raise ValueError(
            f"{name!r} must hold numbers or dates such as 2026-01-31, got {shown[wrong[0]]!r} "
            f"in {rows_text(wrong, start)}"
        )
    if len(odd):
        raise _both(name, odd, start)
    return found


def joined_times(name: str, chunks: list[NDArray[Any]]) -> NDArray[Any]:
    """All chunks of a column of times; one without any time may be of either kind.

    :raises ValueError: if some hold numbers and others dates; says in which rows
    """
    if len({chunk.dtype.kind for chunk in chunks}) > 1:
        numeric = np.concatenate([(chunk == chunk) & (chunk.dtype.kind != "M") for chunk in chunks])
        if numeric.any():
            raise _both(name, np.flatnonzero(numeric))
        chunks = [chunk.astype("datetime64[us]") for chunk in chunks]  # NaN becomes NaT
    return np.concatenate(chunks)


def _both(name: str, numeric: NDArray[Any], start: int = 0) -> ValueError:
    return ValueError(f"{name!r} must hold numbers or dates, not both, got numbers in {rows_text(numeric, start)}")


def _moment(value: str | None) -> Any:
    try:
        moment = datetime.fromisoformat((value or "").replace("Z", "+00:00"))
    except ValueError:
        return np.datetime64("NaT", "us")
    # not astimezone: in UTC, 9999-12-31 of another zone may be in the year 10000
    return np.datetime64(moment.replace(tzinfo=None)) - np.timedelta64(moment.utcoffset() or timedelta(), "us")
