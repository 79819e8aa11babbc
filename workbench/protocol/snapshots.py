"""Snapshots: a consistent cut of all processes by markers (PROTOCOL section 13).

The syncer records its own state and puts a MARKER on every channel; each learner takes its state at its first boundary
after the first MARKER and puts its own MARKERs behind what it has sent (Chandy and Lamport, "Distributed Snapshots",
ACM TOCS 3(1), 1985).  Channels lose nothing but with their connection, and then their learner is gone from the
snapshot; what a fault takes from a living channel lets the snapshot run out.
"""

from __future__ import annotations

from typing import Any

from workbench.protocol import state_transfers
from workbench.protocol.actions import DropSnapshot, KeepPart, Release, TakeSnapshot, WriteSnapshot
from workbench.protocol.events import SnapshotAsked, SnapshotWritten
from workbench.protocol.member_state import Member
from workbench.protocol.messages import BULK, CONTROL, Fragment, Mark, Marker, Metadata, StateCopy
from workbench.protocol.records import Kind, label_of, process_of
from workbench.protocol.round_state import RoundState
from workbench.protocol.syncer_core import SyncerCore
from workbench.protocol.syncer_state import SyncerState
from workbench.protocol.under_way import Part, Snapshotting

IN_FLIGHT_MAX = 4096


def asked(core: SyncerCore, event: SnapshotAsked) -> None:
    """Somebody wants a snapshot; it begins when no state is on its way to a joiner."""
    core.state.snapshot_wanted = event.who


def is_due(core: SyncerCore) -> bool:
    """Whether a snapshot is wanted, by somebody or by the clock."""
    state, fixed = core.state, core.state.fixed
    if state.snapshot_wanted:
        return True
    if not state.began:
        return False
    by_merges = fixed.snapshot_every_merges and state.merges - state.snapshot_merges >= fixed.snapshot_every_merges
    return bool(by_merges or (fixed.snapshot_every_ns and core.now - state.snapshot_at >= fixed.snapshot_every_ns))


def start_when_due(core: SyncerCore) -> None:
    """Begin a snapshot, unless one is being taken, a state is on its way to a joiner, or a merge to its slot."""
    state = core.state
    committing = any(r.state == RoundState.COMMITTING for r in state.rounds.values())
    if state.snapshot is None and not (state.transfers or state.ending or committing) and is_due(core):
        _start(core)


def _start(core: SyncerCore) -> None:
    state = core.state
    state.snapshot_serial += 1
    number = state.snapshot_serial
    state.snapshot_wanted, state.snapshot_at, state.snapshot_merges = "", core.now, state.merges
    manifest = manifest_of(state)
    seq = core.record(Kind.SNAPSHOT_RECORDED, value=float(number), detail=manifest)
    parts = {m.learner: Part(m.incarnation) for m in state.members.values() if m.connected}
    state.snapshot = Snapshotting(number, seq, core.now, manifest, parts)
    core.out.append(TakeSnapshot(number, list(state.versions)))
    for learner in parts:
        member = state.members[learner]
        for channel in (CONTROL, BULK):
            core.send(
                member,
                Marker(member.incarnation, number, channel, member.known_seq, state.closed_below, seq, state.clock),
                bulk=channel == BULK,
            )


def manifest_of(state: SyncerState) -> dict[str, Any]:
    """What the syncer was: versions, and how far each learner's records reach."""
    return {
        "versions": list(state.versions),
        "merges": state.merges,
        "round": state.closed_below,
        "steps": {str(m.learner): m.last_step for m in state.members.values()},
        "contributed": {str(m.learner): list(m.last_merged_step) for m in state.members.values()},
    }


def _part_of(core: SyncerCore, member: Member, snapshot: int) -> Part | None:
    taking = core.state.snapshot
    if taking is None or taking.number != snapshot or taking.writing:
        return None
    part = taking.parts.get(member.learner)
    return part if part is not None and part.incarnation == member.incarnation else None


def mark_came(core: SyncerCore, member: Member, message: Mark) -> None:
    """A learner's MARKER: what comes on this channel from now on was sent after its state was taken."""
    part = _part_of(core, member, message.snapshot)
    if part is not None:
        part.marked[message.channel] = True
        _write_when_whole(core)


def part_came(core: SyncerCore, member: Member, message: StateCopy) -> None:
    """A learner's state; one that did not come whole is none."""
    part = _part_of(core, member, message.number)
    taking = core.state.snapshot
    if part is None or taking is None or part.kept:
        core.out.append(Release(message.handle))
        return
    if message.handle < 0:
        abandon(core, "damaged", {"damaged": label_of(process_of(member.learner))})
        return
    part.kept, part.seq, part.step, part.base = True, message.copied, message.step, list(message.base)
    part.digest, part.nbytes, part.facts = message.digest, message.nbytes, message.facts
    taking.handles.append(message.handle)
    core.out.append(KeepPart(message.number, member.learner, message.handle))
    _write_when_whole(core)


def note_in_flight(core: SyncerCore, member: Member, message: Fragment | Metadata) -> None:
    """What a participant had sent before its MARKER and was on its way when the syncer's state was taken."""
    taking = core.state.snapshot
    part = taking.parts.get(member.learner) if taking is not None else None
    channel = BULK if isinstance(message, Fragment) else CONTROL
    if taking is None or part is None or part.marked[channel] or len(taking.in_flight) >= IN_FLIGHT_MAX:
        return
    entry: dict[str, Any] = {"from": label_of(process_of(member.learner)), "kind": type(message).__name__.lower()}
    if isinstance(message, Fragment):
        entry |= {"round": message.round, "fragment": message.fragment, "step": message.step}
    else:
        entry |= {"step": message.n}
    taking.in_flight.append(entry)


