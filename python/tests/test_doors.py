"""The two doors are equal: what the program prints with --json is what Python's facts are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Program

import latens

pytestmark = pytest.mark.filterwarnings("ignore::latens.FitWarning")

# where the program has written, and how long each took
APART = {"run", "report", "output", "seconds"}


def told(program: Program, *line: str) -> dict[str, Any]:
    """What the program prints."""
    found: dict[str, Any] = json.loads(program.run(*line, "--json").stdout)
    return found


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts without what differs from call to call; of a warning, its kind and its numbers."""
    kept = {name: value for name, value in facts.items() if name not in APART}
    if "warnings" in kept:
        kept["warnings"] = [{k: v for k, v in w.items() if k not in ("text", "fit")} for w in kept["warnings"]]
    return kept


@pytest.fixture
def fitted(program: Program) -> latens.Fit:
    for k in "12":
        program.run("simulate", "slide.toml", "--noise", "0.1%", "--seed", k, "-o", f"{k}.csv")
    # few passes of a recursion: there is something to warn of
    line = told(program, "fit", "slide.toml", "1.csv", "--test", "2.csv", "--solver", "joint", "--passes", "1", "-q")
    model = latens.Model.from_file("slide.toml")
    fit = model.fit("1.csv", test="2.csv", solver="joint", passes=1, progress=False)
    assert plain(fit.to_dict()) == plain(line)
    assert fit.warnings == [warning["text"] for warning in fit.to_dict()["warnings"]]
    return fit


def test_fit(program: Program, fitted: latens.Fit) -> None:
    with open("run/fit.json") as file:
        facts = json.load(file)
    apart = ("command", "seconds", "threads")
    assert {k: v for k, v in fitted.facts.items() if k not in apart} == {
        k: v for k, v in facts.items() if k not in apart
    }


def test_predict(program: Program, fitted: latens.Fit) -> None:
    line = told(program, "predict", "run", "2.csv", "--warmup", "1", "--adapt", "gain")
    prediction = fitted.predict("2.csv", warmup=1, adapt="gain")
    (record,) = line["records"]
    facts = plain(prediction.facts)
    assert facts.pop("warnings") == plain(line)["warnings"] != []
    assert facts == plain(record)
    assert line["solver"] == fitted.solver and line["seed"] == fitted.seed
    # each door names an option in its own way
    hints = [warning["text"] for warning in line["warnings"] if "--warmup" in warning["text"]]
    assert hints and [h.replace("--warmup", "warmup=") for h in hints] == [
        w for w in prediction.warnings if "warmup=" in w
    ]


@pytest.mark.parametrize("smooth", [True, False])
def test_estimate(program: Program, fitted: latens.Fit, smooth: bool) -> None:
    line = told(program, "estimate", "run", "2.csv", *(["--smooth"] if smooth else []))
    facts = plain(fitted.estimate("2.csv", smooth=smooth).facts)
    assert facts.pop("warnings") == plain(line)["warnings"]
    assert facts == plain(line["records"][0])


def test_simulate(program: Program, fitted: latens.Fit) -> None:
    for k, start in enumerate(({}, {"v": 0.1})):
        given = [f"--start={name}={value}" for name, value in start.items()]
        line = told(program, "simulate", "run", "--input", "2.csv", *given, "-o", f"planned-{k}.csv")
        simulated = fitted.simulate("2.csv", start=start)
        assert line.pop("columns") == simulated.to_pandas().columns.tolist()
        assert plain(simulated.facts) == plain(line)


def test_check(program: Program, fitted: latens.Fit) -> None:
    line = told(program, "check", "slide.toml", "1.csv", "2.csv")
    facts = dict(fitted.model.check(["1.csv", "2.csv"]))
    assert plain(facts) == plain(line)


def test_compare_and_profile(program: Program, fit: latens.Fit) -> None:
    for name in "ab":
        fit.save(name)
    found = latens.compare(latens.load("a"), latens.load("b"), names=["a", "b"])
    assert told(program, "compare", "a", "b") == {**found.facts, "seconds": pytest.approx(0, abs=1e9)}
    profile = latens.load("a").profile("gain")
    assert plain(told(program, "profile", "a", "gain", "-q")) == plain(profile.facts)
