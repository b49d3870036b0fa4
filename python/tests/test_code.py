"""What was learned as code for other tools: `fit.export`."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import numpy as np
import pytest

import latens


def module(path: pathlib.Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_module_simulates_as_the_fit(fit: latens.Fit, tmp_path: pathlib.Path) -> None:
    (path,) = fit.export(tmp_path / "slide.py")
    code = module(path)
    assert code.STATES == ["q", "v"] and code.STATE_UNITS == ["m", "m/s"] and code.INPUT_UNITS == ["V"]
    assert code.CONSTANTS["gain"] == pytest.approx(fit.unknowns["gain"].value, rel=1e-15)
    t = code.DT * np.arange(200)
    u = np.sin(3 * t)
    states = [code.START]
    for k in range(199):
        states.append(code.step(states[k], [u[k]], t[k]))
    simulated = fit.simulate({"u": u}, t).states
    expected = np.stack([simulated["q"].mean, simulated["v"].mean], axis=1)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-13)


def test_the_ending_or_to_says_the_target(fit: latens.Fit, tmp_path: pathlib.Path) -> None:
    names = [file.name for file in fit.export(tmp_path / "a.onnx")]
    assert names == ["a.onnx", "a.friction.onnx"]
    fit.export(tmp_path / "three.fmu", to="fmu3")
    fit.export(tmp_path / "a.mjs", to="js")
    with pytest.raises(latens.SettingError, match="says no target"):
        fit.export(tmp_path / "a.txt")
    with pytest.raises(latens.SettingError, match="there is no target `cobol`"):
        fit.export(tmp_path / "a.c", to="cobol")


def test_files_that_exist_stay(fit: latens.Fit, tmp_path: pathlib.Path) -> None:
    (path,) = fit.export(tmp_path / "a.toml")
    with pytest.raises(latens.SettingError, match="force"):
        fit.export(path)
    fit.export(path, force=True)
    assert latens.Model.from_file(path).unknowns == []
