"""Formulas in place of a fit's networks: what `fit.distill()` gives."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ._constants import Uncertain
from ._latens import write_text
from ._record import Array

if TYPE_CHECKING:
    import pandas

    from ._model import Model


@dataclass(frozen=True)
class Formula:
    """A set of formulas for all networks of a fit, fitted again in their place.

    >>> best = fit.distill(candidates=2, proposed=["viscous*v"]).formulas[0]
    >>> best.rank, best.size > 0, best.constants["gain"].std > 0
    (1, True, True)
    """

    #: From 1, the best.
    rank: int
    #: By network, or by `network.output` where it has several: with the names of the constants.
    expressions: dict[str, str]
    #: The same with their values.
    with_values: dict[str, str]
    #: The unknown constants of the model, those of the formulas among them.
    constants: dict[str, Uncertain]
    #: ln p(y), constants counted.
    evidence: float | None
    #: Mean nRMSE of the measured channels in free runs over the records learned from.
    free_run: float | None
    #: The same over the records that validated.
    validation: float | None
    #: Operations, names and constants in it.
    size: int
    #: Whether it was proposed by the caller.
    proposed: bool
    #: The model file in which the networks are gone.
    model_text: str

    @property
    def expression(self) -> str:
        """The formula with its values, of a fit with one network of one output; else all of them.

        >>> own = next(f for f in fit.distill(candidates=2, proposed=["viscous*v"]).formulas if f.proposed)
        >>> own.expressions["friction"], own.expression.endswith("*v")
        ('viscous*v', True)
        """
        if len(self.with_values) == 1:
            return next(iter(self.with_values.values()))
        return "; ".join(f"{name} = {text}" for name, text in self.with_values.items())

    @property
    def model(self) -> Model:
        """The model in which the networks are gone, ready to be fitted.

        >>> best = fit.distill(candidates=2, proposed=["viscous*v"]).formulas[0]
        >>> "[networks" in best.model.text
        False
        """
        from ._model import Model

        return Model.from_string(self.model_text, name=f"formula {self.rank}")


@dataclass(frozen=True)
class FormulaCurve:
    """What a network and the best formulas for it say at points that training met.

    >>> curve = fit.distill(candidates=2, proposed=["viscous*v"]).curves["friction"]
    >>> curve.arguments, curve.values.shape == curve.std.shape == curve.points["v"].shape
    (['v'], True)
    """

    #: The arguments of the network, as they stand in the model file.
    arguments: list[str]
    #: By argument: its value at each point.
    points: dict[str, Array]
    #: What the network says there, and its standard deviation.
    values: Array
    std: Array
    #: By rank: what a formula says there, with the constants of its own fit.
    formulas: dict[int, Array]


@dataclass(frozen=True)
class Distillation:
    """Formulas for what the networks of a fit have learned, best first.

    >>> found = fit.distill(candidates=2, proposed=["viscous*v"])
    >>> found.equally_good <= len(found.formulas), len(found.verdict) > 0
    (True, True)
    """

    formulas: list[Formula]
    #: How many of them, from the first, the data do not tell apart; 0 where none follows them as the network does.
    equally_good: int
    #: What that means, in words.
    verdict: list[str]
    #: How closely formulas of each number of constants follow the networks, from simple to exact.
    front: list[dict[str, Any]]
    #: ln p(y), free run and validation error of the fit with its networks.
    network: dict[str, float | None]
    #: By network, or by `network.output` where there are several: network and formulas where training went.
    curves: dict[str, FormulaCurve] = field(repr=False)
    #: The page that shows all of it.
    page: str = field(repr=False)

    @classmethod
    def _of(cls, found: dict[str, Any], page: str) -> Distillation:
        several = len(found["curves"]) > 1

        def name(expression: dict[str, Any]) -> str:
            return f"{expression['network']}.{expression['output']}" if several else expression["network"]

        formulas = [
            Formula(
                rank=formula["rank"],
                expressions={name(e): e["text"] for e in formula["expressions"]},
                with_values={name(e): e["with_values"] for e in formula["expressions"]},
                constants={c["name"]: Uncertain(c["value"], c["std"], c["unit"]) for c in formula["constants"]},
                evidence=formula["evidence"],
                free_run=formula["free_run"],
                validation=formula["validation"],
                size=formula["size"],
                proposed=formula["proposed"],
                model_text=formula["model"],
            )
            for formula in found["formulas"]
        ]
        network = {key: found[f"network_{key}"] for key in ("evidence", "free_run", "validation")}
        curves = {
            name(curve): FormulaCurve(
                arguments=curve["arguments"],
                points={text: np.array([p[j] for p in curve["points"]]) for j, text in enumerate(curve["arguments"])},
                values=np.array(curve["values"], dtype=float),
                std=np.array(curve["std"], dtype=float),
                formulas={k + 1: np.array(values, dtype=float) for k, values in enumerate(curve["formulas"])},
            )
            for curve in found["curves"]
        }
        return cls(formulas, found["equally_good"], found["verdict"], found["front"], network, curves, page)

    def report(self, path: str | os.PathLike[str] = "formulas.html") -> None:
        """Writes the page of the formulas: the table, the front of size against error, and the curves over each other.

        >>> fit.distill(candidates=2, proposed=["viscous*v"]).report("formulas.html")
        """
        write_text(os.fspath(path), self.page)

    def to_frame(self) -> pandas.DataFrame:
        """The formulas as a table, a row each.

        >>> list(fit.distill(candidates=2, proposed=["viscous*v"]).to_frame())
        ['size', 'evidence', 'free_run', 'validation', 'expression']
        """
        import pandas

        keys = ("rank", "size", "evidence", "free_run", "validation", "expression")
        rows = [{key: getattr(formula, key) for key in keys} for formula in self.formulas]
        frame: pandas.DataFrame = pandas.DataFrame(rows, columns=list(keys)).set_index("rank")
        return frame

    def __repr__(self) -> str:
        lines = [f"{formula.rank}  {formula.expression}" for formula in self.formulas]
        return "\n".join([*lines, *self.verdict])
