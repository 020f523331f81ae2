"""The registered environments as `sb3-fair envs` lists them."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from sb3_fair.fairness.notions.table import NOTIONS
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.registration import ROWS, TABLE, WORLDS, find, load_module

WIDTH = 80


def environments(modules: Sequence[str] = ()) -> str:
    """Every ID on a line of its own, and above those that share them: source, spaces, groups and default notions.

    :param modules: whose IDs are listed; none: the shipped ones
    """
    listed = [] if modules else [*WORLDS]
    for module in modules:
        load_module("env-module", module, module)
        names = [row.name for row in ROWS.values() if row.module == module]
        if not names:
            raise InputError(
                f"env-module must register IDs with sb3_fair.register, got {module!r}, which registers none"
            )
        listed += names
    blocks = [
        f"{about}\n{''.join(f'  {env_id}' + chr(10) for env_id in ids)}" for about, ids in groupby(listed, _about)
    ]
    if not modules:
        blocks.append(f"people of a table of yours, by train --table\n  {TABLE.id}\n")
    return "\n".join([*blocks, f"objectives and audit may name any of {' '.join(NOTIONS)}"])


def _about(env_id: str) -> str:
    venv = make_vec(env_id)
    spec = venv.get_attr("fairness_spec")[0]
    groups = spec.group_names or spec.compared_groups or ()
    source = find(env_id).title or venv.get_attr("source")[0]
    described = [
        f"{source}:" if source else "",
        f"observations {_space(venv.observation_space)}, actions {_space(venv.action_space)},",
        f"groups {', '.join(map(str, groups))}{',' * bool(spec.notions)}" if groups else "",
        f"notions {' '.join(spec.notions)}" if spec.notions else "",
    ]
    venv.close()
    return fill(" ".join(filter(None, described)), WIDTH)


def _space(space: gym.Space[Any]) -> str:
    if isinstance(space, spaces.Dict):
        size = ", ".join(f"{name} {_space(part)}" for name, part in space.items())
    elif isinstance(space, spaces.Tuple):
        size = ", ".join(map(_space, space))
    else:
        size = str(space.n) if isinstance(space, spaces.Discrete) else "x".join(map(str, space.shape or ()))
    return f"{type(space).__name__}({size})"
