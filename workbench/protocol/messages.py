"""Headers that travel between learners and the syncer.

Arrays never travel inside a header: ``handle`` is a number under which the receiving driver keeps the
payload.  Every learner message carries the incarnation it was sent in, its clock, the seq of the record
that caused it (``origin``) and the records that were not yet sent on its channel; every syncer message
carries ``acked`` (records of the addressee that are in the journal) and ``closed_below``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol.records import Record

CONTROL = 0
BULK = 1
"""Channels of a pair: heartbeats never queue behind fragments."""


class Join(msgspec.Struct, tag="join", gc=False):
    """A process asks to take part; counts as a METADATA, and carries all that its process has unacknowledged.

    One that no supervisor started says what a supervisor would: ``identity`` holds host, pid and fingerprint.
    """

    learner: int
    process_number: int
    n: int
    g: int
    c_steps: list[int]
    c_tokens: list[int]
    base: list[int]
    has_state: bool
    healed: bool
    clock: tuple[int, ...] = ()
    records: list[Record] = []
    identity: dict[str, Any] = {}
    awaiting: bool = False
    """It holds the run's first weights and has not begun: a peer's state was promised."""
    restored: int = -1
    """Snapshot that its counters are of: it asks to go on from there."""


class Metadata(msgspec.Struct, tag="metadata", gc=False):
    """Progress after an inner step; repeated with heartbeats by a learner that waits for its lead."""

    learner: int
    incarnation: int
    n: int
    g: int
    c_steps: list[int]
    c_tokens: list[int]
    base: list[int]
    step_ns: int
    healed: bool
    waiting: bool
    origin: int
    clock: tuple[int, ...]
    records: list[Record]
    leaving: bool = False
    revision: int = 0
    awaiting: bool = False
    """It has not begun: it waits for a state."""


class Fragment(msgspec.Struct, tag="fragment", gc=False):
    """One contribution: parameters as captured after own step ``step``, and the counters captured with them."""

    learner: int
    incarnation: int
    round: int
    fragment: int
    base_version: int
    step: int
    steps: int
    tokens: int
    codec: str
    digest: int
    nbytes: int
    captured_ns: int
    origin: int
    clock: tuple[int, ...]
    records: list[Record]
    handle: int = -1


class Refused(msgspec.Struct, tag="refused", gc=False):
    """A PULL that cannot be answered: nothing new to give, another base, or an update lies unfolded."""

    learner: int
    incarnation: int
    round: int
    fragment: int
    reason: str
    origin: int
    clock: tuple[int, ...]
    records: list[Record]


class Heartbeat(msgspec.Struct, tag="heartbeat", gc=False):
    """A learner lives."""

    learner: int
    incarnation: int
    clock: tuple[int, ...]
    records: list[Record]


class StateCopy(msgspec.Struct, tag="state_copy", gc=False):
    """A learner's state as it was at a boundary: for a peer (PEER_STATE), or for a snapshot.

    ``number`` is that of the request, or of the snapshot; ``copied`` the seq of the record of that boundary,
    ``digest`` that of the payload's bytes.  ``facts`` holds the counters that a snapshot restores.
    """

    learner: int
    incarnation: int
    number: int
    snapshot: bool
    copied: int
    step: int
    base: list[int]
    digest: int
    nbytes: int
    origin: int
    clock: tuple[int, ...]
    records: list[Record]
    facts: dict[str, Any] = {}
    handle: int = -1


class Mark(msgspec.Struct, tag="mark", gc=False):
    """A learner's MARKER on one channel: what it sent before was sent before its state was taken."""

    learner: int
    incarnation: int
    snapshot: int
    channel: int
    origin: int
    clock: tuple[int, ...]
    records: list[Record]


class StateUnusable(msgspec.Struct, tag="state_unusable", gc=False):
    """The state that came for request ``number`` was not whole."""

    learner: int
    incarnation: int
    number: int
    clock: tuple[int, ...]
    records: list[Record]


LearnerMessage = Join | Metadata | Fragment | Refused | Heartbeat | StateCopy | Mark | StateUnusable


class Welcome(msgspec.Struct, tag="welcome", gc=False):
    """Incarnation, stamp and settings for a joiner; ``rejoin`` where a declared-lost learner still lives.

    A learner that has state ignores ``first_step`` and ``first_seq``.  ``source`` says what a learner without one
    begins with: ``initial`` (the run's first weights), ``peer`` (a state that is on its way), ``snapshot`` (its
    moments from ``snapshot``), ``own`` (all that it has from ``snapshot``).
    """

    incarnation: int
    epoch: int
    versions: list[int]
    t: int
    revision: int
    settings: dict[str, Any]
    first_step: int
    first_seq: int
    rejoin: bool
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]
    source: str = "initial"
    snapshot: int = -1


class Pull(msgspec.Struct, tag="pull", gc=False):
    """Send fragment ``fragment`` for round ``round`` if it rests on ``base_version``."""

    incarnation: int
    round: int
    fragment: int
    base_version: int
    codec: str
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]


class Update(msgspec.Struct, tag="update", gc=False):
    """A committed fragment, with what its addressee last contributed to it.

    ``last_merged`` is the version that holds the addressee's last contribution to this fragment and
    ``last_merged_step`` the own step at which that was captured (-1: none): this is the
    acknowledgement.  ``anew`` above 0 asks for a fold although the version is not higher.
    """

    incarnation: int
    fragment: int
    version: int
    round: int
    last_merged: int
    last_merged_step: int
    anew: int
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]
    handle: int = -1


class Notice(msgspec.Struct, tag="notice", gc=False):
    """Round ``round`` was closed without an update."""

    incarnation: int
    round: int
    acked: int
    closed_below: int
    clock: tuple[int, ...]


class Beat(msgspec.Struct, tag="beat", gc=False):
    """The syncer lives; acknowledges records, or asks for those after ``acked`` again."""

    incarnation: int
    acked: int
    closed_below: int
    clock: tuple[int, ...]
    send_again: bool = False


class Change(msgspec.Struct, tag="change", gc=False):
    """Learner-class settings of a revision."""

    incarnation: int
    revision: int
    settings: dict[str, Any]
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]


class CopyAsked(msgspec.Struct, tag="copy_asked", gc=False):
    """Send your state for learner ``joiner`` from the first boundary at which you are healed and have the stamp."""

    incarnation: int
    number: int
    joiner: int
    stamp: list[int]
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]


class PeerState(msgspec.Struct, tag="peer_state", gc=False):
    """The state of process ``donor`` as of its record ``copied``, for a learner that has not begun."""

    incarnation: int
    number: int
    donor: int
    copied: int
    digest: int
    nbytes: int
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]
    handle: int = -1


class Begin(msgspec.Struct, tag="begin", gc=False):
    """No peer is left to ask: begin with moments from ``snapshot``, or (``initial``) with fresh ones."""

    incarnation: int
    source: str
    snapshot: int
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]


class Marker(msgspec.Struct, tag="marker", gc=False):
    """A snapshot has begun: what came before on this channel was sent before it."""

    incarnation: int
    snapshot: int
    channel: int
    acked: int
    closed_below: int
    origin: int
    clock: tuple[int, ...]


class End(msgspec.Struct, tag="end", gc=False):
    """The run is over, or this process is not wanted: leave."""

    incarnation: int
    reason: str
    acked: int
    closed_below: int
    clock: tuple[int, ...]


SyncerMessage = Welcome | Pull | Update | Notice | Beat | Change | End | CopyAsked | PeerState | Begin | Marker
Message = LearnerMessage | SyncerMessage
