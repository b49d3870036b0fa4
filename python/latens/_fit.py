"""Fits: what was learned, what it says of records, and how far to trust it."""

from __future__ import annotations

import json
import math
import os
import pathlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _latens
from ._compare import Profile, Residuals
from ._constants import Constant, Constants
from ._design import Design
from ._distill import Distillation
from ._errors import FitWarning, SettingError
from ._record import Array, Record, RecordLike, Signal, as_record, to_pandas, to_polars, to_xarray

if TYPE_CHECKING:
    import arviz
    import matplotlib.figure
    import pandas
    import polars
    import xarray

    from typing_extensions import Unpack

    from ._model import Model
    from ._progress import Listener
    from ._settings import Settings
    from ._stream import Stream

Columns = list[tuple[str, Array]]


@dataclass(frozen=True)
class Band:
    """A signal with its standard deviation; as an array it is the mean.

    >>> band = fit.predict(other).y["q"]
    >>> len(band) == len(band.std), band.unit
    (True, 'm')
    """

    mean: Array
    std: Array
    unit: str = ""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.mean, dtype=dtype) if copy else np.asarray(self.mean, dtype=dtype)

    def __len__(self) -> int:
        return len(self.mean)


@dataclass(frozen=True)
class State(Band):
    """A state over a record that a fit learned from: its estimate from the whole record.

    >>> v = fit.states["v"]
    >>> float(np.abs(v.mean - v.truth).max()) < 0.1
    True
    """

    #: Predicted from the estimate one sample before.
    one_step: Array = field(default_factory=lambda: np.empty(0))
    #: Simulated from the estimated start, never corrected; NaN after the point where it diverged.
    free_run: Array = field(default_factory=lambda: np.empty(0))
    #: Where the record knows it.
    truth: Array | None = None


class _Table:
    """Columns that become a data frame."""

    _columns: Columns
    _units: Mapping[str, str]

    @cached_property
    def _by_name(self) -> dict[str, Array]:
        return dict(self._columns)

    @property
    def t(self) -> Array:
        """The times.

        >>> fit.predict(other, warmup=100).t[:2].round(3).tolist()
        [0.5, 0.505]
        """
        return self._by_name["t"]

    def to_pandas(self) -> pandas.DataFrame:
        """All columns, named as in the command line's CSV.

        >>> fit.estimate(other).to_pandas().columns[-2:].tolist()
        ['v.smoothed', 'v.std']
        """
        return to_pandas(self._columns)

    def to_polars(self) -> polars.DataFrame:
        """All columns, named as in the command line's CSV.

        >>> fit.estimate(other).to_polars().columns[-2:]
        ['v.smoothed', 'v.std']
        """
        return to_polars(self._columns)

    def to_xarray(self) -> xarray.Dataset:
        """All columns over the coordinate `t`.

        >>> fit.estimate(other).to_xarray()["v.smoothed"].units
        'm/s'
        """
        return to_xarray(self._columns, self._units)

    def _bands(self, names: list[str], mean: str, std: str) -> dict[str, Band]:
        columns, found = self._by_name, [n for n in names if f"{n}.{mean}" in self._by_name]
        units = self._units
        return {n: Band(columns[f"{n}.{mean}"], columns[f"{n}.{std}"], units.get(n, "")) for n in found}


class FitRecord(_Table):
    """What a fit says of one of its records.

    >>> fit.records[1]
    <record 'Slide' (test) of a fit, 401 samples>
    """

    def __init__(self, fit: Fit, place: int, track: int | None) -> None:
        facts = fit.facts["records"][place]
        self._units = fit.model.units
        self._names = fit.model.states
        self._columns = [] if track is None else fit._raw.states(track)
        self.name: str = facts["file"]
        #: "train", "validate" or "test".
        self.role: str = facts["role"]
        self.samples: int = facts["samples"]
        self.scores: dict[str, Any] = _scores(facts)

    @cached_property
    def states(self) -> dict[str, State]:
        """The states over time, by name; none of a test, which `fit.predict` gives.

        >>> list(fit.records[0].states)
        ['q', 'v']
        """
        columns = self._by_name
        found = [n for n in self._names if f"{n}.smoothed" in columns]
        return {
            n: State(
                columns[f"{n}.smoothed"],
                columns[f"{n}.std"],
                self._units.get(n, ""),
                columns[f"{n}.one_step"],
                columns[f"{n}.free_run"],
                columns.get(f"truth_{n}"),
            )
            for n in found
        }

    def __repr__(self) -> str:
        return f"<record {self.name!r} ({self.role}) of a fit, {self.samples} samples>"


