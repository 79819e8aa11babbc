"""One small world searched breadth first: every order of deliveries, steps and deadlines, with a crash and a loss.

M = 2, P = 2, H = 2, one round in flight, K = 1 and K = 2.  From a root, each thing that may happen next is tried in
each state: a head of a queue arrives or is lost, a step, merge or commit ends, time passes to the next deadline, a
process is killed or starts.  The invariants of PROTOCOL section 15 are checked in every state and on every move.
States are remembered as 64-bit hashes.  From states in which, faults apart, only time can go on, and from a sample of
the others, a fair run without further faults has to merge every fragment again.

A path is one line of text, and `replay` runs it again:

>>> replay("quorum=1 | start:0 connected:0 deliver:0.0.up.control").node.processes
(1, 0)
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.protocol.acting import TO_LEARNER
from workbench.simulate.small.fair import FairRun
from workbench.simulate.small.node import DEAD, SYNCER_INDEX, Move, Node, Small
from workbench.simulate.small.paths import FAIR, move_text, parse_moves, parse_path, path_text
from workbench.simulate.small.world import SmallWorld

SAMPLE_EVERY = 499
"""Of the states found, each so many-th is the start of a fair run."""
_FAULTS = ("kill", "lose")
_OUT_OF_TURN = ("kill", "lose", "wake")


class Violation(AssertionError):
    """An invariant is broken, or a fair run does not merge; the message ends with the path that leads there."""

    def __init__(self, error: Exception, path: str) -> None:
        what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        super().__init__(f"{what}\n  replay: {path}")
        self.what = what
        self.path = path


class Root(NamedTuple):
    """Where a search begins.

    Attributes
    ----------
    small : Small
        Which world, and its bounds.
    steps : tuple of int
        Learners whose steps end one after the other, with everything that follows at once; empty: both have joined.
    then : str
        Moves after that, in words; they count against the faults of the world.
    started : bool
        False: the search begins with no learner process, and the two above are left out.
    """

    small: Small
    steps: tuple[int, ...] = ()
    then: str = ""
    started: bool = True

    def reach(self, world: SmallWorld) -> tuple[Node, list[Move]]:
        """Play from the beginning of a run to the root: its state, and the moves; raises `Violation` on the way."""
        node = world.first()
        moves: list[Move] = []
        try:
            if self.started:
                node = FairRun(world).open(node, self.steps, moves)
            for move in parse_moves(self.then):
                moves.append(move)
                node = world.after(node, move)
        except Exception as error:
            raise Violation(error, path_text(self.small, moves)) from error
        return node, moves


SYNCER_RESTARTED = "kill:syncer start:syncer closed_down:0 closed_down:1 wake:0 wake:1 wake:syncer"
"""The syncer is back, and both learners are about to connect again."""

DEFAULT = (
    Root(Small(quorum=1, steps=0), started=False),
    Root(Small(quorum=1, crashes=0, ticks=1, merges=4), (0, 0, 0, 1, 1, 0)),
    Root(Small(quorum=1, merges=4), (0, 0, 0, 1, 1, 0)),
    Root(Small(quorum=2), (0, 1, 0, 1)),
    Root(Small(quorum=2, ticks=1), (0, 1, 0, 1), SYNCER_RESTARTED),
    Root(Small(quorum=2, lead=0), (0, 1)),
)
"""Joining; a round in GRACE that waits for the slower learner, with and without time; a round about to begin, also
after a restart of the syncer; lock-step."""

LARGE = (
    *DEFAULT,
    Root(Small(quorum=1, merges=4), (0, 0, 0, 1, 1)),
    Root(Small(quorum=1, losses=0, steps=1, merges=1), started=False),
    Root(Small(quorum=2, crashes=0, ticks=1), (0, 1, 0, 1)),
    Root(Small(quorum=2, losses=0, ticks=1), (0, 1, 0, 1)),
)
"""More than a million states."""


@dataclass
class Report:
    """What a search found.

    Attributes
    ----------
    states, transitions : int
        Distinct states, and moves tried from them.
    depth : int
        Moves from the root to the last states found.
    complete : bool
        Whether every state within the bounds was visited.
    fair_runs : int
        Fair runs made, each of which merged again.
    met : Counter of (fault, round state)
        From how many states a fault was tried, by the state of the round in flight.
    machine_states : tuple of int
        Distinct states of a syncer, of a learner process, and of a journal.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = True
    fair_runs: int = 0
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    machine_states: tuple[int, int, int] = (0, 0, 0)

    def __add__(self, other: Report) -> Report:
        mine, its = self.machine_states, other.machine_states
        return Report(
            self.states + other.states,
            self.transitions + other.transitions,
            max(self.depth, other.depth),
            self.complete and other.complete,
            self.fair_runs + other.fair_runs,
            self.met + other.met,
            (mine[0] + its[0], mine[1] + its[1], mine[2] + its[2]),
        )


