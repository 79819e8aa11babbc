"""Snapshots as the supervisor sees them: who writes them, who asked for one, what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.engine.processes import Managed

if TYPE_CHECKING:
    from workbench.engine.fleet import Fleet


class Snapshots:
    """Hands what the syncer has put together to the keeper, and its answer back.

    Attributes
    ----------
    keeper : Managed
        Started with the first snapshot.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.keeper = Managed("keeper", "keeper")
        self._up = False
        self._waiting: list[dict[str, Any]] = []
        self._given: int | None = None

    def write(self, message: dict[str, Any]) -> None:
        """The syncer has all parts of one."""
        self._waiting.append(message)
        if not self.keeper.alive and self.keeper.state != "starting":
            self._up = False
            self.fleet.spawn(self.keeper)
        self._next()

    def heard(self, message: dict[str, Any]) -> None:
        """The keeper is there, or has written one."""
        if "up" in message:
            self._up = True
            self.keeper.got_somewhere()
        elif "snapshot_written" in message:
            self._given = None
            self.fleet.tell_syncer(message)
        self._next()

    def ended(self) -> None:
        """The keeper is gone: what it had in hand was not written."""
        self.keeper.state, self._up = "ended", False
        lost = [] if self._given is None else [self._given]
        for number in (*lost, *(message["write_snapshot"] for message in self._waiting)):
            reason = f"the process that writes snapshots is gone ({self.keeper.how})"
            self.fleet.tell_syncer({"snapshot_written": number, "digest": 0, "reason": reason})
        self._given, self._waiting = None, []

    def _next(self) -> None:
        if self._up and self._waiting and self._given is None and self.keeper.link is not None:
            message = self._waiting.pop(0)
            self._given = message["write_snapshot"]
            self.keeper.link.send(message)
