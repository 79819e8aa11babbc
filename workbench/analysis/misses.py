"""Why a learner is not in a merge, by how much it missed it, and the records that decided it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from workbench.analysis.merge_round import NS, MergeRound
from workbench.protocol.records import SYNCER, Kind, process_of
from workbench.tape.moment import Moment

NAN = float("nan")
LATE = ("late", "pull_limit")
UNREADY = ("not_fresh", "not_ready")
WANTS_STEP = (*UNREADY, "no_steps", "rejoined")
WANTS_FOLD = ("base_behind", "base_differs", "update_unfolded", "stale")
"""Reasons of GRACE_ENDED, drops and refusals that another step, or another fold, would have lifted."""


class Missed(NamedTuple):
    """A learner that is not in a merge.

    Attributes
    ----------
    learner : int
    reason : str
        The word of the drop, the refusal or GRACE_ENDED; ``unanswered``; ``down``, ``disconnected`` or ``healing``.
    said : str
        The same as a clause of a sentence, with by how much.
    by_s : float
        By how much it missed the merge, NaN where no record tells [s].
    by_steps : int
        Global steps that it lacked to be ready, 0 where that was not the reason.
    step : int
        Its own step that the merge did not see and that would have counted, -1 where none is recorded.
    faults : tuple of str
        Injected faults that acted on it at the merge.
    decided : int
        Event that decided it.
    heard : int
        Its clock entry there: the number of its last record that counted.
    came, came_seq : int
        The event of it that came too late, and its number (above ``heard``); -1 for none.
    """

    learner: int
    reason: str
    said: str
    by_s: float = NAN
    by_steps: int = 0
    step: int = -1
    faults: tuple[str, ...] = ()
    decided: int = -1
    heard: int = 0
    came: int = -1
    came_seq: int = -1


def absent(merged: MergeRound, learners: Iterable[int]) -> list[int]:
    """Those of these learners that the run had at the merge: none that was added later, or removed before."""
    own, place = merged.own, _place(merged, merged.event)

    def was_there(learner: int) -> bool:
        q = process_of(learner)
        if own.last(SYNCER, Kind.LEARNER_ADDED, len(own.index.rows[SYNCER]), peer=q) >= place:
            return False
        lost = own.last(SYNCER, Kind.LEARNER_LOST, place, peer=q)
        return lost < 0 or own.reason(SYNCER, lost) != "removed"

    return [learner for learner in learners if was_there(learner)]


def missed(merged: MergeRound, learner: int, then: Moment) -> Missed:
    """Explain why a learner is not in a merge.

    Times of a learner are compared with the syncer's: on one machine they are those of one clock.

    Parameters
    ----------
    merged : MergeRound
    learner : int
    then : Moment
        At the event of the merge.
    """
    peer = process_of(learner)
    dropped = [e for e in merged.of(Kind.FRAGMENT_DROPPED, peer=peer).tolist() if merged.reason(e) != "duplicate"]
    refused = merged.of(Kind.REFUSAL_ARRIVED, peer=peer).tolist()
    pulled = merged.last(Kind.PULL_SENT, peer=peer)
    grace = merged.last(Kind.GRACE_ENDED)
    named = {int(key): str(why) for key, why in merged.detail(grace).get("left_out", {}).items()} if grace >= 0 else {}
    if dropped:
        found = _dropped(merged, learner, dropped[-1])
    elif refused:
        found = _lacked(merged, learner, merged.reason(refused[-1]), refused[-1])
    elif pulled >= 0:
        found = _unanswered(merged, learner, pulled)
    elif learner in named:
        found = _lacked(merged, learner, named[learner], grace)
    else:
        found = _absent(merged, learner, then)
    return found._replace(faults=then.learners[learner].faults)


def _decided(merged: MergeRound, learner: int, reason: str, decided: int, came: int = -1) -> Missed:
    """The reason, and the clock entries that decided: what had been heard of the learner, and what came later."""
    own, heard = merged.own, merged.heard(decided, learner)
    if came < 0:
        return Missed(learner, reason, "", decided=decided, heard=heard)
    step, seq = int(own["step"][came]), int(own["seq"][came])
    return Missed(learner, reason, "", step=step, decided=decided, heard=heard, came=came, came_seq=seq)


def _dropped(merged: MergeRound, learner: int, event: int) -> Missed:
    reason, own = merged.reason(event), merged.own
    came, grace = int(own["cause"][event]), merged.last(Kind.GRACE_ENDED)
    found = _decided(merged, learner, reason, grace if reason in LATE and grace >= 0 else event, came)
    found = found._replace(step=int(own["step"][event]))
    if reason not in LATE or merged.closed_ns < 0:
        return found._replace(said=f"its fragment was not used ({reason})")
    captured = merged.time_ns(came) if came >= 0 else -1
    if 0 <= merged.grace_ns < captured:
        by_s = (captured - merged.grace_ns) * NS
        return found._replace(said=f"its fragment left {_s(by_s)} after the grace window closed", by_s=by_s)
    by_s = max(0, merged.time_ns(event) - merged.closed_ns) * NS
    return found._replace(said=f"its fragment arrived {_s(by_s)} after the round had closed", by_s=by_s)


def _unanswered(merged: MergeRound, learner: int, pulled: int) -> Missed:
    """Asked, and nothing came that any record tells of."""
    captured = merged.next_of(
        learner, Kind.FRAGMENT_CAPTURED, merged.heard(pulled, learner), round=merged.round, fragment=merged.fragment
    )
    gone = merged.own.last(SYNCER, Kind.LEARNER_LOST, _place(merged, merged.event), peer=process_of(learner))
    if gone > _place(merged, pulled):
        by_s = (_place_ns(merged, gone) - merged.time_ns(pulled)) * NS
        lost = _decided(merged, learner, "gone", merged.own.event(SYNCER, gone), captured)
        return lost._replace(said=f"it was lost {_s(by_s)} after it was asked", by_s=by_s)
    closed = merged.closed_ns if merged.closed_ns >= 0 else merged.time_ns(merged.event)
    by_s = (closed - merged.time_ns(pulled)) * NS
    sent = "" if captured < 0 else ", though it had sent its fragment"
    said = f"it had not answered {_s(by_s)} after it was asked{sent}"
    return _decided(merged, learner, "unanswered", pulled, captured)._replace(said=said, by_s=by_s)


def _lacked(merged: MergeRound, learner: int, reason: str, decided: int) -> Missed:
    """Refused, or not admitted: what it lacked, and when that came."""
    heard, came = merged.heard(decided, learner), -1
    if reason in WANTS_FOLD:
        came = _fold_of(merged, learner, heard)
    elif reason in WANTS_STEP:
        came = merged.next_of(learner, Kind.STEP_ENDED, heard)
    found = _decided(merged, learner, reason, decided, came)
    by_steps = _steps_short(merged, learner, heard) if reason in UNREADY else 0
    said = _why_lacked(reason, by_steps)
    if came < 0:
        return found._replace(said=said, by_steps=by_steps)
    what, by_s = _too_late(merged, came, decided)
    return found._replace(said=f"{said}; {what}", by_s=by_s, by_steps=by_steps)


def _too_late(merged: MergeRound, came: int, decided: int) -> tuple[str, float]:
    """By how much an event of a learner came too late: it happened later, or it was heard of later."""
    fold = merged.own["kind"][came] == Kind.UPDATE_FOLDED
    after = "the grace window closed" if merged.own["kind"][decided] == Kind.GRACE_ENDED else "it was refused"
    happened, then = merged.time_ns(came), merged.time_ns(decided)
    if happened > then:
        what = f"it folded version {int(merged.own['version'][came])}," if fold else "its next step ended"
        return f"{what} {_s((happened - then) * NS)} after {after}", (happened - then) * NS
    what = f"it had folded version {int(merged.own['version'][came])}" if fold else "its next step had ended"
    index = merged.own.index
    place = int(index.future(came)[SYNCER])
    if place >= index.lengths[SYNCER]:
        return f"{what}, but the syncer never heard of that", NAN
    by_s = (merged.time_ns(merged.own.event(SYNCER, place)) - then) * NS
    return f"{what}, but the syncer heard of that {_s(by_s)} after {after}", by_s


def _why_lacked(reason: str, by_steps: int) -> str:
    short = f"{by_steps} steps short of the round" if by_steps > 1 else "a step short of the round"
    words = {
        "not_fresh": f"it was {short}, and nothing had come of it since the first learner was ready",
        "not_ready": f"it was {short}",
        "no_steps": "it had made no step since its last fold",
        "rejoined": "it had just joined again",
        "quarantined": "it was kept out by hand",
    }
    if reason in WANTS_FOLD:
        return "it had not folded the version that the merge began with"
    return words.get(reason, f"it was kept out ({reason})")


def _fold_of(merged: MergeRound, learner: int, heard: int) -> int:
    """The learner's next fold of the fragment that holds the version which the merge began with."""
    found = merged.next_of(learner, Kind.UPDATE_FOLDED, heard, fragment=merged.fragment)
    while found >= 0 and merged.own["version"][found] < merged.version - 1:
        found = merged.next_of(learner, Kind.UPDATE_FOLDED, int(merged.own["seq"][found]), fragment=merged.fragment)
    return found


