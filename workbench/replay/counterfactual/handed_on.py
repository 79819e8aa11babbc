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
        self._on_the_way: dict[tuple[int, int], tuple[int, np.ndarray]] = {}

    def put(
        self,
        process: int,
        seq: int,
        peer: int,
        number: float | None,
        data: np.ndarray,
        n: int,
        counters: tuple[list[int], ...],
    ) -> None:
        """Keep what a learner is at its record ``seq``: for a ``peer``, or for snapshot ``number``.

        The bytes are kept until they reach the syncer, or the next for the same addressee are copied.
        """
        copied = Copied(data, n, [], {})
        self._on_the_way[process, peer] = seq, data
        self._made[process, seq] = Counted(state_digest(data), list(counters[0]), list(counters[1]))
        if self._states.wants(process, seq, number):
            self._states.put(process, seq, number, copied)

    def taken(self, process: int, source: str, peer: int, copied: int, number: float) -> Copied:
        """The state that a process takes of a peer, or of its own in a snapshot."""
        states = self._states
        found = states.from_peer(peer, copied) if source == "peer" else states.from_snapshot(process, number)
        assert found is not None, "the record of a copy stands before that of whoever takes it"
        return found

    def left(self, process: int, seq: int) -> np.ndarray | None:
        """The bytes of a copy that has not reached the syncer."""
        mine = (data for (who, _), (at, data) in self._on_the_way.items() if (who, at) == (process, seq))
        return next(mine, None)

    def arrived(self, process: int, seq: int) -> np.ndarray | None:
        """The bytes of a copy that reaches the syncer, which has them from now on."""
        found = self.left(process, seq)
        self._on_the_way = {key: one for key, one in self._on_the_way.items() if (key[0], one[0]) != (process, seq)}
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
