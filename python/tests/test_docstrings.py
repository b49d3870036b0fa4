"""Every public method has an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import types
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SLIDE

import latens

pytest.importorskip("sklearn")
from latens.sklearn import HiddenDynamics  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::latens.FitWarning")

ERRORS = (Exception, Warning)


def things() -> Iterator[tuple[str, Any]]:
    """What users call, by name."""
    public = {name: getattr(latens, name) for name in latens.__all__ if not name.startswith("_")}
    public["sklearn.HiddenDynamics"] = HiddenDynamics
    public |= {f"systems.{n}": f for n, f in vars(latens.systems).items() if inspect.isfunction(f)}
    for name, thing in public.items():
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and not issubclass(thing, ERRORS) and thing is not latens.Settings:
            yield name, thing
            bases = [base for base in thing.__mro__ if base.__module__.startswith("latens")]
            for part, value in {k: v for base in reversed(bases) for k, v in vars(base).items()}.items():
                kinds = (types.FunctionType, property, cached_property, classmethod, staticmethod)
                if not part.startswith("_") and isinstance(value, kinds):
                    yield f"{name}.{part}", value


THINGS = dict(things())


@pytest.fixture(scope="module")
def names(
    slide: latens.Model, record: latens.Record, other: latens.Record, fit: latens.Fit
) -> Iterator[dict[str, Any]]:
    """What an example finds: a model, two records of it, and a fit, in which one search for formulas serves all."""
    search, found = latens.Fit.distill, {}

    def once(fit: latens.Fit, **asked: Any) -> latens.Distillation:
        if repr(asked) not in found:
            found[repr(asked)] = search(fit, **asked)
        return found[repr(asked)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latens.Fit, "distill", once)
        yield {"latens": latens, "np": np, "model": slide, "record": record, "other": other, "fit": fit}


@pytest.mark.parametrize("name", THINGS)
def test_the_example_runs(name: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slide.toml").write_text(SLIDE)
    names["record"].to_pandas().to_csv("record.csv", index=False)
    text = inspect.cleandoc(THINGS[name].__doc__ or "")
    example = doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0)
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert result.failed == 0, "".join(said)
