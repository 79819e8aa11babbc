"""What the page of a run that goes on makes of records and statuses, without a browser."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.runs import FAULTS, SECOND, fault, simulated
from tests.analysis.tapes import taped
from workbench.pages.event_words import said_of, sentence
from workbench.pages.recording import Recording
from workbench.pages.spans import Spans
from workbench.protocol.faults import Fault
from workbench.protocol.records import Kind
from workbench.views.sources import bands


def test_a_fault_that_found_nobody_is_listed_as_that_and_drawn_nowhere(tmp_path: Path) -> None:
    spans = Spans()
    for effect in (1, 0):
        spans.note(fault(1, 2.0 + effect, "stall", 6.0, effect=effect))
    assert [(one.start_s, one.name) for one in spans.tail.since(0).items] == [(3.0, "stall")]
    assert sentence(said_of(fault(1, 3.0, "stall", effect=0))) == "fault: stall L1: found no process"
    taped(tmp_path / "run", simulated((*FAULTS, Fault("stall", int(2.2 * SECOND), learner=1, for_ns=SECOND))))
    recording = Recording(tmp_path / "run")
    said = [
        sentence(recording.said(event))
        for event in range(recording.count)
        if recording.column("kind")[event] == int(Kind.FAULT_INJECTED)
    ]
    assert said[:2] == ["fault: kill L1 for 1 s", "fault: stall L1: found no process"]
    assert [one.name for one in bands(recording.tape)] == ["kill L1", "stall L2", "slow L0"]
