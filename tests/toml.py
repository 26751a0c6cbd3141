"""Configurations as files."""

import json
from typing import Any


def to_toml(tables: dict[str, Any]) -> str:
    """Tables of plain values, and lists of tables, as TOML."""
    lines: list[str] = []
    for name, table in tables.items():
        for one in table if isinstance(table, list | tuple) else [table]:
            lines.append(f"[[{name}]]" if isinstance(table, list | tuple) else f"[{name}]")
            lines += [f"{key} = {_value(value)}" for key, value in one.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
