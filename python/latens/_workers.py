"""Who has the records of one fit: processes of this machine, or actors of a Ray cluster.

What workers are asked and what they answer is known to Rust alone; here are the ways to them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from typing import Any

from ._errors import SettingError

#: Seconds that a fit waits for its first worker, and for others beside it.
FIRST, OTHERS = 60.0, 5.0

BACKENDS = ("processes", "ray")


@contextlib.contextmanager
def backend_of(backend: str | None, workers: int | None, threads: int | None) -> Generator[Any, None, None]:
    """What a fit is given to reach its workers; nothing without a backend."""
    if backend is None:
        if workers is not None:
            raise SettingError(f"`workers` goes with a backend: {' or '.join(map(repr, BACKENDS))}")
        yield None
        return
    if backend not in BACKENDS:
        raise SettingError(f"unknown backend {backend!r}: take {' or '.join(map(repr, BACKENDS))}")
    if workers is not None and workers < 1:
        raise SettingError(f"{workers} workers cannot fit: take one or more")
    if backend == "processes":
        code = f"import sys; sys.path[:] = {sys.path!r}; from latens._latens import serve; serve()"
        yield [sys.executable, "-c", code], workers or os.cpu_count() or 1, threads or 1
        return
    cluster = Cluster(workers, threads or 1)
    try:
        yield cluster
    finally:
        cluster.close()


class Desk:
    """The actor: records of a fit, and what they have."""

    def __init__(self, threads: int) -> None:
        from ._latens import Desk as Raw

        self._raw = Raw(threads)

    def ready(self) -> None:
        """Whoever asks this waits until it is there."""

    def handle(self, request: bytes) -> bytes:
        return self._raw.handle(request)


class Line:
    """The way to an actor."""

    def __init__(self, cluster: Cluster, actor: Any) -> None:
        self._cluster, self._ray, self._actor = cluster, cluster.ray, actor
        self._answer: Any = None

    def send(self, request: bytes) -> None:
        self._answer = self._actor.handle.remote(request)

    def receive(self) -> bytes:
        answer: bytes = self._ray.get(self._answer)
        self._answer = None
        return answer

    def close(self) -> None:
        self._cluster.alive -= 1
        self._ray.kill(self._actor)


class Cluster:
    """Actors of a Ray cluster; one that has no room for them all gets more as it grows."""

    def __init__(self, workers: int | None, threads: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise SettingError('backend="ray" needs Ray: pip install "latens[ray]"') from error
        self.ray: Any = ray
        self._workers, self._threads, self.alive = workers, threads, 0
        self._own = not ray.is_initialized()
        if self._own:
            ray.init(include_dashboard=False)
        self._desk: Any = ray.remote(num_cpus=threads, max_restarts=0)(Desk)
        #: Those that were asked for and are not there yet, by what they answer when they are.
        self._coming: dict[Any, Any] = {}

    def wanted(self) -> int:
        cores = self.ray.cluster_resources().get("CPU", 1)
        return self._workers or max(1, int(cores) // self._threads)

    def start(self, waits: bool) -> Line | None:
        """The next that is there; nothing where none comes for now."""
        for _ in range(max(1, self.wanted() - self.alive) - len(self._coming)):
            actor = self._desk.remote(self._threads)
            self._coming[actor.ready.remote()] = actor
        patience = (OTHERS if self.alive else FIRST) if waits else 0
        there, _ = self.ray.wait(list(self._coming), timeout=patience)
        if not there:
            return None
        actor = self._coming.pop(there[0])
        self.ray.get(there[0])  # raises what went wrong
        self.alive += 1
        return Line(self, actor)

    def close(self) -> None:
        for actor in self._coming.values():
            self.ray.kill(actor)
        self._coming.clear()
        if self._own:
            self.ray.shutdown()
