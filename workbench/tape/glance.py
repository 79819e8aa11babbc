"""A glance at a run's tape: what its root and one number say, without laying anything onto it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import zarr

from workbench.tape import store
from workbench.tape.errors import reading
from workbench.tape.metadata import check_root
from workbench.tape.run_folder import RunFolder


class Glance(NamedTuple):
    """What lies on a tape; the journal beside that of a run that was lost may hold more.

    Attributes
    ----------
    merges : int
    val_loss : float or None
        Of the last evaluation [nat per byte].
    closed, imported : bool
        Its run was ended in order; it was made from the logs of another trainer.
    """

    merges: int
    val_loss: float | None
    closed: bool
    imported: bool


def glance(path: Path) -> Glance:
    """Look at the newest commit of the tape of a run folder, or of a tape's own folder.

    Raises
    ------
    TapeError
        There is none, it is of a newer schema, or it is damaged.
    """
    tape = RunFolder(path).tape
    inner = tape if tape.is_dir() else path
    repository = store.open_repository(inner)
    with reading(inner):
        root = zarr.open_group(store.read_store(repository), mode="r")
        attrs = check_root(dict(root.attrs), inner)
        losses = root["evals/loss"]
        last = float(losses[-1]) if isinstance(losses, zarr.Array) and losses.shape[0] else None  # type: ignore[arg-type]
        return Glance(int(attrs["rows"]["merges"]), last, bool(attrs["closed"]), bool(attrs.get("imported")))
