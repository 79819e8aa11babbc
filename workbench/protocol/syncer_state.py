"""What the syncer knows: plain data, so that it can be stored, compared, copied and shifted in time."""

from __future__ import annotations

import msgspec

from workbench.protocol.member_state import Member
from workbench.protocol.moments import NEVER, UNSET
from workbench.protocol.round_state import Round
from workbench.protocol.settings import FixedSettings, SettingsBook
from workbench.protocol.under_way import Snapshotting, Transfer


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
