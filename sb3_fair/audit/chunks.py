"""Reads tables chunk by chunk: CSV, Parquet and JSON lines, and tables of pandas, polars and pyarrow."""

import codecs
import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv as pacsv
from pyarrow import json as pajson
from pyarrow import parquet

from sb3_fair.audit.columns import check_columns
from sb3_fair.audit.values import is_arrow

CHUNK = 2**17
"""Rows of a chunk of Parquet or of a table."""
BLOCK = 8 * 2**20
"""Bytes of a chunk of text."""
DELIMITERS = ",;\t|"
ENDINGS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
ENDINGS |= {".jsonl": "json", ".ndjson": "json", ".json": "json"}
Chunk = Mapping[str, Any]
_DAMAGED = (OSError, UnicodeError, LookupError)


class Chunks(NamedTuple):
    """A table, some rows at a time.

    :param chunks: each from column to values (m,)
    :param comma: whether "0,5" is a number
    :param warnings: what was noticed about the file
    """

    chunks: Iterator[Chunk]
    comma: bool = False
    warnings: tuple[str, ...] = ()


def chunks_of_table(table: Any, columns: Sequence[str]) -> Chunks:
    """Some columns of a table in memory.

    :param table: a DataFrame of pandas or polars, a table of pyarrow, any other eager one that narwhals knows, or a
        mapping from names to arrays (n,)
    :param columns: at least one
    :raises TypeError: if it is something else
    :raises ValueError: if a column is missing, or columns differ in length
    """
    there, column = _mapping(table) if isinstance(table, Mapping) else frame_columns(table)
    check_columns(columns, there)
    values = {name: column(name) for name in columns}
    lengths = {name: len(each) for name, each in values.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"all columns must have the same length, got {lengths}")
    starts = range(0, lengths[columns[0]], CHUNK)
    return Chunks({name: each[start : start + CHUNK] for name, each in values.items()} for start in starts)


def _mapping(table: Mapping[str, Any]) -> tuple[list[str], Any]:
    def column(name: str) -> Any:
        values = table[name]
        if is_arrow(values):
            return values
        array = values if isinstance(values, (list, tuple)) else np.asarray(values)
        if isinstance(array, np.ndarray) and array.ndim != 1:
            raise ValueError(f"{name!r} must have shape (rows,), got {array.shape}")
        return array.tolist() if isinstance(array, np.ndarray) and array.dtype.kind in "OUS" else array

    return [str(name) for name in table], column


def frame_columns(table: Any) -> tuple[list[str], Callable[[str], Any]]:
    """The names of the columns of a frame, and a function from a name to its values (n,).

    :param table: a DataFrame of pandas or polars, a table of pyarrow, or any other eager one that narwhals knows
    :raises TypeError: if it is something else
    :raises ValueError: if two columns have the same name
    """
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
        there = [str(name) for name in frame.columns]
    except nw.exceptions.NarwhalsError as error:  # as of columns of the same name
        raise ValueError(" ".join(str(error).split())) from error
    except TypeError as error:
        kinds = "a DataFrame of pandas or polars, a table of pyarrow, or a dict of arrays"
        raise TypeError(f"table must be {kinds}, got {type(table).__name__}") from error

    def column(name: str) -> Any:
        series = frame[:, there.index(name)]
        if is_arrow(native := series.to_native()):
            return native
        simple = series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Datetime, nw.Date)
        array = series.to_numpy() if simple else None
        return series.to_list() if array is None or array.dtype == object else array

    return there, column


