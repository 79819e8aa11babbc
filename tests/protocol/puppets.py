"""Small runs, and learners of which only the messages exist."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.algorithms.schedule import offsets
from workbench.config import RunConfig
from workbench.protocol import messages as msg
from workbench.protocol.clocks import ticked
from workbench.protocol.records import Kind, Record, process_of
from workbench.protocol.settings import (
    FixedSettings,
    SettingsBook,
    fixed_settings_of,
    learner_settings_of,
    merge_settings_of,
    policy_of,
)

SECOND = 10**9
MS = 10**6
STEP_NS = 100 * MS
TOKENS = 100


def config_of(**keys: Any) -> RunConfig:
    """A small run: 2 learners, one fragment due at every second step, no overlap, closed at quorum."""
    small = {"learners": 2, "rounds": 1000, "period": 2, "fragments": 1, "overlap": 0, "grace": "none"}
    return RunConfig(**{**small, **keys})


def fixed_of(config: RunConfig) -> FixedSettings:
    """Fixed settings with evenly spread offsets."""
    return fixed_settings_of(config, offsets(config.fragments, config.period))


def book_of(config: RunConfig) -> SettingsBook:
    """The settings that a run begins with."""
    return SettingsBook(0, policy_of(config), merge_settings_of(config), learner_settings_of(config), config.inner.rate)


def record(kind: Kind, process: int, seq: int, incarnation: int = 1, time_ns: int = 0, **columns: Any) -> Record:
    """A record of a process that knows of itself only."""
    return Record(kind, process, incarnation, seq, time_ns, ticked((), process, seq), **columns)


@dataclass
class Puppet:
    """A learner of which only the messages exist; what it says is set by hand."""

    learner: int
    connection: int
    fragments: int
    number: int = 1
    incarnation: int = 0
    seq: int = 0
    n: int = 0
    g: int = 0
    base: list[int] = field(default_factory=list)
    c_steps: list[int] = field(default_factory=list)
    has_state: bool = False
    healed: bool = False
    revision: int = 0
    step_ns: int = STEP_NS
    unsent: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = [-1] * self.fragments
        self.c_steps = [0] * self.fragments

    def record(self, kind: Kind, **columns: Any) -> int:
        """Make the next record; returns its seq."""
        self.seq += 1
        self.unsent.append(record(kind, process_of(self.learner), self.seq, self.incarnation, **columns))
        return self.seq

    def attach(self) -> list[Record]:
        """What was not sent yet."""
        taken, self.unsent = self.unsent, []
        return taken

    @property
    def clock(self) -> tuple[int, ...]:
        """Own entry only."""
        return ticked((), process_of(self.learner), self.seq)

    def count_step(self, tokens: int = TOKENS) -> None:
        """One more step, recorded."""
        self.n += 1
        self.c_steps = [c + 1 for c in self.c_steps]
        self.healed = self.healed or min(self.base) >= 0
        detail = {"start_ns": 0, "end_ns": self.step_ns, "injected_ns": 0, "waited_ns": 0}
        self.record(Kind.STEP_ENDED, step=self.n, global_step=self.g, steps=1, tokens=tokens, detail=detail)
        self.g += 1

    def join(self) -> msg.Join:
        """Ask to take part."""
        tokens = [c * TOKENS for c in self.c_steps]
        return msg.Join(
            self.learner, self.number, self.n, self.g, list(self.c_steps), tokens, list(self.base), self.has_state,
            self.healed, self.clock, self.attach(),
        )  # fmt: skip

    def metadata(self, **changes: Any) -> msg.Metadata:
        """Progress."""
        fields: dict[str, Any] = {
            "learner": self.learner, "incarnation": self.incarnation, "n": self.n, "g": self.g,
            "c_steps": list(self.c_steps), "c_tokens": [c * TOKENS for c in self.c_steps], "base": list(self.base),
            "step_ns": self.step_ns, "healed": self.healed, "waiting": False, "origin": self.seq, "clock": self.clock,
            "records": self.attach(), "revision": self.revision,
        }  # fmt: skip
        return msg.Metadata(**{**fields, **changes})

    def fragment(self, t: int, p: int = 0, **changes: Any) -> msg.Fragment:
        """An answer to a PULL."""
        steps = self.c_steps[p]
        captured = {"fragment": p, "round": t, "base_version": self.base[p], "step": self.n, "reason": "f32"}
        self.record(Kind.FRAGMENT_CAPTURED, steps=steps, tokens=steps * TOKENS, **captured)
        fields: dict[str, Any] = {
            "learner": self.learner, "incarnation": self.incarnation, "round": t, "fragment": p,
            "base_version": self.base[p], "step": self.n, "steps": steps, "tokens": steps * TOKENS, "codec": "f32",
            "digest": 7, "nbytes": 400, "captured_ns": 0, "origin": self.seq, "clock": self.clock,
            "records": self.attach(), "handle": 1000 * (self.learner + 1) + t,
        }  # fmt: skip
        return msg.Fragment(**{**fields, **changes})

    def refusal(self, t: int, p: int = 0, reason: str = "no_steps") -> msg.Refused:
        """Another answer to a PULL."""
        self.record(Kind.PULL_REFUSED, fragment=p, round=t, base_version=self.base[p], reason=reason)
        return msg.Refused(self.learner, self.incarnation, t, p, reason, self.seq, self.clock, self.attach())

    def heartbeat(self) -> msg.Heartbeat:
        """It lives."""
        return msg.Heartbeat(self.learner, self.incarnation, self.clock, self.attach())
