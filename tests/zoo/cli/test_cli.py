"""Does the command line do what it says, and answer a wrong name with one line?"""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sb3_fair
from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.group_counts import COUNTS
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.report.content import content
from sb3_fair.report.groups import group_rates
from sb3_fair.zoo.cli import commands as cli
from sb3_fair.zoo.cli import options
from sb3_fair.zoo.evaluation.tables import figure_table, group_table, policy_table, seed_table
from sb3_fair.zoo.names import InputError, objectives
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.registration import TABLE, WORLDS
from sb3_fair.zoo.studies import speed as benchmark

SMALL = "sb3_fair/JobHiring-Small-v0"
ROOT = Path(__file__).parents[3]


def train(command, algo, *more):
    settings = ("--n-timesteps", 1000, "-P", "n_eval_episodes:2", "--no-progress")
    code, out, err = command("train", "--algo", algo, "--env", SMALL, *settings, *more)
    assert code == 0, err
    return RunFolder.open(Path(out.strip().splitlines()[-1]).parent), out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train --algo pcm --env sb3_fair/JobHiring-v0", "unknown algorithm 'pcm': did you mean 'pcn'?"),
        ("train --algo pcn --env sb3_fair/JobHirng-v0", "did you mean 'sb3_fair/JobHiring-v0'?"),
        ("train --algo pcn --env Credit-v0", "'CartPole-v0'? (an environment of your own: my_module:Credit-v0)"),
        ("train --algo pcn --env sb3_fair:sb3_fair/JobHirng-v0", "did you mean 'sb3_fair/JobHiring-v0'?"),
        ("train --algo pcn --env {small} --objectives R:SPP", "unknown objective 'SPP': did you mean 'SP'?"),
        ("train --algo pcn --env {small} --objectives R,SP", "objectives must be separated by colons, as in R:SP, got"),
        ("train --algo pcn --env {small} --audit EO,PP", "notions must be separated by colons, as in EO:PP, got"),
        ("tune --algo ppo --env {small} --scores R,SP", "scores must be separated by colons, as in R:SP, got"),
        ("tune --algo ppo --env {small} --only gamma,n_steps", "only must be separated by colons, as in gamma:n_steps"),
        ("train --algo pcn --env {small} --objectives R:d_s", "objectives must be what env measures, [], got 'd_s'"),
        ("train --algo pcn --env {small} --objectives :", "objectives must name at least one"),
        ("train --algo ppo --env {small} --objectives SP:SP", "objectives must name none twice, got SP:SP"),
        ("train --algo pcn --env {small} --audit EOO", "unknown notion 'EOO': did you mean 'EO'?"),
        ("train --algo fair_qcm --env {small}", "fair_qcm needs a fairness scheme"),
        ("evaluate", "--run must be given, or --pretrained, or --model with --algo and --env"),
        ("evaluate --pretrained dqn", "unknown pretrained algorithm 'dqn'"),
        ("enjoy", "either --run or --pretrained must be given"),
        ("evaluate --model m.zip --algo ppo", "--model must be given with --algo and --env"),
        ("evaluate --run logs --algo ppo", "--run takes everything from the run: leave out --algo"),
        ("evaluate --model m.zip --algo ppo --env {small}", "model must be a .zip that ppo saved"),
        ("train --algo pcn --env CartPole-v1", "fairness must be given for 'CartPole-v1', which has no fairness spec"),
        ("train --algo pcn --env mine:Clinic-v0", "env must name a module that can be imported, got 'mine:Clinic-v0'"),
        ("train --algo zzz --env {small}", "unknown algorithm 'zzz': choose one of"),
        ("train --algo ppo --env {small} -P n_steps:-3", "hyperparameter 'n_steps' must be a positive integer, got -3"),
        ("train --algo a2c --env {small} -P gamma:2", "hyperparameter 'gamma' must be in [0, 1], got 2"),
        ("train --algo ppo --env {small} -P n_epochs:0", "hyperparameter 'n_epochs' must be a positive integer, got 0"),
        ("train --algo ppo --env {small} -P clip_range:.nan", "'clip_range' must be a positive number"),
        ("train --algo pcn --env {small} -P updates_per_step:.inf", "'updates_per_step' must be a non-negative number"),
        ("tune --algo ppo --env {small} --budget SP", "--budget must be key:value, as in SP:0.05, got 'SP'"),
        ("train --algo pcn --env {small} -P gama:1", "unknown hyperparameter 'gama': did you mean 'gamma'?"),
        ("train --algo pcn --env {small} -P gamma", "--param must be key:value"),
        ("train --algo pcn --env {small} -P gamma:[1", "--param must have a YAML value"),
        ("train --algo pcn --env {small} -P gamma:7", "'gamma' must be in (0, 1], got 7"),
        ("train --algo pcn --env {small} -E popultion:gender", "did you mean 'population'"),
        ("train --algo pcn --env {small} --emit leven", "emit must be one of"),
        ("train --algo pcn --env {small} --window 0", "window must be a positive integer"),
        ("train --algo ppo --env {small} --weights 1:2", "weights must be one number per objective R:SP:IF"),
        ("train --algo ppo --env {small} --weights a:b:c", "weights must be numbers separated by colons"),
        ("train --algo ppo --env {small} --weights 1:nan:0", "each of weights must be a finite number, got nan"),
        ("train --algo ppo --env {small} --num-threads 0", "num-threads must be a positive integer"),
        ("train --algo ppo --env {small} --n-timesteps 0", "n_timesteps must be a positive integer, got 0"),
        ("train --algo ppo --env {small} -P n_eval_episodes:0", "n_eval_episodes must be a positive integer, got 0"),
        ("train --algo ppo --env {small} -P policy_kwargs:{{net_arch:[-3]}}", "policy_kwargs must describe networks"),
        ("train --algo ppo --env {small} -P policy_kwargs:3", "'policy_kwargs' must be settings by name or null"),
        ("train --algo ppo --env {small} --device tpu", "device must be auto, cpu, mps, cuda or one such as cuda:1"),
        ("train --algo ppo --env {small} --seeds 2 --jobs 0", "jobs must be a number of processes, or -1"),
        ("train --algo ppo --env {small} --device meta", "device must be auto, cpu, mps, cuda or one such as cuda:1"),
        ("train --algo ppo --env {small} --device mps", "device must be one that this machine has"),
        ("train --algo ppo --env {small} --seed -1", "--seed"),
        ("train --algo ppo --env {small} --no-progress --log-dir /dev/null", "Not a directory"),
        ("train --algo ppo", "--env"),
        ("train --algo ppo --env {small} --checkpoint-minutes -1", "checkpoint-minutes must not be negative, got -1"),
        ("train --algo ppo --env {small} --jobs 2", "jobs must be left out without --seeds, got 2"),
        ("train --algo ppo --env {small} --seeds 2 --num-threads 2", "num-threads must be 1 where several runs share"),
        ("train --algo ppo --env {small} --cluster dusk --scheduler x", "unknown cluster 'dusk': did you mean 'dask'?"),
        ("benchmark hiring --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark fair-qcm --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark f-ppo --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark fair-ppo --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark fmdp --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark tuned --cluster dask", "scheduler must be given with a cluster"),
        ("benchmark tuned --algo fair_ppo --env sb3_fair/Doughnut-v0", "unknown tuned environment"),
        ("benchmark speed --json .", "json must be a file, got the folder '.'"),
        ("benchmark speed --json no/a.json", "json must be in a folder that is there, got 'no/a.json'"),
        (
            "benchmark all --algo dqn --env sb3_fair/AttentionAllocation-v0",
            "nothing to train: dqn needs Discrete",
        ),
        ("benchmark tuned --algo f_ppo --env sb3_fair/Lending", "did you mean 'sb3_fair/Lending-v0'?"),
        ("train --resume nowhere", "resume must be the folder of a run, with a config.yml in it, got 'nowhere'"),
        ("train --resume nowhere --seed 3 --n-envs 2", "takes everything from the run: leave out --n-envs, --seed"),
        ("train --alog ppo", "--alog"),
        ("trian", "trian"),
        ("evaluate --run nowhere", "run must be the folder of a run"),
        ("report --run nowhere", "run must be the folder of a run"),
        ("enjoy --run nowhere", "run must be the folder of a run"),
    ],
)
def test_wrong_input_is_one_line_that_says_what_is_right(command, arguments, message):
    code, out, err = command(*arguments.format(small=SMALL).split())
    assert code == 2
    assert out == "" and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("name", ["evaluate", "report", "enjoy"])
