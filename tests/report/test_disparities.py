"""Do the pictures of disparities show what they are given, the same every time?"""

from io import BytesIO

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from sb3_fair.report.disparities import (
    CLASSIC,
    TradeOff,
    plot_action_radar,
    plot_box_grid,
    plot_tradeoff,
    setting_colour,
)
from sb3_fair.report.figures import INK

SETTINGS = [(0.5, 0.0), (0.0, 0.0), (0.25, 0.75), (1.0, 0.0)]
ACTIONS = ("stay", "up", "down", "eat")


@pytest.fixture
def boxes():
    rng = np.random.default_rng(0)
    return {setting: rng.normal(place, 0.1, 30) for setting, place in zip(SETTINGS, (3, 4, 1, 2), strict=True)}


@pytest.fixture
def radars():
    rng = np.random.default_rng(1)
    return {setting: rng.dirichlet(np.ones(4), size=2) for setting in SETTINGS}


@pytest.fixture
def curve():
    rng = np.random.default_rng(2)
    return TradeOff([0, 0.5, 1], rng.random((3, 3)), rng.random((3, 2, 3)), rng.random((3, 2, 3)))


def labels(axis):
    return [text.get_text() for text in axis.get_xticklabels()]


def test_classic_comes_first_in_bold_and_the_rest_by_median(boxes):
    (axis,) = plot_box_grid({"DP": boxes}).axes
    assert labels(axis) == ["(0, 0)", "(0.25, 0.75)", "(1, 0)", "(0.5, 0)"]
    assert [text.get_fontweight() for text in axis.get_xticklabels()] == ["bold", *["normal"] * 3]
    (axis,) = plot_box_grid({"DP": boxes}, order="alpha").axes
    assert labels(axis) == ["(0, 0)", "(0.25, 0.75)", "(0.5, 0)", "(1, 0)"]


def test_boxes_stand_at_the_medians_of_their_values(boxes):
    (axis,) = plot_box_grid({"DP": boxes}).axes
    heights = [
        line.get_ydata()[0] for line in axis.lines if len(set(line.get_ydata())) == 1 and len(line.get_ydata()) == 2
    ]
    for values in boxes.values():
        assert np.isclose(heights, np.median(values)).any()


def test_every_disparity_has_its_panel_and_missing_values_are_left_out(boxes):
    boxes[CLASSIC] = np.append(boxes[CLASSIC], np.nan)
    figure = plot_box_grid(dict.fromkeys(("DP", "CSP G1", "CSP G2", "CF"), boxes))
    assert [axis.get_title() for axis in figure.axes] == ["DP", "CSP G1", "CSP G2", "CF"]


def test_a_setting_has_the_same_colour_in_boxes_and_radars(boxes, radars):
    (axis,) = plot_box_grid({"DP": boxes}).axes
    painted = {name: to_rgb(patch.get_facecolor()) for name, patch in zip(labels(axis), axis.patches, strict=True)}
    lines = plot_action_radar({"DP": radars}, ACTIONS).axes[0].lines
    assert {line.get_label(): to_rgb(line.get_color()) for line in lines} == painted
    assert painted["(0, 0)"] == to_rgb(INK)


def test_no_two_settings_of_the_grid_share_a_colour():
    grid = [(alpha / 4, beta / 4) for alpha in range(5) for beta in range(5)]
    assert len({tuple(np.round(setting_colour(setting), 3)) for setting in grid}) == 25


def test_radars_have_an_axis_per_action_and_a_row_per_group(radars):
    figure = plot_action_radar({"DP": radars, "CSP": radars}, ACTIONS)
    assert [axis.get_title() for axis in figure.axes] == [
        "DP: not sensitive", "CSP: not sensitive", "DP: sensitive", "CSP: sensitive",
    ]  # fmt: skip
    for row, axis in zip((0, 0, 1, 1), figure.axes, strict=True):
        assert labels(axis) == list(ACTIONS)
        for line, setting in zip(axis.lines, SETTINGS, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), [*radars[setting][row], radars[setting][row][0]])


def test_the_trade_off_is_drawn_against_return_price_and_alpha(curve):
    returns, prices, weights = plot_tradeoff({"telescoped": curve, "linear": curve}).axes
    assert (returns.get_ylabel(), prices.get_ylabel(), weights.get_xlabel()) == (
        "mean return",
        "price of fairness in %",
        "alpha",
    )
    assert len(returns.containers) == len(prices.containers) == 4 and len(weights.containers) == 2
    points = returns.containers[1].lines[0]
    np.testing.assert_array_equal(points.get_xdata(), curve.disparity[:, 0])
    np.testing.assert_array_equal(points.get_ydata(), curve.returns[:, 1, 0])
    assert [text.get_text() for text in weights.get_legend().get_texts()] == ["telescoped", "linear"]


def test_a_mean_without_an_interval_is_a_point(curve):
    alone = TradeOff([0.5], [[0.1, np.nan, np.nan]], np.full((1, 2, 3), 2.0), np.full((1, 2, 3), -1.0))
    plot_tradeoff({"one seed": alone}).savefig(BytesIO())


def test_the_same_figures_give_the_same_picture(boxes, radars, curve):
    def bytes_of(figure):
        file = BytesIO()
        figure.savefig(file, format="png", dpi=50)
        return file.getvalue()

    for draw in (
        lambda: plot_box_grid({"DP": boxes}),
        lambda: plot_action_radar({"DP": radars}, ACTIONS),
        lambda: plot_tradeoff({"linear": curve}),
    ):
        assert bytes_of(draw()) == bytes_of(draw())


def test_drawing_leaves_matplotlibs_settings_alone(boxes):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot_box_grid({"DP": boxes})
    assert dict(matplotlib.rcParams) == before


def test_what_cannot_be_drawn_is_refused(boxes, radars, curve):
    with pytest.raises(ValueError, match="order must be one of"):
        plot_box_grid({"DP": boxes}, order="mean")
    with pytest.raises(ValueError, match="panels must have at least one setting"):
        plot_box_grid({"DP": {}})
    with pytest.raises(ValueError, match=r"frequencies of shape \(2, 3\), got \(2, 4\)"):
        plot_action_radar({"DP": radars}, ACTIONS[:3])
    with pytest.raises(ValueError, match=r"returns of 'x' must have shape \(3, 2, 3\)"):
        plot_tradeoff({"x": curve._replace(returns=np.zeros((3, 2)))})
