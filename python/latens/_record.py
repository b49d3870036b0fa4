"""Records: what was measured, from arrays, data frames or files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _latens
from ._errors import RecordError

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

    from ._model import Model

Array = npt.NDArray[np.float64]
#: What becomes an array.
Signal = npt.ArrayLike
_TIMES = ("t", "time")
_TRUTH = "truth_"


class Record:
    """One experiment: times, measurements `y`, inputs `u`, and the truth of states where it is known.

    Arrays of float64 are kept as they are, not copied. NaN is a measurement that was not taken. The truth
    serves for scoring only; a fit never learns from it. Which names it needs the model says; others are not
    looked at. Times may be dates, with or without a zone: they are counted from the first, in seconds here
    and in the model's unit of time in a fit. Without `t`, samples are `step` apart, or the model's step.
    Where a constant of the model varies by group, `group` is the label of the record's own.

    >>> latens.Record(t=[0, 0.1, 0.2], y={"q": [0, 1, 2]}, u={"force": [1, 1, 0]})
    <latens.Record 'record', 3 samples, t from 0 to 0.2; y: q; u: force>
    """

    def __init__(
        self,
        t: Signal | None = None,
        y: Mapping[str, Signal] | None = None,
        u: Mapping[str, Signal] | None = None,
        truth: Mapping[str, Signal] | None = None,
        *,
        name: str = "record",
        step: float | None = None,
        group: str | int | None = None,
    ) -> None:
        self.name = name
        self.step = step
        #: The label of the group that it belongs to, where a constant of the model varies by group.
        self.group = None if group is None else str(group)
        self._t: Array | None = None
        # whether the times were dates: seconds, then, whatever the model counts in
        self._dated = False
        if t is not None:
            self._t, self._dated = _times(t)
        self._y = {k: _column(k, v) for k, v in (y or {}).items()}
        self._u = {k: _column(k, v) for k, v in (u or {}).items()}
        self._truth = {k: _column(k, v) for k, v in (truth or {}).items()}
        # what a frame has that the model does not ask for: an error lists it
        self._rest: dict[str, Array] = {}
        # of a file: what its reader is told, and what it has read
        self._map: list[str] = []
        self._table: _latens.Table | None = None
        # file and checksum, where it was one
        self._origin: tuple[str, str] | None = None
        self._check_lengths()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        model: Model | None = None,
        *,
        map: Mapping[str, str] | None = None,
        step: float | None = None,
        group: str | int | None = None,
    ) -> Record:
        """Reads .csv, .tsv, .txt, .parquet or .mat. `map` says which column stands for a name of the
        model, `{"q": "y_qm_m"}`. Without a model, all columns but the times and `truth_…` count as
        measured. `group` is the label of its group, in place of what the column `group` says.

        >>> record.to_pandas().rename(columns={"q": "position"}).to_csv("log.csv", index=False)
        >>> latens.Record.from_file("log.csv", model, map={"q": "position"})
        <latens.Record 'log', 401 samples, t from 0 to 2; y: q; u: u; truth: q, v>
        """
        record = cls(name=Path(path).stem, step=step, group=group)
        record._map = [f"{name}={column}" for name, column in (map or {}).items()]
        record._table = table = _latens.Table.read(os.fspath(path))
        record._origin = (table.file, table.sha256)
        dated = {n: seconds for n in table.names if (seconds := table.instants(n)) is not None}
        record._sort(table.names, table.column, dated, map or {}, model)
        return record

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        model: Model | None = None,
        *,
        map: Mapping[str, str] | None = None,
        step: float | None = None,
        name: str = "record",
        group: str | int | None = None,
    ) -> Record:
        """Takes the columns of a pandas or polars data frame, the variables of an xarray dataset over its
        one dimension, or a dict of arrays. The times are a column `t` or `time`, an index or a coordinate
        of that name, or an index or the one column of dates, which become the model's unit of time.

        >>> latens.Record.from_frame({"t": [0, 1], "u": [1, 1], "q": [0, 0.1]}, model)
        <latens.Record 'record', 2 samples, t from 0 to 1; y: q; u: u>
        """
        columns = _columns(frame)
        labels = columns.get((map or {}).get("group", "group"))
        if group is None and labels is not None and model is not None and model._raw.asks_for_groups:
            group = _label(name, labels)
        record = cls(name=name, step=step, group=group)
        for target, column in (map or {}).items():
            if column and column not in columns:
                had = f"it has: {', '.join(columns)}"
                raise RecordError(f"the mapping {target}={column} names a column that {name} does not have; {had}")
        dated = {n: _times(v)[0] for n, v in columns.items() if v.dtype.kind in "mM"}
        clock = (map or {}).get("t", next((c for c in columns if c.lower() in _TIMES), ""))
        if clock in columns and clock not in dated and columns[clock].dtype.kind not in "fiub":
            dated[clock] = _times(columns[clock])[0]
        record._sort(list(columns), lambda n: _column(n, columns[n]), dated, map or {}, model)
        return record

    def _sort(
        self,
        columns: list[str],
        values: Callable[[str], Array],
        dated: Mapping[str, Array],
        map: Mapping[str, str],
        model: Model | None,
    ) -> None:
        """Puts columns where they belong, under the model's names; `dated` are those of dates."""
        renamed = {column: name for name, column in map.items()}
        named = next((c for c in columns if c.lower() in _TIMES), "")
        only = next(iter(dated)) if len(dated) == 1 else ""
        clock = map.get("t", map.get("time", named or only))
        for column in columns:
            name = renamed.get(column, column)
            if column == clock:
                self._dated = column in dated
                self._t = dated[column] if self._dated else values(column)
            elif column.lower() in _TIMES and not clock:
                continue  # not to be looked at
            elif name.startswith(_TRUTH):
                self._truth[name.removeprefix(_TRUTH)] = values(column)
            else:
                try:
                    converted = values(column)
                except RecordError:  # text: a fault once a model asks for it, and then the reader's
                    continue
                if model is None or name in model.measured:
                    self._y[name] = converted
                else:
                    (self._u if name in model.inputs else self._rest)[name] = converted
        self._check_lengths()

    def _check_lengths(self) -> None:
        every = [(name, len(values)) for name, values in self._arrays()]
        for name, length in every[1:]:
            if length != every[0][1]:
                raise RecordError(
                    f"{self.name}: {every[0][0]} has {every[0][1]} values and {name} has {length}; "
                    "the signals of one record must have the same length"
                )

    @property
    def t(self) -> Array:
        """The times; counted where the record has none and a step is known.

        >>> latens.Record(y={"q": [0, 1, 2]}, step=0.5).t.tolist()
        [0.0, 0.5, 1.0]
        """
        if self._t is not None:
            return self._t
        if self.step is None:
            raise RecordError(f"{self.name} has no times; give `step`, or a model with one")
        return np.arange(len(self), dtype=np.float64) * self.step

    @property
    def y(self) -> dict[str, Array]:
        """Measurements by name.

        >>> record.y["q"].shape
        (401,)
        """
        return self._y

    @property
    def u(self) -> dict[str, Array]:
        """Inputs by name.

        >>> list(record.u)
        ['u']
        """
        return self._u

    @property
    def truth(self) -> dict[str, Array]:
        """True states by name.

        >>> list(record.truth)
        ['q', 'v']
        """
        return self._truth

    @property
    def file(self) -> str | None:
        """The file it was read from.

        >>> latens.Record.from_file("record.csv").file
        'record.csv'
        """
        return None if self._origin is None else self._origin[0]

    def __len__(self) -> int:
        every = [self._t, *self._y.values(), *self._u.values(), *self._truth.values()]
        return next((len(column) for column in every if column is not None), 0)

    def _arrays(self) -> list[tuple[str, Array]]:
        times = [] if self._t is None else [("t", self._t)]
        truth = [(_TRUTH + name, values) for name, values in self._truth.items()]
        return [*times, *self._u.items(), *self._y.items(), *truth]

    def _source(self, model: _latens.Model) -> _latens.Source:
        """What a model takes from it."""
        if self._table is not None:
            source = _latens.Source.of_table(model, self._table, self._map, self.step)
        else:
            arrays = [*self._arrays(), *self._rest.items()]
            source = _latens.Source.of_arrays(model, self.name, arrays, self.step, self._dated, self._origin)
        if self.group is not None:
            source.group = self.group
        return source

    def _driving(self, fit: _latens.Fit) -> _latens.Source:
        """The inputs alone."""
        if self._table is not None:
            return _latens.Source.driving_table(fit, self._table, self._map, self.step)
        arrays = [*self._arrays(), *self._rest.items()]
        return _latens.Source.driving_arrays(fit, self.name, arrays, self.step, self._dated)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None, "_map": []}

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame: t, inputs, measurements, `truth_…`.

        >>> record.to_pandas().columns.tolist()
        ['t', 'u', 'q', 'truth_q', 'truth_v']
        """
        return to_pandas(self._arrays())

    def to_polars(self) -> polars.DataFrame:
        """A data frame: t, inputs, measurements, `truth_…`.

        >>> record.to_polars().shape
        (401, 5)
        """
        return to_polars(self._arrays())

    def to_xarray(self) -> xarray.Dataset:
        """A dataset over the coordinate `t`.

        >>> dict(record.to_xarray().sizes)
        {'t': 401}
        """
        return to_xarray(self._arrays(), {})

    def _parts(self) -> list[str]:
        parts = []
        for kind, names in (("y", self._y), ("u", self._u), ("truth", self._truth)):
            if names:
                parts.append(f"{kind}: {', '.join(names)}")
        return parts

    def __repr__(self) -> str:
        span = ""
        if self._t is not None and len(self._t) > 1:
            span = f", t from {self._t[0]:g} to {self._t[-1]:g}"
        return f"<latens.Record {self.name!r}, {len(self)} samples{span}; {'; '.join(self._parts())}>"

    def _repr_html_(self) -> str:
        rows = []
        for name, values in self._arrays():
            seen = values[np.isfinite(values)]
            low, high = (f"{seen.min():.4g}", f"{seen.max():.4g}") if len(seen) else ("", "")
            missing = f"{1 - len(seen) / max(len(values), 1):.1%}" if len(seen) < len(values) else ""
            rows.append((name, low, high, missing))
        return table_html(f"{self.name}, {len(self)} samples", ("", "from", "to", "missing"), rows)


#: What is taken for a record: one, a file, a data frame or dataset, a dict of arrays.
RecordLike = Any


def as_record(given: RecordLike, model: Model, map: Mapping[str, str] | None = None) -> Record:
    """A record from what a user has."""
    if isinstance(given, Record):
        if map:
            raise RecordError(f"{given.name} has its names already; give map= where the record is made")
        return given
    if isinstance(given, (str, os.PathLike)):
        return Record.from_file(given, model, map=map)
    return Record.from_frame(given, model, map=map)


def as_records(given: Any, model: Model, map: Mapping[str, str] | None = None) -> list[Record]:
    """One or several."""
    several = given if isinstance(given, (list, tuple)) else [given]
    return [as_record(record, model, map) for record in several]


def to_pandas(columns: list[tuple[str, Array]]) -> pandas.DataFrame:
    import pandas

    frame: pandas.DataFrame = pandas.DataFrame(dict(columns))
    return frame


def to_polars(columns: list[tuple[str, Array]]) -> polars.DataFrame:
    import polars

    return polars.DataFrame(dict(columns))


def to_xarray(columns: list[tuple[str, Array]], units: Mapping[str, str]) -> xarray.Dataset:
    import xarray

    by_name = dict(columns)
    times = by_name.pop("t", None)

    def attributes(name: str) -> dict[str, str]:
        unit = units.get(name.removeprefix(_TRUTH).split(".")[0])
        return {"units": unit} if unit else {}

    variables = {name: ("t", values, attributes(name)) for name, values in by_name.items()}
    return xarray.Dataset(variables, coords={} if times is None else {"t": times})


def table_html(title: str, head: tuple[str, ...], rows: Sequence[Sequence[str]]) -> str:
    """A small table for notebooks."""
    from html import escape

    cells = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<b>{escape(title)}</b><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _label(name: str, labels: npt.NDArray[Any]) -> str:
    """The one label of a record's group."""
    every = list(dict.fromkeys(_text(label) for label in labels))
    if len(every) != 1:
        raise RecordError(f"{name} has the groups {', '.join(every)}; a record belongs to one group: cut it in parts")
    return every[0]


