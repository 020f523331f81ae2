"""Is the page of an audit whole, safe, and the JSON complete?"""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from sb3_fair.audit import audit

EVIL = "<script>alert(1)</script>"
QUOTE = '"&amp;\'><i onclick="alert(1)" title=">'


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    n = 600
    table = {
        f"hired {EVIL}": rng.choice([f"yes {EVIL}", "no"], n),
        "gender": rng.choice([EVIL, "m\x1b[31m", QUOTE], n),
        "land": rng.choice(["BE", "FR"], n),
        "right": rng.choice([f"yes {EVIL}", "no", ""], n),
        "age": rng.random(n),
        "gain": rng.random(n),
    }
    options = {"features": "age", "window": 100, "limits": {"SP": -0.1}, "reward": "gain", "stakeholder": "land"}
    action = f"hired {EVIL}"
    return audit(
        table, action=action, group=["gender", "land"], feedback="right", favourable=f"yes {EVIL}", n_boot=50, **options
    )


class Reader(HTMLParser):
    """Elements and texts of a page; every element that is opened is closed."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.texts, self.attributes = [], [], [], []

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes
        if name != "meta":
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        self.texts.append(text)


def test_how_it_was_made_is_told_without_brackets_and_empty_lists(found):
    reader = Reader()
    reader.feed(found.to_html())
    assert "gender, land" in reader.texts and not {"()", "[]"} & set(reader.texts)


def test_texts_of_the_data_never_become_markup(found):
    reader = Reader()
    reader.feed(found.to_html())
    assert not reader.open
    assert not {"script", "iframe", "img", "link", "object"} & set(reader.tags)
    assert EVIL in reader.texts
    assert not any(name.startswith("on") or name in ("href", "src", "style") for name, _ in reader.attributes)


def test_no_text_of_the_data_gets_into_an_attribute(found):
    reader = Reader()
    reader.feed(found.to_html())
    assert QUOTE in reader.texts and any(QUOTE in sentence for sentence in found.sentences)
    assert not any("alert" in value or "&" in value for _, value in reader.attributes)
    assert "title" not in dict(reader.attributes) and "i" not in reader.tags


def test_the_page_may_not_load_or_run_anything(found):
    text = found.to_html()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", text)


def test_the_page_says_what_the_audit_found(found):
    reader = Reader()
    reader.feed(found.to_html())
    text = "".join(reader.texts)
    for sentence in (*found.sentences, *found.warnings):
        assert sentence in text
    for part in ("gender over time", "land over time", "Individuals", "Welfare of the stakeholders", "gender and land"):
        assert part in text, part
    assert reader.tags.count("svg") > 20


def test_tables_for_a_terminal_are_narrow_and_plain(found):
    lines = found.table().splitlines()
    assert max(map(len, lines)) <= 79
    assert all(line.isprintable() for line in lines)


def test_at_a_prompt_it_is_one_line(found):
    assert repr(found).startswith("<Audit of 600 decisions: SP@gender=-") and len(repr(found)) < 600


def test_all_attributes_are_told_under_another_policy():
    table = {"hired": [1, 0] * 150, "land": [f"land {n % 65}" for n in range(300)], "sex": list("fm") * 150}
    found = audit(table | {"p": [0.5] * 300}, action="hired", group=["land", "sex"], target="p", n_boot=5)
    reader = Reader()
    reader.feed(found.to_html())
    rows = " ".join(text.strip() for text in reader.texts).split("Another policy")[1]
    assert "land 59" in rows and "land: 5 more are in the JSON file" in rows and " sex  f " in rows
    text = found.table()
    assert "another policy, sex" in text and "... and 41 more rows" in text


def test_json_is_the_dict_and_has_everything(found, tmp_path):
    found.to_json(tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text())
    assert read == json.loads(json.dumps(found.to_dict()))
    assert read.keys() == {
        *(
            "format",
            "about",
            "groups",
            "notions",
            "gaps",
            "series",
            "moments",
            "welfare",
            "broken",
            "sentences",
            "warnings",
            "other_rates",
            "off_policy",
        )
    }
    assert read["groups"][0]["favourable"].keys() == {"hits", "people", "rate", "low", "high"}


@pytest.mark.slow
def test_a_browser_shows_the_page_without_complaints(found, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    found.to_html(tmp_path / "a.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    ran = subprocess.run(
        [browser, *options, f"--user-data-dir={tmp_path}/profile", (tmp_path / "a.html").as_uri()],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "What this page cannot tell" in ran.stdout
    assert "CONSOLE" not in ran.stderr