def lost(core: SyncerCore, learner: int) -> None:
    """A participant is gone: what it has answered stays, else the snapshot is taken without it, if others are left."""
    taking = core.state.snapshot
    if taking is None or learner not in taking.parts or taking.writing:
        return
    if not _is_whole(taking.parts[learner]):
        del taking.parts[learner]
    if not taking.parts:
        abandon(core, "every learner is gone")
        return
    _write_when_whole(core)


def _is_whole(part: Part) -> bool:
    return part.kept and all(part.marked)


def _write_when_whole(core: SyncerCore) -> None:
    taking = core.state.snapshot
    if taking is None or taking.writing or not all(map(_is_whole, taking.parts.values())):
        return
    fault = inconsistency(taking)
    if fault:
        abandon(core, "inconsistent", {"fault": fault})
        return
    taking.writing = True
    core.out.append(WriteSnapshot(taking.number, whole_manifest(core, taking)))
    state_transfers.snapshot_over(core)


def inconsistency(taking: Snapshotting) -> str:
    """The check of section 13, as a line that says what is wrong; empty if nothing is."""
    versions = taking.manifest["versions"]
    for learner, part in taking.parts.items():
        if any(base > version for base, version in zip(part.base, versions, strict=True)):
            return f"L{learner} holds versions {part.base}, the syncer {versions}"
        if max(taking.manifest["contributed"].get(str(learner), [-1])) > part.step:
            return f"Theta holds work of L{learner} that was captured after its own step {part.step}"
    return ""


def whole_manifest(core: SyncerCore, taking: Snapshotting) -> dict[str, Any]:
    """What the snapshot says of itself: the syncer, every part, and what was in flight."""
    steps = {**taking.manifest["steps"], **{str(m): part.step for m, part in sorted(taking.parts.items())}}
    parts = {
        str(m): {
            "seq": part.seq,
            "step": part.step,
            "base": part.base,
            "digest": part.digest,
            "bytes": part.nbytes,
            "facts": part.facts,
        }
        for m, part in sorted(taking.parts.items())
    }
    return {
        "snapshot": taking.number,
        "epoch": core.state.epoch,
        "seq": taking.seq,
        **taking.manifest,
        "steps": steps,
        "learners": parts,
        "in_flight": taking.in_flight,
    }


def written(core: SyncerCore, event: SnapshotWritten) -> None:
    """It lies on disk, whole; or it does not."""
    state = core.state
    taking = state.snapshot
    if taking is None or taking.number != event.snapshot:
        return
    if event.reason:
        abandon(core, event.reason)
        return
    manifest = whole_manifest(core, taking)
    core.record(
        Kind.SNAPSHOT_COMPLETED,
        value=float(taking.number),
        digest=event.digest,
        detail={
            "versions": manifest["versions"],
            "steps": manifest["steps"],
            "parts": {m: part["step"] for m, part in manifest["learners"].items()},
            "open": {m: part["facts"]["c_tokens"] for m, part in manifest["learners"].items()},
        },
    )
    state.snapshot_done = taking.number
    state.snapshot_steps = {m: part.step for m, part in sorted(taking.parts.items())}
    _over(core, taking)


def abandon(core: SyncerCore, reason: str, detail: dict[str, Any] | None = None) -> None:
    """Give the snapshot up; the one before it stays the newest."""
    taking = core.state.snapshot
    if taking is None:
        return
    core.record(Kind.SNAPSHOT_ABANDONED, value=float(taking.number), reason=reason, detail=detail or {})
    core.out.append(DropSnapshot(taking.number))
    _over(core, taking)


def why_given_up(reason: str, detail: dict[str, Any]) -> str:
    """Why a snapshot was given up, in words, from what its record says."""
    if detail.get("missing"):
        return f"{', '.join(detail['missing'])} did not answer"
    if detail.get("damaged"):
        return f"the state of {detail['damaged']} did not come whole"
    return str(detail.get("fault") or reason).replace("_", " ")


def _over(core: SyncerCore, taking: Snapshotting) -> None:
    for handle in taking.handles:
        core.out.append(Release(handle))
    core.state.snapshot = None
    state_transfers.snapshot_over(core)


def expire(core: SyncerCore) -> None:
    """A snapshot that somebody does not answer is given up."""
    taking, limit = core.state.snapshot, core.state.fixed.state_limit_ns
    if taking is not None and not taking.writing and core.now - taking.started_at >= limit:
        missing = [label_of(process_of(m)) for m, part in taking.parts.items() if not _is_whole(part)]
        abandon(core, "unanswered", {"missing": missing})


def wake_at(core: SyncerCore) -> int:
    """When a snapshot runs out, or the next is due by the clock."""
    state = core.state
    if state.snapshot is not None:
        return 2**62 if state.snapshot.writing else state.snapshot.started_at + state.fixed.state_limit_ns
    if state.began and state.fixed.snapshot_every_ns and not state.ending and not state.transfers:
        return state.snapshot_at + state.fixed.snapshot_every_ns
    return 2**62
