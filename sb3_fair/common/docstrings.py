"""Docstrings of learners that describe the arguments of the algorithm of SB3 they are built on."""

from inspect import cleandoc
from typing import Any


def describe_arguments(learner: Any, place: str, arguments: str) -> None:
    """Writes ``arguments`` in place of the line ``place`` of a learner's docstring; ``{buffer}`` is its buffer's class.

    Neither is indented: from Python 3.13 on, docstrings come without their indentation.
    """
    if learner.__doc__:
        described = arguments.format(buffer=learner.buffer_classes[0].__name__)
        learner.__doc__ = cleandoc(learner.__doc__).replace(place, described)
