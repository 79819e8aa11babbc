"""What the syncer knows: plain data, so that it can be stored, compared, copied and shifted in time."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from workbench.protocol.settings import FixedSettings, MergeSettings, SettingsBook

NEVER = -(2**62)
"""A time long before everything."""
UNSET = -1
"""No such time yet (a machine's clock starts at 0)."""


class RoundState(IntEnum):
    """States of a round (PROTOCOL section 2); a closed round is no longer in the table."""

    OPEN = 0
    READY = 1
    GRACE = 2
    PULLING = 3
    MERGING = 4
    COMMITTING = 5


class PullState(IntEnum):
    """What became of a PULL."""

    OUTSTANDING = 0
    ARRIVED = 1
    REFUSED = 2
    DROPPED = 3
    GONE = 4
    LIMIT = 5


class PullRecord(msgspec.Struct, gc=False):
    """A PULL of one round: to which incarnation, when, and what became of it."""

    incarnation: int
    sent_at: int
    base_version: int
    state: int = PullState.OUTSTANDING


class Contribution(msgspec.Struct, gc=False):
    """A fragment that is here."""

    base_version: int
    step: int
    steps: int
    tokens: int
    digest: int
    handle: int


class Round(msgspec.Struct):
    """One round (t, p).  Times in ns of the syncer's clock, UNSET where not reached."""

    t: int
    p: int
    state: int
    revision: int
    settings: MergeSettings
    fresh_outer: bool
    opened_at: int
    first_ready_at: int = UNSET
    quorum_at: int = UNSET
    window_ns: int = 0
    grace_ended_at: int = UNSET
    pull_until: int = UNSET
    merge_at: int = UNSET
    pulls: dict[int, PullRecord] = {}
    here: dict[int, Contribution] = {}
    guarded: list[int] = []
    left_out: dict[int, str] = {}
    merging: list[int] = []
    stuck_since: int = UNSET


class Sent(msgspec.Struct, gc=False):
    """An UPDATE handed to the transport and not yet seen in a METADATA."""

    version: int
    at: int


class Member(msgspec.Struct):
    """A learner as the syncer sees it."""

    learner: int
    process_number: int
    incarnation: int
    connection: int
    connected: bool
    base: list[int]
    c_steps: list[int]
    last_merged: list[int]
    last_merged_step: list[int]
    blocked: list[str]
    anew: list[int]
    ended: int = -1
    healed: bool = False
    quarantined: bool = False
    last_heard: int = NEVER
    metadata_at: int = NEVER
    n: int = 0
    g: int = 0
    recent: list[int] = []
    median_ns: int = 0
    step_ema: float = -1.0
    pull_ema: float = -1.0
    send_ema: float = -1.0
    known_seq: int = 0
    joined_seq: int = 0
    asked_again_at: int = NEVER
    last_step: int = 0
    asked: dict[int, int] = {}
    pending: dict[int, int] = {}
    in_hand: int = UNSET
    sent: dict[int, Sent] = {}
    rounds_missed: int = 0
    missed_why: dict[str, int] = {}
    stalled: bool = False


def new_member(learner: int, fragments: int) -> Member:
    """A learner of which nothing is known: no process, no connection, nothing that may be merged."""
    return Member(
        learner=learner,
        process_number=-1,
        incarnation=0,
        connection=UNSET,
        connected=False,
        base=[-1] * fragments,
        c_steps=[0] * fragments,
        last_merged=[-1] * fragments,
        last_merged_step=[-1] * fragments,
        blocked=[""] * fragments,
        anew=[0] * fragments,
    )


class SyncerState(msgspec.Struct):
    """Everything that the syncer machine is."""

    fixed: FixedSettings
    book: SettingsBook
    members: dict[int, Member]
    versions: list[int]
    version_rounds: list[int]
    merged_at: list[int]
    sync_since: list[int]
    outer_revision: list[int]
    incarnation: int = 0
    epoch: int = 0
    seq: int = 0
    clock: tuple[int, ...] = ()
    known_seq: dict[int, int] = {}
    changed_seq: int = 0
    rounds: dict[int, Round] = {}
    opened_t: int = 0
    next_t: int = 1
    next_p: int = 0
    closed_below: int = 1
    merges: int = 0
    began: bool = False
    start_until: int = UNSET
    next_beat: int = 0
    xi_quorum: float = 0.0
    xi_sync: float = 0.0
    xi_quorum_known: bool = False
    xi_sync_known: bool = False
    quorum_lost: bool = False
    anew_serial: int = 0
    ending: str = ""
    ending_until: int = UNSET
    finished: bool = False
    wake_at: int = UNSET


def shift(state: SyncerState, gap: int) -> None:
    """Move every time that the syncer holds by ``gap``: it was itself stopped for so long (section 10)."""

    def moved(at: int) -> int:
        return at if at in (UNSET, NEVER) else at + gap

    state.start_until = moved(state.start_until)
    state.ending_until = moved(state.ending_until)
    state.next_beat = moved(state.next_beat)
    state.merged_at = [moved(at) for at in state.merged_at]
    state.sync_since = [moved(at) for at in state.sync_since]
    for member in state.members.values():
        member.last_heard = moved(member.last_heard)
        member.metadata_at = moved(member.metadata_at)
        member.asked_again_at = moved(member.asked_again_at)
        member.asked = {t: moved(at) for t, at in member.asked.items()}
        for sent in member.sent.values():
            sent.at = moved(sent.at)
    for round_ in state.rounds.values():
        round_.opened_at = moved(round_.opened_at)
        round_.first_ready_at = moved(round_.first_ready_at)
        round_.quorum_at = moved(round_.quorum_at)
        round_.grace_ended_at = moved(round_.grace_ended_at)
        round_.pull_until = moved(round_.pull_until)
        round_.merge_at = moved(round_.merge_at)
        round_.stuck_since = moved(round_.stuck_since)
        for pull in round_.pulls.values():
            pull.sent_at = moved(pull.sent_at)
