"""Hypothesis strategies and hand-made examples of journal records."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from workbench.protocol.records import FIRST_LEARNER, Kind, Record
from workbench.tape import Input

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-1, 6)
FLOATS = st.floats(allow_nan=False)
WORDS = st.sampled_from(["", "f32", "late", "guard", "duplicate", "a reason with blanks", "x" * 200]) | st.text(
    max_size=8
)
LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
COUNT = st.integers(-2, 2**40)
DIGEST = st.integers(0, 2**64 - 1)


def _lists(inner: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(inner, min_size=size, max_size=size)


@st.composite
def _merge_details(draw: st.DrawFn) -> dict[str, Any]:
    learners = draw(st.lists(st.integers(0, 5), max_size=4, unique=True))
    learners = sorted(learners) if draw(st.booleans()) else learners
    n = len(learners) if draw(st.integers(0, 9)) else 1
    full = {
        "learners": learners,
        "steps_captured": draw(_lists(COUNT, n)),
        "c_steps": draw(_lists(COUNT, n)),
        "c_tokens": draw(_lists(COUNT, n)),
        "weights": draw(_lists(FLOATS, n)),
        "base_versions": draw(_lists(COUNT, n)),
        "norms": draw(_lists(FLOATS, n)),
        "cosines": draw(_lists(FLOATS, n)),
        "digests": draw(_lists(DIGEST, n)),
        "norm": draw(FLOATS),
        "outer_digest": draw(DIGEST),
        "first_ready_ns": draw(COUNT),
        "quorum_ns": draw(COUNT),
        "grace_ns": draw(COUNT),
        "pull_ns": draw(COUNT),
        "merge_ns": draw(COUNT),
    }
    dropped = draw(st.lists(st.sampled_from(sorted(full)), max_size=3))
    return {key: value for key, value in full.items() if key not in dropped}


_TYPED: dict[Kind, st.SearchStrategy[dict[str, Any]]] = {
    Kind.STEP_ENDED: st.fixed_dictionaries(
        dict.fromkeys(("batch", "accumulation", "start_ns", "end_ns", "injected_ns", "waited_ns"), COUNT)
    ),
    Kind.UPDATE_FOLDED: st.fixed_dictionaries({"reference": COUNT, "included": st.integers(0, 1) | st.booleans()}),
    Kind.FRAGMENT_ARRIVED: st.fixed_dictionaries({}, optional={"bytes": COUNT, "captured_ns": COUNT}),
    Kind.FRAGMENT_DROPPED: st.fixed_dictionaries({}, optional={"bytes": COUNT, "captured_ns": COUNT}),
    Kind.MERGED: _merge_details(),
    Kind.EVALUATED: st.fixed_dictionaries({"versions": st.lists(COUNT, max_size=4), "seconds": FLOATS | COUNT}),
    Kind.SETTING_CHANGED: st.fixed_dictionaries({"values": st.dictionaries(st.text(max_size=4), LOOSE), "who": WORDS}),
    Kind.PROCESS_STARTED: st.fixed_dictionaries({"pid": COUNT, "host": WORDS, "fingerprint": LOOSE}),
}
LOOSE_DETAILS: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(st.text(max_size=8), LOOSE, max_size=3)


@st.composite
def journals(draw: st.DrawFn, max_records: int = 25) -> list[Record]:
    """Records in an order that a journal may have: seq counts per process, causes stand before effects."""
    seqs: dict[int, int] = {}
    result: list[Record] = []
    for _ in range(draw(st.integers(1, max_records))):
        process: int = draw(st.integers(0, FIRST_LEARNER + 5))
        seqs[process] = seqs.get(process, 0) + 1
        kind = draw(st.sampled_from(sorted(Kind)))
        cause = draw(st.none() | st.tuples(SMALL, INT64))
        if draw(st.booleans()) and result:
            sender = draw(st.sampled_from(result))
            cause = (sender.process, sender.seq)
        result.append(
            Record(
                kind=int(kind), process=process, incarnation=draw(st.integers(0, 3)), seq=seqs[process],
                time_ns=draw(INT64), clock=tuple(draw(st.lists(st.integers(0, 2**62), max_size=9))), cause=cause,
                peer=draw(st.integers(-1, 8)), fragment=draw(SMALL), round=draw(SMALL), version=draw(SMALL),
                base_version=draw(INT64), step=draw(SMALL), global_step=draw(INT64), steps=draw(SMALL),
                tokens=draw(INT64), value=draw(FLOATS), reason=draw(WORDS), digest=draw(DIGEST), setting=draw(SMALL),
                epoch=draw(st.integers(0, 2)), detail=draw(_TYPED.get(kind, LOOSE_DETAILS) | LOOSE_DETAILS),
            )
        )  # fmt: skip
    return result


inputs = st.builds(Input, st.integers(0, 8), st.integers(0, 3), INT64, st.binary(max_size=40))
