"""Pictures of lending."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.lending.measures import true_positive_rates
from sb3_fair.zoo.envs.lending.world import LendingWorld


def picture(world: LendingWorld, index: int) -> NDArray[np.uint8]:
    """Scores of the groups in copy ``index``, true positive rates as its bank knows them, cash; (360, 720, 3)."""
    figure = blank()
    scores, rates = figure.subplots(1, 2, width_ratios=(3, 1))
    masses, massage = world.distributions[index], world.massage()
    n_groups, n_scores = masses.shape
    width = 0.8 / n_groups
    for group, row in enumerate(masses):
        places = np.arange(1, n_scores + 1) + (group - (n_groups - 1) / 2) * width
        scores.bar(places, row, width, color=f"C{group}", label=f"group {group}")
    now = world.applicants
    scores.set_title(f"cash {world.cash[index]:,.0f}; next: group {now.group[index]} with score {now.score[index] + 1}")
    scores.set(xlabel="score", ylabel="share of the group", ylim=(0, max(0.5, 1.1 * masses.max())))
    scores.legend(loc="upper left", fontsize="small")
    known = true_positive_rates(massage["granted"][index], massage["repaying"][index])
    rates.bar([f"{group}" for group in range(n_groups)], known, color=[f"C{group}" for group in range(n_groups)])
    rates.set(ylim=(0, 1), xlabel="group", title="true positive rate")
    return pixels(figure)