class Prediction(_Table):
    """A record as a fit sees it: predicted, estimated or simulated.

    >>> prediction = fit.predict(other, warmup=50)
    >>> len(prediction), prediction.scores["nrmse"]["q"] < 0.05
    (351, True)
    """

    def __init__(self, model: Model, used: tuple[Columns, str], kind: str) -> None:
        self._columns, facts = used
        self._units, self._names, self._channels = model.units, model.states, model.measured
        self._kind = kind
        #: All that the command line's --json says of a record.
        self.facts: dict[str, Any] = json.loads(facts)
        self.scores: dict[str, Any] = _scores(self.facts)
        #: What to know before it is used.
        self.warnings: list[str] = [warning["text"] for warning in self.facts["warnings"]]
        for warning in self.warnings:
            warnings.warn(warning, FitWarning, stacklevel=3)

    @cached_property
    def states(self) -> dict[str, Band]:
        """The states over time, by name.

        >>> fit.predict(other).states["v"].unit
        'm/s'
        """
        return self._bands(self._names, self._kind, "std")

    @cached_property
    def y(self) -> dict[str, Band]:
        """The measured channels, without the sensors' noise; of predictions and simulations.

        >>> list(fit.predict(other).y)
        ['q']
        """
        return self._bands(self._channels, "output", "output_std")

    @cached_property
    def adapted(self) -> dict[str, tuple[Constant, Constant]]:
        """Constants that were estimated again: before and after.

        >>> before, after = fit.predict(other, adapt="gain").adapted["gain"]
        >>> before == fit.unknowns["gain"], after.unit
        (True, 'm/s²/V')
        """
        def constant(c: dict[str, Any], when: str) -> Constant:
            return Constant(c[when], c[f"{when}_std"], c["unit"])

        changes = self.facts.get("adapted", [])
        return {c["name"]: (constant(c, "before"), constant(c, "after")) for c in changes}

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        errors = ", ".join(f"{n} {e:.2g}" for n, e in self.scores.get("nrmse", {}).items())
        scores = f"; nRMSE {errors}" if errors else ""
        return f"<{self._kind} states {', '.join(self.states)}, {len(self)} samples{scores}>"


@dataclass(frozen=True)
class NetworkValue:
    """A network's outputs with their standard deviations; as an array it is the mean. With several
    outputs the last axis is theirs, and `value["name"]` is one of them.

    >>> value = fit.network("friction")(v=[0.0, 0.1, 9.0])
    >>> value.mean.shape, value.visited.tolist()
    ((3,), [True, True, False])
    """

    mean: Array
    std: Array
    #: Whether training met the like of these arguments: elsewhere the network guesses.
    visited: npt.NDArray[np.bool_]
    outputs: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.mean, dtype=dtype) if copy else np.asarray(self.mean, dtype=dtype)

    def __getitem__(self, output: str) -> NetworkValue:
        if output not in self.outputs:
            raise KeyError(f"there is no output {output!r}; there are: {', '.join(self.outputs)}")
        if len(self.outputs) == 1:
            return self
        k = self.outputs.index(output)
        return NetworkValue(self.mean[..., k], self.std[..., k], self.visited, (output,))


