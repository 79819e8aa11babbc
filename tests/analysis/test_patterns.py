"""Patterns of interaction on a random run: what is found is what reading the records one by one finds."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from tests.tape.virtual_runs import Taped, taped
from workbench.analysis.patterns import find, parts_of
from workbench.config import ConfigError
from workbench.protocol.records import FIRST_LEARNER, Kind

SENT, EXCLUDED = "sent", "excluded"


@pytest.fixture(scope="module", params=(2, 5, 8))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taped:
    return taped(request.param, tmp_path_factory.mktemp("patterns") / "run", every=10**9)


def told(run: Taped) -> dict[tuple[int, int], list[tuple[int, str]]]:
    """By learner and fragment: what was sent and what was excluded, from the records."""
    found: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for event, r in enumerate(run.records):
        if r.kind == Kind.FRAGMENT_CAPTURED:
            found[r.process - FIRST_LEARNER, r.fragment].append((event, SENT))
        elif (r.kind == Kind.FRAGMENT_DROPPED and r.reason != "duplicate") or r.kind == Kind.REFUSAL_ARRIVED:
            found[r.peer - FIRST_LEARNER, r.fragment].append((event, EXCLUDED))
        elif r.kind == Kind.GRACE_ENDED:
            for learner in r.detail.get("left_out", {}):
                found[int(learner), r.fragment].append((event, EXCLUDED))
    return found


@pytest.mark.parametrize("pattern", [(SENT, EXCLUDED), (EXCLUDED, SENT), (SENT, EXCLUDED, SENT)])
def test_what_is_found_is_what_the_records_hold(run: Taped, pattern: tuple[str, ...]) -> None:
    expected = set()
    for (learner, fragment), events in told(run).items():
        for at in range(len(events) - len(pattern) + 1):
            part = events[at : at + len(pattern)]
            numbers = tuple(event for event, _ in part)
            causal = all(run.tape.wb.before(a, b) for a, b in pairwise(numbers))
            if tuple(word for _, word in part) == pattern and causal:
                expected.add((numbers, learner, fragment))
    found = run.tape.wb.find(" -> ".join(pattern))
    rows = zip(found["event"].values.tolist(), found["learner"].values, found["fragment"].values, strict=True)
    assert {(tuple(events), int(m), int(p)) for events, m, p in rows} == expected
    assert found["event"].values[:, 0].tolist() == sorted(found["event"].values[:, 0].tolist())
    assert found["start_s"].attrs["units"] == "s" and bool((found["end_s"] >= found["start_s"]).all())


def test_some_patterns_are_there_and_one_learner_may_be_asked_for(run: Taped) -> None:
    every = find(run.tape, "sent, merged, folded")
    assert every.sizes["match"] > 0
    learner = int(every["learner"][0])
    mine = find(run.tape, "sent, merged, folded", learner=learner)
    assert mine.sizes["match"] == int((every["learner"] == learner).sum())
    assert find(run.tape, "died, died, died, died, died, died").sizes["match"] == 0


def test_what_stands_for_nothing_is_refused_with_the_words_that_there_are() -> None:
    with pytest.raises(ConfigError, match="'eaten' in a pattern; allowed: 1 to 8 of stepped, asked, sent"):
        parts_of("sent, eaten")
    with pytest.raises(ConfigError, match="a pattern of 0 words"):
        parts_of(" , ")
