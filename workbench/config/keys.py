"""The configuration tree seen as one flat table of dotted keys: names, types, values."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import numbers
import types
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from workbench.config.schema import RunConfig
from workbench.config.validate import RANGES, ConfigError, span


@functools.cache
def key_types() -> Mapping[str, Any]:
    """Return the type of every dotted key, in the order of the dataclasses."""
    table: dict[str, Any] = {}
    hints = get_type_hints(RunConfig)
    for field in dataclasses.fields(RunConfig):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            inner = get_type_hints(kind)
            table.update({f"{field.name}.{f.name}": inner[f.name] for f in dataclasses.fields(kind)})
        else:
            table[field.name] = kind
    return types.MappingProxyType(table)


@functools.cache
def groups() -> Mapping[str, type]:
    """Return the nested groups of keys, such as ``model``, with their dataclasses."""
    hints = get_type_hints(RunConfig)
    return types.MappingProxyType(
        {f.name: hints[f.name] for f in dataclasses.fields(RunConfig) if dataclasses.is_dataclass(hints[f.name])}
    )


def require_key(key: str) -> Any:
    """Return the type of a key.

    Raises
    ------
    ConfigError
        For a key that does not exist, with the nearest names, and what is allowed or where that stands.
    """
    table = key_types()
    if key in table:
        return table[key]
    group = key.split(".", 1)[0]
    if key in groups():
        raise ConfigError(f"{key} is a group of keys, not a key; allowed: {', '.join(_keys_of(key))}")
    near = _nearest(key)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    allowed = f"allowed: {', '.join(_keys_of(group))}" if group in groups() else "all keys: workbench train --keys"
    raise ConfigError(f"unknown key {key!r}{hint}; {allowed}")


def _keys_of(group: str) -> list[str]:
    return [key for key in key_types() if key.startswith(f"{group}.")]


def _nearest(key: str) -> list[str]:
    """Up to three existing keys that look like ``key``, whole or by their last word."""
    table = list(key_types())
    last = key.rsplit(".", 1)[-1]
    same_word = [name for name in table if name.rsplit(".", 1)[-1] == last]
    return (same_word + [n for n in difflib.get_close_matches(key, table, 3, 0.6) if n not in same_word])[:3]


def convert(key: str, value: Any) -> Any:
    """Turn a value from TOML or Python into the type of its key.

    Raises
    ------
    ConfigError
        For an unknown key, or a value of another type, with what is allowed.
    """
    kind = require_key(key)
    if types.NoneType in get_args(kind):
        if value is None or value == "none":
            return None
        kind = next(k for k in get_args(kind) if k is not types.NoneType)
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{key} = {shown(value)} is not a list; allowed: a list of numbers")
        return tuple(_scalar(key, item, get_args(kind)[0]) for item in value)
    return _scalar(key, value, kind)


WORDS: Mapping[type, str] = types.MappingProxyType(
    {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
)
"""What a type is called in messages."""

NUMBERS: Mapping[type, type] = types.MappingProxyType({int: numbers.Integral, float: numbers.Real})
"""What is taken for a number: numpy's scalars too."""


INT_MAX = 2**63 - 1
"""No whole number in a tape or a message is larger."""
SHOWN_MAX = 60


def shown(value: Any) -> str:
    """A value as messages say it: a long one is cut.

    Examples
    --------
    >>> shown("soon"), shown(10**5000)
    ("'soon'", 'a whole number of more digits than can be written')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no more than some thousands of digits
        return "a whole number of more digits than can be written"
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}… ({len(text):,} characters)"


def _scalar(key: str, value: Any, kind: type) -> Any:
    wrong = f"is not {WORDS[kind]}"
    if kind in NUMBERS and isinstance(value, NUMBERS[kind]) and not isinstance(value, bool):
        try:
            number = kind(value)
        except OverflowError:  # a whole number that no float is near
            number = None
        if number is not None and (kind is float or abs(number) <= INT_MAX):
            return number
        wrong = "is out of range"
    elif kind not in NUMBERS and isinstance(value, kind):
        return value
    allowed = span(key) if key in RANGES else f"{WORDS[kind]}{f' up to {INT_MAX}' if kind is int else ''}"
    also = ", or none" if types.NoneType in get_args(key_types()[key]) else ""
    raise ConfigError(f"{key} = {shown(value)} {wrong}; allowed: {allowed}{also}")


def parse(key: str, text: str) -> Any:
    """Read the text after ``KEY=`` as the type of its key.

    Raises
    ------
    ConfigError
        For an unknown key, or text that does not fit its type.
    """
    kind, text = require_key(key), text.strip()
    if types.NoneType in get_args(kind):
        if text.lower() == "none":
            return None
        kind = next(k for k in get_args(kind) if k is not types.NoneType)
    if get_origin(kind) is tuple:
        items = [item for item in text.removeprefix("[").removesuffix("]").split(",") if item.strip()]
        return tuple(_parse_scalar(key, item.strip(), get_args(kind)[0]) for item in items)
    return _parse_scalar(key, text, kind)


def _parse_scalar(key: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        value = kind(text)
    except (KeyError, ValueError):
        value = text  # it is refused with the words for this type
    return _scalar(key, value, kind)
