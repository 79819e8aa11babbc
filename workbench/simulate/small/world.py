"""The small world of the breadth-first search: what may happen next in a state, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.algorithms.schedule import offsets
from workbench.protocol.actions import Merge
from workbench.protocol.records import SUPERVISOR, Kind
from workbench.protocol.round_state import RoundState
from workbench.simulate.small import checks
from workbench.simulate.small.driver import Draft
from workbench.simulate.small.forms import NOW
from workbench.simulate.small.machines import Machines
from workbench.simulate.small.node import (
    DEAD,
    LEARNERS,
    NO_LINK,
    SYNCER_INDEX,
    JournalFacts,
    LifeFacts,
    Move,
    Node,
    Small,
    SyncerFacts,
)


class SmallWorld:
    """Transitions between nodes.

    Parameters
    ----------
    small : Small
        Which world.
    """

    def __init__(self, small: Small) -> None:
        self.small = small
        config = small.config()
        self.machines = Machines(config, offsets(config.fragments, config.period))
        self.fragments = config.fragments

    # facts

    def life(self, number: int) -> LifeFacts:
        """Facts of a learner's state."""
        return self.machines.once(("life facts", number), self._life_facts, number)

    def _life_facts(self, number: int) -> LifeFacts:
        life = self.machines.tables.lives.get(number)
        state = life.state
        return LifeFacts(state.connection, state.wake_at, life.step, state.n, tuple(state.base))

    def syncer(self, number: int) -> SyncerFacts:
        """Facts of a syncer's state."""
        return self.machines.once(("syncer facts", number), self._syncer_facts, number)

    def _syncer_facts(self, number: int) -> SyncerFacts:
        state = self.machines.tables.syncers.get(number)
        rounds = tuple(RoundState(r.state).name for r in state.rounds.values())
        return SyncerFacts(state.wake_at, state.merges, rounds, checks.journalled_view(state))

    def journal(self, number: int) -> JournalFacts:
        """Facts of a journal."""
        return self.machines.once(("journal facts", number), self._journal_facts, number)

    def _journal_facts(self, number: int) -> JournalFacts:
        state = self.machines.tables.journals.get(number).state
        exits = state.known_seq.get(SUPERVISOR, 0)
        return JournalFacts(exits, tuple(state.versions), checks.journalled_view(state))

    def batch_merges(self, batch: int) -> tuple[int, ...]:
        """Rounds that the records of a batch merge."""
        return self.machines.once(("merges", batch), self._batch_merges, batch)

    def _batch_merges(self, batch: int) -> tuple[int, ...]:
        return tuple(r.round for r in self.machines.tables.batches.get(batch) if r.kind == Kind.MERGED)

    def order(self, number: int) -> Merge:
        """A merge order, not to be changed."""
        return self.machines.once(("order", number), self.machines.tables.orders.get, number)

    def story(self, node: Node) -> str:
        """Where a node stands, in words."""
        rounds, members = "the syncer is down", ""
        if node.syncer != DEAD:
            state = self.machines.tables.syncers.get(node.syncer)
            rounds = f"rounds {[(r.t, r.p, RoundState(r.state).name, sorted(r.here)) for r in state.rounds.values()]}"
            members = f", members {[(m.learner, m.connected, m.g, m.base, m.c_steps) for m in state.members.values()]}"
        lives = [self.life(life) if life != DEAD else "down" for life in node.lives]
        return f"{rounds}{members}, learners {lives}, queues {[code for code, _ in node.queues]}, news {node.news}"

    # what may happen

    def first(self) -> Node:
        """The run begins: the syncer is up, the learners' processes are not yet."""
        small, zero = self.small, (0,) * LEARNERS
        node = Node(
            DEAD, (DEAD,) * LEARNERS, zero, self.machines.first_journal, (), zero, (NO_LINK,) * LEARNERS, (), (),
            (0,) * self.fragments, (), (0,) * (LEARNERS * self.fragments), small.crashes, small.losses, small.ticks,
        )  # fmt: skip
        draft = Draft(self, node)
        draft.syncer_does(self.machines.first_syncer())
        return draft.node()

    def moves(self, node: Node, bounded: bool = True) -> Iterator[Move]:
        """All that may happen next, faults last; ``bounded`` leaves out steps and times beyond the bounds."""
        up = node.syncer != DEAD
        for learner, life in enumerate(node.lives):
            if life == DEAD:
                yield ("start", learner)
                continue
            facts = self.life(life)
            if facts.step and (not bounded or facts.n < self.small.steps):
                yield ("step", learner)
        if not up:
            yield ("start", SYNCER_INDEX)
        for code, _ in node.queues:
            yield ("deliver", code)
        if node.work:
            yield (node.work[0], 0)
        yield from self._news(node)
        deadline, who = self.deadline(node)
        if deadline <= NOW or node.ticks > 0 or not bounded:
            for process in who:
                yield ("wake", process)
        yield from self._faults(node)

    def _news(self, node: Node) -> Iterator[Move]:
        exits = min((news[1] for news in node.news if news[0] == "exited"), default=0)
        for news in node.news:
            if news[0] != "exited":
                yield (news[0], news[1])
            elif news[1] == exits and node.syncer != DEAD:
                yield ("exited", exits)

    def _faults(self, node: Node) -> Iterator[Move]:
        if node.losses:
            for code, _ in node.queues:
                yield ("lose", code)
        if node.crashes:
            for learner, life in enumerate(node.lives):
                if life != DEAD:
                    yield ("kill", learner)
            if node.syncer != DEAD:
                yield ("kill", SYNCER_INDEX)

    def deadline(self, node: Node) -> tuple[int, list[int]]:
        """The earliest time at which a machine wants to be woken, and which do."""
        wakes = {i: self.life(life).wake_at for i, life in enumerate(node.lives) if life != DEAD}
        if node.syncer != DEAD:
            wakes[SYNCER_INDEX] = self.syncer(node.syncer).wake_at
        wakes = {who: at for who, at in wakes.items() if at >= 0}
        earliest = min(wakes.values(), default=-1)
        return earliest, [who for who, at in wakes.items() if at == earliest]

    def after(self, node: Node, move: Move) -> Node:
        """The state after a move; raises `Broken` if an invariant does not hold in it, or broke on the way."""
        draft = Draft(self, node)
        getattr(draft, "move_" + move[0])(move[1])
        made = draft.node()
        self._check(node, made)
        return made

    def _check(self, before: Node, node: Node) -> None:
        if node.lives != before.lives or node.committed != before.committed:
            for learner, life in enumerate(node.lives):
                if life != DEAD:
                    self._check_bases(before, node, learner)
        if node.syncer != DEAD and (node.syncer != before.syncer or node.journal != before.journal):
            self.machines.once(("agrees", node.syncer, node.journal), self._agrees, node.syncer, node.journal)

    def _check_bases(self, before: Node, node: Node, learner: int) -> None:
        base = self.life(node.lives[learner]).base
        checks.need(all(map(int.__le__, base, node.committed)), "9: base above version", learner, base, node.committed)
        if before.processes[learner] == node.processes[learner] and before.lives[learner] != DEAD:
            was = self.life(before.lives[learner]).base
            checks.need(all(map(int.__ge__, base, was)), "9: base falls", learner, was, base)

    def _agrees(self, syncer: int, journal: int) -> bool:
        checks.journal_agrees(self.syncer(syncer).view, self.journal(journal).view)
        return True
