"""What a learner knows: plain data, so that it can be stored, compared, copied and shifted in time."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol.actions import Adopt
from workbench.protocol.messages import Begin, PeerState, Update
from workbench.protocol.records import Record
from workbench.protocol.settings import FixedSettings, LearnerSettings

UNSET = -1


class PendingUpdate(msgspec.Struct, gc=False):
    """An UPDATE that lies unfolded."""

    version: int
    round: int
    last_merged: int
    last_merged_step: int
    anew: int
    handle: int
    origin: int
    clock: tuple[int, ...]
    acknowledged: bool = False
    behind: bool = False
    """It came behind the MARKER of a snapshot that is not taken yet."""


class CapturedCopy(msgspec.Struct, gc=False):
    """A host copy that went out, with the counters captured with it."""

    round: int
    step: int
    base_version: int
    steps: int
    tokens: int
    total_tokens: int
    codec: str
    cause: tuple[int, int]
    sent: bool = False
    decided: bool = False
    taken: bool = False


class CopyRequest(msgspec.Struct, gc=False):
    """A peer's state is wanted: by which learner, and from which versions on."""

    number: int
    stamp: list[int]
    cause: tuple[int, int]


class Copy(msgspec.Struct):
    """A copy of the learner's state that has not left: the record of its boundary, what it is, where it lies."""

    joiner: int
    seq: int
    step: int
    base: list[int]
    facts: dict[str, Any] = {}
    digest: int = 0
    nbytes: int = 0
    handle: int = UNSET
    origin: int = UNSET


class Cut(msgspec.Struct):
    """A snapshot that has reached this learner.

    Attributes
    ----------
    snapshot : int
    cause : (process, seq)
        The syncer's record of it.
    marked : list of bool
        On which channels its MARKER has come.
    taken : bool
        The state was recorded, and copied.
    g_behind : int
        What updates behind the MARKER raise g to, once the state is taken.
    in_flight : list of [fragment, version, round]
        Updates that came after the state was taken and before their channel's MARKER.
    """

    snapshot: int
    cause: tuple[int, int]
    marked: list[bool]
    taken: bool = False
    g_behind: int = 0
    in_flight: list[list[int]] = []


class Published(msgspec.Struct, gc=False):
    """The counters of the last host copy."""

    n: int
    c_steps: list[int]
    c_tokens: list[int]
    total_tokens: int = 0


class Outbox(msgspec.Struct):
    """Records that the journal may not have yet, and how far each channel has carried them."""

    unacked: list[Record] = []
    acked: int = 0
    sent: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    progress_at: int = 0


class LearnerState(msgspec.Struct):
    """Everything that a learner machine is."""

    learner: int
    process_number: int
    fixed: FixedSettings
    settings: LearnerSettings
    base: list[int]
    c_steps: list[int]
    c_tokens: list[int]
    anew_seen: list[int]
    published: Published
    outbox: Outbox
    identity: dict[str, Any] = {}
    """Host, pid and fingerprint of a process that no supervisor started."""
    revision: int = 0
    incarnation: int = 0
    epoch: int = 0
    seq: int = 0
    clock: tuple[int, ...] = ()
    connection: int = UNSET
    welcomed: bool = False
    has_state: bool = False
    adopting: Adopt | None = None
    """The adoption that is under way."""
    adopting_cause: tuple[int, int] | None = None
    adopting_from: tuple[int, int] = (UNSET, UNSET)
    """Process of the peer, and the seq of the record of its boundary."""
    awaiting: bool = False
    """It holds the first weights and waits for a peer's state before its first step."""
    offered: PeerState | Begin | None = None
    """What came while another adoption was under way."""
    restored: int = UNSET
    """Snapshot that the counters are of, until the state that belongs to them is there."""
    wanted: dict[int, CopyRequest] = {}
    copies: dict[int, Copy] = {}
    cut: Cut | None = None
    healed: bool = False
    n: int = 0
    g: int = 0
    g_seen: int = 0
    step_ns: int = 0
    stepping: bool = False
    waiting_since: int = UNSET
    waited_ns: int = 0
    total_tokens: int = 0
    inbox: dict[int, PendingUpdate] = {}
    early: dict[int, Update] = {}
    captures: dict[int, list[CapturedCopy]] = {}
    asked: LearnerSettings | None = None
    asked_revision: int = 0
    asked_behind: tuple[LearnerSettings, int] | None = None
    """Settings that came behind the MARKER of a snapshot that is not taken yet."""
    closed: list[int] = []
    closed_below: int = 0
    ending: str = ""
    left: bool = False
    last_heard: int = 0
    join_again_at: int = UNSET
    next_beat: int = 0
    wake_at: int = UNSET


def new_state(learner: int, process_number: int, fixed: FixedSettings, settings: LearnerSettings) -> LearnerState:
    """State of a process that has seen nothing: base -1 holds nothing that may be merged."""
    count = fixed.fragments
    return LearnerState(
        learner=learner,
        process_number=process_number,
        fixed=fixed,
        settings=settings,
        base=[-1] * count,
        c_steps=[0] * count,
        c_tokens=[0] * count,
        anew_seen=[0] * count,
        published=Published(0, [0] * count, [0] * count),
        outbox=Outbox(),
    )


def shift(state: LearnerState, gap: int, heard_least: int = -(2**62)) -> None:
    """Move every time that the learner holds by ``gap``: it was itself stopped for so long.

    The syncer counts as last heard of at ``heard_least`` or later: what it sent meanwhile is taken first.
    """
    state.last_heard = max(state.last_heard + gap, heard_least)
    state.next_beat += gap
    state.outbox.progress_at += gap
    if state.join_again_at != UNSET:
        state.join_again_at += gap
    if state.waiting_since != UNSET:
        state.waiting_since += gap