class Search:
    """A breadth-first search from one root.

    Parameters
    ----------
    root : Root
        Where it begins, and its bounds.
    limit : int, optional
        Stop at so many states.
    """

    def __init__(self, root: Root, limit: int | None = None) -> None:
        self.root = root
        self.small = root.small
        self.limit = limit
        self.world = SmallWorld(root.small)
        self.fair = FairRun(self.world)
        self.report = Report()
        self._index: dict[int, int] = {}
        self._parents = array("l", [-1])
        self._moves: list[Move] = [("start", 0)]
        self._prefix: list[Move] = []

    def run(self) -> Report:
        """Search; raises `Violation` at the first broken invariant, machine or fair run."""
        node, self._prefix = self.root.reach(self.world)
        self._index[hash(node)] = 0
        layer = [(0, node)]
        while layer and self.report.complete:
            layer = self._next_layer(layer)
            self.report.depth += bool(layer)
        tables = self.world.machines.tables
        self.report.states = len(self._index)
        self.report.machine_states = (len(tables.syncers), len(tables.lives), len(tables.journals))
        return self.report

    def _next_layer(self, layer: list[tuple[int, Node]]) -> list[tuple[int, Node]]:
        following: list[tuple[int, Node]] = []
        for number, node in layer:
            if self.limit is not None and len(self._index) >= self.limit:
                self.report.complete = False
                return []
            quiet = True
            if not self._is_far_enough(node):
                for move in self.world.moves(node):
                    quiet = quiet and move[0] in _OUT_OF_TURN
                    self._try(number, node, move, following)
            if quiet or number % SAMPLE_EVERY == 0:
                self._run_on(number, node)
        return following

    def _is_far_enough(self, node: Node) -> bool:
        return node.syncer != DEAD and self.world.syncer(node.syncer).merges >= self.small.merges

    def _try(self, number: int, node: Node, move: Move, following: list[tuple[int, Node]]) -> None:
        self.report.transitions += 1
        if move[0] in _FAULTS and node.syncer != DEAD:
            self._meet(node, move)
        try:
            made = self.world.after(node, move)
        except Exception as error:
            raise Violation(error, self.path(number, move)) from error
        key = hash(made)
        if key not in self._index:
            self._index[key] = len(self._parents)
            following.append((len(self._parents), made))
            self._parents.append(number)
            self._moves.append(move)

    def _meet(self, node: Node, move: Move) -> None:
        if move[0] == "lose":
            fault = "lose down" if move[1] // 2 % 2 == TO_LEARNER else "lose up"
        else:
            fault = move[0] + (" syncer" if move[1] == SYNCER_INDEX else " learner")
        for state in self.world.syncer(node.syncer).rounds or ("none",):
            self.report.met[fault, state] += 1

    def _run_on(self, number: int, node: Node) -> None:
        self.report.fair_runs += 1
        try:
            self.fair.run(node)
        except Exception as error:
            raise Violation(error, self.path(number, FAIR)) from error

    def path(self, number: int, *more: Move) -> str:
        """The shortest path to a state, and what came then, as one line."""
        moves = list(reversed(more))
        while number > 0:
            moves.append(self._moves[number])
            number = self._parents[number]
        return path_text(self.small, [*self._prefix, *reversed(moves)])


def search(
    roots: Sequence[Root] = DEFAULT,
    limit: int | None = None,
    progress: Callable[[Root, Report], None] | None = None,
) -> Report:
    """Search from one root after the other; ``limit`` holds for each.

    Raises
    ------
    Violation
        At the first broken invariant, failure of a machine, or fair run that does not merge; it names the path.
    """
    total = Report()
    for root in roots:
        found = Search(root, limit).run()
        if progress is not None:
            progress(root, found)
        total += found
    return total


class Replayed(NamedTuple):
    """A path run again: the world, the state that it ended in, and that state in words."""

    world: SmallWorld
    node: Node
    story: str


def replay(path: str) -> Replayed:
    """Run a path again, move by move, a fair run at its end included.

    Raises
    ------
    Violation
        Where an invariant breaks.
    ValueError
        For a line that is no path, or a move that is not possible where it stands.
    """
    small, moves = parse_path(path)
    world = SmallWorld(small)
    node = world.first()
    for i, move in enumerate(moves):
        if move != FAIR and move not in world.moves(node, bounded=False):
            raise ValueError(f"move {i + 1}, {move_text(move)}, is not possible there: {world.story(node)}")
        try:
            if move == FAIR:
                FairRun(world).run(node)
            else:
                node = world.after(node, move)
        except Exception as error:
            raise Violation(error, path_text(small, moves[: i + 1])) from error
    return Replayed(world, node, world.story(node))
