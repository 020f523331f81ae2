"""The command line `sb3-fair`."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sb3_fair.common.shell import shell_line
from sb3_fair.fairness.warning import warn
from sb3_fair.zoo import names
from sb3_fair.zoo.cli.audit_command import audit
from sb3_fair.zoo.cli.benchmark_commands import benchmark
from sb3_fair.zoo.cli.demo import demo
from sb3_fair.zoo.cli.options import (
    App,
    Cluster,
    Device,
    Env,
    EnvParam,
    LogDir,
    Progress,
    Scheduler,
    Several,
    Threads,
    Trust,
    command_line,
    hold_threads,
    seed_option,
    settings,
    with_options,
)
from sb3_fair.zoo.cli.plan_options import PEOPLE, PLAN, RUN, STUDY, TRIALS, arguments
from sb3_fair.zoo.names import ERRORS, InputError, WorkError, line_of
from sb3_fair.zoo.runs.stopping import Interrupted, stoppable


class Commands(TyperGroup):
    """Commands that find the end of a file too soon say so; click would take it for Ctrl-D."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise InputError(f"a file must not end before all was read: {error or 'it is damaged'}") from error


app = App(
    cls=Commands,
    name="sb3-fair",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(benchmark)

ABORTED = 130
RunPath = Annotated[Path, typer.Option("--run", help="Folder of a run.")]
Pretrained = Annotated[
    str | None, typer.Option(help="Instead of --run: pcn, f_ppo, fair_ppo or fair_qcm, a policy that ships.")
]


def _show_version(asked: bool) -> None:
    if asked:
        from sb3_fair.common.run_folder import versions

        typer.echo(", ".join(f"{name} {number}" for name, number in versions().items()))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Fairness-aware reinforcement learning for Stable-Baselines3."""


@app.command(cls=Several)
def envs(
    env_module: Annotated[
        list[str] | None, typer.Option(help="List what this module registers instead. Repeatable.")
    ] = None,
) -> None:
    """Lists the environments: spaces, groups and notions."""
    from sb3_fair.zoo.cli.listing import environments

    typer.echo(environments(env_module or ()))


@app.command(cls=Several)
@with_options("options", RUN)
@with_options("asked", [*PLAN, *PEOPLE])
def train(
    context: typer.Context,
    algo: Annotated[
        str | None,
        typer.Option(
            help="pcn, f_ppo, ppo_lagrangian, fair_ppo, fair_qcm, tabular_fair_qcm, recurrent_dqn, ppo, a2c, dqn, "
            "trpo, qrdqn or ppo_lstm.",
        ),
    ] = None,
    env: Env = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Train with so many seeds: --seed, the next one, and so on.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes for --seeds; by default one per core.")] = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    resume: Annotated[
        Path | None, typer.Option(help="Folder of an interrupted run to go on with; the settings are the run's.")
    ] = None,
    trust: Trust = False,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
    progress: Progress = True,
    *,
    asked: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Trains an algorithm, evaluates what it learned and writes a report."""
    if resume is not None:
        _only(context, "resume", "progress", "trust")
        from sb3_fair.zoo.runs.train import resume as go_on

        _results(go_on(resume, progress=progress, trust=trust))
        return
    if trust:
        raise InputError("--trust must be left out without --resume: nothing else is loaded")
    if algo is None:
        raise InputError("--algo must be given, unless --resume is")
    asked = arguments(env, asked)
    from sb3_fair.zoo.runs.plan import make_plan
    from sb3_fair.zoo.runs.train import train

    plan = make_plan(algo, **asked)
    _tell_unweighted(plan, asked)
    options |= {"log_dir": log_dir, "command": command_line(), "device": device}
    hold_threads(num_threads)
    if seeds is None and cluster is None and scheduler is None:
        if jobs is not None:
            raise InputError(f"jobs must be left out without --seeds, got {jobs}")
        _results(train(plan, progress=progress, **options))
        return
    from sb3_fair.zoo.evaluation.tables import seed_table, show
    from sb3_fair.zoo.runs.parallel import on_cluster
    from sb3_fair.zoo.runs.seeds import train_all

    if num_threads != 1:
        raise InputError(f"num-threads must be 1 where several runs share the cores, got {num_threads}")
    with on_cluster(cluster, scheduler):
        plans = [replace(plan, seed=plan.seed + number) for number in range(seeds or 1)]
        runs = train_all(plans, n_jobs=-1 if jobs is None else jobs, **options)
    if len(runs) > 1:
        show(seed_table({plan.seed: run.front for plan, run in zip(plans, runs, strict=True)}))
    for run in runs:
        typer.echo(run.report)


def _tell_unweighted(plan: Any, asked: dict[str, Any]) -> None:
    """Says which of the objectives that were asked for count nothing in the reward, unless weights were given too."""
    named = "objectives" in {**asked, **asked["env_kwargs"]}
    if not named or plan.weights is None or "weights" in {**asked, **asked["hyperparams"]}:
        return
    idle = [name for name, weight in zip(plan.objectives, plan.weights, strict=True) if not weight]
    if idle:
        example = ":".join("1" if weight else "10" for weight in plan.weights)
        warn(f"without weight in the reward: {', '.join(idle)} (give weights, as in --weights {example})")


def _results(run: Any) -> None:
    from sb3_fair.zoo.evaluation.tables import policy_table, show

    show(policy_table(run.front, run.baselines, most=12, words=run.words))
    typer.echo(f"\n{run.report}")


@app.command(cls=Several)
@with_options("study", STUDY)
@with_options("asked", [*TRIALS, *(row for row in PLAN if row.name != "audit"), *PEOPLE])
def tune(
    algo: Annotated[str, typer.Option(help="As for train.")],
    env: Env = None,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
    *,
    asked: dict[str, Any],
    study: dict[str, Any],
) -> None:
    """Searches hyperparameters that are good and fair; goes on where it was interrupted."""
    asked = arguments(env, asked)
    from sb3_fair.zoo.tuning.tune import make_tuning, tune

    tuning = make_tuning(algo, **asked)
    hold_threads(num_threads)
    with stoppable(f"stopped; the study goes on with the same command: {command_line()}"):
        tune(tuning, log_dir=log_dir, device=device, command=command_line(), **study)


@app.command(cls=Several)
def evaluate(
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Option(help="Folder of a run; or --pretrained, or --model, --algo and --env.")
    ] = None,
    pretrained: Pretrained = None,
    policy: Annotated[int | None, typer.Option(help="Number of a policy in the run's report.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="A .zip that an algorithm saved; --trust if no run of yours did.")
    ] = None,
    algo: Annotated[str | None, typer.Option(help="The algorithm that saved --model, as for train.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment ID for --model: see `sb3-fair envs`.")] = None,
    fairness: Annotated[str | None, typer.Option(help="module:name of a fairness spec for --env.")] = None,
    audit: Annotated[str | None, typer.Option(help="Notions to measure with --model; by default all.")] = None,
    env_param: EnvParam = None,
    n_eval_episodes: Annotated[int, typer.Option(min=1, help="Episodes per policy.")] = 20,
    trust: Trust = False,
    seed: Annotated[
        int | None, seed_option("Of everything random; by default one that no other run has, with --model 20000.")
    ] = None,
    device: Device = "auto",
    num_threads: Threads = 1,
) -> None:
    """Runs the policies of a run, or any saved model, on new episodes beside the rules of the environment."""
    from sb3_fair.zoo.evaluation.evaluate import AGAIN, evaluate_rules, evaluate_run, held_out, seed_of
    from sb3_fair.zoo.evaluation.tables import figure_table, policy_table, show
    from sb3_fair.zoo.runs.model_file import evaluate_file
    from sb3_fair.zoo.runs.plan import Plan

    if model is None:
        if run is None and pretrained is None:
            raise InputError("--run must be given, or --pretrained, or --model with --algo and --env")
        _only(context, "run", "pretrained", "policy", "n_eval_episodes", "seed", "device", "num_threads", "trust")
        folder = _run(run, pretrained, trust)
        hold_threads(num_threads)
        plan = held_out(Plan.of_run(folder))
        seed = seed_of(plan, AGAIN) if seed is None else seed
        policies = evaluate_run(folder, policy, n_eval_episodes=n_eval_episodes, seed=seed, device=device)
        rules = evaluate_rules(plan, n_eval_episodes, seed)
        show(policy_table(policies, rules, words=folder.words))
        _groups([*policies, *rules])
        return
    if algo is None or env is None or (run, pretrained, policy) != (None, None, None):
        raise InputError("--model must be given with --algo and --env, and without --run, --pretrained and --policy")
    hold_threads(num_threads)
    policies, rules, words = evaluate_file(
        model,
        algo,
        env,
        env_kwargs=settings("--env-param", env_param),
        fairness=fairness,
        audit=None if audit is None else names.notions(audit),
        n_eval_episodes=n_eval_episodes,
        seed=AGAIN if seed is None else seed,
        device=device,
        trust=trust,
    )
    show(figure_table(policies, rules, words))
    _groups([*policies, *rules])


def _groups(policies: Any) -> None:
    """Who got the favourable decision, where groups are compared."""
    from sb3_fair.zoo.evaluation.tables import group_table, show

    table = group_table(policies)
    if table is not None:
        typer.echo()
        show(table)


@app.command()
def enjoy(
    run: Annotated[Path | None, typer.Option(help="Folder of a run; or --pretrained.")] = None,
    pretrained: Pretrained = None,
    policy: Annotated[int, typer.Option(help="Number of a policy in the report.")] = 0,
    film: Annotated[
        Path | None, typer.Option(help="GIF or MP4 to write; by default in the run's folder, or this one.")
    ] = None,
    n_episodes: Annotated[int, typer.Option(min=1, help="Episodes to film.")] = 1,
    every: Annotated[
        int | None, typer.Option(help="Steps from one picture to the next; by default for 100 pictures at most.")
    ] = None,
    fps: Annotated[float, typer.Option(help="Pictures per second.")] = 8.0,
    trust: Trust = False,
    seed: Annotated[int | None, seed_option("Of everything random; by default one that no other run has.")] = None,
    device: Device = "auto",
    num_threads: Threads = 1,
) -> None:
    """Films a policy at work and tells what its episodes brought."""
    from sb3_fair.zoo.evaluation.enjoy import enjoy, episode_table
    from sb3_fair.zoo.evaluation.tables import show

    folder = _run(run, pretrained, trust)
    hold_threads(num_threads)
    name = f"policy_{policy}.gif"
    film = film or (Path(name) if run is None else folder.inside(name))
    played = enjoy(folder, film, policy=policy, n_episodes=n_episodes, seed=seed, every=every, fps=fps, device=device)
    show(episode_table(played))
    typer.echo(f"\n{film}")


@app.command()
def report(run: RunPath) -> None:
    """Writes the report of a run again."""
    from sb3_fair.report import from_run

    typer.echo(from_run(_run(run).path))


app.command(cls=Several)(audit)
app.command()(demo)


def main() -> None:
    """The console script: wrong input, and files that cannot be read or written, are one line on stderr and exit code
    2; a warning is one line too."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # in ASCII locales, "?" instead of a traceback
    try:
        if (here := os.getcwd()) not in sys.path:
            sys.path.append(here)  # modules of the user's own, after all that is installed
        with _warnings_in_a_line():
            code = app(standalone_mode=False)
    except ERRORS as error:
        _fail(str(error))
    except WorkError as error:
        _fail(str(error), 1)
    except Interrupted as stop:
        _fail(stop.message, stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = ABORTED
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own errors have it, whichever copy of click typer brings
            raise
        _fail(error.format_message())
    if code == ABORTED:  # what typer makes of Ctrl-C
        _fail("stopped", ABORTED)
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Opens the null device for stdin, stdout and stderr where a process began without them: else files of a run would
    get their numbers, and what is meant for them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it takes the smallest free number
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_: f"{line_of(message)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _fail(message: str, code: int = 2) -> NoReturn:
    if message:  # a command without arguments has shown its help
        print(line_of(message), file=sys.stderr)
    sys.exit(code)


def _only(context: typer.Context, name: str, *beside: str) -> None:
    """Refuses options on the command line that have no meaning beside the one called ``name``."""
    given = [key for key in context.params if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"]
    idle = sorted(set(given) - {name, *beside})
    if idle:
        options = ", ".join("--" + key.replace("_", "-") for key in idle)
        raise InputError(f"--{name} takes everything from the run: leave out {options}")


def _run(path: Path | None, pretrained: str | None = None, trust: bool = False) -> Any:
    """The run in a folder, or one that ships."""
    from sb3_fair.common.run_folder import RunFolder

    if (path is None) == (pretrained is None):
        raise InputError("either --run or --pretrained must be given")
    if pretrained is not None:
        from sb3_fair.zoo.runs import pretrained as shipped  # loads torch

        return shipped.pretrained(pretrained)
    run = RunFolder.open(str(path), trust=trust)
    if not run.finished:
        command = shell_line(["sb3-fair", "train", "--resume", str(path)])
        raise InputError(f"run must be finished: go on with `{command}`")
    return run
