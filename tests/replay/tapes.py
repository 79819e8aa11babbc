"""Changing single values of an open tape, where they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from workbench.tape.plain_rows import FOLD_COLUMNS, STEP_COLUMNS
from workbench.tape.rounds import LIST_COLUMNS, MERGE_COLUMNS

Change = Callable[[Any], Any]
"""From the value on the tape to the one put in its place."""

_ROW_COLUMNS = {"steps": STEP_COLUMNS, "folds": FOLD_COLUMNS, "merges": MERGE_COLUMNS}


def changed(tape: xr.DataTree, event: int, column: str, change: Change) -> xr.DataTree:
    """A copy of a tape with one value changed, ``column`` as `workbench.replay.columns` names it."""
    name, *keys = column.split(".")
    if name != "detail":
        return _in_events(tape, event, name, change)
    for group, columns in _ROW_COLUMNS.items():
        rows = np.flatnonzero(tape[group].dataset["event"].values == event)
        if len(rows) and keys[0] in columns:
            return _put(tape, group, columns[keys[0]], int(rows[0]), change)
    merge = np.flatnonzero(tape["merges"].dataset["event"].values == event)
    if len(merge) and (keys[0] in LIST_COLUMNS or keys[0] == "learners"):
        rows = np.flatnonzero(tape["contributions"].dataset["merge"].values == merge[0])
        return _put(tape, "contributions", {**LIST_COLUMNS, "learners": "learner"}[keys[0]], int(rows[0]), change)
    return _in_details(tape, event, keys, change)


def with_attribute(tape: xr.DataTree, name: str, value: Any) -> xr.DataTree:
    """A copy of a tape with another attribute of its root."""
    copy = tape.copy()
    copy.attrs[name] = value
    return copy


def _put(tape: xr.DataTree, group: str, name: str, row: int, change: Change) -> xr.DataTree:
    copy = tape.copy()
    dataset = copy[group].to_dataset()
    values = dataset[name].values.copy()
    before = values[row].item()
    values[row] = change(before)
    assert values[row].item() != before, f"{group}/{name} is {before} as before"
    dataset[name] = (dataset[name].dims, values, dataset[name].attrs)
    copy[group].dataset = dataset
    return copy


def _in_events(tape: xr.DataTree, event: int, name: str, change: Change) -> xr.DataTree:
    if name != "reason":
        return _put(tape, "events", name, event, change)
    words = list(tape.attrs["words"])
    word = change(words[int(tape["events"].dataset["reason"].values[event])])
    words += [] if word in words else [word]
    return _put(with_attribute(tape, "words", words), "events", "reason", event, lambda _: words.index(word))


def _in_details(tape: xr.DataTree, event: int, keys: list[str], change: Change) -> xr.DataTree:
    """Change a key of what the tape keeps in msgpack, and lay the bytes anew."""
    dataset = tape["details"].to_dataset()
    data = dataset["data"].values.tobytes()
    bounds = zip(dataset["offset"].values.tolist(), dataset["bytes"].values.tolist(), strict=True)
    slices = [data[offset : offset + length] for offset, length in bounds]
    row = dataset["event"].values.tolist().index(event)
    content = msgspec.msgpack.decode(slices[row])
    holder = content[0]
    for key in keys[:-1]:
        holder = holder[key]
    before = holder[keys[-1]]
    holder[keys[-1]] = change(before)
    assert holder[keys[-1]] != before, f"{keys} is {before} as before"
    slices[row] = msgspec.msgpack.encode(content)
    lengths = np.array([len(part) for part in slices], np.int64)
    copy = tape.copy()
    copy["details"].dataset = dataset.drop_vars("data").assign(
        data=("byte", np.frombuffer(b"".join(slices), np.uint8)),
        bytes=("detail", lengths),
        offset=("detail", np.cumsum(lengths) - lengths),
    )
    return copy
