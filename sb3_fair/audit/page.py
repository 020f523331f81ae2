"""The page of an audit: one HTML document in the look of the report, without programs and without a network."""

import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from sb3_fair.audit.drawings import course, interval
from sb3_fair.audit.markup import Markup, join, tag
from sb3_fair.audit.result import Audit, Gap, NotionValue, Share
from sb3_fair.audit.words import favourable_text, number, percent, span
from sb3_fair.fairness.descriptions import describe
from sb3_fair.report.html import source_hash, stylesheet

_GROUPS, _GAPS, _MOMENTS = 60, 60, 40
LEAD = (
    "Decisions that were already made: how often each group got the favourable one, how sure that is, and how large "
    "the differences between groups would be by chance."
)
LIMITS = (
    "A log says who was decided on, not who never applied or was turned away before.",
    "Equal rates are not yet just, and unequal ones not yet unjust: reasons that this table does not hold may lie "
    "behind them. People who know the decisions have to judge that.",
    "The feedback is taken for the truth. If it was recorded with a bias, notions that use it inherit the bias.",
    "People who were decided on several times count as several people, and intervals take them for independent.",
)


def page(audit: Audit) -> str:
    """The whole page. All texts of the data are escaped; its Content-Security-Policy lets nothing run or load."""
    style = stylesheet() + files("sb3_fair.audit").joinpath("audit.css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; style-src {source_hash(style)}; base-uri 'none'; form-action 'none'"
    about = audit.about
    title = f"Who got the favourable decision? {favourable_text(about)}"
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    attributes = dict.fromkeys(group.attribute for group in audit.groups)
    facts = [
        (f"{about['decisions']:,}", "decisions"),
        (f"{len(about['group'])}", "attribute" + "s" * (len(about["group"]) > 1)),
        (f"{100 * about['confidence']:g} %", "intervals"),
    ]
    parts = [
        tag("header", tag("p", "sb3-fair", class_="brand"), tag("h1", title), tag("p", LEAD, class_="lead"),
            tag("ul", *(tag("li", tag("b", many), " ", words) for many, words in facts), class_="facts")),
        _card("In words", _say(audit.sentences, len(audit.broken))) if audit.sentences else None,
        _card("To be careful about", _say(audit.warnings), kind="card careful") if audit.warnings else None,
        *(_attribute(audit, attribute) for attribute in attributes),
        _individuals([one for one in audit.notions if not one.attribute]),
        *(_over_time(audit, attribute) for attribute in attributes),
        _other(audit),
        _welfare(audit),
        _card("What the figures mean", _glossary(audit)),
        _card("What this page cannot tell", _say(LIMITS)),
        _card("How it was made", _made(about)),
    ]  # fmt: skip
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("main", *parts)), lang="en") + "\n"


def _card(title: str, *content: Any, kind: str = "card") -> Markup:
    return tag("section", tag("h2", title), *content, class_=kind)


def _say(texts: Sequence[str], broken: int = 0) -> Markup:
    """A list of sentences; the first ``broken`` ones stand out."""
    items = (tag("li", text, class_="broken" if index < broken else None) for index, text in enumerate(texts))
    return tag("ul", *items, class_="say")


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> Markup:
    """Cells of the first ``left`` columns are texts."""

    kinds = ["left"] * left + [None] * (len(heads) - left)
    head = tag("tr", *(tag("th", text, class_=kind, scope="col") for text, kind in zip(heads, kinds, strict=True)))
    body = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def _attribute(audit: Audit, attribute: str) -> Markup:
    groups = [group for group in audit.groups if group.attribute == attribute]
    notions = [one for one in audit.notions if one.attribute == attribute]
    gaps = sorted((gap for gap in audit.gaps if gap.attribute == attribute), key=_sort_key)
    more = len(groups) - _GROUPS
    columns = {"favourable": "got the favourable decision", "deserving": "of those who deserved it",
               "undeserving": "of those who did not"}  # fmt: skip
    shown = [name for name in columns if any(getattr(group, name).people for group in groups)]
    rows = [[one.group, f"{one.n:,}", *(_share(getattr(one, name)) for name in shown)] for one in groups[:_GROUPS]]
    return _card(
        attribute,
        tag("p", "A dot is a share, the line its interval, on an axis from 0 to 100 %.", class_="hint"),
        _table(["group", "decisions", *(columns[name] for name in shown)], rows),
        tag("p", f"{more} more groups are in the JSON file.", class_="hint") if more > 0 else None,
        tag("h3", "Notions: 0 is fair, negative is unfair") if notions else None,
        _notions(notions) if notions else None,
        _gaps(gaps) if gaps else None,
    )


def _share(share: Share) -> Markup:
    if math.isnan(share.rate):
        return join("–")
    return join(
        percent(share.rate), " ", tag("small", f"{100 * share.low:.1f} to {100 * share.high:.1f}"), interval(share)
    )


