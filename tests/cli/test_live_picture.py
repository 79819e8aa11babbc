from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from workbench.cli.live_picture import STATES, changes, failures, heading, line, news, picture, remedy, state_of

Status = dict[str, Any]


def learner(m: int, /, **facts: Any) -> Status:
    return {
        "learner": m, "label": f"L{m}", "state": "running", "pid": 100 + m, "number": 1, "line": "",
        "line_of": 0, "how": "", "log": f"runs/x/logs/L{m}.log", "acting": [], "connected": True, "healed": True,
        "counts": True, "stalled": False, "step": 120, "loss": 2.3456, "behind": 0.25, "tokens_per_s": 1234.5,
        **facts,
    }  # fmt: skip


def status(learners: int = 3, **facts: Any) -> Status:
    return {
        "phase": "running", "merges": 40, "rounds": 900, "round": 42, "elapsed_s": 14.34, "began_s": 2.0,
        "val_loss": 2.5, "quorum": 2, "quorum_lost": False, "quorum_lost_since_s": None, "grace": "adaptive",
        "window_s": 0.0423, "storage_full": "",
        "last_merge": {"round": 40, "fragment": 4, "learners": [0, 2], "time_s": 14.1},
        "learners": [learner(m) for m in range(learners)], **facts,
    }  # fmt: skip


def drawn(found: Status, width: int = 80, height: int = 24, encoding: str = "utf-8") -> list[str]:
    from workbench.cli import output

    raw = io.BytesIO()
    output.codecs.register_error("plain", output.in_plain_characters)
    file = io.TextIOWrapper(raw, encoding=encoding, errors="plain")
    Console(file=file, width=width).print(picture(found, width, height))
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


def test_picture_says_what_goes_on() -> None:
    assert drawn(status()) == [
        "running        12.3 s of rounds, merges  40 of 900, round 42",
        "loss        2.500 nats per byte (validation)",
        "last merge   0.2 s ago, round 40, fragment 4, of L0, L2",
        "quorum      2 needed, 3 of 3 there",
        "grace       adaptive, last window   42.3 ms",
        "",
        "learner  state            step    loss  behind  tokens/s",
        "L0       ▸ training        120   2.346    0.25     1,234",
        "L1       ▸ training        120   2.346    0.25     1,234",
        "L2       ▸ training        120   2.346    0.25     1,234",
        "loss: nats per byte of its last batch; behind: versions, mean over fragments",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_or_higher_than_the_terminal(width: int) -> None:
    found = status(200, storage_full="no room " * 30, quorum_lost=True, quorum_lost_since_s=1.0)
    found["learners"][150] = learner(150, state="waiting", how="SIGKILL " * 20)
    lines = drawn(found, width, 24)
    assert len(lines) < 24
    assert max(map(len, lines)) <= width
    assert any(text.startswith("L150") and "down" in text for text in lines), "who is in trouble is shown"
    shown = sum(text.startswith("L") for text in lines)
    assert f"not shown: {200 - shown} learners"[:width] in [text.rstrip() for text in lines]


def test_digits_change_in_their_places() -> None:
    small = status(elapsed_s=3.0, merges=1)
    small["learners"] = [learner(m, step=1, loss=0.5, behind=0.0, tokens_per_s=1.0) for m in range(3)]
    large = status(elapsed_s=99999.9, merges=899)
    large["learners"] = [learner(m, step=99_999, loss=15.55, behind=99.99, tokens_per_s=999_999.0) for m in range(3)]
    one, other = drawn(small), drawn(large)
    for word in (" s of rounds, merges", " of 900"):
        assert one[0].index(word) == other[0].index(word)
    assert len({len(text) for text in (*one[6:10], *other[6:10])}) == 1


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({}, "training"),
        ({"state": "waiting", "number": 0}, "waiting"),
        ({"state": "waiting", "number": 1, "connected": False}, "down"),
        ({"state": "starting"}, "starting"),
        ({"state": "stopped"}, "stopped"),
        ({"state": "failed"}, "failed"),
        ({"state": "ended"}, "ended"),
        ({"connected": False}, "waiting"),
        ({"state": "never seen", "number": 0, "connected": False}, "waiting"),
        ({"state": "lost", "connected": False}, "lost"),
        ({"state": "left", "connected": False}, "left"),
        ({"state": "silent", "connected": False}, "silent"),
        ({"connected": False, "lost": "heartbeat"}, "silent"),
        ({"connected": False, "lost": "ended"}, "ended"),
        ({"connected": False, "lost": "socket"}, "waiting"),
        ({"state": "connected"}, "training"),
        ({"healed": False}, "healing"),
        ({"stalled": True}, "stalled"),
        ({"acting": ["slow"]}, "slow"),
        ({"acting": ["cut_up"], "connected": False}, "cut off"),
    ],
)
def test_states_have_a_word_and_a_sign(facts: Status, word: str) -> None:
    one = learner(0, **facts)
    assert state_of(one) == word
    assert f"{STATES[word]} {word}" in drawn(status(learners=0) | {"learners": [one]})[7]


def test_who_does_not_step_has_no_rate_and_says_how_it_ended() -> None:
    found = status()
    found["learners"][1] = learner(1, state="waiting", how="SIGKILL", connected=False, counts=False)
    assert drawn(found)[8] == "L1       ✕ down            120                            SIGKILL"


