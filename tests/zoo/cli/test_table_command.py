"""Does a table of people become a trade-off page by one command, and what is wrong with it one line?"""

import shlex
import sys
from pathlib import Path

import pytest
import yaml

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.envs.table.people import People

ASKED = "--table people.csv --group gender --outcome repaid --features age income --loss -3"
SHORT = "--objectives R:SP --n-timesteps 1000 -P n_eval_episodes:2 --episode-length 50 --no-progress"


@pytest.fixture
def command(command):
    """In a folder with a table of 200 people."""
    rows = [f"{'mf'[i % 2]},{20 + i * 7 % 40},{i * 13 % 17},{int(i * 13 % 17 + i % 2 > 6)}" for i in range(200)]
    Path("people.csv").write_text("\n".join(["gender,age,income,repaid", *rows]))
    return lambda line: command(*shlex.split(line))


@pytest.mark.parametrize("algo", ["pcn", "ppo"])
def test_a_table_becomes_a_page_by_one_command(command, monkeypatch, tmp_path, algo):
    parts, part = [], People.part
    monkeypatch.setattr(People, "part", lambda people, split, *rest: parts.append(split) or part(people, split, *rest))
    code, out, err = command(f"train --algo {algo} {ASKED} --moves income:1.5 {SHORT}")
    assert code == 0, err
    assert "train" in parts and parts[-1] == "test"
    parts.clear()
    assert all(rule in out for rule in ("accept all", "reject all", "oracle"))
    run = RunFolder.open(Path(out.strip().splitlines()[-1]).parent)
    settings = run.config["env_kwargs"]
    assert settings["moves"] == {"income": 1.5} and settings["group"] == "gender"
    assert "split" not in settings  # so that evaluations take people whom nobody learned from
    folder = run.path.resolve()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert command(f"evaluate --run {folder} --n-eval-episodes 2")[0] == 0
    assert command(f"enjoy --run {folder} --film film.gif --every 25")[0] == 0
    assert {*parts} == {"test"}
    assert command(f"report --run {folder}")[0] == 0
    table = tmp_path / "people.csv"
    table.write_text(table.read_text() + "\nm,30,3,1")
    code, _, err = command(f"evaluate --run {folder} --n-eval-episodes 2")
    assert code == 2 and err.count("\n") == 1
    assert f"table must be as it was when the run was made, but '{table}' has changed since" in err
    assert command(f"report --run {folder}")[0] == 0  # which needs no table
    table.unlink()
    code, _, err = command(f"evaluate --run {folder} --n-eval-episodes 2")
    assert code == 2 and err.endswith(f"table must be a file, but there is none at '{table}'\n")


@pytest.mark.parametrize("algo", ["pcn", "ppo --objectives R:SP --weights 1:5"])
def test_several_groups_are_compared_one_by_one(command, algo):
    code, out, err = command(f"train --algo {algo} {ASKED} --group income --audit SP {SHORT.partition('SP ')[2]}")
    assert code == 0, err
    folder = Path(out.strip().splitlines()[-1]).parent
    assert RunFolder.open(folder).config["env_kwargs"]["objectives"] == ["R", "SP@gender", "SP@income"]
    for line in (f"evaluate --run {folder} --n-eval-episodes 2", f"report --run {folder}"):
        code, _, err = command(line)
        assert code == 0, err


def test_a_score_is_of_an_attribute_of_any_name(command):
    people = Path("people.csv")
    people.write_text(people.read_text().replace("gender", "of birth/gender", 1))
    asked = "--group income --outcome repaid --features age --scores 'R:SP@of birth/gender' --n-trials 1 --only gamma"
    settings = "--n-timesteps 64 --n-envs 2 -P n_steps:32 -P n_eval_episodes:1"
    code, _, err = command(f"tune --algo ppo --table people.csv --group 'of birth/gender' {asked} {settings}")
    assert code == 0, err
    assert [*Path("logs").rglob("history-SP@of birth-gender.html")]