class Network:
    """A learned function. Arguments broadcast; one that is an expression in the model has no name and is
    given by its place.

    >>> friction = fit.network("friction")
    >>> friction
    <network friction(v)>
    >>> friction(v=np.linspace(-0.1, 0.1, 5)).mean.shape
    (5,)
    """

    def __init__(self, raw: _latens.Fit, place: int, name: str, arguments: list[str], outputs: list[str]) -> None:
        self._raw, self._place = raw, place
        self.name, self.arguments, self.outputs = name, arguments, outputs

    def __call__(self, *places: Signal, **named: Signal) -> NetworkValue:
        given: dict[str, Signal] = dict(zip(self.arguments, places))
        wrong = [n for n in named if n not in self.arguments or n in given]
        missing = [n for n in self.arguments if n not in given and n not in named]
        if wrong or missing or len(places) > len(self.arguments):
            raise SettingError(f"network {self.name} is called as {self.name}({', '.join(self.arguments)})")
        given.update(named)
        columns = np.broadcast_arrays(*(np.asarray(given[n], dtype=np.float64) for n in self.arguments))
        shape = columns[0].shape
        rows = np.stack([column.ravel() for column in columns], axis=1)
        mean, std, visited = self._raw.network(self._place, np.ascontiguousarray(rows))
        form = shape if len(self.outputs) == 1 else (*shape, len(self.outputs))
        return NetworkValue(mean.reshape(form), std.reshape(form), visited.reshape(shape), tuple(self.outputs))

    def __repr__(self) -> str:
        return f"<network {self.name}({', '.join(self.arguments)})>"


