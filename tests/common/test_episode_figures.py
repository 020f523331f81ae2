"""Are the figures of finished episodes averaged, and only those?"""

import numpy as np

from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.wrappers.infos import Infos


def test_means_are_over_the_last_finished_episodes_that_have_the_figure():
    figures = EpisodeFigures(window=3)
    for spread in (100.0, 1, 2, 3):
        infos = [{"fairness": {"spread": spread, "SP": None, "counts": np.ones(2)}}, {"fairness": {"spread": 50.0}}, {}]
        figures.add(infos, np.array([True, False, True]))
    figures.add([{"fairness": {"SP": -0.5, "met": True, "none": float("nan")}}], np.array([True]))
    assert figures.means() == {"spread": 2.0, "SP": -0.5, "met": 1.0}


def test_infos_of_batched_environments_are_read_alike():
    figures = EpisodeFigures()
    record = {"fairness": {"spread": np.array([1.0, 2.0, np.nan]), "met": np.array([True, False, True])}}
    figures.add(Infos(record, 3), np.array([True, False, True]))
    assert figures.means() == {"spread": 1.0, "met": 1.0}
