"""Do curves show what the runs reached, and how sure that is?"""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from sb3_fair.zoo.studies import curves
from sb3_fair.zoo.studies.curves import Panel
from sb3_fair.zoo.studies.study import mean_and_interval, over


def test_mean_and_interval():
    values = [1.0, 2.0, 4.0]
    mean, low, high = mean_and_interval(values)
    expected = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert mean == pytest.approx(7 / 3) and (low, high) == pytest.approx(expected)
    assert mean_and_interval([3.0]) == [3.0, 3.0, 3.0]


def test_figures_are_averaged_over_the_runs_that_have_them():
    found = over([{"R": 1.0, "SP": {"final": -0.5}}, {"R": 3.0, "SP": {"final": -0.1}, "steps": 4.0}])
    assert found["SP"] == {"final": mean_and_interval([-0.5, -0.1])}
    assert found["R"] == mean_and_interval([1.0, 3.0]) and found["steps"] == [4.0, 4.0, 4.0]


def test_a_curve_is_the_mean_over_seeds_within_its_interval():
    axes = Figure().subplots()
    values = np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 11.0]])
    curves.draw(axes, Panel("title", {"one": (np.array([10.0, 20, 30]), values)}, "return", {"best": 12.0}, low=0.0))
    line, best = axes.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), [2, 2, 10])
    assert set(best.get_ydata()) == {12.0}
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(mean_and_interval([1.0, 3.0])[1])
    assert axes.get_ylim()[0] == 0
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "best (12.0)"]


def test_more_curves_than_colours_are_all_drawn_and_look_different():
    axes = Figure().subplots()
    many = {str(number): (np.array([1.0, 2.0]), np.ones((2, 2))) for number in range(2 * len(curves.COLOURS) + 1)}
    curves.draw(axes, Panel("title", many, "x", {str(number): 0.5 for number in range(5)}))
    assert len(axes.get_lines()) == len(many) + 5
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()[: len(many)]}) == len(many)


def test_neighbours_with_the_same_learners_share_a_legend(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path: drawn.append(self))
    curve = (np.array([1.0, 2.0]), np.ones((2, 2)))
    one, two = {"one": curve}, {"one": curve, "two": curve}
    panels = [
        Panel("a", one, "x"),
        Panel("b", one, "y"),
        Panel("c", two, "x"),
        Panel("d", two, "x", {"best": 1.0}),
    ]
    curves.figure(tmp_path / "figure.png", panels)
    legends = [axes.get_legend().get_visible() for axes in drawn[0].axes]
    assert legends == [False, True, True, True]


def test_a_single_figure_is_a_point_within_its_interval():
    axes = Figure().subplots()
    curves.draw(axes, Panel("title", {"one": (np.array([0]), np.array([[1.0], [3.0]]))}, "wasted", along=""))
    (container,) = axes.containers
    assert container.lines[0].get_ydata().tolist() == [2.0] and not len(axes.get_xticks())
    low, high = container.lines[2][0].get_segments()[0][:, 1]
    assert [low, high] == pytest.approx(mean_and_interval([1.0, 3.0])[1:])


def test_curves_go_as_far_as_all_runs_got():
    runs = [{"steps": [1, 2, 3], "of": {"x": [4, 5, 6]}}, {"steps": [1, 2], "of": {"x": [7, 8]}}]
    steps, values = curves.curve(runs, "of", "x")
    assert steps.tolist() == [1, 2] and values.tolist() == [[4, 5], [7, 8]]