class Fit:
    """A fitted model; `model.fit` makes one, `latens.load` reads one.

    >>> fit = model.fit(record, progress=False)
    >>> fit.states["v"].mean.shape
    (401,)
    """

    _raw: _latens.Fit
    #: What `distill` or `design` had found when it was interrupted.
    interrupted: Distillation | Design | None = None

    def __init__(self) -> None:
        raise TypeError("a fit is made by model.fit, or read by latens.load")

    @classmethod
    def _of(cls, raw: _latens.Fit) -> Fit:
        fit = cls.__new__(cls)
        fit._raw = raw
        return fit

    @classmethod
    def _of_files(cls, files: dict[str, bytes]) -> Fit:
        return cls._of(_latens.Fit.of_files(files))

    def __reduce__(self) -> tuple[Any, ...]:
        return Fit._of_files, (dict(self._raw.to_files()),)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that is known of it besides weights and states: the content of fit.json.

        >>> fit.facts["settings"]["passes"] >= len(fit.facts["passes"])
        True
        """
        facts: dict[str, Any] = json.loads(self._raw.facts)
        return facts

    @cached_property
    def model(self) -> Model:
        """The model that was fitted.

        >>> fit.model.name
        'Slide'
        """
        from ._model import Model

        return Model._of(self._raw.model, self.facts["model_file"])

    @cached_property
    def records(self) -> list[FitRecord]:
        """Its records: those learned from, those that validated, those that tested.

        >>> [record.role for record in fit.records]
        ['train', 'test']
        """
        tracks = {place: k for k, place in enumerate(self._raw.places)}
        places = range(len(self.facts["records"]))
        return [FitRecord(self, place, tracks.get(place)) for place in places]

    @property
    def states(self) -> dict[str, State]:
        """The states over the first record, by name: `.mean`, `.std`, `.free_run`, …

        >>> fit.states["v"].std.shape
        (401,)
        """
        return self.records[0].states if self.records else {}

    @property
    def t(self) -> Array:
        """The times of the first record.

        >>> float(fit.t[-1])
        2.0
        """
        return self.records[0].t

    @cached_property
    def constants(self) -> Constants:
        """The unknown constants, by name, with their covariance: arithmetic with them counts it.

        >>> abs(fit.constants["gain"].value - 0.37) < 0.05
        True
        """
        return Constants(
            self.facts["unknowns"], self._raw.remarks, self._raw.model.fixed, self._raw.correlation
        )

    @property
    def unknowns(self) -> Constants:
        """The same as `constants`.

        >>> fit.unknowns["gain"] == fit.constants["gain"]
        True
        """
        return self.constants

    @cached_property
    def scores(self) -> dict[str, dict[str, Any]]:
        """Errors of the free runs: `scores["nrmse"][record][column]`, likewise "rmse", "mean_nrmse",
        "mean_nrmse_hidden", "nrmse_one_step", "nrmse_smoothed". A column is a channel, or `truth_<state>`
        where the truth is known; a run that diverged has infinity.

        >>> sorted(fit.scores["nrmse"]["Slide"])
        ['q', 'truth_q', 'truth_v']
        """
        found: dict[str, dict[str, Any]] = {}
        taken: set[str] = set()
        for record in self.records:
            name = record.name if record.name not in taken else f"{record.name} ({record.role})"
            taken.add(name)
            for measure, value in record.scores.items():
                found.setdefault(measure, {})[name] = value
        return found

    @property
    def warnings(self) -> list[str]:
        """What to know before it is used; `facts["warnings"]` has the same as data.

        >>> fit.warnings[0]
        'on ... % of Slide a network meets values unlike any in training: the model guesses there'
        """
        return self._raw.warnings

    @property
    def suspects(self) -> list[dict[str, Any]]:
        """Readings that contradict the others and were set aside: `file`, `row` (1 is the first after the
        names of the columns), `time`, `channel`, `unit`, `value`, `expected` and `deviations` of each.

        >>> fit.suspects
        []
        """
        suspects: list[dict[str, Any]] = self.facts.get("suspects", [])
        return suspects

    @cached_property
    def residuals(self) -> Residuals:
        """Tests of what the free runs leave of the records: whiteness, normality, correlation with each input and
        dependence on each state, with p-values for correlated samples and for the number of tests. Empty where
        there is no noise to test.

        >>> fit.residuals[0].test, 0 <= fit.residuals[0].p_adjusted <= 1
        ('whiteness', True)
        """
        return Residuals(self.facts.get("residuals", []))

    @property
    def seconds(self) -> float:
        """How long it took.

        >>> fit.seconds > 0
        True
        """
        return float(self.facts["seconds"])

    @property
    def seed(self) -> int:
        """Of the start that was kept.

        >>> fit.seed
        1
        """
        return int(self.facts["seed"])

    @property
    def solver(self) -> str:
        """What it was learned with.

        >>> fit.solver
        'batch'
        """
        return str(self.facts["solver"])

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting; with them and the records a fit repeats bit for bit.

        >>> fit.settings["starts"]
        1
        """
        return dict(self.facts["settings"])

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before its time.

        >>> fit.stopped
        False
        """
        return bool(self.facts["stopped"])

    def summary(self) -> str:
        """What the command line says of it.

        >>> "unknown constants" in fit.summary()
        True
        """
        return self._raw.summary()

    def to_dict(self) -> dict[str, Any]:
        """What `latens fit --json` prints of it: scores, constants, noise, evidence and warnings.

        >>> fit.to_dict()["noise"]["q"]["std"] > 0
        True
        """
        told: dict[str, Any] = json.loads(self._raw.to_json())
        return told

    def network(self, name: str | None = None) -> Network:
        """A learned function by its name; the only one where there is one.

        >>> fit.network()(0.1).std.shape
        ()
        """
        networks = self._raw.model.networks
        names = [n for n, _, _ in networks]
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            raise SettingError(f"there is no network `{name}`; there are: {', '.join(names)}")
        place = names.index(name)
        return Network(self._raw, place, *networks[place])

    @cached_property
    def samples(self) -> dict[str, npt.NDArray[np.float64]]:
        """Draws from the posterior, the first axis counts them: of each unknown constant, of the weights
        `<network>.layer1.weight`, …, and of each state over the first record, as whole trajectories. Empty
        where the solver draws none.

        >>> fit.samples["gain"].shape, fit.samples["v"].shape
        ((64,), (64, 401))
        """
        theta, draws = self._raw.theta()
        if not len(draws):
            return {}
        found = self._parameters(theta + draws)
        if self.states:
            found.update(self._drawn(0))
        return found

    def _parameters(self, values: Array) -> dict[str, Array]:
        """Rows of θ by name: constants and weights."""
        found: dict[str, Array] = {}
        for k, name in enumerate(self.model.unknowns):
            found[name] = self._raw.unknown(k, np.ascontiguousarray(values[:, k]))
        at = len(self.model.unknowns)
        for name, rows, columns in self._raw.weights:
            block = values[:, at : at + rows * columns]
            shape = (len(values), rows) if name.endswith(".bias") else (len(values), rows, columns)
            found[name] = block.reshape(shape)
            at += rows * columns
        return found

    def _drawn(self, track: int) -> dict[str, Array]:
        """Trajectories from the posterior of the states of a record, draw by time."""
        drawn = self._raw.drawn(track)
        return {name: drawn[:, :, k] for k, name in enumerate(self.model.states)}

    @property
    def groups(self) -> list[str]:
        """Labels of the groups that were learned from, where a constant varies by group.

        >>> fit.groups
        []
        """
        return self._raw.groups

    def for_group(self, label: str | int | None = None) -> Fit:
        """The fit for records of one group: an ordinary one, whose constants are that group's. Of a new
        group, or without a label, that of the population: what varies by group starts at the mean with the
        spread over groups, and follows the first samples. `predict` and `estimate` do so by themselves.

        >>> fit.for_group("A").constants["gain"].value == fit.constants["gain"].value  # it has no groups
        True
        """
        return Fit._of(self._raw.for_group(None if label is None else str(label)))

    def predict(
        self,
        record: RecordLike,
        warmup: int | None = None,
        *,
        adapt: str | Sequence[str] = (),
        adapt_prior: float = 0.1,
        map: Mapping[str, str] | None = None,
    ) -> Prediction:
        """Finds the state in a record's first samples, runs free over the rest and scores that.

        `warmup` is how many samples (100, or a tenth of a shorter record); `adapt` names constants that are
        estimated again on them, which may have changed since the fit by `adapt_prior` of their value. `map`
        says which column of a table stands for a name of the model.

        >>> fit.predict(other, warmup=50).scores["nrmse"]["truth_v"] < 0.1
        True
        """
        source = as_record(record, self.model, map)._source(self._raw.model)
        names = [adapt] if isinstance(adapt, str) else list(adapt)
        return Prediction(self.model, self._raw.predict(source, warmup, names, adapt_prior), "predicted")

    def estimate(
        self,
        record: RecordLike,
        smooth: bool = True,
        *,
        loosen: float | None = None,
        map: Mapping[str, str] | None = None,
    ) -> Prediction:
        """The states of a record with all its measurements: from the whole of it, or with `smooth=False`
        each from the past alone. `loosen` is a factor on the process noise; without it the record's
        likelihood chooses.

        >>> fit.estimate(other, smooth=False).states["v"].mean.shape
        (401,)
        """
        source = as_record(record, self.model, map)._source(self._raw.model)
        used = self._raw.estimate(source, smooth, loosen)
        return Prediction(self.model, used, "smoothed" if smooth else "filtered")

    def simulate(
        self,
        u: Mapping[str, Signal] | RecordLike | None = None,
        t: Signal | None = None,
        *,
        start: Mapping[str, float] | None = None,
        constants: Mapping[str, float] | None = None,
        steps: int = 1000,
        map: Mapping[str, str] | None = None,
    ) -> Prediction:
        """Follows the learned equations, driven by inputs: arrays by name with times `t`, or a record that has
        them. It begins where the fit found its first record to begin, but for what `start` says of some states.
        `constants` are other values of unknown constants, which are then known. A model that nothing drives runs
        for `steps`.

        >>> t = 0.005 * np.arange(201)
        >>> fit.simulate({"u": np.sin(3 * t)}, t, start={"q": 0, "v": 0}).states["q"].mean.shape
        (201,)
        """
        given = [(name, float(value)) for name, value in (start or {}).items()]
        if u is None and self.model.inputs:
            raise SettingError(f"the model of this fit is driven by {', '.join(self.model.inputs)}; give u=")
        driving = None
        if u is not None or t is not None:
            arrays = isinstance(u, Mapping) or u is None
            record = Record(t, u=u) if arrays else as_record(u, self.model, map)
            driving = record._driving(self._raw)
        other = [(name, float(value)) for name, value in (constants or {}).items()]
        return Prediction(self.model, self._raw.simulate(driving, steps + 1, given, other), "predicted")

    def profile(self, *constants: str) -> Profile:
        """How far the data let constants go: each is held at one value after another, and all else is fitted
        again. All constants where none is named.

        >>> fit.profile("gain")["gain"].unit
        'm/s²/V'
        """
        return Profile(*self._raw.profile(list(constants)))

    def stream(
        self, *, learn: bool | None = None, forget: float | None = None, gate: float | None = None
    ) -> Stream:
        """An online estimator that starts from this fit: a sample in, an estimate out. With `learn` the
        model goes on learning; `forget` is its memory in samples; a channel more than `gate` (10) standard
        deviations off pulls no harder than one at that distance.

        >>> fit.stream(learn=True)
        <latens.Stream after 0 samples, learning, consistency nan>
        """
        from ._stream import Stream

        return Stream._of(self._raw.stream(learn, forget, gate))

    def resume(
        self,
        *,
        threads: int | None = None,
        backend: str | None = None,
        workers: int | None = None,
        progress: bool | Listener | None = None,
        **settings: Unpack[Settings],
    ) -> Fit:
        """Goes on with a fit that was stopped, or with more `passes`, on the same records. `threads`, `backend` and
        `workers` are as in `Model.fit`.

        >>> short = model.fit(record, solver="joint", passes=1, progress=False)
        >>> longer = short.resume(passes=2, progress=False)
        >>> len(longer.facts["passes"])
        2
        """
        tracks = [(r.role, track) for track, r in enumerate(self.records) if r.role != "test"]
        return self.model._learn(
            [self._raw.source(track) for role, track in tracks if role == "train"],
            [self._raw.source(track) for role, track in tracks if role == "validate"],
            [],
            given={**settings},
            threads=threads,
            backend=backend,
            workers=workers,
            progress=progress,
            resumed=self,
        )

    def save(self, folder: str | os.PathLike[str], force: bool = False) -> None:
        """Writes the folder of the fit, which every command of `latens` reads too; whole or not at all. Another
        fit is replaced only with `force`.

        >>> fit.save("run")
        >>> latens.load("run").unknowns == fit.unknowns
        True
        """
        self._raw.save(os.fspath(folder), force)

    def report(self, path: str | os.PathLike[str] = "report.html") -> None:
        """Writes the page that shows how far to trust it: one file that asks no host for anything.

        >>> fit.report("page.html")
        """
        self._raw.write_report(os.fspath(path))

    def figure(self, what: str, path: str | os.PathLike[str]) -> None:
        """Writes a figure for a paper: "states", "equation", "field", "convergence", "innovations", "tests" or
        "constants", as .svg, .pdf or .png; those of `latens plot`.

        >>> fit.figure("states", "states.svg")
        """
        self._raw.write_figure(what, os.fspath(path))

    def export(
        self, path: str | os.PathLike[str], to: str | None = None, *, force: bool = False
    ) -> list[pathlib.Path]:
        """Writes what was learned as code for other tools, with its constants and weights, and returns the files.
        The ending says which: .c, .fmu, .js, .onnx, .py or .toml; `to="fmu3"` is FMI 3.0 in place of 2.0. Files
        that exist are replaced only with `force`.

        >>> [file.name for file in fit.export("slide.c")]
        ['slide.c', 'slide.h']
        """
        files, notes = self._raw.export(os.fspath(path), to, force)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [pathlib.Path(file) for file in files]

    def distill(
        self, *, candidates: int = 16, proposed: Sequence[str] = (), progress: bool = False
    ) -> Distillation:
        """Finds formulas for what the networks have learned, puts the best in their place and fits each again to the
        same records; what the data cannot tell apart it says. `proposed` are formulas of your own, in the arguments of the
        network (the k-th is also `argk`); other names are constants. Ctrl-C raises KeyboardInterrupt, and what
        was fitted by then is `fit.interrupted`.

        >>> found = fit.distill(candidates=2, proposed=["viscous*v"])
        >>> len(found.formulas) > 0, any(formula.proposed for formula in found.formulas)
        (True, True)
        """
        if candidates < 1:
            raise SettingError("candidates= is a number of formulas to fit again: at least 1")
        hear = print if progress else None
        text, page, interrupted = self._raw.distill(candidates, list(proposed), hear)
        found = Distillation._of(json.loads(text), page)
        if interrupted:
            self.interrupted = found
            raise KeyboardInterrupt("the search was stopped; what it has found so far is fit.interrupted")
        return found

    def design(
        self,
        *,
        start: Mapping[str, tuple[float, float]] | None = None,
        inputs: Mapping[str, str | Sequence[str]] | None = None,
        feedback: Mapping[str, str] | None = None,
        measure: Sequence[Sequence[str]] = (),
        every: Sequence[int] = (),
        samples: int | None = None,
        constants: Sequence[str] = (),
        prediction: RecordLike | None = None,
        between: Sequence[Model] = (),
        candidates: int = 32,
        seed: int = 1,
        progress: bool = False,
    ) -> Design:
        """Which experiment next: each is simulated with what was learned, and what its record would add is computed to
        first order. `start` has ranges of states, `inputs` families ("step:0..1", "sine:0..1", "sweep:0..1"; several are
        alternatives), `feedback` formulas of the states that a regulator adds, `measure` sets of channels, `every` rates.
        They are put in order by what they leave of the uncertainty of the learned functions, or of `constants`, of the free run of
        the record `prediction`, or by how well they tell formulas apart that are models (`between`). Ctrl-C
        raises KeyboardInterrupt, and what was looked at by then is `fit.interrupted`.

        >>> found = fit.design(inputs={"u": ["step:-1..1", "sine:-1..1"]}, candidates=4)
        >>> found.by, len(found.experiments), sorted(found.best.columns)
        ('functions', 4, ['q.predicted', 't', 'u', 'v.predicted'])
        """
        if candidates < 1:
            raise SettingError("candidates= is a number of experiments to look at: at least 1")
        families = [
            (name, family)
            for name, given in (inputs or {}).items()
            for family in ([given] if isinstance(given, str) else given)
        ]
        asked = {
            "start": [(name, (float(low), float(high))) for name, (low, high) in (start or {}).items()],
            "inputs": families,
            "feedback": list((feedback or {}).items()),
            "measured": [list(names) for names in measure],
            "every": list(every),
            "samples": samples,
            "constants": list(constants),
            "candidates": candidates,
            "seed": seed,
        }
        ahead = None
        if prediction is not None:
            ahead = as_record(prediction, self.model, None)._source(self._raw.model)
        hear = print if progress else None
        models = [model._raw for model in between]
        text, svg, interrupted = self._raw.design(json.dumps(asked), ahead, models, hear)
        found = Design._of(json.loads(text), svg)
        if interrupted:
            self.interrupted = found
            raise KeyboardInterrupt("it was stopped; what was looked at so far is fit.interrupted")
        return found

    def to_pandas(self) -> pandas.DataFrame:
        """The first record with its states, as in states.csv; of others see `records`.

        >>> fit.to_pandas().shape
        (401, 13)
        """
        return self.records[0].to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The first record with its states, as in states.csv; of others see `records`.

        >>> fit.to_polars().shape
        (401, 13)
        """
        return self.records[0].to_polars()

    def to_xarray(self, record: int = 0, *, weights: bool = False) -> xarray.Dataset:
        """Draws from the posterior, over chain and draw as ArviZ has them: unknown constants, the states over a
        record as whole trajectories and, if asked for, the weights. Of an ensemble, or of
        several structures that speak together, those of the best: what the others add to bands is not in them.

        The draws are independent; they stand as four chains, as ArviZ expects of a sampler.

        >>> dict(fit.to_xarray().sizes)
        {'chain': 4, 'draw': 250, 'time': 401}
        """
        from ._export import to_xarray

        return to_xarray(self, record, weights)

    def to_arviz(self, record: int = 0, *, weights: bool = False) -> arviz.InferenceData:
        """The same for ArviZ, with the record's measurements and inputs beside it, draws of the prior, and the
        `log_likelihood` of each reading from those before it, for `az.loo` and `az.compare`.

        >>> fit.to_arviz().groups()
        ['posterior', 'log_likelihood', 'prior', 'observed_data', 'constant_data']
        """
        from ._export import to_arviz

        return to_arviz(self, record, weights)

    def plot(self, record: int = 0) -> matplotlib.figure.Figure:
        """Draws the states over a record: the estimate with its band beside the free run.

        >>> fit.plot().savefig("states.png")
        """
        from ._plot import figure

        return figure(self, record)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from ._plot import html

        return html(self)


def load(folder: str | os.PathLike[str]) -> Fit:
    """Reads the folder of a fit, of `fit.save` or of the command line.

    >>> fit.save("fitted")
    >>> latens.load("fitted").states["v"].mean.shape
    (401,)
    """
    return Fit._of(_latens.Fit.load(os.fspath(folder)))


_MEASURES = ("rmse", "nrmse", "nrmse_one_step", "nrmse_smoothed", "mean_nrmse", "mean_nrmse_hidden")


def _scores(facts: dict[str, Any]) -> dict[str, Any]:
    """The scores among facts; a run that diverged has infinity."""
    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: math.inf if v is None else v for name, v in value.items()}
        return value

    return {measure: known(facts[measure]) for measure in _MEASURES if measure in facts}
