"""How a learner absorbs updates and learns what became of its contributions (PROTOCOL sections 7 and 8)."""

from __future__ import annotations

from workbench.protocol.actions import Fold, ForgetCapture, Publish, Release
from workbench.protocol.copies import is_behind, note_in_flight
from workbench.protocol.learner_core import LearnerCore
from workbench.protocol.learner_state import CapturedCopy, PendingUpdate
from workbench.protocol.messages import BULK, Update
from workbench.protocol.records import SYNCER, Kind
from workbench.protocol.settings import LearnerSettings


def update_came(core: LearnerCore, message: Update) -> None:
    """Keep an update until it is folded; the newest replaces what waits, what is not newer is ignored."""
    state, p = core.state, message.fragment
    behind = state.cut is not None and is_behind(state, BULK)
    if behind and state.cut is not None:
        state.cut.g_behind = max(state.cut.g_behind, message.round)
    else:
        state.g_seen = max(state.g_seen, message.round)
        note_in_flight(state, p, message.version, message.round)
    waiting = state.inbox.get(p)
    newest = max(state.base[p], waiting.version if waiting else -1)
    anew_known = max(state.anew_seen[p], waiting.anew if waiting else 0)
    if message.version <= newest and message.anew <= anew_known:
        if message.handle >= 0:
            core.out.append(Release(message.handle))
        return
    if waiting is not None:
        if waiting.handle >= 0:
            core.out.append(Release(waiting.handle))
        del state.inbox[p]
    anew = max(message.anew, waiting.anew if waiting else 0)
    state.inbox[p] = PendingUpdate(
        message.version,
        message.round,
        message.last_merged,
        message.last_merged_step,
        anew if anew > state.anew_seen[p] else 0,
        message.handle,
        message.origin,
        message.clock,
        behind=behind,
    )


def acknowledge_contributions(core: LearnerCore) -> None:
    """Updates in the inbox say which contribution was the last that entered their fragment."""
    state = core.state
    for p, update in state.inbox.items():
        if update.acknowledged or update.behind:
            continue
        update.acknowledged = True
        core.hear(update.clock)
        for copy in state.captures.get(p, ()):
            if copy.decided or not copy.sent:
                continue
            taken = copy.step == update.last_merged_step and update.last_merged > copy.base_version
            if taken or _cannot_be_taken(core, copy, update):
                copy.decided, copy.taken = True, taken
                core.record(
                    Kind.CONTRIBUTION_ACKNOWLEDGED,
                    cause=(SYNCER, update.origin),
                    fragment=p,
                    round=copy.round,
                    step=copy.step,
                    version=update.version,
                    value=1.0 if taken else 0.0,
                )


def _cannot_be_taken(core: LearnerCore, copy: CapturedCopy, update: PendingUpdate) -> bool:
    """A later contribution is in, or the version has moved past what this one rests on."""
    fixed = core.state.fixed
    kept = 0 if fixed.anchor == "current" else fixed.anchors_kept
    return update.last_merged_step > copy.step or update.version > copy.base_version + kept


def fold_due(core: LearnerCore) -> None:
    """Fold what is due, in order of arrival, each with its reset of counters and of the host copy."""
    state = core.state
    for p in list(state.inbox):
        update = state.inbox[p]
        if _is_due(core, p, update):
            del state.inbox[p]
            _fold(core, p, update)
    state.g = max(state.g, state.g_seen)


def _is_due(core: LearnerCore, p: int, update: PendingUpdate) -> bool:
    fixed = core.state.fixed
    if update.behind:
        return False
    if fixed.fold_at == "receipt" or core.state.base[p] < 0 or update.anew:
        return True
    return max(core.state.g, core.state.g_seen) >= update.round + fixed.overlap


def _fold(core: LearnerCore, p: int, update: PendingUpdate) -> None:
    state = core.state
    rule, alpha = rule_of(state.settings, state.base[p], update.anew)
    copies = state.captures.get(p, [])
    included = update.last_merged > state.base[p]
    reference = next((c for c in copies if included and c.step == update.last_merged_step), None)
    core.out.append(
        Fold(p, update.version, update.handle, rule, alpha, reference.step if reference is not None else -1)
    )
    core.record(
        Kind.UPDATE_FOLDED,
        cause=(SYNCER, update.origin),
        fragment=p,
        round=update.round,
        version=update.version,
        base_version=state.base[p],
        step=state.n,
        global_step=state.g,
        steps=state.c_steps[p],
        tokens=state.c_tokens[p],
        value=alpha,
        reason=rule,
        detail={
            "reference": reference.step if reference is not None else -1,
            "included": int(included),
            "anew": update.anew,
        },
    )
    _reset_counters(core, p, rule, reference)
    state.base[p] = update.version
    if state.settings.lead is not None and update.round >= state.closed_below:
        state.closed.append(update.round)
    state.anew_seen[p] = max(state.anew_seen[p], update.anew)
    state.published.c_steps[p] = state.c_steps[p]
    state.published.c_tokens[p] = state.c_tokens[p]
    core.out.append(Publish(p))
    if update.handle >= 0:
        core.out.append(Release(update.handle))
    _forget_decided(core, p)


def rule_of(settings: LearnerSettings, base: int, anew: int) -> tuple[str, float]:
    """Fold rule and alpha: what has no base of the syncer's, or is asked anew, is overwritten whatever is set."""
    rule = "overwrite" if base < 0 or anew else settings.fold
    return rule, settings.fold_alpha if rule == "blend" else 0.0


def counters_after(rule: str, steps: int, tokens: int, since_reference: tuple[int, int] | None) -> tuple[int, int]:
    """Steps and tokens that a fragment holds of its learner's own after a fold.

    Zero, except after a delay-corrected fold: what came ``since_reference``, the copy that was merged, or since the
    base (None).  A copy may be older than the last reset (the rule was changed live): then nothing before it counts
    anyway.
    """
    if rule != "delay_corrected":
        return 0, 0
    if since_reference is None:
        return steps, tokens
    return min(steps, since_reference[0]), min(tokens, since_reference[1])


def _reset_counters(core: LearnerCore, p: int, rule: str, reference: CapturedCopy | None) -> None:
    state = core.state
    since = (state.n - reference.step, state.total_tokens - reference.total_tokens) if reference is not None else None
    state.c_steps[p], state.c_tokens[p] = counters_after(rule, state.c_steps[p], state.c_tokens[p], since)


def _forget_decided(core: LearnerCore, p: int) -> None:
    for copy in [c for c in core.state.captures.get(p, ()) if c.decided]:
        forget(core, p, copy)


def forget(core: LearnerCore, p: int, copy: CapturedCopy) -> None:
    """Let a captured copy go, unless another capture after the same own step still needs it."""
    copies = core.state.captures[p]
    copies[:] = [c for c in copies if c is not copy]
    if not any(c.step == copy.step for c in copies):
        core.out.append(ForgetCapture(p, copy.step, copy.taken))
    if not copies:
        del core.state.captures[p]