def _text(label: Any) -> str:
    """1.0 of a column of numbers is group 1."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)


def _column(name: str, values: Signal) -> Array:
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as e:
        raise RecordError(f"{name} does not hold numbers: {e}") from None
    if array.ndim != 1:
        raise RecordError(f"{name} has {array.ndim} dimensions; a signal has one, a value for each sample")
    return array


def _times(values: Signal) -> tuple[Array, bool]:
    """Times, and whether they were dates: then they are in seconds from the first."""
    array = _of_pandas(values) if _has_zone(values) else np.asarray(values)
    if array.dtype.kind in "OU":
        array = _dates(array)
    if array.dtype.kind == "M":
        array = array - array[~np.isnat(array)][:1]
    if array.dtype.kind == "m":
        return _column("t", array / np.timedelta64(1, "s")), True
    return _column("t", array), False


def _dates(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Of `datetime` objects or texts, as numpy has them."""
    first = next(iter(array), None)
    if isinstance(first, datetime):
        utc = [d.astimezone(timezone.utc).replace(tzinfo=None) if d.tzinfo else d for d in array]
        return np.array(utc, dtype="datetime64[ns]")
    if isinstance(first, str):
        seconds = _latens.instants([str(cell) for cell in array])
        if seconds is None:
            raise RecordError(
                f"t is text that is no date, or can be read in two ways ({first!r}, …); write 2026-11-16 10:33:40"
            )
        return np.round(seconds * 1e9).astype("timedelta64[ns]")
    return array


