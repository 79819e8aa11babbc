"""The evaluator of a virtual run: when it looks at the committed fragments, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.protocol.foreign import ForeignProcess
from workbench.protocol.records import EVALUATOR, Kind, Record
from workbench.tape.going_on import merged_tokens

if TYPE_CHECKING:
    from workbench.simulate.world import World


class Evaluations:
    """What has been evaluated, and the tokens that were merged until then.

    Parameters
    ----------
    world : World
    sizes : sequence of int
        Elements of each fragment, the weights of its tokens.

    Attributes
    ----------
    process : ForeignProcess
        The evaluator, with its records.
    evaluated_at : int
        Merges at the last evaluation, -1 for none.
    last_loss : float or None
    merged_tokens : list of int
        By fragment.
    """

    def __init__(self, world: World, sizes: Sequence[int]) -> None:
        self._world = world
        self._sizes = list(sizes)
        self.process = ForeignProcess(EVALUATOR)
        self.evaluated_at = -1
        self.last_loss: float | None = None
        self.merged_tokens = [0] * len(self._sizes)

    def begin_again(self, cut: dict[str, Any] | None) -> None:
        """The run goes on, or goes back to a snapshot: the next evaluation is the first."""
        self.evaluated_at = -1
        self.merged_tokens = merged_tokens(self._world.records, len(self._sizes), cut)

    def note(self, record: Record) -> None:
        """A merge was journalled."""
        self.merged_tokens[record.fragment] += record.tokens

    def when_due(self, last: bool = False) -> None:
        """At the start, every ``eval_every`` merges, and at the end, which whoever stops the run says."""
        world = self._world
        state = world.syncer.machine.state
        every, merges = world.config.eval_every, state.merges
        due = last or not merges % max(every, 1) or merges == world.config.rounds
        if not every or merges == self.evaluated_at or not due:
            return
        loss = world.arithmetic.evaluate()
        if loss is None:
            return
        self.evaluated_at = merges
        self.last_loss = loss
        tokens = sum(size * merged for size, merged in zip(self._sizes, self.merged_tokens, strict=True))
        self.process.record(
            world.now,
            Kind.EVALUATED,
            value=loss,
            steps=merges,
            tokens=tokens // sum(self._sizes),
            detail={"versions": list(state.versions), "seconds": 0.0},
        )
        world.report(self.process)
