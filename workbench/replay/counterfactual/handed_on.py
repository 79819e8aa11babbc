"""States of learners that a counterfactual copies for peers and snapshots, with the digests that they have now."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from workbench.protocol.messages import StateCopy
from workbench.replay.program import Programs
from workbench.replay.states import Copied, States
from workbench.training.held_state import state_digest


class Counted(NamedTuple):
    """A copy: its digest, and the counters of its learner by fragment."""

    digest: int
    c_steps: list[int]
    c_tokens: list[int]


class HandedOn:
    """Copies by the process and the record at which they were made; the arrays only of those that somebody takes.

    Parameters
    ----------
    programs : Programs
        Of the parent.
    """

    def __init__(self, programs: Programs) -> None:
        self._states = States(programs)
        self._made: dict[tuple[int, int], Counted] = {}

    def put(
        self, process: int, seq: int, number: float | None, data: np.ndarray, n: int, counters: tuple[list[int], ...]
    ) -> None:
        """Keep what a learner is at its record ``seq``: for a peer, or for snapshot ``number``."""
        copied = Copied(data, n, [], {})
        self._made[process, seq] = Counted(state_digest(data), list(counters[0]), list(counters[1]))
        if self._states.wants(process, seq, number):
            self._states.put(process, seq, number, copied)

    def taken(self, process: int, source: str, peer: int, copied: int, number: float) -> Copied:
        """The state that a process takes of a peer, or of its own in a snapshot."""
        states = self._states
        found = states.from_peer(peer, copied) if source == "peer" else states.from_snapshot(process, number)
        assert found is not None, "the record of a copy stands before that of whoever takes it"
        return found

    def digest(self, process: int, seq: int, recorded: int) -> int:
        """Digest of a copy; the recorded one if it was made by nobody here."""
        made = self._made.get((process, seq))
        return recorded if made is None else made.digest

    def message(self, message: StateCopy, process: int) -> StateCopy:
        """A copy on its way to the syncer, with the values of now."""
        made = self._made.get((process, message.copied))
        if made is None:
            return message
        facts: dict[str, Any] = dict(message.facts)
        if facts:
            facts |= {"c_steps": made.c_steps, "c_tokens": made.c_tokens}
        return msgspec.structs.replace(message, digest=made.digest, facts=facts)
