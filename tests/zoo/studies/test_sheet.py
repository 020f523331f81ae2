"""Does a table say the same in the terminal and on a page?"""

import json
import math

import pytest

from sb3_fair.zoo.studies.sheet import Sheet, interval_text, number_text


def test_a_sheet_is_printed_and_written_down(tmp_path, capsys):
    sheet = Sheet("Gaps", ["", "|SP|"], [["ppo", "0.1"]], [["random", "0.2"]], ["Smaller is fairer.", "Twice."])
    sheet.publish(tmp_path / "gaps.md")
    assert (tmp_path / "gaps.md").read_text() == (
        "**Gaps**\n\n|  | \\|SP\\| |\n| --- | --- |\n| ppo | 0.1 |\n| random | 0.2 |\n\nSmaller is fairer.\n\nTwice.\n"
    )
    assert json.loads((tmp_path / "gaps.table.json").read_text())["rows"] == [["ppo", "0.1"], ["random", "0.2"]]
    shown = " ".join(capsys.readouterr().out.split())
    assert shown == "Gaps |SP| ppo 0.1 random 0.2 Smaller is fairer. Twice."


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.12345, None, "0.123"),
        (12345.6, None, "12346"),
        (12345.6, 2, "12345.60"),
        (math.nan, 2, "–"),
        (999.6, None, "1000"),
        (-0.001, 2, "0.00"),
        (-0.0, None, "0"),
    ],
)
def test_numbers_have_three_digits_or_as_many_as_asked_for(value, digits, text):
    assert number_text(value, digits) == text


def test_an_interval_without_ends_is_its_mean():
    assert interval_text([0.5, 0.25, 0.75], 1) == "0.5 [0.2, 0.8]"
    assert interval_text([0.5, 0.48, 0.52], 1) == "0.5"
    assert interval_text([0.5, math.nan, math.nan]) == interval_text([0.5, 0.5, 0.5]) == "0.5"
