"""A run to explore, as one line of JSON: sizes, timing, faults, and what else befalls it."""

from __future__ import annotations

from typing import Any

import msgspec

from workbench.config import RunConfig, VirtualConfig
from workbench.protocol.faults import Fault


class Change(msgspec.Struct, frozen=True):
    """A live setting changed at a time."""

    at_ns: int
    values: dict[str, Any]


class Loss(msgspec.Struct, frozen=True):
    """Every process is killed; after ``down_ns`` the run is resumed, ``back`` at its newest snapshot or as it was.

    ``ordered``: it is not killed, but stopped, and resumed so long after its end.
    """

    at_ns: int
    down_ns: int
    back: bool
    ordered: bool = False


class Schedule(msgspec.Struct, frozen=True):
    """One run to explore; its JSON is the line that replays it."""

    seed: int
    config: dict[str, Any]
    virtual: dict[str, Any]
    faults: tuple[Fault, ...]
    changes: tuple[Change, ...] = ()
    losses: tuple[Loss, ...] = ()
    wanted_ns: tuple[int, ...] = ()
    """When somebody asks for a snapshot."""
    release_every_ns: int = 0
    """Who is quarantined is released so often, 0: never."""

    def run_config(self) -> RunConfig:
        """The configuration of the run."""
        virtual = {**self.virtual, "slow": tuple(self.virtual.get("slow", ()))}
        return RunConfig(seed=self.seed, eval_every=0, virtual=VirtualConfig(**virtual), **self.config)

    def text(self) -> str:
        """One line of JSON."""
        return msgspec.json.encode(self).decode()


def parse(text: str) -> Schedule:
    """A schedule from its line."""
    return msgspec.json.decode(text, type=Schedule)
