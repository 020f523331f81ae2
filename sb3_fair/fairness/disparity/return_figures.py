"""Disparities of the returns of agents, all at once: columns by name for each episode."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.disparity.returns import (
    conditional_disparity,
    counterfactual_disparity,
    demographic_disparity,
    gini,
    nash_welfare,
    pairwise_disparity,
    twin_disparity,
)
from sb3_fair.fairness.welfare import Welfare

Columns: TypeAlias = dict[str, NDArray[Any]]

FORMS: dict[str, dict[str, Any]] = {
    "": {"per_capita": False},
    "_norm": {"per_capita": False, "normalise": "sum"},
    "_pc": {"per_capita": True},
    "_pc_norm": {"per_capita": True, "normalise": "sum"},
}
"""What is added to the name of a gap -> its form."""


def return_figures(
    returns: NDArray[Any], groups: NDArray[Any], factors: NDArray[Any] | None = None, *, twins: bool = False
) -> Columns:
    """Gaps, Gini, Jain and Nash of episodes; name -> (episodes,). NaN where one is undefined.

    :param returns: of every agent, (episodes, agents)
    :param groups: 0 without and 1 with the sensitive attribute, (episodes, agents)
    :param factors: legitimate factor, (episodes, agents); None: no conditional disparities
    :param twins: whether the second half of the agents are the twins of the first half
    """
    found: Columns = {f"dp{form}": demographic_disparity(returns, groups, **way) for form, way in FORMS.items()}
    if factors is not None:
        for form, way in FORMS.items():
            gaps = conditional_disparity(returns, groups, factors, **way)
            for factor in np.unique(factors).tolist():
                found[f"csp_G{factor}{form}"] = gaps.get(factor, np.full(len(returns), np.nan))
    found |= {
        "pairs": pairwise_disparity(returns, groups),
        "pairs_sum": pairwise_disparity(returns, groups, aggregate="sum"),
        "gini": gini(returns),
        "jain": Welfare("jain")(returns),
        "nash": nash_welfare(returns),
        "nash_norm": nash_welfare(returns, normalise=True),
    }
    if twins:
        half = returns.shape[1] // 2
        factual, counterfactual, labels = returns[:, :half], returns[:, half:], groups[:, :half]
        for form, way in FORMS.items():
            found[f"cf{form}"] = counterfactual_disparity(factual, counterfactual, labels, **way)
        found["twins"] = twin_disparity(factual, counterfactual)
    return found
