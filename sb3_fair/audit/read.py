"""Reads decisions of files and tables into a log."""

from pathlib import Path
from typing import Any

from sb3_fair.audit.chunks import Chunks, chunks_of_file, chunks_of_table
from sb3_fair.audit.columns import Columns
from sb3_fair.audit.log import Log, LogBuilder


def read_table(table: Any, columns: Columns, reservoir: int = 1000, seed: int = 0) -> Log:
    """The log in a table, see :func:`~sb3_fair.audit.chunks.chunks_of_table`.

    :raises ValueError: if a value does not fit its column, or as there
    """
    return _log(chunks_of_table(table, columns.used), columns, reservoir, seed)


def read_file(path: str | Path, columns: Columns, reservoir: int = 1000, seed: int = 0, **options: Any) -> Log:
    """The log in a file, read chunk by chunk, see :func:`~sb3_fair.audit.chunks.chunks_of_file`.

    :raises ValueError: if a value does not fit its column, or as there
    """
    return _log(chunks_of_file(path, columns.used, **options), columns, reservoir, seed)


def _log(chunks: Chunks, columns: Columns, reservoir: int, seed: int) -> Log:
    builder = LogBuilder(columns, reservoir, seed, comma=chunks.comma)
    for chunk in chunks:
        builder.add(chunk)
    log = builder.finish()
    log.warnings.extend(chunks.warnings)
    return log
