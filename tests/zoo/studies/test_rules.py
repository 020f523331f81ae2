"""Does the table of rules have what the evaluator says of them?"""

import json

import pytest

from sb3_fair.zoo.evaluation.evaluator import evaluate
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.studies.rules import FRESH, SCENARIOS, study


def test_rules_are_told_with_the_evaluators_figures(tmp_path):
    found = study(["hiring-small"], quick=True, n_jobs=1, log_dir=tmp_path)["hiring-small"]
    rules = ["hire-all", "reject-all", "random", "hire-at-random", "threshold-oracle", "patient-oracle"]
    assert list(found) == rules
    again = evaluate("patient-oracle", "sb3_fair/JobHiring-Small-v0", 10, FRESH, n_envs=10).summary()
    assert found["patient-oracle"]["SP"] == pytest.approx(again["SP"])
    table = json.loads((tmp_path / "quick" / "hiring-small.table.json").read_text())
    assert table["columns"] == ["", "return", "applicants", "SP", "EO"]
    assert [table["rows"][1][column] for column in (0, 2, 3)] == ["reject-all", "100", "0"]


def test_agents_play_beside_the_rules_and_unknown_scenarios_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(SCENARIOS, "lending", {**SCENARIOS["lending"], "settings": {"episode_length": 500}})
    found = study(["lending"], quick=True, n_jobs=1, log_dir=tmp_path)["lending"]
    assert found["never"]["cash"][0] == 10_000 < found["EqualOpportunityAgent"]["cash"][0]
    with pytest.raises(InputError, match="scenario"):
        study(["lendin"], log_dir=tmp_path)
