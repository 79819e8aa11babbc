"""Whether a run of preset ``tiny-4`` learned what it should: ``python -m tests.benchmarks.bar RUN`` (exit code 1: no).

The bar (ALGORITHM section 10): a validation loss below 2.0, and at least .1 below what the best learner reaches alone
in as many own steps, which is a recorded figure (``results/alone.json``), measured on the same held-out batches.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from workbench.analysis.summary import summary
from workbench.protocol.records import Kind, learner_of
from workbench.tape.frames import read_journal

ALONE = Path(__file__).parent / "results" / "alone.json"
BELOW = 2.0
BETTER_BY = 0.1


class Found(NamedTuple):
    """What a run reached.

    Attributes
    ----------
    loss : float
        Last validation loss [nats a byte].
    alone : float
        Loss of the best learner alone.
    returned : dict of int to bool
        For each learner that was killed, whether a contribution of its next process was merged.
    """

    loss: float
    alone: float
    returned: dict[int, bool]

    @property
    def met(self) -> bool:
        """Whether the bar is met and whoever was killed is back."""
        return self.loss < BELOW and self.loss <= self.alone - BETTER_BY and all(self.returned.values())


def look(run: Path) -> Found:
    """Read a run that is over."""
    from workbench.tape import open_tape

    alone: float = json.loads(ALONE.read_text(encoding="utf-8"))["best_val_loss"]
    loss: Any = summary(open_tape(run))["val_loss_last"]
    return Found(float("inf") if loss is None else loss, alone, _returned(run))


def _returned(run: Path) -> dict[int, bool]:
    returned: dict[int, bool] = {}
    joined: set[int] = set()
    for record in read_journal(run / "journal").records:
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
    back = ", ".join(f"L{m} {'merged again' if again else 'NOT merged again'}" for m, again in found.returned.items())
    print(
        f"\nvalidation loss {found.loss:.3f}: bar {min(BELOW, found.alone - BETTER_BY):.3f} (best learner alone ",
        end="",
    )
    print(f"{found.alone:.3f} in 900 own steps), {'met' if found.met else 'NOT met'}; killed: {back or 'nobody'}")
    return 0 if found.met else 1


if __name__ == "__main__":
    sys.exit(main())
