"""Latens in the manner of scikit-learn: an estimator for pipelines, cross-validation and searches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._fit import Fit
from ._model import Model
from ._record import Array, Record, as_records

if TYPE_CHECKING:
    from ._settings import Settings, Solver

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError('latens.sklearn needs scikit-learn 1.6 or later: pip install "latens[sklearn]"') from error

# A jump of more sample times than this begins a new record, with a start of its own.
_GAP = 10


class HiddenDynamics(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """A model with hidden states, learned from inputs and measurements.

    It takes data in one of two forms.

    **A list of records** (`Record`, file or DataFrame), without `y`: each is an experiment, and cross-validation
    leaves whole experiments out. `predict` finds the state in the first `warmup` samples of each and runs free over
    the rest; it gives an array for each record, NaN in the first rows, which were looked at.

    **A table**: the rows of `X` are the samples of one experiment in the order of time, its columns the model's inputs
    (by name where `X` has names, else in the model's order), and `y` has a column for each measured channel, NaN
    where it was not measured. `time` names the column of `X` that holds the times; without one, rows are `step`
    apart. A jump of more than ten sample times, such as a fold that cross-validation took out, begins a new record.
    `predict` needs inputs alone: it runs free from the state of the last training sample before its first row, which,
    without times, is the start of training. With times a fold goes on where the one before it ended.

    `score` is R² of the free run, averaged over channels (and records); samples that were not measured do not count.

    Rows of a table are a sequence: what is predicted for one depends on those before it. Two of scikit-learn's
    checks, `check_methods_subset_invariance` and `check_methods_sample_order_invariance`, therefore do not apply.

    Parameters
    ----------
    model : Model, optional
        Without one, a black box: every channel is a state whose derivative is a network of all states and inputs.
    solver, seed, passes, starts, threads
        As in `Model.fit`; None leaves a setting to the model and the solver.
    settings : dict, optional
        Other settings of `Model.fit`.
    time : int or str, optional
        The column of `X` with the times.
    step : float, optional
        Time between rows without times; default: the model's step, or 1.
    warmup : int, optional
        First samples of a record that show where it starts; default: 100, or a tenth of a shorter record.

    Attributes
    ----------
    fit_ : Fit
        All that was learned: `fit_.states["h"].mean`, `fit_.unknowns`, `fit_.plot()`.
    records_ : list of Record
        What it was learned from.

    Examples
    --------
    >>> from latens.sklearn import HiddenDynamics
    >>> estimator = HiddenDynamics(model, passes=4).fit([record])
    >>> estimator.score([other]) > 0.9
    True
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        solver: Solver | None = None,
        seed: int = 1,
        passes: int | None = None,
        starts: int | None = None,
        threads: int | None = None,
        settings: Settings | None = None,
        time: int | str | None = None,
        step: float | None = None,
        warmup: int | None = None,
    ) -> None:
        self.model = model
        self.solver = solver
        self.seed = seed
        self.passes = passes
        self.starts = starts
        self.threads = threads
        self.settings = settings
        self.time = time
        self.step = step
        self.warmup = warmup

    def fit(self, X: Any, y: Any = None) -> HiddenDynamics:
        """Learn from a list of records, or from a table of inputs and one of measurements.

        >>> from latens.sklearn import HiddenDynamics
        >>> X = np.column_stack([record.t, record.u["u"]])
        >>> estimator = HiddenDynamics(model, time=0, passes=2).fit(X, record.y["q"])
        >>> estimator.fit_.states["v"].mean.shape
        (401,)
        """
        if _are_records(X):
            if self.model is None:
                raise ValueError("a list of records needs a model: HiddenDynamics(model)")
            model, records = self.model, as_records(X, self.model)
            self._inputs: list[int] | None = None
        else:
            model, records = self._learn_table(X, y)
        given = {name: getattr(self, name) for name in ("solver", "passes", "starts", "threads")}
        chosen = {name: value for name, value in given.items() if value is not None}
        settings: dict[str, Any] = {"seed": self.seed, **chosen, **(self.settings or {})}
        self.records_ = records
        self.fit_: Fit = model.fit(records, progress=False, **settings)
        return self

    def predict(self, X: Any) -> Any:
        """The measured channels in a free run.

        >>> from latens.sklearn import HiddenDynamics
        >>> HiddenDynamics(model, passes=2).fit([record]).predict([other])[0].shape
        (401, 1)
        """
        check_is_fitted(self)
        if _are_records(X):
            return [self._padded(record) for record in as_records(X, self.fit_.model)]
        if self._inputs is None:
            raise ValueError("it was fitted to a list of records, and predicts one")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        inputs, time = X[:, self._inputs], self._times(X)
        if time is None:
            time = np.asarray(np.arange(len(X)) * self._step(), np.float64)
        outputs = np.concatenate([self._run_table(time[part], inputs[part]) for part in _parts(time)])
        return outputs[:, 0] if self._flat else outputs

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the free run, averaged over channels.

        >>> from latens.sklearn import HiddenDynamics
        >>> HiddenDynamics(model, passes=4).fit([record]).score([record]) > 0.9
        True
        """
        if _are_records(X):
            channels, pairs = self.fit_.model.measured, []
            for record in as_records(X, self.fit_.model):
                outputs = self._run_record(record)
                measured = np.column_stack([record.y[name] for name in channels])
                pairs.append((measured[-len(outputs):], outputs))
            return float(np.mean([_r2(*pair) for pair in pairs]))
        measured = _measured(y).reshape(len(y), -1)
        return _r2(measured, self.predict(X).reshape(measured.shape), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # the checks' rows are no sequence: nothing in one follows from the row before it
        tags.regressor_tags.poor_score = True
        return tags

    def _learn_table(self, X: Any, y: Any) -> tuple[Model, list[Record]]:
        if y is None:
            raise ValueError("HiddenDynamics requires y to be passed, but the target y is None")
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        measured = _measured(y)
        self._flat = measured.ndim == 1
        measured = measured.reshape(len(measured), -1)
        check_consistent_length(X, measured)
        if np.isnan(measured).all():
            raise ValueError("y has no measurement: all of it is NaN")
        outputs = measured.shape[1]
        time_column = self._time_column()
        self._inputs = [k for k in range(X.shape[1]) if k != time_column]
        model = self.model
        if model is None:
            model = _black_box(len(self._inputs), outputs, 1.0 if self.step is None else self.step)
        elif set(model.inputs) <= set(names := self._names()):
            self._inputs = [names.index(name) for name in model.inputs]
        for argument, count, names in (
            ("X", len(self._inputs), model.inputs),
            ("y", outputs, model.measured),
        ):
            if count != len(names):
                kind = "inputs" if argument == "X" else "measurements"
                known = f"{len(names)} ({', '.join(names)})"
                raise ValueError(f"{argument} has {count} columns of {kind}, the model {known}")
        inputs, time = X[:, self._inputs], self._times(X)
        records = [
            Record(
                t=None if time is None else time[part],
                u={name: inputs[part, k] for k, name in enumerate(model.inputs)},
                y={name: measured[part, k] for k, name in enumerate(model.measured)},
                name=f"rows {part.start} to {part.stop - 1}",
            )
            for part in ([slice(0, len(X))] if time is None else _parts(time))
        ]
        return model, records

    def _time_column(self) -> int | None:
        if not isinstance(self.time, str):
            return self.time
        names = self._names()
        if self.time not in names:
            raise ValueError(f"X has no column `{self.time}` for the times: it has {', '.join(names) or 'no names'}")
        return names.index(self.time)

    def _names(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", []))

    def _times(self, X: Array) -> Array | None:
        """None where the model's step counts them."""
        column = self._time_column()
        if column is None:
            return None if self.step is None else np.asarray(np.arange(len(X)) * self.step, np.float64)
        time: Array = X[:, column]
        if np.any(np.diff(time) <= 0):
            raise ValueError("the times of X do not increase: several experiments are a list of records")
        return time

    def _step(self) -> float:
        return float(self.fit_.facts["sample_time"])

    def _run_table(self, time: Array, inputs: Array) -> Array:
        """From the last state that training knows before the first row, or else from the first."""
        trained = self.fit_.records[: len(self.records_)]
        record, sample = 0, 0
        for k, known in enumerate(trained):
            if known.t[0] <= time[0]:
                record, sample = k, int(np.searchsorted(known.t, time[0], side="right")) - 1
        begins, states = float(trained[record].t[sample]), trained[record].states
        rows = slice(0, len(time))
        if begins < time[0]:
            time = np.concatenate([[begins], time])
            before = [self.records_[record].u[name][sample] for name in self.fit_.model.inputs]
            inputs = np.concatenate([np.reshape(before, (1, -1)), inputs])
            rows = slice(1, len(time))
        if len(time) == 1:  # a simulation has a step at least
            time, inputs = time[0] + self._step() * np.arange(2), np.repeat(inputs, 2, axis=0)
        run = self.fit_.simulate(
            t=time,
            u={name: inputs[:, k] for k, name in enumerate(self.fit_.model.inputs)},
            start={name: float(state.mean[sample]) for name, state in states.items()},
        )
        return np.column_stack([run.y[name].mean for name in self.fit_.model.measured])[rows]

    def _run_record(self, record: Record) -> Array:
        """After the warm-up."""
        run = self.fit_.predict(record, self.warmup)
        return np.column_stack([run.y[name].mean for name in self.fit_.model.measured])

    def _padded(self, record: Record) -> Array:
        outputs = self._run_record(record)
        rows = np.full((len(record), outputs.shape[1]), np.nan)
        rows[-len(outputs):] = outputs
        return rows