def _steps_short(merged: MergeRound, learner: int, heard: int) -> int:
    """Global steps from the last that was heard of to the round, at least 1."""
    index, process = merged.own.index, process_of(learner)
    last = merged.record_of(learner, heard)
    place = -1 if last < 0 else merged.own.last(process, Kind.STEP_ENDED, int(index.rank[last]) + 1)
    g = 0 if place < 0 else int(merged.own.value("global_step", process, place)) + 1
    return max(1, merged.round - g)


def _absent(merged: MergeRound, learner: int, then: Moment) -> Missed:
    """Not asked and not named: it was not there, not connected, or not healed."""
    was = then.learners[learner]
    if was.incarnation == 0:
        return _returned(merged, learner, "down", "it had not joined", Kind.LEARNER_JOINED)
    if not was.connected:
        lost = merged.own.last(SYNCER, Kind.LEARNER_LOST, _place(merged, merged.event), peer=process_of(learner))
        ago = "" if lost < 0 else f" for {_s((merged.time_ns(merged.event) - _place_ns(merged, lost)) * NS)}"
        word = "disconnected" if was.alive else "down"
        gone = "it had been disconnected" if was.alive else "it had been gone"
        return _returned(merged, learner, word, f"{gone}{ago}", Kind.LEARNER_JOINED)
    if not was.healed:
        return _returned(merged, learner, "healing", "it was still recovering", Kind.LEARNER_HEALED)
    found = _decided(merged, learner, "healing", merged.event)
    return found._replace(said="it was recovering while the round gathered")


def _returned(merged: MergeRound, learner: int, reason: str, said: str, kind: Kind) -> Missed:
    """Absent until the syncer records, after the merge, that it is back."""
    own = merged.own
    places = own.places(SYNCER, kind, peer=process_of(learner))
    later = places[places > _place(merged, merged.event)]
    found = _decided(merged, learner, reason, merged.event)._replace(said=said)
    if not len(later):
        return found
    by_s = (merged.time_ns(own.event(SYNCER, int(later[0]))) - merged.time_ns(merged.event)) * NS
    back = "healed" if kind == Kind.LEARNER_HEALED else "joined"
    return found._replace(said=f"{said}, and {back} {_s(by_s)} after the merge", by_s=by_s)


def _place(merged: MergeRound, event: int) -> int:
    return int(merged.own.index.rank[event])


def _place_ns(merged: MergeRound, place: int) -> int:
    return int(merged.own.value("time_ns", SYNCER, place))


_s: Callable[[float], str] = "{:.2g} s".format
