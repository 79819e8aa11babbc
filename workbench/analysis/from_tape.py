"""Tables of a tape: columns are read when they are asked for, and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from workbench.analysis.arrays.tables import Array, Tables
from workbench.config import RunConfig
from workbench.config.load import from_toml
from workbench.tape.ledger_course import fragment_sizes

GROUPS = ("events", "steps", "folds", "contributions", "merges", "evals", "details")


class _Columns(Mapping[str, Array]):
    """One group; ``reason`` as words, and the details decoded."""

    def __init__(self, tree: xr.DataTree, name: str) -> None:
        self._dataset = tree[name].dataset
        self._words = np.array([*tree.attrs["words"], ""], object)
        self._names = ("event", "detail") if name == "details" else tuple(str(key) for key in self._dataset.data_vars)
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> Array:
        if name == "detail":
            return self._details()
        values = np.asarray(self._dataset[name].values)
        return np.asarray(self._words[values]) if name == "reason" else values

    def _details(self) -> Array:
        found: Any = _Details(self["data"].tobytes(), self["offset"], self["bytes"])
        return found  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Details:
    """Details of events, decoded as they are asked for: a long tape holds many, and most are looked at by nobody."""

    def __init__(self, data: bytes, offsets: Array, lengths: Array) -> None:
        self._data, self._offsets, self._lengths = data, offsets, lengths

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, wanted: Array) -> Array:
        """Those of some rows."""
        places = zip(self._offsets[wanted].tolist(), self._lengths[wanted].tolist(), strict=True)
        found = [msgspec.msgpack.decode(self._data[offset : offset + length])[0] for offset, length in places]
        return np.fromiter(found, object, len(found))


def tables_of(source: Tables | xr.DataTree) -> Tables:
    """Tables of a tape, read once; tables are returned as they are."""
    if isinstance(source, xr.DataTree):
        found: Tables = source.wb.kept(_tables)
        return found
    return source


def _tables(tree: xr.DataTree) -> Tables:
    return {name: _Columns(tree, name) for name in GROUPS}


def config_of(source: Tables | xr.DataTree) -> RunConfig:
    """Configuration that a tape's run began with; the defaults where none is stored."""
    text = source.attrs.get("config", "") if isinstance(source, xr.DataTree) else ""
    return from_toml(text) if text else RunConfig()


def sizes_of(source: Tables | xr.DataTree) -> list[int] | None:
    """Elements of each fragment, from a tape's model manifest; None where it has none."""
    return fragment_sizes(source) if isinstance(source, xr.DataTree) else None
