"""Learners that are added to a run that goes on, and learners that are removed from it for good.

Ids grow: an added learner gets the next one, and none is ever given to another learner, so that clocks and the axes of
a tape grow and nothing in them changes its meaning.
"""

from __future__ import annotations

from workbench.protocol import membership, quorum
from workbench.protocol.actions import Send
from workbench.protocol.events import AddAsked, RemoveAsked
from workbench.protocol.messages import CONTROL, End
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import SyncerState

REMOVED = "removed"
"""Reason with which a learner is lost that was removed."""


def next_learner(state: SyncerState) -> int:
    """The id that the next learner gets: all ids below it are given out."""
    return max(state.fixed.learners, *(m + 1 for m in (*state.added, *state.members)), 0)


def add_asked(core: SyncerCore, event: AddAsked) -> None:
    """One more learner is expected; whoever starts processes starts it when this is in the journal."""
    state = core.state
    if state.ending:
        _refused(core, "add", event.who, "the run is ending: no learner is added any more")
        return
    learner = next_learner(state)
    state.added.append(learner)
    core.record(Kind.LEARNER_ADDED, peer=process_of(learner), detail={"who": event.who})
    quorum.judge(core)


def remove_asked(core: SyncerCore, event: RemoveAsked) -> None:
    """A learner leaves for good: what it has not given to a merge is lost, what comes from it is refused."""
    state, learner = core.state, event.learner
    why_not = why_not_remove(state, learner)
    if why_not:
        _refused(core, "remove", event.who, why_not)
        return
    state.removed.append(learner)
    member = state.members.get(learner)
    if member is None:
        core.record(Kind.LEARNER_LOST, peer=process_of(learner), reason=REMOVED, detail={"who": event.who})
    else:
        if member.connected:
            farewell = End(-1, REMOVED, member.known_seq, state.closed_below, state.clock)
            core.out.append(Send(member.connection, CONTROL, farewell))
        member.ended = max(member.ended, member.process_number)
        membership.lose(core, member, REMOVED, event.who)
    quorum.judge(core)
    membership.start_rounds(core)


def why_not_remove(state: SyncerState, learner: int) -> str:
    """Why a learner cannot be removed, empty if it can."""
    label, there = label_of(process_of(learner)), quorum.expected(state)
    if learner not in there:
        labels = ", ".join(label_of(process_of(m)) for m in there)
        return (
            f"{label} was removed already" if learner in state.removed else f"there is no {label}; there are {labels}"
        )
    if len(there) <= state.book.policy.quorum:
        return f"without {label} {len(there) - 1} learners are left for quorum = {state.book.policy.quorum}; " + (
            "add one first" if len(there) == 1 else f"set quorum={len(there) - 1} first, or add one"
        )
    return ""


def _refused(core: SyncerCore, what: str, who: str, why: str) -> None:
    core.record(Kind.SETTING_REFUSED, reason=why, detail={"values": {what: True}, "who": who})
