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
    """The same words, and numbers as far as they are determined; `…` stands for any lines."""
    said, printed = said.split(), printed.split()
    before = ""
    while said:
        if said[0] == "…":
            said = said[1:]
            if not said:
                return True
            while printed and not same(said[0], printed[0]):
                printed = printed[1:]
        elif not printed or not same(said[0], printed[0], before, after=said[1:2]):
            return False
        else:
            # bands: "± 0.002" and "spread to 8e-4"
            before = "spread to" if before == "spread" and said[0] == "to" else said[0]
            said, printed = said[1:], printed[1:]
    return not printed


def same(a, b, before="", after=()):
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b))
    return all(close(x, y, percent="%" in (a[-1], *after), band=before in ("±", "spread to")) for x, y in pairs)


def close(said, printed, percent, band):
    """Whether two numbers are one and the same result, rounded on two machines.

    AVX2 and AVX-512 give the same bits; a processor without fused multiply-add, an ARM, or another
    library of exponentials rounds differently, and Newton's method stops where a further step would
    change the objective by less than a small part of one unit, that is an estimate by less than a
    small part of its standard deviation.

    - A number that the data determine is printed to about its standard deviation: three units of
      the last digit are what rounding and the end of the iteration can make of it. Scores are
      ratios to a noise that is estimated, itself to about 1/sqrt(samples), 2 or 3 %.
    - A count is one thing or another: up to 3 %, so that small ones are equal.
    - A band in a direction that only the prior determines hangs on which eigenvalues are above
      rounding, of which the least count half or not at all: within a factor of two.
    """
    x, y = float(said), float(printed)
    if band:
        return 0.5 * abs(x) <= abs(y) <= 2 * abs(x)
    mantissa, _, exponent = said.partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not (decimals or exponent or percent):
        return abs(x - y) <= 0.03 * abs(x)
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(x - y) <= max(3.001 * unit, 0.03 * abs(x))


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


def test_words_count_and_numbers_as_far_as_they_are_determined():
    assert alike("gain 0.37 ± 0.002\n", "gain  0.368  ± 0.0021\n")
    assert alike("gain 0.3702 ± 0.0002\n", "gain 0.3704 ± 0.0003\n")
    assert not alike("gain 0.37 ± 0.002\n", "gain 0.37 ± 0.005\n")
    assert alike("the bands spread to 4.3e-1, 100 % of 5 runs\n", "the bands spread to 3.8e-1, 98 % of 5 runs\n")
    assert not alike("5 runs\n", "6 runs\n")
    assert not alike("off by 2.8e-4\n", "off by 3.3e-4\n")
    assert not alike("gain 0.37\n", "gain 0.5\n")
    assert not alike("gain 0.37\n", "offset 0.37\n")
    assert alike("a\n…\nz 2.0\n", "a\nb\nc\nz 2.1\n")
    assert not alike("a\n", "a\nb\n")
