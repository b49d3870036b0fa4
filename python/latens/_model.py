"""Models: what is known of a system, and where knowledge ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _latens, _toml
from ._fit import Fit
from ._progress import Listener, Watch
from ._record import Record, RecordLike, as_records, table_html
from ._workers import backend_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings

Section = Mapping[str, Any]


class Model:
    """A model, written down section by section under the names of the model file:

    >>> model = latens.Model(
    ...     name="Slide",
    ...     time={"unit": "s", "step": 0.001},
    ...     inputs={"u": "V"},
    ...     states={"q": {"derivative": "v", "unit": "m"}, "v": "gain*u - friction(v)"},
    ...     networks={"friction": ["10 tanh"]},
    ...     unknowns={"gain": {"guess": 0.3, "scale": 0.1, "positive": True}},
    ...     measurements={"q": "q"},
    ... )
    >>> model
    <latens.Model 'Slide': states q, v; hidden v; measured q; inputs u; to learn friction(v), gain>

    A state may be its derivative alone, and a network its layers. The sections become the text of a model
    file, `model.text`, which errors point into. `Model.from_file` and `Model.from_string` read one that is
    there already; `latens.systems` has the built-in ones.
    """

    _raw: _latens.Model
    #: What the last fit that Ctrl-C ended had learned until then.
    interrupted: Fit | None

    def __init__(
        self,
        *,
        states: Mapping[str, str | Section],
        measurements: Mapping[str, str | Section],
        name: str = "",
        description: str = "",
        time: Section | None = None,
        constants: Section | None = None,
        inputs: Mapping[str, str | Section] | None = None,
        expressions: Mapping[str, str] | None = None,
        networks: Mapping[str, Sequence[str] | Section] | None = None,
        unknowns: Mapping[str, Section] | None = None,
        tables: Mapping[str, Section] | None = None,
        truth: Section | None = None,
        simulation: Section | None = None,
        fit: Section | None = None,
    ) -> None:
        def written(shorthand: str, entries: Mapping[str, Any]) -> dict[str, Any]:
            return {n: v if isinstance(v, Mapping) else {shorthand: v} for n, v in entries.items()}

        text = f"name = {_toml.value(name)}\n" if name else ""
        if description:
            text += f"description = {_toml.value(description)}\n"
        sections: dict[str, Mapping[str, Any] | None] = {
            "time": time,
            "constants": constants,
            "inputs": inputs,
            "states": written("derivative", states),
            "expressions": expressions,
            "networks": written("layers", networks or {}),
            "unknowns": unknowns,
            "measurements": measurements,
            "tables": tables,
            "truth": truth,
            "simulation": simulation,
            "fit": fit,
        }
        for heading, entries in sections.items():
            if entries:
                text += _toml.section(heading, entries)
        self._read(_latens.Model.parse("model", text), "model")

    def _read(self, raw: _latens.Model, file: str) -> None:
        self._raw, self._file, self.interrupted = raw, file, None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Model:
        """Reads a model file.

        >>> latens.Model.from_file("slide.toml").states
        ['q', 'v']
        """
        return cls._of(_latens.Model.read(os.fspath(path)), os.fspath(path))

    @classmethod
    def from_string(cls, text: str, name: str = "model") -> Model:
        """Reads the text of a model file; `name` is what errors call it.

        >>> latens.Model.from_string(model.text) == model
        True
        """
        return cls._of(_latens.Model.parse(name, text), name)

    @classmethod
    def _of(cls, raw: _latens.Model, file: str) -> Model:
        model = cls.__new__(cls)
        model._read(raw, file)
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_string, (self.text, self._file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def text(self) -> str:
        """The text of the model file.

        >>> model.text.splitlines()[0]
        'name = "Slide"'
        """
        return self._raw.text

    @property
    def name(self) -> str:
        """What it is called.

        >>> model.name
        'Slide'
        """
        return self._raw.name

    @property
    def description(self) -> str:
        """What the model file says of it.

        >>> latens.systems.harmonic_oscillator().description[:18]
        'A mass on a spring'
        """
        return self._raw.description

    @property
    def states(self) -> list[str]:
        """Names of the states.

        >>> model.states
        ['q', 'v']
        """
        return [name for name, _ in self._raw.states]

    @property
    def hidden(self) -> list[str]:
        """States that no measurement sees directly.

        >>> model.hidden
        ['v']
        """
        return self._raw.hidden

    @property
    def measured(self) -> list[str]:
        """Names of the measured channels.

        >>> model.measured
        ['q']
        """
        return [name for name, _ in self._raw.measured]

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs.

        >>> model.inputs
        ['u']
        """
        return [name for name, _ in self._raw.inputs]

    @property
    def unknowns(self) -> list[str]:
        """Names of the unknown constants.

        >>> model.unknowns
        ['gain']
        """
        return [name for name, _ in self._raw.unknowns]

    @property
    def networks(self) -> dict[str, list[str]]:
        """The networks and what each is called with, as it stands in the equations.

        >>> model.networks
        {'friction': ['v']}
        """
        return {name: arguments for name, arguments, _ in self._raw.networks}

    @property
    def units(self) -> dict[str, str]:
        """Units by name, of `t` too.

        >>> model.units["v"], model.units["t"]
        ('m/s', 's')
        """
        every = [*self._raw.states, *self._raw.measured, *self._raw.inputs, *self._raw.unknowns]
        return {"t": self._raw.time_unit, **{name: unit for name, unit in every if unit}}

    def fit(
        self,
        records: RecordLike | Sequence[RecordLike],
        *,
        validate: RecordLike | Sequence[RecordLike] = (),
        test: RecordLike | Sequence[RecordLike] = (),
        map: Mapping[str, str] | None = None,
        warmup: int | None = None,
        threads: int | None = None,
        backend: str | None = None,
        workers: int | None = None,
        progress: bool | Listener | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **settings: Unpack[Settings],
    ) -> Fit:
        """Learns networks and unknown constants from records.

        A record is a `latens.Record`, a file, a data frame, an xarray dataset or a dict of arrays. `validate`
        are records that are never learned from but choose between stages and starts; `test` play no part and
        are predicted at the end, after `warmup` first samples. `map` says which column of these tables stands
        for a name of the model, `{"q": "y_qm_m"}`. `settings` are those of the model file's [fit]
        section, which they override: solver, seed, passes, starts, ensemble, validate_tail, hidden_noise,
        measurement_variance={"V": 1e-2}, …; `latens.Settings` has all of them, docs/reference/settings.md their
        defaults. `progress` shows a bar where somebody looks; True always, False never; a function is called
        with a `latens.Progress`, and stops the fit by returning False.

        >>> fit = model.fit(record, seed=2, passes=3, progress=False)
        >>> fit.solver, fit.seed
        ('batch', 2)

        Ctrl-C ends the fit after the iteration it is in and raises KeyboardInterrupt. What was learned so
        far is `model.interrupted`; it can be used as it is, and gone on with: `model.interrupted.resume()`.
        A second Ctrl-C does not wait for that.

        With `checkpoint="run"` every stage, pass and start that is done is kept in the folder
        `run.unfinished`, which is gone when the fit is finished. A fit that was interrupted or killed goes on
        from there when it is called again in the same way, and comes to the same bits; `latens fit … --resume
        run` goes on with it too. No other process fits into the same folder meanwhile.

        With `backend="processes"` or `backend="ray"` the records are with workers, `workers` processes of this machine
        or actors of the cluster that `ray.init` has connected to, or that it finds or starts now; as many as there are
        cores unless given, each with `threads`, one unless given. θ goes out to them and sums come back. The fit is
        that of one process to the last bit. A worker that dies is replaced, and its records are done again; as the
        cluster grows, new ones join at the next stage.

        >>> same = model.fit(record, seed=2, passes=3, backend="processes", workers=2, progress=False)
        >>> same.unknowns == fit.unknowns
        True
        """
        trained, validating = as_records(records, self, map), as_records(validate, self, map)
        tests = as_records(test, self, map)
        return self._learn(
            [r._source(self._raw) for r in trained],
            [r._source(self._raw) for r in validating],
            [r._source(self._raw) for r in tests],
            warmup=warmup,
            given={**settings},
            threads=threads,
            backend=backend,
            workers=workers,
            progress=progress,
            checkpoint=checkpoint,
        )

    def _learn(
        self,
        records: list[_latens.Source],
        validate: list[_latens.Source],
        tests: list[_latens.Source],
        *,
        warmup: int | None = None,
        given: dict[str, Any],
        threads: int | None,
        backend: str | None,
        workers: int | None,
        progress: bool | Listener | None,
        checkpoint: str | os.PathLike[str] | None = None,
        resumed: Fit | None = None,
    ) -> Fit:
        job = _latens.Job(self._raw, _toml.settings(given), None if resumed is None else resumed._raw)
        job.sign(self._file, _call(self._file, resumed is not None, (records, validate, tests), given))
        job.warm_up = warmup
        for add, sources in ((job.train, records), (job.validate, validate), (job.test, tests)):
            for source in sources:
                add(source)
        self.interrupted = None
        folder = None if checkpoint is None else os.fspath(checkpoint)
        with backend_of(backend, workers, threads) as crew:
            watch = Watch(progress, job)
            try:
                # with workers, `threads` are theirs
                raw, interrupted = job.run(threads if crew is None else None, watch, folder, crew)
            finally:
                watch.close()
        fit = Fit._of(raw)
        if interrupted:
            self.interrupted = fit
            raise KeyboardInterrupt("the fit was stopped; what it has learned so far is model.interrupted")
        return fit

    def check(
        self,
        records: RecordLike | Sequence[RecordLike],
        *,
        map: Mapping[str, str] | None = None,
        fix: Mapping[str, float] | None = None,
        free: Sequence[str] = (),
    ) -> Check:
        """What records can tell, before anything is learned from them; see docs/explain/checks.md. `map`, `fix`
        and `free` are as in `fit`.

        >>> check = model.check(record)
        >>> [state["name"] for state in check["states"]]
        ['q', 'v']
        """
        sources = [record._source(self._raw) for record in as_records(records, self, map)]
        facts, text = self._raw.check(sources, _toml.settings({"fix": fix or {}, "free": list(free)}))
        return Check(json.loads(facts), text)

    def simulate(
        self,
        *,
        steps: int | None = None,
        noise: float | str | Mapping[str, float | str] | None = None,
        process_noise: float | Mapping[str, float] | None = None,
        start: Mapping[str, float] | None = None,
        held_out: int | None = None,
        seed: int = 1,
    ) -> Record:
        """A record from the model's [truth], with the truth in it.

        `noise` is a standard deviation, 0.1 in each channel's unit or "1%" of its range, of all channels or
        by name; `process_noise` one per √time; `held_out` the model's k-th other experiment, from 1.

        >>> model.simulate(steps=20, noise="0.1%", start={"v": 0.2})
        <latens.Record 'Slide', 21 samples, t from 0 to 0.1; y: q; u: u; truth: q, v>
        """
        columns = self._raw.simulate(
            steps,
            [(name, float(value)) for name, value in (start or {}).items()],
            [(name, *_level(value)) for name, value in _by_name(noise)],
            [(name, float(value)) for name, value in _by_name(process_noise)],
            held_out,
            seed,
        )
        which = "" if held_out is None else f", held out {held_out}"
        return Record.from_frame(dict(columns), self, name=(self.name or "record") + which)

    def __repr__(self) -> str:
        parts = [f"states {', '.join(self.states)}"]
        if self.hidden:
            parts.append(f"hidden {', '.join(self.hidden)}")
        parts.append(f"measured {', '.join(self.measured)}")
        if self.inputs:
            parts.append(f"inputs {', '.join(self.inputs)}")
        calls = [f"{name}({', '.join(arguments)})" for name, arguments in self.networks.items()]
        if calls or self.unknowns:
            parts.append(f"to learn {', '.join([*calls, *self.unknowns])}")
        return f"<latens.Model {self.name or self._file!r}: {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from html import escape

        hidden, units = self.hidden, self.units
        rows = [
            (name, "hidden state" if name in hidden else "measured state", units.get(name, ""))
            for name in self.states
        ]
        rows += [(name, "input", units.get(name, "")) for name in self.inputs]
        rows += [(name, "unknown constant", units.get(name, "")) for name in self.unknowns]
        rows += [(f"{n}({', '.join(a)})", "network", "") for n, a in self.networks.items()]
        table = table_html(self.name or self._file, ("", "", "unit"), rows)
        source = f"<details><summary>model file</summary><pre>{escape(self.text)}</pre></details>"
        return table + escape(self.description) + source


