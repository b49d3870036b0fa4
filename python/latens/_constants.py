"""Unknown constants as they were learned, with their deviations through arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from ._record import Array

if TYPE_CHECKING:
    import pandas

Number = Union[float, int, np.number[Any]]

#: What a value depends on, to first order: sources by identity, each with its covariance and a gradient.
Parts = Mapping[int, tuple[Array, Array]]


@dataclass(frozen=True)
class Uncertain:
    """A value with its standard deviation. Sums, products, ratios and powers know how their parts are correlated.

    >>> gain = fit.constants["gain"]
    >>> double = 2 * gain + 1
    >>> bool(abs(double.std - 2 * gain.std) < 1e-12), (gain - gain).std, (gain / gain).std
    (True, 0.0, 0.0)
    >>> bool(abs(np.sqrt(gain).std - 0.5 * gain.std / gain.value**0.5) < 1e-12)
    True
    """

    value: float
    std: float
    unit: str = ""
    _parts: Parts | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __float__(self) -> float:
        return self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.value, dtype=dtype)

    @property
    def _own(self) -> Parts:
        if self._parts is not None:
            return self._parts
        return {id(self): (np.array([[self.std**2]]), np.ones(1))}

    def __add__(self, other: Uncertain | Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        return _combine(self, other, float(self) + float(other), 1.0, 1.0, _common(self, other))

    def __sub__(self, other: Uncertain | Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        return _combine(self, other, float(self) - float(other), 1.0, -1.0, _common(self, other))

    def __rsub__(self, other: Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        return _combine(self, other, float(other) - float(self), -1.0, 1.0, self.unit)

    def __mul__(self, other: Uncertain | Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        a, b = float(self), float(other)
        return _combine(self, other, a * b, b, a, "" if isinstance(other, Uncertain) else self.unit)

    def __truediv__(self, other: Uncertain | Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        a, b = float(self), float(other)
        return _combine(self, other, a / b, 1 / b, -a / b**2, "" if isinstance(other, Uncertain) else self.unit)

    def __rtruediv__(self, other: Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        a, b = float(other), float(self)
        return _combine(self, other, a / b, -a / b**2, 1 / b, "")

    def __pow__(self, other: Uncertain | Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        a, b = float(self), float(other)
        by_power = a**b * math.log(a) if isinstance(other, Uncertain) else 0.0
        return _combine(self, other, a**b, b * a ** (b - 1) if b else 0.0, by_power, "")

    def __rpow__(self, other: Number) -> Uncertain:
        if np.ndim(other):
            return NotImplemented  # NumPy takes it over, with the value alone
        a, b = float(other), float(self)
        return _combine(self, other, a**b, a**b * math.log(a), 0.0, "")

    def __neg__(self) -> Uncertain:
        return -1.0 * self

    def __pos__(self) -> Uncertain:
        return self

    __radd__ = __add__
    __rmul__ = __mul__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """NumPy's functions: of one value with its deviation; with arrays, of the value alone."""
        slope = _SLOPES.get(ufunc.__name__)
        if method == "__call__" and not more and len(inputs) == 1 and slope is not None:
            value = float(ufunc(self.value))
            return _combine(self, 0.0, value, slope(self.value, value), 0.0, "")
        operation = _OPERATIONS.get(ufunc.__name__)
        if method == "__call__" and not more and operation and all(np.ndim(x) == 0 for x in inputs):
            first, second = (x if isinstance(x, Uncertain) else float(x) for x in inputs)
            return operation(first, second)
        plain = [x.value if isinstance(x, Uncertain) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **more)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
}

#: Derivatives, of the argument and the value.
_SLOPES: dict[str, Callable[[float, float], float]] = {
    "negative": lambda x, y: -1.0,
    "exp": lambda x, y: y,
    "log": lambda x, y: 1 / x,
    "sqrt": lambda x, y: 0.5 / y,
    "square": lambda x, y: 2 * x,
    "sin": lambda x, y: math.cos(x),
    "cos": lambda x, y: -math.sin(x),
    "tanh": lambda x, y: 1 - y**2,
    "log10": lambda x, y: 1 / (x * math.log(10)),
}


def _common(a: Uncertain, b: Uncertain | Number) -> str:
    """The unit of a sum."""
    return a.unit if not isinstance(b, Uncertain) or b.unit == a.unit else ""


def _combine(a: Uncertain, b: Uncertain | Number, value: float, by_a: float, by_b: float, unit: str) -> Uncertain:
    """A function of two values, given its derivatives."""
    parts = {source: (covariance, by_a * gradient) for source, (covariance, gradient) in a._own.items()}
    if isinstance(b, Uncertain):
        for source, (covariance, gradient) in b._own.items():
            before = parts[source][1] if source in parts else 0.0
            parts[source] = (covariance, before + by_b * gradient)
    variance = sum(float(g @ c @ g) for c, g in parts.values())
    return Uncertain(value, math.sqrt(max(variance, 0.0)), unit, _parts=parts)


