"""Records of the supervisor and of the evaluator on their way to the journal, kept until they are in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.protocol.foreign import ForeignProcess
from workbench.protocol.records import EVALUATOR, SUPERVISOR, Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet


class Reports:
    """Makes the records, and hands them to whichever syncer there is."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.processes = {number: ForeignProcess(number) for number in (SUPERVISOR, EVALUATOR)}

    def go_on(self, known: dict[str, int], epoch: int, clock: Sequence[int]) -> None:
        """The run is resumed: numbers go on where the journal ends."""
        for number, foreign in self.processes.items():
            foreign.begin_again(known.get(str(number), 0), epoch, tuple(clock))

    def supervisor(self, kind: Kind, **columns: Any) -> None:
        """A record of the supervisor."""
        self._record(SUPERVISOR, kind, columns)

    def evaluator(self, kind: Kind, **columns: Any) -> None:
        """A record of the evaluator."""
        self._record(EVALUATOR, kind, columns)

    def _record(self, process: int, kind: Kind, columns: dict[str, Any]) -> None:
        self.processes[process].record(self.fleet.now(), kind, **columns)
        self._send(process)

    def _send(self, process: int) -> None:
        unsent = self.processes[process].unsent
        if unsent:
            self.fleet.tell_syncer({"records": list(unsent), "process": process})

    def again(self) -> None:
        """Another syncer, or the last chance: give it what is not known to be in the journal."""
        for process in self.processes:
            self._send(process)

    def known(self, process: int, seq: int) -> None:
        """Records up to ``seq`` are in the journal."""
        foreign = self.processes[process]
        foreign.unsent = [record for record in foreign.unsent if record.seq > seq]
