"""What can be done from the command line?"""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sb3_fair.zoo import names
from sb3_fair.zoo.names import InputError

app = typer.Typer(
    name="sb3-fair",
    help="Fairness-aware reinforcement learning for Stable-Baselines3.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
benchmark = typer.Typer(name="benchmark", help="Measure this installation.", no_args_is_help=True)
app.add_typer(benchmark)

Seed = Annotated[int, typer.Option(help="Of everything random.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Threads = Annotated[int, typer.Option(help="Threads of torch; more than 1 seldom helps with networks this small.")]
LogDir = Annotated[Path, typer.Option(help="Runs are written to LOG_DIR/<algo>/<env>_<n>.")]
Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")]
RunPath = Annotated[Path, typer.Option("--run", help="Folder of a run.")]
Pretrained = Annotated[
    str | None, typer.Option(help="Instead of --run: pcn, f_ppo, fair_ppo or fair_qcm, a policy that ships.")
]
Jobs = Annotated[int, typer.Option(help="Processes; -1: one per core.")]
Cluster = Annotated[
    str | None, typer.Option(help="dask: runs take place on the workers of a Dask cluster, not on this machine.")
]
Scheduler = Annotated[str | None, typer.Option(help="Address of the cluster's scheduler, as in tcp://host:8786.")]
Steps = Annotated[int | None, typer.Option(help="Training steps; by default as tuned.")]
ConfFile = Annotated[
    Path | None, typer.Option(help="YAML file with settings instead of the zoo's, as `sb3-fair tune` writes them.")
]


@app.command()
def envs() -> None:
    """Lists the environments: spaces, groups and notions."""
    from sb3_fair.zoo.listing import environment_table
    from sb3_fair.zoo.tables import show

    show(environment_table())


@app.command()
def train(
    context: typer.Context,
    algo: Annotated[
        str | None,
        typer.Option(
            help="pcn, f_ppo, cpo, fair_ppo, fair_qcm, tabular_fair_qcm, recurrent_dqn, ppo, a2c, dqn, trpo, qrdqn or "
            "ppo_lstm.",
        ),
    ] = None,
    env: Annotated[str | None, typer.Option(help="Environment ID: see `sb3-fair envs`.")] = None,
    seed: Seed = 0,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Train with so many seeds: --seed, the next one, and so on.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes for --seeds; by default one per core.")] = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    objectives: Annotated[str | None, typer.Option(help="R and notions, as in R:SP:IF.")] = None,
    weights: Annotated[
        str | None, typer.Option(help="For algorithms that learn from one number, as in 1:0.5:0.")
    ] = None,
    audit: Annotated[
        str | None, typer.Option(help="Notions to measure in the final evaluation, as in SP:EO:CSC.")
    ] = None,
    window: Annotated[int | None, typer.Option(help="Number of latest decisions that notions look at.")] = None,
    emit: Annotated[str | None, typer.Option(help="level, difference or terminal.")] = None,
    preset: Annotated[str | None, typer.Option(help="Other settings than the tuned ones, as in: paper.")] = None,
    conf_file: ConfFile = None,
    n_timesteps: Steps = None,
    n_envs: Annotated[int | None, typer.Option(help="Copies of the environment.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-P", help="key:value for the algorithm; value in YAML. Repeatable.")
    ] = None,
    env_param: Annotated[
        list[str] | None, typer.Option("--env-param", "-E", help="key:value for the environment. Repeatable.")
    ] = None,
    track: Annotated[
        bool, typer.Option("--track", help="Follow in Weights & Biases; without an account, offline.")
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write event files for TensorBoard.")] = False,
    checkpoint_minutes: Annotated[
        float, typer.Option(help="Between two checkpoints; 0: at every rollout, inf: never.")
    ] = 5.0,
    resume: Annotated[
        Path | None, typer.Option(help="Folder of an interrupted run to go on with; the settings are the run's.")
    ] = None,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
    progress: Progress = True,
) -> None:
    """Trains an algorithm, evaluates what it learned and writes a report."""
    if resume is not None:
        _only(context, "resume", "progress")
        from sb3_fair.zoo.train import resume as go_on

        _results(go_on(resume, progress=progress))
        return
    if algo is None or env is None:
        raise InputError(f"{'--algo' if algo is None else '--env'} must be given, unless --resume is")
    from sb3_fair.zoo.plan import make_plan
    from sb3_fair.zoo.train import train

    chosen = {key: value for key, value in (("window", window), ("emit", emit)) if value is not None}
    plan = make_plan(
        algo,
        env,
        seed=seed,
        objectives=None if objectives is None else names.objectives(objectives),
        audit=None if audit is None else names.notions(audit),
        weights=None if weights is None else _numbers("weights", weights),
        n_timesteps=n_timesteps,
        n_envs=n_envs,
        env_kwargs={**_settings("--env-param", env_param), **chosen},
        hyperparams=_settings("--param", param),
        preset=preset,
        conf_file=conf_file,
    )
    options: dict[str, Any] = {
        "log_dir": log_dir,
        "command": _command(),
        "device": device,
        "track": track,
        "tensorboard": tensorboard,
        "checkpoint_minutes": checkpoint_minutes,
    }
    _threads(num_threads)
    if seeds is None and cluster is None and scheduler is None:
        if jobs is not None:
            raise InputError(f"jobs must be left out without --seeds, got {jobs}")
        _results(train(plan, progress=progress, **options))
        return
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.seeds import train_all

    if num_threads != 1:
        raise InputError(f"num-threads must be 1 where several runs share the cores, got {num_threads}")
    with on_cluster(cluster, scheduler):
        plans = [replace(plan, seed=number) for number in range(seed, seed + (seeds or 1))]
        for run in train_all(plans, n_jobs=-1 if jobs is None else jobs, **options):
            typer.echo(run.report)


def _results(run: Any) -> None:
    from sb3_fair.zoo.tables import policy_table, show

    show(policy_table(run.front, run.baselines, most=12))
    typer.echo(f"\n{run.report}")


@app.command()
def tune(
    algo: Annotated[str, typer.Option(help="As for train.")],
    env: Annotated[str, typer.Option(help="Environment ID: see `sb3-fair envs`.")],
    scores: Annotated[
        str | None,
        typer.Option(help="What trials are to be good at, as in R:SP; by default R, of PCN the hypervolume."),
    ] = None,
    budget: Annotated[
        list[str] | None, typer.Option(help="Largest size of a figure, as in SP:0.05. Repeatable.")
    ] = None,
    n_trials: Annotated[int, typer.Option(help="Of the study in all, earlier ones included.")] = 50,
    n_seeds: Annotated[int, typer.Option(help="Runs per trial; figures are their means.")] = 1,
    study_name: Annotated[str | None, typer.Option(help="A study of this name is continued.")] = None,
    storage: Annotated[
        str | None, typer.Option(help="Database URL or journal file; by default a journal file in the study's folder.")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    sampler: Annotated[str, typer.Option(help="auto, tpe, nsgaii or random.")] = "auto",
    pruner: Annotated[
        str | None, typer.Option(help="median, halving or none; by default median where there is one score, no budget.")
    ] = None,
    n_evaluations: Annotated[int, typer.Option(help="Evaluations of a trial that may be pruned.")] = 5,
    space: Annotated[
        list[str] | None,
        typer.Option("--space", "-S", help="setting:values to try, as in gamma:{range: [0.9, 1.0]}. Repeatable."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Try only these settings, as in learning_rate:gamma.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-P", help="key:value that is fixed, not tried. Repeatable.")
    ] = None,
    env_param: Annotated[
        list[str] | None, typer.Option("--env-param", "-E", help="key:value for the environment. Repeatable.")
    ] = None,
    objectives: Annotated[str | None, typer.Option(help="R and notions, as in R:SP:IF.")] = None,
    weights: Annotated[str | None, typer.Option(help="Fixed weights of the objectives, as in 1:0.5:0.")] = None,
    window: Annotated[int | None, typer.Option(help="Number of latest decisions that notions look at.")] = None,
    emit: Annotated[str | None, typer.Option(help="level, difference or terminal.")] = None,
    preset: Annotated[str | None, typer.Option(help="Start from other settings than the tuned ones.")] = None,
    conf_file: ConfFile = None,
    n_timesteps: Steps = None,
    n_envs: Annotated[int | None, typer.Option(help="Copies of the environment.")] = None,
    deterministic: Annotated[
        bool | None, typer.Option("--deterministic/--sampled", help="Actions in evaluations: most probable, or drawn.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
) -> None:
    """Searches hyperparameters that are good and fair; goes on where it was interrupted."""
    from sb3_fair.zoo.tune import make_tuning, tune

    chosen = {key: value for key, value in (("window", window), ("emit", emit)) if value is not None}
    tuning = make_tuning(
        algo,
        env,
        scores=None if scores is None else scores.split(":"),
        budgets=_settings("--budget", budget),
        space=_settings("--space", space),
        only=None if only is None else only.split(":"),
        n_seeds=n_seeds,
        n_evaluations=n_evaluations,
        deterministic=deterministic,
        objectives=None if objectives is None else names.objectives(objectives),
        weights=None if weights is None else _numbers("weights", weights),
        hyperparams=_settings("--param", param),
        env_kwargs={**_settings("--env-param", env_param), **chosen},
        preset=preset,
        conf_file=conf_file,
        n_timesteps=n_timesteps,
        n_envs=n_envs,
        seed=seed,
    )
    _threads(num_threads)
    tune(
        tuning,
        n_trials=n_trials,
        study_name=study_name,
        storage=storage,
        sampler=sampler,
        pruner=pruner,
        n_jobs=n_jobs,
        log_dir=log_dir,
        device=device,
        command=_command(),
    )


@app.command()
def evaluate(
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Option(help="Folder of a run; or --pretrained, or --model, --algo and --env.")
    ] = None,
    pretrained: Pretrained = None,
    policy: Annotated[int | None, typer.Option(help="Number of a policy in the run's report.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="A .zip that an algorithm saved; load only what you trust.")
    ] = None,
    algo: Annotated[str | None, typer.Option(help="The algorithm that saved --model, as for train.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment ID for --model: see `sb3-fair envs`.")] = None,
    audit: Annotated[str | None, typer.Option(help="Notions to measure with --model; by default all.")] = None,
    env_param: Annotated[
        list[str] | None, typer.Option("--env-param", "-E", help="key:value for --env. Repeatable.")
    ] = None,
    n_eval_episodes: Annotated[int, typer.Option(min=1, help="Episodes per policy.")] = 20,
    seed: Seed = 20_000,
    device: Device = "auto",
    num_threads: Threads = 1,
) -> None:
    """Runs the policies of a run, or any saved model, on new episodes beside the rules of the environment."""
    from sb3_fair.zoo.evaluate import evaluate_rules, evaluate_run
    from sb3_fair.zoo.model_file import evaluate_file
    from sb3_fair.zoo.plan import Plan
    from sb3_fair.zoo.tables import figure_table, policy_table, show

    if model is None:
        if run is None and pretrained is None:
            raise InputError("--run must be given, or --pretrained, or --model with --algo and --env")
        _only(context, "run", "pretrained", "policy", "n_eval_episodes", "seed", "device", "num_threads")
        folder = _run(run, pretrained)
        _threads(num_threads)
        policies = evaluate_run(folder, policy, n_eval_episodes=n_eval_episodes, seed=seed, device=device)
        show(policy_table(policies, evaluate_rules(Plan.from_config(folder.config), n_eval_episodes, seed)))
        return
    if algo is None or env is None or (run, pretrained, policy) != (None, None, None):
        raise InputError("--model must be given with --algo and --env, and without --run, --pretrained and --policy")
    _threads(num_threads)
    found = evaluate_file(
        model,
        algo,
        env,
        env_kwargs=_settings("--env-param", env_param),
        audit=None if audit is None else names.notions(audit),
        n_eval_episodes=n_eval_episodes,
        seed=seed,
        device=device,
    )
    show(figure_table(*found))


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
    seed: Seed = 30_000,
    device: Device = "auto",
    num_threads: Threads = 1,
) -> None:
    """Films a policy at work and tells what its episodes brought."""
    from sb3_fair.zoo.enjoy import enjoy, episode_table
    from sb3_fair.zoo.tables import show

    folder = _run(run, pretrained)
    _threads(num_threads)
    film = film or (Path() if run is None else run) / f"policy_{policy}.gif"
    played = enjoy(folder, film, policy=policy, n_episodes=n_episodes, seed=seed, every=every, fps=fps, device=device)
    show(episode_table(played))
    typer.echo(f"\n{film}")


@app.command()
def report(run: RunPath) -> None:
    """Writes the report of a run again."""
    from sb3_fair.report import from_run

    typer.echo(from_run(_run(run).path))


@app.command()
def demo(
    seed: Seed = 0,
    n_timesteps: Steps = None,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
    progress: Progress = True,
) -> None:
    """Learns the trade-offs of hiring in about two minutes and shows them."""
    from sb3_fair.zoo.demo import demo

    _threads(num_threads)
    demo(seed=seed, n_timesteps=n_timesteps, log_dir=log_dir, command=_command(), device=device, progress=progress)


@benchmark.command()
def speed(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file, to compare versions.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the work: rough figures.")] = False,
) -> None:
    """Steps per second of environments, fairness notions and algorithms, beside what they should reach."""
    from sb3_fair.zoo.benchmark import speed

    _threads(1)
    speed(json, quick=quick)


@benchmark.command("all")
def overview(
    algo: Annotated[
        list[str] | None, typer.Option(help="ppo, dqn, pcn, f_ppo, fair_ppo or fair_qcm; repeatable. All by default.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="Environment ID; repeatable. One per scenario by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per pair.")] = 5,
    quick: Annotated[bool, typer.Option(help="Two seeds, a hundredth of the steps, a fifth of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/all"),
) -> None:
    """Trains the algorithms in the scenarios with the settings of the zoo; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.overview import ALGORITHMS, SCENARIOS, study

    algos = [names.choose("algorithm", name, ALGORITHMS) for name in algo or ALGORITHMS]
    envs = [names.environment(name) for name in env or SCENARIOS]
    with on_cluster(cluster, scheduler):
        study(algos, envs, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command()
def tuned(
    algo: Annotated[list[str] | None, typer.Option(help="An algorithm; repeatable. All by default.")] = None,
    env: Annotated[list[str] | None, typer.Option(help="Environment ID; repeatable. All by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per pair and way.")] = 5,
    quick: Annotated[bool, typer.Option(help="Two seeds, a twentieth of the steps, a fifth of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/tuned"),
) -> None:
    """Compares tuned settings with the defaults on seeds they have not seen; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.overview import ALGORITHMS
    from sb3_fair.zoo.studies.tuned import study, tuned_pairs

    pairs = tuned_pairs([names.choose("algorithm", name, ALGORITHMS) for name in algo or ALGORITHMS])
    known = list(dict.fromkeys(pair.env for pair in pairs))
    envs = [names.choose("tuned environment", name.removeprefix(names.PREFIX), known) for name in env or known]
    pairs = [pair for pair in pairs if pair.env in envs]
    with on_cluster(cluster, scheduler):
        study(pairs, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command()
def hiring(
    env: Annotated[str, typer.Option(help="A hiring environment.")] = "sb3_fair/JobHiring-v0",
    seeds: Annotated[int, typer.Option(min=1, help="Train with the seeds 0, 1, ...")] = 3,
    n_timesteps: Steps = None,
    n_eval_episodes: Annotated[int, typer.Option(min=1, help="Fresh episodes per policy.")] = 50,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/study"),
) -> None:
    """Trains PCN over seeds and measures its trade-offs on fresh episodes; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.hiring import study

    _threads(1)
    wishes: dict[str, Any] = {"n_timesteps": n_timesteps, "n_eval_episodes": n_eval_episodes}
    with on_cluster(cluster, scheduler):
        study(env, range(seeds), n_jobs=jobs, log_dir=log_dir, **wishes)


@benchmark.command("fair-qcm")
def fair_qcm(
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="doughnut, loans, gaussian, tabular, visits or schemes; repeatable. All by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per learner.")] = 10,
    quick: Annotated[bool, typer.Option(help="Two seeds and a fifth of the steps.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/fair-qcm"),
) -> None:
    """Compares memories and counterfactual replay over seeds; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.fair_qcm import NAMES, study

    chosen = [names.choose("experiment", name, NAMES) for name in experiment or NAMES]
    with on_cluster(cluster, scheduler):
        study(chosen, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command("f-ppo")
def f_ppo(
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="lending, attention, epidemic or epidemic-random; repeatable. All by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per learner.")] = 5,
    quick: Annotated[bool, typer.Option(help="Two seeds, a fifth of the steps and of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/f-ppo"),
) -> None:
    """Compares F-PPO with its baselines over seeds, now and in the long run; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.f_ppo import EXPERIMENTS, study

    chosen = [names.choose("experiment", name, EXPERIMENTS) for name in experiment or EXPERIMENTS]
    with on_cluster(cluster, scheduler):
        study(chosen, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command("fair-ppo")
def fair_ppo(
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="chosen, alpha, beta, grid, csp, cf, tolerance or controls; repeatable. All by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per setting; of some experiments fewer.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="Below 100 to choose settings, which others then test.")] = 100,
    quick: Annotated[bool, typer.Option(help="Two seeds, a tenth of the steps and of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/fair-ppo"),
) -> None:
    """Weighs unequal returns in a game of 40 agents: disparity and its price; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.fair_ppo import NAMES, study

    chosen = [names.choose("experiment", name, NAMES) for name in experiment or NAMES]
    with on_cluster(cluster, scheduler):
        study(chosen, seeds=seeds, first_seed=first_seed, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command()
def fmdp(
    env: Annotated[str, typer.Option(help="hiring, hiring-small or fraud.")] = "hiring-small",
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help="single, multi, distance, history, discount, population (of hiring only), bias or competitors; "
            "repeatable. All by default."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per setting.")] = 5,
    quick: Annotated[bool, typer.Option(help="Two seeds, a tenth to a fifth of the steps, fewer episodes.")] = False,
    preset: Annotated[str | None, typer.Option(help="paper: rewards as published.")] = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/fmdp"),
) -> None:
    """Measures what trade-offs depend on, and PCN beside sweeps over weights; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.fmdp import study

    with on_cluster(cluster, scheduler):
        study(experiment, env=env, seeds=seeds, quick=quick, preset=preset, n_jobs=jobs, log_dir=log_dir)


def main() -> None:
    """The console script: wrong input is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        sys.exit(_complain(str(error)))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own errors have it, whichever copy of click typer brings
            raise
        sys.exit(_complain(error.format_message()))
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    print(f"sb3-fair: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _only(context: typer.Context, name: str, *beside: str) -> None:
    """Refuses options on the command line that have no meaning beside the one called ``name``."""
    given = [key for key in context.params if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"]
    idle = sorted(set(given) - {name, *beside})
    if idle:
        options = ", ".join("--" + key.replace("_", "-") for key in idle)
        raise InputError(f"--{name} takes everything from the run: leave out {options}")


def _command() -> str:
    return shlex.join(["sb3-fair", *sys.argv[1:]])


def _threads(number: int) -> None:
    from sb3_fair.common.threads import use_threads

    if number < 1:
        raise InputError(f"num-threads must be a positive integer, got {number}")
    use_threads(number)


def _run(path: Path | None, pretrained: str | None = None) -> Any:
    """The run in a folder, or one that ships."""
    from sb3_fair.common.run_folder import RunFolder
    from sb3_fair.zoo import pretrained as shipped

    if (path is None) == (pretrained is None):
        raise InputError("either --run or --pretrained must be given")
    if pretrained is not None:
        return shipped.pretrained(pretrained)
    try:
        return RunFolder.open(str(path))
    except FileNotFoundError as error:
        raise InputError(str(error)) from error


def _settings(option: str, entries: list[str] | None) -> dict[str, Any]:
    """``key:value`` pairs; values are YAML and are never run as code."""
    settings = {}
    for entry in entries or ():
        key, colon, value = entry.partition(":")
        if not (key and colon):
            raise InputError(f"{option} must be key:value, as in gamma:0.99, got {entry!r}")
        try:
            settings[key] = _value(value)
        except yaml.YAMLError as error:
            raise InputError(f"{option} must have a YAML value, got {entry!r}") from error
    return settings


def _value(text: str) -> Any:
    """A YAML value; also 1e-3 is a number, which YAML 1.1 takes for text."""
    value = yaml.safe_load(text)
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(":")]
    except ValueError as error:
        raise InputError(f"{option} must be numbers separated by colons, as in 1:0.5:0, got {text!r}") from error
