"""What the two READMEs show runs."""

from __future__ import annotations

import re
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
        program.run("simulate", "slide.toml", "--noise", "0.01%", "--seed", seed, "-o", name)
    found = blocks(ROOT / "README.md", "python")
    assert found
    for block in found:
        exec(block, {})
