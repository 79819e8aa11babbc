"""Before a run begins: its data is looked at, its first weights are made, its journal gets its header.

Before it goes on: its committed fragments are looked at, or those of a snapshot are put in their place.

A process of its own, because it loads model code and a device, which supervisor and syncer do without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from workbench.config import ConfigError
from workbench.datasets import open_text
from workbench.engine.layout import read_config, read_plan
from workbench.engine.links import Link
from workbench.engine.resuming import Wish, find, put_in_place, read_wish
from workbench.engine.weights import save_initial
from workbench.tape.errors import TapeError, is_full, no_room
from workbench.tape.journal import JournalWriter
from workbench.tape.run_folder import RunFolder
from workbench.training.environment import fingerprint
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header
from workbench.training.snapshot_files import SnapshotDamaged


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Prepare the run folder ``arguments["run"]``; tells what the supervisor has to know, or why it cannot be."""
    folder = RunFolder(Path(arguments["run"]))
    try:
        wish = read_wish(folder.path)
        answer = {"prepared": prepare(folder)["fingerprint"]} if wish is None else go_on(folder, wish)
    except (ConfigError, TapeError, SnapshotDamaged, OSError) as error:
        if is_full(error):
            link.send({"failed": str(no_room(folder.path))})
            return 3
        if isinstance(error, OSError):
            raise
        link.send({"refused": str(error)})
        return 2
    link.send(answer)
    return 0


def go_on(folder: RunFolder, wish: Wish) -> dict[str, Any]:
    """Look at a run that is resumed, and put in place what it goes on from."""
    found, cut = find(folder.path, wish)
    resumed = put_in_place(found, cut, wish.faults)
    return {"prepared": fingerprint(), "resumed": msgspec.to_builtins(resumed)}


def prepare(folder: RunFolder) -> dict[str, Any]:
    """Write snapshot 0 and a journal that holds nothing but its header; returns the header."""
    config = read_config(folder.path)
    plan = read_plan(folder.path)
    text = open_text(config.data)
    program = TrainingProgram(config, text)
    save_initial(folder.path, initial_weights(config))
    header = run_header(config, text, program, "real", plan.facts)
    JournalWriter(folder.journal, header).close()
    return header
