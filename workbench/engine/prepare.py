"""Before a run begins: its data is looked at, its first weights are made, its journal gets its header.

A process of its own, because it loads model code and a device, which supervisor and syncer do without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.config import ConfigError
from workbench.datasets import open_text
from workbench.engine.layout import read_config, read_plan
from workbench.engine.links import Link
from workbench.engine.weights import save_initial
from workbench.tape.errors import TapeError
from workbench.tape.journal import JournalWriter
from workbench.tape.run_folder import RunFolder
from workbench.training.flat import initial_weights
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Prepare the run folder ``arguments["run"]``; tells what the supervisor has to know, or why it cannot be."""
    folder = RunFolder(Path(arguments["run"]))
    try:
        header = prepare(folder)
    except (ConfigError, TapeError) as error:
        link.send({"refused": str(error)})
        return 2
    link.send({"prepared": header["fingerprint"]})
    return 0


def prepare(folder: RunFolder) -> dict[str, Any]:
    """Write snapshot 0 and a journal that holds nothing but its header; returns the header."""
    config = read_config(folder.path)
    plan = read_plan(folder.path)
    text = open_text(config.data)
    program = TrainingProgram(config, text)
    save_initial(folder.path, initial_weights(config))
    header = run_header(config, text, program, "real", {"chaos": plan.chaos, "scenario": plan.scenario})
    JournalWriter(folder.journal, header).close()
    return header
