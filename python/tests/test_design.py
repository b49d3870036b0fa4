"""Which experiment next."""

import numpy as np
import pytest

import latens


def test_experiments_are_put_in_order(fit: latens.Fit) -> None:
    """The best comes first, its inputs are at hand, and the same seed gives the same."""
    asked = {"inputs": {"u": ["sine:-1..1", "step:-1..1"]}, "start": {"v": (-0.1, 0.1)}, "candidates": 6}
    found = fit.design(**asked)  # type: ignore[arg-type]
    assert found.by == "functions"
    left = [experiment.left["friction"] for experiment in found.experiments]
    assert left == sorted(left)
    assert left[0] < 1
    best = found.best
    assert -0.1 <= best.start["v"] <= 0.1
    assert len(best.columns["u"]) == len(best.columns["t"]) == best.samples
    assert np.abs(best.columns["u"]).max() <= 1
    assert found.verdict[0].startswith("next: ")
    assert found.svg.startswith("<svg")
    assert len(found.to_frame()) == 6
    assert fit.design(**asked).verdict == found.verdict  # type: ignore[arg-type]


def test_mistakes_are_told(fit: latens.Fit) -> None:
    with pytest.raises(latens.SettingError, match="nothing to choose from"):
        fit.design()
    with pytest.raises(latens.SettingError, match="no family"):
        fit.design(inputs={"u": "ramp:0..1"})
    with pytest.raises(latens.SettingError, match="at least 1"):
        fit.design(candidates=0)
