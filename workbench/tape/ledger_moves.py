"""What each kind of record moves in the token ledger.

Orders that the moves rely on, all by "log before effect" (PROTOCOL section 6): a learner's records stand in
its own order; a FRAGMENT_CAPTURED stands before the MERGED that takes it; a MERGED stands before every fold of
its version.  Everything else may come in any order: a fold of an *older* version (sent again, or anew) can
close an interval whose capture is merged later, a learner can die, be removed or adopt a state before its
capture is merged, a late FRAGMENT can be dropped after its interval was closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.protocol.records import FIRST_LEARNER, Kind, Record, process_of
from workbench.tape.ledger_book import BLENDED, LOST, NOT_READY, Book
from workbench.tape.ledger_state import Account, LedgerState

REASONS = {
    "base_behind": "stale",
    "base_differs": "stale",
    "incarnation": "gone",
    "no_steps": NOT_READY,
    "not_fresh": NOT_READY,
    "records": "stale",
    "refused": NOT_READY,
    "update_unfolded": "stale",
}
"""Words of drops, refusals and exclusions to reasons of not_merged; other words stay as they are."""

PROCESS_DEATHS = ("exit", "superseded")
"""Reasons of LEARNER_LOST that end a process; the others end a connection, and no interval."""

LEFT_IN_ORDER = ("0", "exit 0")
"""Reasons of PROCESS_ENDED of a learner that was told to leave: its intervals stay open until another process joins."""

PULL_LIMIT = "pull_limit"
LEFT_OUT, SKIPPED, DROPPED = range(3)
"""Ranks of reasons within one round: the closer to the contribution, the stronger."""


# what learners do


def step_ended(state: LedgerState, record: Record) -> None:
    """Add the tokens of a step; all open intervals of the learner reach up to its total."""
    learner = record.process - FIRST_LEARNER
    accounts = state.accounts
    account = accounts[learner] if 0 <= learner < len(accounts) else state.account(max(learner, 0))
    if record.step != account.first_step + len(account.ends) or not account.ends:
        account.realign(record.step)
    if record.tokens < 0 or learner < 0:
        state.fault(record.process, -1, f"own step {record.step} counts {record.tokens} tokens")
        return
    account.total += record.tokens
    state.run.processed += record.tokens
    account.ends.append(account.total)


def fragment_captured(state: LedgerState, record: Record) -> None:
    """Compare the learner's counters with the steps; captured tokens stay local until a merge takes them.

    Encoding takes time: the copy's interval may have been folded before the capture is recorded.
    """
    found = state.find(record.process, record.fragment)
    if found is None:
        return
    account, book = found
    end = account.at(record.step)
    counted = None if end is None else end - book.start_of(end)
    if counted != record.tokens:
        text = f"captured after own step {record.step} with {record.tokens} tokens, since the last reset are {counted}"
        state.fault(record.process, record.fragment, text)


def update_folded(state: LedgerState, record: Record) -> None:
    """End the interval as the fold's rule says."""
    found = state.find(record.process, record.fragment)
    if found is None:
        return
    account, book = found
    total = account.total
    if record.tokens != total - book.start:
        text = f"fold of version {record.version} ends {record.tokens} tokens, since the last reset are "
        state.fault(record.process, record.fragment, text + str(total - book.start))
    book.folded = True
    if record.base_version < 0:
        book.close(total, total, LOST, "healing")
    elif record.reason == "delay_corrected":
        _carry(account, book, record.detail.get("reference", -1))
    elif record.value > 0:
        book.close(total, total, BLENDED, record.value)
    else:
        book.replace(total, total)


def _carry(account: Account, book: Book, reference: int) -> None:
    """Delay-corrected fold: the steps behind the reference copy stay local and open the next interval.

    Without a reference the copy is the base, and the whole interval goes on.  With one, the steps up to it
    are the merged contribution; what of them no merge took is replaced like by a fold with alpha = 0.
    A reference before the interval's start (the rule changed between) brings nothing back.
    """
    end = account.at(reference) if reference >= 0 else None
    if end is not None and end > book.start:
        book.replace(end, account.total)