def test_of_whom_nothing_is_heard_it_says_for_how_long() -> None:
    found = status()
    found["learners"][1] = learner(1, connected=False, counts=False, lost="heartbeat", silent_s=12.3)
    assert drawn(found)[8].split(maxsplit=4) == ["L1", "✕", "silent", "120", "no heartbeat for 12 s"]


def test_nobody_waits_for_who_has_ended_for_good() -> None:
    found = status(4)
    found["learners"][0] = learner(0, state="ended", connected=False, counts=False)
    found["learners"][1] = learner(1, state="starting", connected=False, counts=False)
    assert drawn(found)[3] == "quorum      2 needed, 2 of 4 there, L0 ended, waiting for L1"
    found |= {"quorum": 3, "quorum_lost": True, "quorum_lost_since_s": 14.34}
    assert drawn(found)[3] == "quorum      LOST: 2 of 3 there, L0 ended, waiting for L1 since 0.0 s"


def test_who_is_started_by_hand_is_shown_with_its_place() -> None:
    found = status()
    found["learners"] = [
        learner(0, state="connected", where="far, pid 7", starts=2),
        learner(1, state="never seen", number=0, connected=False),
    ]
    lines = drawn(found)
    assert lines[7].endswith("start 2, on far, pid 7") and lines[8].endswith("never seen")


def test_a_run_that_has_had_no_quorum_yet_waits_for_learners() -> None:
    found = status(2, quorum=2, gathers=True)
    found["learners"][1] = learner(1, state="never seen", number=0, connected=False, counts=False)
    assert "waits for learners: 1 of 2 there" in drawn(found)[3] and "LOST" not in "".join(drawn(found))
    assert "LOST" not in line(found)


def test_a_lost_quorum_says_who_is_missing_and_since_when() -> None:
    found = status(4, quorum=3, quorum_lost=True, quorum_lost_since_s=11.14)
    for m in (1, 2):
        found["learners"][m] = learner(m, state="waiting", connected=False, counts=False)
    assert "LOST: 2 of 3 there, waiting for L1, L2 since 3.2 s" in drawn(found)[3]
    assert "quorum LOST: 2 of 3 there, waiting for L1, L2 since 3.2 s" in line(found)
    assert changes(found) != changes(status(4))


def test_a_quarantine_that_takes_the_quorum_says_what_to_type() -> None:
    found = status(3, quorum=3, quorum_lost=True, quorum_lost_since_s=11.14, run="runs/x")
    assert not remedy(found)
    found["learners"][2] = learner(2, quarantined=True, counts=False)
    said = "workbench control runs/x release L2"
    assert "LOST: 2 of 3 there, L2 quarantined since 3.2 s" in drawn(found)[3]
    assert drawn(found)[5] == f"to go on    {said}" and f"to go on: {said}" in line(found)
    assert "to go on    workbench control RUN release L2" in drawn(found | {"run": "far/" * 30})
    assert not remedy(found | {"quorum_lost": False}), "with a smaller quorum nobody has to be released"


def test_planned_faults_that_were_skipped_are_told_once() -> None:
    found = status(skipped=["kill of L1 at 3 s"])
    assert news(found) == {("skipped", 1): "skipped, since nothing ran when they were due: kill of L1 at 3 s"}
    assert news(status()) == {}


def test_a_run_that_has_only_begun_can_be_shown() -> None:
    bare = {"phase": "starting", "merges": 0, "rounds": 9, "elapsed_s": 0.1, "val_loss": None, "learners": []}
    bare["learners"] = [{"learner": 0, "label": "L0", "state": "waiting", "number": 0, "line": "", "line_of": 0}]
    assert "L0       … waiting" in drawn(bare)[7]
    assert heading(bare)[3].text == "the syncer is starting"
    assert line(bare) == "starting: merges 0/9, 0 s since the start, L0 waiting"


def test_a_terminal_without_the_signs_gets_plain_ones() -> None:
    found = status()
    found["learners"][1] = learner(1, state="failed", how="exit 3")
    lines = drawn(found, encoding="ascii")
    assert lines[7].startswith("L0       > training")
    assert lines[8].startswith("L1       x failed")


def test_failures_are_told_by_start_with_the_log() -> None:
    found = status()
    found["learners"][2] = learner(2, line="ValueError: seven", line_of=3)
    assert failures(found) == {("L2", 3): "L2 failed (start 3): ValueError: seven; runs/x/logs/L2.log"}
    assert failures(status()) == {}


def test_a_syncer_that_says_nothing_is_said_to_be_silent() -> None:
    stopped = {"state": "stopped", "pid": 1, "number": 1, "silent_s": 12.3}
    lines = {one.label: one for one in heading(status(syncer=stopped))}
    assert lines["syncer"].text == "stopped, silent for 12 s: what is shown of merges and learners is as old"
    assert "syncer" not in {one.label for one in heading(status(syncer={**stopped, "silent_s": 0.4}))}


def test_a_narrow_terminal_cuts_neither_the_legend_nor_the_pid() -> None:
    found = status(1)
    found["learners"][0] = learner(0, where="node-7.rack.example.org, pid 4711", starts=2)
    assert drawn(found)[7].endswith("start 2, on node-7, p…")
    assert drawn(found, width=100)[7].endswith("start 2, on node-7, pid 4711")
    narrow = drawn(found, width=60)
    assert narrow[-2:] == ["loss: nats per byte of its last batch", "behind: versions, mean over fragments"]
    address = learner(0, where="10.0.0.7, pid 4711")
    assert drawn(found | {"learners": [address]}, width=100)[7].endswith("on 10.0.0.7, pid 4711")
