"""The command `sb3-fair audit`: how fair the decisions in a file are."""

import math
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_fair.zoo import names
from sb3_fair.zoo.cli.options import REPEATABLE, Seed, option, row, with_options, writable
from sb3_fair.zoo.names import InputError

BROKEN = 3
"""Exit code where a notion is below what --fail-below asks for."""
_WIDTH = 79
TABLE = (
    option("action", str, "Column with what was decided.", default=...),
    option("group", REPEATABLE, "Column whose groups are compared. Repeatable.", default=...),
    option("favourable", REPEATABLE, "The favourable action; by default yes, true or 1."),
    option("feedback", str, "Column with which decision would have been right, or whether yes would."),
    option("deserving", REPEATABLE, "Value of --feedback for which the favourable action is right."),
    option("features", REPEATABLE, "Column that describes a person, for IF, LIP, CSC. Repeatable."),
    option("nominal", REPEATABLE, "A feature whose values are names. Repeatable."),
    option("score", str, "Column with the probability of the favourable decision, for IF and LIP."),
    option("time", str, "Column with numbers or dates; by default rows are in order."),
    option("window", int, "Show notions of so many latest decisions over time.", min=1),
    option("reward", str, "Column with what a decision brought; with --stakeholder or --propensity."),
    option("stakeholder", str, "Column with whom it was brought to."),
    option("propensity", str, "Column with the probability of the decision that was made; with --target."),
    option("target", str, "Column with the probability of the favourable decision by another policy, to compare."),
    option("delimiter", str, "Of CSV; by default as the file looks."),
    option("encoding", str, "Of CSV; by default UTF-8, or else cp1252."),
    option("n_boot", int, "Bootstrap draws for intervals.", default=1000, min=1),
    option("reservoir", int, "People that individual notions are estimated from.", default=1000, min=1),
    option("feedback_missing", str, "What unknown outcomes mean: undefined, reweight or ignore.", default="undefined"),
    row("seed", Seed, 0),
)
"""Arguments of :func:`~sb3_fair.audit.audit_file`."""


@with_options("asked", TABLE)
def audit(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or JSON lines; one decision per row.")],
    model: Annotated[
        Path | None,
        typer.Option(help="Run of sb3-fair train: what its policy would have decided, from columns of its names."),
    ] = None,
    policy: Annotated[int | None, typer.Option(help="Number of the policy of --model, if it has several.")] = None,
    notions: Annotated[str | None, typer.Option(help="As in SP:EO; by default all that the columns allow.")] = None,
    limit: Annotated[
        REPEATABLE | None,
        typer.Option(help="Lowest value that is accepted, as in SP=-0.2 or SP@gender=-0.2. Repeatable."),
    ] = None,
    fail_below: Annotated[
        REPEATABLE | None, typer.Option(help="A --limit that ends with exit code 3 if broken. Repeatable.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
    json: Annotated[Path | None, typer.Option(help="File to write all figures to.")] = None,
    *,
    asked: dict[str, Any],
) -> None:
    """Audits decisions that were already made: groups, notions, intervals, chance, the course over time."""
    from sb3_fair.audit import audit_file
    from sb3_fair.audit.limits import broken_limits, lowest_values

    fails = _limits("fail-below", fail_below)
    writable("html", html, file)
    writable("json", json, file, html)
    if model is not None and "target" in asked:
        raise InputError("model must be left out where target names a column, got both")
    if policy is not None and model is None:
        raise InputError("policy must be given with model, got it alone")
    with names.input_errors():
        if model is not None:
            from sb3_fair.zoo.runs.agent import load_agent

            which = "the policy" if policy is None else f"policy {policy}"
            asked["target"] = load_agent(model, policy).other_policy(f"{which} of {model}")
        if notions is not None:
            asked["notions"] = names.notions(notions)
        shown = _limits("limit", limit)
        stricter = {name: max(lowest, shown.get(name, lowest)) for name, lowest in fails.items()}
        result = audit_file(file, limits={**shown, **stricter}, **asked)
    _lines(result.sentences)
    if result.warnings:
        typer.echo("\nTo be careful about:")
        _lines(result.warnings)
    typer.echo(f"\n{result.table()}")
    if html is not None:
        result.to_html(html)
        typer.echo(f"\n{html}")
    if json is not None:
        result.to_json(json)
        typer.echo(f"\n{json}")
    failed = broken_limits(result.notions, lowest_values(fails, result.about["notions"], result.about["group"]))
    for one in failed:
        typer.echo(f"sb3-fair: {one}", err=True)
    if failed:
        raise typer.Exit(BROKEN)


def _lines(texts: list[str]) -> None:
    for text in texts:
        plain = "".join(letter if letter.isprintable() else "?" for letter in text)
        typer.echo(textwrap.fill(plain, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))


def _limits(option: str, entries: REPEATABLE | None) -> dict[str, float]:
    """``SP=-0.2``; a later one for the same notion counts."""
    found = {}
    for entry in entries or ():
        notion, sign, value = entry.rpartition("=")
        try:
            found[notion] = float(value)
        except ValueError:
            sign = ""
        if not (notion and sign and math.isfinite(found[notion])):
            raise InputError(f"{option} must be a notion and a number, as in SP=-0.2, got {entry!r}")
    return found
