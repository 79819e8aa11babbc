"""What a machine asks its driver to do, in the order in which it has to be done."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol.messages import Message
from workbench.protocol.records import Record


class Append(msgspec.Struct, tag="append", gc=False):
    """Syncer: write these records to the journal before anything that follows."""

    records: list[Record]


class Send(msgspec.Struct, tag="send", gc=False):
    """Put a message on a channel; never waits."""

    connection: int
    channel: int
    message: Message


class Merge(msgspec.Struct, tag="merge", gc=False):
    """Syncer: merge these contributions into the free slot of the fragment."""

    round: int
    fragment: int
    version: int
    learners: list[int]
    handles: list[int]
    weights: list[float]
    base_versions: list[int]
    settings: dict[str, Any]
    fresh_outer: bool


class Commit(msgspec.Struct, tag="commit", gc=False):
    """Syncer: make the slot of ``version`` the current one."""

    round: int
    fragment: int
    version: int


class Release(msgspec.Struct, tag="release", gc=False):
    """The payload under this handle is not needed any more."""

    handle: int


class Connect(msgspec.Struct, tag="connect", gc=False):
    """Learner: open the channels to the syncer (anew)."""


class StartStep(msgspec.Struct, tag="start_step", gc=False):
    """Learner: make own step ``step`` with the learning rate of global step ``global_step``."""

    step: int
    global_step: int
    batch: int
    accumulation: int
    rate_scale: float


class Adopt(msgspec.Struct, tag="adopt", gc=False):
    """Learner: take this state; answer with `Adopted`.

    ``initial``: the run's first weights, fresh moments.  ``peer``: of what lies under ``handle`` the moments and these
    ``fragments``, if its digest is ``digest``.  ``snapshot``: its own moments of ``snapshot``.  ``own``: all that
    ``snapshot`` has of it.
    """

    source: str
    handle: int = -1
    fragments: list[int] = []
    snapshot: int = -1
    digest: int = 0


class Publish(msgspec.Struct, tag="publish", gc=False):
    """Learner: renew the host copy, of one fragment or of all (-1)."""

    fragment: int


class Capture(msgspec.Struct, tag="capture", gc=False):
    """Learner: encode the host copy of a fragment; answer with `Captured`."""

    round: int
    fragment: int
    step: int
    codec: str


class Fold(msgspec.Struct, tag="fold", gc=False):
    """Learner: absorb an update; ``reference`` is the own step of the kept copy, -1 for the base."""

    fragment: int
    version: int
    handle: int
    rule: str
    alpha: float
    reference: int


class ForgetCapture(msgspec.Struct, tag="forget_capture", gc=False):
    """Learner: the copy captured after ``step`` is not needed any more."""

    fragment: int
    step: int
    taken: bool


class CopyState(msgspec.Struct, tag="copy_state", gc=False):
    """Learner: keep parameters and moments as they are now, and answer with `StateCopied`.

    For a ``snapshot`` also what folds and codecs rest on: the bases, and these ``captured`` copies (fragment, step).
    """

    number: int
    snapshot: bool
    captured: list[tuple[int, int]] = []


class Leave(msgspec.Struct, tag="leave", gc=False):
    """Learner: end this process."""

    reason: str


class TakeSnapshot(msgspec.Struct, tag="take_snapshot", gc=False):
    """Syncer: keep Theta and the outer state of these versions for a snapshot."""

    snapshot: int
    versions: list[int]


class KeepPart(msgspec.Struct, tag="keep_part", gc=False):
    """Syncer: what lies under ``handle`` is a learner's part of the snapshot."""

    snapshot: int
    learner: int
    handle: int


class WriteSnapshot(msgspec.Struct, tag="write_snapshot", gc=False):
    """Syncer: write the snapshot, whole or not at all; answer with `SnapshotWritten`."""

    snapshot: int
    manifest: dict[str, Any]


class DropSnapshot(msgspec.Struct, tag="drop_snapshot", gc=False):
    """Syncer: the snapshot will not be: forget what was kept for it."""

    snapshot: int


class Finish(msgspec.Struct, tag="finish", gc=False):
    """Syncer: the run is over."""

    reason: str


class Fail(msgspec.Struct, tag="fail", gc=False):
    """A state that must not be: stop with this line."""

    reason: str


Action = (
    Append
    | Send
    | Merge
    | Commit
    | Release
    | Connect
    | StartStep
    | Adopt
    | Publish
    | Capture
    | Fold
    | ForgetCapture
    | CopyState
    | TakeSnapshot
    | KeepPart
    | WriteSnapshot
    | DropSnapshot
    | Leave
    | Finish
    | Fail
)