def _has_zone(values: Any) -> bool:
    return getattr(getattr(values, "dtype", None), "tz", None) is not None


def _columns(frame: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of a frame, by name."""
    kind = type(frame).__module__.split(".")[0]
    if kind == "xarray":
        every = {str(k): v for k, v in {**frame.coords, **frame.data_vars}.items() if v.ndim == 1}
        given = {name: values.to_numpy() for name, values in every.items()}
    elif kind == "polars":
        given = {name: frame[name].to_numpy() for name in frame.columns}
    elif kind == "pandas":
        given = {str(name): _of_pandas(frame[name]) for name in frame.columns}
        index = frame.index
        dated = type(index).__name__ in ("DatetimeIndex", "TimedeltaIndex")
        if (index.name in _TIMES or dated) and not any(n.lower() in _TIMES for n in given):
            given = {"t": _of_pandas(index), **given}
    elif isinstance(frame, Mapping):
        given = {str(name): np.asarray(values) for name, values in frame.items()}
    else:
        raise TypeError(
            f"a {type(frame).__name__} is no record; give a latens.Record, a file, a pandas or polars "
            "data frame, an xarray dataset or a dict of arrays"
        )
    return given


def _of_pandas(series: Any) -> npt.NDArray[Any]:
    if _has_zone(series):
        zoned = series.dt if hasattr(series, "dt") else series
        zoned = zoned.tz_convert("UTC")
        series = (zoned.dt if hasattr(zoned, "dt") else zoned).tz_localize(None)
    if getattr(series.dtype, "na_value", None) is not None and series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())
