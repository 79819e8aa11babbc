"""Vector clocks and moving averages."""

from __future__ import annotations

EMA_FACTOR = 0.125
"""Weight of a new sample; the first sample is taken whole (PROTOCOL section 4)."""


def merged(own: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Elementwise maximum; the longer clock decides the length (axes grow)."""
    if own == other:
        return own
    if len(own) < len(other):
        own, other = other, own
    head = tuple(map(max, own, other))
    return head + own[len(other) :]


def ticked(clock: tuple[int, ...], process: int, seq: int) -> tuple[int, ...]:
    """Clock with the entry of ``process`` set to ``seq``."""
    if len(clock) <= process:
        clock = clock + (0,) * (process + 1 - len(clock))
    return (*clock[:process], seq, *clock[process + 1 :])


def entry(clock: tuple[int, ...], process: int) -> int:
    """Entry of a process in a clock, 0 where the clock does not reach so far."""
    return clock[process] if process < len(clock) else 0


def happened_before(a: tuple[int, ...], process: int, seq: int, b: tuple[int, ...]) -> bool:
    """Whether the event (``process``, ``seq``, clock ``a``) is in the causal past of one with clock ``b``."""
    return a != b and entry(b, process) >= seq


def ema(average: float, sample: float) -> float:
    """Average after ``sample``; a negative average means that there is none yet."""
    return float(sample) if average < 0 else average + EMA_FACTOR * (sample - average)
