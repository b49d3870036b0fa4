from __future__ import annotations

import base64
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import latens


def test_what_a_fit_has(fit: latens.Fit, record: latens.Record, other: latens.Record) -> None:
    v = fit.states["v"]
    assert len(v) == len(record) and v.unit == "m/s" and (v.std > 0).all()
    assert np.array_equal(np.asarray(v), v.mean)
    assert v.truth is not None and np.sqrt(np.mean((v.mean - v.truth) ** 2)) < 0.02
    gain = fit.unknowns["gain"]
    assert abs(gain.value - 0.37) < 5 * gain.std + 0.02 and gain.unit == "m/s²/V"
    assert float(gain) == gain.value
    assert fit.scores["nrmse"]["Slide"]["q"] == fit.records[0].scores["nrmse"]["q"] < 0.02
    # both records have the model's name
    assert set(fit.scores["rmse"]) == {"Slide", "Slide (test)"}
    assert (fit.seed, fit.solver, fit.stopped) == (1, "batch", False) and fit.seconds > 0
    assert fit.settings["solver"] == "batch" and fit.model.text == fit.model.text
    assert list(fit.to_pandas().columns)[:3] == ["t", "u", "q"]
    assert fit.to_polars().height == len(record)
    assert "in short" in fit.summary() and repr(fit) == fit.summary()
    assert fit.records[1].role == "test" and fit.records[1].states == {}


def test_a_fit_pickles_saves_and_loads_bit_for_bit(fit: latens.Fit, other: latens.Record, tmp_path: Path) -> None:
    fit.save(tmp_path / "run")
    before = fit.predict(other, warmup=30)
    for again in (pickle.loads(pickle.dumps(fit)), latens.load(tmp_path / "run")):
        assert type(again) is latens.Fit and again.facts == fit.facts
        assert np.array_equal(again.states["v"].mean, fit.states["v"].mean)
        after = again.predict(other, warmup=30)
        assert np.array_equal(after.states["v"].mean, before.states["v"].mean)
        assert np.array_equal(after.y["q"].std, before.y["q"].std)
        again.save(tmp_path / "run", force=True)
    with pytest.raises(latens.FileError, match="holds a fit already; .* with force="):
        fit.save(tmp_path / "run")


def test_predict_estimate_simulate(fit: latens.Fit, slide: latens.Model, other: latens.Record) -> None:
    prediction = fit.predict(other, warmup=30)
    assert len(prediction) == len(other) - 30 and prediction.scores["nrmse"]["q"] < 0.1
    assert prediction.t[0] == other.t[30] and set(prediction.y) == {"q"}
    estimate = fit.estimate(other)
    assert len(estimate) == len(other) and estimate.facts["consistency"] > 0
    error = np.abs(estimate.states["v"].mean - other.truth["v"])
    assert error.mean() < 0.02
    t = np.arange(0, 1, 0.005)
    planned = fit.simulate({"u": np.ones_like(t)}, t, start={"q": 1.0})
    assert planned.states["q"].mean[0] == 1.0 and len(planned.y["q"]) == len(t)
    assert "predicted states q, v" in repr(planned)
    # without a start it begins where the fit did
    assert fit.simulate(other).states["v"].mean[0] == fit.states["v"].free_run[0]
    with pytest.raises(latens.SettingError, match="is driven by u; give u="):
        fit.simulate()
    with pytest.raises(latens.SettingError, match="no unknown constant"):
        fit.predict(other, adapt="gaim")
    with pytest.raises(latens.SettingError, match="take fewer"):
        fit.predict(other, warmup=10_000)


def test_the_learned_function(fit: latens.Fit) -> None:
    friction = fit.network("friction")
    speeds = np.linspace(-0.2, 0.2, 7)
    found = friction(v=speeds)
    assert found.mean.shape == found.std.shape == (7,) and (found.std > 0).all()
    assert np.array_equal(np.asarray(found), found.mean)
    truth = 2 * speeds + 0.2 * np.tanh(speeds / 0.05)
    assert np.abs(found.mean - truth)[found.visited].max() < 0.15
    grid = friction(speeds[:, None] * np.ones(3))
    assert grid.mean.shape == (7, 3) and np.array_equal(grid.mean[:, 1], found.mean)
    assert friction(0.1).mean.shape == () and not friction(1e6).visited
    assert np.array_equal(fit.network()(0.1)["output"].mean, friction(v=0.1).mean)
    with pytest.raises(latens.SettingError, match=r"called as friction\(v\)"):
        friction(w=1)
    with pytest.raises(latens.SettingError, match="there are: friction"):
        fit.network("gate")


