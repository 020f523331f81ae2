"""Bounded schemes: conditions on the status at which fairness is assessed.

Source: Alamdari, Klassen, Creager, McIlraith, *Remembering to Be Fair*, section 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Positive, checked
from sb3_fair.fairness.schemes.statuses import Array


@checked
@dataclass(frozen=True)
class NewMultiple:
    """True where the total of the status reaches a new multiple of ``k`` in a step: "after a dozen doughnuts".

    For :class:`~sb3_fair.fairness.Scheme`, as ``when=NewMultiple(12)``; unlike a lambda it pickles. A step that passes
    several multiples at once counts as one assessment.

    :param k: above 0
    :raises ValueError: if it is not
    """

    k: Positive

    def __call__(self, status: Array, previous: Array) -> NDArray[np.bool_]:
        """(...), from the status (..., n) after the step and that before it."""
        return status.sum(axis=-1) // self.k > previous.sum(axis=-1) // self.k
