"""Which model is the better one, how far constants may go, and what is left of the records."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, overload

from ._errors import SettingError
from ._latens import write_text

if TYPE_CHECKING:
    import pandas

    from ._fit import Fit


class Comparison:
    """Several models of the same data, the best first; `latens.compare` makes one.

    >>> found = latens.compare(fit, fit, names=["one", "two"])
    >>> found.strength, found.best
    ('none', 'one')
    """

    def __init__(self, facts: str, table: str) -> None:
        #: All that `latens compare --json` prints.
        self.facts: dict[str, Any] = json.loads(facts)
        self._table = table

    @property
    def models(self) -> list[dict[str, Any]]:
        """Each model, the best first: `run`, `log_evidence`, `aic`, `bic`, `records`, `held_out`, `constants`, …

        >>> [model["run"] for model in latens.compare(fit, fit, names=["one", "two"]).models]
        ['one', 'two']
        """
        models: list[dict[str, Any]] = self.facts["models"]
        return models

    @property
    def best(self) -> str:
        """The name of the first one.

        >>> latens.compare(fit, fit, names=["one", "two"]).best
        'one'
        """
        return str(self.facts["verdict"]["first"])

    @property
    def strength(self) -> str:
        """How sure it is that the first is better than the second: "none", "some", "strong" or "decisive".

        >>> latens.compare(fit, fit).strength
        'none'
        """
        return str(self.facts["verdict"]["strength"])

    @property
    def verdict(self) -> str:
        """That in a sentence.

        >>> latens.compare(fit, fit, names=["one", "two"]).verdict
        'one and two cannot be told apart: ...'
        """
        return str(self.facts["verdict"]["sentence"])

    def to_frame(self) -> pandas.DataFrame:
        """A row for each model.

        >>> latens.compare(fit, fit, names=["one", "two"]).to_frame().index.tolist()
        ['one', 'two']
        """
        import pandas

        names = ["log_evidence", "below_best", "log_likelihood", "aic", "bic", "determined", "parameters"]
        rows = {
            model["run"]: {
                **{name: model[name] for name in names},
                "held_out": (model["held_out"] or {}).get("nrmse"),
                "contradicted": model["contradicted"],
            }
            for model in self.models
        }
        frame: pandas.DataFrame = pandas.DataFrame.from_dict(rows, orient="index")
        return frame

    def __repr__(self) -> str:
        return self._table


def compare(*fits: Fit, names: Sequence[str] | None = None, folds: int = 0) -> Comparison:
    """Which of several fits of the same records is the better one, and how sure that is.

    ln p(y) is compared with the noise of the sensors integrated out. `names` are what the fits are called; with
    `folds` each is fitted so many times again without a block of the data, or without records where there are
    as many, and predicts what was held back. What is not comparable is refused.

    >>> latens.compare(fit, fit, names=["one", "two"]).facts["readings"]
    401
    """
    if len(fits) < 2:
        raise SettingError("a comparison takes two fits or more; give another one")
    if names is None:
        names = [f"fit {k}" for k in range(1, len(fits) + 1)]
    if len(names) != len(fits):
        raise SettingError(f"there are {len(fits)} fits and {len(names)} names; give each fit one")
    first, *others = fits
    return Comparison(*first._raw.compare([other._raw for other in others], list(names), folds))


class Profile:
    """Profiles of constants: their intervals with all else refitted; `fit.profile` makes one.

    >>> profile = fit.profile("gain")
    >>> low, high = profile["gain"].interval
    >>> low < fit.constants["gain"].value < high
    True
    """

    def __init__(self, facts: str, table: str, figure: str) -> None:
        #: All that `latens profile --json` prints.
        self.facts: dict[str, Any] = json.loads(facts)
        self._table, self._figure = table, figure

    def __getitem__(self, name: str) -> ConstantProfile:
        for constant in self.facts["constants"]:
            if constant["name"] == name:
                return ConstantProfile(
                    value=constant["value"],
                    interval=(constant["from"], constant["to"]),
                    linear=(constant["linear"][0], constant["linear"][1]),
                    open=(constant["open_below"], constant["open_above"]),
                    points=[(point["value"], point["rise"]) for point in constant["points"]],
                    unit=constant["unit"],
                )
        known = ", ".join(constant["name"] for constant in self.facts["constants"])
        raise KeyError(f"there is no profile of {name!r}; there are: {known}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure of the profiles, as .svg.

        >>> fit.profile("gain").save("profile.svg")
        """
        if pathlib.Path(path).suffix != ".svg":
            raise SettingError(f"{os.fspath(path)} is no .svg; `latens profile RUN -o FILE` writes .pdf and .png too")
        write_text(os.fspath(path), self._figure)

    def _repr_svg_(self) -> str:
        return self._figure

    def __repr__(self) -> str:
        return self._table


