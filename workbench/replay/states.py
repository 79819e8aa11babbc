"""States that a replay carries from one process, or one life, to another: from peers, and from snapshots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.replay.program import Programs, Restored, StateAdopted
from workbench.training.held_state import StateArrays, from_bytes, state_digest


class Copied(NamedTuple):
    """What a learner was at a record: bytes of its arrays, own step, versions of its bases, copies that waited."""

    data: np.ndarray
    n: int
    base_versions: list[int]
    waiting: dict[int, list[Any]]

    @property
    def digest(self) -> int:
        """xxh3-64 of the bytes."""
        return state_digest(self.data)

    @property
    def arrays(self) -> StateArrays:
        """The arrays, copied."""
        return from_bytes(self.data)


class States:
    """Copies that somebody will take; others are not kept.

    Parameters
    ----------
    programs : Programs
        Say who takes what.
    handed_on : set of (int, int)
        States of processes of these programs that others take, who are replayed elsewhere.
    """

    def __init__(self, programs: Programs, handed_on: frozenset[tuple[int, int]] = frozenset()) -> None:
        own = [(process, step) for process, steps in programs.steps.items() for step in steps]
        adopted = [(process, step) for process, step in own if isinstance(step, StateAdopted)]
        self._by_seq = programs.handed_on | handed_on
        self._by_number = {(process, s.number) for process, s in adopted if s.source == "snapshot"}
        self._by_number |= {(process, s.number) for process, s in own if isinstance(s, Restored)}
        self._of_seq: dict[tuple[int, int], Copied] = {}
        self._of_number: dict[tuple[int, float], Copied] = {}

    def wants(self, process: int, seq: int, number: float | None) -> bool:
        """Whether anybody takes the state of a process at its record ``seq``, for a peer or (``number``) a snapshot."""
        return (process, seq) in self._by_seq if number is None else (process, number) in self._by_number

    def put(self, process: int, seq: int, number: float | None, copied: Copied) -> None:
        """Keep a state that somebody takes."""
        if number is None:
            self._of_seq[process, seq] = copied
        else:
            self._of_number[process, number] = copied

    def from_peer(self, process: int, seq: int) -> Copied | None:
        """The state of a process at its record ``seq``."""
        return self._of_seq.get((process, seq))

    def from_snapshot(self, process: int, number: float) -> Copied | None:
        """The state of a process in a snapshot."""
        return self._of_number.get((process, number))
