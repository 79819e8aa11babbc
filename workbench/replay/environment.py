"""What has to be the same for bits to be the same: software, device and data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from workbench.config import ConfigError
from workbench.datasets import Text
from workbench.protocol.records import SYNCER
from workbench.tape.errors import TapeError
from workbench.training.environment import fingerprint
from workbench.training.threads import device_used, thread_variable, use_threads

NAMED_MAX = 3
"""Files that an error names."""

NAMES = {"nproc": "threads: nproc", "visible_cores": "threads: visible_cores"}
"""What entries of the fingerprint are about, where their name alone does not say it."""


def check_training(tape: xr.DataTree, where: str = "") -> None:
    """Refuse a tape that holds no arithmetic.

    Parameters
    ----------
    tape : xarray.DataTree
    where : str
        As it was typed; the tape's name by default.

    Raises
    ------
    TapeError
        It was imported, or holds no configuration.
    """
    where = where or str(tape.name)
    if tape.attrs.get("imported"):
        raise TapeError(
            f"{where} is an import of another trainer's logs: its tape holds no arithmetic, so there is nothing to "
            f"replay and nothing to ask; type workbench inspect {where}"
        )
    if not tape.attrs.get("config"):
        raise TapeError(f"{where} holds no configuration; expected the tape of a training run")


def environment_differences(tape: xr.DataTree) -> list[str]:
    """Entries of the fingerprint in which this process differs from those of the run, with both values.

    Returns
    -------
    list of str
        As ``numpy 2.3.1 there, 2.4.0 here``; empty if bits can be expected to be the same.
    """
    here = fingerprint()
    found = []
    for there in _fingerprints(tape):
        for name in sorted({*there, *here}):
            if there.get(name, "") != here.get(name, ""):
                found.append(f"{NAMES.get(name, name)} {_word(there.get(name))} there, {_word(here.get(name))} here")
    return list(dict.fromkeys(found)) if found or _fingerprints(tape) else ["the tape holds no fingerprint"]


def adopt_threads(tape: xr.DataTree) -> None:
    """Give the device of this process the threads that the run's had, if that can still be chosen here.

    What cannot be the same is left to `environment_differences` to name.
    """
    numbers = {there.get("nproc", "") for there in _fingerprints(tape)}
    if len(numbers) == 1 and (number := numbers.pop()).isdecimal() and not (thread_variable() or device_used()):
        use_threads(int(number))


def _word(value: Any) -> str:
    return str(value) if value not in (None, "") else "none"


def _fingerprints(tape: xr.DataTree) -> list[Mapping[str, str]]:
    """Fingerprints of the run: of its start, and of every process that computes."""
    lives = tape["incarnations"].dataset
    found = []
    if isinstance(tape.attrs.get("fingerprint"), Mapping):
        found.append(tape.attrs["fingerprint"])
    learners = tape["processes"].dataset["learner"].values
    for process, text in zip(lives["process"].values.tolist(), lives["fingerprint"].values.tolist(), strict=True):
        if text and (process == SYNCER or learners[process] >= 0):
            found.append(json.loads(text))
    return [dict(items) for items in dict.fromkeys(tuple(sorted(one.items())) for one in found)]


def check_data(tape: xr.DataTree, text: Text) -> None:
    """Refuse a text that is not the one that the run was trained on; reads it once.

    Raises
    ------
    ConfigError
        With the files that differ.
    """
    recorded = {_row(entry): entry["path"] for entry in tape.attrs.get("data_manifest", ())}
    present = {(e.path, e.start, e.bytes, f"{e.digest:016x}", e.split): e.path for e in text.manifest}
    changed = sorted({path for row, path in recorded.items() if row not in present})
    added = sorted({path for row, path in present.items() if row not in recorded} - set(changed))
    if changed or added:
        named = ", ".join([*changed, *added][:NAMED_MAX])
        raise ConfigError(
            f"the data is not that of the run: {len(changed)} of {len(recorded)} files differ or are gone, "
            f"{len(added)} are new ({named}, …); expected the files of the tape's data manifest, byte for byte; "
            "put them back where data.path says, or use the Python that the run used"
        )


def _row(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry["path"], entry["start"], entry["bytes"], entry["digest"], entry["split"]