class Check(Mapping[str, Any]):
    """What records can tell about a model: a mapping with all numbers, as `latens check --json` has them.

    >>> check = model.check(record)
    >>> check.warnings
    []
    """

    def __init__(self, facts: dict[str, Any], text: str) -> None:
        self._facts = facts
        #: What the command line says.
        self.text = text

    @property
    def warnings(self) -> list[str]:
        """What to know before time is spent on a fit.

        >>> model.check(record).warnings
        []
        """
        return [warning["text"] for warning in self._facts["warnings"]]

    @property
    def suspects(self) -> list[dict[str, Any]]:
        """Readings that contradict the others, as in [`Fit.suspects`][latens.Fit.suspects].

        >>> model.check(record).suspects
        []
        """
        suspects: list[dict[str, Any]] = self._facts["suspects"]
        return suspects

    def __getitem__(self, key: str) -> Any:
        return self._facts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text)}</pre>"


def _call(
    file: str, resumed: bool, sources: tuple[list[_latens.Source], ...], given: dict[str, Any]
) -> str:
    """What a report shows as the way to repeat a fit."""
    words = []
    for name, records in zip(("", "validate=", "test="), sources):
        files = [source.file for source in records]
        if files:
            words.append(f"{name}{files[0]!r}" if len(files) == 1 else f"{name}{files!r}")
    words += [f"{k}={v!r}" for k, v in given.items()]
    verb = "resume" if resumed else "fit"
    return f"python: latens.Model.from_file({file!r}).{verb}({', '.join(words)})"


def _by_name(given: Any) -> list[tuple[str | None, Any]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(None, given)]


def _level(given: float | str) -> tuple[float, bool]:
    """A size, and whether it is a part of the range."""
    if isinstance(given, str) and given.strip().endswith("%"):
        return float(given.strip()[:-1]) / 100, True
    return float(given), False
