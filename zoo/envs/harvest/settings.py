"""Settings of the Allelopathic Harvest."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from sb3_fair.fairness.arguments import Proportion, Range, check, checked
from sb3_fair.fairness.validation import integer
from sb3_fair.zoo.envs.settings import parameter

PAPER = '"Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv 2502.03953)'
OURS = "ours"
OURS_NOT_CODE = "ours; otherwise in the published code, see HarvestConfig.published"
LAYOUT = ("width", "height", "agents", "bushes")
"""What a given beginning consists of."""


@checked
@dataclass(frozen=True)
class HarvestConfig:
    """The parameters of the scenario.

    :param width: cells of the grid from left to right
    :param height: cells from top to bottom
    :param n_agents: agents in a world
    :param red_agent_share: share of agents who prefer red, rounded down; they have the lowest numbers
    :param sensitive_share: share of slow agents
    :param n_bushes: bushes when an episode begins
    :param red_bush_share: share of red ones among them, rounded down
    :param bush_life: steps until a bush dies; None: it does not
    :param growth_interval: a new bush grows in every step of which the number is a multiple of this; None: none grows
    :param growth_rule: the chance of red, from the numbers r and b of red and blue bushes: r / (r + b)
        (``"linear"``) or r^3 / (r^3 + b^3) (``"cubic"``)
    :param horizon: steps of an episode
    :param order: who acts when: one after the other, in a new random order in each step (``"random"``) or by number
        (``"fixed"``), or all at once (``"simultaneous"``): on the field as it was, and of several agents who want the
        same cell or bush, one at random gets it
    :param movement: ``"off"``: nobody can move
    :param obstruct_turns: turns that an obstructed agent loses; ``math.inf``: all until the episode ends
    :param invalid: what an invalid action does: nothing (``"noop"``), or another one is drawn in its place
        (``"substitute"``)
    :param slow: what slow agents cannot do in odd turns: anything (``"all_actions"``), or move (``"moves_only"``)
    :param scan: whom ripening and eating serve: one adjacent bush, a ripe one if there is any (``"first"``), or every
        unripe one up to the first ripe one, which is eaten (``"all"``)
    :param auto_ripen: steps after which a bush that was eaten or recoloured is ripe; None: it does not ripen itself
    :param stratified: whether the sensitive share holds within both colours, rounded; otherwise over all, rounded down
    :param obs_scale: whether observations are scaled to about [0, 1]
    :param obs_extra: whether observations show the four cells around and whether the next turn is void
    :param terminate_at_horizon: whether an episode is terminated at the horizon, not truncated
    :param backend: ``"numba"`` compiles the turns of a sequential order (package ``numba``); the paths are the same.
        ``"auto"`` does where the package is installed
    """

    width: int = parameter(25, "cells", PAPER)
    height: int = parameter(15, "cells", PAPER)
    n_agents: int = parameter(40, "agents", PAPER)
    red_agent_share: Proportion = parameter(0.5, "share", PAPER)
    sensitive_share: Proportion = parameter(0.5, "share", PAPER)
    n_bushes: int = parameter(60, "bushes", PAPER)
    red_bush_share: Proportion = parameter(0.5, "share", PAPER)
    bush_life: int | None = parameter(120, "steps", "the published code")
    growth_interval: int | None = parameter(2, "steps", "the published code")
    growth_rule: Literal["linear", "cubic"] = parameter("linear", "name", PAPER)
    horizon: int = parameter(3000, "steps", PAPER)
    order: Literal["random", "fixed", "simultaneous"] = parameter("random", "name", OURS_NOT_CODE)
    movement: Literal["on", "off"] = parameter("on", "name", OURS_NOT_CODE)
    obstruct_turns: Annotated[float, Range("[1, inf]")] = parameter(1, "turns", OURS_NOT_CODE)
    invalid: Literal["noop", "substitute"] = parameter("noop", "name", OURS_NOT_CODE)
    slow: Literal["all_actions", "moves_only"] = parameter(
        "all_actions", "name", "the published code; moves_only in the paper"
    )
    scan: Literal["first", "all"] = parameter("first", "name", OURS_NOT_CODE)
    auto_ripen: int | None = parameter(None, "steps", "the published code")
    stratified: bool = parameter(True, "yes or no", OURS_NOT_CODE)
    obs_scale: bool = parameter(False, "yes or no", "the published code")
    obs_extra: bool = parameter(False, "yes or no", "the published code")
    terminate_at_horizon: bool = parameter(False, "yes or no", OURS_NOT_CODE)
    backend: Literal["numpy", "numba", "auto"] = parameter("numpy", "name", OURS)

    def __post_init__(self) -> None:
        if self.n_agents + self.n_bushes > self.width * self.height:
            raise ValueError(
                f"n_agents and n_bushes must fit into the {self.width * self.height} cells of the grid, "
                f"got {self.n_agents} + {self.n_bushes}"
            )
        if self.obstruct_turns != math.inf:
            integer("obstruct_turns", self.obstruct_turns, 1)

    @classmethod
    def published(cls, **changes: Any) -> "HarvestConfig":
        """The rules as the code behaves that was published with the paper, defects included.

        :param changes: fields that shall have another value
        """
        variant: dict[str, Any] = {
            "movement": "off",
            "obstruct_turns": math.inf,
            "invalid": "substitute",
            "scan": "all",
            "stratified": False,
            "order": "fixed",
            "terminate_at_horizon": True,
        }
        return cls(**(variant | changes))

    def fitting(self, layout: Mapping[str, Any]) -> "HarvestConfig":
        """The same rules on a field of the layout's size, for ``HarvestWorld.install``.

        :param layout: has ``width``, ``height``, ``agents`` and ``bushes``
        :raises ValueError: if it has not
        """
        check("layout", layout, Mapping[str, Any])
        missing = [name for name in LAYOUT if name not in layout]
        if missing:
            raise ValueError(f"layout must have {', '.join(LAYOUT)}, got none of {', '.join(missing)}")
        for name in ("agents", "bushes"):
            check(name, layout[name], Sequence[Mapping[str, Any]])
        return replace(
            self,
            width=layout["width"],
            height=layout["height"],
            n_agents=len(layout["agents"]),
            n_bushes=len(layout["bushes"]),
        )
