from __future__ import annotations

import copy
import pickle

import pytest
from conftest import SLIDE

import latens


def test_a_model_without_a_file(slide: latens.Model) -> None:
    model = latens.Model(
        name="Slide",
        time={"unit": "s", "step": 0.005},
        inputs={"u": {"unit": "V"}},
        states={
            "q": {"derivative": "v", "start": 0, "unit": "m"},
            "v": {"derivative": "gain*u - friction(v)", "start": 0, "unit": "m/s"},
        },
        networks={"friction": ["4 tanh"]},
        unknowns={"gain": {"guess": 0.3, "scale": 0.1, "positive": True, "unit": "m/s²/V"}},
        measurements={"q": "q"},
        truth={"gain": 0.37, "v": "gain*u - 2*v - 0.2*tanh(v/0.05)"},
        simulation={"steps": 400, "inputs": {"u": "2*sin(3*t) + sin(7*t)"}},
    )
    run, theirs = model.simulate(seed=3, noise=0.01), slide.simulate(seed=3, noise=0.01)
    assert (run.y["q"] == theirs.y["q"]).all()
    assert model.states == ["q", "v"] and model.hidden == ["v"] and model.measured == ["q"]
    assert model.inputs == ["u"] and model.unknowns == ["gain"] and model.networks == {"friction": ["v"]}
    assert model.units == {"t": "s", "q": "m", "v": "m/s", "u": "V", "gain": "m/s²/V"}


def test_shorthands_and_odd_values() -> None:
    model = latens.Model(
        states={"x": "-k*x + f(x)"},
        networks={"f": {"layers": ["3 tanh"], "skip": True}},
        constants={"k": "2*pi"},
        measurements={"y": {"value": "x", "unit": '"µ\\'}},
        fit={"passes": 2, "measurement_variance": {"y": 1e-20}},
    )
    assert model.units["y"] == '"µ\\'
    with pytest.raises(TypeError, match="a model is made of"):
        latens.Model(states={"x": "x"}, measurements={"x": "x"}, fit={"passes": object()})


def test_mistakes_point_into_the_text() -> None:
    with pytest.raises(latens.ModelError, match="unknown name `z`") as caught:
        latens.Model(states={"x": "z", "y": "w"}, measurements={"x": "x"})
    error = caught.value
    assert (error.line, error.column) == (3, 15) and error.file == "model"
    assert [m[0] for m in error.mistakes] == [3, 6]
    assert "derivative = \"z\"" in str(error)


def test_settings_are_those_of_the_file(slide: latens.Model, record: latens.Record) -> None:
    with pytest.raises(latens.ModelError, match="did you mean `passes`"):
        slide.fit(record, pases=3)  # type: ignore[call-arg]
    with pytest.raises(latens.ModelError, match="it is called `passes` now"):
        slide.fit(record, epochs=3)  # type: ignore[call-arg]
    with pytest.raises(latens.ModelError, match="`speed` is not a state"):
        slide.fit(record, process_variance={"speed": 1})
    with pytest.raises(latens.SettingError, match="there is no solver `magic`; there are: batch, joint"):
        slide.fit(record, solver="magic")  # type: ignore[arg-type]
    with pytest.raises(latens.ModelError):
        slide.fit(record, passes=-1)
    with pytest.raises(latens.SettingError, match="do not go together"):
        slide.fit(record, validate=record, validate_tail=0.2)
    misspelt = latens.Model.from_string(SLIDE + '\n[fit]\nsolver = "bacth"\n')
    with pytest.raises(latens.ModelError, match="did you mean `batch`"):
        misspelt.fit(record)
    with_settings = latens.Model.from_string(SLIDE + '\n[fit]\npasses = 2\nsolver = "joint"\nseed = 7\n')
    fit = with_settings.fit(record, progress=False, passes=1)
    assert (fit.solver, fit.seed, fit.settings["passes"]) == ("joint", 7, 1)


def test_a_rival_without_a_fit_says_so(slide: latens.Model, record: latens.Record) -> None:
    with pytest.raises(latens.SettingError, match="leaves no fit"):
        slide.fit(record, solver="pr-ssm", progress=False)


def test_models_pickle_compare_and_show_themselves(slide: latens.Model) -> None:
    for again in (pickle.loads(pickle.dumps(slide)), copy.deepcopy(slide)):
        assert again == slide and again.text == SLIDE and hash(again) == hash(slide)
        assert repr(again) == repr(slide)
    assert repr(slide) == (
        "<latens.Model 'Slide': states q, v; hidden v; measured q; inputs u; to learn friction(v), gain>"
    )
    assert "hidden state" in slide._repr_html_() and "<pre>" in slide._repr_html_()


@pytest.mark.parametrize("name", latens.systems.names())
def test_every_built_in_system_has_a_function(name: str) -> None:
    model = getattr(latens.systems, name.replace("-", "_"))()
    assert model == latens.systems.load(name)
    told = (getattr(latens.systems, name.replace("-", "_")).__doc__ or "").partition(">>>")[0]
    assert model.description == " ".join(told.split())
    with pytest.raises(KeyError, match=name):
        latens.systems.load("nothing")


def test_simulation(slide: latens.Model) -> None:
    record = slide.simulate(steps=10, noise={"q": "1%"}, start={"v": 1}, process_noise=0.1)
    assert len(record) == 11 and record.truth["v"][0] == 1
    with pytest.raises(latens.SettingError, match="did you mean `v`|there are: q, v"):
        slide.simulate(start={"w": 1})
    with pytest.raises(latens.SettingError, match="held-out"):
        slide.simulate(held_out=1)
