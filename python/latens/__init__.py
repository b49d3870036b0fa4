"""Latens learns the equations nobody measured: hidden states and unknown dynamics from partial measurements.

    import latens

    model = latens.Model.from_file("slide.toml")
    fit = model.fit("record.csv")
    fit.states["v"].mean, fit.states["v"].std
    fit.plot()
"""

from . import systems
from ._constants import Constant, Constants, Uncertain
from ._distill import Distillation, Formula
from ._errors import (
    Diverged,
    Error,
    FileError,
    FitWarning,
    ModelError,
    RecordError,
    SettingError,
)
from ._fit import Band, Fit, FitRecord, Network, NetworkValue, Prediction, State, load
from ._latens import VERSION as __version__
from ._model import Check, Model
from ._progress import Progress
from ._record import Record
from ._settings import Settings, Solver
from ._stream import Estimate, Stream
from ._sweep import sweep

__all__ = [
    "Band",
    "Check",
    "Constant",
    "Constants",
    "Distillation",
    "Diverged",
    "Error",
    "Estimate",
    "FileError",
    "Fit",
    "FitRecord",
    "FitWarning",
    "Formula",
    "Model",
    "ModelError",
    "Network",
    "NetworkValue",
    "Prediction",
    "Progress",
    "Record",
    "RecordError",
    "SettingError",
    "Settings",
    "Solver",
    "State",
    "Stream",
    "Uncertain",
    "__version__",
    "load",
    "sweep",
    "systems",
]
