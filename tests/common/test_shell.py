"""Can command lines be copied?"""

import shlex
from types import SimpleNamespace

from sb3_fair.common import shell

ARGUMENTS = ["sb3-fair", "train", "--resume", r"my logs\it's"]


def test_a_command_line_is_quoted_as_the_system_reads_it(monkeypatch):
    assert shlex.split(shell.shell_line(ARGUMENTS)) == ARGUMENTS
    monkeypatch.setattr(shell, "os", SimpleNamespace(name="nt"))
    assert shell.shell_line(ARGUMENTS) == r"""sb3-fair train --resume "my logs\it's" """.strip()
