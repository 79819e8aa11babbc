"""A round as the syncer sees it: plain data (PROTOCOL section 2)."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from workbench.protocol.moments import UNSET
from workbench.protocol.settings import MergeSettings


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
    """A PULL of one round: to which incarnation, when [ns], and what became of it (a `PullState`)."""

    incarnation: int
    sent_at: int
    base_version: int
    state: int = PullState.OUTSTANDING


class Contribution(msgspec.Struct, gc=False):
    """A fragment that is here: its counters as captured after own step ``step``, its payload under ``handle``.

    ``norm`` is that of its difference to the current version, as its receiver found it.
    """

    base_version: int
    step: int
    steps: int
    tokens: int
    digest: int
    handle: int
    norm: float = 0.0


class Round(msgspec.Struct):
    """One round (t, p).  Times in ns of the syncer's clock, UNSET where not reached.

    Attributes
    ----------
    t, p, state : int
        Global step at which it is due, fragment, a `RoundState`.
    revision, settings, fresh_outer : int, MergeSettings, bool
        Arithmetic as of its opening; whether the outer state is forgotten before the merge.
    opened_at, first_ready_at, quorum_at, grace_ended_at, pull_until, merge_at : int
        When it came to each state; ``pull_until`` is the limit of its PULLs.
    window_ns : int
        Grace window.
    pulls, here : dict by learner
        PULLs sent, fragments that are here.
    guarded : list of int
        Learners whose fragment arrived and was refused by a guard: they count toward K, and are not asked again.
    left_out : dict of learner to reason
        Why who is not in it.
    merging : list of int
        Contributors, from MERGING on.
    stuck_since : int
        Since when it lacks a quorum that it had: PULLs without an answer count from then.
    """

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
