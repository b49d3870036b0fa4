"""Workers have the records of one fit: it comes to the bits of one process, whatever happens to them."""

import contextlib

import psutil
import pytest

import latens
from latens import _workers

TEXT = """
[time]
step = 0.05
[states.z]
derivative = "v"
start = 1
[states.v]
derivative = "acceleration(z, v)"
start = 0
[networks.acceleration]
layers = ["6 tanh"]
[measurements]
z = "z"
[truth]
v = "-z - 0.2*v"
[simulation]
steps = 300
"""
SETTINGS = {"passes": 4, "simplify": False}


@pytest.fixture(scope="module")
def model():
    return latens.Model.from_string(TEXT)


@pytest.fixture(scope="module")
def records(model):
    return [model.simulate(seed=k, noise="2%", start={"z": 1 + 0.05 * k}) for k in range(1, 20)]


@pytest.fixture(scope="module")
def one(model, records):
    return numbers(model.fit(records, progress=False, **SETTINGS))


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield ray
        ray.shutdown()


def numbers(fit):
    """All that was learned, and the states of all records, by their bits."""
    files = dict(fit._raw.to_files())
    names = ["weights.safetensors", *(f"states_{k}.csv" for k in range(1, 20))]
    return [files[name] for name in names]


def processes(name):
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if name in " ".join(process.cmdline()):
                found.append(process)
    return found


class Killer:
    """A listener that kills a worker in the middle of the fit, once."""

    def __init__(self, name):
        self.name, self.killed, self.seen = name, None, set()

    def __call__(self, progress):
        there = processes(self.name)
        self.seen |= {process.pid for process in there}
        if self.killed is None and progress.number > 1 and len(there) == 2:
            there[0].kill()
            self.killed = there[0].pid


@pytest.mark.parametrize("workers", [2, 3])
def test_processes_come_to_the_bits_of_one(model, records, one, workers):
    fit = model.fit(records, backend="processes", workers=workers, progress=False, **SETTINGS)
    assert numbers(fit) == one


def test_a_process_that_is_killed_is_replaced(model, records, one):
    killer = Killer("serve()")
    fit = model.fit(records, backend="processes", workers=2, progress=killer, **SETTINGS)
    assert killer.killed is not None and len(killer.seen) == 3
    assert numbers(fit) == one
    assert not processes("serve()"), "none is left"


def test_an_actor_of_ray_that_is_killed_is_replaced(model, records, one, cluster):
    killer = Killer("ray::Desk")
    fit = model.fit(records, backend="ray", workers=2, progress=killer, **SETTINGS)
    assert killer.killed is not None
    assert numbers(fit) == one
    assert cluster.is_initialized(), "it is the caller's"


def test_an_actor_joins_when_there_is_room(model, records, one, cluster, monkeypatch):
    @cluster.remote(num_cpus=1)
    class Busy:
        def there(self):
            return True

    busy = Busy.remote()
    assert cluster.get(busy.there.remote())
    alive = []
    start = _workers.Cluster.start

    def start_later(self, waits):
        # there is room from the third time on that somebody asks, and whoever comes is waited for
        later = len(alive) >= 2
        if len(alive) == 2:
            cluster.kill(busy)
        monkeypatch.setattr(_workers, "OTHERS", 30 if later else 0.1)
        line = start(self, waits or later)
        alive.append(self.alive)
        return line

    monkeypatch.setattr(_workers.Cluster, "start", start_later)
    fit = model.fit(records, backend="ray", progress=False, **SETTINGS)
    assert alive[:3] == [1, 1, 2]
    assert numbers(fit) == one


def test_what_is_wrong_is_said(model, records, monkeypatch):
    def refused(**given):
        with pytest.raises(latens.SettingError) as error:
            model.fit(records[:1], progress=False, **given)
        return str(error.value)

    assert refused(backend="dask") == "unknown backend 'dask': take 'processes' or 'ray'"
    assert "goes with a backend" in refused(workers=2)
    assert "take one or more" in refused(backend="processes", workers=0)
    assert "backend= is for solver= batch" in refused(backend="processes", solver="joint")
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "ray", None)
        assert refused(backend="ray") == 'backend="ray" needs Ray: pip install "latens[ray]"'
    with monkeypatch.context() as patch:
        patch.setattr(_workers.sys, "executable", "/nowhere/python")
        with pytest.raises(latens.Error, match="no worker could be started: /nowhere/python"):
            model.fit(records[:1], backend="processes", progress=False)


def test_a_stop_ends_the_workers(model, records):
    def stop(progress):
        return progress.number < 2

    fit = model.fit(records, backend="processes", workers=2, progress=stop, **SETTINGS)
    assert fit.facts["stopped"]
    assert not processes("serve()")
