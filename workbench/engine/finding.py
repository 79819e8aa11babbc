"""Finding a syncer and agreeing with it, by a learner that was started by hand, with patience."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from workbench.config import ConfigError
from workbench.engine.asking import NO_HANDSHAKE, Answer, ask
from workbench.engine.frames import Ask, Facts
from workbench.engine.security import ClientKeys
from workbench.protocol.records import label_of, process_of

ANSWER_LIMIT_S = 2.0
ANSWER_LEAST_S = 0.2
"""So long an answer is waited for, however short the limit."""
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.25, 5.0
SAY_EVERY_S = 5.0
HANDSHAKES_MAX = 3
"""After so many handshakes in a row that came to nothing it is no matter of waiting."""


class Limit(NamedTuple):
    """How long something is waited for, and which setting says so."""

    name: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} {self.seconds:g}" if self.name.startswith("-") else f"{self.name} = {self.seconds:g}"


def first_limit(connect_limit_s: float, patience_s: float) -> Limit:
    """How long a first connection is waited for: nobody's patience lasts longer than he says."""
    if patience_s < connect_limit_s:
        return Limit("--patience", patience_s)
    return Limit("connect_limit_s", connect_limit_s)


class Finding:
    """Asks until somebody answers.

    Parameters
    ----------
    address : str
    keys : ClientKeys or None
    learner : int
    limit : Limit
        How long to wait for an answer.

    Attributes
    ----------
    facts : Facts
        What the syncer said last.
    origin_ns : int
        Monotonic time, of this machine, at which the run began.
    line : str
        Why nothing was found.
    """

    def __init__(self, address: str, keys: ClientKeys | None, learner: int, limit: Limit) -> None:
        self.address, self.keys, self.learner, self.limit = address, keys, learner, limit
        self.label = label_of(process_of(learner))
        self.facts: Facts
        self.origin_ns = 0
        self.line = ""

    def agree(self, claims: Mapping[str, str]) -> bool:
        """Have the syncer compare; False if none answers within the limit.

        Raises
        ------
        ConfigError
            It will not have this learner: the line says why.
        """
        began = time.monotonic()
        until = began + self.limit.seconds
        said, pause, handshakes = began - SAY_EVERY_S, BACKOFF_FIRST_S, 0
        while True:
            wait_s = min(ANSWER_LIMIT_S, max(ANSWER_LEAST_S, until - time.monotonic()))
            answer = ask(self.address, self.keys, Ask(self.learner, dict(claims)), wait_s)
            if answer.refusal:
                raise ConfigError(f"refused by the syncer at {self.address}: {answer.refusal}")
            if answer.facts is not None:
                self._take(answer)
                return True
            handshakes = handshakes + 1 if answer.trouble == NO_HANDSHAKE else 0
            if handshakes >= HANDSHAKES_MAX:
                raise ConfigError(f"{self.address}: {answer.trouble}")
            now = time.monotonic()
            if now + pause >= until:
                self.line = (
                    f"found no syncer at {self.address} within {self.limit} ({answer.trouble}): "
                    "its run may be over; start the syncer first, or give its address with --connect"
                )
                time.sleep(max(0.0, until - now))
                return False
            if now - said >= SAY_EVERY_S:
                said = now
                self._say(f"waits for the syncer at {self.address}, {now - began:.0f} s ({answer.trouble})")
            time.sleep(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)

    def _take(self, answer: Answer) -> None:
        assert answer.facts is not None
        self.facts, self.origin_ns = answer.facts, answer.origin_ns

    def look(self, fingerprint: Mapping[str, str]) -> None:
        """Say in what this machine differs from that of the syncer, and whose place it takes."""
        there = self.facts.fingerprint
        differing = [
            f"{name} {there.get(name) or 'none'} there, {fingerprint.get(name) or 'none'} here"
            for name in sorted({*there, *fingerprint})
            if there.get(name, "") != fingerprint.get(name, "")
        ]
        if differing:
            self._say(f"no one machine will replay this run bit for bit: {'; '.join(differing)}")
        if self.facts.present:
            self._say(f"takes the place of the process that is {self.label} now ({self.facts.present})")

    def _say(self, what: str) -> None:
        print(f"{self.label} {what}", file=sys.stderr, flush=True)