def chunks_of_file(path: str | Path, columns: Sequence[str], **options: Any) -> Chunks:
    """Some columns of a file.

    :param path: its name ends in .csv, .tsv, .txt, .parquet, .pq, .jsonl, .ndjson or .json; text may be compressed, as
        in .csv.gz
    :param options: of CSV: ``delimiter`` and ``encoding``; None: as the file looks
    :raises OSError: if there is no such file
    :raises ValueError: if it is unreadable, damaged or empty, or a column is missing, now or while chunks are read
    """
    path = Path(path)
    kinds = [ENDINGS[ending] for ending in reversed(path.suffixes[-2:]) if ending in ENDINGS]
    if not kinds:
        raise ValueError(f"the file must end in one of {', '.join(ENDINGS)}, got {path.name!r}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    if not path.stat().st_size:
        raise ValueError(f"{path.name} must hold a table, but it is empty")
    if kinds[0] != "csv":
        if any(value is not None for value in options.values()):
            raise ValueError(f"delimiter and encoding are for CSV, got {path.name!r}")
        return Chunks(_readable(path, (_parquet if kinds[0] == "parquet" else _json)(path, columns)))
    encoding = options.get("encoding")
    try:
        used = encoding or _encoding(path)
        if codecs.lookup(used).name == "utf-8" and encoding is not None:
            used = "utf-8-sig"  # which also reads files without a mark
        header, delimiter = _header(path, used, options.get("delimiter"))
    except _DAMAGED as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error
    check_columns(columns, header, path.name)
    guessed = encoding is None and not used.startswith("utf")
    warnings = (f"{path.name} is not UTF-8; it was read as {used}.",) if guessed else ()
    return Chunks(_readable(path, _csv(path, columns, used, delimiter)), delimiter == ";", warnings)


def _readable(path: Path, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks; what pyarrow does not like is a ValueError."""
    try:
        yield from chunks
    except (pa.ArrowException, *_DAMAGED) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error


def _csv(path: Path, columns: Sequence[str], encoding: str, delimiter: str) -> Iterator[Chunk]:
    with pa.input_stream(str(path)) as stream:
        reader = pacsv.open_csv(
            stream,
            # One thread: a row that does not fit is named by its number.
            read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK, encoding=encoding),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield dict(zip(batch.schema.names, batch.columns, strict=True))


def _encoding(path: Path) -> str:
    """UTF-8 or UTF-16 if the file is, else the encoding of Western Windows."""
    with pa.input_stream(str(path)) as stream:
        start = stream.read(4)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            block = start
            while block:
                decoder.decode(block)
                block = stream.read(BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig" if start[:3] == codecs.BOM_UTF8 else "utf-8"


def _header(path: Path, encoding: str, delimiter: str | None) -> tuple[list[str], str]:
    """Names of the columns, and the delimiter: the one that cuts the first lines into the most columns."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"delimiter must be one character, got {delimiter!r}")
    with pa.input_stream(str(path)) as stream:
        start = codecs.getincrementaldecoder(encoding)().decode(stream.read(2**16))
    lines = [line for line in start.splitlines() if line.strip()][:20]
    if not lines:
        raise ValueError(f"{path.name} must hold a table, but it is empty")
    cut = {sign: [len(row) for row in csv.reader(lines[:-1] or lines, delimiter=sign)] for sign in DELIMITERS}
    chosen = delimiter or max(DELIMITERS, key=lambda sign: (min(cut[sign]) > 1, cut[sign][0]))
    return next(csv.reader(lines, delimiter=chosen)), chosen


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    with parquet.ParquetFile(path) as file:
        check_columns(columns, file.schema_arrow.names, path.name)
        for batch in file.iter_batches(batch_size=CHUNK, columns=list(columns)):
            yield dict(zip(batch.schema.names, batch.columns, strict=True))


def _json(path: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    """Each block of whole lines has its own types: a column may hold numbers in one and texts in another."""
    line = 1
    met: dict[str, None] = {}
    with pa.input_stream(str(path)) as stream:
        rest = stream.read(BLOCK).removeprefix(codecs.BOM_UTF8)
        while rest:
            more = stream.read(BLOCK)
            block, newline, rest = rest.rpartition(b"\n") if more else (rest, b"\n", b"")
            block, rest = block + newline, rest + more
            if not block.strip():
                continue
            if line == 1 and block.lstrip()[:1] == b"[":
                raise ValueError(f"{path.name} must hold one JSON object per line, got a list")
            try:
                table = _json_table(block, columns)
            except pa.ArrowException as error:
                raise ValueError(f"{path.name} cannot be read from line {line} on: {error}") from error
            met |= dict.fromkeys(table.column_names)
            nothing = pa.nulls(len(table), pa.string())
            there = set(table.column_names)
            yield {name: table.column(name) if name in there else nothing for name in columns}
            line += block.count(b"\n")
    check_columns(columns, list(met), path.name)


def _json_table(block: bytes, columns: Sequence[str]) -> Any:
    """Lines as pyarrow reads them, but texts that look like times stay texts, as they are in other blocks.

    Without the values of other columns if pyarrow can only then, as if one mixes types.
    """

    def read(lines: bytes, texts: Sequence[str] = ()) -> Any:
        table = pajson.read_json(
            pa.BufferReader(lines),
            pajson.ReadOptions(use_threads=False, block_size=len(lines)),
            pajson.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in texts])),
        )
        times = [field.name for field in table.schema if field.name in columns and pa.types.is_timestamp(field.type)]
        return read(lines, times) if times else table

    try:
        return read(block)
    except pa.ArrowException:
        return read(_emptied(block, columns))


def _emptied(block: bytes, columns: Sequence[str]) -> bytes:
    """Lines of JSON in which all other columns are null; as they are, if something else is wrong with them."""
    try:
        rows = [json.loads(line, object_pairs_hook=_object) for line in block.splitlines() if line.strip()]
        kept = [{name: value if name in columns else None for name, value in row.items()} for row in rows]
    except (ValueError, AttributeError):  # the last of lines that are no objects
        return block
    return "\n".join(map(json.dumps, kept)).encode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("each name must stand once in an object")
    return found
