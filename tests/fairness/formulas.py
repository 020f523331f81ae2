"""The formulas of the notions, person by person in plain Python: what the library is compared with."""

import math
from itertools import combinations
from typing import Any, NamedTuple


class Person(NamedTuple):
    features: tuple[float, ...]
    group: Any
    action: int
    probabilities: tuple[float, ...]
    feedback: float | None = None


GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE")
NAN = float("nan")


def rate(people, weights, among, hit):
    total = sum(w for p, w in zip(people, weights, strict=True) if among(p))
    hits = sum(w for p, w in zip(people, weights, strict=True) if among(p) and hit(p))
    return hits / total if total > 0 else None


BOTH = (True, False)
KINDS = {"SP": (), "EO": BOTH, "OAE": BOTH, "PP": (True,), "PE": BOTH, "EqOdds": BOTH, "CUAE": BOTH, "TE": BOTH}
"""Outcomes of which decisions a notion needs: favourable ones (True), others (False)."""


def group_value(notion, people, weights=None, compared=None, favourable=(1,), feedback_missing="undefined"):
    """Minus the largest gap between two groups with a defined rate."""
    weights = weights or [1] * len(people)

    def a(p):
        return p.action in favourable

    def known(p):
        return p.feedback is not None

    def f(p):
        return p.feedback in favourable

    rates = {
        "SP": [(lambda p: True, a)],
        "EO": [(lambda p: known(p) and f(p), a)],
        "OAE": [(known, lambda p: p.action == p.feedback)],
        "PP": [(lambda p: known(p) and a(p), f)],
        "PE": [(lambda p: known(p) and not f(p), a)],
        "EqOdds": [(lambda p: known(p) and not f(p), a), (lambda p: known(p) and f(p), a)],
        "CUAE": [(lambda p: known(p) and not a(p), lambda p: not f(p)), (lambda p: known(p) and a(p), f)],
        "TE": [(lambda p: known(p) and a(p) != f(p), lambda p: not a(p))],
    }[notion]
    labels = {p.group for p in people} if compared is None else set(compared)
    gaps = []
    for among, hit in rates:
        defined = []
        for label in labels:
            mine = [(p, w) for p, w in zip(people, weights, strict=True) if p.group == label]
            times = {True: 1.0, False: 1.0}
            for kind in KINDS[notion] if feedback_missing != "ignore" else ():
                decided = sum(w for p, w in mine if a(p) is kind)
                outcomes = sum(w for p, w in mine if a(p) is kind and known(p))
                times[kind] = decided / outcomes if outcomes else -1.0 if decided else 1.0
            if -1.0 in times.values():
                continue
            if feedback_missing == "reweight":
                mine = [(p, w * times[a(p)]) for p, w in mine]
            x = rate([p for p, _ in mine], [w for _, w in mine], among, hit)
            if x is not None:
                defined.append(x)
        gaps += [abs(x - y) for x, y in combinations(defined, 2)]
    return -max(gaps) if gaps else NAN


def raw_distance(name, u, v, nominal=(), root=True):
    squares = sum((x != y) if c in nominal else (x - y) ** 2 for c, (x, y) in enumerate(zip(u, v, strict=True)))
    if name == "heom":
        return math.sqrt(squares) if root else squares
    if name == "hmom":
        return sum((x != y) if c in nominal else abs(x - y) for c, (x, y) in enumerate(zip(u, v, strict=True)))
    if name == "braycurtis":
        together = sum(abs(x + y) for x, y in zip(u, v, strict=True))
        return sum(abs(x - y) for x, y in zip(u, v, strict=True)) / together if together else 0.0
    return name(u, v)


def distance(name, u, v, nominal=(), kernel=None):
    p = len(u)
    if kernel == "exp":
        return math.exp(-0.1 * raw_distance(name, u, v, nominal, root=False))
    raw = raw_distance(name, u, v, nominal)
    return raw / {"heom": math.sqrt(p), "hmom": p}.get(name, 1)


def hellinger(p, q):
    return math.sqrt(sum((math.sqrt(x) - math.sqrt(y)) ** 2 for x, y in zip(p, q, strict=True)) / 2)


def pair_value(notion, people, weights=None, **metric):
    """IF and LIP; a pair has the weight of its older member."""
    if len(people) < {"IF": 3, "LIP": 2}[notion]:
        return 0.0
    return pair_formula(notion, people, weights, **metric)


def pair_formula(notion, people, weights=None, **metric):
    weights = weights or [1] * len(people)
    numerator = denominator = 0.0
    for i, j in combinations(range(len(people)), 2):
        gap = distance(u=people[i].features, v=people[j].features, **metric) - hellinger(
            people[i].probabilities, people[j].probabilities
        )
        numerator += weights[i] * (min(0.0, gap) if notion == "LIP" else gap)
        denominator += weights[i]
    return (-1 if notion == "IF" else 0) + numerator / denominator


def consistency_value(people, k, weights=None, name="hmom", nominal=(), favourable=(1,), root=True):
    weights = weights or [1] * len(people)
    if len(people) < 2:
        return 0.0
    a = [p.action in favourable for p in people]
    total = 0.0
    for i, person in enumerate(people):
        others = [j for j in range(len(people)) if j != i]
        others.sort(
            key=lambda j: (round(raw_distance(name, person.features, people[j].features, nominal, root), 12), j)
        )
        neighbours = others[:k]
        total += weights[i] * abs(a[i] - sum(a[j] for j in neighbours) / len(neighbours))
    return -total / sum(weights)


def truncated(people, factor, threshold, delay, min_window, **metric):
    """The people that a discounted history keeps, newest last."""
    newest = people[::-1]

    def fairness(m):
        return pair_formula("IF", people[len(people) - m :], [factor ** (m - 1 - i) for i in range(m)], **metric)

    run = 0
    for m in range(max(3, min_window - delay + 1), len(newest) + 1):
        run = run + 1 if abs(fairness(m) - fairness(m - 1)) <= threshold else 0
        if run >= delay:
            return people[len(people) - m :]
    return people
