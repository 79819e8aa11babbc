"""Event tape: journal, recorder, store and the xarray accessor ``.wb`` (DESIGN section 3)."""

from workbench.tape.accessor import TapeAccessor
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
    "create_run_folder",
    "drain_interval_s",
    "open_run_folder",
    "open_tape",
    "read_header",
    "read_journal",
    "rebuild_tape",
]
