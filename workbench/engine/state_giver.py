"""How a learner's arrays become those of a peer or of a snapshot, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workbench.protocol.actions import Adopt
from workbench.protocol.events import Adopted
from workbench.protocol.learner_state import LearnerState
from workbench.training.held_state import StateArrays, from_bytes, state_digest
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.snapshot_files import SnapshotDamaged, learner_part, read_part
from workbench.training.snapshot_parts import learner_state

NOT_WHOLE = Adopted(0, whole=False)


class StateGiver:
    """Carries out what the machine says of states; the training thread's.

    Parameters
    ----------
    arithmetic : LearnerArithmetic
        With the run's first weights.
    state : LearnerState
        The machine's: counters that were restored with the process.
    snapshots : Path or None
        Where snapshots lie.
    """

    def __init__(self, arithmetic: LearnerArithmetic, state: LearnerState, snapshots: Path | None) -> None:
        self._arithmetic, self._state, self._snapshots = arithmetic, state, snapshots

    def take(self, order: Adopt, data: np.ndarray | None) -> Adopted:
        """Take a state; ``data`` is a peer's, bytes (nbytes,), None if it did not come whole."""
        if order.source == "initial":
            return Adopted(self._arithmetic.digest())
        try:
            return self._from_peer(order, data) if order.source == "peer" else self._from_snapshot(order)
        except (ValueError, SnapshotDamaged) as error:
            if order.source == "own":
                raise  # the counters are not those of the first weights: another process begins
            print(f"the state from a {order.source} cannot be used: {error}", flush=True)
            return NOT_WHOLE

    def _from_peer(self, order: Adopt, data: np.ndarray | None) -> Adopted:
        """The bytes are copied before they are looked at: a file of the donor may change while it is read."""
        if data is None:
            return NOT_WHOLE
        own = np.array(data)
        if state_digest(own) != order.digest:
            return NOT_WHOLE
        self._arithmetic.adopt_peer(from_bytes(own), order.fragments)
        return Adopted(order.digest)

    def _from_snapshot(self, order: Adopt) -> Adopted:
        if self._snapshots is None:
            return NOT_WHOLE
        state = self._read(order.snapshot)
        if order.source == "own":
            self._arithmetic.restore(state, self._state.n, self._state.base)
        else:
            self._arithmetic.load_moments(state.moments)
        return Adopted(state_digest(state.to_bytes()))

    def _read(self, snapshot: int) -> StateArrays:
        assert self._snapshots is not None
        return learner_state(read_part(self._snapshots, snapshot, learner_part(self._state.learner)))
