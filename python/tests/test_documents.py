"""What the two READMEs show runs; links lead somewhere; the rooms are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Program


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore::latens.FitWarning")
def test_the_packages_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "python" / "README.md", "python"):
        exec(block, {})
    assert (tmp_path / "report.html").is_file() and (tmp_path / "run" / "fit.json").is_file()


@pytest.mark.filterwarnings("ignore::latens.FitWarning")
def test_the_projects_readme(program: Program) -> None:
    model = next(b for b in blocks(ROOT / "README.md", "toml") if b.startswith("# slide.toml"))
    (program.folder / "slide.toml").write_text(model)
    for name, seed in (("record.csv", "1"), ("new.csv", "2")):
        program.run("simulate", "slide.toml", "--noise", "0.1%", "--seed", seed, "-o", name)
    found = blocks(ROOT / "README.md", "python")
    assert found
    for block in found:
        exec(block, {})


def test_links_lead_somewhere() -> None:
    made = subprocess.run([sys.executable, ROOT / "scripts" / "links"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout


def test_every_figure_of_the_evidence_has_its_experiment() -> None:
    made = subprocess.run([sys.executable, ROOT / "scripts" / "evidence", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_every_page_is_in_the_site_and_in_the_list() -> None:
    site, listed = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "README.md").read_text()
    for room in ("guide", "reference", "explain", "evidence"):
        pages = sorted((ROOT / "docs" / room).glob("*.md"))
        assert pages, room
        for page in pages:
            assert f"{room}/{page.name}" in site, f"{page} is not in mkdocs.yml"
            assert f"({room}/{page.name})" in listed, f"{page} is not in docs/README.md"


def test_figures_in_the_evidence_are_measured() -> None:
    """A table of numbers stands in a block that scripts/evidence writes, signed with version, commit and date."""
    for page in sorted((ROOT / "docs" / "evidence").glob("*.md")):
        text = page.read_text()
        measured = re.findall(r"<!-- measured [\w-]+ -->\n(.*?)<!-- /measured -->", text, re.DOTALL)
        for block in measured:
            assert re.search(r"^\*latens \d+\.\d+\.\d+, commit [\w-]+, \d{4}-\d\d-\d\d; ", block, re.MULTILINE), page
            # the program, or a script of ours where the package is measured
            assert block.startswith(("```sh\nlatens ", "```sh\npython python/benches/")), page
        rest = re.sub(r"<!-- measured .*?<!-- /measured -->", "", text, flags=re.DOTALL)
        numbers = re.findall(r"^\|.*\d(?:\.\d+)?e-?\d.*$", rest, re.MULTILINE)
        assert not numbers, f"{page}: {numbers[0]}"
