"""Does the command line survive a locale that knows only ASCII?"""

import os
import subprocess
import sys

import pytest

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["envs"], ["evaluate", "--run", "\u00fc"]])
def test_ascii_locales_get_no_traceback(arguments):
    code = "from sb3_fair.zoo.cli.commands import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], env={**os.environ, **ASCII}, capture_output=True)
    assert b"Traceback" not in done.stderr and done.returncode in (0, 2)
