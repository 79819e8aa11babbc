"""Writing the configuration tree as TOML; reading is the standard library's `tomllib`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from workbench.config.keys import groups
from workbench.config.validate import ConfigError


def write(flat: Mapping[str, Any]) -> str:
    """Return TOML for a flat table of dotted keys: plain keys first, then one section for each group.

    ``None``, which TOML lacks, is written as the word ``"none"``.
    """
    lines = [f"{key} = {_value(value)}" for key, value in flat.items() if "." not in key]
    for group in groups():
        inner = [(key.split(".", 1)[1], value) for key, value in flat.items() if key.startswith(f"{group}.")]
        if inner:
            lines += ["", f"[{group}]", *(f"{name} = {_value(value)}" for name, value in inner)]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's too, save that TOML wants the delete character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def read(text: str, where: str = "the TOML text") -> dict[str, Any]:
    """Return the flat table of dotted keys in TOML text (no key is checked).

    Raises
    ------
    ConfigError
        When the text is not TOML, with the place.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from error
    return flat(tree)


def flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one table of dotted keys; an empty table stays as it is."""
    table: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            table.update({f"{key}.{name}": item for name, item in flat(value).items()})
        else:
            table[key] = value
    return table
