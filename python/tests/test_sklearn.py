"""The estimator behaves as scikit-learn's do, and learns what Model.fit learns."""

import pickle

import numpy as np
import pytest

import latens

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from latens.sklearn import HiddenDynamics

# What a row of a sequence is depends on the rows before it.
NOT_APPLICABLE = {
    "check_methods_subset_invariance": "rows are a sequence: a part of it starts elsewhere",
    "check_methods_sample_order_invariance": "rows are a sequence: in another order they are another one",
}

# A slide whose friction is unknown and whose velocity nobody measures.
TEXT = """
[time]
step = 0.02
method = "rk4"
[inputs]
u = {}
[states.q]
derivative = "v"
start = 0
[states.v]
derivative = "u - friction(v)"
start = 0
[networks.friction]
layers = ["6 tanh"]
[measurements]
q = "q"
[truth]
v = "u - 2*v - 0.2*tanh(v/0.05)"
[simulation]
steps = 600
inputs = { u = "2*sin(3*t) + sin(7*t)" }
"""


@pytest.fixture(scope="module")
def model():
    return latens.Model.from_string(TEXT)


@pytest.fixture(scope="module")
def records(model):
    starts = ({"v": 0.0}, {"v": 0.4}, {"v": -0.4})
    return [model.simulate(seed=k, noise="0.1%", start=start) for k, start in enumerate(starts, 1)]


@pytest.fixture(scope="module")
def table(records):
    record = records[0]
    return np.column_stack([record.t, record.u["u"]]), record.y["q"]


def test_scikit_learn_checks():
    results = check_estimator(HiddenDynamics(), expected_failed_checks=NOT_APPLICABLE, on_skip=None)
    names = {"passed": set(), "xfail": set(), "skipped": set()}
    for result in results:
        names[result["status"]].add(result["check_name"])
    assert len(names["passed"]) > 40
    # these need not hold, because predict is a free run
    assert names["xfail"] <= set(NOT_APPLICABLE)
    assert names["skipped"] <= {"check_array_api_input"}  # arrays of others than numpy


def test_it_is_model_fit(model, records):
    estimator = HiddenDynamics(model, seed=3, passes=4, threads=1).fit(records[:2])
    fit = model.fit(records[:2], seed=3, passes=4, threads=1, progress=False)
    assert np.array_equal(estimator.fit_.states["v"].mean, fit.states["v"].mean)


def test_parameters_clone_and_pickle(model, table):
    estimator = HiddenDynamics(model, time=0, settings={"hidden_noise": 0.2}).set_params(passes=3)
    copy = clone(estimator)
    assert copy.get_params()["passes"] == 3 and copy.settings == {"hidden_noise": 0.2}
    X, y = table
    estimator.fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(again.predict(X), estimator.predict(X))


def test_experiments_are_left_out_whole(model, records):
    scores = cross_val_score(HiddenDynamics(model, warmup=20), records, cv=LeaveOneOut())
    assert scores.shape == (3,) and (scores > 0.99).all()


def test_folds_of_a_table_go_on_where_the_ones_before_ended(model, table):
    X, y = table
    estimator = HiddenDynamics(model, time=0)
    assert (cross_val_score(estimator, X, y, cv=TimeSeriesSplit(3)) > 0.9).all()
    # the middle fold leaves a gap, and with it two records
    train, test = list(KFold(3).split(X))[1]
    estimator.fit(X[train], y[train])
    assert len(estimator.records_) == 2
    assert estimator.score(X[test], y[test]) > 0.99


def test_a_search_finds_settings(model, table):
    X, y = table
    search = GridSearchCV(HiddenDynamics(model, time=0), {"passes": [1, 6]}, cv=TimeSeriesSplit(2)).fit(X, y)
    # few weights that a simpler function leads to need no more than one pass: either may win
    assert search.best_params_["passes"] in (1, 6) and search.best_score_ > 0.9
    pipeline = make_pipeline(FunctionTransformer(), HiddenDynamics(model, time=0, passes=2))
    assert pipeline.fit(X, y).predict(X).shape == y.shape


def test_samples_not_measured_do_not_count(model, table):
    X, y = table
    holes = y.copy()
    holes[::3] = np.nan
    estimator = HiddenDynamics(model, time=0).fit(X, holes)
    assert estimator.score(X, holes) > 0.99
    assert np.isfinite(estimator.predict(X)).all()


def test_the_end_may_be_kept_back(model, table):
    X, y = table
    estimator = HiddenDynamics(model, time=0, settings={"validate_tail": 0.2}).fit(X, y)
    known = len(estimator.fit_.states["v"].mean)
    assert known < len(X)
    assert estimator.score(X[known:], y[known:]) > 0.9


def test_columns_are_found_by_name(model, table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame({"other": X[:, 0] * 0, "u": X[:, 1], "clock": X[:, 0]})
    named = HiddenDynamics(model, time="clock", passes=2).fit(frame, y)
    plain = HiddenDynamics(model, time=0, passes=2).fit(X, y)
    assert np.array_equal(named.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="no column `when`"):
        HiddenDynamics(model, time="when").fit(frame, y)


def test_what_does_not_fit_the_model_says_so(model, table, records):
    X, y = table
    with pytest.raises(ValueError, match="2 columns of inputs, the model 1"):
        HiddenDynamics(model).fit(X, y)
    with pytest.raises(ValueError, match="y has 2 columns of measurements, the model 1"):
        HiddenDynamics(model, time=0).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="do not increase"):
        HiddenDynamics(model, time=0).fit(X[::-1], y)
    with pytest.raises(ValueError, match="needs a model"):
        HiddenDynamics().fit(records)
    with pytest.raises(ValueError, match="list of records"):
        HiddenDynamics(model).fit(records[0])
    with pytest.raises(ValueError, match="fitted to a list of records"):
        HiddenDynamics(model, passes=1).fit(records[:1]).predict(X)
