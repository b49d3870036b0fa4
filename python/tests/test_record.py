from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import latens


def same(a: latens.Record, b: latens.Record) -> None:
    assert np.array_equal(a.t, b.t)
    for mine, yours in ((a.y, b.y), (a.u, b.u), (a.truth, b.truth)):
        assert mine.keys() == yours.keys()
        assert all(np.array_equal(mine[k], yours[k], equal_nan=True) for k in mine)


def test_arrays_are_not_copied() -> None:
    t, q = np.arange(5.0), np.ones(5)
    record = latens.Record(t=t, y={"q": q})
    assert record.t is t and record.y["q"] is q
    assert latens.Record(t=[0, 1], y={"q": [1, 2]}).y["q"].dtype == np.float64


def test_frames_of_all_kinds(slide: latens.Model, record: latens.Record) -> None:
    pandas, dataset = record.to_pandas(), record.to_xarray()
    assert list(pandas.columns) == ["t", "u", "q", "truth_q", "truth_v"]
    assert dataset.sizes == {"t": len(record)}
    indexed = pandas.set_index("t")
    for frame in (pandas, indexed, record.to_polars(), dataset, dict(pandas)):
        same(latens.Record.from_frame(frame, slide), record)
    fits = [slide.fit(f, passes=1, progress=False) for f in (record, pandas, record.to_polars(), dataset)]
    assert all(np.array_equal(f.states["v"].mean, fits[0].states["v"].mean) for f in fits)
    arrow = pandas.convert_dtypes()
    same(latens.Record.from_frame(arrow, slide), record)


def test_columns_with_other_names(slide: latens.Model, tmp_path: Path, record: latens.Record) -> None:
    frame = record.to_pandas().rename(columns={"q": "position", "t": "seconds"})
    frame["note"] = "text"
    mapped = latens.Record.from_frame(frame, slide, map={"q": "position", "t": "seconds"})
    assert np.array_equal(mapped.y["q"], record.y["q"]) and np.array_equal(mapped.t, record.t)
    fit = slide.fit(mapped, passes=1, progress=False)
    frame.to_csv(tmp_path / "log.csv", index=False)
    read = latens.Record.from_file(tmp_path / "log.csv", map={"q": "position", "t": "seconds"})
    assert np.array_equal(slide.fit(read, passes=1, progress=False).states["v"].mean, fit.states["v"].mean)
    assert np.array_equal(read.y["q"], record.y["q"])
    with pytest.raises(latens.RecordError, match="no column for measurement q"):
        slide.fit(frame)
    with pytest.raises(latens.RecordError, match="the mapping q=place names a column that"):
        latens.Record.from_frame(frame, map={"q": "place"})
    with pytest.raises(latens.RecordError, match="the mapping q=place names a column that"):
        slide.fit(latens.Record.from_file(tmp_path / "log.csv", map={"q": "place"}))
    ignored = latens.Record.from_frame(record.to_pandas(), slide, map={"t": ""})
    assert slide.fit(ignored, passes=1, progress=False).t[-1] == pytest.approx(record.t[-1])


def test_missing_measurements_dates_and_steps(slide: latens.Model) -> None:
    when = pd.date_range("2026-01-01", periods=50, freq="10ms")
    q = np.sin(np.arange(50) / 5)
    q[::3] = np.nan
    frame = pd.DataFrame({"time": when, "q": q, "u": 1.0})
    record = latens.Record.from_frame(frame, slide)
    assert np.allclose(record.t, np.arange(50) * 0.01)
    assert slide.check(record)["records"][0]["columns"][2]["missing"] == 17
    nulls = pl.DataFrame({"t": np.arange(3.0), "q": [1.0, None, 2.0], "u": [1, 1, 1]})
    assert np.isnan(latens.Record.from_frame(nulls, slide).y["q"][1])
    counted = latens.Record(y={"q": q}, u={"u": np.ones(50)}, step=0.5)
    assert counted.t[-1] == 24.5
    with pytest.raises(latens.RecordError, match="give `step`"):
        latens.Record(y={"q": q}).t


