"""Disparities of lending.

Short-term disparity is that of "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning"
(arXiv 2401.06318), Eq. 8; the long-term one is the 1-Wasserstein distance between the groups' scores.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.measures import Array, Candidates, Facts, Measures, Rows

UndefinedTPR: TypeAlias = Literal["zero", "skip"]
_NOBODY = 2.0**-60  # less than anybody counts


def true_positive_rates(granted: NDArray[np.float64], repaying: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the would-repay applicants who got a loan (...), 0 where there are none.

    :param granted: (...) would-repay applicants with a loan
    :param repaying: (...) all would-repay applicants
    """
    return granted / np.maximum(repaying, _NOBODY)


@checked
@dataclass(frozen=True)
class LendingMeasures(Measures):
    """Short-term: the gap between the groups' true positive rates. Long-term: that between their scores.

    :param undefined_tpr: a group without would-repay applicants has the rate 0 (``"zero"``), or there is no gap while
        there is such a group (``"skip"``)
    """

    undefined_tpr: UndefinedTPR = "zero"

    short_term = "d_s_estimated"
    reported: ClassVar[Mapping[str, str]] = {
        "utility": "cash",
        "short_term": "d_s",
        "long_term": "w1",
        "window W1": "d_l_window",
    }

    def threshold(self, iteration: int) -> float:
        """0, that is no massaging, in the first 18 rollouts, then rising towards 1."""
        return 1 - 0.985 ** max(iteration - 17, 0)

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        """The other decision (n, 1), as close as abs(2 pi(1) - 1).

        :param probabilities: (n, 2)
        """
        if probabilities is None:
            raise ValueError("probabilities must be those of both decisions (n, 2), got None")
        others = 1 - np.asarray(actions)[:, None]
        closeness = np.abs(2 * np.asarray(probabilities, dtype=np.float64)[:, 1:] - 1)
        return Candidates(others, closeness, np.ones(others.shape, dtype=bool))

    def would_be(self, massage: Facts, candidates: Array) -> NDArray[np.float64]:
        """Eq. 8 (n, k) with the applicant added, who counts as much as he or she is expected, or known, to repay.

        :param massage: ``granted`` and ``repaying`` (n, G) of the decided applicants, ``group`` and
            ``repay_probability`` (n,) of the coming one, and ``would_repay`` (n,) if that is known
        :param candidates: (n, k) decisions
        """
        groups = np.arange(massage["granted"].shape[1])
        weight = np.asarray(massage.get("would_repay", massage["repay_probability"]), dtype=np.float64)
        added = weight[:, None] * (np.asarray(massage["group"])[:, None] == groups)
        granted = massage["granted"][:, None] + np.asarray(candidates)[..., None] * added[:, None]
        return self.gap(granted, (massage["repaying"] + added)[:, None])

    def gap(self, granted: NDArray[np.float64], repaying: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest difference (...) between the rates of two groups.

        :param granted: (..., G), see :func:`true_positive_rates`
        :param repaying: (..., G)
        """
        rates = true_positive_rates(granted, repaying)
        gap: NDArray[np.float64] = rates.max(axis=-1) - rates.min(axis=-1)
        return gap if self.undefined_tpr == "zero" else np.where((repaying > 0).all(axis=-1), gap, 0.0)
