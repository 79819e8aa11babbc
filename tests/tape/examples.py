"""A small run's records, made by rule: what the machines would journal, without running them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.protocol.records import SUPERVISOR, SYNCER, Kind, Record, process_of


class Script:
    """Hands out seq and clock, so that examples read like what happened."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch
        self.clocks: dict[int, dict[int, int]] = {}
        self.now = 0

    def __call__(self, kind: Kind, process: int, cause: Record | None = None, **fields: Any) -> Record:
        clock = self.clocks.setdefault(process, {})
        if cause is not None:
            for other, count in enumerate(cause.clock):
                clock[other] = max(clock.get(other, 0), count)
        clock[process] = clock.get(process, 0) + 1
        self.now += 1000
        return Record(
            kind=int(kind), process=process, incarnation=fields.pop("incarnation", 0), seq=clock[process],
            time_ns=self.now, clock=tuple(clock.get(i, 0) for i in range(max(clock) + 1)),
            cause=None if cause is None else (cause.process, cause.seq), epoch=self.epoch, **fields,
        )  # fmt: skip


def run_records(rounds: int = 3, learners: int = 2, fragments: int = 2, epoch: int = 0) -> list[Record]:
    """Records of a run in which the last learner's fragment is dropped as late in odd rounds."""
    script = Script(epoch)
    records = [
        script(
            Kind.SYNCER_STARTED, SYNCER, reason="new", detail={"host": "h", "pid": 10, "fingerprint": {"jaxlib": "1"}}
        )
    ]
    for m in range(learners):
        start = script(
            Kind.PROCESS_STARTED, SUPERVISOR, peer=process_of(m), value=1.0, detail={"pid": 100 + m, "host": "h"}
        )
        joined = script(
            Kind.LEARNER_JOINED, SYNCER, cause=start, peer=process_of(m), value=1.0, version=0, step=0, reason="process"
        )
        adopted = script(
            Kind.STATE_ADOPTED, process_of(m), cause=joined, peer=SYNCER, reason="initial", digest=5, tokens=0
        )
        records += [start, joined, adopted]
    records.append(script(Kind.ROUNDS_BEGAN, SYNCER, value=float(learners), reason="all"))
    records.append(
        script(
            Kind.SETTING_CHANGED, SYNCER, setting=1, detail={"values": {"grace_s": 0.5, "merge": "mean"}, "who": "cli"}
        )
    )
    records.append(script(Kind.SETTING_APPLIED, SYNCER, setting=1, round=0))
    records.append(script(Kind.SETTING_APPLIED, process_of(0), setting=1, step=0))
    for t in range(rounds):
        records += _round(script, t, t % fragments, 1 + t // fragments, learners)
    records.append(
        script(Kind.EVALUATED, 2, value=2.0, tokens=100, steps=rounds, detail={"versions": [1, 1], "seconds": 0.25})
    )
    lost = script(Kind.LEARNER_LOST, SYNCER, peer=process_of(0), version=0, reason="exit")
    return [*records, lost, script(Kind.RUN_ENDED, SYNCER, reason="rounds", value=float(rounds))]


def _round(script: Script, t: int, p: int, version: int, learners: int) -> Iterator[Record]:
    names: dict[str, Any] = {"round": t, "fragment": p}
    for m in range(learners):
        stamp = script.now
        yield script(
            Kind.STEP_ENDED, process_of(m), step=t, global_step=t, steps=1, tokens=512, value=5.0 - t,
            detail={"batch": 8, "accumulation": 1, "start_ns": stamp,
                    "end_ns": stamp + 9, "injected_ns": 7, "waited_ns": 3},
        )  # fmt: skip
    yield script(Kind.ROUND_OPENED, SYNCER, **names, version=version - 1, setting=1)
    used: list[int] = []
    for m in range(learners):
        pull = script(Kind.PULL_SENT, SYNCER, peer=process_of(m), base_version=version - 1, reason="f32", **names)
        counted = {**names, "base_version": version - 1, "step": t, "steps": 1, "tokens": 512, "digest": 900 + m}
        captured = script(Kind.FRAGMENT_CAPTURED, process_of(m), cause=pull, reason="f32", **counted)
        yield pull
        yield captured
        detail = {"bytes": 4096, "captured_ns": captured.time_ns}
        late = t % 2 == 1 and m == learners - 1
        kind, reason = (Kind.FRAGMENT_DROPPED, "late") if late else (Kind.FRAGMENT_ARRIVED, "f32")
        yield script(kind, SYNCER, cause=captured, peer=process_of(m), reason=reason, detail=detail, **counted)
        used += [] if late else [m]
    n = len(used)
    yield script(
        Kind.MERGED, SYNCER, **names, version=version, base_version=version - 1, tokens=512 * n, digest=77, setting=1,
        detail={
            "learners": used, "steps_captured": [t] * n, "c_steps": [1] * n, "c_tokens": [512] * n,
            "weights": [0.5] * n, "base_versions": [version - 1] * n, "norms": [0.25] * n, "cosines": [0.9] * n,
            "digests": [900 + m for m in used], "norm": 0.3, "outer_digest": 88,
            "first_ready_ns": 1, "quorum_ns": 2, "grace_ns": 3, "pull_ns": 4, "merge_ns": 5,
        },
    )  # fmt: skip
    yield script(Kind.MERGE_COMMITTED, SYNCER, **names, version=version)
    for m in range(learners):
        sent = script(Kind.UPDATE_SENT, SYNCER, peer=process_of(m), version=version, **names)
        yield sent
        yield script(
            Kind.UPDATE_FOLDED, process_of(m), cause=sent, **names, version=version, base_version=version - 1, step=t,
            global_step=t, steps=1, tokens=512, reason="overwrite", detail={"reference": -1, "included": 1, "anew": 0},
        )  # fmt: skip


def snapshot_records(epoch: int = 0) -> list[Record]:
    """Records of a snapshot that is complete, with one learner, and of one that is abandoned."""
    script = Script(epoch)
    taken = [
        script(Kind.SNAPSHOT_RECORDED, SYNCER, value=float(n), detail={"versions": [3, 2], "merges": 5, "steps": {}})
        for n in (1, 2)
    ]
    first = process_of(0)
    part = script(Kind.SNAPSHOT_RECORDED, first, cause=taken[0], value=1.0, step=7, detail={"base": [3, 2]})
    left = script(Kind.STATE_LEFT, first, peer=SYNCER, value=1.0, version=part.seq, digest=9, detail={"bytes": 64})
    done = {"versions": [3, 2], "steps": {"0": 7}, "parts": {"0": 7}, "open": {"0": [0, 0]}}
    complete = script(Kind.SNAPSHOT_COMPLETED, SYNCER, value=1.0, digest=8, detail=done)
    return [*taken, part, left, complete, script(Kind.SNAPSHOT_ABANDONED, SYNCER, value=2.0, reason="run_ended")]


RECORDS = run_records(rounds=4)
"""Of a run of four rounds."""
