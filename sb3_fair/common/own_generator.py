"""A learner's own random generator: seeding, saving, loading."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from sb3_fair.common.named_policies import NamedPolicies


class OwnGenerator(NamedPolicies):
    """An algorithm that draws from ``rng`` what SB3 does not draw; its ``__init__`` calls :meth:`_make_generator`."""

    rng: np.random.Generator
    _rng_stream: ClassVar[tuple[int, ...]] = ()
    """Added to the seed: that of the seed alone draws what Gymnasium's first environment draws."""
    _rng_seed: int | None

    def _make_generator(self, seed: int | None) -> None:
        self.rng, self._rng_seed = np.random.default_rng(None if seed is None else (seed, *self._rng_stream)), seed

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seeds everything random; None: nothing."""
        super().set_random_seed(seed)
        if seed is not None:
            self._make_generator(seed)

    @contextmanager
    def _generator_goes_on(self) -> Iterator[None]:
        """While a model is set up: the generator of a loaded one stays, unless it is to have another seed."""
        kept = self.rng if self._rng_seed == self.seed else None
        yield
        if kept is not None:
            self.rng = kept