def test_a_changed_table_is_noticed_before_a_training_goes_on(command, monkeypatch):
    from sb3_fair.zoo.runs import train

    monkeypatch.setattr(train, "_finish", lambda *given: sys.exit(0))  # interrupted at once
    assert command(f"train --algo ppo {ASKED} {SHORT}")[0] == 0
    monkeypatch.setattr(train, "latest", lambda *given: pytest.fail("went on"))
    Path("people.csv").write_text(Path("people.csv").read_text() + "\nm,30,3,1")
    code, _, err = command("train --resume logs/ppo/sb3_fair-Table-v0_1")
    assert code == 2 and "has changed since" in err


def test_settings_are_tuned_on_people_for_training(command, monkeypatch):
    from sb3_fair.zoo.tuning import scores

    seen, evaluation_env = [], scores.evaluation_env
    monkeypatch.setattr(scores, "evaluation_env", lambda *given: seen.append(evaluation_env(*given)) or seen[-1])
    monkeypatch.setenv("HOME", str(Path.cwd()))
    asked = f"{ASKED.replace('people.csv', '~/people.csv')} --storage=~/trials.log"
    code, _, err = command(f"tune --algo ppo {asked} --objectives R:SP --n-trials 1 --n-timesteps 500")
    assert code == 0, err
    assert Path("trials.log").is_file()
    assert seen and {venv.get_attr("config")[0].split for venv in seen} == {"train"}
    best = yaml.safe_load(Path("logs/tune/ppo_sb3_fair-Table-v0/best.yml").read_text())
    assert "split" not in best["sb3_fair/Table-v0"]["env_kwargs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--algo ppo --table nowhere.csv --group gender", "--table must be a file, got 'nowhere.csv'"),
        ("--algo ppo --table people.csv --group gender", "outcome must be given for a table of people"),
        ("--algo ppo --group gender", "--group must be left out without --table"),
        ("--algo ppo --env sb3_fair/Lending-v0 {asked}", "--env must be left out with --table"),
        ("--algo ppo", "--env or --table must be given"),
        ("--algo ppo --env sb3_fair/Table-v0", "table must be given for a table of people"),
        ("--algo ppo {asked} --group gendre", "people.csv has no column 'gendre' (did you mean 'gender'?)"),
        ("--algo ppo {asked} --good maybe", "good must be one or more of the values of 'repaid'"),
        ("--algo ppo {asked} --feedback none", "feedback must be one of 'all', 'accepted', got 'none'"),
        ("--algo ppo {asked} --moves income", "--moves must be key:value, as in income:1.5, got 'income'"),
        ("--algo ppo {asked} --moves height:2", "moves must be of features that are numbers, got 'height'"),
        ("--algo ppo {asked} --loss much", "--loss"),
        ("--resume nowhere {asked}", "takes everything from the run: leave out --features, --group, --loss, --outcome"),
    ],
)
def test_wrong_input_is_one_line(command, arguments, message):
    code, out, err = command(f"train {arguments.format(asked=ASKED)}")
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "people.csv must hold a table, but it is empty"),
        ("gender,age,income,repaid\n", "table must have at least one row, got none"),
        ("gender,age,income,repaid\nm,1,2,1\nm,2,3,0\n", "group must have at least two different values to compare"),
        ("gender,age,income,repaid\nm,1,2,1\nf,2,3\n", "people.csv cannot be read: CSV parse error"),
        (
            "gender,age,income,repaid\nm,1,2,1\nf,two,3,0\n",
            "'age' must hold finite numbers, got 'two' in row 2; if",
        ),
        ("gender,age,income,repaid\nm,1,2,1\nf,,3,0\n", "'age' is missing in row 2: fill it in, or choose missing"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(command, text, message):
    Path("people.csv").write_text(text)
    code, _, err = command(f"train --algo ppo {ASKED}")
    assert code == 2 and err.count("\n") == 1 and message in err