def _notions(notions: Sequence[NotionValue]) -> Markup:
    bounded = any(one.bounds is not None for one in notions)
    chance = any(not math.isnan(one.chance) for one in notions)
    heads = ["notion", "value", "interval", *(["by chance"] if chance else []), *(["bounds"] if bounded else [])]
    rows = []
    for one in notions:
        name = join(describe(one.notion).title, " ", tag("small", one.notion))
        row = [name, number(one.value), _ends(one.low, one.high), *([number(one.chance)] if chance else [])]
        rows.append([*row, *(["" if one.bounds is None else _ends(*one.bounds)] if bounded else [])])
    return _table(heads, rows)


def _sort_key(gap: Gap) -> tuple[float, float]:
    return (math.inf if math.isnan(gap.p) else gap.p, gap.difference)


def _gaps(gaps: Sequence[Gap]) -> Markup:
    rows = [
        [gap.rate, gap.first, gap.second, number(100 * gap.difference, 1), _ends(100 * gap.low, 100 * gap.high, 1),
         _p(gap.p_holm)]
        for gap in gaps[:_GAPS]
    ]  # fmt: skip
    shown = f"{len(rows)} of {len(gaps)}" if len(gaps) > len(rows) else f"{len(gaps)}"
    heads = ["share who", "group", "compared with", "points", "interval", "p (Holm)"]
    return tag("details", tag("summary", f"Differences between pairs of groups ({shown})"), _table(heads, rows, left=3))


def _individuals(notions: Sequence[NotionValue]) -> Markup | None:
    if not notions:
        return None
    hint = f"People are compared with those who are like them, on {notions[0].people:,} people of the log."
    return _card("Individuals", tag("p", hint, class_="hint"), _notions(notions))


def _over_time(audit: Audit, attribute: str) -> Markup | None:
    series = [one for one in audit.series if one.attribute == attribute and any(v == v for v in one.values)]
    if not series:
        return None
    moments = [moment for moment in audit.moments if moment.attribute == attribute]
    hint = (
        f"Of the latest {audit.about['window']:,} decisions; 0 is fair. The band is the confidence interval, the "
        "thin line is the lowest value in between, the dashed line the limit."
    )
    charts = [
        tag("figure", tag("figcaption", f"{describe(one.notion).title} ({one.notion})"), course(one)) for one in series
    ]
    said = [f"{one.notion} was below {one.limit:g} {span(one)}." for one in moments[:_MOMENTS]]
    if len(moments) > _MOMENTS:
        said.append(f"{len(moments) - _MOMENTS} more are in the JSON file.")
    parts = tag("p", hint, class_="hint"), tag("div", *charts, class_="charts"), _say(said) if said else None
    return _card(f"{attribute} over time", *parts)


def _other(audit: Audit) -> Markup | None:
    if not audit.other_rates:
        return None
    hint = (
        f"The policy whose probabilities are in {audit.about['target']!r}, on the same people. What a decision changes "
        "for later ones is not replayed."
    )
    rows = [
        [rate.attribute, rate.group, rate.among, percent(rate.logged), percent(rate.other),
         f"{percent(rate.low)} to {percent(rate.high)}"]
        for rate in audit.other_rates[:_GROUPS]
    ]  # fmt: skip
    heads = ["", "group", "among", "in the log", "other policy", "interval"]
    return _card("Another policy", tag("p", hint, class_="hint"), _table(heads, rows, left=3), _earned(audit))


def _earned(audit: Audit) -> Markup | None:
    found = audit.off_policy
    if found is None:
        return None
    said = f"What a decision would earn: {found.refused}."
    if not found.refused:
        said = (
            f"What a decision would earn. Effective sample size {found.effective:,.0f} of {found.n:,}; mean weight "
            f"{found.mean_weight:.3f}, 1 if the propensities are right."
        )
    rows = [[one.title, number(one.value, 4), _ends(one.low, one.high, 4)] for one in found.all]
    return join(tag("h3", said), _table(["estimate", "reward", "interval"], rows))


def _welfare(audit: Audit) -> Markup | None:
    if not audit.welfare:
        return None
    rows = [[figure.title, tag("small", figure.name), number(figure.value, 4)] for figure in audit.welfare]
    return _card("Welfare of the stakeholders", _table(["of the sums of rewards", "", "value"], rows, left=2))


def _glossary(audit: Audit) -> Markup:
    told = [describe(name) for name in dict.fromkeys(one.notion for one in audit.notions)]
    entries = [join(tag("dt", one.title, " ", tag("span", one.name)), tag("dd", one.sentence)) for one in told]
    chance = tag("dt", "by chance"), tag("dd", "The size that decisions blind to the group show on average.")
    return tag("dl", *entries, *chance)


def _made(about: dict[str, Any]) -> Markup:
    given = {key: value for key, value in about.items() if value is not None and value not in ([], ())}
    texts = {
        key: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value for key, value in given.items()
    }
    entries = (join(tag("dt", key.replace("_", " ")), tag("dd", text)) for key, text in texts.items())
    return tag("dl", *entries, class_="made")


def _ends(low: float, high: float, digits: int = 3) -> str:
    return "–" if math.isnan(low) else f"{number(low, digits)} to {number(high, digits)}"


def _p(value: float) -> str:
    return "–" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"
