# Made from the table of settings in Rust by `scripts/generate`; do not edit.
"""The settings of a fit, as keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Union

Solver = Literal[
    "batch",
    "joint",
    "alternating",
    "as-printed",
    "node",
    "spinode",
    "rm",
]
"""The solvers."""


class Settings(TypedDict, total=False):
    """What `Model.fit` can be told; see `latens fit --help`."""

    validate_tail: float
    """The part of every record, from its end, that is not learned from but validates: above 0, below 0.5."""

    printed_settings: bool
    """Start from the paper's settings instead of the solver's own; not batch, which the paper does not have."""

    solver: Solver
    """How θ is learned; `latens fit --help` lists the solvers."""

    passes: int
    """Tightening stages of batch at the most (it ends when the physics is exact), passes over the records of the recursions, steps of gradient descent of the methods of others."""

    seed: int
    """Seed of the networks' random start; where it fails, batch tries the next two."""

    starts: int
    """Start from K seeds, the seed and those that follow, in parallel, and keep the one whose free run is best: over the validation records where there are any."""

    ensemble: int
    """Fit from K seeds, the seed and those that follow, in parallel, and keep them all: predictions are their median, and bands count how far they are apart; not together with starts."""

    keep_suspects: bool
    """Learn from every reading, those too that contradict all others; else they are set aside, and named."""

    hidden_noise: float
    """Process noise of equations that depend on θ: standard deviation per sample, relative to scale·√(Δt/τ), τ the time in which the data move by their scale; batch begins there and tightens it tenfold or √10-fold each stage."""

    measurement_noise: float
    """Measurement noise: standard deviation relative to the noise found in each channel."""

    start_noise: float
    """Uncertainty of the start: standard deviation relative to each state's scale."""

    process_variance: Union[float, Mapping[str, float]]
    """Process noise Q_x as a variance per sample, by state (h=1e-6,V=1e-8), which batch then does not tighten; or of all states, and batch has one stage."""

    measurement_variance: Union[float, Mapping[str, float]]
    """Measurement noise R_y as a variance, of all channels or by channel (V=0.01); batch then does not estimate it."""

    start_variance: Union[float, Mapping[str, float]]
    """Uncertainty P_x0 of the start as a variance, of all states or by state."""

    estimate_noise: bool
    """Estimate R_y from what the fit leaves over; batch only, and not of channels whose variance is given."""

    fix: Mapping[str, float]
    """Fix unknown constants at these values, whatever the model file says of them."""

    free: Sequence[str]
    """Learn constants that the model file fixes."""

    first_order: Sequence[str]
    """Inputs that go straight to their next value over a sample, whatever the model file says; batch finds them itself where the file says nothing and an input goes on moving."""

    parameter_variance: float
    """Variance P_θ0 of θ before the data; given, batch does not estimate it."""

    estimate_prior: bool
    """Let the evidence choose P_θ0 of each network's weights; batch only, and not where the variance is given unless asked for."""

    simplify: bool
    """Try simpler functions than the file's networks too (none at all, linear, few units) and let the data choose; batch only."""

    scale_outputs: bool
    """Scale network outputs to the rates of the hidden states."""

    single_precision: bool
    """Store P_θ in single precision: half the memory, faster recursions for large networks."""

    segments: int
    """Segments of each record that update one θ together; joint takes 1."""

    keep_best: bool
    """Keep the pass whose free run fits the measurements best, not the last."""

    known_noise: float
    """Process noise of known equations, relative as the hidden noise is; batch takes a thousandth of that."""

    parameter_drift: float
    """Variance Q_θ that θ gains per step of all segments, 0 for none."""

    anneal: float
    """Factor on Q_θ after each pass, at most 1."""

    parameter_noise: float
    """Noise of the θ step, as a multiple of the row's own standard deviation; larger learns slower; not joint."""

    count_state_uncertainty: bool
    """Count the uncertainty of the states as noise of the θ step; not joint."""
