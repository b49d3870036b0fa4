"""A grid of fits, on the processes of this machine or on a Ray cluster.

A fit is a task: it is sent out whole and comes back whole, as the bytes of its run, which are written to the sweep's
folder at once. So a worker that dies loses only the fit that it was at, which is made again, and a sweep that was
stopped goes on when it is called again. Workers share nothing, not even a disk.

A local worker is a process for one fit, not one of a pool: nothing of the caller's `__main__` is run again in it,
and its death is nobody else's.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from ._errors import Diverged, Error, FitWarning, SettingError
from ._fit import Fit
from ._model import Model
from ._progress import _bar, _somebody_looks
from ._record import Record, as_records

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._settings import Settings

Row = dict[str, Any]
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One fit: what the grid says of it, all its settings, and the name of its run."""

    cell: Row
    settings: Row
    name: str


def sweep(
    model: Model,
    records: Any,
    grid: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] | None = None,
    seeds: Iterable[int] = (1,),
    *,
    backend: str = "local",
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    validate: Any = (),
    test: Any = (),
    warmup: int | None = None,
    threads: int = 1,
    retries: int = 3,
    progress: bool | Callable[[int, int, Row], Any] | None = None,
    **settings: Unpack[Settings],
) -> pandas.DataFrame:
    """Fit a model with every combination of settings and every seed; one row a fit comes back.

    `grid` names settings of `Model.fit` and the values to try, `{"solver": ["batch", "joint"], "passes": [5, 10]}`,
    in all combinations; or it is a list of combinations. `settings` are the same for every fit.

    With `backend="local"` fits run in processes of this machine, as many at a time as it has cores, or `workers`.
    With `backend="ray"` they run on the cluster that `ray.init` has connected to, or that it finds or starts now;
    its nodes need Latens and no common disk. A fit has so many `threads`.

    Each fit is kept in `folder` as it ends. The same call finds those that are there and makes the rest, whatever
    the backend; without a folder they go to a new temporary one. A worker that dies loses the fit that it was at,
    which is made again, up to `retries` times. A fit that diverges or fails is a row with its message.

    Columns: the grid's, `seed`, `status` ("done", "diverged", "failed"), `message`; errors of the free run as
    `train.<channel>`, `test.<channel>`, …, `train.truth_<state>` (nRMSE, the mean over the records of a role);
    how many `warnings` it has, `seconds`, and `run`, the folder for `latens.load`.

    `progress` shows a bar on a terminal or in a notebook; True always, False never; a function is called after each fit,
    with how many are done, how many there are, and what is known of this one.

    >>> table = latens.sweep(model, record, {"passes": [1, 2]}, workers=2, folder="sweep", progress=False)
    >>> table[["passes", "seed", "status"]].values.tolist()
    [[1, 1, 'done'], [2, 1, 'done']]
    """
    try:
        import pandas  # noqa: F401 - better now than when the fits are done
    except ImportError as error:
        raise ImportError('latens.sweep needs pandas: pip install "latens[frames]"') from error
    run = _BACKENDS.get(backend)
    if run is None:
        raise SettingError(f"unknown backend {backend!r}: take {' or '.join(map(repr, _BACKENDS))}")
    shared = {
        "model": model,
        "records": as_records(records, model),
        "validate": as_records(validate, model),
        "test": as_records(test, model),
        "warmup": warmup,
    }
    tasks = _tasks(shared, grid, seeds, {"threads": threads, **settings})
    home = Path(tempfile.mkdtemp(prefix="latens-sweep-") if folder is None else folder).absolute()
    home.mkdir(parents=True, exist_ok=True)

    kept = {task.name: _kept(home, task.name) for task in tasks}
    rows = {name: row for name, row in kept.items() if row is not None}
    left = [task for task in tasks if task.name not in rows]
    show, close = _display(progress, len(rows), len(tasks))
    outcomes = (run if left else _nowhere)(pickle.dumps(shared), left, workers, retries)
    try:
        for task, outcome in outcomes:
            row = _keep(home, task, outcome)
            rows[task.name] = row
            show(len(rows), row)
    finally:
        # ends the workers that still run when this is interrupted
        outcomes.close()
        close()
    return _table(tasks, rows, home)


