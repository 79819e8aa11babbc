"""Inputs of the machines: what happened to a process, in the past tense."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol.messages import Message
from workbench.protocol.records import Record


class Connected(msgspec.Struct, tag="connected", gc=False):
    """A learner's transport reached the syncer: both channels of ``connection`` are open."""

    connection: int


class Disconnected(msgspec.Struct, tag="disconnected", gc=False):
    """The channels of ``connection`` are gone."""

    connection: int


class Received(msgspec.Struct, tag="received", gc=False):
    """A message came; ``finite`` and ``fits`` are what the driver found in its payload."""

    connection: int
    message: Message
    finite: bool = True
    fits: bool = True
    norm: float = 0.0


class Woken(msgspec.Struct, tag="woken", gc=False):
    """The time that the machine asked for has come."""


class Adopted(msgspec.Struct, tag="adopted", gc=False):
    """The learner holds the state that it was told to adopt; ``digest`` is that of its parameters.

    Of a peer's or a snapshot's state the digest is that of the whole; one that is not ``whole`` was not used.
    """

    digest: int
    whole: bool = True


class StepEnded(msgspec.Struct, tag="step_ended", gc=False):
    """An inner step is done."""

    loss: float
    tokens: int
    batch: int
    accumulation: int
    start_ns: int
    injected_ns: int = 0


class Captured(msgspec.Struct, tag="captured", gc=False):
    """A host copy of a fragment was encoded for a PULL."""

    round: int
    fragment: int
    digest: int
    nbytes: int
    handle: int


class StateCopied(msgspec.Struct, tag="state_copied", gc=False):
    """A learner's state, as it was when it was ordered to be copied, lies under ``handle``."""

    number: int
    digest: int
    nbytes: int
    handle: int


class FaultActed(msgspec.Struct, tag="fault_acted", gc=False):
    """A fault acted on this learner's numbers or timing."""

    reason: str
    fragment: int
    detail: dict[str, Any]


class LeaveAsked(msgspec.Struct, tag="leave_asked", gc=False):
    """Whoever started this learner wants it to leave; the run goes on without it."""

    reason: str


class RecordsCame(msgspec.Struct, tag="records_came", gc=False):
    """Records of the supervisor or the evaluator."""

    process: int
    records: list[Record]


class MergeDone(msgspec.Struct, tag="merge_done", gc=False):
    """The free slot of a fragment holds the merged version."""

    round: int
    fragment: int
    finite: bool
    digest: int
    outer_digest: int
    norm: float
    norms: list[float]
    cosines: list[float]
    digests: list[int]


class CommitDone(msgspec.Struct, tag="commit_done", gc=False):
    """The slot of the merged version is the current one."""

    round: int
    fragment: int
    version: int


class Handed(msgspec.Struct, tag="handed", gc=False):
    """The transport took an UPDATE; the next may follow."""

    connection: int
    fragment: int
    version: int


class SettingsAsked(msgspec.Struct, tag="settings_asked", gc=False):
    """Somebody asks for other settings."""

    values: dict[str, Any]
    who: str


class QuarantineAsked(msgspec.Struct, tag="quarantine_asked", gc=False):
    """A learner is to be kept out of the merges, or let in again."""

    learner: int
    quarantined: bool
    who: str


class AddAsked(msgspec.Struct, tag="add_asked", gc=False):
    """One more learner is wanted."""

    who: str


class RemoveAsked(msgspec.Struct, tag="remove_asked", gc=False):
    """A learner is not wanted any more."""

    learner: int
    who: str


class SnapshotAsked(msgspec.Struct, tag="snapshot_asked", gc=False):
    """Somebody wants a snapshot."""

    who: str


class SnapshotWritten(msgspec.Struct, tag="snapshot_written", gc=False):
    """A snapshot lies on disk, whole; or, with a ``reason``, it does not."""

    snapshot: int
    digest: int
    reason: str = ""


class StopAsked(msgspec.Struct, tag="stop_asked", gc=False):
    """Somebody asks for the end of the run."""

    reason: str


SyncerInput = (
    Received
    | Disconnected
    | Woken
    | RecordsCame
    | MergeDone
    | CommitDone
    | Handed
    | SettingsAsked
    | QuarantineAsked
    | AddAsked
    | RemoveAsked
    | SnapshotAsked
    | SnapshotWritten
    | StopAsked
)
LearnerInput = (
    Connected | Disconnected | Received | Woken | Adopted | StepEnded | Captured | StateCopied | FaultActed | LeaveAsked
)
