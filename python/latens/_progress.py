"""A fit on its way: a bar in terminal and notebook, by tqdm where that is installed."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import FitWarning

if TYPE_CHECKING:
    from . import _latens


@dataclass(frozen=True)
class Progress:
    """How far a fit has come; what a `progress` function is called with. Where it returns False, the
    fit stops and gives what it has.

    >>> seen = []
    >>> fit = model.fit(record, solver="joint", passes=2, progress=seen.append)
    >>> seen[-1].number, seen[-1].passes
    (2, 2)
    """

    #: The pass that is under way, from 1: a stage of batch, a pass over the records of others. Of several
    #: starts, how many have ended, plus one.
    number: int
    #: Passes in all, or at the most.
    passes: int
    #: Iteration of batch; sample of the recursions.
    step: int
    steps: int
    seconds: float
    #: Of the last pass that is over; NaN before.
    cost: float
    free_run: float


Listener = Callable[[Progress], Any]


class Watch:
    """Hears what a fit says."""

    def __init__(self, progress: bool | Listener | None, job: _latens.Job) -> None:
        self._started = time.monotonic()
        passes = job.starts if job.starts > 1 else job.passes
        self._last = Progress(1, passes, 0, 0, 0.0, float("nan"), float("nan"))
        self._listener = progress if callable(progress) else None
        self._starts, self._pass = job.starts, job.pass_name
        # a solver that ends by itself takes as many passes as it needs: a bar would say nothing
        self._known = job.starts > 1 or not job.converges
        self._bar: Any = None
        if progress is True or (progress is None and _somebody_looks()):
            self._bar = _bar(self._known)

    def __call__(self, kind: str, *args: Any) -> Any:
        if kind == "warning":
            warnings.warn(args[0], FitWarning, stacklevel=4)
            return None
        seconds, last = time.monotonic() - self._started, self._last
        if kind == "progress":
            number, passes, step, steps = args
            self._last = Progress(number, passes, step, steps, seconds, last.cost, last.free_run)
        else:
            number, cost, free_run = args
            self._last = Progress(number, last.passes, last.step, last.steps, seconds, cost, free_run)
        if self._bar is not None:
            self._show()
        return None if self._listener is None else self._listener(self._last)

    def _show(self) -> None:
        p = self._last
        if self._starts > 1:
            place, total = f"{p.number - 1} of {self._starts} starts", self._starts
        elif self._known:
            place, total = f"{self._pass} {p.number}", p.passes
        else:
            place, total = f"{self._pass} {p.number}, iteration {p.step + 1}", 0
        if p.free_run == p.free_run:
            place += f", free-run error {p.free_run:.1e}"
        self._bar.set_description_str(place, refresh=False)
        self._bar.total = total or None
        part = p.step / max(p.steps, 1) if self._known and self._starts == 1 else 0
        self._bar.n = p.number - 1 + part
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _somebody_looks() -> bool:
    ipython = sys.modules.get("IPython")
    notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    return sys.stderr.isatty() or notebook


def _bar(known: bool) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a notebook without ipywidgets, where a line of text does
            from tqdm.auto import tqdm
    except ImportError:
        return _Plain()
    form = "{desc} |{bar}| {percentage:3.0f} % [{elapsed}<{remaining}]" if known else "{desc} [{elapsed}]"
    return tqdm(desc="looking at the data", leave=False, bar_format=form)


class _Plain:
    """One line that moves, where there is no tqdm."""

    total: int | None = None
    n: float = 0

    def __init__(self) -> None:
        self._text = ""

    def set_description_str(self, text: str, refresh: bool = True) -> None:
        self._text = text

    def refresh(self) -> None:
        print(f"\r\x1b[K{self._text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
