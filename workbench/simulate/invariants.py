"""The protocol's invariants (PROTOCOL section 15), checked while a virtual run goes on.

`Watch` looks at every input, action and record.  It keeps its own idea of the truth (which records are
journalled, which rounds are open, which steps a learner's parameters hold) and trusts no counter of a machine.
"""

from __future__ import annotations

from typing import Any

from workbench.algorithms.weights import WEIGHTS
from workbench.protocol import actions as act
from workbench.protocol.messages import Fragment, Metadata, StateCopy, Update
from workbench.protocol.records import SYNCER, Kind, label_of, learner_of
from workbench.protocol.round_state import RoundState
from workbench.simulate.arithmetic import Held, Ledgered, Work
from workbench.simulate.journal_checks import JournalChecks, broken
from workbench.simulate.liveness import Liveness
from workbench.simulate.world import World


class Watch:
    """Observer that raises `InvariantBroken` at the event that breaks an invariant.

    Parameters
    ----------
    fragments, learners : int
        P and M.
    bound : bool
        Check the bound B on gaps between merges (schedules without lost messages).
    """

    def __init__(self, learners: int, fragments: int, bound: bool = False) -> None:
        self.fragments = fragments
        self.merged_steps: dict[tuple[int, int], set[int]] = {}
        self.bases: dict[int, tuple[int, list[int]]] = {}
        self.own_steps: dict[tuple[int, int], int] = {}
        self.touched: set[int] = set()
        self.merged_by: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {}
        self.snapshots: dict[int, tuple[list[int], dict[int, int]]] = {}
        self.journal = JournalChecks(learners, fragments)
        self.liveness = Liveness(bound)

    # the three hooks

    def on_input(self, world: World, process: int, event: Any) -> None:
        """Remember whose state may change."""
        self.touched.add(process)

    def on_action(self, world: World, process: int, action: act.Action) -> None:
        """Check an action before it is done."""
        kind = type(action)
        if kind is act.Append:
            for record in action.records:  # type: ignore[union-attr]
                self.journal.take(world, record)
                if record.kind == Kind.MERGED:
                    self.liveness.merged(world, record)
                elif record.kind == Kind.SYNCER_STARTED and record.reason == "resume":
                    self._resumed(record)
        elif kind is act.Send:
            if process == SYNCER:
                self._syncer_sends(world, action.message)  # type: ignore[union-attr]
            else:
                self._learner_sends(world, process, action.message)  # type: ignore[union-attr]
        elif kind is act.Merge:
            self._merges(world, action)  # type: ignore[arg-type]
        elif kind is act.Commit:
            if self.journal.versions[action.fragment] != action.version:  # type: ignore[union-attr]
                broken("6: commit without its record in the journal", action)
        elif kind is act.Capture:
            self._captures(world, process, action)  # type: ignore[arg-type]
        elif kind is act.Adopt:
            self._adopts(world, process, action)  # type: ignore[arg-type]
        elif kind is act.TakeSnapshot:
            self._snapshot_begins(world, action)  # type: ignore[arg-type]
        elif kind is act.KeepPart:
            self._part_comes(world, action)  # type: ignore[arg-type]
        elif kind is act.StartStep:
            self._starts(world, process, action)  # type: ignore[arg-type]

    def after_event(self, world: World) -> None:
        """Check the states of the processes that took an input."""
        if not self.touched:
            return
        touched, self.touched = self.touched, set()
        for process in touched:
            if process != SYNCER:
                learner = world.learners[learner_of(process)]
                if learner.alive and learner.started:
                    self._bases_rise(learner.learner, learner.number, learner.machine.state)
        if SYNCER in touched:
            self._syncer_state(world)
        if SYNCER in touched or world.syncer.stops or not world.syncer.alive:  # its own stop is no gap
            self.liveness.look(world)

    def _syncer_state(self, world: World) -> None:
        syncer = world.syncer
        if syncer.alive and syncer.started:
            state = syncer.machine.state
            fragments = [r.p for r in state.rounds.values()]
            if len(fragments) > state.fixed.in_flight_max or len(set(fragments)) != len(fragments):
                broken("4: rounds in flight", [(r.t, r.p) for r in state.rounds.values()])
            unmerged = {t for t, r in state.rounds.items() if r.state != RoundState.COMMITTING}
            if unmerged != set(self.journal.open):
                broken("rounds of the machine and of the journal differ", (sorted(unmerged), sorted(self.journal.open)))
            for member in state.members.values():
                if len(member.pending) > self.fragments:
                    broken("10: updates that wait", member.pending)

    # the syncer

    def _syncer_sends(self, world: World, message: Any) -> None:
        for process, seq in enumerate(message.clock):
            if seq > self.journal.seqs.get(process, 0):
                broken("6: an effect before its record", (type(message).__name__, label_of(process), seq))
        if type(message) is Update and message.version > self.journal.committed[message.fragment]:
            broken("5: UPDATE before its commit", (message.fragment, message.version))

    def _merges(self, world: World, order: act.Merge) -> None:
        state = world.syncer.machine.state
        round_ = state.rounds[order.round]
        if order.learners != sorted(set(order.learners)):
            broken("2: a learner twice in a merge", order.learners)
        if len(round_.here) + len(round_.guarded) < state.book.policy.quorum:
            broken("a merge of fewer than K", order.learners)
        expected = self.journal.opened_at[order.round]
        if any(
            order.settings[key] != getattr(expected, key) for key in ("merge", "outer", "outer_rate", "outer_momentum")
        ):
            broken("14: arithmetic of another revision than at OPEN", order.settings)
        self.journal.merging.add(order.round)
        for learner, handle, weight in zip(order.learners, order.handles, order.weights, strict=True):
            self._contribution(world, order, learner, handle, weight)

    def _contribution(self, world: World, order: act.Merge, learner: int, handle: int, weight: float) -> None:
        arithmetic = world.arithmetic
        assert isinstance(arithmetic, Ledgered)
        work = arithmetic.payloads[handle]
        assert isinstance(work, Work)
        counted = world.syncer.machine.state.rounds[order.round].here[learner]
        if work.learner != learner or work.fragment != order.fragment or work.foreign:
            broken("2: another learner's work", work)
        if learner not in self.journal.ever_pulled.get(order.round, ()):
            broken("3: merged without having been admitted", (order.round, learner))
        if not work.finite or not work.steps or counted.steps != len(work.steps) or counted.step != work.steps[-1]:
            broken("3: what is merged is not what was counted", (work, counted.steps, counted.step))
        behind = self.journal.versions[order.fragment] - work.base_version
        allowed = 0 if world.fixed.anchor == "current" else world.fixed.anchors_kept
        if not 0 <= behind <= allowed or order.version != self.journal.versions[order.fragment] + 1:
            broken("3: rests on another version", (work.base_version, self.journal.versions[order.fragment]))
        if self.journal.steps.get(learner, 0) < work.steps[-1]:
            broken("6: the sender's records are not complete", (learner, work.steps[-1]))
        rule = WEIGHTS[self.journal.opened_at[order.round].weights]
        if weight != rule(counted.steps, counted.tokens, behind):
            broken("weight is not that of the rule", (learner, weight))
        seen = self.merged_steps.setdefault((learner, order.fragment), set())
        if not seen.isdisjoint(work.steps):
            broken("2: a step is merged twice", (learner, order.fragment, sorted(seen & set(work.steps))))
        world.at(world.now + 1, self._note_merged, (world, order, learner, work.steps))

    def _note_merged(self, world: World, order: act.Merge, learner: int, steps: tuple[int, ...]) -> None:
        """Steps count as merged when their merge is in the journal."""
        if (order.round, learner) in self.journal.refused:
            return
        if self.journal.versions[order.fragment] >= order.version:
            self.merged_steps[learner, order.fragment].update(steps)
            self.merged_by.setdefault((learner, order.fragment), []).append((order.version, steps))
        elif order.round in self.journal.open and order.round in self.journal.merging and world.syncer.alive:
            world.at(world.now + 1_000_000, self._note_merged, (world, order, learner, steps))

    # snapshots, and what follows from them

    def _snapshot_begins(self, world: World, order: act.TakeSnapshot) -> None:
        arithmetic = world.arithmetic
        assert isinstance(arithmetic, Ledgered)
        if order.versions != arithmetic.versions:
            broken("12: a snapshot of other versions than the slots hold", (order.versions, arithmetic.versions))
        inside = {
            learner: max(
                (steps[-1] for (m, _), held in self.merged_by.items() if m == learner for _, steps in held), default=0
            )
            for learner in world.learners
        }
        self.snapshots[order.snapshot] = (list(order.versions), inside)

    def _part_comes(self, world: World, order: act.KeepPart) -> None:
        """Section 13's check, on what the learner's parameters hold rather than on what it counts."""
        held = world.arithmetic.payloads[order.handle]  # type: ignore[attr-defined]
        assert isinstance(held, Held)
        versions, inside = self.snapshots[order.snapshot]
        if held.learner != order.learner:
            broken("12: another learner's part", (order.learner, held.learner))
        if any(base > version for base, version in zip(held.base, versions, strict=True)):
            broken("12: a snapshot with a base above its version", (order.learner, held.base, versions))
        part = world.syncer.machine.state.snapshot.parts[order.learner]
        if inside.get(order.learner, 0) > part.step:
            broken("12: Theta holds work captured after the stored step", (order.learner, inside, part.step))

    def _adopts(self, world: World, process: int, order: act.Adopt) -> None:
        if order.source != "peer":
            return
        base = world.arithmetic.base[learner_of(process)]  # type: ignore[attr-defined]
        over = [p for p in order.fragments if base[p] >= 0]
        if over:
            broken("11 (section): a peer's parameters over fragments that the syncer has sent", (process, over, base))

    def _resumed(self, record: Any) -> None:
        """Everybody is another process; what was merged behind a cut was not."""
        self.bases = {}
        self.own_steps = {}
        cut = record.detail.get("cut")
        if not cut:
            return
        for (_, p), held in self.merged_by.items():
            held[:] = [(version, steps) for version, steps in held if version <= cut["versions"][p]]
        self.merged_steps = {key: {n for _, steps in held for n in steps} for key, held in self.merged_by.items()}

    # learners

    def _learner_sends(self, world: World, process: int, message: Any) -> None:
        learner = learner_of(process)
        if type(message) is StateCopy:
            self._copy_leaves(world, process, message)
        work = world.arithmetic.work.get(learner)  # type: ignore[attr-defined]
        if type(message) is Metadata and work is not None:
            for p, steps in enumerate(work):
                if message.c_steps[p] != len(steps):
                    broken("counters differ from the work since the last fold", (learner, p, message.c_steps[p], steps))
        elif type(message) is Fragment:
            payload = world.arithmetic.payloads[message.handle]  # type: ignore[attr-defined]
            if message.steps != len(payload.steps) or message.base_version != payload.base_version:
                broken("counters captured with another copy", (learner, message.steps, payload))

    def _copy_leaves(self, world: World, process: int, message: StateCopy) -> None:
        """A state leaves when its boundary is in the journal, and not before the stamp."""
        if self.journal.seqs.get(process, 0) < message.copied:
            broken("6: a state before the records of its boundary", (label_of(process), message.copied))
        stamp = self.journal.stamps.get(message.number, [])
        held = world.arithmetic.payloads[message.handle]  # type: ignore[attr-defined]
        if not message.snapshot and any(base < least for base, least in zip(held.base, stamp, strict=True)):
            broken("11 (section): a peer's state from before the stamp", (label_of(process), held.base, stamp))

    def _captures(self, world: World, process: int, order: act.Capture) -> None:
        state = world.learners[learner_of(process)].machine.state
        p = order.fragment
        if p in state.inbox:
            broken("3: captured while an UPDATE lies unfolded", (learner_of(process), p))
        if not world.arithmetic.host[learner_of(process)][p]:  # type: ignore[attr-defined]
            broken("3: captured without a step", (learner_of(process), p))

    def _starts(self, world: World, process: int, order: act.StartStep) -> None:
        learner = learner_of(process)
        key = (learner, world.learners[learner].number)
        if order.step != self.own_steps.get(key, order.step - 1) + 1:
            broken("8: own step repeated or left out", (key, self.own_steps.get(key), order.step))
        self.own_steps[key] = order.step

    def _bases_rise(self, learner: int, number: int, state: Any) -> None:
        known = self.bases.get(learner)
        if known is None or known[0] != number or known[1] != state.base:
            before = known[1] if known is not None and known[0] == number else state.base
            if any(new < old for new, old in zip(state.base, before, strict=True)):
                broken("9: base falls", (learner, before, state.base))
            if any(base > version for base, version in zip(state.base, self.journal.committed, strict=True)):
                broken("9: base above version", (learner, state.base, self.journal.committed))
            self.bases[learner] = (number, list(state.base))
        if len(state.inbox) > self.fragments:
            broken("10: inbox", (learner, len(state.inbox)))
        if (state.has_state or state.restored >= 0) and self.journal.healed.get(learner, (-1, 0))[0] != number:
            self.journal.healed[learner] = (number, 0)
        if self.journal.healed.get(learner) == (number, 0) and min(state.base) >= 0:
            self.journal.healed[learner] = (number, state.n + 1)
