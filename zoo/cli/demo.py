"""The command `sb3-fair demo`."""

from pathlib import Path

from rich.console import Console

from sb3_fair.zoo.cli.options import Device, LogDir, Progress, Seed, Steps, Threads, command_line, hold_threads

ENVIRONMENT = "sb3_fair/JobHiring-Small-v0"


def demo(
    seed: Seed = 0,
    n_timesteps: Steps = None,
    device: Device = "auto",
    num_threads: Threads = 1,
    log_dir: LogDir = Path("logs"),
    progress: Progress = True,
) -> None:
    """Learns the trade-offs of hiring in about two minutes and shows them."""
    from sb3_fair.zoo.evaluation.tables import policy_table, show
    from sb3_fair.zoo.runs.plan import make_plan
    from sb3_fair.zoo.runs.train import train

    hold_threads(num_threads)
    console = Console()
    plan = make_plan("pcn", ENVIRONMENT, seed=seed, objectives=("R", "SP", "IF"), n_timesteps=n_timesteps)
    console.print(
        "A company hires from the Belgian population, one applicant after the other. One network learns, over "
        f"{plan.n_timesteps:,} decisions, how to trade off\n"
        "  [bold]R[/]   a skilled team,\n"
        "  [bold]SP[/]  men and women hired equally often, and\n"
        "  [bold]IF[/]  similar people treated alike.\n"
    )
    run = train(plan, log_dir=log_dir, command=command_line(), device=device, progress=progress)
    console.print(f"\n{len(run.front)} policies, none better than another in everything, and simple rules")
    console.print("(mean ± 95 % confidence interval; fairness is best at 0):\n")
    show(policy_table(run.front, run.baselines, most=12, words=run.words))
    console.print(f"\nOpen the report in a browser: [bold]{run.report}[/]", soft_wrap=True)
