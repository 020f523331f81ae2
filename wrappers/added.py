"""Something added to observations: a key of a Dict, or the last entries of a vector."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

STATE = "state"
"""The key of an observation that is no Dict itself."""


class Added:
    """Adds ``part``, a Box of one axis or a Discrete space, to a space and its values to observations.

    :param flatten: whether vectors get it as their last entries, instead of becoming a Dict
    :param why: what a second one of this key means, for the error
    """

    def __init__(self, space: spaces.Space, key: str, part: spaces.Space, flatten: bool, why: str) -> None:
        self.key, self.flatten = key, flatten
        self.column = isinstance(part, spaces.Discrete)
        self.inside: str | None = None if isinstance(space, spaces.Dict) else STATE
        if flatten:
            if not isinstance(space, spaces.Box) or len(space.shape) != 1:
                raise ValueError(f"flatten needs observations that are vectors, got {space}")
            bounds: Any = ([0], [part.n - 1]) if isinstance(part, spaces.Discrete) else (part.low, part.high)  # type: ignore[attr-defined]
            low, high = (
                np.concatenate(pair).astype(np.float32) for pair in zip((space.low, space.high), bounds, strict=True)
            )
            self.space: spaces.Space = spaces.Box(low, high)
            return
        keys = dict(space.spaces) if isinstance(space, spaces.Dict) else {STATE: space}
        if key in keys:
            raise ValueError(f"env already has observations with the key {key!r}: {why}")
        self.space = spaces.Dict({**keys, key: part})

    def to(self, observation: Any, value: NDArray[Any]) -> Any:
        """An observation with its value, or those of n copies with theirs (n, ...)."""
        if self.flatten:
            last = value[..., None] if self.column else value
            return np.concatenate((observation, last), axis=-1, dtype=np.float32)
        return {**(observation if self.inside is None else {self.inside: observation}), self.key: value}
