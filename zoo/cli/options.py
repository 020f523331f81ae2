"""Options that several commands share, and tables of options."""

import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from typer.core import TyperArgument, TyperCommand

from sb3_fair.common.shell import shell_line
from sb3_fair.zoo.names import InputError, yaml_number

Function = Callable[..., Any]


def expanded(path: Any) -> Any:
    """A path, as text or not, with the user's home in place of ``~``; None stays."""
    return path and type(path)(os.path.expanduser(path))


class App(typer.Typer):
    """Commands whose paths may begin with ``~``, which shells do not replace in ``--log-dir=~/logs``."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Function], Function]:  # type: ignore[override]
        register = super().command(*args, **kwargs)

        def decorate(command: Function) -> Function:
            @wraps(command)
            def run(**given: Any) -> Any:
                paths = {name: expanded(path) for name, path in given.items() if isinstance(path, Path)}
                return command(**{**given, **paths})

            return register(run)

        return decorate


def _device(name: str) -> str:
    if name == "auto":  # the usual case, without loading torch
        return name
    import torch as th

    available = {"cpu": True, "cuda": th.cuda.is_available(), "mps": th.backends.mps.is_available()}
    try:
        fits = available.get(th.device(name).type)
    except RuntimeError:
        fits = None
    if fits is None:
        raise InputError(f"device must be auto, cpu, mps, cuda or one such as cuda:1, got {name!r}")
    if not fits:
        raise InputError(f"device must be one that this machine has, got {name!r}")
    return name


def seed_option(help: str) -> Any:
    """What :class:`typer.Option` says of a seed."""
    return typer.Option(help=help, min=0, max=4_000_000_000)


Seed = Annotated[int, seed_option("Of everything random.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.", callback=_device)]
Threads = Annotated[int, typer.Option(help="Threads of torch; more than 1 seldom helps with networks this small.")]
LogDir = Annotated[Path, typer.Option(help="Runs are written to LOG_DIR/<algo>/<env>_<n>.")]
Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")]
Steps = Annotated[int | None, typer.Option(help="Training steps; by default as tuned.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1: one per core.")]
Cluster = Annotated[
    str | None, typer.Option(help="dask: runs take place on the workers of a Dask cluster, not on this machine.")
]
Scheduler = Annotated[str | None, typer.Option(help="Address of the cluster's scheduler, as in tcp://host:8786.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run code from files and settings, also those that no run of yours wrote.")
]
Env = Annotated[str | None, typer.Option(help="Environment ID: see `sb3-fair envs`; or module:ID.")]
EnvParam = Annotated[
    list[str] | None, typer.Option("--env-param", "-E", help="key:value for the environment. Repeatable.")
]


REPEATABLE = list[str]
"""Kind of an option that may be given several times."""


def row(name: str, hint: Any, default: Any = None) -> Parameter:
    """A row of a table of options, whose hint is an option above."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def option(name: str, kind: Any, help: str, *flags: str, default: Any = None, **more: Any) -> Parameter:
    """A row of a table of options.

    :param flags: on the command line, by default the name
    :param more: further arguments of ``typer.Option``
    """
    default = False if kind is bool else default
    hint = kind | None if default is None else kind
    about = typer.Option(*flags, help=help, **more)
    return row(name, Annotated[hint, about], default)


def with_options(into: str, table: Iterable[Parameter]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a command the options of a table; those that are not None it gets as the dict ``into``."""
    names = [row.name for row in table]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**given: Any) -> Any:
            told = {name: given.pop(name) for name in names}
            return command(**given, **{into: {key: value for key, value in told.items() if value not in (None, [])}})

        own = signature(command)
        parameters = [parameter for name, parameter in own.parameters.items() if name != into]
        run.__signature__ = own.replace(parameters=[*parameters, *table])  # type: ignore[attr-defined]
        return run

    return decorate


class Several(TyperCommand):
    """A command whose repeatable options take several values at once: ``--group a b`` is ``--group a --group b``.

    If the command has arguments, they come first: after such an option they would be values of it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        before = sum(isinstance(parameter, TyperArgument) for parameter in self.params)
        if not any(arg.startswith("-") for arg in args[:before]):
            args = self._repeated(args)
        return super().parse_args(ctx, args)

    def _repeated(self, args: list[str]) -> list[str]:
        repeatable = {
            name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts
        }
        found: list[str] = []
        option, values = "", 0
        for arg in args:
            if arg.startswith("-"):
                option, values = arg, 0
            else:
                found += [option] if option in repeatable and values else []
                values += 1
            found.append(arg)
        return found


def settings(option: str, entries: list[str] | None, example: str = "gamma:0.99") -> dict[str, Any]:
    """``key:value`` pairs; values are YAML and are never run as code."""
    found = {}
    for entry in entries or ():
        key, colon, value = entry.partition(":")
        if not (key and colon):
            raise InputError(f"{option} must be key:value, as in {example}, got {entry!r}")
        try:
            found[key] = yaml_number(yaml.safe_load(value))
        except yaml.YAMLError as error:
            raise InputError(f"{option} must have a YAML value, got {entry!r}") from error
    return found


def numbers(option: str, text: str) -> list[float]:
    """Numbers between colons."""
    try:
        return [float(number) for number in text.split(":")]
    except ValueError as error:
        raise InputError(f"{option} must be numbers separated by colons, as in 1:0.5:0, got {text!r}") from error


def writable(option: str, path: Path | None, *others: Path | None) -> None:
    """Refuses a file that could not be written, or would take the place of something else, as of ``others``, before
    all the work is done."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{option} must be a file, got the folder {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option} must be in a folder that is there, got {str(path)!r}")
    if (path.exists() and not path.is_file()) or path.absolute().parent in (Path("/dev"), Path("/dev/fd")):
        raise InputError(f"{option} must be a regular file, got {str(path)!r}")
    if path.resolve() in (other.resolve() for other in others if other is not None):
        raise InputError(f"{option} must be a file of its own, got {str(path)!r} twice")


def command_line() -> str:
    """For the record."""
    return shell_line(["sb3-fair", *sys.argv[1:]])


def hold_threads(number: int) -> None:
    """Lets torch and BLAS work with so many threads."""
    from sb3_fair.common.threads import use_threads

    if number < 1:
        raise InputError(f"num-threads must be a positive integer, got {number}")
    use_threads(number)