def test_a_run_that_was_interrupted_is_not_looked_at(command, tmp_path, name):
    folder = tmp_path / "my run"
    folder.mkdir()
    (folder / "config.yml").write_text("{}")
    code, _, err = command(name, "--run", folder)
    assert code == 2 and f"run must be finished: go on with `sb3-fair train --resume '{folder}'`" in err


def test_paths_may_begin_with_the_home_of_the_user(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    run, _ = train(command, "ppo", "--log-dir=~/logs", "-P", "n_steps:64")
    assert run.path.is_relative_to(tmp_path / "user")
    assert command("report", f"--run=~/{run.path.relative_to(tmp_path / 'user')}")[0] == 0


def test_a_bug_of_ours_is_not_dressed_up_as_wrong_input(command, monkeypatch):
    monkeypatch.setattr("sb3_fair.zoo.cli.listing.environments", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        command("envs")


@pytest.mark.parametrize("arguments", ["", "benchmark"])
def test_a_command_without_arguments_shows_its_help_and_nothing_else(command, arguments):
    code, out, err = command(*arguments.split())
    assert code == 2 and "Usage:" in out and err == ""


@pytest.mark.parametrize("arguments", ["-h", "train -h", "benchmark -h", "benchmark speed -h"])
def test_h_is_help(command, arguments):
    code, out, err = command(*arguments.split())
    assert code == 0 and "Usage:" in out and err == ""


def test_python_without_docstrings_has_all_commands():
    subprocess.run([sys.executable, "-OO", "-m", "sb3_fair.zoo", "train", "-h"], cwd=ROOT, check=True)


def test_the_version_and_those_of_the_packages_it_stands_on_can_be_asked_for(command):
    code, out, _ = command("--version")
    assert code == 0 and f"sb3-fair {sb3_fair.__version__}" in out and "stable-baselines3 2." in out


def test_python_runs_the_package():
    shown = subprocess.run([sys.executable, "-m", "sb3_fair", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.startswith("python 3."), shown.stderr


def test_envs_lists_every_environment_with_spaces_groups_notions_and_source(command):
    code, out, _ = command("envs")
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert [line.strip() for line in out.splitlines() if line.startswith("  ")] == [*WORLDS, TABLE.id]
    hiring = (
        "Cimpean et al., FAReL; STATBEL: observations Box(23), actions Discrete(2), groups man, woman, notions SP EO"
    )
    block = next(block for block in out.split("\n\n") if f"  {SMALL}" in block.splitlines())
    assert " ".join(block.split()).startswith(f"{hiring} sb3_fair/JobHiring-v0")
    assert all(make_vec(env).get_attr("source")[0] for env in WORLDS)


@pytest.fixture(scope="module")
def pcn_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pcn")
    command = "train --algo pcn --env sb3_fair:sb3_fair/JobHiring-Small-v0 --objectives R:SP --n-timesteps 5000"
    options = "--seed 3 -P n_eval_episodes:3 -E population:gender --window 60 --no-progress"
    subprocess.run(
        [sys.executable, "-m", "sb3_fair.zoo", *command.split(), *options.split()],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return RunFolder.open(folder / "logs" / "pcn" / "sb3_fair-JobHiring-Small-v0_1")


def test_a_run_leaves_behind_what_is_needed_to_understand_and_repeat_it(pcn_run):
    assert pcn_run.command.startswith("sb3-fair train --algo pcn")
    config = pcn_run.config
    assert config["seed"] == 3 and config["n_timesteps"] == 5000
    assert config["env_kwargs"]["objectives"] == ["R", "SP"] and config["env_kwargs"]["population"] == "gender"
    assert config["hyperparams"]["scaling_floor"].keys() == {"R", "SP"}
    assert pcn_run.curves["time/total_timesteps"][-1] >= 5000
    assert all(isinstance(value, float) for value in pcn_run.curves["pcn/hypervolume"])
    assert {path.name for path in pcn_run.path.iterdir()} >= {"model.zip", "report.html", "figures", "versions.yml"}


def test_the_front_of_a_run_is_evaluated_beside_the_rules_with_chance_levels(pcn_run):
    assert [policy.name for policy in pcn_run.front] == [f"PCN {index}" for index in range(len(pcn_run.front))]
    assert [rule.name for rule in pcn_run.baselines] == [
        "hire all", "reject all", "random", "hire at random", "threshold oracle", "patient oracle",
    ]  # fmt: skip
    for policy in (*pcn_run.front, *pcn_run.baselines):
        assert len(policy.returns) == 3
        assert {"SP", "EO", "OAE", "PP", "PE", "IF", "CSC"} <= policy.final.keys()
        assert not any("chance" in name for name in policy.final)
    random = next(rule for rule in pcn_run.baselines if rule.name == "random")
    assert 0.05 < random.chance["SP"] < 0.3


def test_a_policy_of_a_run_is_run_again_by_its_number(pcn_run, command):
    code, out, err = command("evaluate", "--run", pcn_run.path, "--policy", 0, "--n-eval-episodes", 2)
    assert code == 0, err
    learned = [line for line in out.splitlines() if line.startswith("PCN")]
    assert [line.split()[1] for line in learned] == ["0", "0"]
    assert "patient oracle" in out and "known if favourable" in out and " woman " in out
    code, out, err = command("evaluate", "--run", pcn_run.path, "--policy", 99)
    assert code == 2 and "policy must be a number from 0 to" in err


def test_the_same_evaluation_seed_gives_the_same_figures(pcn_run, command):
    ask = ("evaluate", "--run", pcn_run.path, "--policy", 0, "--n-eval-episodes", 2, "--seed", 5)
    assert command(*ask) == command(*ask)


def test_a_run_is_evaluated_on_episodes_that_it_was_not_judged_on(pcn_run, command):
    ask = ("evaluate", "--run", pcn_run.path, "--policy", 0, "--n-eval-episodes", 2)
    assert command(*ask) == command(*ask, "--seed", 320_000)


def test_a_report_is_rebuilt_from_its_folder(pcn_run, command):
    pcn_run.report.unlink()
    code, out, _ = command("report", "--run", pcn_run.path)
    assert code == 0 and Path(out.strip()) == pcn_run.report and pcn_run.report.stat().st_size > 1e6
    names = {}
    exec(content(pcn_run.front, run=pcn_run)["policies"][0]["use"]["python"], names)
    assert names["env"].action_space.contains(names["action"][0])


@pytest.mark.parametrize(("algo", "setting"), [("ppo", "n_steps:64"), ("dqn", "learning_starts:50")])
def test_an_algorithm_for_one_number_trains_on_weighted_objectives_and_is_one_policy(command, algo, setting):
    run, out = train(command, algo, "--weights", "1:0:2", "--seed", 1, "-P", setting)
    assert run.config["weights"] == [1, 0, 2]
    (policy,) = run.front
    assert policy.name == algo.upper() and policy.objectives == ("R", "SP", "IF")
    assert algo.upper() in out
    code, out, _ = command("evaluate", "--run", run.path, "--n-eval-episodes", 1)
    assert code == 0 and algo.upper() in out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("--algo ppo --objectives R:SP:PP", ["without weight in the reward: SP, PP", "--weights 1:10:10"]),
        ("--algo ppo --objectives R:SP:PP --weights 1:0:0", []),
        ("--algo ppo", []),
        ("--algo pcn --objectives R:SP:PP", []),
    ],
)
def test_objectives_that_were_asked_for_without_weights_are_told(command, monkeypatch, recwarn, asked, told):
    def stop(*_, **__):
        raise InputError("so far")

    monkeypatch.setattr("sb3_fair.zoo.runs.train.train", stop)
    assert command("train", "--env", SMALL, *asked.split())[0] == 2
    ours = [str(warning.message) for warning in recwarn if warning.category is UserWarning]
    assert len(ours) == bool(told) and all(part in ours[0] for part in told)


def test_values_on_the_command_line_are_data_and_never_run(command, tmp_path):
    code, _, err = command("train", "--algo", "ppo", "--env", SMALL, "-P", "gamma:__import__('os').mkdir('x')")
    assert code == 2 and "'gamma' must be in [0, 1]" in err and not (tmp_path / "x").exists()
    code, _, err = command("train", "--algo", "ppo", "--env", SMALL, "-P", "gamma:!!python/object/apply:os.mkdir [x]")
    assert code == 2 and "YAML" in err and not (tmp_path / "x").exists()


def test_a_number_in_scientific_notation_is_a_number():
    assert options.settings("--param", ["learning_rate:1e-3", "a:[1, 2]", "b:text"]) == {
        "learning_rate": 0.001, "a": [1, 2], "b": "text",
    }  # fmt: skip


def test_a_folder_that_is_gone_is_one_line(command, tmp_path, monkeypatch):
    monkeypatch.setattr(cli.os, "getcwd", lambda: os.stat(tmp_path / "gone"))
    code, _, err = command("envs")
    assert code == 2 and err.startswith("sb3-fair: ") and err.count("\n") == 1


def test_streams_that_a_process_began_without_do_not_become_files(tmp_path):
    told = tmp_path / "told"
    code = (
        "import os, sys; sys.argv = ['sb3-fair', '--help']\nfrom sb3_fair.zoo.cli.commands import main\n"
        f"try: main()\nfinally:\n  with open({str(told)!r}, 'w') as file:\n"
        "    print(file.fileno() > 2, os.get_inheritable(2), file=file)"
    )
    subprocess.run(["bash", "-c", f"{sys.executable} -c {shlex.quote(code)} 0<&- 1>&- 2>&-"], cwd=ROOT, check=True)
    assert told.read_text() == "True True\n"
    wrong = ["bash", "-c", f"{sys.executable} -m sb3_fair.zoo envz 2>&-"]
    assert not subprocess.run(wrong, cwd=ROOT, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize(
    ("begin", "heavy"),
    [
        ("from sb3_fair.zoo.cli.commands import main; main()", ("torch", "scipy")),
        ("import sb3_fair.report, sb3_fair.audit.page", ("torch", "scipy.stats")),
        ("import sb3_fair.zoo.runs.plan", ("scipy.signal", "scipy.stats")),
    ],
)
def test_help_reports_audits_and_plans_do_without_what_is_slow_to_import(begin, heavy):
    loaded = f"{{*{heavy}}} & {{*sys.modules}}"
    told = f"import atexit, sys; sys.argv[1:] = ['--help']\natexit.register(lambda: print({loaded}))\n"
    shown = subprocess.run([sys.executable, "-c", told + begin], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.strip().endswith("set()")


def test_the_benchmark_prints_targets_beside_figures_and_writes_json(command, monkeypatch):
    figures = [
        benchmark.Figure("fast", 20_000.0, "steps/s", 10_000),
        benchmark.Figure("heavy", 30.0, "MB", 20, lower_is_better=True),
        benchmark.Figure("free", 1.5, "x"),
    ]
    monkeypatch.setattr(benchmark, "measured", lambda scale: iter(figures))
    code, out, _ = command("benchmark", "speed", "--json", "speed.json")
    table = out.splitlines()[-3:]
    assert code == 0
    assert ">= 10,000  reached" in table[0] and "<= 20   missed" in table[1]
    content = json.loads(Path("speed.json").read_text())
    assert [figure["value"] for figure in content["figures"]] == [20_000.0, 30.0, 1.5]
    assert content["versions"]["numpy"] == np.__version__
    assert content["columns"][:2] == ["", "figure"] and content["rows"][1][:2] == ["heavy", "30"]


def test_a_missing_extra_is_named_before_anything_is_made(command, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    code, _, error = command("train", "--algo", "ppo", "--env", "sb3_fair/Doughnut-v0", "--tensorboard")
    assert code == 2 and 'pip install "sb3-fair[tensorboard]"' in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_names_of_attributes_may_have_blanks():
    assert objectives("R:SP@marital status") == ("R", "SP@marital status")
    with pytest.raises(InputError, match="objectives must be separated by colons, as in R:SP@gender"):
        objectives("R SP@gender")


def test_a_long_table_shows_policies_from_end_to_end():
    policies = [
        EvaluatedPolicy(
            f"PCN {i}", ("R", "SP"), np.array([[30.0 - i, -1 / (i + 1)]] * 2), np.ones(2), deterministic=i > 9
        )
        for i in range(20)
    ]
    names = list(policy_table(policies, most=5).columns[0].cells)
    assert len(names) == 5 and names[0] == "PCN 0" and names[-1] == "PCN 19"
    assert next(iter(policy_table(policies, most=5).columns[-1].cells)) == "sampled"
    assert policy_table(policies, most=5).caption == "5 of 20 policies; the report has all"
    assert len(policy_table(policies).rows) == 20 and policy_table(policies).caption is None


def test_rates_of_groups_are_those_of_the_report():
    counts = np.zeros((2, len(COUNTS)), dtype=np.int64)
    counts[:, :2] = 50
    policy = EvaluatedPolicy("grant all", ("R",), np.ones((2, 1)), np.ones(2), groups={"": {"north": counts}})
    ((_, *ends),) = (group["rates"]["favourable"] for group in group_rates(policy)[0]["groups"])
    low, high = (f"{100 * end:.1f}" for end in ends)
    assert list(group_table([policy]).columns[3].cells) == [f"100.0 % ({low} to {high})"] and low != high


def test_rows_of_groups_name_their_attribute_where_there_are_several():
    counts = np.ones((2, len(COUNTS)), dtype=np.int64)
    groups = {"gender": {"0": counts}, "foreign": {"0": counts}}
    policy = EvaluatedPolicy("grant all", ("R",), np.ones((2, 1)), np.ones(2), groups=groups)
    assert list(group_table([policy]).columns[1].cells) == ["gender: 0", "foreign: 0"]


def test_undefined_notions_are_left_blank_and_sums_have_no_chance_level():
    returns, undefined, level = np.ones((2, 2)), np.full(2, np.nan), np.full(2, -0.1)

    def policy(final, **chance):
        return EvaluatedPolicy("x", ("R", "SP"), returns, np.ones(2), final={"SP": final}, chance=chance)

    policies = [policy(level, SP=0.05), policy(undefined, SP=0.05), policy(undefined), policy(level)]
    (sizes,) = (column for column in policy_table(policies).columns if column.header == "|SP| (chance)")
    assert list(sizes.cells) == ["0.100 (0.050)", "", "", "0.100"]
    figures = figure_table([replace(policies[0], returns=-0.1 * returns)])
    assert [list(column.cells) for column in figures.columns][-1] == ["", "0.050", ""], "the return repeats the figure"
    assert list(figure_table(policies[:1]).columns[-1].cells) == ["", "", "0.050", ""]


def test_runs_with_several_seeds_are_told_together():
    def front(*means):
        return Front(tuple(EvaluatedPolicy("one", ("R", "SP"), np.array([mean]), np.ones(1)) for mean in means))

    def cells(runs):
        columns = seed_table(runs).columns
        return [str(column.header) for column in columns], [list(column.cells)[-1] for column in columns]

    assert cells({0: front([1.0, -1.0]), 1: front([3.0, -1.0])}) == (
        ["seed", "policies", "R", "SP"],
        ["mean", "", "2.000 ± 12.706", "-1.000 ± 0.000"],
    )
    headers, means = cells({0: front([1.0, -1.0], [0.0, 0.0]), 1: front([3.0, -1.0])})
    assert headers[2:] == ["best R", "best SP"]
    assert [mean.partition(" ")[0] for mean in means[2:]] == ["2.000", "-0.500"]


def test_episodes_in_which_a_notion_is_undefined_do_not_count_as_fair():
    def front(returns, ends):
        policy = EvaluatedPolicy("one", ("R", "SP"), np.array(returns, float), np.ones(len(returns)))
        return Front((replace(policy, final={"SP": np.array(ends)}),))

    half, none = front([[1, -0.5], [1, 0]], [-0.5, np.nan]), front([[1, 0]], [np.nan])
    cells = [list(column.cells) for column in seed_table({0: half, 1: none}).columns]
    assert cells[3] == ["-0.500", "", "-0.500"]


def test_several_seeds_end_with_a_table_and_the_reports(command):
    arguments = "train --algo ppo --seeds 2 --jobs 1 --n-timesteps 400 --n-envs 2 -P n_steps:50 -P n_eval_episodes:2"
    code, out, _ = command(*arguments.split(), "--env", SMALL)
    lines = out.split("\n")
    assert code == 0 and any(line.split()[:2] == ["seed", "policies"] for line in lines)
    assert all(line.endswith("report.html") for line in lines[-3:-1])
