"""What simple rules reach in the scenarios: a scale for what is learned."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluator import evaluate
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.studies.grid import Job
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, conduct, read, size

SCENARIOS: dict[str, dict[str, Any]] = read("rules")
FRESH = 80_000
"""Seed of the episodes, far from those of training and of choosing."""


def study(
    scenarios: Sequence[str] | None = None,
    *,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/rules",
) -> dict[str, Any]:
    """As :class:`~sb3_fair.zoo.studies.study.Study`: every rule of a scenario on the same episodes.

    :param scenarios: names in ``rules.yml``; None: all
    :param quick: a twentieth of the episodes
    :return: scenario -> rule -> figure -> mean and ends of its 95 % confidence interval, over episodes
    :raises InputError: if a name is unknown
    """
    chosen = names.choose_all("scenario", scenarios, SCENARIOS)
    folder = Path(log_dir, size(quick))

    def jobs(name: str) -> list[Job]:
        entry = SCENARIOS[name]
        settings = entry.get("settings", {})
        rules = {rule: rule for rule in attribute(make_vec(entry["env"], **settings), "rules")} | entry.get("more", {})
        told = {"env": entry["env"], "episodes": entry["episodes"] // (20 if quick else 1), "settings": settings}
        return [Job(f"{name}/{label}", play, {"rule": rule, **told}) for label, rule in rules.items()]

    def tell(name: str, results: Results) -> dict[str, Any]:
        found = {job.removeprefix(f"{name}/"): result for job, result in results.items() if job.startswith(f"{name}/")}
        sheet(SCENARIOS[name]["title"], SCENARIOS[name]["shown"], found).publish(folder / f"{name}.md")
        return found

    return conduct({name: jobs(name) for name in chosen}, tell, folder, n_jobs)


def play(rule: str, env: str, episodes: int, settings: Mapping[str, Any]) -> dict[str, list[float]]:
    """Mean and interval of every figure; ``rule`` is one of the environment's, or ``"module:class"`` of an agent."""
    policy = resolve_name(rule)(seed=FRESH) if ":" in rule else rule
    summary = evaluate(policy, env, episodes, FRESH, n_envs=episodes, **settings).summary()
    return {name: list(map(float, interval)) for name, interval in summary.items()}
