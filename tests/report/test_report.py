"""Does a report hold every figure, in a file that needs nothing else?"""

import base64
import hashlib
import json
import re
import resource
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.report import figures, from_run, write_report
from sb3_fair.report.content import charts, content
from sb3_fair.report.html import page
from sb3_fair.report.measures import Measure, axes, measures
from sb3_fair.report.write import made_by

PNG = b"\x89PNG"


class Links(HTMLParser):
    """Collects everything that a browser would load."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_is_one_file_that_loads_nothing(tmp_path, front, baselines, curves):
    path = write_report(tmp_path / "new" / "folder", front, baselines=baselines, curves=curves, made={"seed": 0})
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    assert links.found == []
    style = re.search(r"<style>(.*?)</style>", path.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style


def test_the_page_shows_mean_and_confidence_interval_of_every_policy_and_rule(tmp_path, front, baselines):
    data = data_of(write_report(tmp_path, front, baselines=baselines))
    columns = {measure["name"]: index for index, measure in enumerate(data["measures"])}
    for shown, policy in zip(data["policies"] + data["baselines"], (*front, *baselines), strict=True):
        assert shown["name"] == policy.name
        for objective, mean, (low, high) in zip(policy.objectives, policy.mean, policy.ci, strict=True):
            column = columns[objective]
            assert shown["mean"][column] == pytest.approx(mean)
            assert shown["mean"][column] - shown["half"][column] == pytest.approx(low)
            assert shown["mean"][column] + shown["half"][column] == pytest.approx(high)


def test_chance_level_and_command_stand_beside_the_figures(tmp_path, front):
    data = data_of(write_report(tmp_path, front))
    names = [measure["name"] for measure in data["measures"]]
    first = data["policies"][0]
    assert first["chance"][names.index("SP")] == 0.14
    assert first["chance"][names.index("IF")] is None
    assert first["command"]["returns"]["R"] == pytest.approx(front[0].command.desired_return[0])
    assert first["command"]["horizon"] == front[0].command.desired_horizon


def test_a_sum_over_steps_is_called_so_and_has_no_chance_level(front):
    summed = Front(tuple(replace(policy, returns=policy.returns * 90) for policy in front))
    shown = content(summed)
    titles = [measure["title"] for measure in shown["measures"]]
    levels = dict(zip(titles, shown["policies"][0]["chance"], strict=True))
    assert levels["statistical parity, sum over steps"] is None and levels["statistical parity at the end"] == 0.14
    assert titles[0] == "performance"


def test_axes_go_round_in_the_papers_order_with_the_optimised_ones_marked(front):
    assert [measure.name for measure in axes(front)] == ["R", "SP", "EO", "OAE", "PP", "PE", "IF", "CSC"]
    assert [measure.name for measure in axes(front) if measure.optimised] == ["R", "SP", "IF"]


def test_a_final_figure_that_repeats_the_return_has_no_column_of_its_own(front):
    assert [measure.name for measure in measures(front)].count("SP") == 1
    summed = Front(tuple(replace(policy, returns=policy.returns * 90) for policy in front))
    twice = [measure for measure in measures(summed) if measure.name == "SP"]
    assert [measure.final for measure in twice] == [False, True]
    assert [measure.name for measure in axes(summed)].count("SP") == 1
    fair = replace(summed[0], returns=summed[0].returns * [1, 0, 1], final={**summed[0].final, "SP": np.zeros(10)})
    assert [measure.name for measure in measures(Front((fair, *summed[1:])))].count("SP") == 2


def test_gaps_of_opposite_signs_are_not_small(front):
    gap = Measure("gap", False, True, words={"gap": {"better": "zero"}})
    opposite, small = (replace(front[0], final={"gap": np.array(some)}) for some in ([0.3, -0.3], [0.1, 0.1]))
    np.testing.assert_allclose(gap.goodness([opposite, small]), [-0.3, -0.1])


def test_undefined_figures_are_left_out_of_the_mean_and_never_become_zero(front):
    measure = Measure("PP", optimised=False, final=True)
    known = front[0].final["PP"][1:]
    assert np.isnan(front[0].final["PP"][0])
    assert measure.mean(front[0]) == pytest.approx(known.mean())
    undefined = replace(front[0], final={"PP": np.full(10, np.nan)})
    assert content(Front((undefined,)))["policies"][0]["mean"][-1] is None


def test_one_evaluation_episode_has_a_mean_and_no_interval(front):
    single = replace(front[0], returns=front[0].returns[:1], lengths=front[0].lengths[:1], final={})
    shown = content(Front((single,)))["policies"][0]
    assert shown["mean"] == single.mean.tolist()
    assert shown["half"] == [None, None, None]


def test_the_ideal_is_the_best_policy_or_rule_and_zero_where_zero_is_fair(front, baselines):
    highest = max(policy.mean[0] for policy in (*front, *baselines))
    ideal = {measure["name"]: measure["ideal"] for measure in content(front, baselines=baselines)["measures"]}
    assert ideal.pop("R") == highest
    assert set(ideal.values()) == {0}


def test_the_return_of_a_disparity_is_negated_so_more_is_better_up_to_zero(front):
    policies = [
        replace(policy, objectives=("R", "d_s", "IF"), final={"d_s": -policy.returns[:, 1], "SP (return)": returns})
        for policy in front
        for returns in [policy.returns[:, 1]]
    ]
    found = content(Front(tuple(policies)))["measures"]
    summed, final, recorded = (
        next(measure for measure in found if measure["label"] == label) for label in ("d_s", "final d_s", "SP (return)")
    )
    assert (summed["better"], final["better"]) == ("higher", "lower")
    assert [measure["zero_is_fair"] for measure in (summed, final, recorded)] == [True, False, True]
    assert {measure["ideal"] for measure in (summed, final, recorded)} == {0}
    assert summed["span"] == final["span"]


def test_ten_representatives_have_colours_and_the_others_none(front):
    coloured = [policy for policy in content(front)["policies"] if policy["colour"]]
    assert len(coloured) == 10
    assert all(re.fullmatch(r"rgb\(\d+, \d+, \d+\)", policy["colour"]) for policy in coloured)


def test_representatives_are_drawn_strong_and_the_more_there_are_the_stronger_the_others(front):
    coloured = [bool(policy["colour"]) for policy in content(front)["policies"]]
    others = (1.75, pytest.approx(0.7 * 10 / 18))
    for (axis,) in (figures.radars({"": front}).axes, figures.parallel(front).axes):
        for line, strong in zip(axis.lines, coloured, strict=True):
            assert line.get_markersize() == 5
            assert (line.get_linewidth(), line.get_alpha()) == ((2, 1) if strong else others)


def test_bars_show_mean_and_standard_deviation_over_the_policies(front):
    for measure, axis in zip(axes(front), figures.bars(front).axes, strict=True):
        mean, spread = (of([measure.mean(policy) for policy in front]) for of in (np.mean, np.std))
        assert axis.patches[0].get_height() == pytest.approx(mean)
        assert axis.collections[0].get_segments()[0][:, 1] == pytest.approx([mean - spread, mean + spread])


def test_curves_show_hypervolume_loss_and_asked_beside_reached(curves):
    drawn = {chart["title"]: chart["series"] for chart in charts(curves, {"R": "profit"})}
    assert list(drawn) == ["Hypervolume", "Loss", "Return of profit"]
    assert [line["name"] for line in drawn["Return of profit"]] == ["asked", "reached"]
    assert len(drawn["Loss"][0]["x"]) == len(curves["train/loss"]) - 1
    assert charts({}) == [] and charts({"train/loss": [1.0]}) == []
    assert charts({name: values[-1:] for name, values in curves.items()}) == [], "one point is no curve"


def test_curves_without_a_number_are_left_out(tmp_path, front, curves):
    diverged = {**curves, "train/loss": [float("nan")] * len(curves["train/loss"])}
    assert "Loss" not in [chart["title"] for chart in charts(diverged)]
    write_report(tmp_path, front, curves=diverged)


def test_text_from_outside_cannot_break_out_of_the_page(front):
    evil = Front((replace(front[0], name="</script><b>x"),))
    text = page(content(evil, title="</title><script>alert(1)</script>"))
    assert "<script>alert(1)" not in text and "</script><b>x" not in text


def test_every_picture_is_written_as_png(tmp_path, front, baselines, curves):
    write_report(tmp_path, front, baselines=baselines, curves=curves)
    pictures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert pictures == ["bars.png", "curves.png", "pairs.png", "parallel.png", "radar.png"]
    assert all((tmp_path / "figures" / name).read_bytes().startswith(PNG) for name in pictures)


def test_drawing_leaves_matplotlibs_settings_alone(front):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.radars({"": front})
    assert dict(matplotlib.rcParams) == before


def test_learning_curves_show_what_was_logged_each_in_its_chart(curves):
    hypervolume, loss, returns = figures.learning_curves(curves).axes
    assert list(hypervolume.lines[0].get_ydata()) == curves["eval/hypervolume"]
    assert list(loss.lines[0].get_xdata()) == curves["time/total_timesteps"][1:]
    shown = {line.get_label(): list(line.get_ydata()) for line in returns.lines}
    assert shown == {"asked": curves["pcn/desired_R"], "reached": curves["pcn/reached_R"]}
    assert len(returns.get_legend().get_texts()) == 2 and hypervolume.get_legend() is None


def test_a_front_of_one_policy_and_one_objective_still_makes_a_report(tmp_path, front):
    alone = replace(front[0], objectives=("R",), returns=front[0].returns[:, :1], command=None, final={}, chance={})
    never = {"SP": np.full(10, np.nan)}
    undefined = replace(front[0], objectives=("R", "SP"), returns=front[0].returns[:, :2] * [1, 0], final=never)
    for policy in (alone, replace(undefined, command=None, chance={})):
        data = data_of(write_report(tmp_path / policy.objectives[-1], Front((policy,))))
        assert data["objectives"] == list(policy.objectives)
        assert not (tmp_path / policy.objectives[-1] / "figures" / "pairs.png").exists()


def test_an_empty_front_is_refused(tmp_path):
    with pytest.raises(ValueError, match="front must hold at least one policy"):
        write_report(tmp_path, Front(()))


@pytest.fixture
def run(tmp_path, front, baselines):
    run = RunFolder.create(tmp_path, "pcn", "sb3_fair:sb3_fair/JobHiring-Small-v0")
    run.start(
        config={
            "env": "sb3_fair:sb3_fair/JobHiring-Small-v0",
            "algo": "pcn",
            "seed": 7,
            "n_timesteps": 1000,
            "env_kwargs": {"objectives": ("R", "SP", "IF"), "emit": "difference"},
            "hyperparams": {"gamma": 0.9},
        },
        args={"seed": 7},
        command="sb3-fair train --algo pcn --seed 7",
    )
    run.save_results(front, baselines)
    return run


def test_the_report_of_a_run_says_how_it_was_made_and_how_to_run_each_policy(run, front):
    data = data_of(from_run(run.path))
    made = dict(data["made"])
    assert made["command"] == "sb3-fair train --algo pcn --seed 7" and made["seed"] == "7"
    assert "emit: difference" in made["settings"] and "numpy" in made["versions"]
    assert data["policies"][3]["use"]["shell"] == f"sb3-fair evaluate --run {run.path} --policy 3"
    compile(data["policies"][3]["use"]["python"], "report", "exec")
    assert data["title"].endswith("JobHiring-Small-v0")


def test_the_steps_of_the_training_are_those_that_took_place(tmp_path):
    run = RunFolder(tmp_path)
    run.start(config={"n_timesteps": 150}, args={}, command="")
    assert made_by(run)["training steps"] == 150
    for last, trained in (("", 150), ("128", 150), ("256", 256)):
        (tmp_path / "progress.csv").write_text(f"time/total_timesteps,train/loss\n64,0.5\n{last},0.5\n")
        assert made_by(run)["training steps"] == trained


@pytest.mark.parametrize(("held", "shown"), [(None, ["asked", "reached"]), ({"R": 0.9}, ["reached"])])
def test_commands_that_are_held_have_other_units_than_what_was_reached(run, front, held, shown):
    run.start(config={**run.config, "hyperparams": {"held": held}}, args={}, command="")
    (run.path / "progress.csv").write_text("time/total_timesteps,pcn/desired_R,pcn/reached_R\n1,0.9,3\n2,0.9,4\n")
    run.save_results(front)
    (curve,) = data_of(from_run(run.path))["curves"]
    assert [line["name"] for line in curve["series"]] == shown


def test_a_folder_without_a_run_or_without_policies_is_refused(tmp_path, run):
    with pytest.raises(FileNotFoundError, match="must be the folder of a run"):
        from_run(tmp_path)
    for name in ("front.json", "manifest.json"):
        (run.path / name).unlink()
    with pytest.raises(FileNotFoundError, match="evaluated policies"):
        from_run(run.path)


NASTY = [
    "<script>alert(1)</script>",
    '<span style="background:url(https://example.org/x)">',
    "{{ data }} {{ program }}",
    "$\\frac{$ 5 $",
    "' onload=x \"\n</title>",
    "\u202eright to left \U0001f600 \ud800 \x00",
    "x" * 10_000,
]


class Tags(HTMLParser):
    """Collects every element with its attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def tags_of(path):
    tags = Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    return tags.found


