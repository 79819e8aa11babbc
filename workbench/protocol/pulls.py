"""How a learner answers a PULL, at once and in the middle of a step (PROTOCOL section 5)."""

from __future__ import annotations

from workbench.protocol import folding, outbox
from workbench.protocol.actions import Capture, Release
from workbench.protocol.events import Captured
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import CapturedCopy
from workbench.protocol.messages import BULK, Fragment, Pull, Refused
from workbench.protocol.records import SYNCER, Kind


def pulled(core: LearnerCore, message: Pull) -> None:
    """Answer from the last published host copy, or refuse."""
    state, p = core.state, message.fragment
    reason = _why_refuse(core, message)
    if reason:
        _refuse(core, message, reason)
        return
    published = state.published
    copy = CapturedCopy(
        message.round,
        published.n,
        state.base[p],
        published.c_steps[p],
        published.c_tokens[p],
        published.total_tokens,
        message.codec,
        (SYNCER, message.origin),
    )
    state.captures.setdefault(p, []).append(copy)
    core.out.append(Capture(message.round, p, published.n, message.codec))


def _why_refuse(core: LearnerCore, message: Pull) -> str:
    state, p = core.state, message.fragment
    if state.adopting is not None:
        return "no_steps"
    if p in state.inbox:
        return "update_unfolded"
    if state.base[p] != message.base_version:
        return "base_differs"
    if state.published.c_steps[p] < 1:
        return "no_steps"
    return ""


def _refuse(core: LearnerCore, message: Pull, reason: str) -> None:
    state = core.state
    origin = core.record(
        Kind.PULL_REFUSED,
        cause=(SYNCER, message.origin),
        fragment=message.fragment,
        round=message.round,
        base_version=state.base[message.fragment],
        reason=reason,
    )
    core.send(
        Refused(
            state.learner,
            state.incarnation,
            message.round,
            message.fragment,
            reason,
            origin,
            state.clock,
            outbox.take(state.outbox, BULK),
        ),
        bulk=True,
    )


def captured(core: LearnerCore, event: Captured) -> None:
    """The copy is encoded: record the capture, then send it; who has lost the syncer meanwhile lets it go."""
    state, p = core.state, event.fragment
    copy = next((c for c in state.captures.get(p, ()) if c.round == event.round and not c.sent), None)
    if copy is None or not state.welcomed:
        if event.handle >= 0:
            core.out.append(Release(event.handle))
        if copy is not None:
            folding.forget(core, p, copy)
        return
    copy.sent = True
    origin = core.record(
        Kind.FRAGMENT_CAPTURED,
        cause=copy.cause,
        fragment=p,
        round=copy.round,
        base_version=copy.base_version,
        step=copy.step,
        steps=copy.steps,
        tokens=copy.tokens,
        reason=copy.codec,
        digest=event.digest,
        detail={"bytes": event.nbytes},
    )
    core.send(
        Fragment(
            state.learner,
            state.incarnation,
            copy.round,
            p,
            copy.base_version,
            copy.step,
            copy.steps,
            copy.tokens,
            copy.codec,
            event.digest,
            event.nbytes,
            core.now,
            origin,
            state.clock,
            outbox.take(state.outbox, BULK),
            event.handle,
        ),
        bulk=True,
    )