def test_a_network_of_several_arguments_and_outputs() -> None:
    model = latens.Model(
        time={"step": 0.05},
        states={"x": {"derivative": "pull(x, y).a", "start": 1}, "y": {"derivative": "pull(x, y).b", "start": 0}},
        networks={"pull": {"layers": ["3 tanh"], "outputs": ["a", "b"]}},
        measurements={"x": "x", "y": "y"},
        truth={"x": "y", "y": "-x"},
        simulation={"steps": 100},
    )
    fit = model.fit(model.simulate(), passes=2, progress=False)
    found = fit.network("pull")(x=[0.0, 0.5], y=0.2)
    assert found.mean.shape == (2, 2) and found.outputs == ("a", "b")
    assert np.array_equal(found["b"].std, found.std[:, 1])
    with pytest.raises(KeyError, match="there are: a, b"):
        found["c"]
    step = np.stack([found.mean[:, 0], found.mean[:, 1]])
    assert np.abs(step - [[0.2, 0.2], [0.0, -0.5]]).max() < 0.3


def test_draws_are_those_of_the_run(fit: latens.Fit) -> None:
    draws = fit.samples
    assert draws["gain"].shape == (64,)
    assert draws["friction.layer1.weight"].shape == (64, 4, 1) and draws["friction.layer1.bias"].shape == (64, 4)
    assert abs(draws["gain"].mean() - fit.unknowns["gain"].value) < fit.unknowns["gain"].std
    spread = np.sqrt(np.mean((draws["gain"] - fit.unknowns["gain"].value) ** 2))
    assert 0.6 < spread / fit.unknowns["gain"].std < 1.6
    for name, state in fit.states.items():
        assert draws[name].shape == (64, len(state))
        away = np.sqrt(np.mean((draws[name] - state.mean) ** 2, axis=0)) / state.std
        assert 0.5 < away.min() and away.max() < 2


def test_warnings_are_pythons(slide: latens.Model, record: latens.Record) -> None:
    odd = latens.Record(t=record.t * 2, y=record.y, u=record.u)
    with pytest.warns(latens.FitWarning, match="the step of record is 0.01000 s, the model's 0.005000 s"):
        fit = slide.fit(odd, passes=1, progress=False)
    assert any("the step of record" in w for w in fit.warnings)
    assert [w["kind"] for w in fit.facts["warnings"]][0] == "step"


def test_python_runs_on_during_a_fit(slide: latens.Model, record: latens.Record) -> None:
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1
            done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    fit = slide.fit(record, progress=False, seed=2)
    after = counted[0]
    done.set()
    thread.join()
    # a step a millisecond, where the fit would let nobody in there would be none
    assert after - before > 100 * fit.seconds


