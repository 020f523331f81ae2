"""Atomic writes: a file is there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to be written, which then takes the place of ``path``, also if several processes write it, and of a link
    there rather than of its target."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)  # of a process that was killed, or a link
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str, errors: str = "strict") -> None:
    """Writes UTF-8 text; the file is there whole or not at all."""
    with whole(path) as file:
        file.write_text(text, encoding="utf-8", errors=errors)