@dataclass(frozen=True)
class Population:
    """How a constant varies: ``fit.constants[name].population`` of one with ``varies`` in the model.

    >>> varied = latens.Model.from_string(model.text.replace("scale = 0.1", 'scale = 0.1, varies = "record"'))
    >>> own = varied.fit([record, other]).constants["gain"].population
    >>> own.varies, own.spread < 0.01, [0.3 < r["value"] < 0.45 for r in own.records]
    ('record', True, [True, True])
    """

    #: "record", "group" or "slowly".
    varies: str
    #: Standard deviation of its values about the mean, in its unit, or as a part of it where `relative`.
    spread: float
    #: The spread lies between these with 95 %; None where the records leave it open.
    spread_interval: tuple[float, float] | None
    #: Whether spread and pace are parts of the value, as of what must stay positive.
    relative: bool
    #: Standard deviation of what it walks by in a unit of time; 0 where it does not.
    pace: float
    #: Each record with its own value: file, value, std, range, shrinkage; of groups, `file` is the label and
    #: `files` are its records.
    records: list[dict[str, Any]]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each record, or each group.

        >>> varied = latens.Model.from_string(model.text.replace("scale = 0.1", 'scale = 0.1, varies = "record"'))
        >>> varied.fit([record, other]).constants["gain"].population.to_frame().shape
        (2, 5)
        """
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame(self.records).set_index("file")
        frame[["from", "to"]] = frame.pop("range").tolist()
        return frame


@dataclass(frozen=True)
class Constant(Uncertain):
    """An unknown constant as it was learned.

    >>> gain = fit.constants["gain"]
    >>> 0.3 < float(gain) < 0.45, gain.unit
    (True, 'm/s²/V')
    >>> low, high = gain.interval
    >>> low < gain.value < high, gain.prior_share < 0.01, gain.bound, gain.fixed
    (True, True, None, False)
    """

    #: It lies between these with 95 %.
    interval: tuple[float, float] | None = field(default=None, compare=False)
    #: The part of its prior variance that the data have left: 1 where they say nothing of it.
    prior_share: float | None = field(default=None, compare=False)
    #: "min" or "max" where it ended at a bound of the model: its best value would be beyond.
    bound: str | None = field(default=None, compare=False)
    #: Why the data do not determine it by itself, where that is so.
    undetermined: str | None = field(default=None, compare=False)
    #: What must be known of it beside its value, in words: a bound, a prior, a combination; None where nothing.
    remark: str | None = field(default=None, compare=False)
    #: Whether its value was given and not learned.
    fixed: bool = field(default=False, compare=False)
    #: How it varies, where it does; the value is then the mean.
    population: Population | None = field(default=None, compare=False)


def _skewed(constant: Constant) -> str:
    """Its interval, where one side of it is more than half as long again as the other."""
    if constant.interval is None or constant.bound or constant.fixed:
        return ""
    low, high = constant.interval
    below, above = constant.value - low, high - constant.value
    return f" (95 % within {low:.2g} to {high:.2g})" if max(below, above) > 1.5 * min(below, above) else ""


class Constants(Mapping[str, Constant]):
    """The unknown constants of a fit, by name.

    >>> list(fit.constants), fit.constants.correlation.shape
    (['gain'], (1, 1))
    >>> bool(abs(fit.constants.covariance[0, 0] ** 0.5 / fit.constants["gain"].std - 1) < 1e-9)
    True
    """

    #: Covariance and correlation of those that were learned, in their order.
    covariance: Array
    correlation: Array

    def __init__(
        self,
        learned: list[dict[str, Any]],
        remarks: list[str | None],
        fixed: list[tuple[str, float, str]],
        correlation: Any,
    ) -> None:
        stds = np.array([c["std"] for c in learned], dtype=float)
        self.correlation = np.array(correlation, dtype=float).reshape(len(learned), len(learned))
        self.covariance = self.correlation * np.outer(stds, stds)
        self._all: dict[str, Constant] = {}
        for place, c in enumerate(learned):
            varies = c.get("population")
            if varies is not None:
                interval = varies["spread_interval"]
                varies = Population(**{**varies, "spread_interval": tuple(interval) if interval else None})
            parts = {id(self): (self.covariance, np.eye(len(learned))[place])}
            self._all[c["name"]] = Constant(
                c["value"],
                c["std"],
                c["unit"],
                tuple(c["interval"]) if c["interval"] else None,
                c["prior_share"],
                c["bound"],
                c["undetermined"],
                remarks[place],
                population=varies,
                _parts=parts,
            )
        for name, value, unit in fixed:
            self._all[name] = Constant(value, 0.0, unit, interval=(value, value), fixed=True)

    def __getitem__(self, name: str) -> Constant:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = (f"{name}: {c.value:.6g} ± {c.std:.2g} {c.unit}".rstrip() + _skewed(c) for name, c in self.items())
        return f"<latens.Constants {', '.join(lines)}>"

    def to_frame(self) -> pandas.DataFrame:
        """A row for each constant.

        >>> fit.constants.to_frame().columns[:5].tolist()
        ['value', 'std', 'lower', 'upper', 'unit']
        """
        import pandas

        rows = {
            name: {
                "value": c.value,
                "std": c.std,
                "lower": c.interval[0] if c.interval else None,
                "upper": c.interval[1] if c.interval else None,
                "unit": c.unit,
                "prior_share": c.prior_share,
                "bound": c.bound,
                "remark": c.remark,
                "fixed": c.fixed,
            }
            for name, c in self.items()
        }
        frame: pandas.DataFrame = pandas.DataFrame.from_dict(rows, orient="index")
        return frame
