"""A fit as a figure, and as what a notebook shows of it."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._errors import SettingError
from ._record import Array, table_html

if TYPE_CHECKING:
    import matplotlib.figure

    from ._fit import Fit, FitRecord

# told apart by colour-blind people; widths and dots say the same
_ESTIMATE, _FREE, _TRUTH, _DATA = "#0072B2", "#D55E00", "#F2C14E", "#8A929B"
#: Points of a line; more are not seen.
_POINTS = 4000


def figure(fit: Fit, place: int = 0) -> matplotlib.figure.Figure:
    """Each state in a row: the estimate with its band on the left, the free run on the right."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError('plot needs matplotlib: pip install "latens[plot]"') from missing

    record = _record(fit, place)
    model, t, names = fit.model, record.t, list(record.states)
    units, columns = model.units, record._by_name
    drawn = Figure(figsize=(10.5, 1.0 + 1.75 * len(names)), layout="constrained")
    axes = drawn.subplots(len(names), 2, sharex=True, sharey="row", squeeze=False)
    for row, name in zip(axes, names):
        state, hidden = record.states[name], name in model.hidden
        kept = _kept(t, [state.mean, state.free_run, state.truth])
        for ax, line, colour, label in (
            (row[0], state.mean, _ESTIMATE, "estimate"),
            (row[1], state.free_run, _FREE, "free run"),
        ):
            if state.truth is not None:
                ax.plot(t[kept], state.truth[kept], lw=4, color=_TRUTH, label="truth", zorder=2)
            if name in columns and not hidden:
                ax.plot(t[kept], columns[name][kept], ".", ms=2.5, color=_DATA, label="measured", zorder=1)
            ax.plot(t[kept], line[kept], lw=1.2, color=colour, label=label, zorder=4)
            _dress(ax)
        low, high = state.mean - 2 * state.std, state.mean + 2 * state.std
        row[0].fill_between(t[kept], low[kept], high[kept], color=_ESTIMATE, alpha=0.25, lw=0, label="its 95 % band", zorder=3)
        row[0].set_ylabel(_labelled(name, units.get(name, "")))
        row[0].set_ylim(*_reach([state.mean, state.truth, low, high], [state.mean, state.truth]))
        kind = "hidden: no sensor saw it" if hidden else "measured"
        row[0].set_title(f"{name}, {kind}", loc="left", fontsize=9.5, fontweight="bold" if hidden else "normal")
        for ax, scores in zip(row, (record.scores["nrmse_smoothed"], record.scores["nrmse"])):
            error, against = scores.get(f"truth_{name}"), "the truth"
            if error is None:
                error, against = scores.get(name), "what was measured"
            if error is not None:
                text = f"{_percent(error)} of the range from {against}"
                ax.set_title(text, loc="right", fontsize=8.5, color="#5F6873")
    for ax, title in zip(axes[0], ("Estimate, from the whole record", "Free run, from the start and never corrected")):
        ax.annotate(
            title, (0, 1), (0, 22), xycoords="axes fraction", textcoords="offset points", fontsize=11, weight="bold"
        )
    for ax in axes[-1]:
        ax.set_xlabel(_labelled("time", units.get("t", "")))
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        handles.update(zip(*reversed(ax.get_legend_handles_labels())))
    title = model.name or "model"
    drawn.suptitle(title if record.name == title else f"{title}: {record.name}", fontsize=13, x=0.01, ha="left")
    drawn.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9
    )
    return drawn


def _record(fit: Fit, place: int) -> FitRecord:
    shown = [r for r in fit.records if r.states]
    if not shown:
        raise SettingError("this fit has no states to draw: it is the snapshot of a stream")
    if not 0 <= place < len(shown):
        raise SettingError(f"there are {len(shown)} records with states, counted from 0")
    return shown[place]


def _dress(ax: Any) -> None:
    ax.grid(True, lw=0.4, color="#DDDDDD")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.margins(x=0.01)
    ax.tick_params(labelsize=8.5)


def _labelled(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if np.isfinite(part) else "more than any number"


def _reach(every: list[Array | None], core: list[Array | None]) -> tuple[float, float]:
    """As far as the band goes, but not further than the size of the signal itself on either side."""
    def ends(signals: list[Array | None]) -> tuple[float, float]:
        values = np.concatenate([s[np.isfinite(s)] for s in signals if s is not None])
        return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)

    (low, high), (least, most) = ends(every), ends(core)
    size = max(most - least, 1e-12 * max(abs(most), abs(least)), 1e-300)
    return max(low, least - size) - 0.04 * size, min(high, most + size) + 0.04 * size


def _kept(t: Array, signals: list[Array | None]) -> npt.NDArray[np.intp]:
    """Samples that a line goes through: of every stretch those with the least and greatest values."""
    if len(t) <= _POINTS:
        return np.arange(len(t))
    edges = np.linspace(0, len(t), _POINTS // 4, dtype=int)
    kept = {0, len(t) - 1}
    for signal in signals:
        if signal is not None:
            for a, b in zip(edges, edges[1:]):
                part = signal[a:b]
                if np.isfinite(part).any():
                    kept.update((a + int(np.nanargmin(part)), a + int(np.nanargmax(part))))
    return np.array(sorted(kept))


def _figures(fit: Fit) -> list[str]:
    """The figures of the report, as far as there are any: tests, the learned equation, states."""
    found = []
    for figure, spoken in (
        ("tests", "records that played no part, foreseen and measured"),
        ("equation", "the learned equation along the records and along slices"),
        ("states", "states over time"),
    ):
        try:
            picture = fit._raw.figure(figure)
        except SettingError:
            continue
        text = base64.b64encode(picture.encode()).decode()
        found.append(f'<img alt="{spoken}" style="max-width:100%" src="data:image/svg+xml;base64,{text}">')
    return found


def _rounded(value: float, std: float) -> tuple[str, str]:
    """To two digits of the deviation, as the report has them."""
    if not (std > 0 and np.isfinite(std)):
        return f"{value:.4g}", f"{std:.2g}"
    decimals = 1 - int(np.floor(np.log10(std)))
    if decimals > 8 or max(abs(value), std) >= 1e6:
        return f"{value:.4g}", f"{std:.1e}"
    return f"{value:.{max(decimals, 0)}f}", f"{std:.{max(decimals, 0)}f}"


def html(fit: Fit) -> str:
    """The figures of the report, the errors and the constants, with the digits that mean something."""
    parts = _figures(fit)
    rows = []
    for record in fit.records:
        for name, error in record.scores["nrmse"].items():
            kind = "true state" if name.startswith("truth_") else "measurement"
            rows.append((record.name, record.role, name.removeprefix("truth_"), kind, _percent(error)))
    title = f"{fit.model.name or 'model'}: {fit.solver}, seed {fit.seed}, {fit.seconds:.1f} s"
    head = ("record", "served to", "free run against", "", "error over range")
    parts.append(table_html(title, head, rows))
    if fit.unknowns:
        constants = []
        for name, c in fit.constants.items():
            value, std = _rounded(c.value, c.std)
            within = ""
            if c.interval is not None:
                within = " … ".join(f"{end:.4g}" for end in c.interval)
            constants.append((name, value, "fixed" if c.fixed else f"± {std}", c.unit, within, c.remark or ""))
        columns = ("", "value", "standard deviation", "unit", "95 % within", "")
        parts.append(table_html("unknown constants", columns, constants))
    for warning in fit.warnings:
        parts.append(f"<p><b>Warning:</b> {escape(warning)}</p>")
    return "".join(parts)
