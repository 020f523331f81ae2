"""The commands `sb3-fair benchmark ...`: the speed of this installation, and the studies of a YAML file."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_fair.zoo.cli.options import (
    App,
    Cluster,
    Jobs,
    LogDir,
    Scheduler,
    hold_threads,
    option,
    row,
    with_options,
    writable,
)
from sb3_fair.zoo.packaged import packaged

benchmark = App(name="benchmark", help="Studies, and the speed of this installation.", no_args_is_help=True)

KINDS = {"names": list[str], "text": str, "number": int, "flag": bool}


@benchmark.command()
def speed(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file, to compare versions.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the work: rough figures.")] = False,
) -> None:
    """Steps per second of environments, fairness notions and algorithms, beside what they should reach."""
    from sb3_fair.zoo.studies.speed import speed

    writable("json", json)
    hold_threads(1)
    speed(json, quick=quick)


def _study(module: str, log_dir: str, options: dict[str, dict[str, Any]]) -> Callable[..., None]:
    """The command of a study, whose arguments are the options; those with several names have an s in the study's."""

    several = {name for name, entry in options.items() if entry["kind"] == "names"}
    table = [option(name, KINDS[entry.pop("kind")], **entry) for name, entry in options.items()]

    @with_options("given", [*table, row("log_dir", LogDir, Path(log_dir))])
    def command(
        *, jobs: Jobs = -1, cluster: Cluster = None, scheduler: Scheduler = None, given: dict[str, Any]
    ) -> None:
        from sb3_fair.zoo.runs.parallel import on_cluster

        hold_threads(1)
        wishes = {f"{name}s" if name in several else name: value for name, value in given.items()}
        with on_cluster(cluster, scheduler):
            import_module(f"sb3_fair.zoo.studies.{module}").study(n_jobs=jobs, **wishes)

    return command


for _name, _entry in packaged("studies", "commands").items():
    _help = _entry.pop("help")
    benchmark.command(_name, help=_help)(_study(**_entry))