@dataclass(frozen=True)
class ConstantProfile:
    """The profile of one constant.

    >>> fit.profile("gain")["gain"].open
    (None, None)
    """

    #: Where the objective is least.
    value: float
    #: It lies between these with 95 %; None where the interval is open.
    interval: tuple[float | None, float | None]
    #: The same by the curvature alone.
    linear: tuple[float, float]
    #: Why an end is open: "bound", "flat", "lost" or "stopped".
    open: tuple[str | None, str | None]
    #: Values of the constant, each with the rise of the objective.
    points: list[tuple[float, float]]
    unit: str = ""


@dataclass(frozen=True)
class ResidualTest:
    """A test of what the free run leaves of a record.

    >>> [test.test for test in fit.residuals][:2]
    ['whiteness', 'normality']
    """

    file: str
    channel: str
    #: "whiteness", "normality", "input" or "state".
    test: str
    #: The input or the state.
    signal: str | None
    #: Samples by which the input comes before.
    delay: int | None
    #: How often noise alone looks like that.
    p: float
    #: The same for the number of tests (Holm).
    p_adjusted: float
    #: The part of the residuals' variance that is concerned.
    explained: float | None
    #: As many independent residuals they are worth.
    effective: float

    @property
    def rejected(self) -> bool:
        """Whether it is not noise alone: the adjusted p-value is below 0.05.

        >>> any(test.rejected for test in fit.residuals)
        False
        """
        return self.p_adjusted < 0.05


class Residuals(Sequence[ResidualTest]):
    """Tests of what the free runs leave of the records: white, normal, free of inputs and states?

    >>> fit.residuals.rejected
    []
    """

    def __init__(self, tests: list[dict[str, Any]]) -> None:
        self._tests = [ResidualTest(**test) for test in tests]

    @overload
    def __getitem__(self, place: int) -> ResidualTest: ...
    @overload
    def __getitem__(self, place: slice) -> list[ResidualTest]: ...
    def __getitem__(self, place: Union[int, slice]) -> Union[ResidualTest, list[ResidualTest]]:
        return self._tests[place]

    def __len__(self) -> int:
        return len(self._tests)

    def __iter__(self) -> Iterator[ResidualTest]:
        return iter(self._tests)

    @property
    def rejected(self) -> list[ResidualTest]:
        """Those that say that it is not noise alone.

        >>> fit.residuals.rejected
        []
        """
        return [test for test in self._tests if test.rejected]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each test.

        >>> fit.residuals.to_frame()["p"].between(0, 1).all()
        np.True_
        """
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame([vars(test) for test in self._tests])
        return frame

    def __repr__(self) -> str:
        lines = [
            f"{t.channel}: {t.test}{f' of {t.signal}' if t.signal else ''}, p {t.p:.2g}, of all tests {t.p_adjusted:.2g}"
            for t in self._tests
        ]
        return "\n".join(lines) or "no residuals to test: there is hardly any noise"
