"""Pictures of the allocation scenarios."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.allocation import AllocationWorld
from sb3_fair.zoo.envs.drawing import blank, pixels


def picture(world: AllocationWorld, index: int) -> NDArray[np.uint8]:
    """What every stakeholder of copy ``index`` has got, merits of the people, those present coloured; (360, 720, 3)."""
    figure = blank()
    shares, merits = figure.subplots(1, 2)
    shares.bar(world.fairness_spec.group_names, world.counts[index], color="#4c72b0")
    shares.set(title="has got", ylim=(0, max(5, 1.1 * world.counts[index].max())))
    colours = np.where(world.present[index], "#dd8452", "#d9d9d9")
    merits.bar(np.arange(len(colours)), world.merit()[index], color=colours, edgecolor="#666666")
    merits.set(title=f"{world.merit_name} (in colour: who is there)", ylim=(0, 1), xlabel="action")
    merits.set_xticks(np.arange(len(colours)))
    shares.tick_params(axis="x", rotation=60 if len(shares.patches) > 3 else 0)
    figures = ", ".join(f"{name} {values[index]:g}" for name, values in world.figures().items())
    figure.suptitle(f"step {world.time[index]} of {world.max_steps}: {figures}", fontsize="medium")
    return pixels(figure)
