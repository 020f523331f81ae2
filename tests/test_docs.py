"""Does every example in README and docs run, and do the docs build without a warning?"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "example"}
    for number, block in enumerate(blocks(page), start=1):
        exec(compile(block, f"{page.name}, example {number}", "exec"), names)


def test_the_docs_build_without_warnings(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    loaded = re.compile(r"<(?:script|img|link|iframe|source)[^>]*(?:src|href)=.(?:https?:)?//")
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not loaded.search(text), page
        assert "Alias for field number" not in text, page
        assert 'class="math notranslate' not in text, page
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet
    assert (tmp_path / "f-ppo.html").read_text(encoding="utf-8").count("<math ") >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


RESULTS = re.compile(r"^<!-- (results/\S+) -->\n\n?((?:\|.*\n)+)", re.MULTILINE)


def differences(page: Path) -> list[str]:
    """Lines of tables that are not in the file that the comment above the table names."""
    wrong = []
    for name, table in RESULTS.findall(page.read_text(encoding="utf-8")):
        found = json.loads((page.parent / name).read_text(encoding="utf-8"))
        cells = [
            [cell.strip(" *").replace("\\|", "|") for cell in line.strip("|\n").split(" | ")]
            for line in table.splitlines()
        ]
        columns = [found["columns"].index(column) for column in cells[0] if column in found["columns"]]
        lines = [[row[column] for column in columns] for row in (found["columns"], *found["rows"])]
        wrong += [" | ".join(line) for line in (cells[0], *cells[2:]) if line not in lines]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_are_what_the_commands_wrote(page):
    assert not differences(page)


def test_a_table_that_differs_from_its_file_is_found(tmp_path):
    (tmp_path / "results").mkdir()
    table = {"title": "", "columns": ["", "gain", "gap"], "rows": [["PPO", "1 [0, 2]", "3"], ["rule", "0", "1"]]}
    (tmp_path / "results" / "x.table.json").write_text(json.dumps(table))
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- results/x.table.json -->\n\n|  | gain | gap |\n| --- | --- | --- |\n| **PPO** | 1 [0, 2] | **3** |\n"
    )
    assert not differences(page)
    page.write_text(page.read_text().replace("3", "4"))
    assert differences(page) == ["PPO | 1 [0, 2] | 4"]
