"""What the syncer knows: plain data, so that it can be stored, compared, copied and shifted in time."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

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


class Sent(msgspec.Struct, gc=False):
    """An UPDATE handed to the transport and not yet seen in a METADATA."""

    version: int
    at: int


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


class Member(msgspec.Struct):
    """A learner as the syncer sees it.  Lists are by fragment, times in ns of the syncer's clock.

    Attributes
    ----------
    learner, process_number, incarnation, ended : int
        Id; number of its process; its life as handed out; the highest process number that the supervisor saw exit.
    connection, connected : int, bool
        Present connection, and whether it counts as alive.
    base, c_steps, n, g, healed : list of int, list of int, int, int, bool
        As its latest METADATA, or JOIN, says.
    last_merged, last_merged_step : list of int
        Version that holds its last contribution, and the own step of that; -1 for none.
    blocked : list of str
        Why it is not clean until newer METADATA (reason of a refusal or a drop); empty if nothing stands against it.
    anew : list of int
        Above 0: it has to fold the fragment anew, and has not said so.
    quarantined, stalled : bool
        Kept out by somebody or by a guard; METADATA too old.
    norms, norm_steps, opposed, poisonings : dict of fragment to list of float, of int, int, int
        Norms and own steps of its last merged contributions, rounds running in which it was against the others, and
        contributions in a row that were refused for what they hold.
    last_heard, metadata_at : int
        When anything, and when METADATA came.
    recent, median_ns, step_ema : list of int, int, float
        Last steps, their median, and their moving average (xi_step is the median of these over learners) [ns].
    pull_ema, send_ema : float
        Moving averages of PULL to answer, and of hand-over to the METADATA that shows the version [ns]; -1 for none.
    known_seq, last_step, joined_seq, asked_again_at : int
        Last record and last own step in the journal; record of its joining; when missing records were asked for.
    asked, unanswered : dict of round to time, int
        PULLs without an answer, of this incarnation; times in a row that it was lost because none came.
    pending, in_hand, sent : dict, int, dict
        Versions that wait by fragment; the fragment that the transport holds; what it has taken and nobody has shown.
    source, begin_seq : str, int
        What its process was told to begin with, and the record of that where it was not its joining.
    rounds_missed, missed_why : int, dict
        Closed rounds without it in a row, and how often for which cause.
    """

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
    unanswered: int = 0
    pending: dict[int, int] = {}
    in_hand: int = UNSET
    sent: dict[int, Sent] = {}
    rounds_missed: int = 0
    missed_why: dict[str, int] = {}
    stalled: bool = False
    norms: dict[int, list[float]] = {}
    norm_steps: dict[int, list[int]] = {}
    opposed: int = 0
    poisonings: int = 0
    source: str = "initial"
    begin_seq: int = 0


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
    """Everything that the syncer machine is.  Lists are by fragment, times in ns of the syncer's clock.

    Attributes
    ----------
    fixed, book : FixedSettings, SettingsBook
        Settings.
    members, rounds : dict
        Learners by id, rounds in flight by t, both in ascending order.
    versions, version_rounds, merged_at, outer_revision : list of int
        Current version, the round that made it, when, and the settings revision of its outer state.
    sync_since : list of int
        End of grace of a version that no transport has taken yet, UNSET otherwise.
    incarnation, epoch, seq, clock : int, int, int, tuple
        Of the syncer as a process that records.
    known_seq : dict
        Last record in the journal of processes that are no learners.
    changed_seq : int
        Record of the last change of settings.
    opened_t, next_t, next_p, closed_below, merges : int
        Last round opened, the next and its fragment, the oldest that is not closed, merges done.
    began, start_until, short_since, next_beat, wake_at : bool, int, int, int, int
        Whether rounds may open; the start limit; since when, before that, fewer than K of those that came are there;
        next heartbeat; when to be woken.
    xi_quorum, xi_sync : float
        Moving averages [ns], with ``_known`` once there was a sample.
    transfers, transfer_serial : dict of joiner to Transfer, int
        States under way to joiners, and the number of the last request.
    snapshot, snapshot_wanted, snapshot_serial : Snapshotting or None, str, int
        The snapshot that is being taken, who wants another, and the number of the last that was begun.
    snapshot_done, snapshot_steps : int, dict of learner to own step
        The newest that is complete, -1 for none, and whose parts it has.
    snapshot_at, snapshot_merges : int, int
        When the last was begun, and after how many merges.
    resumed_from : int
        Snapshot that this epoch went back to, -1 for none.
    added, removed : list of int
        Learners beyond those that the run began with, and those that were taken out of it for good.
    quorum_lost, anew_serial : bool, int
        Whether fewer than K are possible; number of the last fold asked anew.
    ending, ending_until, finished : str, int, bool
        Why the run ends, how long learners are waited for, whether it is over.
    """

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
    short_since: int = UNSET
    next_beat: int = 0
    xi_quorum: float = 0.0
    xi_sync: float = 0.0
    xi_quorum_known: bool = False
    xi_sync_known: bool = False
    transfers: dict[int, Transfer] = {}
    transfer_serial: int = 0
    snapshot: Snapshotting | None = None
    snapshot_wanted: str = ""
    snapshot_serial: int = 0
    snapshot_done: int = -1
    snapshot_steps: dict[int, int] = {}
    snapshot_at: int = 0
    snapshot_merges: int = 0
    resumed_from: int = -1
    added: list[int] = []
    removed: list[int] = []
    quorum_lost: bool = False
    anew_serial: int = 0
    ending: str = ""
    ending_until: int = UNSET
    finished: bool = False
    wake_at: int = UNSET


def shift(state: SyncerState, gap: int, heard_least: int = -(2**62)) -> None:
    """Move every time that the syncer holds by ``gap``: it was itself stopped for so long (section 10).

    No learner counts as last heard of before ``heard_least``: what it sent meanwhile lies at the syncer's door, and is
    taken before anybody is called silent.
    """

    def moved(at: int) -> int:
        return at if at in (UNSET, NEVER) else at + gap

    state.start_until = moved(state.start_until)
    state.short_since = moved(state.short_since)
    state.ending_until = moved(state.ending_until)
    state.next_beat = moved(state.next_beat)
    state.snapshot_at = moved(state.snapshot_at)
    if state.snapshot is not None:
        state.snapshot.started_at = moved(state.snapshot.started_at)
    for transfer in state.transfers.values():
        transfer.asked_at = moved(transfer.asked_at)
    state.merged_at = [moved(at) for at in state.merged_at]
    state.sync_since = [moved(at) for at in state.sync_since]
    for member in state.members.values():
        member.last_heard = max(moved(member.last_heard), heard_least)
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
