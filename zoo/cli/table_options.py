"""Options of `train` and `tune` for a table of people instead of an environment: one per setting of the table."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from sb3_fair.zoo.cli.options import settings
from sb3_fair.zoo.envs.table.settings import TableConfig
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.registration import TABLE

PANEL = "A table of people instead of --env"
_ABOUT = dict(re.findall(r":param (\w+): (.+?)(?=\n:|\Z)", cleandoc(TableConfig.__doc__ or ""), re.DOTALL))


def _kind(hint: Any) -> Any:
    """The type of an option for a setting with this hint."""
    parts = (hint, *get_args(hint))
    if any(get_origin(part) in (Sequence, Mapping) for part in parts):
        return list[str]
    return next((kind for kind in (int, float) if kind in parts), str)


def _option(name: str, kind: Any, about: str) -> Parameter:
    several = " Repeatable." if kind == list[str] else ""
    text = f"{about[:1].upper()}{about[1:]}.{several}".replace("[", r"\[")
    option = typer.Option(help=" ".join(text.split()), rich_help_panel=PANEL)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])


_OPTIONS = {
    "group": _option("group", list[str], "column whose groups are compared"),
    **{
        entry.name: _option(entry.name, _kind(entry.type), _ABOUT[entry.name])
        for entry in fields(TableConfig)
        if entry.name != "sha256"
    },
}


def with_table(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of a table.

    :param command: gets ``env``, which is the table's if there is one, and the settings of the table as ``people``
    """

    @wraps(command)
    def run(**given: Any) -> None:
        told = {name: given.pop(name) for name in _OPTIONS}
        people = {name: value for name, value in told.items() if value not in (None, [])}
        if people and "table" not in people:
            raise InputError(f"--{next(iter(people)).replace('_', '-')} must be left out without --table")
        if people:
            if given["env"] is not None:
                raise InputError(f"--env must be left out with --table, got {given['env']!r}")
            given["env"], people = TABLE.name, _as_settings(people)
        command(**given, people=people)

    own = signature(command)
    parameters = [parameter for name, parameter in own.parameters.items() if name != "people"]
    run.__signature__ = own.replace(parameters=[*parameters, *_OPTIONS.values()])  # type: ignore[attr-defined]
    return run


def _as_settings(people: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the environment; the file as whoever goes on with the run can find it and knows it again."""
    from sb3_fair.zoo.envs.table.people import checksum

    path = Path(people["table"])
    if not path.is_file():
        raise InputError(f"--table must be a file, got {str(path)!r}")
    group = people.get("group", [])
    if "moves" in people:
        people["moves"] = settings("--moves", people["moves"], "income:1.5")
    return {
        **people,
        "table": str(path.resolve()),
        "sha256": checksum(path),
        "group": group[0] if len(group) == 1 else group,
    }
