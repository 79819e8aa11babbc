"""When the evaluator is asked, and what becomes of its answers.

An evaluator that is slower than merges fall due skips: each evaluation is of the versions that were there when it was
asked for, which its record names, and the last is of the last merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.protocol.records import Kind

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet


class Evaluations:
    """One evaluation at a time; what falls due meanwhile is one more, of the versions that are there then."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.asked_for: dict[str, Any] | None = None
        self.waits = False
        self.up = False
        self.last: dict[str, Any] = {}

    @property
    def pending(self) -> bool:
        """Whether an evaluation is still to come, once no process is started again."""
        evaluator = self.fleet.evaluator
        return (self.asked_for is not None or self.waits) and (evaluator.alive or evaluator.state == "starting")

    def asked(self, message: dict[str, Any]) -> None:
        """The syncer says that one is due."""
        if self.asked_for is None:
            self.asked_for, self.waits = message, False
            self._send()
        else:
            self.waits = True

    def heard(self, message: dict[str, Any]) -> None:
        """The evaluator is there, has evaluated, or came too late."""
        if "up" in message:
            self.up = True
            self._send()
            return
        self.asked_for = None
        if "evaluated" in message:
            self.fleet.evaluator.got_somewhere()
            self.last = message
            self.fleet.reports.evaluator(
                Kind.EVALUATED,
                value=message["loss"],
                steps=message["evaluated"],
                tokens=message["tokens"],
                detail={"versions": message["versions"], "seconds": message["seconds"]},
            )
        if self.waits or "missed" in message:
            self.waits = self.fleet.tell_syncer({"evaluate_now": True})
        self.fleet.ending.look()

    def again(self) -> None:
        """Another syncer: it is asked for what the former was."""
        if self.waits:
            self.fleet.tell_syncer({"evaluate_now": True})

    def _send(self) -> None:
        link = self.fleet.evaluator.link
        if self.up and self.asked_for is not None and link is not None:
            link.send(self.asked_for)
