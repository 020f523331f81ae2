"""Names and values that users write: checks, with suggestions for misspelt names."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from sb3_fair.common.extras import MissingExtra

FEW = 30
"""How many names fit into one line."""
NOT_IN_FILES = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Letters that names of files and folders cannot have on every system."""


class InputError(ValueError):
    """What a user got wrong, in one line."""


class WorkError(RuntimeError):
    """What was asked for makes sense, but could not be done."""


ERRORS = (InputError, MissingExtra, OSError)
"""What a command tells in a line, with exit code 2; an OSError as of a disk that is full, or a missing folder."""


def one_line(text: object) -> str:
    """A text, or what an error says, without line breaks."""
    return " ".join(str(text).split())


def why(error: BaseException) -> str:
    """The kind of an error and what it says."""
    return one_line(f"{type(error).__name__}: {error}")


def line_of(error: object) -> str:
    """The line that a command prints about an error."""
    return f"sb3-fair: {one_line(error)}"


def choose(what: str, name: Any, allowed: Iterable[str], otherwise: str = "") -> str:
    """``name`` if it is one of ``allowed``, else an InputError with the nearest one, or without one what there is.

    :param otherwise: end of the message, with what else may be meant
    """
    allowed = list(allowed)
    if name in allowed:
        return name
    lower = {known.lower(): known for known in allowed}
    nearest = get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    if nearest:
        hint = f"did you mean {lower[nearest[0]]!r}?"
    elif len(allowed) > FEW:
        hint = f"there are {len(allowed)}, such as {allowed[0]!r}"
    else:
        hint = f"choose one of {', '.join(allowed)}" if allowed else f"there is no {what} to choose from"
    raise InputError(f"unknown {what} {name!r}: {hint}{otherwise}")


def choose_all(what: str, names: Iterable[str] | None, allowed: Iterable[str]) -> list[str]:
    """``names`` if all are among ``allowed``; if there are none, all that are allowed."""
    allowed = list(allowed)
    return [choose(what, name, allowed) for name in names or allowed]


def environment(env_id: str, fairness: bool = False) -> str:
    """The ID with the module that registers it, so that processes find it that have not imported the module.

    :param fairness: whether a fairness spec is at hand, so that any ID that Gymnasium knows will do
    """
    from sb3_fair.zoo.registry.registration import ROWS, find

    row = find(env_id)
    if row.id not in ROWS and not fairness:
        raise InputError(
            f"fairness must be given for {env_id!r}, which has no fairness spec: --fairness module:spec, or register "
            "it with sb3_fair.register"
        )
    return row.name if row.is_shipped or ":" not in env_id else env_id


def listed(what: str, text: str) -> tuple[str, ...]:
    """Names separated by colons; commas are refused, and blanks but in names of attributes."""
    if "," in text or any(" " in name.partition("@")[0].strip() for name in text.split(":")):
        wanted = ":".join(text.replace(",", " ").split())
        raise InputError(f"{what} must be separated by colons, as in {wanted}, got {text!r}")
    return tuple(name for name in text.split(":") if name)


def notions(text: str) -> tuple[str, ...]:
    """Notions separated by colons: ``"SP:IF"``, also ``"SP@gender"``; an empty text names none."""
    names = listed("notions", text)
    _choose_notions("notion", names)
    return names


def objectives(text: str) -> tuple[str, ...]:
    """Objectives separated by colons: ``"R"``, notions, and disparities of the environment's, as in ``"R:SP:d_s"``."""
    names = listed("objectives", text)
    if not names:
        raise InputError(f"objectives must name at least one, as in R:SP:IF, got {text!r}")
    _choose_notions("objective", [name for name in names if not name.startswith("d_")], "R")
    return names


def _choose_notions(what: str, names: Iterable[str], *more: str) -> None:
    from sb3_fair.fairness.notions.table import NOTIONS

    for name in names:
        choose(what, name.partition("@")[0], (*more, *NOTIONS))


def yaml_number(value: Any) -> Any:
    """``value`` from a YAML file, as a number if it is one: YAML 1.1 takes 1e-3 for text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


@contextmanager
def input_errors() -> Iterator[None]:
    """Errors about arguments, raised while something is built from what a user asked for, become one line."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, AssertionError) as error:
        raise InputError(one_line(error)) from error
