"""States and snapshots that are under way: plain data (PROTOCOL sections 11 and 13)."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.protocol.moments import UNSET


class Transfer(msgspec.Struct):
    """A joiner that was promised a peer's state.

    Attributes
    ----------
    joiner, incarnation, number : int
        Learner, its life, and the request that is out.
    donor : int
        Whom it was asked of, UNSET while a snapshot has to be waited for.
    tried : list of int
        Who was asked before.
    stamp : list of int
        Versions when it was asked.
    asked_at : int
        When [ns]; again when the state went to the joiner.
    relayed, handle : bool, int
        It is on its way to the joiner, and lies here meanwhile.
    """

    joiner: int
    incarnation: int
    number: int = UNSET
    donor: int = UNSET
    tried: list[int] = []
    stamp: list[int] = []
    asked_at: int = UNSET
    relayed: bool = False
    handle: int = UNSET


class Part(msgspec.Struct):
    """A participant of a snapshot: which MARKERs of it have come, and what its state was."""

    incarnation: int
    marked: list[bool] = msgspec.field(default_factory=lambda: [False, False])
    kept: bool = False
    seq: int = UNSET
    step: int = UNSET
    base: list[int] = []
    digest: int = 0
    nbytes: int = 0
    facts: dict[str, Any] = {}


class Snapshotting(msgspec.Struct):
    """A snapshot that is being taken.

    Attributes
    ----------
    number, seq, started_at : int
        Its number, the record of the syncer's own state, when [ns].
    manifest : dict
        What the syncer was.
    parts : dict of learner to Part
        Participants that are not gone.
    in_flight : list of dict
        Headers of what a participant had sent before its MARKER and came after the syncer's state was taken.
    handles : list of int
        Payloads of the parts.
    writing : bool
    """

    number: int
    seq: int
    started_at: int
    manifest: dict[str, Any]
    parts: dict[int, Part] = {}
    in_flight: list[dict[str, Any]] = []
    handles: list[int] = []
    writing: bool = False