def test_two_fits_at_once(slide: latens.Model, record: latens.Record) -> None:
    alone = [slide.fit(record, seed=s, passes=2, progress=False) for s in (1, 2)]
    found: dict[int, latens.Fit] = {}

    def learn(seed: int) -> None:
        found[seed] = slide.fit(record, seed=seed, passes=2, progress=False)

    threads = [threading.Thread(target=learn, args=(s,)) for s in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, s in enumerate((1, 2)):
        assert np.array_equal(found[s].states["v"].mean, alone[k].states["v"].mean)


def test_threads_do_not_matter(slide: latens.Model, record: latens.Record, fit: latens.Fit) -> None:
    single = slide.fit(record, threads=1, progress=False)
    assert np.array_equal(single.states["v"].mean, fit.states["v"].mean)
    assert single.facts["threads"] == 1


def test_a_listener_hears_and_may_stop(slide: latens.Model, record: latens.Record) -> None:
    heard: list[latens.Progress] = []

    def listen(progress: latens.Progress) -> bool:
        heard.append(progress)
        return progress.number < 2 or progress.cost != progress.cost

    fit = slide.fit(record, progress=listen)
    assert heard and heard[-1].seconds > 0 and fit.stopped
    further = fit.resume(progress=False)
    assert not further.stopped
    whole = slide.fit(record, progress=False)
    assert abs(further.unknowns["gain"].value - whole.unknowns["gain"].value) < 1e-3

    def fail(progress: latens.Progress) -> None:
        raise LookupError("my own mistake")

    with pytest.raises(LookupError, match="my own mistake"):
        slide.fit(record, progress=fail)


def test_what_was_kept_leads_to_the_same_bits(slide: latens.Model, record: latens.Record, tmp_path: Path) -> None:
    place = tmp_path / "run"
    whole = slide.fit(record, passes=4, simplify=False, progress=False)

    def interrupt(p: latens.Progress) -> bool:
        with pytest.raises(latens.FileError, match="another process is writing"):
            slide.fit(record, passes=1, progress=False, checkpoint=place)
        return p.number < 2 or p.cost != p.cost

    stopped = slide.fit(record, passes=4, simplify=False, progress=interrupt, checkpoint=place)
    assert stopped.stopped and os.listdir(tmp_path) == ["run.unfinished"]
    fit = slide.fit(record, passes=4, simplify=False, progress=False, checkpoint=place)
    assert os.listdir(tmp_path) == []
    assert fit.facts["passes"] == whole.facts["passes"]
    fit.save(place)
    whole.save(tmp_path / "whole")
    files = [folder / "weights.safetensors" for folder in (place, tmp_path / "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_fit_that_is_finished_does_not_go_on(fit: latens.Fit) -> None:
    with pytest.raises(latens.SettingError, match="this fit is finished"):
        fit.resume(progress=False)


def test_progress_in_a_terminal(slide: latens.Model, record: latens.Record, capsys: pytest.CaptureFixture[str]) -> None:
    slide.fit(record, passes=2, progress=True)
    assert "stage" in capsys.readouterr().err
    slide.fit(record, passes=2)
    assert capsys.readouterr().err == ""


def test_figure_and_page(fit: latens.Fit, tmp_path: Path) -> None:
    import matplotlib.figure

    figure = fit.plot()
    assert isinstance(figure, matplotlib.figure.Figure) and len(figure.axes) == 4
    figure.savefig(tmp_path / "fit.png")
    assert fit._repr_html_().startswith("<img") and "unknown constants" in fit._repr_html_()
    fit.report(tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()
    with pytest.raises(latens.SettingError, match="counted from 0"):
        fit.plot(3)
    for ending, head in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        fit.figure("equation", tmp_path / f"equation{ending}")
        assert (tmp_path / f"equation{ending}").read_bytes().startswith(head)
    with pytest.raises(latens.SettingError, match="ends in .svg, .pdf or .png"):
        fit.figure("equation", tmp_path / "equation.gif")
    with pytest.raises(latens.SettingError, match="there is no figure `gate`"):
        fit.figure("gate", tmp_path / "gate.svg")


def test_a_notebook_without_matplotlib_has_a_figure_too(
    fit: latens.Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = fit._repr_html_()
    # the report's own figures, and a constant to two digits of its deviation
    for figure in ("equation", "states"):
        assert base64.b64encode(fit._raw.figure(figure).encode()).decode() in shown
    gain = fit.constants["gain"]
    decimals = 1 - int(np.floor(np.log10(gain.std)))
    assert f"<td>{gain.value:.{decimals}f}</td><td>± {gain.std:.{decimals}f}</td>" in shown
    with pytest.raises(ImportError):
        fit.plot()


def test_a_stream_learns_on(fit: latens.Fit, other: latens.Record, tmp_path: Path) -> None:
    stream = fit.stream(learn=True, gate=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(100):
            estimate = stream.step({"q": other.y["q"][k]}, {"u": other.u["u"][k]})
        stream.lose()
        estimate = stream.step({}, {"u": 0.0})
    assert np.isnan(estimate.innovation["q"]) and estimate.std["v"] > 0 and stream.samples == 101
    assert abs(estimate.t - 101 * 0.005) < 1e-9 and "learning" in repr(stream)
    assert stream.unknowns["gain"].value != fit.unknowns["gain"].value
    with pytest.raises(latens.SettingError, match="there are: q"):
        stream.step({"x": 1.0}, {"u": 0.0})
    with pytest.raises(latens.SettingError, match="the inputs are: u"):
        stream.step({"q": 1.0})
    with pytest.raises(latens.RecordError):
        stream.step({"q": 1.0}, {"u": 0.0}, t=0.0)
