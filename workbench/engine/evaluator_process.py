"""The evaluator's process: takes one consistent set of committed versions and reports their validation loss."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.fragment_slots import FragmentSlots, slots_needed
from workbench.algorithms.syncer_arithmetic import OUTER_VECTORS
from workbench.config import ConfigError
from workbench.datasets import open_text
from workbench.engine.compiling import cache_folder
from workbench.engine.layout import read_config
from workbench.engine.links import Link
from workbench.engine.weights import load_initial
from workbench.tape.run_folder import RunFolder
from workbench.training.compile_cache import enable_compile_cache
from workbench.training.flat import fragmentation_of
from workbench.training.program import TrainingProgram


def main(link: Link, arguments: dict[str, Any]) -> int:
    """Answer requests for evaluations of the run ``arguments["run"]`` until told to close."""
    try:
        evaluator = Evaluator(Path(arguments["run"]))
    except ConfigError as error:
        link.send({"failed": str(error)})
        return 2
    link.send({"up": True})
    while not link.closed:
        message = link.receive(3600.0)
        if message is None or "evaluate" not in message:
            if message is not None and "close" in message:
                break
            continue
        link.send(evaluator.answer(message))
    return 0


class Evaluator:
    """Committed fragments of a run, and its loss.

    Parameters
    ----------
    run : Path
        Folder of the run.
    """

    def __init__(self, run: Path) -> None:
        enable_compile_cache(cache_folder())
        self.run = run
        self.config = read_config(run)
        self.sizes = fragmentation_of(self.config).sizes
        self._program: TrainingProgram | None = None
        self._slots: list[FragmentSlots] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Loss of the versions asked for; ``missed`` where one of them has been overwritten."""
        began = time.monotonic()
        weights = self.weights(request["versions"])
        if weights is None:
            return {"missed": request["evaluate"]}
        if self._program is None:
            self._program = TrainingProgram(self.config, open_text(self.config.data))
        loss = self._program.evaluate(weights)
        return {
            "evaluated": request["evaluate"],
            "versions": request["versions"],
            "tokens": request["tokens"],
            "loss": loss,
            "seconds": time.monotonic() - began,
        }

    def weights(self, versions: list[int]) -> list[np.ndarray] | None:
        """Copies (size,) of exactly these versions, None if one is not there any more."""
        if not any(versions):
            return load_initial(self.run, self.sizes)
        if not self._slots:
            count = slots_needed(self.config.anchor, self.config.anchors_kept)
            self._slots = mapped_slots(RunFolder(self.run).slots, self.sizes, count, OUTER_VECTORS, write=False)
        found = []
        for slots, version in zip(self._slots, versions, strict=True):
            slot = slots.find(version)
            if slot < 0:
                return None
            values = slots.theta[slot].copy()
            if slots.version(slot) != version:
                return None
            found.append(values)
        return found
