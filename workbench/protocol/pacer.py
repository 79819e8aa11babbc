"""When rounds open and what is passed over (PROTOCOL sections 2 and 4)."""

from __future__ import annotations

from workbench.protocol import updates
from workbench.protocol.records import Kind
from workbench.protocol.round_state import Round, RoundState
from workbench.protocol.slots import SYNC_TRIGGERS
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import SyncerState


def renew_closed_below(state: SyncerState) -> None:
    """The oldest round that is not closed: lower ones are, whatever became of their messages."""
    state.closed_below = min(state.rounds, default=state.next_t)


def next_round(state: SyncerState, t: int) -> tuple[int, int]:
    """First round after ``t`` and its fragment."""
    return SYNC_TRIGGERS["staggered"](t, state.fixed)


def pace_step(state: SyncerState) -> int | None:
    """K-th largest g among healed, connected, unquarantined learners; None with fewer than K."""
    quorum = state.book.policy.quorum
    steps = sorted(
        (m.g for m in state.members.values() if m.healed and m.connected and not m.quarantined), reverse=True
    )
    return steps[quorum - 1] if len(steps) >= quorum else None


def skip_backlog(core: SyncerCore) -> None:
    """Pass over whole periods that the learners are ahead by: the order of fragments is kept."""
    state = core.state
    ahead = pace_step(state)
    if ahead is None or ahead < state.next_t + state.fixed.period:
        return
    first, period = state.next_t, state.fixed.period
    periods = (ahead - first) // period
    state.next_t = first + periods * period
    core.record(
        Kind.ROUND_SKIPPED,
        round=first,
        fragment=-1,
        reason="backlog",
        steps=periods * state.fixed.fragments,
        value=float(state.next_t),
    )
    renew_closed_below(state)
    updates.notify(core, first)


def open_rounds(core: SyncerCore) -> bool:
    """Open what may be open: in order of t, ahead of being due, one round per fragment at a time."""
    state = core.state
    if not state.began or state.ending:
        return False
    opened = False
    while len(state.rounds) < state.fixed.in_flight_max and state.merges + len(state.rounds) < state.fixed.rounds:
        skip_backlog(core)
        _pass_what_is_merged(state)
        t, p = state.next_t, state.next_p
        if any(r.p == p for r in state.rounds.values()):
            break
        open_round(core, t, p)
        state.opened_t = t
        state.next_t, state.next_p = next_round(state, t)
        opened = True
    if opened:
        renew_closed_below(state)
    return opened


def _pass_what_is_merged(state: SyncerState) -> None:
    """A snapshot may hold the merge of a round that is later than one still open then: going back repeats only that."""
    while state.version_rounds[state.next_p] >= state.next_t:
        state.next_t, state.next_p = next_round(state, state.next_t)


def open_round(core: SyncerCore, t: int, p: int) -> None:
    """Put (t, p) into the table; the arithmetic settings of now are its own."""
    state = core.state
    book = state.book
    state.rounds[t] = Round(
        t=t,
        p=p,
        state=RoundState.OPEN,
        revision=book.revision,
        settings=book.merge,
        fresh_outer=state.outer_revision[p] < book.outer_since,
        opened_at=core.now,
    )
    core.record(Kind.ROUND_OPENED, round=t, fragment=p, version=state.versions[p], setting=book.revision)
