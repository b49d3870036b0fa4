"""Writes the few forms of TOML that a model file has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def value(item: Any) -> str:
    if hasattr(item, "tolist"):  # numpy's numbers and arrays
        item = item.tolist()
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, (int, float)):
        return repr(item)
    if isinstance(item, str):
        return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(item, Mapping):
        inside = ", ".join(f"{key(str(k))} = {value(v)}" for k, v in item.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(item, Sequence):
        return "[" + ", ".join(value(v) for v in item) + "]"
    raise TypeError(f"{item!r} is a {type(item).__name__}; a model is made of text, numbers, lists and dicts")


def section(name: str, entries: Mapping[str, Any]) -> str:
    """`[name]`, and a heading of its own for each table in it."""
    plain = {k: v for k, v in entries.items() if not isinstance(v, Mapping)}
    tables = {k: v for k, v in entries.items() if isinstance(v, Mapping)}
    text = ""
    if plain or not tables:
        text += f"\n[{name}]\n" + "".join(f"{key(k)} = {value(v)}\n" for k, v in plain.items())
    for inner, table in tables.items():
        lines = "".join(f"{key(str(k))} = {value(v)}\n" for k, v in table.items())
        text += f"\n[{name}.{key(inner)}]\n{lines}"
    return text


def settings(given: Mapping[str, Any]) -> str:
    """Settings of a fit as the section of a model file."""
    lines = "".join(f"{key(k)} = {value(v)}\n" for k, v in given.items())
    return f"[fit]\n{lines}"
