"""Constants: what is known of them before a fit, and their deviations through arithmetic after it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import latens

TANK = """\
[time]
step = 0.1
method = "rk4"

[inputs]
u = {}

[states.x]
derivative = "a*u - b*x + c"
start = 1

[unknowns]
a = { guess = 1, min = 0, max = 1.7, unit = "m" }
b = { guess = 1, positive = true }
c = { value = 0.2, fixed = true, unit = "s" }

[measurements]
x = "x"

[truth]
a = 2
b = 0.8
c = 0.2

[simulation]
steps = 300
inputs = { u = "sin(t) + sin(3*t)" }
"""


@pytest.fixture(scope="module")
def tank() -> latens.Model:
    return latens.Model.from_string(TANK)


@pytest.fixture(scope="module")
def record(tank: latens.Model) -> latens.Record:
    return tank.simulate(noise="2%", seed=3)


def test_arithmetic_counts_correlations(tank: latens.Model, record: latens.Record) -> None:
    wide = latens.Model.from_string(TANK.replace(", max = 1.7", ""))
    fit = wide.fit(record, free=["c"], progress=False)
    a, b, c = (fit.constants[name] for name in "abc")
    covariance = fit.constants.covariance
    assert covariance.shape == (3, 3)
    assert np.allclose(np.sqrt(np.diag(covariance)), [a.std, b.std, c.std])
    assert np.allclose(np.diag(fit.constants.correlation), 1)
    # each result is the gradient through the covariance
    for found, value, gradient in [
        (a + 2 * b - c, a.value + 2 * b.value - c.value, [1, 2, -1]),
        (a / b, a.value / b.value, [1 / b.value, -a.value / b.value**2, 0]),
        (a * b, a.value * b.value, [b.value, a.value, 0]),
        (3 - b**2, 3 - b.value**2, [0, -2 * b.value, 0]),
        (1 / b, 1 / b.value, [0, -(b.value**-2), 0]),
        (np.float64(2) * a, 2 * a.value, [2, 0, 0]),
        (np.exp(-b), np.exp(-b.value), [0, -np.exp(-b.value), 0]),
        (2**b, 2**b.value, [0, 2**b.value * np.log(2), 0]),
    ]:
        assert isinstance(found, latens.Uncertain)
        assert found.value == pytest.approx(value)
        assert found.std == pytest.approx(np.sqrt(gradient @ covariance @ np.array(gradient)))
    assert (a - a).std == 0 and (a * b / a).std == pytest.approx(b.std)
    # two fits know nothing of each other
    other = wide.fit(record, free=["c"], progress=False).constants["a"]
    assert (a - other).std == pytest.approx(np.sqrt(2) * a.std)
    assert float(a) == a.value and np.allclose(a * np.array([1.0, 2.0]), [a.value, 2 * a.value])
    frame = fit.constants.to_frame()
    assert frame.loc["a", "value"] == a.value and (frame["lower"] < frame["upper"]).all()
    assert pickle.loads(pickle.dumps(fit)).constants == fit.constants


def test_bounds_and_values(tank: latens.Model, record: latens.Record) -> None:
    fit = tank.fit(record, progress=False)
    a, c = fit.constants["a"], fit.constants["c"]
    assert (a.value, a.bound, a.interval[1]) == (1.7, "max", 1.7)
    assert "the data ask for more" in a.remark and 0 < a.std < 0.2
    assert fit.samples["a"].max() <= 1.7 and fit.samples["a"].min() >= 0
    assert (c.value, c.std, c.fixed, c.unit) == (0.2, 0, True, "s")
    fixed = tank.fit(record, fix={"a": 1.5}, free=["c"], progress=False)
    assert fixed.constants["a"].fixed and not fixed.constants["c"].fixed
    assert fixed.model.unknowns == ["b", "c"]
    again = pickle.loads(pickle.dumps(fixed))
    assert again.constants == fixed.constants and list(again.samples)[:2] == ["b", "c"]
    with pytest.raises(latens.SettingError, match="above its max of 1.7"):
        tank.fit(record, fix={"a": 2})
    with pytest.raises(latens.ModelError, match="did you mean `b`|there are: a, b"):
        tank.fit(record, fix={"bb": 2})


def test_what_nothing_feels_is_named(record: latens.Record) -> None:
    text = TANK.replace("- b*x + c", "- b*c*x").replace("value = 0.2, fixed = true", "guess = 0.3")
    model = latens.Model.from_string(text)
    change = model.check(record)["invariances"][0]
    assert [name for name, _ in change["constants"]] == ["b", "c"] and change["change"] == "factor"
    assert not model.check(record, fix={"c": 1})["invariances"]
    with pytest.warns(latens.FitWarning, match="b and c act only as a product"):
        fit = model.fit(record, progress=False)
    assert "only with c" in fit.constants["b"].undetermined
    assert abs(fit.constants.correlation[1, 2]) > 0.95
