"""Learners that are kept out of the merges: by somebody, or since they poisoned too often (DESIGN section 5)."""

from __future__ import annotations

from workbench.protocol import quorum
from workbench.protocol.events import QuarantineAsked
from workbench.protocol.member_state import Member
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.syncer_core import SyncerCore

GUARD = "guard"
"""Who asks for a quarantine that nobody asked for."""


def judge(core: SyncerCore, member: Member, reason: str) -> None:
    """A contribution was refused for what it holds: enough of that in a row is a quarantine."""
    limit = core.state.book.policy.quarantine_after
    if limit and member.poisonings >= limit and not member.quarantined:
        _set(core, member, True, GUARD, f"{member.poisonings} contributions in a row refused, the last as {reason}")


def asked(core: SyncerCore, event: QuarantineAsked) -> None:
    """Keep a learner out of the merges, or let it in again."""
    member, label = core.state.members.get(event.learner), label_of(process_of(event.learner))
    why_not = ""
    if member is None:
        why_not = f"{label} has not joined; nothing to quarantine"
    elif member.quarantined == event.quarantined:
        why_not = f"{label} is quarantined already" if event.quarantined else f"{label} is not quarantined"
    if why_not or member is None:
        detail = {"values": {"quarantined": event.quarantined}, "who": event.who}
        core.record(Kind.SETTING_REFUSED, reason=why_not, detail=detail)
    else:
        _set(core, member, event.quarantined, event.who, "asked for" if event.quarantined else "")


def _set(core: SyncerCore, member: Member, quarantined: bool, who: str, why: str = "") -> None:
    member.quarantined = quarantined
    member.poisonings = 0
    core.record(
        Kind.SETTING_CHANGED,
        setting=core.state.book.revision,
        peer=process_of(member.learner),
        reason=why,
        detail={"values": {"quarantined": quarantined}, "who": who},
    )
    quorum.judge(core)
