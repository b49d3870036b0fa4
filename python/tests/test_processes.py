"""Processes: Ctrl-C in a terminal's and in a notebook's, and a child of `fork`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SLIDE

import latens

SCRIPT = """
import os, signal, sys, threading
import latens
model = latens.Model.from_string(open("slide.toml").read())
record = model.simulate(noise="1%", steps=4000)
pressed = []
def press(progress):
    # as soon as something has been learned
    if not pressed and progress.cost == progress.cost:
        pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
try:
    model.fit(record, progress=press, solver="alternating", passes=1000)
except KeyboardInterrupt as stop:
    assert "model.interrupted" in str(stop)
    fit = model.interrupted
    assert fit is not None and fit.stopped
    assert 1 <= len(fit.facts["passes"]) < 1000, len(fit.facts["passes"])
    fit.save("stopped")
    print("interrupted after", len(fit.facts["passes"]))
    sys.exit(0)
sys.exit("nobody was interrupted")
"""


def test_the_partial_fit_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "slide.toml").write_text(SLIDE)
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    fit = latens.load(tmp_path / "stopped")
    assert fit.stopped
    more = fit.resume(passes=len(fit.facts["passes"]) + 1, progress=False)
    assert not more.stopped and len(more.facts["passes"]) == len(fit.facts["passes"]) + 1


def test_a_signal_from_outside_ends_a_script(tmp_path: Path) -> None:
    (tmp_path / "slide.toml").write_text(SLIDE)
    script = SCRIPT.split("pressed = []")[0] + (
        "print('ready', flush=True)\nmodel.fit(record, solver='alternating', passes=100000)\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None and running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGINT, said
    assert "KeyboardInterrupt" in said


def test_a_notebooks_stop_button(tmp_path: Path) -> None:
    manager = pytest.importorskip("jupyter_client.manager")
    (tmp_path / "slide.toml").write_text(SLIDE)
    kernel, client = manager.start_new_kernel(cwd=str(tmp_path), kernel_name="python3")
    try:
        def reply(code: str, hook: Any = None) -> dict[str, Any]:
            found: dict[str, Any] = client.execute_interactive(code, timeout=60, output_hook=hook)["content"]
            return found

        assert reply(SCRIPT.split("pressed = []")[0])["status"] == "ok"

        def press(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream" and "learned" in message["content"]["text"]:
                kernel.interrupt_kernel()

        # once: a second time does not wait for what was learned
        told = """
told = []
def tell(progress):
    if progress.cost == progress.cost and not told:
        told.append(True)  # before the signal can come
        print("learned", flush=True)
model.fit(record, progress=tell, solver="alternating", passes=100000)
"""
        stopped = reply(told, press)
        assert (stopped["status"], stopped["ename"]) == ("error", "KeyboardInterrupt"), stopped
        shown = reply("assert model.interrupted.stopped; model.interrupted")
        assert shown["status"] == "ok", shown
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def test_a_forked_child_has_threads_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "slide.toml").write_text(SLIDE)
    script = """
import os, latens
model = latens.Model.from_string(open("slide.toml").read())
record = model.simulate()
fit = model.fit(record, passes=1)
child = os.fork()
again = model.fit(record, passes=1)
same = (again.states["v"].mean == fit.states["v"].mean).all()
if child == 0:
    os._exit(0 if same else 1)
assert same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
