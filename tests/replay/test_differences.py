from __future__ import annotations

import math

import pytest

from workbench.protocol.records import SYNCER, process_of
from workbench.replay.differences import Findings, relative
from workbench.replay.program import SettingApplied, StepEnded, UpdateFolded

EARLY = StepEnded(4, 1, 0, 32, 5.0, 2, 1)
LATE = UpdateFolded(9, 3, 7, 6, 1, "overwrite", 0.0, -1)


def test_the_first_difference_is_the_journals_first_whatever_the_order() -> None:
    findings = Findings()
    findings.digests(LATE, process_of(2), "learner", "digest", 255, 256)
    findings.values(EARLY, process_of(0), "tape", "tokens", 32, 64)
    findings.values(LATE, process_of(1), "tape", "version", 7, 8)
    assert findings.count == 3
    assert findings.first is not None
    assert findings.first.text() == "event 4: step_ended of L0: tokens is 32 on the tape, 64 here (place: tape)"


def test_equal_values_are_no_difference() -> None:
    findings = Findings()
    assert findings.digests(EARLY, SYNCER, "merge", "digest", 5, 5)
    assert findings.values(EARLY, SYNCER, "merge", "word", "a", "a")
    assert findings.numbers(EARLY, SYNCER, "merge", "loss", math.nan, math.nan)
    assert (findings.match, findings.first, findings.count) == ("bit", None, 0)


@pytest.mark.parametrize(("computed", "match"), [(5.0 + 4e-6, "1e-6"), (5.00001, "diverged"), (math.nan, "diverged")])
def test_numbers_fall_into_classes(computed: float, match: str) -> None:
    findings = Findings()
    assert not findings.numbers(EARLY, process_of(0), "learner", "loss", 5.0, computed)
    assert findings.match == match


def test_zero_has_a_sign() -> None:
    findings = Findings()
    assert not findings.numbers(EARLY, process_of(0), "learner", "loss", 0.0, -0.0)
    assert (findings.match, findings.largest) == ("1e-6", 0.0)


def test_what_cannot_be_executed_is_a_sentence_and_diverges() -> None:
    findings = Findings()
    error = findings.impossible(SettingApplied(3, 1.0), process_of(1), "learner", KeyError("nothing"))
    assert "KeyError" in str(error)
    assert findings.first is not None
    assert findings.first.text().startswith("event 3: setting_applied of L1: cannot be executed: KeyError: 'nothing'")
    assert findings.match == "diverged"


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(0.0, 0.0, 0.0), (2.0, 1.0, 0.5), (-1.0, 1.0, 2.0), (math.inf, 1, math.inf)]
)
def test_relative_difference(a: float, b: float, expected: float) -> None:
    assert relative(a, b) == expected
