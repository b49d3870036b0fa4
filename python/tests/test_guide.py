"""The guide runs from top to bottom, and says what it prints."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib").use("Agg")

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def blocks():
    """(language, line of its first line, text) of every fenced block."""
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    opened = None
    for number, line in enumerate(lines, 1):
        if opened is None and line.startswith("```"):
            opened = (line[3:], number + 1)
        elif opened is not None and line == "```":
            yield *opened, "\n".join(lines[opened[1] - 1 : number - 1]) + "\n"
            opened = None


def alike(said, printed):
    """The same words, and numbers within a tenth; `…` stands for any lines."""
    said, printed = said.split(), printed.split()
    while said:
        if said[0] == "…":
            said = said[1:]
            if not said:
                return True
            while printed and not same(said[0], printed[0]):
                printed = printed[1:]
        elif not printed or not same(said[0], printed[0]):
            return False
        else:
            said, printed = said[1:], printed[1:]
    return not printed


def same(a, b):
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    return all(abs(float(x) - float(y)) <= 0.1 * abs(float(x)) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)))


def test_every_block_runs_and_prints_what_the_guide_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_worker_niceness", "0")  # by default whatever else runs here comes first
    namespace = {"__name__": "__main__"}
    printed, where = "", 0
    ran = 0
    for language, line, text in blocks():
        if language == "python":
            output = io.StringIO()
            # the padding makes a traceback point into the guide
            code = compile("\n" * (line - 1) + text, os.fspath(GUIDE), "exec")
            with contextlib.redirect_stdout(output):
                exec(code, namespace)
            printed, where = output.getvalue(), line
            ran += 1
        elif language == "text":
            assert alike(text, printed), f"{GUIDE}:{line}: the block of line {where} prints\n{printed}"
    assert ran > 10


def test_words_count_and_numbers_roughly():
    assert alike("gain 0.37 ± 0.002\n", "gain  0.368  ± 0.0021\n")
    assert not alike("gain 0.37\n", "gain 0.5\n")
    assert not alike("gain 0.37\n", "offset 0.37\n")
    assert alike("a\n…\nz 2\n", "a\nb\nc\nz 2.1\n")
    assert not alike("a\n", "a\nb\n")