def _are_records(X: Any) -> bool:
    if isinstance(X, (Record, str, os.PathLike)):
        raise ValueError("HiddenDynamics takes a list of records: [record]")
    if not isinstance(X, Sequence) or not X:
        return False
    return isinstance(X[0], (Record, str, os.PathLike)) or hasattr(X[0], "columns")


def _measured(y: Any) -> Array:
    values: Array = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
    return values


def _parts(time: Array) -> list[slice]:
    """The stretches between long jumps."""
    steps = np.diff(time)
    cuts = np.flatnonzero(steps > _GAP * np.median(steps)) + 1 if len(steps) else steps
    edges = [0, *map(int, cuts), len(time)]
    return [slice(a, b) for a, b in zip(edges, edges[1:])]


def _r2(measured: Array, outputs: Array, weights: Any = None) -> float:
    if not np.isfinite(outputs).all():
        return -np.inf  # the free run left the finite numbers
    scores = []
    for k in range(measured.shape[1]):
        taken = ~np.isnan(measured[:, k])
        weight = None if weights is None else np.asarray(weights)[taken]
        scores.append(r2_score(measured[taken, k], outputs[taken, k], sample_weight=weight))
    return float(np.mean(scores))


def _black_box(inputs: int, outputs: int, step: float) -> Model:
    u = [f"u{k + 1}" for k in range(inputs)]
    x = [f"x{k + 1}" for k in range(outputs)]
    call = f"f({', '.join(x + u)})"
    network: dict[str, Any] = {"layers": ["8 tanh"], "skip": True}
    if outputs > 1:
        network["outputs"] = [f"d{name}" for name in x]
    return Model(
        name="Black box",
        time={"step": step},
        inputs={name: {} for name in u},
        states={name: {"derivative": f"{call}.d{name}" if outputs > 1 else call} for name in x},
        networks={"f": network},
        measurements={f"y{k + 1}": name for k, name in enumerate(x)},
    )
