"""Event tape: journal, recorder, store and the xarray accessor ``.wb`` (DESIGN section 3).

Names load their module at first use: who only appends to a journal loads no store.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.tape.accessor import TapeAccessor
    from workbench.tape.config_file import config_difference
    from workbench.tape.errors import StorageFull, TapeError
    from workbench.tape.journal import Input, JournalContents, JournalWriter, read_header, read_journal
    from workbench.tape.reader import open_tape
    from workbench.tape.recorder import Recorder, drain_interval_s, rebuild_tape
    from workbench.tape.run_folder import RunFolder, being_written, create_run_folder, open_run_folder
    from workbench.tape.schema import SCHEMA_VERSION

__all__ = [
    "SCHEMA_VERSION",
    "Input",
    "JournalContents",
    "JournalWriter",
    "Recorder",
    "RunFolder",
    "StorageFull",
    "TapeAccessor",
    "TapeError",
    "being_written",
    "config_difference",
    "create_run_folder",
    "drain_interval_s",
    "open_run_folder",
    "open_tape",
    "read_header",
    "read_journal",
    "rebuild_tape",
]

_HOMES = {
    "SCHEMA_VERSION": "schema",
    "Input": "journal",
    "JournalContents": "journal",
    "JournalWriter": "journal",
    "Recorder": "recorder",
    "RunFolder": "run_folder",
    "StorageFull": "errors",
    "TapeAccessor": "accessor",
    "TapeError": "errors",
    "being_written": "run_folder",
    "config_difference": "config_file",
    "create_run_folder": "run_folder",
    "drain_interval_s": "recorder",
    "open_run_folder": "run_folder",
    "open_tape": "reader",
    "read_header": "journal",
    "read_journal": "journal",
    "rebuild_tape": "recorder",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench.tape' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name == "open_tape":
        importlib.import_module("workbench.tape.accessor")  # registers ``.wb``
    value = getattr(importlib.import_module(f"workbench.tape.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
