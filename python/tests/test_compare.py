"""Comparisons, profiles and tests of residuals, as the command line has them."""

import json

import numpy as np
import pytest

import latens

TEXT = """
name = "Spring"
[time]
step = 0.05
unit = "s"
method = "rk4"
[inputs]
u = "N"
[states.z]
derivative = "v"
start = 0
unit = "m"
[states.v]
derivative = "u - k*z - d*v"
start = 0
unit = "m/s"
[unknowns]
k = { guess = 2, positive = true, unit = "1/s²" }
d = { guess = 0.1, unit = "1/s" }
[measurements]
z = "z"
[truth]
k = 3
d = 0.3
[simulation]
steps = 400
inputs = { u = "sin(1.3*t) + sin(0.4*t)" }
"""


@pytest.fixture(scope="module")
def record():
    return latens.Model.from_string(TEXT).simulate(noise="2%", seed=4)


@pytest.fixture(scope="module")
def fit(record):
    return latens.Model.from_string(TEXT).fit(record, progress=False)


def test_a_model_that_lacks_a_term_comes_second(fit, record):
    text = TEXT.replace(" - d*v", "").replace('d = { guess = 0.1, unit = "1/s" }\n', "").replace("d = 0.3\n", "")
    other = latens.Model.from_string(text).fit(record, progress=False)
    found = latens.compare(other, fit, names=["undamped", "damped"], folds=2)
    assert found.best == "damped" and found.strength == "decisive"
    assert found.verdict.startswith("damped is better than undamped, beyond doubt")
    frame = found.to_frame()
    assert frame.loc["damped", "held_out"] < frame.loc["undamped", "held_out"]
    assert frame.loc["undamped", "below_best"] == pytest.approx(found.facts["verdict"]["log_evidence"])
    assert "damped" in repr(found)
    same = latens.compare(fit, fit)
    assert same.strength == "none" and "fit 1 and fit 2 cannot be told apart" in same.verdict


def test_what_is_not_comparable_is_refused(fit):
    model = latens.Model.from_string(TEXT)
    other = model.fit(model.simulate(noise="2%", seed=5), progress=False)
    with pytest.raises(latens.SettingError, match="other readings"):
        latens.compare(fit, other)
    with pytest.raises(latens.SettingError, match="two fits or more"):
        latens.compare(fit)
    with pytest.raises(latens.SettingError, match="folds= must be between 2 and"):
        latens.compare(fit, fit, folds=300)


def test_a_profile_is_near_the_linear_interval(fit, tmp_path):
    profile = fit.profile("k")
    curve = profile["k"]
    low, high = curve.linear
    assert curve.unit == "1/s²" and curve.open == (None, None)
    assert abs(curve.interval[0] - low) < 0.1 * (high - low)
    values, rises = np.array(curve.points).T
    assert np.all(np.diff(values) > 0) and rises.min() == 0 and rises[0] > 1.9
    profile.save(tmp_path / "profile.svg")
    assert (tmp_path / "profile.svg").read_text(encoding="utf-8").startswith("<svg")
    assert set(json.loads(json.dumps(profile.facts))) == {"run", "constants", "lower"}
    with pytest.raises(latens.SettingError, match="no unknown constant"):
        fit.profile("mass")


def test_residuals_of_a_right_model_are_noise(fit):
    tests = fit.residuals
    assert [(t.test, t.signal) for t in tests] == [
        ("whiteness", None),
        ("normality", None),
        ("input", "u"),
        ("state", "z"),
        ("state", "v"),
    ]
    assert not tests.rejected and all(t.p <= t.p_adjusted for t in tests)
    assert tests.to_frame().shape == (5, 9)
    assert fit.to_dict()["residuals"][0]["p"] == tests[0].p


def test_leaving_readings_out_costs_as_many_parameters_as_there_are(fit):
    # for a normal posterior the effective number of parameters of loo is that of the constants
    arviz = pytest.importorskip("arviz")
    loo = arviz.loo(fit.to_arviz())
    assert abs(loo.p_loo - 2) < 0.8 and not loo.warning
