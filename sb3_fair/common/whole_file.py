"""How is a file there whole or not at all, whenever its writer is killed?"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to be written, which then takes the place of ``path``, also if several processes write it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    yield part
    part.replace(path)
