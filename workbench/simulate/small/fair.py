"""Fair runs of the small world: everything that can happen does, in turn, and no fault strikes any more."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.protocol.settings import SECOND
from workbench.simulate.small.driver import Draft
from workbench.simulate.small.forms import NOW
from workbench.simulate.small.node import LEARNERS, Move, Node
from workbench.simulate.small.world import SmallWorld

STEP_NS = SECOND // 10
"""A fair run lets every learner end a step each so often."""
PATIENCE_S = 15.0
"""Time that a fair run gets: a PULL that was lost is noticed after two heartbeat limits, 4 s."""
MOVES_AT_ONCE_MAX = 1_000
"""Moves within one instant after which a run counts as one that never comes to rest."""
_CHOSEN = ("step", "wake", "kill", "lose")


class Stuck(AssertionError):
    """A fair run in which some fragment is not merged any more, or which never comes to rest."""


class FairRun:
    """Runs on from nodes; what was seen to go on is not run again.

    Parameters
    ----------
    world : SmallWorld
        The world; its bounds do not hold here.
    """

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        self._goes_on: set[int] = set()

    def run(self, node: Node) -> None:
        """Run on until every fragment has been merged anew.

        Raises
        ------
        Stuck
            If that takes longer than `PATIENCE_S`.
        """
        node = node._replace(crashes=0, losses=0, ticks=0)
        passed: list[Node] = []
        for _ in range(int(PATIENCE_S * SECOND) // STEP_NS):
            node = self.settle(node)
            if hash(node) in self._goes_on or (passed and self._went_on(passed[0], node)):
                break
            passed.append(node)
            node = self._pass(self._steps(node), STEP_NS)
        else:
            raise Stuck(f"some fragment is not merged within {PATIENCE_S:g} s: {self.world.story(node)}")
        known = hash(node) in self._goes_on
        self._goes_on.update(hash(earlier) for earlier in passed if known or self._went_on(earlier, node))

    def _went_on(self, before: Node, now: Node) -> bool:
        """Whether every fragment was merged (of every learner is not promised with K = 1 and H = 2: section 15)."""
        return all(map(int.__lt__, before.committed, now.committed))

    def settle(self, node: Node, moves: list[Move] | None = None) -> Node:
        """Let everything happen that needs neither time nor a step."""
        for _ in range(MOVES_AT_ONCE_MAX):
            move = self._at_once(node)
            if move is None:
                return node
            if moves is not None:
                moves.append(move)
            node = self.world.after(node, move)
        raise Stuck(f"{MOVES_AT_ONCE_MAX} moves in one instant: {self.world.story(node)}")

    def _at_once(self, node: Node) -> Move | None:
        for move in self.world.moves(node, bounded=False):
            if move[0] not in _CHOSEN:
                return move
        deadline, who = self.world.deadline(node)
        return ("wake", who[0]) if who and deadline <= NOW else None

    def _steps(self, node: Node) -> Node:
        """End the step of every learner that makes one."""
        for learner in range(LEARNERS):
            if ("step", learner) in self.world.moves(node, bounded=False):
                node = self.world.after(node, ("step", learner))
        return self.settle(node)

    def _pass(self, node: Node, left_ns: int) -> Node:
        """Let time pass, with every deadline on the way."""
        while True:
            deadline, who = self.world.deadline(node)
            if not who or deadline - NOW > left_ns:
                break
            left_ns -= max(deadline - NOW, 0)
            node = self.settle(self.world.after(node, ("wake", who[0]))._replace(ticks=0))
        draft = Draft(self.world, node)
        draft.pass_time(left_ns)
        return draft.node()

    def open(self, node: Node, steps: Sequence[int], moves: list[Move]) -> Node:
        """All in one instant, processes start, then these learners end a step, one after the other; lists the moves."""
        node = self.settle(node, moves)
        for learner in steps:
            moves.append(("step", learner))
            node = self.settle(self.world.after(node, moves[-1]), moves)
        return node
