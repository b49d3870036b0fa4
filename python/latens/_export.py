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


#: Draws at the most, those of a fit itself at the least, and samples times draws in between.
_DRAWS, _FEWEST, _READINGS = 1000, 64, 500_000
_CHAINS = 4


def to_xarray(fit: Fit, record: int = 0, weights: bool = False) -> xarray.Dataset:
    """Draws from the posterior, with the dimensions that ArviZ expects."""
    return _dataset(fit, record, _posterior(fit, record, weights)[0])


def to_arviz(fit: Fit, record: int = 0, weights: bool = False) -> arviz.InferenceData:
    """The same as ArviZ's InferenceData, with the measurements and the inputs beside it."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError('to_arviz needs ArviZ: pip install "latens[arviz]"') from error

    dataset = fit.records[record].to_xarray().rename(t="time")
    posterior, prior, densities = _posterior(fit, record, weights)
    groups = {
        "posterior": _dataset(fit, record, posterior),
        "log_likelihood": _log_likelihood(fit, record, densities),
        "prior": _dataset(fit, record, prior),
        "observed_data": dataset[fit.model.measured],
        "constant_data": dataset[fit.model.inputs],
    }
    return arviz.InferenceData(**{name: group for name, group in groups.items() if group.data_vars})


def _dataset(fit: Fit, record: int, drawn: dict[str, Array]) -> xarray.Dataset:
    """Draws by name over chain and draw."""
    import xarray

    variables: dict[str, Any] = {}
    units = fit.model.units
    for name, values in drawn.items():
        along = ["time"] if name in fit.model.states else [f"{name}_dim_{k}" for k in range(values.ndim - 1)]
        unit = units.get(name)
        variables[name] = (["chain", "draw", *along], _in_chains(values), {"units": unit} if unit else {})
    coordinates: dict[str, Any] = {}
    if variables:
        chains, draws = next(iter(variables.values()))[1].shape[:2]
        coordinates = {"chain": np.arange(chains), "draw": np.arange(draws)}
    if any(name in fit.model.states for name in variables):
        coordinates["time"] = ("time", fit.records[record].t, {"units": units["t"]} if units.get("t") else {})
    about = {"inference_library": "latens", "inference_library_version": _latens.VERSION, "model": fit.model.name}
    return xarray.Dataset(variables, coordinates, about)


def _in_chains(values: Array) -> Array:
    """Draws, which are independent, as chains of equal length."""
    length = len(values) // _CHAINS
    return values[: _CHAINS * length].reshape(_CHAINS, length, *values.shape[1:])


def _log_likelihood(fit: Fit, record: int, densities: Array) -> xarray.Dataset:
    """ln p of each reading that was made, all channels in one variable; the first sample shows where a record
    starts and says nothing by itself."""
    import xarray

    if not len(densities):
        return xarray.Dataset()
    channels = np.array(fit.model.measured)
    made = ~np.isnan(densities[0])
    made[0] = False
    samples, places = np.nonzero(made)
    coordinates = {
        "time": ("reading", fit.records[record].t[samples]),
        "channel": ("reading", channels[places]),
    }
    values = _in_chains(densities[:, samples, places])
    return xarray.Dataset({"readings": (["chain", "draw", "reading"], values)}, coordinates)


def _posterior(fit: Fit, record: int, weights: bool) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Draws of the posterior and of the prior by name, and ln p of each reading; the first axis counts them."""
    places = fit._raw.places
    if record not in places:
        raise SettingError(f"the fit has no states of record {record}: it has those of {', '.join(map(str, places))}")
    track, names = places.index(record), fit.model.states
    wanted = min(_DRAWS, max(_FEWEST, _READINGS // fit.records[record].samples))
    wanted -= wanted % _CHAINS
    by, before = fit._raw.draws(wanted)
    if not len(by):
        return fit._drawn(track), {}, np.empty((0, 0, 0))
    drawn, densities = fit._raw.pointwise(track, wanted)
    states = {name: drawn[:, :, k] for k, name in enumerate(names)}

    def parameters(theta: Array) -> dict[str, Array]:
        found = fit._parameters(theta)
        return found if weights else {name: found[name] for name in fit.model.unknowns}

    return {**parameters(fit._raw.theta()[0] + by), **states}, parameters(before), densities
