"""Which experiment next: what `fit.design()` gives."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ._latens import write_text
from ._record import Array

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Experiment:
    """An experiment, and what it would leave of each uncertainty.

    >>> best = fit.design(inputs={"u": "step:-1..1"}, candidates=2).best
    >>> best.rank, best.measured, 0 <= best.outside <= 1
    (1, ['q'], True)
    """

    #: From 1, the best.
    rank: int
    #: Where each state starts.
    start: dict[str, float]
    #: What each input does, in words.
    inputs: dict[str, str]
    #: The channels that are measured.
    measured: list[str]
    #: Every which sample is measured.
    every: int
    #: Samples of the record.
    samples: int
    #: The part of it on which a network meets arguments unlike any in training.
    outside: float
    #: By goal: what is left of its standard deviation, as a part of what it is now.
    left: dict[str, float]
    #: By how much ln p would differ between the two formulas that are hardest to tell apart.
    apart: float | None
    #: Which two these are, from 1.
    closest: list[int]
    #: Of the best three: `t`, the inputs and `<state>.predicted`, as the fit foresees them.
    columns: dict[str, Array] = field(repr=False)


@dataclass(frozen=True)
class Design:
    """Experiments, best first, and what to do next in words.

    >>> found = fit.design(inputs={"u": "step:-1..1"}, candidates=2)
    >>> found.by, len(found.experiments), found.verdict[0].startswith("next: ")
    ('functions', 2, True)
    """

    experiments: list[Experiment]
    #: What to do next, and how far to trust it.
    verdict: list[str]
    #: What they are put in order by: formulas, prediction, constants or functions.
    by: str
    #: By goal: its standard deviation now.
    now: dict[str, float]
    #: By goal: what the first record once more would leave of it.
    repeated: dict[str, float]
    #: Experiments in which the learned equations leave the finite numbers.
    lost: int
    #: The picture.
    svg: str = field(repr=False)

    @classmethod
    def _of(cls, found: dict[str, Any], svg: str) -> Design:
        names = [goal["name"] for goal in found["goals"]]
        runs = [{name: np.array(values) for name, values in run.items()} for run in found["runs"]]
        keys = ("rank", "start", "inputs", "measured", "every", "samples", "outside", "apart", "closest")
        experiments = [
            Experiment(
                **{key: experiment[key] for key in keys},
                left=dict(zip(names, experiment["left"])),
                columns=runs[place] if place < len(runs) else {},
            )
            for place, experiment in enumerate(found["experiments"])
        ]
        return cls(
            experiments,
            found["verdict"],
            found["by"],
            {goal["name"]: goal["std"] for goal in found["goals"]},
            dict(zip(names, found["repeated"])),
            found["lost"],
            svg,
        )

    @property
    def best(self) -> Experiment:
        """The experiment to do next.

        >>> found = fit.design(inputs={"u": "step:-1..1"}, candidates=2)
        >>> found.best is found.experiments[0]
        True
        """
        return self.experiments[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture as an SVG file.

        >>> fit.design(inputs={"u": "step:-1..1"}, candidates=2).save("design.svg")
        """
        write_text(os.fspath(path), self.svg)

    def to_frame(self) -> pandas.DataFrame:
        """The experiments as a table, a row each.

        >>> len(fit.design(inputs={"u": "step:-1..1"}, candidates=2).to_frame())
        2
        """
        import pandas

        rows = [
            {
                "rank": experiment.rank,
                **{f"start_{name}": value for name, value in experiment.start.items()},
                **experiment.inputs,
                **{f"left_{name}": value for name, value in experiment.left.items()},
                "apart": experiment.apart,
                "outside": experiment.outside,
            }
            for experiment in self.experiments
        ]
        frame: pandas.DataFrame = pandas.DataFrame(rows).set_index("rank")
        return frame

    def __repr__(self) -> str:
        return "\n".join(self.verdict)
