"""The command `sb3-fair audit`: how fair the decisions in a file are."""

import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_fair.zoo import names
from sb3_fair.zoo.cli.options import Seed
from sb3_fair.zoo.names import InputError

BROKEN = 3
"""Exit code where a notion is below what --fail-below asks for."""
_WIDTH = 79
Names = list[str] | None


def audit(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or JSON lines; one decision per row.")],
    action: Annotated[str, typer.Option(help="Column with what was decided.")],
    group: Annotated[list[str], typer.Option(help="Column whose groups are compared. Repeatable.")],
    favourable: Annotated[Names, typer.Option(help="The favourable action; by default yes, true or 1.")] = None,
    feedback: Annotated[
        str | None, typer.Option(help="Column with which decision would have been right, or whether yes would.")
    ] = None,
    deserving: Annotated[
        Names, typer.Option(help="Value of --feedback for which the favourable action is right.")
    ] = None,
    features: Annotated[
        Names, typer.Option(help="Column that describes a person, for IF, LIP, CSC. Repeatable.")
    ] = None,
    nominal: Annotated[Names, typer.Option(help="A feature whose values are names. Repeatable.")] = None,
    score: Annotated[
        str | None, typer.Option(help="Column with the probability of the favourable decision, for IF and LIP.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column with numbers or dates; by default rows are in order.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Show notions of so many latest decisions over time.")
    ] = None,
    reward: Annotated[str | None, typer.Option(help="Column with what a decision brought; with --stakeholder.")] = None,
    stakeholder: Annotated[str | None, typer.Option(help="Column with whom it was brought to.")] = None,
    propensity: Annotated[
        str | None, typer.Option(help="Column with the probability of the decision that was made; with --target.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column with the probability of the favourable decision by another policy, to compare."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Run of sb3-fair train: what its policy would have decided, from columns of its names."),
    ] = None,
    policy: Annotated[int | None, typer.Option(help="Number of the policy of --model, if it has several.")] = None,
    notions: Annotated[str | None, typer.Option(help="As in SP:EO; by default all that the columns allow.")] = None,
    limit: Annotated[
        Names, typer.Option(help="Lowest value that is accepted, as in SP=-0.2 or SP@gender=-0.2. Repeatable.")
    ] = None,
    fail_below: Annotated[
        Names, typer.Option(help="A --limit that ends with exit code 3 if broken. Repeatable.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
    json: Annotated[Path | None, typer.Option(help="File to write all figures to.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of CSV; by default as the file looks.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV; by default UTF-8, or else cp1252.")] = None,
    n_boot: Annotated[int, typer.Option(min=1, help="Bootstrap draws for intervals.")] = 1000,
    reservoir: Annotated[int, typer.Option(min=1, help="People that individual notions are estimated from.")] = 1000,
    feedback_missing: Annotated[
        str, typer.Option(help="What unknown outcomes mean: undefined, reweight or ignore.")
    ] = "undefined",
    seed: Seed = 0,
) -> None:
    """Audits decisions that were already made: groups, notions, intervals, chance, the course over time."""
    from sb3_fair.audit import audit_file

    fails = _limits("fail-below", fail_below)
    for option, path in (("html", html), ("json", json)):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"{option} must be in a folder that is there, got {str(path)!r}")
    if model is not None and target is not None:
        raise InputError("model must be left out where target names a column, got both")
    if policy is not None and model is None:
        raise InputError("policy must be given with model, got it alone")
    other: Any = target
    with names.input_errors():
        if model is not None:
            from sb3_fair.zoo.runs.agent import load_agent

            other = load_agent(model, policy).other_policy(str(model))
        result = audit_file(
            file,
            delimiter=delimiter,
            encoding=encoding,
            action=action,
            group=group,
            feedback=feedback,
            features=features or (),
            nominal=nominal or (),
            score=score,
            time=time,
            reward=reward,
            stakeholder=stakeholder,
            propensity=propensity,
            target=other,
            window=window,
            favourable=favourable or None,
            deserving=deserving or None,
            notions=None if notions is None else names.notions(notions),
            limits={**_limits("limit", limit), **fails},
            feedback_missing=feedback_missing,
            n_boot=n_boot,
            reservoir=reservoir,
            seed=seed,
        )
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
    failed = [one for one in result.broken if {one.notion, f"{one.notion}@{one.attribute}"} & fails.keys()]
    for one in failed:
        typer.echo(f"sb3-fair: {one}", err=True)
    if failed:
        raise typer.Exit(BROKEN)


def _lines(texts: list[str]) -> None:
    for text in texts:
        plain = "".join(letter if letter.isprintable() else "?" for letter in text)
        typer.echo(textwrap.fill(plain, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))


def _limits(option: str, entries: Names) -> dict[str, float]:
    """``SP=-0.2``; a later one for the same notion counts."""
    found = {}
    for entry in entries or ():
        notion, sign, value = entry.rpartition("=")
        try:
            found[notion] = float(value)
        except ValueError:
            sign = ""
        if not (notion and sign):
            raise InputError(f"{option} must be a notion and a number, as in SP=-0.2, got {entry!r}")
    return found
