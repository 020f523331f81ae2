"""Tables of evaluated policies for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.group_counts import rates_of
from sb3_fair.fairness.descriptions import NO_WORDS, Words
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.report.groups import rate
from sb3_fair.report.measures import Measure, goals, means, measures

HEADLINES = ("d_s", "d_l", "filtered")
"""Figures at the end of an episode that stand beside the objectives."""
MOST = 12
"""Policies whose groups are shown."""
ARROWS = {"higher": " ↑", "lower": " ↓", "zero": " →0", None: ""}


def show(table: Table) -> None:
    """Prints the table with every cell whole, however narrow the terminal or pipe is."""
    console = Console(width=10_000)
    Console(width=max(Console().width, 200, console.measure(table).maximum)).print(table)


def blank_table(*columns: str, texts: int = 1, **more: Any) -> Table:
    """A table without rows: some columns of text, then columns of numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False, **more)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < texts else "right", no_wrap=True)
    return table


def policy_table(
    policies: Sequence[EvaluatedPolicy],
    rules: Sequence[EvaluatedPolicy] = (),
    most: int | None = None,
    words: Words = NO_WORDS,
) -> Table:
    """Mean and 95 % confidence interval per objective, disparity, and share of decisions that a filter changed; the
    final size of the group notions beside what chance gives.

    :param most: show at most so many policies
    :param words: what the environment says of its own measures
    """
    found = measures(Front(tuple(policies)), words)
    shown = [measure for measure in found if measure.name in HEADLINES or (measure.optimised and not measure.final)]
    chances = [measure.name for measure in shown if any(measure.name in policy.chance for policy in policies)]
    table = blank_table("policy", *map(_heading, shown), *(f"|{name}| (chance)" for name in chances), "steps")
    if most is not None and len(policies) > most:
        table.caption = f"{most} of {len(policies)} policies; the report has all"
        policies = _spread(policies, most)
    table.add_column("actions", no_wrap=True)
    for policy in policies:
        table.add_row(*_row(policy, shown, chances), "most probable" if policy.deterministic else "sampled")
    if rules:
        table.add_section()
    for rule in rules:
        table.add_row(*_row(rule, shown, chances), style="dim")
    return table


def seed_table(runs: Mapping[int, Front]) -> Table:
    """What each seed's run reached of every objective where it was defined, of a front the best of each; means with
    95 % intervals below."""
    fronts = list(runs.values())
    best = np.array([np.fmax.reduce(means(front, goals(front)), axis=0) for front in fronts])
    several = any(len(front) > 1 for front in fronts)
    reached = [f"best {name}" if several else name for name in fronts[0].objectives]
    table = blank_table("seed", "policies", *reached, texts=0)
    for (seed, front), values in zip(runs.items(), best, strict=True):
        table.add_row(str(seed), str(len(front)), *(_told("{:.3f}", value) for value in values), style="dim")
    mean, low, _ = mean_and_interval(best)
    table.add_section()
    table.add_row("mean", "", *(_interval(*ends, 3) for ends in zip(mean, mean - low, strict=True)))
    return table


def group_table(policies: Sequence[EvaluatedPolicy]) -> Table | None:
    """Who got the favourable decision, of each group, in percent with 95 % confidence intervals over episodes; and of
    how many the outcome is known after either decision. None: no groups are compared.

    At most :data:`MOST` policies are shown, evenly spread over their order.
    """
    shares = (
        "favourable",
        "of known deserving",
        "of known undeserving",
        "known if favourable",
        "known if unfavourable",
    )
    table = blank_table("policy", "group", "decisions", *shares, texts=2)
    for policy in _spread(policies, MOST):
        first = policy.name
        for attribute, groups in policy.groups.items():
            for label, counts in groups.items():
                group = policy.group_title(attribute, label)
                rates = rates_of(counts)
                decisions = rates["favourable"][1].mean()
                table.add_row(first, group, f"{decisions:.0f}", *(_percent(*rate) for rate in rates.values()))
                first = ""
    return table if table.row_count else None


def _spread(policies: Sequence[EvaluatedPolicy], most: int) -> list[EvaluatedPolicy]:
    """At most so many of them, evenly spread over their order."""
    return [policies[index] for index in np.unique(np.linspace(0, len(policies) - 1, most).round().astype(int))]


def _percent(hits: NDArray[Any], people: NDArray[Any]) -> str:
    share, low, high = 100 * np.array(rate(hits, people))
    if np.isnan(share):
        return ""
    return f"{share:.1f} %" + ("" if np.isnan(low) else f" ({low:.1f} to {high:.1f})")


def figure_table(
    policies: Sequence[EvaluatedPolicy], rules: Sequence[EvaluatedPolicy] = (), words: Words = NO_WORDS
) -> Table:
    """A row for every figure that some policy has: mean and 95 % confidence interval per policy and rule, and for group
    notions the size that chance gives to the first policy.

    Objectives are returns; the others were measured after an episode's last step, ``mean_`` over all its steps.
    """
    table = blank_table("figure")
    for column in (*policies, *rules):
        table.add_column(column.name, justify="right", no_wrap=True, style="dim" if column in rules else "")
    table.add_column("chance", justify="right", no_wrap=True)
    for measure in measures(Front((*policies, *rules)), words):
        if any(len(measure.samples(policy)) for policy in (*policies, *rules)):
            chance = measure.chance(policies[0])
            cells = [_cell(measure, policy, 3) for policy in (*policies, *rules)]
            table.add_row(_heading(measure), *cells, _told("{:.3f}", chance))
    table.add_row("steps", *(f"{policy.length:.0f}" for policy in (*policies, *rules)), "")
    return table


def _heading(measure: Measure) -> str:
    """The name of a measure, and which way is better."""
    return f"{measure.label}{ARROWS[measure.about.better]}"


def _cell(measure: Measure, policy: EvaluatedPolicy, digits: int) -> str:
    return _interval(measure.mean(policy), measure.half_width(policy), digits)


def _interval(mean: float, half: float, digits: int) -> str:
    return _told(f"{{:.{digits}f}}", mean) + _told(f" ± {{:.{digits}f}}", half)


def _told(form: str, number: float) -> str:
    """The number in this form; nothing where it is undefined."""
    return "" if np.isnan(number) else form.format(number)


def _row(policy: EvaluatedPolicy, shown: Sequence[Measure], chances: Sequence[str]) -> list[str]:
    cells = [policy.name]
    cells += [_cell(measure, policy, 1 if measure.name == "R" else 3) for measure in shown]
    for name in chances:
        size = abs(Measure(name, optimised=True, final=True).mean(policy))
        level = _told(" ({:.3f})", policy.chance.get(name, float("nan")))
        cells.append(_told(f"{{:.3f}}{level}", size))
    return [*cells, f"{policy.length:.0f}"]
