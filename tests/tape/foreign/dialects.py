"""Two made-up dialects of logs, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

EVENTS_MAP = """
time = "t"
replica = "who"
step = "n"
tokens = "tokens"
loss = "loss"
duration = "took"
duration_unit = "ms"
sync = "commit"
participants = "members"
committed = "ok"
[step_when]
event = "step"
[sync_when]
event = "commit"
"""
"""One file, events of all replicas, times in seconds; syncs are reported by one of their participants."""

RANKS_MAP = """
time = "ts"
time_unit = "iso"
replica = "@file"
step = "state.step"
sync = "state.outer_step"
participants = "state.quorum"
"""
"""A file for each rank, nested fields, ISO times; every participant reports the sync on the line of its step."""


def write(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def step(t: float, who: str, n: int, took: float = 500.0) -> dict[str, Any]:
    """A step of the first dialect."""
    return {"t": t, "event": "step", "who": who, "n": n, "tokens": 100, "loss": 3.0 - n / 10, "took": took}


def commit(t: float, who: str, number: int, members: Sequence[str], ok: bool = True) -> dict[str, Any]:
    """A sync of the first dialect."""
    return {"t": t, "event": "commit", "who": who, "commit": number, "members": list(members), "ok": ok}


def events() -> list[dict[str, Any]]:
    """Three replicas, three syncs: c is killed behind its second step and starts again from step 1."""
    return [
        {"t": 0.2, "event": "hello"}, step(1.0, "a", 0), step(1.1, "b", 0), step(1.2, "c", 0), step(2.0, "a", 1),
        step(2.1, "b", 1), step(2.2, "c", 1), commit(2.3, "a", 10, "abc"), commit(2.8, "a", 15, "abc", ok=False),
        step(3.0, "a", 2), step(3.1, "b", 2), step(4.0, "a", 3), step(4.1, "b", 3), commit(4.2, "b", 20, "ab"),
        step(4.9, "c", 1), step(5.0, "a", 4), step(5.1, "b", 4), step(5.9, "c", 2), step(6.0, "a", 5),
        commit(6.2, "c", 30, "ac"), step(7.0, "a", 6), step(7.1, "b", 5), step(7.2, "c", 3),
    ]  # fmt: skip


def ranks(count: int = 3, steps: int = 6, every: int = 2) -> dict[str, list[dict[str, Any]]]:
    """Lines of each rank of the second dialect, all in every sync, their wall clocks an hour apart."""
    found: dict[str, list[dict[str, Any]]] = {}
    for rank in range(count):
        start = datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(hours=rank)
        lines = []
        for n in range(steps):
            state: dict[str, Any] = {"step": n}
            if n % every == every - 1:
                state |= {"outer_step": n // every, "quorum": [f"rank{r}" for r in range(count)]}
            lines.append({"ts": (start + timedelta(seconds=n + rank / 10)).isoformat(), "state": state})
        found[f"rank{rank}"] = lines
    return found
