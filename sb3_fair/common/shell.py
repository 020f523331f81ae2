"""Command lines to copy into the shell of this system."""

import os
import shlex
import subprocess
from collections.abc import Iterable


def shell_line(arguments: Iterable[str]) -> str:
    """The arguments, quoted where need be, as POSIX shells and, on Windows, programs under ``cmd.exe`` read them."""
    return subprocess.list2cmdline(arguments) if os.name == "nt" else shlex.join(arguments)
