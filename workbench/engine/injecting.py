"""What may be done to a run of real processes: faults, their end, and starting again what is gone."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from workbench.config import ConfigError
from workbench.protocol.faults import NUMBER_KINDS

ADDED_MAX = 64
CUTS = {"both": "cut", "up": "cut_up", "down": "cut_down"}
"""Kind of a cut by its direction: both, to the syncer, to the learner."""


Target = int | str
"""A learner, 2 or ``"L2"``; for some also ``"syncer"``."""


def number_of(target: Target) -> Target:
    """The number of a learner that is named as pages and tapes name it; anything else as it is.

    Examples
    --------
    >>> number_of("L2"), number_of(2), number_of("syncer")
    (2, 2, 'syncer')
    """
    named = re.fullmatch(r"L(\d+)", target, re.ASCII) if isinstance(target, str) else None
    return int(named[1]) if named else target


class Injecting(ABC):
    """Acts on a run; times are seconds, learners as in `Target`.

    Every fault is recorded by the supervisor, and so is its end.  All raise `ConfigError` if the request cannot work,
    or if its target is gone (which is recorded too).
    """

    @abstractmethod
    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the supervisor."""

    def inject(self, kind: str, learner: Target = -1, **values: Any) -> int:
        """Let a fault act now; returns its number in the run.

        Parameters
        ----------
        kind : str
            One of `workbench.protocol.faults.FAULT_KINDS`.
        learner : int or str
            Its target; -1 where that is the syncer.
        **values
            The kind's own keys, as in a scenario: for_s or down_s [s], factor, count, delay_s and jitter_s [s],
            share, bytes_per_s, persistent, seed.
        """
        table = {"kind": kind, "learner": number_of(learner), **values}
        return int(self._ask({"verb": "fault", "fault": table})["fault"])

    def kill(self, target: Target, down_s: float | None = None) -> None:
        """SIGKILL of a learner (or ``"syncer"``); another process starts after ``down_s`` (0.5 s; never, if 0)."""
        self._ask({"verb": "kill", "target": number_of(target), "down_s": down_s})

    def stall(self, target: Target, for_s: float = 3.0) -> None:
        """SIGSTOP of a learner (or ``"syncer"``) for some seconds."""
        self._ask({"verb": "stall", "target": number_of(target), "for_s": for_s})

    def exit(self, target: Target, down_s: float = 0.5) -> None:
        """A learner ends itself with exit code 1; another process starts after ``down_s`` seconds (never, if 0)."""
        self.inject("exit", target, down_s=down_s)

    def slow(self, target: Target, factor: float = 3.0, for_s: float = 0.0) -> None:
        """Steps of a learner take ``factor`` times as long for ``for_s`` seconds (until `heal`, if 0)."""
        self.inject("slow", target, factor=factor, for_s=for_s)

    def cut(self, target: Target, for_s: float = 0.0, direction: str = "both") -> None:
        """A learner's link loses everything for ``for_s`` seconds (until `heal`, if 0).

        Parameters
        ----------
        target : int or str
        for_s : float
        direction : str
            ``both``, ``up`` (to the syncer) or ``down`` (to the learner).
        """
        if direction not in CUTS:
            raise ConfigError(f"direction = {direction!r}; allowed: {', '.join(CUTS)}")
        self.inject(CUTS[direction], target, for_s=for_s)

    def lose(self, target: Target, count: int = 1, direction: str = "up") -> None:
        """The next ``count`` messages of a learner are lost, ``up`` (to the syncer) or ``down``."""
        if direction not in ("up", "down"):
            raise ConfigError(f"direction = {direction!r}; allowed: up, down")
        self.inject(f"lose_{direction}", target, count=count)

    def delay(self, target: Target, delay_s: float = 0.2, jitter_s: float = 0.0, for_s: float = 0.0) -> None:
        """Messages of a learner take ``delay_s`` (give or take ``jitter_s``) longer each way (until `heal`, if 0)."""
        self.inject("delay", target, delay_s=delay_s, jitter_s=jitter_s, for_s=for_s)

    def loss(self, target: Target, share: float = 0.3, for_s: float = 0.0) -> None:
        """Each message of a learner is lost with probability ``share`` for ``for_s`` seconds (until `heal`, if 0)."""
        self.inject("loss", target, share=share, for_s=for_s)

    def bandwidth(self, target: Target, bytes_per_s: float = 1e6, for_s: float = 0.0) -> None:
        """Fragments of a learner travel at ``bytes_per_s`` each way for ``for_s`` seconds (until `heal`, if 0)."""
        self.inject("bandwidth", target, bytes_per_s=bytes_per_s, for_s=for_s)

    def poison(
        self, target: Target, kind: str = "nan", count: int = 1, factor: float = 10.0, persistent: bool = False
    ) -> None:
        """Bad numbers in the next ``count`` contributions of a learner.

        Parameters
        ----------
        target : int or str
        kind : str
            ``nan``, ``inf``, ``scale`` (the update times ``factor``), ``flip`` (its sign), ``random`` (another update
            of the same norm), ``corrupt`` (bytes after the codec), ``shape`` (one element is missing).
        count : int
        factor : float
            Of ``scale``.
        persistent : bool
            The learner's own weights too; of a kind that acts before the codec.
        """
        if kind not in NUMBER_KINDS:
            raise ConfigError(f"kind = {kind!r}; allowed: {', '.join(NUMBER_KINDS)}")
        values: dict[str, Any] = {"count": count}
        if kind == "scale":
            values["factor"] = factor
        if persistent:
            values["persistent"] = True
        self.inject(kind, target, **values)

    def heal(self, target: Target) -> int:
        """End all faults of a learner's link, and its slow-downs; returns how many those were."""
        return int(self._ask({"verb": "heal", "target": number_of(target)})["healed"])

    def add(self, count: int = 1, who: str = "python") -> list[int]:
        """Have ``count`` more learners take part, with data of their own; returns their numbers."""
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= ADDED_MAX:
            raise ConfigError(f"count = {count!r}; allowed: 1 to {ADDED_MAX} learners at a time")
        return [int(self._ask({"verb": "add", "who": who})["learner"]) for _ in range(count)]

    def remove(self, target: Target, who: str = "python") -> None:
        """Take a learner out of the run for good: what no merge has of it is lost, its number stays its own."""
        self._ask({"verb": "remove", "target": number_of(target), "who": who})

    def release(self, target: Target, who: str = "python") -> None:
        """Let a learner that is quarantined into the merges again.  The tape says ``who`` asked."""
        self._ask({"verb": "release", "target": number_of(target), "who": who})

    def revive(self, target: Target) -> None:
        """Start a learner now that has failed for good, was killed for good, or is down for a time."""
        self._ask({"verb": "revive", "target": number_of(target)})
