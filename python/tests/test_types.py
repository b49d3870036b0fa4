"""The stubs say what there is, and a user's script runs as it is typed."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import latens
from latens import _latens


def test_the_stubs_name_all_that_there_is() -> None:
    stub = ast.parse((Path(latens.__file__).parent / "_latens.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    for name, node in classes.items():
        stated = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
        stated |= {str(a.target.id) for a in node.body if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)}
        there = {n for n in vars(getattr(_latens, name)) if not n.startswith("_")}
        assert {n for n in stated if not n.startswith("_")} == there, name
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    public = {n for n in dir(_latens) if not n.startswith("_")}
    assert public == functions | set(classes) | {"VERSION"}


def test_a_users_script_runs() -> None:
    runpy.run_path(str(Path(__file__).parent / "user_script.py"))


def test_all_public_names_have_a_docstring() -> None:
    for name in latens.__all__:
        thing = getattr(latens, name)
        if isinstance(thing, type):
            assert thing.__doc__, name
            for method, value in vars(thing).items():
                if callable(value) and not method.startswith("_"):
                    assert value.__doc__, f"{name}.{method}"


def test_mypy_rejects_what_is_no_setting() -> None:
    script = Path(__file__).parent / "rejected_script.py"
    wrong = {k for k, line in enumerate(script.read_text().splitlines(), 1) if "# wrong" in line}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(script)], capture_output=True, text=True)
    found = {int(line) for line in re.findall(r"rejected_script.py:(\d+): error", done.stdout)}
    assert wrong and found == wrong, done.stdout + done.stderr
