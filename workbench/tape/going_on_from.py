"""What a resume would go on from, looked at before anything is touched: committed fragments, or a whole snapshot."""

from __future__ import annotations

import os
from typing import Any

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import FragmentSlots, slots_needed
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS
from workbench.config import ConfigError
from workbench.tape.fragmentation import fragmentation_of_header
from workbench.tape.going_on import Resumable, cut_for, snapshot_numbers
from workbench.tape.lock import held, holder
from workbench.training.snapshot_files import SYNCER, SnapshotDamaged, learner_part, read_manifest, read_part


def look(found: Resumable, snapshot: int | None) -> dict[str, Any] | None:
    """The snapshot that a resume goes back to, None if nothing is lost; nothing in the folder changes.

    Parameters
    ----------
    found : Resumable
    snapshot : int, optional
        The one that is asked for.

    Raises
    ------
    ConfigError
        It could not go on; the line says why.
    """
    folder = found.folder
    if held(folder.tape_lock):
        raise ConfigError(f"{folder.path} cannot go on: process {holder(folder.tape_lock)} still writes its tape")
    if not (os.access(folder.path, os.W_OK) and os.access(folder.journal, os.W_OK)):
        raise ConfigError(f"{folder.path} cannot be written; a resume needs to")
    cut = cut_for(found, snapshot, slots_are_whole(found))
    if cut is not None:
        check_snapshot(found, cut)
    return cut


def slots_of(found: Resumable) -> list[FragmentSlots] | None:
    """The committed fragments, to be read only; None without a file of this model."""
    config = found.config
    sizes = fragmentation_of_header(found.header, config.fragments).sizes
    count = slots_needed(config.anchor, config.anchors_kept)
    try:
        return mapped_slots(found.folder.slots, sizes, count, OUTER_VECTORS, write=False)
    except (ConfigError, OSError):
        return None


def slots_are_whole(found: Resumable) -> bool:
    """Whether the file of the committed fragments holds what the journal names, bit for bit."""
    if not any(found.versions) and not found.folder.slots.exists():
        return True
    slots = slots_of(found)
    return slots is not None and all(map(_holds, slots, found.versions, found.digests))


def _holds(slots: FragmentSlots, version: int, expected: int) -> bool:
    """Whether a fragment has this version, with this digest unless it is 0; blank slots become version 0."""
    slot = slots.find(version)
    if slot < 0:
        return version == 0 and not slots.header.any()
    return not expected or digest(slots.theta[slot]) == expected


def check_snapshot(found: Resumable, cut: dict[str, Any]) -> None:
    """Refuse a snapshot that is damaged, or not the one that the journal names.

    Raises
    ------
    ConfigError
        With the others that there are.
    """
    try:
        _check_parts(found, cut)
    except (ValueError, KeyError) as error:
        others = ", ".join(str(n) for n in snapshot_numbers(found) if n != cut["snapshot"])
        instead = f"; others: {others} (workbench resume {found.folder.path} --snapshot N)" if others else ""
        raise ConfigError(
            f"{found.folder.path} cannot go back to snapshot {cut['snapshot']}: {error}{instead}"
        ) from error


def _check_parts(found: Resumable, cut: dict[str, Any]) -> None:
    from workbench.training.snapshot_parts import learner_state, syncer_part  # loads model code

    folder, number = found.folder.snapshots, cut["snapshot"]
    sizes = list(fragmentation_of_header(found.header, found.config.fragments).sizes)
    manifest = read_manifest(folder, number)
    part = syncer_part(read_part(folder, number, SYNCER), manifest["outer"])
    _compare("fragments of the syncer's part", [theta.size for theta in part.thetas], sizes)
    _compare("versions", manifest["versions"], cut["versions"])
    _compare("digest of the syncer's part", f"{part.digest:016x}", f"{cut['digest']:016x}")
    for learner in cut["parts"]:
        state = learner_state(read_part(folder, number, learner_part(int(learner))))
        _compare(f"fragments of L{learner}", [flat.size for flat in state.parameters], sizes)


def _compare(what: str, there: Any, expected: Any) -> None:
    if there != expected:
        raise SnapshotDamaged(f"{what}: {there}; the journal has {expected}")
