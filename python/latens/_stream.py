"""Streams: states, and the model itself, from samples as they come."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _latens
from ._constants import Constant
from ._errors import FitWarning, SettingError


@dataclass(frozen=True)
class Estimate:
    """What is known after one sample.

    >>> estimate = fit.stream().step({"q": 0.0}, {"u": 0.5})
    >>> sorted(estimate.mean), estimate.t
    (['q', 'v'], 0.0)
    """

    t: float
    #: States by name.
    mean: dict[str, float]
    std: dict[str, float]
    #: Measured minus predicted, by channel; NaN where nothing was measured.
    innovation: dict[str, float]
    #: Mean of ν²/s: near 1 where the noise is what it is said to be.
    consistency: float
    #: Whether the states started again here.
    restarted: bool


class Stream:
    """An online estimator; `fit.stream` makes one.

    >>> stream = fit.stream(learn=True)
    >>> for q, u, t in zip(record.y["q"], record.u["u"], record.t):
    ...     estimate = stream.step({"q": q}, {"u": u}, t)
    >>> stream.samples, bool(abs(estimate.mean["v"] - record.truth["v"][-1]) < 0.1)
    (401, True)
    """

    _raw: _latens.Stream

    def __init__(self) -> None:
        raise TypeError("a stream is made by fit.stream")

    @classmethod
    def _of(cls, raw: _latens.Stream) -> Stream:
        stream = cls.__new__(cls)
        stream._raw = raw
        model = raw.model
        stream._states = [name for name, _ in model.states]
        stream._channels = [name for name, _ in model.measured]
        stream._inputs = [name for name, _ in model.inputs]
        return stream

    _states: list[str]
    _channels: list[str]
    _inputs: list[str]

    @classmethod
    def _of_files(cls, files: dict[str, bytes]) -> Stream:
        return cls._of(_latens.Stream.of_files(files))

    def __reduce__(self) -> tuple[Any, ...]:
        return Stream._of_files, (dict(self._raw.to_files()),)

    def step(
        self, y: Mapping[str, float], u: Mapping[str, float] | None = None, t: float | None = None
    ) -> Estimate:
        """Takes a sample: measurements by name, those not taken left out or NaN, and all inputs. Without
        a time it is one step after the one before.

        >>> stream = fit.stream()
        >>> stream.step({"q": 0.0}, {"u": 0.0}).t, stream.step({}, {"u": 0.0}).t
        (0.0, 0.005)
        """
        for name in y:
            if name not in self._channels:
                raise SettingError(f"there is no measurement `{name}`; there are: {', '.join(self._channels)}")
        given = u or {}
        if set(given) != set(self._inputs):
            raise SettingError(f"the inputs are: {', '.join(self._inputs) or 'none'}; given: {', '.join(given) or 'none'}")
        output = [float(y.get(name, math.nan)) for name in self._channels]
        inputs = [float(given[name]) for name in self._inputs]
        time, mean, std, innovation, consistency, restarted = self._raw.step(output, inputs, t)
        if restarted and self.samples > 1:
            warnings.warn(
                "the states were lost, or the gap was too long; they start again, what was learned is kept",
                FitWarning,
                stacklevel=2,
            )
        return Estimate(
            time,
            dict(zip(self._states, mean)),
            dict(zip(self._states, std)),
            dict(zip(self._channels, innovation)),
            consistency,
            restarted,
        )

    def lose(self) -> None:
        """A sample was lost, and nobody knows its time: the next is one step later.

        >>> stream = fit.stream()
        >>> before = stream.step({"q": 0.0}, {"u": 0.0})
        >>> stream.lose()
        >>> stream.step({"q": 0.0}, {"u": 0.0}).t
        0.01
        """
        self._raw.lose()

    @property
    def samples(self) -> int:
        """Samples so far.

        >>> fit.stream().samples
        0
        """
        return self._raw.progress[0]

    @property
    def limited(self) -> int:
        """Channels that were beyond the gate.

        >>> fit.stream().limited
        0
        """
        return self._raw.progress[1]

    @property
    def restarts(self) -> int:
        """Times that the states started again.

        >>> fit.stream().restarts
        0
        """
        return self._raw.progress[2]

    @property
    def consistency(self) -> float:
        """Mean of ν²/s within the gate; NaN before the first sample.

        >>> fit.stream().consistency
        nan
        """
        return self._raw.progress[3]

    @property
    def learn(self) -> bool:
        """Whether the model goes on learning.

        >>> fit.stream(learn=True).learn
        True
        """
        return self._raw.learn

    @property
    def unknowns(self) -> dict[str, Constant]:
        """The unknown constants as they are now.

        >>> fit.stream().unknowns["gain"].value == fit.unknowns["gain"].value
        True
        """
        units = dict(self._raw.model.unknowns)
        return {name: Constant(value, std, units[name]) for name, value, std in self._raw.unknowns}

    def save(self, folder: str | os.PathLike[str], force: bool = False) -> None:
        """Writes a snapshot: the folder of a fit from which `latens.load(folder).stream()` goes on bit for bit.

        >>> stream = fit.stream()
        >>> estimate = stream.step({"q": 0.0}, {"u": 0.0})
        >>> stream.save("snapshot")
        >>> latens.load("snapshot").stream().samples
        1
        """
        self._raw.save(os.fspath(folder), force)

    def __repr__(self) -> str:
        learning = ", learning" if self.learn else ""
        return f"<latens.Stream after {self.samples} samples{learning}, consistency {self.consistency:.3g}>"
