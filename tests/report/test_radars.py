"""Do radars beside each other tell the truth about each other?"""

from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.report import figures


def front(objectives, *policies):
    rows = [dict(zip(("R", "SP", "IF"), values, strict=True)) for values in policies]
    return Front(
        tuple(
            EvaluatedPolicy(
                "x",
                objectives,
                np.array([[row[name] for name in objectives]]),
                np.array([9.0]),
                final={name: np.array([value]) for name, value in row.items()},
            )
            for row in rows
        )
    )


def test_radars_have_common_ranges_and_each_its_own_objectives():
    wide = front(("R", "SP"), (10, -0.4, -1.0), (4, -0.1, -0.5))
    narrow = front(("SP",), (7, -0.2, -0.8))
    first, second = figures.radars({"both": wide, "parity": narrow}).axes
    # worst of all: R 4, 6 below the best; SP -0.4; IF -1
    np.testing.assert_allclose(second.lines[0].get_ydata()[:-1], 0.12 + 0.88 * np.array([0.5, 0.5, 0.2]))
    assert [first.get_title(), second.get_title()] == ["both", "parity"]
    assert first.get_theta_offset() == second.get_theta_offset() == pytest.approx(np.pi / 2)
    labels = [text.get_text() for text in first.get_xticklabels()]
    assert labels == [text.get_text() for text in second.get_xticklabels()]
    bold = [[text.get_fontweight() == "bold" for text in axes.get_xticklabels()] for axes in (first, second)]
    assert bold == [[True, True, False], [False, True, False]]


@pytest.mark.parametrize(
    "draw", [lambda front: figures.radars({"": front}), figures.parallel], ids=["radar", "parallel"]
)
def test_what_is_better_lower_has_its_own_sign(draw):
    both = front(("R", "SP"), (10, -0.4, -1.0), (4, -0.1, -0.5))
    policies = [replace(policy, final={"gini": np.array([gini])}) for policy, gini in zip(both, (0.25, 0), strict=True)]
    (axes,) = draw(Front(tuple(policies))).axes
    shown = " ".join(text.get_text() for text in (*axes.get_xticklabels(), *axes.texts)).split()
    assert "0.25" in shown and not {"-0.25", "-0"} & set(shown)


def test_a_figure_that_a_front_lacks_leaves_a_gap():
    full, lacking = front(("R",), (1, -0.4, -1.0)), front(("R",), (2, float("nan"), -0.5))
    _, second = figures.radars({"full": full, "lacking": lacking}).axes
    assert np.isnan(second.lines[0].get_ydata()).tolist() == [False, True, False, False]
    assert second.lines[0].get_ydata()[2] == pytest.approx(0.12 + 0.88 * 0.5)
