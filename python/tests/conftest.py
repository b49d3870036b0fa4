"""A small system with all that a model can have, its records, one fit of it, and the program."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

import latens

ROOT = Path(__file__).parents[2]


def pytest_configure(config: pytest.Config) -> None:
    """What a library does once a day for a user is done before the workers begin: ArviZ writes the day of its last
    warning into the user's cache as it is imported, and of two that do so at once one fails."""
    if not hasattr(config, "workerinput"):
        with contextlib.suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import arviz  # noqa: F401

SLIDE = """\
name = "Slide"

[time]
unit = "s"
step = 0.005

[inputs]
u = { unit = "V" }

[states.q]
derivative = "v"
start = 0
unit = "m"

[states.v]
derivative = "gain*u - friction(v)"
start = 0
unit = "m/s"

[networks.friction]
layers = ["4 tanh"]

[unknowns]
gain = { guess = 0.3, scale = 0.1, positive = true, unit = "m/s²/V" }

[measurements]
q = "q"

[truth]
gain = 0.37
v = "gain*u - 2*v - 0.2*tanh(v/0.05)"

[simulation]
steps = 400
inputs = { u = "2*sin(3*t) + sin(7*t)" }
"""


class Program:
    """The command line, to compare with."""

    def __init__(self, path: str, folder: Path) -> None:
        self.path, self.folder = path, folder

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([self.path, *arguments], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture(scope="session")
def program_path() -> str:
    """`$LATENS`, or what `cargo build --release` has left, or what is on the path."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for path in (os.environ.get("LATENS"), target / "release" / "latens", shutil.which("latens")):
        if path and Path(path).is_file():
            return str(path)
    pytest.fail("the program is needed to compare with: cargo build --release, or set LATENS")


@pytest.fixture
def program(program_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slide.toml").write_text(SLIDE)
    return Program(program_path, tmp_path)


@pytest.fixture(scope="session")
def slide() -> latens.Model:
    return latens.Model.from_string(SLIDE, name="slide.toml")


@pytest.fixture(scope="session")
def record(slide: latens.Model) -> latens.Record:
    return slide.simulate(noise="0.1%")


@pytest.fixture(scope="session")
def other(slide: latens.Model) -> latens.Record:
    return slide.simulate(noise="0.1%", start={"v": 0.1}, seed=2)


@pytest.fixture(scope="session")
def fit(slide: latens.Model, record: latens.Record, other: latens.Record) -> latens.Fit:
    return slide.fit(record, test=other, progress=False)
