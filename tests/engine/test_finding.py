"""Finding a syncer: how long, what is said meanwhile, and what is no matter of waiting."""

from __future__ import annotations

import pytest

from workbench.config import ConfigError
from workbench.engine import finding
from workbench.engine.asking import NO_HANDSHAKE, NOBODY, Answer
from workbench.engine.finding import ANSWER_LEAST_S, HANDSHAKES_MAX, Finding, Limit, first_limit
from workbench.engine.frames import Ask, Facts

ADDRESS = "tcp://127.0.0.1:9"
FACTS = Facts("run", 3, 0, {"numpy": "1", "jaxlib": "2"}, "far, pid 7")


class Script:
    """Answers one by one, the last again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.questions: list[Ask] = []

    def __call__(self, address: str, keys: object, question: Ask, timeout_s: float) -> Answer:
        assert address == ADDRESS and timeout_s < 3.0, "the first line comes within 3 s"
        self.questions.append(question)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    made = Script(Answer(trouble=NOBODY))
    monkeypatch.setattr(finding, "ask", made)
    monkeypatch.setattr(finding, "BACKOFF_FIRST_S", 0.01)
    return made


def test_it_asks_until_somebody_answers_and_says_at_once_that_it_waits(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    script.answers = [Answer(trouble=NOBODY), Answer(trouble=NOBODY), Answer(FACTS, 5)]
    found = Finding(ADDRESS, None, 1, Limit("connect_limit_s", 60.0))
    assert found.agree({"seed": "0"})
    assert (found.facts, found.origin_ns, len(script.questions)) == (FACTS, 5, 3)
    assert script.questions[0] == Ask(1, {"seed": "0"})
    assert capsys.readouterr().err == f"L1 waits for the syncer at {ADDRESS}, 0 s (nothing answers there)\n"


class Clock:
    """Time that passes only while somebody sleeps [s]."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_nobody_within_the_limit_is_one_line_and_takes_the_whole_limit(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(finding, "time", clock)
    found = Finding(ADDRESS, None, 0, Limit("connect_limit_s", 0.2))
    assert not found.agree({})
    assert clock.now == pytest.approx(100.2)
    assert len(script.questions) == 5, "after 0, 10, 30, 70 and 150 ms"
    assert found.line.startswith(f"found no syncer at {ADDRESS} within connect_limit_s = 0.2 (nothing answers there)")


@pytest.mark.parametrize(
    ("patience_s", "limit"), [(3.0, "--patience 3"), (0.0, "--patience 0"), (600.0, "connect_limit_s = 60")]
)
def test_patience_bounds_the_first_connection_too(
    monkeypatch: pytest.MonkeyPatch, patience_s: float, limit: str
) -> None:
    clock = Clock()
    waits: list[float] = []

    def nobody(address: str, keys: object, question: Ask, timeout_s: float) -> Answer:
        waits.append(timeout_s)
        clock.sleep(timeout_s)
        return Answer(trouble=NOBODY)

    monkeypatch.setattr(finding, "time", clock)
    monkeypatch.setattr(finding, "ask", nobody)
    found = Finding(ADDRESS, None, 0, first_limit(60.0, patience_s))
    assert not found.agree({})
    assert found.line.startswith(f"found no syncer at {ADDRESS} within {limit} (nothing answers there)")
    assert clock.now == pytest.approx(100.0 + max(min(patience_s, 60.0), ANSWER_LEAST_S))
    assert min(waits) >= ANSWER_LEAST_S


def test_a_refusal_is_final(script: Script) -> None:
    script.answers = [Answer(refusal="seed = 1 at the learner, 0 at the syncer")]
    with pytest.raises(ConfigError, match=r"refused by the syncer at .*: seed = 1 at the learner"):
        Finding(ADDRESS, None, 0, Limit("connect_limit_s", 60.0)).agree({})
    assert len(script.questions) == 1


def test_handshakes_that_come_to_nothing_are_no_matter_of_waiting(script: Script) -> None:
    script.answers = [Answer(trouble=NO_HANDSHAKE), Answer(trouble=NOBODY), Answer(trouble=NO_HANDSHAKE)]
    with pytest.raises(ConfigError, match="completes no handshake"):
        Finding(ADDRESS, None, 0, Limit("connect_limit_s", 60.0)).agree({})
    assert len(script.questions) == 2 + HANDSHAKES_MAX


def test_what_differs_between_the_machines_and_whose_place_is_taken_is_said(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    script.answers = [Answer(FACTS, 5)]
    found = Finding(ADDRESS, None, 2, Limit("connect_limit_s", 60.0))
    assert found.agree({})
    found.look({"numpy": "1", "jaxlib": "3"})
    said = capsys.readouterr().err
    assert "jaxlib 2 there, 3 here" in said and "numpy" not in said
    assert "takes the place of the process that is L2 now (far, pid 7)" in said