def _tasks(shared: Row, grid: Any, seeds: Iterable[int], settings: Row) -> list[Task]:
    cells: list[Row]
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
                raise SettingError(f"grid[{name!r}] is not a list of values to try: write [{values!r}]")
        names = list(grid)
        cells = [dict(zip(names, values)) for values in itertools.product(*grid.values())]
    else:
        cells = [dict(cell) for cell in grid] if grid is not None else [{}]
    for name in {name for cell in cells for name in cell} & ({*settings, "seed"} - {"threads"}):
        where = "stands in the grid: give it as seeds" if name == "seed" else "stands in the grid and beside it"
        raise SettingError(f"`{name}` {where}")
    if "seed" in settings:
        raise SettingError("give the seed as seeds: seeds=[1]")
    roles = {role: [_fingerprint(record) for record in shared[role]] for role in ("records", "validate", "test")}
    data = _digest([__version__, shared["model"].text, roles, shared["warmup"]])
    tasks = []
    for cell, seed in itertools.product(cells, seeds):
        full = {**settings, **cell, "seed": int(seed)}
        tasks.append(Task({**cell, "seed": int(seed)}, full, _digest([data, _plain(full)])[:16]))
    if len({task.name for task in tasks}) < len(tasks):
        raise SettingError("the same settings and seed stand in the grid twice")
    return tasks


def _fingerprint(record: Record) -> Any:
    columns = {name: hashlib.sha256(values.tobytes()).hexdigest() for name, values in record._arrays()}
    return [columns, record.step]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


Outcomes = Generator[tuple[Task, Outcome], None, None]


# What a worker does


