"""The posterior for ArviZ and xarray: the draws are those of the fit."""

import warnings

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


def fit_records():
    model = latens.Model.from_string(TEXT)
    return [model.simulate(noise="0.5%", seed=seed, steps=steps) for seed, steps in ((1, 500), (2, 300))]


@pytest.fixture(scope="module")
def fit():
    model = latens.Model.from_string(TEXT)
    # one structure: draws are those of the best, bands count the others too
    return model.fit(fit_records(), simplify=False, progress=False)


def test_draws_scatter_as_the_fit_says(fit):
    posterior = fit.to_xarray()
    assert dict(posterior.sizes) == {"chain": 4, "draw": 249, "time": 501}
    assert posterior.v.units == "m/s" and posterior.time.units == "s"
    for name, state in fit.states.items():
        drawn = posterior[name]
        off = (drawn.mean(("chain", "draw")) - state.mean) / state.std
        assert np.abs(off).max() < 0.3  # of 996 draws 0.03 typically
        ratio = (drawn - state.mean).std(("chain", "draw")) / state.std
        # the std of the fit is that of 64 draws, which is off by 9 %
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
    groups = {"posterior", "log_likelihood", "prior", "observed_data", "constant_data"}
    assert set(data.groups()) == groups
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
    assert "gain" not in posterior and posterior.v.shape == (4, 16, 201)
    assert "log_likelihood" not in fit.to_arviz().groups()


def test_loo_and_compare_work_without_complaint(fit):
    # a model without friction is worse, and ArviZ ranks it last
    text = TEXT.split("[truth]")[0].replace("gain*u - friction(v)", "gain*u")
    text = text.replace('[networks.friction]\nlayers = ["6 tanh"]\n', "")
    other = latens.Model.from_string(text).fit(fit_records(), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = {"right": fit.to_arviz()}
        summary = arviz.summary(data["right"], var_names=["gain"])
        loo = arviz.loo(data["right"])
    assert summary.loc["gain", "r_hat"] < 1.02 and summary.loc["gain", "ess_bulk"] > 500
    assert not loo.warning and loo.n_data_points == 500
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data["lacking"] = other.to_arviz()
        ranked = arviz.compare(data)
    assert ranked.index[0] == "right"


def test_the_prior_is_that_of_the_model_file(fit):
    prior = fit.to_arviz().prior.gain
    assert abs(float(prior.mean()) - 0.8) < 0.05 and 0.25 < float(prior.std()) < 0.35
