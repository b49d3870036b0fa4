"""The posterior for ArviZ and xarray: the draws are those of the fit."""

import numpy as np
import pytest

import latens

arviz = pytest.importorskip("arviz")
pytest.importorskip("xarray")

TEXT = """
name = "Slide"
[time]
step = 0.02
unit = "s"
method = "rk4"
[inputs]
u = "V"
[states.q]
derivative = "v"
start = 0
unit = "m"
[states.v]
derivative = "gain*u - friction(v)"
start = 0
unit = "m/s"
[networks.friction]
layers = ["6 tanh"]
[unknowns]
gain = { guess = 0.8, scale = 0.3, unit = "1/V" }
[measurements]
q = "q"
[truth]
gain = 1
v = "gain*u - 2*v - 0.2*tanh(v/0.05)"
[simulation]
steps = 500
inputs = { u = "2*sin(3*t) + sin(7*t)" }
"""


@pytest.fixture(scope="module")
def fit():
    model = latens.Model.from_string(TEXT)
    records = [model.simulate(noise="0.5%", seed=seed, steps=steps) for seed, steps in ((1, 500), (2, 300))]
    # one structure: draws are those of the best, bands count the others too
    return model.fit(records, simplify=False, progress=False)


def test_draws_scatter_as_the_fit_says(fit):
    posterior = fit.to_xarray()
    assert dict(posterior.sizes) == {"chain": 1, "draw": 64, "time": 501}
    assert posterior.v.units == "m/s" and posterior.time.units == "s"
    for name, state in fit.states.items():
        drawn = posterior[name].sel(chain=0)
        assert np.abs((drawn.mean("draw") - state.mean) / state.std).max() < 1  # 64 draws: 0.125 typically
        ratio = (drawn - state.mean).std("draw") / state.std
        # the std of 64 draws is off by 9 %, that of the fit by as much
        assert 0.8 < ratio.median() < 1.2
        assert ratio.min() > 0.5 and ratio.max() < 1.7
    gain = fit.unknowns["gain"]
    assert abs(float(posterior.gain.mean()) - gain.value) < 0.5 * gain.std
    assert 0.7 < float(posterior.gain.std()) / gain.std < 1.3


def test_draws_are_smooth_trajectories(fit):
    # of each draw v is the derivative of q, within what the equations leave open: no white noise around the mean
    posterior = fit.to_xarray().sel(chain=0)
    rate = posterior.q.differentiate("time")
    off = np.abs(rate - posterior.v).isel(time=slice(2, -2))
    assert float(off.max()) < 0.02 * float(posterior.v.max() - posterior.v.min())


def test_records_and_weights(fit):
    second = fit.to_xarray(record=1, weights=True)
    assert second.sizes["time"] == 301
    assert "friction.layer1.weight" in second and "friction.layer1.weight" not in fit.to_xarray()
    assert fit.to_xarray().equals(fit.to_xarray())
    with pytest.raises(latens.SettingError, match="no states of record 5"):
        fit.to_xarray(record=5)


def test_arviz_reads_it(fit):
    data = fit.to_arviz()
    assert set(data.groups()) == {"posterior", "observed_data", "constant_data"}
    assert data.posterior.attrs["inference_library"] == "latens"
    assert np.array_equal(data.observed_data.q, fit.records[0].to_xarray().q)
    summary = arviz.summary(data, var_names=["gain"], kind="stats")
    assert abs(summary.loc["gain", "mean"] - fit.unknowns["gain"].value) < 0.01
    interval = arviz.hdi(data, var_names=["v"], hdi_prob=0.9).v
    truth = fit.records[0].states["v"].truth
    assert interval.sizes == {"time": 501, "hdi": 2} and truth is not None


def test_a_solver_without_draws_still_has_states():
    model = latens.Model.from_string(TEXT)
    fit = model.fit(model.simulate(noise="0.5%", steps=200), solver="joint", passes=1, progress=False)
    posterior = fit.to_xarray()
    assert "gain" not in posterior and posterior.v.shape == (1, 64, 201)
