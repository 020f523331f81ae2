"""Pictures of attention allocation."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.attention.world import AttentionWorld
from sb3_fair.zoo.envs.drawing import blank, pixels

DISCOVERED, MISSED, UNITS = "#55a868", "#c44e52", "#4c72b0"


def picture(world: AttentionWorld, index: int) -> NDArray[np.uint8]:
    """The last step of copy ``index``: units, incidents and rates, shares of all units so far; (360, 720, 3)."""
    figure = blank()
    sites, shares = figure.subplots(1, 2, width_ratios=(3, 1))
    discovered, incidents, units, _ = world.history[index, -1]
    places = np.arange(len(units))
    sites.bar(places - 0.2, units, 0.35, color=UNITS, label="units")
    sites.bar(places + 0.2, discovered, 0.35, color=DISCOVERED, label="discovered")
    sites.bar(places + 0.2, incidents - discovered, 0.35, bottom=discovered, color=MISSED, label="missed")
    sites.plot(places, world.rates[index], "k_", markersize=24, label="rate after the step")
    sites.set_ylim(0, max(world.config.n_units, 1.1 * incidents.max(), 1.1 * world.rates[index].max()))
    end = "" if world.max_steps is None else f" of {world.max_steps}"
    sites.set(title=f"step {world.time[index]}{end}", xlabel="location")
    sites.legend(loc="upper right", fontsize="small")
    shares.bar(places, world.units[index] / max(1, world.units[index].sum()), color=UNITS)
    shares.axhline(1 / len(units), color="black", linestyle=":")
    shares.set(ylim=(0, 1), xlabel="location", title="units so far")
    for axes in (sites, shares):
        axes.set_xticks(places)
    return pixels(figure)
