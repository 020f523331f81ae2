"""Pictures of decisions on the people of a table."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.table.world import TableWorld


def picture(world: TableWorld, index: int) -> NDArray[np.uint8]:
    """Features of the person in copy ``index`` as bars within their range, groups and outcome; (360, 720, 3)."""
    people, person = world.people, world.person[index]
    codes = {name: groups[world.part[person]] for name, groups in people.groups.items()}
    figure = blank()
    bars = figure.subplots()
    names = world.observation_names[::-1]
    bars.barh(names, world.observed(np.array([index]))[0, ::-1])
    groups = ", ".join(f"{name} {people.labels[name][code]}" for name, code in codes.items())
    outcome = f"{people.columns.outcome}: {'good' if world.good[person] else 'bad'}"
    bars.set(xlim=(0, 1), title=f"{groups}; {outcome}".replace("$", r"\$"))
    return pixels(figure)
