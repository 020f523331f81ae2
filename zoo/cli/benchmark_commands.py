"""The commands `sb3-fair benchmark ...`: the speed of this installation, and the studies of a YAML file."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sb3_fair.zoo.cli.options import Cluster, Jobs, LogDir, Scheduler, hold_threads

benchmark = typer.Typer(name="benchmark", help="Studies, and the speed of this installation.", no_args_is_help=True)

KINDS = {"names": list[str] | None, "text": str | None, "number": int | None, "flag": bool}


@benchmark.command()
def speed(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file, to compare versions.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the work: rough figures.")] = False,
) -> None:
    """Steps per second of environments, fairness notions and algorithms, beside what they should reach."""
    from sb3_fair.zoo.studies.speed import speed

    hold_threads(1)
    speed(json, quick=quick)


def _study(module: str, log_dir: str, options: Mapping[str, Mapping[str, Any]]) -> Callable[..., None]:
    """The command of a study, whose arguments are the options; those with several names have an s in the study's."""

    def command(cluster: str | None, scheduler: str | None, jobs: int, **given: Any) -> None:
        from sb3_fair.zoo.runs.parallel import on_cluster

        hold_threads(1)
        several = {name for name, option in options.items() if option["kind"] == "names"}
        wishes = {f"{name}s" if name in several else name: value for name, value in given.items()}
        with on_cluster(cluster, scheduler):
            import_module(f"sb3_fair.zoo.studies.{module}").study(n_jobs=jobs, **wishes)

    parameters = {name: _option(**option) for name, option in options.items()}
    parameters |= {"jobs": (Jobs, -1), "cluster": (Cluster, None), "scheduler": (Scheduler, None)}
    parameters["log_dir"] = LogDir, Path(log_dir)
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in parameters.items()
        ]
    )
    return command


def _option(kind: str, help: str, default: Any = None, min: int | None = None) -> tuple[Any, Any]:
    """Annotation and default of an option."""
    return Annotated[KINDS[kind], typer.Option(help=help, min=min)], False if kind == "flag" else default


_TABLE = yaml.safe_load(files("sb3_fair.zoo.studies").joinpath("commands.yml").read_text(encoding="utf-8"))
for _name, _entry in _TABLE.items():
    _help = _entry.pop("help")
    benchmark.command(_name, help=_help)(_study(**_entry))