def test_names_never_become_markup(tmp_path, front, baselines, curves):
    plain = tags_of(write_report(tmp_path / "plain", front, baselines=baselines, curves=curves))
    for number, name in enumerate(NASTY):
        policies = Front((replace(front[0], name=name), *front[1:]))
        rules = (replace(baselines[0], name=name), *baselines[1:])
        folder = tmp_path / str(number)
        path = write_report(folder, policies, baselines=rules, curves=curves, made={name: name}, title=name)
        assert tags_of(path) == plain
        assert data_of(path)["policies"][0]["name"] == name
        assert len(list((folder / "figures").glob("*.png"))) == 5


def test_the_page_allows_only_its_own_programs_and_loads_nothing(tmp_path, front):
    path = write_report(tmp_path, front)
    policy = next(tag["content"] for name, tag in tags_of(path) if tag.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    text = path.read_text(encoding="utf-8")
    for kind, count in (("script", 2), ("style", 1)):
        for body in re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in rules[f"{kind}-src"]
            count -= 1
        assert count == 0
    for sheet in re.findall(r'createElement\("style"\);e\.id="(\w+)"', text):
        assert f'<style id="{sheet}"></style>' in text, "Plotly adds a style sheet, which is refused"


def test_a_page_for_which_the_disk_has_no_room_leaves_the_last_one(run):
    path = from_run(run.path)
    before = path.read_bytes()
    held = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, held[1]))
    try:
        with pytest.raises(OSError, match="large"):
            from_run(run.path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, held)
    assert path.read_bytes() == before and not list(run.path.glob("*.part"))


def test_the_lines_that_run_a_policy_are_quoted(run):
    other = run.path.with_name("a $(touch x) 'b'")
    run.path.rename(other)
    about = content(RunFolder(other).front, run=RunFolder(other))
    assert shlex.split(about["policies"][1]["use"]["shell"])[3] == str(other)
    compile(about["policies"][1]["use"]["python"], "report", "exec")


def test_a_return_that_repeats_an_undefined_figure_is_undefined(front):
    """It counted as 0 in the rewards."""
    known = front[0].final["SP"].copy()
    for undefined in (np.arange(10) < 4, np.full(10, True)):
        final = np.where(undefined, np.nan, known)
        returns = front[0].returns.copy()
        returns[:, front.objectives.index("SP")] = np.nan_to_num(final)
        policy = replace(front[0], returns=returns, final={**front[0].final, "SP": final})
        (shown,) = (measure for measure in measures(Front((policy,))) if measure.name == "SP")
        np.testing.assert_equal(shown.mean(policy), final[~undefined].mean() if not undefined.all() else np.nan)
