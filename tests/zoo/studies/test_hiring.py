"""Does the study say of a front what is true of it, and take seeds on which nothing was chosen?"""

import json

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.zoo.studies import hiring


def policy(name, r, fair, aim=None, sp=-0.02):
    returns = np.array([[r - 1, sp, fair], [r + 1, sp, fair]])
    aim = None if aim is None else np.array(aim)
    final = {"SP": np.array([sp, sp])}
    return EvaluatedPolicy(
        name,
        ("R", "SP", "IF"),
        returns,
        np.full(2, 1000.0),
        aim=aim,
        deterministic=False,
        final=final,
        chance={"SP": 0.015},
    )


def test_claims_of_a_front():
    front = [
        policy("best", 100, -0.9, aim=(110, 0, -0.9)),
        policy("raised", 90, -0.85),
        policy("fairer", 70, -0.7, aim=(80, 0, -0.7)),
        policy("useless", 60, -0.6, aim=(50, 0, -0.6)),
    ]
    rules = {"patient oracle": policy("patient oracle", 125, -0.8)}
    figures = hiring.claims(front, rules, {"R": 0.0, "SP": 0.1, "IF": 0.0})
    assert figures["best R"] == 100 and figures["R of patient oracle"] == 125
    assert figures["share of the patient oracle"] == pytest.approx(0.8)
    assert figures["IF gained at 70% of the best R"] == pytest.approx(0.2)
    assert figures["|SP| at the end"] == pytest.approx(0.02)
    assert figures["R missed, sampling"] == pytest.approx(10 / 60)
    assert figures["SP missed, sampling"] == pytest.approx(0.2)
    assert figures["mean missed, sampling"] == pytest.approx((10 / 60 + 0.2 + 0) / 3)
    assert np.isnan(figures["mean missed, arg max"])


def test_front_of_a_company_on_report_seeds(tmp_path):
    found = hiring.study(["small"], seeds=3, quick=True, n_jobs=1, log_dir=tmp_path)["small"]
    assert sorted(path.name for path in tmp_path.glob("quick/small/PCN/*")) == ["100.json", "101.json"]
    assert found["R of reject all"][0] < found["R of patient oracle"][0]
    table = json.loads((tmp_path / "quick" / "hiring.table.json").read_text())
    assert table["columns"] == ["", "small"] and table["rows"][1][0] == "best R"
