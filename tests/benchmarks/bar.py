"""Whether a run of preset ``tiny-4`` learned what it should: ``python -m tests.benchmarks.bar RUN`` (exit code 1: no).

The bar (ALGORITHM section 10): a validation loss below 2.0, and at least .1 below what the best learner reaches alone
in as many own steps as the busiest learner of the run made.  That is a recorded figure on the same held-out batches
(``results/alone*.json``: runs of 600, 750 and 900 steps, each with a schedule of its own length; between them a line).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.summary import summary
from workbench.protocol.records import Kind, Record, learner_of
from workbench.tape.frames import read_journal

ALONE = tuple(Path(__file__).parent / "results" / f"alone{steps}.json" for steps in ("-600", "-750", ""))
BELOW = 2.0
BETTER_BY = 0.1


class Found(NamedTuple):
    """What a run reached.

    Attributes
    ----------
    loss : float
        Last validation loss [nats a byte].
    steps : int
        Own steps of the busiest learner.
    alone : float
        Loss of the best learner alone in as many.
    returned : dict of int to bool
        For each learner that was killed, whether a contribution of its next process was merged.
    """

    loss: float
    steps: int
    alone: float
    returned: dict[int, bool]

    @property
    def met(self) -> bool:
        """Whether the bar is met and whoever was killed is back."""
        return self.loss < BELOW and self.loss <= self.alone - BETTER_BY and all(self.returned.values())


def look(run: Path) -> Found:
    """Read a run that is over."""
    from workbench.tape import open_tape

    records = read_journal(run / "journal").records
    steps = max((record.step for record in records if record.kind == Kind.STEP_ENDED), default=0)
    loss: Any = summary(open_tape(run))["val_loss_last"]
    return Found(float("inf") if loss is None else loss, steps, alone(steps), _returned(records))


def alone(steps: int) -> float:
    """Validation loss of the best learner alone after so many own steps; that of 600 for fewer."""
    recorded = [json.loads(path.read_text(encoding="utf-8")) for path in ALONE]
    lengths = [one["learners"][0]["steps"][-1] for one in recorded]
    return float(np.interp(steps, lengths, [one["best_val_loss"] for one in recorded]))


def _returned(records: Sequence[Record]) -> dict[int, bool]:
    returned: dict[int, bool] = {}
    joined: set[int] = set()
    for record in records:
        if record.kind == Kind.FAULT_INJECTED and record.reason == "kill":
            returned[learner_of(record.peer)] = False
            joined.discard(learner_of(record.peer))
        elif record.kind == Kind.LEARNER_JOINED:
            joined.add(learner_of(record.peer))
        elif record.kind == Kind.MERGED:
            returned.update({m: True for m in record.detail["learners"] if m in returned and m in joined})
    return returned


def main() -> int:
    """Say whether the run meets the bar."""
    found = look(Path(sys.argv[1]))
    bar = min(BELOW, found.alone - BETTER_BY)
    back = [f"L{m} {'is' if again else 'was NOT'} merged again" for m, again in found.returned.items()]
    print(f"\nvalidation loss {found.loss:.3f}, bar {bar:.3f}: {'met' if found.met else 'NOT met'}")
    print(f"best learner alone: {found.alone:.3f} in {found.steps} own steps (recorded)")
    print(f"killed on the way: {', '.join(back) or 'nobody'}")
    return 0 if found.met else 1


if __name__ == "__main__":
    sys.exit(main())
