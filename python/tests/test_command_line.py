"""The same model, record, seed and threads: the same bits as the command line, and the same words."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import Program

import latens

# what a run is, but not what was learned
PROVENANCE = ("command", "seconds", "model_file", "threads", "version")


def facts(folder: str) -> dict[str, Any]:
    with open(f"{folder}/fit.json") as file:
        content: dict[str, Any] = json.load(file)
    return {k: v for k, v in content.items() if k not in PROVENANCE}


def same(program: Program, folder: str, fit: latens.Fit) -> None:
    fit.save(f"{folder}-python")
    for file in sorted((program.folder / folder).glob("**/*.[cst]*")):
        if file.name == "checksums.sha256":  # that of fit.json has the time in it
            continue
        written = program.folder / f"{folder}-python" / file.relative_to(program.folder / folder)
        assert written.read_bytes() == file.read_bytes(), written
    assert facts(f"{folder}-python") == facts(folder)
    first = sorted((program.folder / folder).glob("states*.csv"))[0]
    table = np.genfromtxt(first, delimiter=",", names=True, deletechars="")
    for name, state in fit.states.items():
        assert np.array_equal(state.mean, table[f"{name}.smoothed"])
        assert np.array_equal(state.std, table[f"{name}.std"])
        assert np.array_equal(state.free_run, table[f"{name}.free_run"], equal_nan=True)


def test_a_fit_with_validation_and_test(program: Program) -> None:
    for k in "123":
        program.run("simulate", "slide.toml", "--noise", "0.1%", "--seed", k, "-o", f"{k}.csv")
    given = ["--validate", "2.csv", "--test", "3.csv", "--seed", "3", "--passes", "4"]
    program.run("fit", "slide.toml", "1.csv", *given, "-o", "run", "--no-report", "-q")
    model = latens.Model.from_file("slide.toml")
    fit = model.fit("1.csv", validate="2.csv", test=["3.csv"], seed=3, passes=4, progress=False)
    assert [r.role for r in fit.records] == ["train", "validate", "test"]
    fit.save("own")
    assert facts("own") == facts("run")
    for name in ("weights.safetensors", "model.toml", "states_1.csv", "states_2.csv"):
        assert (program.folder / "own" / name).read_bytes() == (program.folder / "run" / name).read_bytes()


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ((), {}),
        (("--solver", "node", "--passes", "30"), {"solver": "node", "passes": 30}),
        (("--solver", "joint", "--passes", "2"), {"solver": "joint", "passes": 2}),
        (("--ensemble", "2", "--passes", "2"), {"ensemble": 2, "passes": 2}),
        (
            ("--validate-tail", "0.2", "--measurement-variance", "q=1e-6", "--passes", "3"),
            {"validate_tail": 0.2, "measurement_variance": {"q": 1e-6}, "passes": 3},
        ),
    ],
)
def test_solvers_and_settings(program: Program, line: tuple[str, ...], settings: dict[str, Any]) -> None:
    program.run("simulate", "slide.toml", "--noise", "0.1%", "-o", "record.csv")
    program.run("fit", "slide.toml", "record.csv", *line, "-o", "run", "--no-report", "-q")
    model = latens.Model.from_file("slide.toml")
    same(program, "run", model.fit("record.csv", progress=False, threads=2, **settings))


def test_arrays_are_as_good_as_a_file(program: Program) -> None:
    program.run("simulate", "slide.toml", "--noise", "0.1%", "-o", "record.csv")
    model = latens.Model.from_file("slide.toml")
    read = latens.Record.from_file("record.csv", model)
    typed = latens.Record(t=read.t, y=read.y, u=read.u, truth=read.truth)
    files = [model.fit(given, passes=3, progress=False) for given in ("record.csv", read, typed)]
    assert all(np.array_equal(f.states["v"].mean, files[0].states["v"].mean) for f in files)
    simulated = model.simulate(noise="0.1%")
    assert np.array_equal(simulated.y["q"], read.y["q"])


def test_using_a_run(program: Program) -> None:
    for k in "12":
        program.run("simulate", "slide.toml", "--noise", "0.1%", "--seed", k, "-o", f"{k}.csv")
    program.run("fit", "slide.toml", "1.csv", "-o", "run", "-q")
    fit = latens.load("run")
    line = program.run("predict", "run", "2.csv", "--warmup", "50", "--adapt", "gain", "--json")
    prediction = fit.predict("2.csv", warmup=50, adapt="gain")
    check(program, "prediction.csv", prediction)
    told = json.loads(line.stdout)["records"][0]
    assert told["nrmse"] == prediction.scores["nrmse"] and told["warmup"] == 50
    assert told["adapted"][0]["after"] == prediction.adapted["gain"][1].value
    program.run("estimate", "run", "2.csv", "--smooth")
    check(program, "estimate.csv", fit.estimate("2.csv"))
    program.run("estimate", "run", "2.csv", "-o", "filtered.csv")
    check(program, "filtered.csv", fit.estimate("2.csv", smooth=False))
    program.run("simulate", "run", "--input", "2.csv", "--start", "v=0.1", "-o", "planned.csv")
    check(program, "planned.csv", fit.simulate("2.csv", start={"v": 0.1}))
    read = latens.Record.from_file("2.csv", fit.model)
    check(program, "planned.csv", fit.simulate(read.u, read.t, start={"v": 0.1}))
    fit.report("page.html")
    assert (program.folder / "page.html").read_text() == (program.folder / "run/report.html").read_text()


def check(program: Program, file: str, found: latens.Prediction) -> None:
    table = np.genfromtxt(program.folder / file, delimiter=",", names=True, deletechars="")
    assert list(table.dtype.names or ()) == list(found.to_pandas().columns)
    for name, values in found._columns:
        assert np.array_equal(values, table[name], equal_nan=True), name


def test_a_stream(program: Program) -> None:
    program.run("simulate", "slide.toml", "--noise", "0.1%", "-o", "record.csv")
    program.run("fit", "slide.toml", "record.csv", "-o", "run", "--no-report", "-q")
    text = (program.folder / "record.csv").read_text()
    import subprocess

    line = subprocess.run(
        [program.path, "stream", "run", "--learn", "--snapshot", "later"],
        input=text, capture_output=True, text=True, cwd=program.folder, check=True,
    )
    rows = np.genfromtxt(line.stdout.splitlines(), delimiter=",", names=True, deletechars="")
    record = latens.Record.from_file("record.csv", latens.Model.from_file("slide.toml"))
    stream = latens.load("run").stream(learn=True)
    for k in range(len(record)):
        if k == 200:
            stream = pickle.loads(pickle.dumps(stream))
        found = stream.step({"q": record.y["q"][k]}, {"u": record.u["u"][k]}, record.t[k])
        assert found.mean["v"] == rows["v.filtered"][k] and found.std["v"] == rows["v.std"][k]
        assert found.consistency == rows["consistency"][k]
    stream.save("own")
    for name in ("weights.safetensors", "stream.safetensors"):
        assert (program.folder / "own" / name).read_bytes() == (program.folder / "later" / name).read_bytes()
    assert latens.load("own").stream().samples == len(record)


def test_checks_are_the_same(program: Program) -> None:
    program.run("simulate", "slide.toml", "--noise", "0.1%", "-o", "record.csv")
    found = latens.Model.from_file("slide.toml").check("record.csv")
    assert repr(found) == program.run("check", "slide.toml", "record.csv").stdout
    told = json.loads(program.run("check", "slide.toml", "record.csv", "--json").stdout)
    assert dict(found) == told and found.warnings == [w["text"] for w in told["warnings"]]


def test_summary_is_the_same(program: Program) -> None:
    program.run("simulate", "slide.toml", "--noise", "0.1%", "-o", "record.csv")
    line = program.run("fit", "slide.toml", "record.csv", "--passes", "2", "-o", "run", "--no-report", "-q")
    assert line.stdout.startswith(latens.load("run").summary())


BROKEN = {
    "model": ("slide.toml", "fricton(v)", ["fit", "slide.toml", "record.csv"]),
    "text": ("record.csv", "t,u,q\n0,1,0\n0.1,high,1\n", ["fit", "slide.toml", "record.csv"]),
    "names": ("record.csv", "t,u,position\n0,1,0\n0.1,1,1\n", ["fit", "slide.toml", "record.csv"]),
    "order": ("record.csv", "t,u,q\n0,1,0\n-0.1,1,1\n", ["fit", "slide.toml", "record.csv"]),
    "short": ("record.csv", "t,u,q\n0,1,0\n0.1,1,1\n", ["fit", "slide.toml", "record.csv"]),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_errors_have_the_same_words_and_places(program: Program, kind: str) -> None:
    file, text, line = BROKEN[kind]
    if kind == "model":
        text = (program.folder / file).read_text().replace("friction(v)", text)
        program.run("simulate", "harmonic-oscillator", "-o", "record.csv")
    (program.folder / file).write_text(text)
    said = program.run(*line, "-q", code=1).stderr
    with pytest.raises(latens.Error) as caught:
        latens.Model.from_file("slide.toml").fit("record.csv", progress=False)
    error = caught.value
    if kind == "model":
        assert isinstance(error, latens.ModelError) and isinstance(error, ValueError)
        assert said == f"{error}\n"
        assert (error.file, error.line, error.column) == ("slide.toml", 16, 24)
        assert len(error.mistakes) == 2 and error.mistakes[0][3] == "did you mean `friction`?"
    else:
        # but for an option, which each door names in its own way
        words = said.splitlines()[-1].replace("--map q=<column>", 'map={"q": "<column>"}')
        assert words == f"error: {error}"
        assert isinstance(error, latens.SettingError if kind == "short" else latens.RecordError)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and vars(again) == vars(error)


def test_a_folder_that_is_no_run(program: Program) -> None:
    said = program.run("predict", "nowhere", "record.csv", code=1).stderr
    with pytest.raises(latens.FileError) as caught:
        latens.load("nowhere")
    assert said == f"error: {caught.value}\n" and isinstance(caught.value, OSError)


def test_one_version(program: Program) -> None:
    assert program.run("--version").stdout == f"latens {latens.__version__}\n"
