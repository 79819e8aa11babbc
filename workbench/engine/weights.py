"""Files of weights in a run folder: the first ones, and the committed ones."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.digest import digest
from workbench.algorithms.fragment_slots import VERSION, slots_needed
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS
from workbench.config import ConfigError
from workbench.engine.layout import read_config
from workbench.tape.fragmentation import fragmentation_of_header
from workbench.tape.journal import read_header
from workbench.tape.run_folder import RunFolder


def initial_path(run: Path) -> Path:
    """File of the run's first weights: snapshot 0."""
    return run / "snapshots" / "0" / "weights.npz"


def save_initial(run: Path, weights: list[np.ndarray]) -> None:
    """Write the first weights, flat float32 (size,) per fragment."""
    path = initial_path(run)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(".weights.npz")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        np.savez(file, allow_pickle=False, **{f"fragment_{p}": flat for p, flat in enumerate(weights)})  # type: ignore[arg-type]
    draft.replace(path)


def load_initial(run: Path, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Read the first weights, one vector (size,) per fragment.

    Raises
    ------
    ConfigError
        The file is not there, damaged, or of another model.
    """
    try:
        with np.load(initial_path(run), allow_pickle=False) as stored:
            weights = [stored[f"fragment_{p}"] for p in range(len(sizes))] if len(stored.files) == len(sizes) else []
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ConfigError(f"the first weights, {initial_path(run)}, cannot be read: {error}") from error
    if [w.shape for w in weights] != [(size,) for size in sizes]:
        raise ConfigError(f"{initial_path(run)} holds weights of another model; expected fragments of {list(sizes)}")
    return weights


def newest_digest(run: Path) -> int:
    """xxh3-64 of the newest version of all fragments, in their order, of a run that is over.

    Raises
    ------
    ConfigError
        A slot file of other sizes.
    OSError
        There is none.
    """
    config = read_config(run)
    sizes = fragmentation_of_header(read_header(run / "journal"), config.fragments).sizes
    count = slots_needed(config.anchor, config.anchors_kept)
    slots = mapped_slots(RunFolder(run).slots, sizes, count, OUTER_VECTORS, write=False)
    return digest(np.concatenate([one.theta[int(one.header[:, VERSION].argmax())] for one in slots]))
