"""Latens learns the equations nobody measured: hidden states and unknown dynamics from partial measurements.

    import latens

    model = latens.Model.from_file("slide.toml")
    fit = model.fit("record.csv")
    fit.states["v"].mean, fit.states["v"].std
    fit.plot()
"""

from . import systems
from ._compare import Comparison, ConstantProfile, Profile, Residuals, ResidualTest, compare
from ._constants import Constant, Constants, Population, Uncertain
from ._design import Design, Experiment
from ._distill import Distillation, Formula, FormulaCurve
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
    "Comparison",
    "Constant",
    "ConstantProfile",
    "Constants",
    "Design",
    "Distillation",
    "Diverged",
    "Error",
    "Estimate",
    "Experiment",
    "FileError",
    "Fit",
    "FitRecord",
    "FitWarning",
    "Formula",
    "FormulaCurve",
    "Model",
    "ModelError",
    "Network",
    "NetworkValue",
    "Population",
    "Prediction",
    "Profile",
    "Progress",
    "Record",
    "RecordError",
    "ResidualTest",
    "Residuals",
    "SettingError",
    "Settings",
    "Solver",
    "State",
    "Stream",
    "Uncertain",
    "__version__",
    "compare",
    "load",
    "sweep",
    "systems",
]
