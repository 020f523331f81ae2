"""Does the overview train what makes sense, once, and tell how sure its figures are?"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.studies import overview
from sb3_fair.zoo.studies.training import Stopwatch, trained

DOUGHNUTS, VACCINES = "sb3_fair/Doughnut-Small-v0", "sb3_fair/VaccineDelivery-v0"


def test_every_scenario_has_the_algorithms_that_make_sense_there():
    found = {env: overview.sensible(overview.ALGORITHMS, env) for env in overview.SCENARIOS}
    assert found["sb3_fair/AttentionAllocation-v0"] == ["ppo", "pcn", "f_ppo"]
    assert found["sb3_fair/AllelopathicHarvest-All-v0"] == ["ppo", "dqn", "fair_ppo"]
    assert found["sb3_fair/LoanAllocation-v0"] == ["ppo", "dqn", "pcn", "fair_qcm"]
    assert sum(map(len, found.values())) == 45


def test_environments_of_users_have_a_row_and_a_folder_too():
    found = overview.front_page({env: {"ppo": {"R": (1, 1, 1)}} for env in ("bank:Loans-v0", "my:bank/Loans-v0")})
    assert [row[0] for row in found.content["rows"]] == ["Loans-v0: ppo", "bank-Loans-v0: ppo"]


def test_nothing_that_makes_sense_is_an_error_with_the_reason(tmp_path):
    with pytest.raises(InputError, match=r"nothing to train: dqn needs Discrete actions"):
        overview.study(["dqn"], ["sb3_fair/AttentionAllocation-v0"], log_dir=tmp_path)


@pytest.fixture
def tiny(monkeypatch):
    """Runs of 60 steps and two episodes; counts them."""
    done = []
    judge = overview.judge

    def counted(plan, model):
        done.append((plan.algo, plan.seed))
        return judge(plan, model)

    def plan(algo, env, share):
        own = {"ppo": {"n_steps": 20, "batch_size": 40}, "dqn": {"learning_starts": 9}}
        settings = {"n_eval_episodes": 2, **own.get(algo, {})}
        return make_plan(algo, env, n_timesteps=60, n_envs=2, hyperparams=settings)

    monkeypatch.setattr(overview, "judge", counted)
    monkeypatch.setattr(overview, "planned", plan)
    return done


def test_means_and_intervals_are_over_seeds_and_runs_are_done_once(tiny, tmp_path, capsys):
    for _ in range(2):
        found = overview.study(["ppo", "dqn"], [DOUGHNUTS, VACCINES], seeds=2, n_jobs=1, log_dir=tmp_path)
    assert sorted(tiny) == sorted([(algo, seed) for algo in ("ppo", "dqn") for seed in (100, 101)] * 2)
    assert json.loads((tmp_path / "study.json").read_text()) == found
    runs = [json.loads((tmp_path / f"Doughnut-Small-v0/ppo/{seed}.json").read_text())["result"] for seed in (100, 101)]
    mean, low, high = found[f"sb3_fair:{DOUGHNUTS}"]["ppo"]["R"]
    assert mean == pytest.approx(np.mean([figures["R"] for figures in runs]))
    assert low <= mean <= high
    assert {"oracle", "random all"} < found[f"sb3_fair:{DOUGHNUTS}"].keys()
    shown = capsys.readouterr().out
    assert "inherited" in shown and "VaccineDelivery-v0" in shown
    assert f"| ppo | inherited | {mean:.3g} [" in (tmp_path / "Doughnut-Small-v0.md").read_text()
    front_page = (tmp_path / "all.md").read_text()
    assert f"| Doughnut-Small-v0: ppo | inherited | {mean:.3g} [" in front_page
    assert front_page.count("\n| ") == 2 + 4  # the rows of two learners in two scenarios
    assert all(run["seconds"] > 0 for run in runs)


def test_a_quick_study_replaces_no_results(tiny, tmp_path):
    overview.study(["ppo"], [DOUGHNUTS], seeds=1, n_jobs=1, log_dir=tmp_path)
    full = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    overview.study(["ppo"], [DOUGHNUTS], seeds=1, quick=True, n_jobs=1, log_dir=tmp_path)
    assert len(tiny) == 2 and (tmp_path / "quick" / "all.md").is_file()
    assert all(path.read_bytes() == content for path, content in full.items())


def policy(returns, unfairness):
    final = {"SP": np.array(unfairness, dtype=float)}
    return EvaluatedPolicy("p", ("R",), np.array(returns, dtype=float)[:, None], np.full(len(returns), 5), final=final)


def test_a_trade_off_stands_there_with_its_best_performer_and_its_fairest_near_it(monkeypatch):
    chosen = [policy([100, 100], [-0.4, -0.6]), policy([96, 96], [0.2, -0.2]), policy([94, 94], [0, 0])]
    fresh = [policy([90, 92], [-0.5, -0.7]), policy([95, 95], [-0.4, 0.1]), policy([80, 80], [0, 0])]
    monkeypatch.setattr(overview, "policies_of", lambda plan, model, way: chosen)
    again = dict(zip(map(id, chosen), fresh, strict=True))
    monkeypatch.setattr(overview, "evaluate_again", lambda plan, model, learned, *rest: again[id(learned)])
    figures = overview.judge(make_plan("pcn", DOUGHNUTS), None)
    assert (figures["R"], figures["SP"]) == pytest.approx((91, -0.6))  # chosen on other episodes
    assert figures["fair"] == {"SP": pytest.approx(0.25)}  # 94 would be too much to give up
    np.testing.assert_allclose(figures["points"]["SP"], [[91, 0.6], [95, 0.25], [80, 0]])


def test_what_is_attained_is_a_share_of_what_is_possible_by_the_worst_and_the_best_of_all():
    pcn = {"R": 10.0, "fair": {"SP": 0.3}, "points": {"SP": [[10.0, 0.5], [6.0, 0.1]]}}
    ppo = {"R": 8.0, "fair": {"SP": 1.0}, "points": {"SP": [[8.0, 1.0]]}}
    undefined = {"R": 1.0, "fair": {}, "points": {}}
    found = overview.compared({"pcn": [pcn], "ppo": [ppo]}, [{"R": (0.0, 0.0, 0.0)}])
    assert found["pcn"] == [{"R": 10.0, "fair": 0.3, "hypervolume": pytest.approx(1.0 * 0.5 + 0.6 * 0.4)}]
    assert found["ppo"] == [{"R": 8.0, "fair": 1.0, "hypervolume": 0.0}]  # the least fair of all
    beside = overview.compared({"pcn": [pcn], "ppo": [ppo]}, [{"R": (0.0, 0.0, 0.0), "SP": (2.0, 2.0, 2.0)}])
    assert beside["ppo"][0]["hypervolume"] == pytest.approx(0.8 * 0.5)  # a rule is less fair than all
    some = overview.compared({"pcn": [pcn], "ppo": [ppo], "dqn": [undefined]}, [])
    assert some["dqn"] == [{"R": 1.0}] and "hypervolume" in some["pcn"][0]
    assert overview.compared({"dqn": [undefined]}, []) == {"dqn": [{"R": 1.0}]}  # no fairness is measured


def test_returns_of_shorter_episodes_are_compared_step_for_step():
    lengths = {"pcn": 100, "ppo": 1000}
    lending = "sb3_fair/Lending-v0"
    plans = {algo: make_plan(algo, lending, env_kwargs={"episode_length": length}) for algo, length in lengths.items()}
    run = {"R": 3.0, "fair": {"d_s": 0.1}, "points": {"d_s": [[3.0, 0.1]]}}
    found = overview._at_equal_length(plans, {"pcn": [run], "ppo": [run]}, plans["ppo"])
    assert found["pcn"] == [{"R": 30.0, "fair": {"d_s": 0.1}, "points": {"d_s": [[30.0, 0.1]]}}]
    assert found["ppo"] == [run]
    plans = {algo: replace(plan, env_kwargs={"episode_length": None}) for algo, plan in plans.items()}
    assert overview._at_equal_length(plans, {"pcn": [run]}, plans["ppo"]) == {"pcn": [run]}  # no length is known


@pytest.mark.parametrize("algos", [["pcn"], ["ppo", "pcn"]])
def test_rules_and_learners_are_compared_alike_whichever_are_chosen(algos, monkeypatch, tmp_path):
    """PCN's episodes have 100 steps here, those of the others 1000."""
    run = {"R": 3.0, "fair": {"SP": 0.1}, "points": {"SP": [[3.0, 0.1]]}}
    asked = {}

    def results(jobs, *_):
        asked.update({job.name: job for job in jobs})
        return {name: run if "rules" not in name else {"random": [{"R": 1.0}]} for name in asked}

    monkeypatch.setattr("sb3_fair.zoo.studies.study.run_grid", results)
    found = overview.study(algos, ["sb3_fair/AttentionAllocation-v0"], seeds=1, log_dir=tmp_path)
    assert found["sb3_fair:sb3_fair/AttentionAllocation-v0"]["pcn"]["R"][0] == 30
    assert "episode_length" not in asked["AttentionAllocation-v0/rules"].key["config"]["env_kwargs"]


