"""Does every measure have words, and say which values are better?"""

import pytest

from sb3_fair.fairness import NOTIONS
from sb3_fair.fairness.descriptions import check_words, describe


@pytest.mark.parametrize("name", [*NOTIONS, "R", "d_s", "d_l", "w1", "gini", "jain", "dp"])
def test_what_the_package_measures_has_a_title_a_sentence_and_a_direction(name):
    about = describe(name)
    assert about.title != name and about.sentence and about.better


def test_no_two_measures_have_the_same_title():
    titles = [describe(name).title for name in (*NOTIONS, "dp", "dp_norm", "nash", "nash_norm", "gini", "jain")]
    assert len(set(titles)) == len(titles)


def test_variants_are_described_by_what_they_are_variants_of():
    assert describe("SP@gender").title == f"{describe('SP').title} (gender)"
    assert describe("mean_d_s").title == f"{describe('d_s').title}, mean over steps"
    assert describe("d_l_window").better == describe("d_l").better == "lower"
    assert describe("SP (return)").better == describe("d_s (return)").better == "higher"
    assert describe("luck (return)").better is None


def test_what_nobody_has_described_has_its_name_alone():
    about = describe("luck")
    assert (about.title, about.sentence, about.better) == ("luck", "", None)
    assert about.goodness(1.0) != about.goodness(1.0)


def test_an_environment_describes_its_own_measures():
    words = {
        "cash": {"title": "money", "better": "higher", "unit": "euros"},
        "R": "profit",
        "debt": {"better": "lower"},
    }
    assert describe("mean_cash", words).title == "money, mean over steps"
    assert describe("R", words).title == "profit" and describe("R", words).better == "higher"
    assert describe("debt", words).goodness(3) == -3 and describe("dp").goodness(-3) == -3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "words must be a dict of texts by name"),
        ({"R": 1}, "words must be a dict of texts by name"),
        ({"R": {"name": "profit"}}, "words must have title, sentence, unit and better, got R"),
        ({"R": {"title": 5}}, "words must have title, sentence, unit and better, got R"),
        ({"groups": "women"}, "groups must be a dict of names by label, got 'women'"),
        ({"people": {"title": "applicants"}}, "people must be a text, got"),
        ({"R": {"better": "up"}}, "better must be one of higher, lower, zero, got 'up'"),
    ],
)
def test_words_that_cannot_be_used_are_refused(words, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_words(words)
