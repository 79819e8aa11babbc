"""Whether a quorum is possible (PROTOCOL section 10)."""

from __future__ import annotations

from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.syncer_core import SyncerCore


def judge(core: SyncerCore) -> None:
    """Say at once when fewer than K learners could ever become ready, and when that is over."""
    state = core.state
    possible, quorum = core.possible(), state.book.policy.quorum
    if not state.began or state.ending:
        return
    if len(possible) < quorum and not state.quorum_lost:
        state.quorum_lost = True
        present = {m.learner for m in possible}
        missing = [label_of(process_of(m)) for m in range(state.fixed.learners) if m not in present]
        core.record(Kind.QUORUM_LOST, value=float(len(possible)), steps=quorum, detail={"missing": missing})
    elif len(possible) >= quorum and state.quorum_lost:
        state.quorum_lost = False
        core.record(Kind.QUORUM_REGAINED, value=float(len(possible)), steps=quorum)
