"""Invariants that the journal alone shows, record by record (PROTOCOL section 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from workbench.protocol import events as ev
from workbench.protocol.guards import REFUSED
from workbench.protocol.records import Kind, Record, label_of, learner_of
from workbench.protocol.settings import MergeSettings
from workbench.simulate.arithmetic import merged_digest
from workbench.tape.ledger import Ledger

if TYPE_CHECKING:
    from workbench.simulate.world import World


class InvariantBroken(AssertionError):
    """An invariant does not hold; the message names it and the values."""


def broken(what: str, values: Any) -> NoReturn:
    """Raise `InvariantBroken`."""
    raise InvariantBroken(f"{what}: {values}")


class JournalChecks:
    """What the journal says so far: versions, open rounds, own steps, incarnations, the token ledger.

    Parameters
    ----------
    learners, fragments : int
        M and P.
    """

    def __init__(self, learners: int, fragments: int) -> None:
        self.seqs: dict[int, int] = {}
        self.steps: dict[int, int] = {}
        self.incarnations: dict[int, int] = {}
        self.versions = [0] * fragments
        self.committed = [0] * fragments
        self.open: dict[int, int] = {}
        self.merging: set[int] = set()
        self.opened_at: dict[int, MergeSettings] = {}
        self.pulls: set[tuple[int, int, int]] = set()
        self.ever_pulled: dict[int, set[int]] = {}
        self.arrived: set[tuple[int, int]] = set()
        self.refused: set[tuple[int, int]] = set()
        self.guarded: set[tuple[int, int]] = set()
        self.last_t = 0
        self.ledger = Ledger(learners, fragments, [1] * fragments)
        self.healed: dict[int, tuple[int, int]] = {}
        self.stamps: dict[int, list[int]] = {}
        self.epoch = 0

    def take(self, world: World, record: Record) -> None:
        """Check one record, in journal order."""
        process = record.process
        if record.seq != self.seqs.get(process, 0) + 1:
            broken("6: journal skips or repeats", (label_of(process), self.seqs.get(process, 0), record.seq))
        self.seqs[process] = record.seq
        check = _RECORD_CHECKS.get(record.kind)
        if check is not None:
            check(self, world, record)
        self.ledger.apply(record)
        self.ledger.check_last()

    def _started(self, world: World, record: Record) -> None:
        """A syncer that goes back to a snapshot: later versions, rounds and own steps were not."""
        cut = record.detail.get("cut")
        if record.epoch != self.epoch + bool(cut):
            broken("1: epoch", (self.epoch, record.epoch))
        self.epoch = record.epoch
        if not cut:
            return
        self.versions, self.committed = list(cut["versions"]), list(cut["versions"])
        recorded = {int(m): n for m, n in cut["steps"].items()}
        self.steps = {m: recorded.get(m, 0) for m in self.steps}
        self.open, self.merging, self.opened_at = {}, set(), {}
        self.pulls, self.ever_pulled, self.arrived, self.refused, self.guarded = set(), {}, set(), set(), set()
        self.last_t = 0

    def _asked_state(self, world: World, record: Record) -> None:
        self.stamps[int(record.value)] = record.detail["stamp"]

    def _abandoned(self, world: World, record: Record) -> None:
        if record.reason == "inconsistent":
            broken("12: an inconsistent snapshot", record.detail)

    def _step_ended(self, world: World, record: Record) -> None:
        learner = learner_of(record.process)
        if record.step != self.steps.get(learner, 0) + 1:
            broken("8: own steps are not consecutive", (learner, self.steps.get(learner, 0), record.step))
        self.steps[learner] = record.step

    def _joined(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        if record.version != self.incarnations.get(learner, 0) + 1:
            broken("incarnation is not the next", (learner, self.incarnations.get(learner, 0), record.version))
        self.incarnations[learner] = record.version

    def _lost(self, world: World, record: Record) -> None:
        """A learner whose message lies at the syncer's door is not silent."""
        if record.reason != "heartbeat":
            return
        member = world.syncer.machine.state.members[learner_of(record.peer)]
        for waiting in world.syncer.queue:
            if isinstance(waiting, ev.Received) and waiting.connection == member.connection:
                broken("10 (section): lost by heartbeat while its message waits", label_of(record.peer))

    def _opened(self, world: World, record: Record) -> None:
        fixed = world.fixed
        if record.round <= self.last_t or fixed.offsets[record.fragment] != record.round % fixed.period:
            broken("rounds open in order of t, each with its fragment", (self.last_t, record.round, record.fragment))
        self.last_t = record.round
        self.open[record.round] = record.fragment
        self.opened_at[record.round] = world.syncer.machine.state.book.merge

    def _closed(self, world: World, record: Record) -> None:
        if record.reason == "backlog":
            if (int(record.value) - record.round) % world.fixed.period:
                broken("backlog is skipped by whole periods", (record.round, record.value))
            return
        self._forget_round(record.round)

    def _forget_round(self, t: int) -> None:
        self.open.pop(t, None)
        self.arrived = {key for key in self.arrived if key[0] != t}
        self.merging.discard(t)
        self.opened_at.pop(t, None)

    def _restarted(self, world: World, record: Record) -> None:
        self.merging.discard(record.round)
        self.arrived = {key for key in self.arrived if key[0] != record.round}
        self.refused = {key for key in self.refused if key[0] != record.round}
        self.guarded = {key for key in self.guarded if key[0] != record.round}

    def _quorum(self, world: World, record: Record) -> None:
        """Recount, from the truth, who may be counted: healed, far enough, or its fragment here or refused."""
        state = world.syncer.machine.state
        count = 0
        for learner, member in state.members.items():
            number, healed_since = self.healed.get(learner, (-1, 0))
            process = world.learners[learner]
            healed = number == member.process_number and healed_since > 0
            far = process.number != member.process_number or process.machine.state.g >= record.round
            here = (record.round, learner) in self.arrived | self.guarded
            count += bool(here or (healed and far and member.connected))
        if count < state.book.policy.quorum:
            broken("quorum without K ready learners", (record.round, count, state.book.policy.quorum))

    def _pull_sent(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        key = (record.round, learner, self.incarnations[learner])
        if key in self.pulls or (record.round, learner) in self.arrived:
            broken("a second PULL of one round", key)
        self.pulls.add(key)
        self.ever_pulled.setdefault(record.round, set()).add(learner)

    def _answered(self, world: World, record: Record) -> None:
        """A refused or dropped answer: the learner may be asked again."""
        learner = learner_of(record.peer)
        if record.reason not in REFUSED:
            self.pulls.discard((record.round, learner, self.incarnations[learner]))
            return
        self.guarded.add((record.round, learner))
        if (record.round, learner) in self.arrived:
            self.refused.add((record.round, learner))

    def _arrived(self, world: World, record: Record) -> None:
        learner = learner_of(record.peer)
        if record.round not in self.open or record.round in self.merging:
            broken("a fragment of a closed or merging round is used", (record.round, learner))
        if record.detail["incarnation"] != self.incarnations[learner]:
            broken("a fragment of another incarnation is used", (record.round, learner, record.detail))
        if (record.round, learner) in self.arrived:
            broken("2: two fragments of one learner in a round", (record.round, learner))
        self.arrived.add((record.round, learner))

    def _merged(self, world: World, record: Record) -> None:
        p = record.fragment
        if record.version != self.versions[p] + 1:
            broken("1: version does not rise by one", (p, self.versions[p], record.version))
        here = sorted(m for t, m in self.arrived - self.refused if t == record.round)
        if record.detail["learners"] != here or record.digest != merged_digest(p, record.version, here):
            broken("11: not the merge of what arrived and was not refused", (record.detail["learners"], here))
        self.versions[p] = record.version
        self._forget_round(record.round)

    def _is_committed(self, world: World, record: Record) -> None:
        if record.version != self.versions[record.fragment]:
            broken("5: commit of what is not merged", (record.fragment, record.version))
        self.committed[record.fragment] = record.version


_RECORD_CHECKS: dict[int, Any] = {
    Kind.STEP_ENDED: JournalChecks._step_ended,
    Kind.SYNCER_STARTED: JournalChecks._started,
    Kind.STATE_ASKED: JournalChecks._asked_state,
    Kind.SNAPSHOT_ABANDONED: JournalChecks._abandoned,
    Kind.LEARNER_JOINED: JournalChecks._joined,
    Kind.LEARNER_LOST: JournalChecks._lost,
    Kind.ROUND_OPENED: JournalChecks._opened,
    Kind.ROUND_SKIPPED: JournalChecks._closed,
    Kind.ROUND_ABORTED: JournalChecks._closed,
    Kind.ROUND_RESTARTED: JournalChecks._restarted,
    Kind.QUORUM_REACHED: JournalChecks._quorum,
    Kind.PULL_SENT: JournalChecks._pull_sent,
    Kind.FRAGMENT_ARRIVED: JournalChecks._arrived,
    Kind.FRAGMENT_DROPPED: JournalChecks._answered,
    Kind.REFUSAL_ARRIVED: JournalChecks._answered,
    Kind.MERGED: JournalChecks._merged,
    Kind.MERGE_COMMITTED: JournalChecks._is_committed,
}
