"""Which environments are there, seen from the command line?"""

from typing import Any

import gymnasium as gym
from gymnasium import spaces
from rich.table import Table

from sb3_fair.fairness.notions import NOTIONS
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.registration import WORLDS


def environment_table() -> Table:
    """Every ID with its spaces, the groups it compares, the notions that it measures by default, and its source."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("environment", "observation", "actions", "groups", "notions", "source"):
        table.add_column(column, no_wrap=True)
    for env_id in WORLDS:
        venv = make_vec(env_id)
        spec = venv.get_attr("fairness_spec")[0]
        table.add_row(
            env_id,
            _space(venv.observation_space),
            _space(venv.action_space),
            ", ".join(map(str, spec.group_names or ())),
            " ".join(spec.notions),
            venv.get_attr("source")[0],
        )
        venv.close()
    table.add_section()
    table.caption = f"\nobjectives and audit may name any of {' '.join(NOTIONS)}"
    table.caption_justify = "left"
    return table


def _space(space: gym.Space[Any]) -> str:
    size = str(space.n) if isinstance(space, spaces.Discrete) else "x".join(map(str, space.shape or ()))
    return f"{type(space).__name__}({size})"
