"""A sweep gives every fit, whatever happens to its workers, and the same ones on every backend."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import latens
from latens import _sweep

pandas = pytest.importorskip("pandas")
psutil = pytest.importorskip("psutil")

# An oscillator with a small network: a fit takes half a second, several times what a worker takes to start.
TEXT = """
[time]
step = 0.01
[states.z]
derivative = "v"
start = 1
[states.v]
derivative = "acceleration(z, v)"
start = 0
[networks.acceleration]
layers = ["16 tanh"]
[measurements]
z = "z"
[truth]
v = "-z"
[simulation]
steps = 6000
"""
GRID = {"passes": [3, 4]}
SEEDS = [1, 2, 3, 4]


@pytest.fixture(scope="module")
def model():
    return latens.Model.from_string(TEXT)


@pytest.fixture(scope="module")
def record(model):
    return model.simulate(seed=1)


@pytest.fixture(scope="module")
def short(model):
    return model.simulate(steps=400)


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # by default whatever else runs here comes first
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield ray
        ray.shutdown()


class Killer:
    """Kills a worker in the middle of a fit: the first that is seen to have worked on one for a while.

    A local worker begins with its own start, which is measured; one of Ray's bears the name of its task meanwhile.
    """

    def __init__(self, name):
        self.name, self.killed, self.begun, self.over = name, None, {}, False
        code = "import latens, time; print(time.process_time())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        self.start = None if name.startswith("ray") else float(done.stdout)
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def watch(self):
        while self.killed is None and not self.over:
            busy = {process.pid: process for process in workers(self.name)}
            self.begun = {pid: spent for pid, spent in self.begun.items() if pid in busy}
            for pid, process in busy.items():
                with contextlib.suppress(psutil.Error):
                    spent = sum(process.cpu_times()[:2])
                    begun = self.begun.setdefault(pid, spent) if self.start is None else self.start
                    if spent > begun + 0.08:
                        process.kill()
                        self.killed = pid
                        return
            time.sleep(0.01)


def workers(name):
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if name in " ".join(process.cmdline()):
                found.append(process)
    return found


def runs(table):
    return {(row.passes, row.seed): states(row.run) for row in table.itertuples()}


def states(run):
    fit = latens.load(run)
    return np.concatenate([part for state in fit.states.values() for part in (state.mean, state.std)])


@pytest.fixture(scope="module")
def undisturbed(model, record, tmp_path_factory):
    table = latens.sweep(model, record, GRID, SEEDS, workers=2, folder=tmp_path_factory.mktemp("local"))
    assert list(table.status) == ["done"] * 8
    return table


def test_fits_are_those_of_model_fit(model, record, undisturbed):
    row = undisturbed.iloc[5]
    fit = model.fit(record, passes=int(row.passes), seed=int(row.seed), threads=1, progress=False)
    for name, state in latens.load(row.run).states.items():
        assert np.array_equal(state.mean, fit.states[name].mean)
    assert row["train.z"] == fit.records[0].scores["nrmse"]["z"]


def test_a_killed_local_worker_loses_nothing(model, record, undisturbed, tmp_path, monkeypatch):
    killer = Killer("latens._sweep")
    started = []
    popen = subprocess.Popen

    def counted(*arguments, **options):
        started.append(arguments)
        return popen(*arguments, **options)

    monkeypatch.setattr(_sweep.subprocess, "Popen", counted)
    with killer:
        table = latens.sweep(model, record, GRID, SEEDS, workers=2, folder=tmp_path)
    assert killer.killed and len(started) == 9
    compare(table, undisturbed)


def test_a_killed_ray_worker_loses_nothing(model, record, undisturbed, tmp_path, cluster):
    with Killer("ray::fit_one") as killer:
        table = latens.sweep(model, record, GRID, SEEDS, backend="ray", folder=tmp_path)
    assert killer.killed
    compare(table, undisturbed)
    # the same call finds them on any backend
    seen = []
    again = latens.sweep(model, record, GRID, SEEDS, folder=tmp_path, progress=lambda *row: seen.append(row))
    assert seen == [] and again.equals(table)


def compare(table, undisturbed):
    assert list(table.status) == ["done"] * 8
    for key, expected in runs(undisturbed).items():
        assert np.array_equal(runs(table)[key], expected), key
    apart = ["seconds", "run"]
    assert table.drop(columns=apart).equals(undisturbed.drop(columns=apart))


def test_an_interrupted_sweep_goes_on(model, short, tmp_path):
    def interrupt(done, total, row):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        latens.sweep(model, short, {"passes": [1]}, SEEDS, workers=1, folder=tmp_path, progress=interrupt)
    assert not workers("latens._sweep")
    assert len(list(tmp_path.glob("*.json"))) == 2
    done = []
    table = latens.sweep(model, short, {"passes": [1]}, SEEDS, folder=tmp_path, progress=lambda n, *_: done.append(n))
    assert done == [3, 4] and list(table.seed) == SEEDS


def test_a_fit_that_fails_is_a_row(model, short, tmp_path):
    grid = [{"passes": 1}, {"passes": 1, "solver": "nod"}]
    table = latens.sweep(model, short, grid, folder=tmp_path)
    assert list(table.status) == ["done", "failed"]
    assert "nod" in table.message[1] and pandas.isna(table.run[1])
    # what failed is tried again, what is done is not
    done = []
    latens.sweep(model, short, grid, folder=tmp_path, progress=lambda n, *_: done.append(n))
    assert done == [2]


def test_a_worker_that_always_dies_is_given_up(model, short, tmp_path, monkeypatch):
    monkeypatch.setattr(_sweep.sys, "executable", "/bin/false")
    table = latens.sweep(model, short, folder=tmp_path, retries=1)
    assert list(table.status) == ["failed"] and "2 times" in table.message[0]


def test_other_data_are_other_fits(model, short, tmp_path):
    latens.sweep(model, short, {"passes": [1]}, folder=tmp_path)
    noisy = model.simulate(steps=400, noise="1%")
    latens.sweep(model, noisy, {"passes": [1]}, folder=tmp_path)
    rows = [json.loads(path.read_text()) for path in Path(tmp_path).glob("*.json")]
    assert len({json.dumps(row["scores"]) for row in rows}) == 2


@pytest.mark.parametrize(
    "grid, message",
    [
        ({"solver": "node"}, "not a list"),
        ({"passes": 3}, "not a list"),
        ({"seed": [1, 2]}, "as seeds"),
        ({"passes": [3, 3]}, "twice"),
    ],
)
def test_a_grid_that_is_none_says_so(model, short, grid, message):
    with pytest.raises(latens.Error, match=message):
        latens.sweep(model, short, grid)


def test_an_unknown_backend_says_which_there_are(model, short):
    with pytest.raises(latens.Error, match="'local' or 'ray'"):
        latens.sweep(model, short, backend="dask")
