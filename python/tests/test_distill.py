"""Formulas in place of networks."""

import pytest

import latens


def test_a_formula_takes_the_place_of_the_network(fit: latens.Fit) -> None:
    """A proposed formula is among those fitted again; its model has no network left and can be fitted."""
    found = fit.distill(candidates=2, proposed=["viscous*v"])
    proposed = next(formula for formula in found.formulas if formula.proposed)
    assert proposed.expressions == {"friction": "viscous*v"}
    assert proposed.constants["viscous"].std > 0
    assert "[networks" not in proposed.model.text
    assert found.equally_good <= len(found.formulas) == len(found.to_frame())
    assert all(a.rank < b.rank for a, b in zip(found.formulas, found.formulas[1:]))


def test_mistakes_are_told(fit: latens.Fit) -> None:
    with pytest.raises(latens.SettingError, match="has a mistake"):
        fit.distill(proposed=["a*v +"])
    with pytest.raises(latens.SettingError, match="at least 1"):
        fit.distill(candidates=0)
