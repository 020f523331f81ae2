"""Initial layouts of the Allelopathic Harvest."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import check
from sb3_fair.fairness.validation import integer
from sb3_fair.zoo.envs.harvest.rules import BLUE, COLOURLESS, RED
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig

COLOURS = {"red": RED, "blue": BLUE, None: COLOURLESS}


class Layout(NamedTuple):
    """A given beginning, checked.

    :param x: of the agents (N,), as are ``y``, ``lf`` and ``group``
    :param bush_x: of the bushes (m,), as are ``bush_y``, ``colours``, ``ripe`` and ``ages``
    """

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    lf: NDArray[np.int8]
    group: NDArray[np.int8]
    bush_x: NDArray[np.int64]
    bush_y: NDArray[np.int64]
    colours: NDArray[np.int64]
    ripe: NDArray[np.int64]
    ages: NDArray[np.int64]


def read(layout: Mapping[str, Any], config: HarvestConfig) -> Layout:
    """A layout as users write it.

    :param layout: ``{"width", "height", "agents": [{"x", "y", "preference": "red" or "blue", "sensitive": 0 or 1}],
        "bushes": [{"x", "y", "color": "red", "blue" or None, "ripe", "age"}]}``
    :raises ValueError: if it is something else, does not fit the config, or puts two into a cell
    """
    fitting = config.fitting(layout)
    sizes, expected = [(size.width, size.height, size.n_agents) for size in (fitting, config)]
    if sizes != expected:
        raise ValueError(
            f"layout must have width, height and number of agents {expected}, got {sizes}; "
            "HarvestConfig.fitting(layout) are settings for it"
        )
    rows = [_agent(entry) for entry in layout["agents"]]
    bushes = [_bush(entry) for entry in layout["bushes"]]
    taken = set()
    for x, y in [entry[:2] for entry in rows] + [entry[:2] for entry in bushes]:
        if x >= config.width or y >= config.height:
            raise ValueError(f"layout must keep inside the {config.width} x {config.height} grid, got {(x, y)}")
        if (x, y) in taken:
            raise ValueError(f"layout must have at most one agent or bush in a cell, got two at {(x, y)}")
        taken.add((x, y))
    agents = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    planted = np.array(bushes, dtype=np.int64).reshape(-1, 5).T
    return Layout(agents[0], agents[1], agents[2].astype(np.int8), agents[3].astype(np.int8), *planted)


def _agent(entry: Mapping[str, Any]) -> tuple[int, int, int, int]:
    check("preference", entry.get("preference"), Literal["red", "blue"])
    return *_place(entry), COLOURS[entry["preference"]], _flag("sensitive", entry)


def _bush(entry: Mapping[str, Any]) -> tuple[int, int, int, int, int]:
    check("color", entry.get("color"), Literal["red", "blue"] | None)
    return *_place(entry), COLOURS[entry.get("color")], _flag("ripe", entry), integer("age", entry.get("age", 0), 0)


def _flag(name: str, entry: Mapping[str, Any]) -> int:
    check(name, entry.get(name, 0), Literal[0, 1] | bool)
    return int(entry.get(name, 0))


def _place(entry: Mapping[str, Any]) -> tuple[int, int]:
    return integer("x", entry.get("x"), 0), integer("y", entry.get("y"), 0)


def preferences(config: HarvestConfig) -> NDArray[np.int8]:
    """The colour that each agent prefers (N,): red first."""
    return _red_first(config.red_agent_share, config.n_agents)


def bush_colours(config: HarvestConfig) -> NDArray[np.int8]:
    """The colour of each first bush (m,): red first."""
    return _red_first(config.red_bush_share, config.n_bushes)


def _red_first(share: float, total: int) -> NDArray[np.int8]:
    return np.where(np.arange(total) < int(_part(share, total)), RED, BLUE).astype(np.int8)


def _part(share: float, total: int) -> Fraction:
    """Of a share as it is written: .29 of 100 is 29, which the product of floats falls short of."""
    return Fraction(str(share)) * total


def sensitive_agents(
    luck: NDArray[np.float64], lf: NDArray[np.int8], share: float, stratified: bool
) -> NDArray[np.bool_]:
    """Who is slow (k, N): those with the least luck, overall or of each colour.

    :param luck: uniforms (k, N)
    :param lf: the colours that the agents prefer (N,)
    """
    slow = np.zeros(luck.shape, dtype=np.bool_)
    for members in [np.flatnonzero(lf == colour) for colour in (RED, BLUE)] if stratified else [np.arange(len(lf))]:
        part = _part(share, len(members))
        count = round(part) if stratified else int(part)
        unlucky = members[luck[:, members].argsort(axis=1)[:, :count]]
        np.put_along_axis(slow, unlucky, True, axis=1)
    return slow
