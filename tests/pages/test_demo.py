from __future__ import annotations

import tomllib

import numpy as np
import pytest

from workbench.pages.demo import CAPTIONS, DEMO, demo_folder
from workbench.pages.recording import Recording
from workbench.protocol.records import Kind

BYTES_MAX = 2_000_000


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording(DEMO)


def test_the_demo_tape_is_small_whole_and_holds_the_faults_of_its_scenario(recording: Recording) -> None:
    files = [path for path in DEMO.rglob("*") if path.is_file()]
    assert demo_folder() == [DEMO] and sum(path.stat().st_size for path in files) < BYTES_MAX
    assert recording.tape.wb.closed
    scenario = tomllib.loads((DEMO.parent / "demo-tape.toml").read_text(encoding="utf-8"))
    struck = recording.places("fault")
    assert [recording.said(event).reason for event in struck] == [fault["kind"] for fault in scenario["fault"]]
    assert len(recording.places("exclusion")) > 10


def test_captions_point_at_what_they_speak_of(recording: Recording) -> None:
    seen = {}
    for caption in CAPTIONS:
        moment = recording.tape.wb.at(recording.at_time(caption.time_s))
        seen[caption.title] = moment
    assert all(one.alive and one.healed and not one.faults for one in seen["grid"].learners)
    assert [one.alive for one in seen["lanes"].learners] == [True, False, True, True]
    assert seen["quorum"].settings["quorum"] == 2 and not seen["quorum"].quorum_lost
    assert seen["grace"].learners[2].faults == ("slow",) and seen["grace"].settings["grace"] == "adaptive"
    cut = seen["staleness"].learners[3]
    assert cut.faults == ("cut",)
    behind = [np.mean(np.subtract(seen["staleness"].versions, one.base)) for one in seen["staleness"].learners]
    assert behind[3] == max(behind) > 1


def test_timelines_never_put_an_effect_before_its_cause(recording: Recording) -> None:
    cause = recording.tape["events"].dataset["cause"].values
    effects = np.flatnonzero(cause >= 0)
    for axis in ("tokens", "rounds", "rank"):
        along = recording.timeline(axis)
        assert (along.values[effects] >= along.values[cause[effects]]).all()
        assert (np.diff(along.until) >= 0).all()
        for part in (0.0, 0.3, 0.7, 1.0):
            event = along.event_at(part)
            assert along.until[event] <= along.low + part * (along.high - along.low) + 1e-9
    rank = recording.timeline("rank").values
    assert (rank[effects] > rank[cause[effects]]).all()
    middle = recording.count // 2
    assert rank[middle] == len(recording.tape.wb.past(middle))
    merged = recording.tape["events"].dataset["kind"].values == int(Kind.MERGED)
    assert merged.sum() == recording.numbers()["merge"]