def test_what_is_no_record(slide: latens.Model) -> None:
    t = np.arange(3.0)
    with pytest.raises(TypeError, match="a set is no record"):
        slide.fit({1, 2})
    with pytest.raises(latens.RecordError, match="q has 2 dimensions"):
        latens.Record(t=t, y={"q": np.ones((3, 2))})
    with pytest.raises(latens.RecordError, match="q does not hold numbers"):
        latens.Record(t=t, y={"q": ["a", "b", "c"]})
    with pytest.raises(latens.RecordError, match="mine: sample 2 of u: the input is missing"):
        slide.fit(latens.Record(t=t, y={"q": t}, u={"u": [1, np.nan, 1]}, name="mine"))
    with pytest.raises(latens.RecordError, match="must have the same length"):
        slide.fit(latens.Record(t=t, y={"q": t}, u={"u": [1, 2]}))


def test_records_pickle_with_their_file(slide: latens.Model, tmp_path: Path, record: latens.Record) -> None:
    path = tmp_path / "log.csv"
    record.to_pandas().to_csv(path, index=False)
    read = latens.Record.from_file(path, slide)
    before = slide.fit(read, passes=1, progress=False)
    again = pickle.loads(pickle.dumps(read))
    path.unlink()
    same(again, read)
    after = slide.fit(again, passes=1, progress=False)
    assert after.facts["records"] == before.facts["records"]
    assert again.file == str(path)


def test_records_show_themselves(record: latens.Record) -> None:
    assert repr(record) == (
        "<latens.Record 'Slide', 401 samples, t from 0 to 2; y: q; u: u; truth: q, v>"
    )
    assert "<td>truth_v</td>" in record._repr_html_()


def test_a_dataset_keeps_units(fit: latens.Fit) -> None:
    dataset = fit.records[0].to_xarray()
    assert isinstance(dataset, xr.Dataset) and dataset["v.smoothed"].attrs["units"] == "m/s"


def test_dates_become_the_models_unit_of_time() -> None:
    model = latens.Model.from_string(
        """
        [time]
        unit = "h"
        step = 0.5
        [states]
        q = { derivative = "-k*q + u", start = 1 }
        [inputs]
        u = {}
        [unknowns]
        k = { guess = 1 }
        [measurements]
        q = "q"
        """
    )
    values = {"q": [1.0, 0.6, 0.4], "u": [0.0, 0.0, 0.0]}
    utc = pd.date_range("2026-11-16 10:00", periods=3, freq="30min", tz="UTC")
    local, plain = utc.tz_convert("Europe/Berlin"), utc.tz_localize(None)
    text = [f"{t:%d.%m.%Y %H:%M}" for t in plain]
    frames = [
        pd.DataFrame({"t": utc, **values}),
        pd.DataFrame({"when": local, **values}),
        pd.DataFrame(values, index=local),
        pd.DataFrame(values, index=plain - plain[0]),
        pl.DataFrame({"time": list(plain), **values}),
        {"t": plain.to_numpy(), **values},
        {"t": list(utc.to_pydatetime()), **values},
        {"t": text, **values},
    ]
    for frame in frames:
        record = latens.Record.from_frame(frame, model)
        assert record.t.tolist() == [0.0, 1800.0, 3600.0], frame
        again = pickle.loads(pickle.dumps(record))
        for given in (frame, record, again):
            assert "3 samples over 1.000 h" in str(model.check(given))
    assert latens.Record(t=plain, y={"q": values["q"]}).t[-1] == 3600.0
    with pytest.raises(latens.RecordError, match="can be read in two ways"):
        latens.Record.from_frame({"t": ["05/06/2026", "06/07/2026", "07/08/2026"], **values}, model)


def test_a_table_says_what_it_has(slide: latens.Model, record: latens.Record) -> None:
    frame = record.to_pandas().rename(columns={"q": "position"})
    with pytest.raises(latens.RecordError, match="no column for measurement q.*it has: .*position.*map="):
        slide.fit(frame)
    fit = slide.fit(frame, map={"q": "position"}, passes=1, progress=False)
    assert np.array_equal(fit.estimate(frame, map={"q": "position"}).t, fit.estimate(record).t)
    assert slide.check(frame, map={"q": "position"})["states"]
    with pytest.raises(latens.RecordError, match="has its names already"):
        slide.fit(record, map={"q": "position"})
    with pytest.raises(latens.RecordError, match="t has 3 values and q has 2; .* the same length"):
        latens.Record(t=[0, 1, 2], y={"q": [0, 1]})
