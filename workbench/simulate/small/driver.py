"""What a move does to a state: the driver of the small world.

It does what `workbench.simulate.world` does, with delays left open: every queue is first in, first out, and its head
may arrive at any moment.  It owns no protocol logic.  Left out are records of the supervisor that no machine acts on,
and messages to a connection that its learner has given up (it ignores them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.protocol.acting import TO_LEARNER, TO_SYNCER
from workbench.simulate.small import checks
from workbench.simulate.small.forms import NOW
from workbench.simulate.small.node import DEAD, LEARNERS, NO_LINK, SYNCER_INDEX, Node
from workbench.simulate.small.tables import Outcome

if TYPE_CHECKING:
    from workbench.simulate.small.world import SmallWorld


class Draft:
    """A node while a move changes it."""

    def __init__(self, world: SmallWorld, node: Node) -> None:
        self.world = world
        self.machines = world.machines
        self.syncer = node.syncer
        self.lives = list(node.lives)
        self.processes = list(node.processes)
        self.journal = node.journal
        self.queues = dict(node.queues)
        self.opened = list(node.opened)
        self.links = list(node.links)
        self.news = set(node.news)
        self.work = node.work
        self.committed = list(node.committed)
        self.pulled = set(node.pulled)
        self.merged = list(node.merged)
        self.crashes = node.crashes
        self.losses = node.losses
        self.ticks = node.ticks

    def node(self) -> Node:
        """The node as it is now."""
        return Node(
            self.syncer, tuple(self.lives), tuple(self.processes), self.journal, tuple(sorted(self.queues.items())),
            tuple(self.opened), tuple(self.links), tuple(sorted(self.news)), self.work, tuple(self.committed),
            tuple(sorted(self.pulled)), tuple(self.merged), self.crashes, self.losses, self.ticks,
        )  # fmt: skip

    # moves

    def move_step(self, learner: int) -> None:
        """A learner's step ends."""
        self.learner_takes(learner, ("step",))

    def move_deliver(self, code: int) -> None:
        """The head of a queue arrives."""
        message, connection = self._pop(code), code // 4
        if code // 2 % 2 == TO_SYNCER:
            self.syncer_takes(("got", connection, message))
        else:
            self.learner_takes(connection % LEARNERS, ("got", connection, message))

    def move_lose(self, code: int) -> None:
        """The head of a queue is lost."""
        self._pop(code)
        self.losses -= 1

    def move_connected(self, number: int) -> None:
        """A learner reaches the syncer."""
        self.news.discard(("connected", number))
        self.learner_takes(number % LEARNERS, ("connected", number))

    def move_closed_up(self, number: int) -> None:
        """The syncer hears that a connection is gone."""
        self.news.discard(("closed_up", number))
        self.syncer_takes(("closed", number))

    def move_closed_down(self, number: int) -> None:
        """A learner hears that its connection is gone."""
        self.news.discard(("closed_down", number))
        self.learner_takes(number % LEARNERS, ("closed", number))

    def move_exited(self, seq: int) -> None:
        """The supervisor's record of an exit comes."""
        news = next(n for n in self.news if n[0] == "exited" and n[1] == seq)
        self.news.discard(news)
        self.syncer_takes(news)

    def move_merge(self, _: int) -> None:
        """The merge in progress is through."""
        self.syncer_takes(("merged", self.work[1]))

    def move_commit(self, _: int) -> None:
        """The commit in progress is through: its slot is the current one."""
        _, t, p, version = self.work
        self.work = ()
        checks.need(self.committed[p] == version - 1, "1: slots skip a version", p, self.committed, version)
        self.committed[p] = version
        self.syncer_takes(("committed", t, p, version))

    def move_wake(self, process: int) -> None:
        """Time passes to the next deadline, which is that of ``process``."""
        facts = self.world.syncer(self.syncer) if process == SYNCER_INDEX else self.world.life(self.lives[process])
        if facts.wake_at > NOW:
            self.ticks -= 1
            self.pass_time(facts.wake_at - NOW)
        if process == SYNCER_INDEX:
            self.syncer_takes(("woken",))
        else:
            self.learner_takes(process, ("woken",))

    def pass_time(self, passed_ns: int) -> None:
        """Move all times of all machines."""
        if self.syncer != DEAD:
            self.syncer = self.machines.syncer(self.syncer, ("age", passed_ns)).number
        for learner, life in enumerate(self.lives):
            if life != DEAD:
                self.lives[learner] = self.machines.learner(life, ("age", passed_ns)).number

    def move_start(self, process: int) -> None:
        """A process starts."""
        if process == SYNCER_INDEX:
            self.committed = list(self.world.journal(self.journal).versions)
            self.syncer_does(self.machines.restarted_syncer(self.journal))
            return
        self.processes[process] += 1
        self.learner_does(process, self.machines.first_life(process, self.processes[process]))

    def move_kill(self, process: int) -> None:
        """SIGKILL of a process; its connections close."""
        self.crashes -= 1
        if process == SYNCER_INDEX:
            self._kill_syncer()
            return
        connection = self.world.life(self.lives[process]).connection
        if connection != NO_LINK and self.syncer != DEAD:
            self.news.add(("closed_up", connection))
        waiting = sum(news[0] == "exited" for news in self.news)
        seq = self.world.journal(self.journal).exits + waiting + 1
        self.news.add(("exited", seq, process, self.processes[process]))
        self.lives[process] = DEAD
        self._give_up_link(process)

    def _kill_syncer(self) -> None:
        self.syncer = DEAD
        self.work = ()
        self.news = {news for news in self.news if news[0] not in ("closed_up", "connected")}
        for learner, link in enumerate(self.links):
            life = self.lives[learner]
            if link != NO_LINK and life != DEAD and self.world.life(life).connection == link:
                self.news.add(("closed_down", link))
            self.links[learner] = NO_LINK

    # processes take inputs and act

    def learner_takes(self, learner: int, event: tuple[Any, ...]) -> None:
        """An input for a learner."""
        self.learner_does(learner, self.machines.learner(self.lives[learner], event))

    def learner_does(self, learner: int, outcome: Outcome) -> None:
        """What a learner did."""
        self.lives[learner] = outcome.number
        for effect in outcome.effects:
            if effect[0] == "connect":
                self._give_up_link(learner)
                if self.syncer != DEAD:
                    number = learner + LEARNERS * self.opened[learner]
                    self.opened[learner] += 1
                    self.links[learner] = number
                    self.news.add(("connected", number))
            elif effect[1] != NO_LINK and effect[1] == self.links[learner]:
                self._push(effect[1] * 4 + TO_SYNCER * 2 + effect[2], effect[3])
        connection = self.world.life(outcome.number).connection
        self._forget_down(learner, connection)

    def _give_up_link(self, learner: int) -> None:
        self.links[learner] = NO_LINK
        self.news = {n for n in self.news if n[0] not in ("connected", "closed_down") or n[1] % LEARNERS != learner}
        self._forget_down(learner, NO_LINK)

    def _forget_down(self, learner: int, connection: int) -> None:
        """Messages to a connection that the learner does not hold would be ignored."""
        for code in [c for c in self.queues if c // 2 % 2 == TO_LEARNER and c // 4 % LEARNERS == learner]:
            if code // 4 != connection:
                del self.queues[code]

    def syncer_takes(self, event: tuple[Any, ...]) -> None:
        """An input for the syncer; a dead one takes none."""
        if self.syncer != DEAD:
            self.syncer_does(self.machines.syncer(self.syncer, event))

    def syncer_does(self, outcome: Outcome) -> None:
        """What the syncer did, in order."""
        self.syncer = outcome.number
        for effect in outcome.effects:
            getattr(self, "_does_" + effect[0])(*effect[1:])

    def _does_append(self, batch: int) -> None:
        for t in self.world.batch_merges(batch):
            self._note_merge(t)
        self.journal = self.machines.append(self.journal, batch)

    def _note_merge(self, t: int) -> None:
        """A merge is in the journal: its steps are merged, each for the first time."""
        checks.need(self.work[:1] == ("merge",), "6: a merge is journalled that was not computed", t, self.work)
        order = self.world.order(self.work[1])
        checks.need(order.round == t, "6: another merge is journalled than was computed", t, order)
        for handle in order.handles:
            work = self.machines.tables.works[handle]
            place = work.learner * self.world.fragments + work.fragment
            steps = sum(1 << n for n in work.steps)
            checks.need(not self.merged[place] & steps, "2: a step is merged twice", work, bin(self.merged[place]))
            checks.need((t, work.learner) in self.pulled, "3: merged without having been pulled", t, work)
            self.merged[place] |= steps
        self.pulled = {(other, learner) for other, learner in self.pulled if other != t}
        self.work = ()

    def _does_send(self, connection: int, channel: int, message: int, kind: str, first: int, second: int) -> None:
        learner = connection % LEARNERS
        if kind == "Update":
            checks.need(second <= self.committed[first], "5: UPDATE before its commit", first, second, self.committed)
        elif kind == "Pull":
            self.pulled.add((first, learner))
        if connection != NO_LINK and connection == self.links[learner]:
            self._push(connection * 4 + TO_LEARNER * 2 + channel, message)

    def _does_merge(self, order: int) -> None:
        checks.need(not self.work, "4: two merges at once", self.work)
        found = self.world.order(order)
        checks.merge_ordered(self.world.small.quorum, tuple(self.committed), found, self.machines.tables.works)
        self.work = ("merge", order)

    def _does_commit(self, t: int, p: int, version: int) -> None:
        journalled = self.world.journal(self.journal).versions[p]
        checks.need(journalled == version, "6: commit without its record in the journal", p, version, journalled)
        self.work = ("commit", t, p, version)

    # queues

    def _push(self, code: int, message: int) -> None:
        self.queues[code] = (*self.queues.get(code, ()), message)

    def _pop(self, code: int) -> int:
        head, *rest = self.queues.pop(code)
        if rest:
            self.queues[code] = tuple(rest)
        return head
