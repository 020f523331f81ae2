"""The commands `sb3-fair benchmark ...`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_fair.zoo import names
from sb3_fair.zoo.options import Cluster, Jobs, LogDir, Scheduler, Steps, hold_threads

benchmark = typer.Typer(name="benchmark", help="Studies, and the speed of this installation.", no_args_is_help=True)


@benchmark.command()
def speed(
    json: Annotated[Path | None, typer.Option(help="Write the figures to this file, to compare versions.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the work: rough figures.")] = False,
) -> None:
    """Steps per second of environments, fairness notions and algorithms, beside what they should reach."""
    from sb3_fair.zoo.benchmark import speed

    hold_threads(1)
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
    quick: Annotated[
        bool, typer.Option(help="At most two seeds, a hundredth of the steps, a fifth of the episodes.")
    ] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/all"),
) -> None:
    """Trains the algorithms in the scenarios with the settings of the zoo; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.overview import ALGORITHMS, SCENARIOS, study

    algos = names.choose_all("algorithm", algo, ALGORITHMS)
    envs = [names.environment(name) for name in env or SCENARIOS]
    with on_cluster(cluster, scheduler):
        study(algos, envs, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command()
def tuned(
    algo: Annotated[list[str] | None, typer.Option(help="An algorithm; repeatable. All by default.")] = None,
    env: Annotated[list[str] | None, typer.Option(help="Environment ID; repeatable. All by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per pair and way.")] = 5,
    quick: Annotated[
        bool, typer.Option(help="At most two seeds, a twentieth of the steps, a fifth of the episodes.")
    ] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/tuned"),
) -> None:
    """Compares tuned settings with the defaults on seeds they have not seen; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.overview import ALGORITHMS
    from sb3_fair.zoo.studies.tuned import study, tuned_pairs

    pairs = tuned_pairs(names.choose_all("algorithm", algo, ALGORITHMS))
    bare = [name.removeprefix(names.PREFIX) for name in env or ()]
    envs = names.choose_all("tuned environment", bare, dict.fromkeys(pair.env for pair in pairs))
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

    hold_threads(1)
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
    quick: Annotated[bool, typer.Option(help="At most two seeds and a fifth of the steps.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/fair-qcm"),
) -> None:
    """Compares memories and counterfactual replay over seeds; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.fair_qcm import NAMES, study

    chosen = names.choose_all("experiment", experiment, NAMES)
    with on_cluster(cluster, scheduler):
        study(chosen, seeds=seeds, quick=quick, n_jobs=jobs, log_dir=log_dir)


@benchmark.command("f-ppo")
def f_ppo(
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="lending, attention, epidemic or epidemic-random; repeatable. All by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per learner.")] = 5,
    quick: Annotated[bool, typer.Option(help="At most two seeds, a fifth of the steps and of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/f-ppo"),
) -> None:
    """Compares F-PPO with its baselines over seeds, now and in the long run; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.f_ppo import EXPERIMENTS, study

    chosen = names.choose_all("experiment", experiment, EXPERIMENTS)
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
    quick: Annotated[bool, typer.Option(help="At most two seeds, a tenth of the steps and of the episodes.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
    log_dir: LogDir = Path("logs/fair-ppo"),
) -> None:
    """Weighs unequal returns in a game of 40 agents: disparity and its price; goes on where it was interrupted."""
    from sb3_fair.zoo.parallel import on_cluster
    from sb3_fair.zoo.studies.fair_ppo import NAMES, study

    chosen = names.choose_all("experiment", experiment, NAMES)
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
    quick: Annotated[
        bool, typer.Option(help="At most two seeds, a tenth to a fifth of the steps, fewer episodes.")
    ] = False,
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