def test_learners_are_compared_by_one_measure_although_some_have_another_too():
    plain = {"R": 1.0, "fair": {"SP": 0.5}, "points": {"SP": [[1.0, 0.5]]}}
    more = {"R": 2.0, "fair": {"d_s": 0.1, "SP": 0.4}, "points": {"d_s": [[2.0, 0.1]], "SP": [[2.0, 0.4]]}}
    found = overview.compared({"ppo": [plain], "f_ppo": [more]}, [])
    assert [found[algo][0]["fair"] for algo in found] == [0.5, 0.4]
    assert found["f_ppo"][0]["hypervolume"] == pytest.approx(1 - 0.4 / 0.5)
    assert overview.compared({"ppo": [more], "f_ppo": [more]}, [])["ppo"][0]["fair"] == 0.1


def test_the_figures_of_a_real_front():
    settings = {"n_fill_episodes": 2, "n_updates": 1, "eval_freq": 0.0, "n_eval_episodes": 2, "updates_per_step": None}
    plan = make_plan("pcn", DOUGHNUTS, n_timesteps=60, n_envs=2, hyperparams=settings)
    watch = Stopwatch()
    figures = overview.judge(plan, trained(plan, watch))
    assert {"R", "SP", "fair", "points"} <= figures.keys()
    assert 0 < watch.figures["seconds"] < 60


def test_a_model_that_learns_probabilities_may_sample_or_take_the_most_probable_actions():
    settings = {"n_steps": 20, "batch_size": 40, "n_eval_episodes": 2}
    plan = make_plan("ppo", DOUGHNUTS, n_timesteps=60, n_envs=2, hyperparams=settings)
    figures = overview.judge(plan, trained(plan, Stopwatch()))
    (likely, _), (sampled, _) = figures["points"]["SP"]
    assert figures["R"] in (likely, sampled) and likely != sampled


def test_quick_plans_are_short_but_hold_whole_episodes():
    assert overview.planned("ppo", DOUGHNUTS, overview.QUICK).n_timesteps == 1_000
    plan = overview.planned("pcn", "sb3_fair/Lending-v0", overview.QUICK)
    assert plan.n_timesteps == 2 * 10 * 500 and plan.n_eval_episodes == 2
