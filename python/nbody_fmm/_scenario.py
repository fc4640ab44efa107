"""Scenarios as TOML text."""

from __future__ import annotations

import json
import os
import re
from typing import Any, List, Mapping

import numpy as np

_EXPECTED = "expected a number, a string, True, False, a list or a dict"


def toml(scenario: Mapping[str, Any]) -> str:
    """Returns a dict as TOML: a section for each dict in it and a line for each key, which messages then show."""
    alone: List[str] = []
    sections: List[str] = []
    for name, value in scenario.items():
        tables = value if isinstance(value, (list, tuple)) else [value]
        if not tables or not all(isinstance(table, Mapping) for table in tables):
            alone.append(_line(name, value))
            continue
        heading = f"[[{_key(name)}]]" if tables is value else f"[{_key(name)}]"
        for table in tables:
            sections += [heading, *(_line(key, item, f"{name}.{key}") for key, item in table.items())]
    return "\n".join(alone + sections) + "\n"


def _line(key: Any, value: Any, name: str = "") -> str:
    return f"{_key(key)} = {_value(value, name or str(key))}"


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"scenario: the key {key!r} is not a string")
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, name: str) -> str:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        # Not the text of a subclass, such as an enumeration.
        return repr(int(value)) if isinstance(value, int) else repr(float(value))
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_line(key, item, f"{name}.{key}") for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item, name) for item in value) + "]"
    raise TypeError(f"scenario: {name} is of type {type(value).__name__}; {_EXPECTED}")
