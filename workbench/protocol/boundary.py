"""A learner's boundary between two steps, and how its life ends (PROTOCOL sections 8 and 10)."""

from __future__ import annotations

import msgspec

from workbench.protocol import copies, folding, lead
from workbench.protocol.actions import Leave, Publish, StartStep
from workbench.protocol.events import StepEnded
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import UNSET, Published
from workbench.protocol.records import Kind
from workbench.protocol.slots import LOCAL_WORK


def step_ended(core: LearnerCore, event: StepEnded) -> None:
    """The boundary, in this order: counters, host copy, METADATA, settings, acknowledgements, folds, lead."""
    state = core.state
    _count(core, event)
    state.waited_ns = 0
    state.published = Published(state.n, list(state.c_steps), list(state.c_tokens), state.total_tokens)
    core.out.append(Publish(-1))
    core.send_metadata(leaving=bool(state.ending))
    finish(core)


def _count(core: LearnerCore, event: StepEnded) -> None:
    """Count the step, and record it with the global step that its learning rate was of."""
    state = core.state
    used = state.g
    state.stepping = False
    state.n += 1
    state.g += 1
    state.step_ns = core.now - event.start_ns
    state.c_steps = [c + 1 for c in state.c_steps]
    state.c_tokens = [c + event.tokens for c in state.c_tokens]
    state.total_tokens += event.tokens
    if not state.healed and min(state.base) >= 0:
        state.healed = True
    core.record(
        Kind.STEP_ENDED,
        step=state.n,
        global_step=used,
        steps=1,
        tokens=event.tokens,
        value=event.loss,
        detail={
            "batch": event.batch,
            "accumulation": event.accumulation,
            "start_ns": event.start_ns,
            "end_ns": core.now,
            "injected_ns": event.injected_ns,
            "waited_ns": state.waited_ns,
        },
    )


def finish(core: LearnerCore) -> None:
    """What follows METADATA; looked at again whenever something comes to a learner that waits."""
    state = core.state
    if state.ending:
        leave(core, state.ending)
        return
    if state.adopting is not None:
        return
    _apply_settings(core)
    folding.acknowledge_contributions(core)
    folding.fold_due(core)
    copies.serve(core)
    if copies.release_what_is_behind(core):
        _apply_settings(core)
        folding.acknowledge_contributions(core)
        folding.fold_due(core)
    if state.awaiting:
        return
    if lead.must_wait(state):
        if state.waiting_since == UNSET:
            state.waiting_since = core.now
        return
    _start_step(core)


def _apply_settings(core: LearnerCore) -> None:
    state = core.state
    if state.asked is None:
        return
    state.settings, state.revision = state.asked, state.asked_revision
    state.asked = None
    core.record(
        Kind.SETTING_APPLIED,
        setting=state.revision,
        step=state.n,
        detail={"values": msgspec.structs.asdict(state.settings)},
    )


def _start_step(core: LearnerCore) -> None:
    state = core.state
    if state.waiting_since != UNSET:
        state.waited_ns += core.now - state.waiting_since
        state.waiting_since = UNSET
    batch, accumulation = LOCAL_WORK["fixed"](state.settings, state.n + 1)
    state.stepping = True
    core.out.append(StartStep(state.n + 1, state.g, batch, accumulation, state.settings.rate_scale))


def leave(core: LearnerCore, reason: str) -> None:
    """End this process."""
    core.state.left = True
    core.out.append(Leave(reason))