def state_adopted(state: LedgerState, record: Record) -> None:
    """Close what was replaced: from a peer only fragments that this process has not folded (PROTOCOL 11).

    ``initial`` opens a process: what is still open then died with the one before.  ``own`` replaces nothing.
    """
    learner = record.process - FIRST_LEARNER
    if record.reason == "own" or learner < 0:
        return
    account = state.account(learner)
    if record.reason == "initial":
        state.end_process(learner)
        return
    taken = record.detail.get("fragments")
    for p, book in enumerate(account.books):
        if p in taken if taken is not None else not (record.reason == "peer" and book.folded):
            book.close(account.total, account.total, LOST, "adopted")
            state.touched.append((learner, p))


# what the syncer does


def not_taken(state: LedgerState, record: Record) -> None:
    """Remember why a contribution was dropped or a PULL refused."""
    if record.reason == "duplicate":
        return
    found = state.find(record.peer, record.fragment)
    if found is not None:
        account, book = found
        captured_at = account.at(record.step) if record.kind == Kind.FRAGMENT_DROPPED else None
        book.note(REASONS.get(record.reason, record.reason), record.round, DROPPED, captured_at)


def grace_ended(state: LedgerState, record: Record) -> None:
    """Remember who was left out and why."""
    for learner, cause in pairs(record.detail.get("left_out")):
        found = state.find(process_of(learner), record.fragment)
        if found is not None:
            found[1].note(REASONS.get(cause, cause), record.round, LEFT_OUT)


def pull_sent(state: LedgerState, record: Record) -> None:
    """Remember that a contribution was asked for: if nothing else is heard of it, the pull limit was passed."""
    found = state.find(record.peer, record.fragment)
    if found is not None:
        found[1].note(PULL_LIMIT, record.round, LEFT_OUT)


def round_skipped(state: LedgerState, record: Record) -> None:
    """Remember that the round of this fragment merged nobody."""
    if 0 <= record.fragment < len(state.sizes):
        for account in state.accounts:
            account.books[record.fragment].note("round_skipped", record.round, SKIPPED)


def merged(state: LedgerState, record: Record) -> None:
    """Move each contribution's tokens to merged, from wherever they are."""
    detail = record.detail
    learners = detail.get("learners", ())
    moved = 0
    for contribution in zip(learners, detail.get("steps_captured", ()), detail.get("c_tokens", ()), strict=False):
        moved += _take(state, record, *contribution)
    if moved != record.tokens:
        state.fault(
            record.process, record.fragment, f"merge of round {record.round}: {record.tokens} tokens, {moved} moved"
        )
    if 0 <= record.fragment < len(state.sizes):
        for learner, account in enumerate(state.accounts):
            if learner not in learners:
                _passed_over(account, account.books[record.fragment], record.round)


def _take(state: LedgerState, record: Record, learner: int, step: int, tokens: int) -> int:
    """Move one contribution to merged; returns the tokens moved."""
    process = process_of(learner)
    found = state.find(process, record.fragment)
    end = found[0].at(step) if found is not None else None
    text = f"round {record.round} merged {tokens} tokens after own step {step}"
    if found is None or end is None or not 0 <= tokens <= end:
        state.fault(process, record.fragment, f"{text}, which no record holds")
        return 0
    moved = found[1].merge(end - tokens, end, record.round, record.version)
    if moved != tokens:
        state.fault(process, record.fragment, f"{text}, {tokens - moved} of them a second time")
    return moved


def _passed_over(account: Account, book: Book, round_: int) -> None:
    """Forget, at a merge without the learner, what earlier rounds said about its interval."""
    if book.reason_round < round_ or (book.reason == PULL_LIMIT and not account.connected):
        book.note(NOT_READY if account.connected else "gone", round_, LEFT_OUT)


