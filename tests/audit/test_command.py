"""Does `sb3-fair audit` print, write and judge what it found?"""

import json
from functools import partial

import pytest

ROWS = "".join(f"{'yes' if i % 4 and i % 3 else 'no'},{'m' if i % 3 else 'f'},{i % 2}\n" for i in range(120))


@pytest.fixture
def command(command, tmp_path):
    """Audits a log."""
    (tmp_path / "log.csv").write_text(f"hired,gender,qualified\n{ROWS}")
    return partial(command, "audit", "log.csv", "--action", "hired", "--group", "gender", "--n-boot", 20)


def test_it_prints_sentences_and_a_table_and_writes_files(command, tmp_path):
    code, out, err = command("--feedback", "qualified", "--html", "a.html", "--json", "a.json", "--window", "50")
    assert (code, err) == (0, "")
    assert "got the favourable decision (hired: yes)" in out and "by chance" in out
    assert max(map(len, out.splitlines())) <= 79
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "a.json").read_text())["about"]["decisions"] == 120


def test_the_stricter_of_two_limits_is_shown(command):
    assert "its limit is -0.5" in " ".join(command("--limit", "SP=-0.5", "--fail-below", "SP=-0.8")[1].split())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--fail-below", "SP=-1"], 0, ""),
        (["--fail-below", "SP=-0.75"], 0, ""),  # which is its value
        (["--fail-below", "EO=-0.1", "--feedback", "qualified"], 3, "EO of gender is -1.0000"),
        (["--fail-below", "EO@gender=-0.1", "--feedback", "qualified"], 3, "its limit is -0.1"),
        (["--limit", "EO=-0.1", "--feedback", "qualified"], 0, ""),
        (["--limit", "SP@gender=-1", "--fail-below", "SP=-0.5"], 3, "SP of gender is -0.7500, its limit is -0.5"),
        (["--limit", "SP@gender=-0.5", "--fail-below", "SP=-0.8"], 0, ""),
        (["--fail-below", "SP"], 2, "fail-below must be a notion and a number, as in SP=-0.2, got 'SP'"),
        (["--fail-below", "SPP=0"], 2, "got 'SPP' (did you mean 'SP'?)"),
        (["--group", "sex"], 2, "log.csv has no column 'sex'"),
        (["--html", "no/a.html"], 2, "html must be in a folder that is there"),
        (["--html", "."], 2, "html must be a file, got the folder '.'"),
        (["--json", ".."], 2, "json must be a file, got the folder '..'"),
        (["--json", "log.csv"], 2, "json must be a file of its own, got 'log.csv' twice"),
        (["--html", "a.out", "--json", "./a.out"], 2, "json must be a file of its own, got 'a.out' twice"),
        (["--json", "/dev/null"], 2, "json must be a regular file, got '/dev/null'"),
        (["--limit", "SP=nan"], 2, "limit must be a notion and a number, as in SP=-0.2, got 'SP=nan'"),
        (["--fail-below", "SP=-inf"], 2, "fail-below must be a notion and a number, as in SP=-0.2, got 'SP=-inf'"),
        (["--notions", "SPP"], 2, "unknown notion 'SPP'"),
    ],
)
def test_the_exit_code_says_whether_limits_hold(command, arguments, code, said):
    found, _, err = command(*arguments)
    assert found == code, err
    assert said in err and len(err.splitlines()) == bool(said)


def test_where_nobody_got_it_the_favourable_decision_has_no_name(command, tmp_path):
    (tmp_path / "log.csv").write_text(f"hired,gender,qualified\n{ROWS}".replace("yes", "no"))
    out = " ".join(command()[1].split())
    assert "every group got the favourable decision (hired) equally often, in 0.0 % of cases" in out


def test_options_take_several_values_or_are_repeated(command):
    told = command("--features", "qualified", "gender", "--nominal", "gender")
    assert told == command("--features", "qualified", "--features", "gender", "--nominal", "gender")
    assert told[0] == 0 and "IF" in told[1]
    code, _, err = command("--feedback", "qualified", "gender")  # which takes one
    assert code == 2 and "gender" in err
