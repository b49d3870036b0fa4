"""The posterior of a fit for ArviZ and xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _latens
from ._errors import SettingError
from ._record import Array

if TYPE_CHECKING:
    import arviz
    import xarray

    from ._fit import Fit


def to_xarray(fit: Fit, record: int = 0, weights: bool = False) -> xarray.Dataset:
    """Draws from the posterior, with the dimensions that ArviZ expects."""
    import xarray

    variables: dict[str, Any] = {}
    units = fit.model.units
    for name, values in posterior(fit, record, weights).items():
        along = ["time"] if name in fit.model.states else [f"{name}_dim_{k}" for k in range(values.ndim - 1)]
        unit = units.get(name)
        variables[name] = (["chain", "draw", *along], values[np.newaxis], {"units": unit} if unit else {})
    draws = next(iter(variables.values()))[1].shape[1]
    time = ("time", fit.records[record].t, {"units": units["t"]} if units.get("t") else {})
    about = {"inference_library": "latens", "inference_library_version": _latens.VERSION, "model": fit.model.name}
    return xarray.Dataset(variables, {"chain": [0], "draw": np.arange(draws), "time": time}, about)


def to_arviz(fit: Fit, record: int = 0, weights: bool = False) -> arviz.InferenceData:
    """The same as ArviZ's InferenceData, with the measurements and the inputs beside it."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError('to_arviz needs ArviZ: pip install "latens[arviz]"') from error

    own = fit.records[record].to_xarray().rename(t="time")
    groups = {
        "posterior": to_xarray(fit, record, weights),
        "observed_data": own[fit.model.measured],
        "constant_data": own[fit.model.inputs],
    }
    return arviz.InferenceData(**{name: group for name, group in groups.items() if group.data_vars})


def posterior(fit: Fit, record: int, weights: bool) -> dict[str, Array]:
    """Draws by name, the first axis counts them."""
    places = fit._raw.places
    if record not in places:
        raise SettingError(f"the fit has no states of record {record}: it has those of {', '.join(map(str, places))}")
    drawn, names = fit.samples, fit.model.states
    constants = {name: drawn[name] for name in fit.model.unknowns if name in drawn}
    learned = {name: values for name, values in drawn.items() if name not in constants and name not in names}
    return {**constants, **fit._drawn(places.index(record)), **(learned if weights else {})}
