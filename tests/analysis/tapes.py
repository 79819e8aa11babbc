"""Tapes for the tests of the analyses, laid from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from tests.analysis.runs import CONFIG
from workbench.config import RunConfig, to_toml
from workbench.protocol.records import Record
from workbench.tape import JournalWriter, Recorder, open_tape

MANIFEST = {f"t{p}": {"shape": [p + 1, 2], "dtype": "float32", "kind": "matrix", "fragment": p} for p in range(3)}


def taped(folder: Path, made: Sequence[Record], config: RunConfig = CONFIG, **header: Any) -> xr.DataTree:
    """Lay records onto a tape, which is not marked closed."""
    folder.mkdir()
    (folder / "config.toml").write_text(to_toml(config), encoding="utf-8")
    facts = {"run_id": "r", "config": to_toml(config), "manifest": MANIFEST, "clock": "virtual", **header}
    with JournalWriter(folder / "journal", facts) as journal:
        journal.append(list(made))
    recorder = Recorder(folder)
    recorder.drain()
    recorder.release()
    return open_tape(folder)
