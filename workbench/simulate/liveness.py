"""Liveness of the protocol (PROTOCOL section 15): merges within the bound B, learners merged within 2 H rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.protocol import admission
from workbench.protocol.member_state import Member
from workbench.protocol.records import Record
from workbench.protocol.round_state import RoundState
from workbench.protocol.settings import SECOND
from workbench.protocol.syncer_state import SyncerState

if TYPE_CHECKING:
    from workbench.simulate.world import World


class LivenessBroken(AssertionError):
    """Something that had to happen did not; the message says what and for how long."""


def bound_ns(state: SyncerState, now: int) -> int:
    """B = (ceil(H / P) + tau + 2) x s_K + grace cap + pull limit + 0.5 s, from the steps known now.

    s_K is the slowest of the K fastest clean learners' longest recent step.
    """
    fixed, policy = state.fixed, state.book.policy
    longest = sorted(max(m.recent) for m in state.members.values() if m.connected and m.healed and m.recent)
    if len(longest) < policy.quorum:
        return 2**62
    step = longest[policy.quorum - 1]
    if policy.grace == "all":
        return 2**62
    cap = {"none": 0.0, "fixed": policy.grace_s * SECOND}.get(policy.grace, policy.grace_cap_steps * longest[-1])
    rounds = -(-fixed.period // fixed.fragments) + fixed.overlap + 2
    return int(rounds * step + cap + admission.pull_limit_ns(state, list(state.members.values())) + SECOND // 2)


class Liveness:
    """Follows how long the syncer has had all that a merge needs."""

    def __init__(self, bound: bool) -> None:
        self.bound = bound
        self.since = -1
        self.limit = 0
        self.longest = 0.0
        self.rounds_since: dict[int, int] = {}
        self.merges = 0

    def merged(self, world: World, record: Record) -> None:
        """A merge was journalled."""
        self.since = -1
        self.merges += 1
        included = set(record.detail["learners"])
        for learner in world.learners:
            self.rounds_since[learner] = 0 if learner in included else self.rounds_since.get(learner, 0) + 1

    def look(self, world: World) -> None:
        """Start, stop or read the clock of the present gap."""
        if not self.bound:
            return
        syncer = world.syncer
        if not syncer.alive or syncer.stops or not syncer.started or syncer.machine.state.ending:
            self.since = -1
            return
        state = syncer.machine.state
        if not state.rounds or not self._enough(world, state):
            self.since = -1
            return
        if self.since < 0:
            self.since = world.now
            self.limit = bound_ns(state, world.now)
        elif world.now - self.since > self.limit:
            rounds = [(r.t, r.p, RoundState(r.state).name) for r in state.rounds.values()]
            raise LivenessBroken(
                f"no merge for {(world.now - self.since) / 1e9:.3f} s with K clean learners far enough; "
                f"B = {self.limit / 1e9:.3f} s; rounds {rounds}"
            )
        else:
            self.longest = max(self.longest, (world.now - self.since) / self.limit)

    @staticmethod
    def _enough(world: World, state: SyncerState) -> bool:
        oldest = min(state.rounds.values(), key=lambda r: r.t)
        ready = 0
        for member in state.members.values():
            ready += _truly_clean(world, state, member, oldest.p) and member.g >= oldest.t - 1
        return ready >= state.book.policy.quorum


def _truly_clean(world: World, state: SyncerState, member: Member, p: int) -> bool:
    """Clean for the syncer, and its process really runs."""
    process = world.learners[member.learner]
    return (
        process.alive
        and not process.stops
        and process.number == member.process_number
        and admission.is_clean(state, member, p, world.now)
    )