def fit_one(shared: bytes, settings: Row) -> Outcome:
    """One fit, as bytes; a fit that fails is an outcome like any other."""
    try:
        given = pickle.loads(shared)
        model, records = given.pop("model"), given.pop("records")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # they stay in the fit
            fit = model.fit(records, **given, progress=False, **settings)
    except Diverged as error:
        return {"status": "diverged", "message": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs into the row
        message = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        return {"status": "failed", "message": message}
    return {"status": "done", "message": "", "fit": pickle.dumps(fit)}


def work() -> None:
    """The local worker: one task from standard input, its outcome to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get into the outcome
    task = pickle.load(sys.stdin.buffer)

    def orphaned() -> None:
        os.read(0, 1)  # returns when the sweep ends, however it ends
        os._exit(1)

    threading.Thread(target=orphaned, daemon=True).start()
    with sink:
        pickle.dump(fit_one(**task), sink)


# Where they work: each backend yields outcomes as they come


def _local(shared: bytes, tasks: list[Task], workers: int | None, retries: int) -> Outcomes:
    alive: set[subprocess.Popen[bytes]] = set()
    stopped = threading.Event()
    lock = threading.Lock()
    code = f"import sys; sys.path[:] = {sys.path!r}; from latens._sweep import work; work()"
    command = [sys.executable, "-c", code]

    def attempt(task: Task) -> Outcome | str:
        with tempfile.TemporaryFile() as errors:
            with lock:
                if stopped.is_set():
                    return "stopped"
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
                alive.add(process)
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError):  # where it died early, its code says so
                pickle.dump({"shared": shared, "settings": task.settings}, process.stdin)
                process.stdin.flush()
            answer = process.stdout.read()
            code = process.wait()
            with lock:
                alive.discard(process)
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            if code == 0:
                outcome: Outcome = pickle.loads(answer)
                return outcome
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            end = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            return ": ".join([end, *said[-1:]])

    def persist(task: Task) -> Outcome:
        for _ in range(retries + 1):
            outcome = attempt(task)
            if not isinstance(outcome, str):
                return outcome
        return {"status": "failed", "message": f"its worker {outcome}, {retries + 1} times"}

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = {pool.submit(persist, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            with lock:
                stopped.set()
                for process in alive:
                    process.kill()
            pool.shutdown(cancel_futures=True)


def _ray(shared: bytes, tasks: list[Task], workers: int | None, retries: int) -> Outcomes:
    try:
        import ray
    except ImportError as error:
        raise SettingError('backend="ray" needs Ray: pip install "latens[ray]"') from error
    starts_ray = not ray.is_initialized()
    if starts_ray:
        ray.init(include_dashboard=False)
    running: dict[Any, Task] = {}
    try:
        place = ray.put(shared)
        remote = ray.remote(max_retries=retries)(fit_one)
        waiting = list(reversed(tasks))
        while waiting or running:
            while waiting and len(running) < (workers or len(tasks)):
                task = waiting.pop()
                running[remote.options(num_cpus=task.settings["threads"]).remote(place, task.settings)] = task
            for ready in ray.wait(list(running), num_returns=1)[0]:
                task = running.pop(ready)
                try:
                    outcome = ray.get(ready)
                except ray.exceptions.RayError as error:  # beyond the retries
                    outcome = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
                yield task, outcome
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        if starts_ray:
            ray.shutdown()


def _nowhere(*_: Any) -> Outcomes:
    yield from ()


_BACKENDS = {"local": _local, "ray": _ray}


# What is kept


def _kept(home: Path, name: str) -> Row | None:
    """The row of a fit that an earlier call made; what failed, other than by the mathematics, is tried again."""
    try:
        row: Row = json.loads((home / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return None if row["status"] == "failed" else row


def _keep(home: Path, task: Task, outcome: Outcome) -> Row:
    """Writes the run, and then the row that says that it is whole."""
    row = {"status": outcome["status"], "message": outcome["message"], "settings": _plain(task.settings)}
    if outcome["status"] == "done":
        fit: Fit = pickle.loads(outcome["fit"])
        fit.save(home / task.name, force=True)
        row.update(seconds=fit.seconds, warnings=len(fit.warnings), scores=_scores(fit))
    path = home / f"{task.name}.json"
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(row), encoding="utf-8")
    part.replace(path)
    return row


def _scores(fit: Fit) -> dict[str, float]:
    """nRMSE of the free run by role and channel, averaged over the records of a role."""
    found: dict[str, list[float]] = {}
    for record in fit.records:
        for name, error in record.scores.get("nrmse", {}).items():
            found.setdefault(f"{record.role}.{name}", []).append(error)
    return {name: sum(errors) / len(errors) for name, errors in found.items()}


def _table(tasks: list[Task], rows: dict[str, Row], home: Path) -> pandas.DataFrame:
    import pandas

    table = []
    for task in tasks:
        row = rows[task.name]
        run = str(home / task.name) if row["status"] == "done" else None
        table.append({**row, **task.cell, **row.get("scores", {}), "run": run})
    cells = dict.fromkeys(name for task in tasks for name in task.cell if name != "seed")
    scores = dict.fromkeys(name for row in rows.values() for name in row.get("scores", {}))
    columns = [*cells, "seed", "status", "message", *scores, "warnings", "seconds", "run"]
    frame: pandas.DataFrame = pandas.DataFrame(table, columns=columns)
    return frame


def _display(
    progress: bool | Callable[[int, int, Row], Any] | None, kept: int, total: int
) -> tuple[Callable[[int, Row], Any], Callable[[], None]]:
    """What shows how far a sweep is, and what ends that."""
    if callable(progress):
        return lambda done, row: progress(done, total, row), lambda: None
    if progress is False or (progress is None and not _somebody_looks()):
        return lambda done, row: None, lambda: None
    bar, lost = _bar(known=True), 0
    bar.total = total

    def draw(done: int) -> None:
        bar.n = done
        without = f", {lost} without a result" if lost else ""
        bar.set_description_str(f"{done} of {total} fits{without}", refresh=False)
        bar.refresh()

    def show(done: int, row: Row) -> None:
        nonlocal lost
        lost += row["status"] != "done"
        draw(done)

    draw(kept)
    return show, bar.close
