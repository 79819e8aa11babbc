"""How long everything took on a tape."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from statistics import median
from typing import Any

from workbench.protocol.faults import ENDING_KINDS
from workbench.protocol.records import SYNCER, Kind, Record, learner_of, process_of
from workbench.replay.counterfactual.arrived import Arrived
from workbench.replay.counterfactual.by_hand import JOINING_NS, by_hand
from workbench.replay.counterfactual.notices import noticed
from workbench.replay.counterfactual.parent import Parent
from workbench.replay.counterfactual.spans import overlap, spans_of
from workbench.replay.counterfactual.updates_came import sendings_of

SECOND = 10**9
DISTURBING = ("stall", "stall_syncer", "kill_syncer", "delay", "bandwidth", "cut", "cut_up", "cut_down")
"""Faults under which a message takes as long as they last: that is theirs, not the message's."""


class Measured:
    """Durations of a parent by kind and key, all in ns of one clock.

    Attributes
    ----------
    tables : dict of kind to dict of (learner, key) to int
        By own step: ``step``, the ``pause`` before it, ``meta`` (METADATA on its way).  By round: ``up`` and
        ``down``, a contribution and its PULL on their way, ``notice`` (that the round was closed without an update, on
        its way to a learner whose wait it ended).  By (fragment, version, how-manieth sending): ``update`` and
        ``handed``.  By process number: ``start``, ``adopt`` (its first state), ``passed`` and ``taken`` (a peer's
        state on its way from the syncer, and until it is adopted), ``ended`` and ``gone`` (until the supervisor,
        the syncer sees that it was killed); by incarnation ``welcome``.  By (0 for a peer, 1 for a snapshot, number):
        ``copy`` and ``state``, a donor's state copied, and on its way to the syncer.  Under learner -1: ``merge`` and
        ``commit`` by (fragment, round), ``late`` by round (how late the syncer woke at the end of a grace window),
        ``write`` by snapshot.
    delay_ns : int
        One-way delay of what the tape has no time for: that of a quick METADATA (5th percentile), since what is sent
        after it on the same channel has not waited for it.
    sendings : dict of int to (fragment, version, how-manieth)
        By the seq of the record of the sending.
    folded : set of int
        Those of which a fold is on the tape.
    least : dict of (kind, learner, key) to int
        What was cut short by a kill has taken at least so long.
    cut_off : set of (learner, own step, process number)
        Steps that a kill cut off: what the tape has of that own step is the next process's.
    late_ns : int
        How late the syncer wakes, as a rule.
    begins : dict of process to int
        When the syncer and each learner were started first.
    by_hand : dict of learner to list of int
        Numbers of its processes that no supervisor started.
    offsets : dict of learner to int
        What to add to a learner's times to have them on the syncer's clock; 0 on one machine.
    """

    def __init__(self, parent: Parent) -> None:
        self.tables: dict[str, dict[tuple[int, Hashable], int]] = defaultdict(dict)
        self.begins: dict[int, int] = {}
        self.by_hand: dict[int, list[int]] = defaultdict(list)
        self.offsets: dict[int, int] = defaultdict(int)
        self.stalls = spans_of(parent.records, ("stall",))
        self._disturbed = spans_of(parent.records, DISTURBING)
        self.sendings: dict[int, tuple[int, int, int]] = {}
        self.folded: set[int] = set()
        self.least: dict[tuple[str, int, Hashable], int] = {}
        self.cut_off: set[tuple[int, Hashable, int]] = set()
        self._first: set[tuple[int, int]] = set()
        self._untraced: set[tuple[int, Hashable]] = set()
        self._pools: dict[tuple[str, int], list[int]] = {}
        self._records, self._event_of = parent.records, parent.event_of
        self._watched = {r.peer for r in parent.records if r.kind == Kind.PROCESS_STARTED}
        arrived = Arrived(parent)
        self._metadata(arrived.metadata)
        self._steps()
        self._unended()
        for n in noticed(parent.records, self.offsets):
            self._keep("notice", n.learner, n.round, n.sent, n.came)
        self._pulls()
        self._updates(arrived.handed, late=parent.config.fold_at == "due")
        self._merges()
        self._ends()
        self._starts(arrived.joins)
        self._states(arrived.parts)
        self.late_ns = int(median(self.tables["late"].values() or [0]))

    def has(self, kind: str, learner: int, key: Hashable) -> bool:
        """Whether the tape has a duration."""
        return (learner, key) in self.tables[kind]

    def number(self, learner: int, number: int) -> int:
        """What the tape calls a process of the counterfactual.

        Who is started by hand has a number that nobody counts; a world counts from 1, or on from the process at its
        branch.
        """
        own = self.by_hand.get(learner, [])
        if not own or number in own:
            return number
        before = [known for known in own if known < number]
        at = len(before) - 1 + number - (before[-1] if before else 0)
        return own[at] if at < len(own) else number

    def pool(self, kind: str, learner: int) -> list[int]:
        """A learner's own values to draw from; of all learners if it has none."""
        if (kind, learner) not in self._pools:
            table = self.tables[kind]
            own = [v for (m, key), v in table.items() if m == learner and not self._is_unlike(kind, m, key)]
            own = own or [v for (m, _), v in table.items() if m == learner]
            self._pools[kind, learner] = own or list(table.values())
        return self._pools[kind, learner]

    def _is_unlike(self, kind: str, learner: int, key: Any) -> bool:
        """A first step, which is no measure of others, or an UPDATE of which nothing tells when it came."""
        special = self._first if kind == "step" else self._untraced if kind == "update" else ()
        return (learner, key) in special

    def _keep(self, kind: str, learner: int, key: Hashable, start: int, stop: int) -> None:
        """A time that was no fault's."""
        for spans in (self._disturbed[learner], self._disturbed[-1]):
            if any(a <= stop and start <= b for a, b in spans):
                return
        self.tables[kind].setdefault((learner, key), max(0, stop - start))

    def _cause(self, record: Record) -> Record | None:
        event = self._event_of.get(record.cause) if record.cause is not None else None
        return self._records[event] if event is not None else None

    # by kind

    def _steps(self) -> None:
        before: dict[int, tuple[int, bool]] = {}
        for r in self._records:
            learner = learner_of(r.process)
            if r.kind in (Kind.STATE_ADOPTED, Kind.RESTORED):
                before[learner] = r.time_ns, True
            elif r.kind == Kind.STATE_UNAVAILABLE and learner_of(r.peer) in before:
                before[learner_of(r.peer)] = r.time_ns + self.delay_ns - self.offsets[learner_of(r.peer)], True
            elif r.kind == Kind.STEP_ENDED and learner in before:
                start, first = before[learner]
                lost = r.detail["waited_ns"] + r.detail["injected_ns"] + overlap(self.stalls[learner], start, r.time_ns)
                self.tables["step"][learner, r.step] = whole = max(1, r.time_ns - start - lost)
                pause = r.detail["start_ns"] - start - r.detail["waited_ns"]
                self.tables["pause"][learner, r.step] = min(max(0, pause), whole - 1)
                if first:
                    self._first.add((learner, r.step))
                before[learner] = r.time_ns, False

    def _unended(self) -> None:
        """What a process had not done when it was killed took at least so long: its step, answers to PULLs."""
        at: dict[int, tuple[int, int]] = {}
        number: dict[int, int] = {}
        asked: dict[int, dict[int, int]] = defaultdict(dict)
        for r in sorted(self._records, key=lambda r: r.time_ns):
            learner, peer = learner_of(r.process), learner_of(r.peer)
            if r.kind in (Kind.STATE_ADOPTED, Kind.RESTORED, Kind.STEP_ENDED):
                at[learner] = r.step + 1, r.time_ns
            elif r.kind in (Kind.PROCESS_STARTED, Kind.LEARNER_JOINED):
                number[peer] = int(r.value)
            elif r.kind == Kind.PULL_SENT:
                asked[peer][r.round] = r.time_ns
            elif peer in at and self._ends_it(r):
                step, since = at.pop(peer)
                self.least["step", peer, step] = r.time_ns - since
                self.cut_off.add((peer, step, number.get(peer, 1)))
                self.least.update({("down", peer, t): r.time_ns - sent for t, sent in asked.pop(peer, {}).items()})

    def _ends_it(self, r: Record) -> bool:
        """Whether this is the end of a process in the middle of its work."""
        if r.kind == Kind.FAULT_INJECTED:
            return r.reason in ENDING_KINDS
        by_hand = r.kind == Kind.LEARNER_LOST and r.peer not in self._watched
        return r.reason not in ("ended", "exit 0") and (by_hand or r.kind == Kind.PROCESS_ENDED)

    def _metadata(self, arrivals: dict[tuple[int, int], int]) -> None:
        sent: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        for r in self._records:
            if r.kind == Kind.STEP_ENDED:
                came = arrivals.get((learner_of(r.process), r.step))
                if came is not None:
                    sent[learner_of(r.process)][r.step] = r.time_ns, came
        for learner, own in sent.items():
            least = min(came - at for at, came in own.values())
            if not 0 <= least <= SECOND:  # another machine's clock: its fastest message stands for no time at all
                self.offsets[learner] = least
            for n, (at, came) in own.items():
                self._keep("meta", learner, n, at + self.offsets[learner], came)
        every = sorted(self.tables["meta"].values())
        self.delay_ns = every[len(every) // 20] if every else 1_000_000

    def _pulls(self) -> None:
        for r in self._records:
            answer, learner = None, learner_of(r.peer)
            if r.kind in (Kind.FRAGMENT_ARRIVED, Kind.FRAGMENT_DROPPED, Kind.REFUSAL_ARRIVED):
                answer = self._cause(r)
            if answer is None:
                continue
            at = answer.time_ns + self.offsets[learner]
            asked = self._cause(answer)
            self._keep("up", learner, r.round, at, r.time_ns)
            if asked is not None:
                self._keep("down", learner, r.round, asked.time_ns, at)

    def _updates(self, handed: dict[tuple[int, int, int], list[int]], late: bool) -> None:
        """A version may be sent to a learner more than once: the how-manieth sending is part of the key."""
        sendings, self.folded = sendings_of(self._records, self.delay_ns, self.offsets, late)
        counts: Counter[tuple[int, int, int]] = Counter()
        for s in sendings:
            name = (s.learner, s.fragment, s.version)
            counts[name] += 1
            nth, taken = counts[name], handed.get(name, [])
            self.sendings[s.seq] = (s.fragment, s.version, nth)
            self._keep("update", s.learner, self.sendings[s.seq], s.sent, s.came)
            if not s.folded:
                self._untraced.add((s.learner, self.sendings[s.seq]))
            if len(taken) >= nth and taken[nth - 1] >= s.sent:
                self._keep("handed", s.learner, self.sendings[s.seq], s.sent, taken[nth - 1])

    def _merges(self) -> None:
        merged: dict[int, Record] = {}
        windows: dict[int, float] = {}
        for r in self._records:
            if r.kind == Kind.QUORUM_REACHED:
                windows[r.round] = r.value
            elif r.kind == Kind.GRACE_ENDED and r.reason == "over" and windows.get(r.round, -1.0) > 0.0:
                late = round((r.value - windows[r.round]) * SECOND)
                self._keep("late", -1, r.round, r.time_ns - late, r.time_ns)
            elif r.kind == Kind.MERGED:
                merged[r.round] = r
                self._keep("merge", -1, (r.fragment, r.round), r.detail["pull_ns"], r.detail["merge_ns"])
            elif r.kind == Kind.MERGE_COMMITTED and not r.reason and r.round in merged:
                self._keep("commit", -1, (r.fragment, r.round), merged[r.round].time_ns, r.time_ns)

    def _ends(self) -> None:
        """From a kill to its end as the supervisor sees it, and to the loss that the syncer declares."""
        struck: dict[int, int] = {}
        number: dict[int, int] = {}
        for r in sorted(self._records, key=lambda r: r.time_ns):
            learner = learner_of(r.peer)
            if r.kind == Kind.PROCESS_STARTED:
                number[learner] = int(r.value)
                struck.pop(learner, None)
            elif r.kind == Kind.FAULT_INJECTED and r.reason in ENDING_KINDS:
                struck.setdefault(learner, r.time_ns)
            elif r.kind in (Kind.PROCESS_ENDED, Kind.LEARNER_LOST) and learner in struck:
                kind = "ended" if r.kind == Kind.PROCESS_ENDED else "gone"
                self.tables[kind].setdefault((learner, number.get(learner, 1)), r.time_ns - struck[learner])

    def _starts(self, joins: dict[tuple[int, int], int]) -> None:
        """Start-ups, from the start of a process to its JOIN, and from its JOIN to its first state."""
        for p in by_hand(self._records):
            self.by_hand[p.learner].append(p.number)
            self.begins.setdefault(process_of(p.learner), p.began_ns)
            self.tables["start"][p.learner, p.number] = max(0, JOINING_NS - 3 * self.delay_ns)
        joined: dict[int, Record] = {}
        for r in self._records:
            learner = learner_of(r.peer)
            if r.kind == Kind.PROCESS_STARTED and learner >= 0:
                self.begins.setdefault(r.peer, r.time_ns)
                came = joins.get((learner, int(r.value)))
                if came is not None:
                    self.tables["start"][learner, int(r.value)] = max(0, came - r.time_ns - 3 * self.delay_ns)
            elif r.kind == Kind.SYNCER_STARTED:
                self.begins.setdefault(SYNCER, r.time_ns)
            elif r.kind == Kind.LEARNER_JOINED:
                joined[learner] = r
            elif _begins(r) and learner_of(r.process) in joined:
                mine = learner_of(r.process)
                span = max(0, r.time_ns + self.offsets[mine] - joined[mine].time_ns)
                welcome = min(span, self.delay_ns)
                self.tables["welcome"].setdefault((mine, joined[mine].version), welcome)
                self.tables["adopt"].setdefault((mine, int(joined[mine].value)), span - welcome)

    def _states(self, parts: dict[int, int]) -> None:
        """States handed on: copied by whoever gives, on their way to the syncer and from it, laid on the disk."""
        number: dict[int, int] = {}
        folded: dict[int, int] = {}
        for r in self._records:
            learner, peer = learner_of(r.process), learner_of(r.peer)
            cause = self._cause(r)
            if r.kind == Kind.LEARNER_JOINED:
                number[peer] = int(r.value)
            elif r.kind == Kind.UPDATE_FOLDED:
                folded[learner] = r.time_ns
            elif r.kind == Kind.STATE_LEFT and (r.process, r.version) in self._event_of:
                copied = self._records[self._event_of[r.process, r.version]]
                key = (int(copied.kind == Kind.SNAPSHOT_RECORDED), int(r.value))
                self._keep("copy", learner, key, copied.time_ns, r.time_ns)
            elif r.kind == Kind.STATE_SENT and cause is not None:
                giver = learner_of(cause.process)
                self._keep("state", giver, (0, int(r.value)), self._leaves(cause, r), r.time_ns)
            elif r.kind == Kind.STATE_ADOPTED and r.reason == "peer" and cause is not None and learner in number:
                taken = r.time_ns + self.offsets[learner]
                came = min(max(cause.time_ns + self.delay_ns, folded.get(learner, 0) + self.offsets[learner]), taken)
                self._keep("passed", learner, number[learner], cause.time_ns, came)
                self._keep("taken", learner, number[learner], came, taken)
            elif r.kind == Kind.SNAPSHOT_COMPLETED and int(r.value) in parts:
                self._keep("write", -1, int(r.value), parts[int(r.value)], r.time_ns)
        last = max((r.time_ns for r in self._records), default=0)
        for snapshot, came in parts.items():
            if not self.has("write", -1, snapshot):
                self.least["write", -1, snapshot] = last - came

    def _leaves(self, left: Record, sent: Record) -> int:
        """When a copy leaves: encoded, and its giver has heard that its boundary, told at once, is journalled."""
        giver = learner_of(left.process)
        copied = self._records[self._event_of[left.process, left.version]].time_ns + self.offsets[giver]
        return min(max(left.time_ns + self.offsets[giver], copied + 2 * self.delay_ns), sent.time_ns)


def _begins(r: Record) -> bool:
    return r.kind == Kind.RESTORED or (r.kind == Kind.STATE_ADOPTED and r.reason == "initial")