def learner_joined(state: LedgerState, record: Record) -> None:
    """Begin a process: what its predecessor left open is lost.  A rejoin ends nothing."""
    learner = record.peer - FIRST_LEARNER
    account = state.account(learner)
    account.connected, account.left = True, False
    number = int(record.value)
    if record.reason == "process" and number != account.number:
        state.end_process(learner)
    account.number = number


def learner_lost(state: LedgerState, record: Record) -> None:
    """End a connection; and the process, where the reason says that it is dead or was removed."""
    learner = record.peer - FIRST_LEARNER
    account = state.account(learner)
    account.connected = False
    if record.reason == "ended":
        account.left = state.ended = True
    elif record.reason in PROCESS_DEATHS and not state.ended and not account.left:
        state.end_process(learner)
    elif record.reason == "removed":
        state.end_process(learner, "removal")


def process_ended(state: LedgerState, record: Record) -> None:
    """End the process that holds the intervals, unless it was replaced before or left in order."""
    learner = record.peer - FIRST_LEARNER
    if learner < 0 or state.ended:
        return
    account = state.account(learner)
    if record.value >= account.number and not account.left:
        if record.reason in LEFT_IN_ORDER:
            account.left = True
        else:
            state.end_process(learner)


def run_ended(state: LedgerState, record: Record) -> None:
    """End the run: open intervals stay local.  Rounds that are given up say so before the learners leave."""
    if record.kind == Kind.RUN_ENDED or record.reason == "run_ended":
        state.ended = True


def syncer_started(state: LedgerState, record: Record) -> None:
    """Begin with nobody connected; back at a snapshot where detail ``cut`` (``steps``, ``versions``) says so."""
    state.ended = False
    for account in state.accounts:
        account.connected = False
    cut = record.detail.get("cut")
    if cut:
        roll_back(
            state, {m: int(step) for m, step in pairs(cut["steps"])}, cut["versions"], dict(pairs(cut.get("open")))
        )


def roll_back(
    state: LedgerState,
    steps: Mapping[int, int],
    versions: Sequence[int],
    open_tokens: Mapping[int, Sequence[int]] | None = None,
) -> None:
    """Go back to a snapshot; see `workbench.tape.ledger.Ledger.roll_back`."""
    for learner, account in enumerate(state.accounts):
        step = steps.get(learner)
        at = 0 if step is None else account.at(step)
        cut = account.total if at is None else at
        for p, book in enumerate(account.books):
            of_book = (open_tokens or {}).get(learner)
            book.roll_back(cut, account.total, versions[p], None if of_book is None else of_book[p])
            state.touched.append((learner, p))
        account.rolled_back += account.total - cut
        account.total = cut
        if step is None:
            del account.ends[:]
        elif at is not None:
            account.realign(step + 1)


def pairs(mapping: Mapping[Any, Any] | None) -> list[tuple[int, Any]]:
    """Items of a mapping whose integer keys may have become text on the wire."""
    return [(int(key), value) for key, value in (mapping or {}).items()]


MOVES: dict[int, Callable[[LedgerState, Record], None]] = {
    Kind.STEP_ENDED: step_ended,
    Kind.UPDATE_FOLDED: update_folded,
    Kind.FRAGMENT_CAPTURED: fragment_captured,
    Kind.FRAGMENT_DROPPED: not_taken,
    Kind.REFUSAL_ARRIVED: not_taken,
    Kind.GRACE_ENDED: grace_ended,
    Kind.MERGED: merged,
    Kind.ROUND_SKIPPED: round_skipped,
    Kind.STATE_ADOPTED: state_adopted,
    Kind.LEARNER_JOINED: learner_joined,
    Kind.LEARNER_LOST: learner_lost,
    Kind.PROCESS_ENDED: process_ended,
    Kind.SYNCER_STARTED: syncer_started,
    Kind.RUN_ENDED: run_ended,
    Kind.ROUND_ABORTED: run_ended,
    Kind.PULL_SENT: pull_sent,
}
"""Kind of record to what it moves; other kinds move nothing."""
