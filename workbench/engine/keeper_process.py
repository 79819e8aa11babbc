"""The keeper's process: writes snapshots to disk from what syncer and learners have laid into mapped files.

It starts with the first snapshot of a run; what it loads to write arrays, no other process of the run needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.algorithms.syncer_arithmetic import OuterState
from workbench.engine.blocks import BlockError, BlockReader, Descriptor
from workbench.engine.layout import read_config
from workbench.engine.links import Link
from workbench.training.held_state import from_bytes
from workbench.training.snapshot_files import SYNCER, keep_newest, sweep, write_snapshot
from workbench.training.snapshot_parts import SyncerPart, learner_arrays

FOLDER = "snapshots"


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Write snapshots of the run ``arguments["run"]`` until told to close."""
    run = Path(arguments["run"])
    kept = read_config(run).snapshots_kept
    sweep(run / FOLDER)
    link.send({"up": True})
    while not link.closed:
        message = link.receive(3600.0)
        if message is not None and "close" in message:
            break
        if message is not None and "write_snapshot" in message:
            link.send(answer(run / FOLDER, message, kept))
    return 0


def answer(folder: Path, message: dict[str, Any], kept: int) -> dict[str, Any]:
    """Write one snapshot; says what came of it."""
    number = message["write_snapshot"]
    try:
        digest = write(folder, number, message["manifest"], message["parts"])
    except (OSError, ValueError, BlockError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return {"snapshot_written": number, "digest": 0, "reason": f"it could not be written: {reason}"}
    keep_newest(folder, kept)
    return {"snapshot_written": number, "digest": digest, "reason": ""}


def write(folder: Path, number: int, manifest: dict[str, Any], parts: dict[str, dict[str, Any]]) -> int:
    """Write one snapshot; returns the digest of the syncer's part."""
    arrays = {name: read_bytes(where) for name, where in parts.items()}
    own = from_bytes(arrays.pop(SYNCER))
    rules = manifest["outer"]
    outers = [OuterState(rule, int(own.moments[2 * p][0]), own.moments[2 * p + 1]) for p, rule in enumerate(rules)]
    part = SyncerPart(own.parameters, outers)
    learners = {name: learner_arrays(from_bytes(data)) for name, data in arrays.items()}
    write_snapshot(folder, number, manifest, {SYNCER: part.arrays(), **learners})
    return part.digest


def read_bytes(where: dict[str, Any]) -> np.ndarray:
    """A copy (nbytes,) of what lies in a mapped file.

    Raises
    ------
    ValueError
        It is not there any more.
    """
    path = Path(where["path"])
    descriptor = Descriptor(path.name, where["slot"], where["generation"], where["nbytes"])
    out = np.empty(descriptor.nbytes, np.uint8)
    if not BlockReader(path, descriptor.nbytes, 1).read(descriptor, out):
        raise ValueError(f"{path.name} is gone")
    return out
