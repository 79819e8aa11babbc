"""Numeric faults: what goes out instead of a learner's values, or of the bytes that its codec made of them.

An update is the difference of a learner's values to the version that it last folded.  All draws hang off a seed, and
no arithmetic depends on the thread that does it: a replay gets the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.algorithms.flush import flush_to_zero

BEFORE_CODEC = ("nan", "inf", "scale", "flip", "random")
AFTER_CODEC = ("corrupt", "shape")
NOT_FINITE = ("nan", "inf")
CORRUPT_SHARE = 1e-3
CORRUPT_MASK = np.uint8(0xA5)


class Poison(NamedTuple):
    """One numeric fault on one contribution, or on a learner's own fragment.

    Attributes
    ----------
    kind : str
        ``nan`` or ``inf``: one value is none; ``scale``: the update times ``factor``; ``flip``: its negative;
        ``random``: another update of the same norm; ``corrupt``: some bytes of the payload change; ``shape``: the
        payload lacks its last element.
    factor : float
    seed : int
        Of ``random`` and ``corrupt``.
    """

    kind: str
    factor: float = 1.0
    seed: int = 0


def poisoned(values: np.ndarray, base: np.ndarray | None, poison: Poison) -> np.ndarray:
    """Values before the codec.

    Parameters
    ----------
    values : float32 array (size,)
        Sound; not changed.
    base : float32 array (size,) or None
        The version last folded; None counts as zero.
    poison : Poison

    Returns
    -------
    float32 array (size,)
        ``values`` itself for a fault that acts after the codec.

    Raises
    ------
    ValueError
        The kind is unknown.
    """
    if poison.kind in AFTER_CODEC:
        return values
    if poison.kind in NOT_FINITE:
        bad = values.copy()
        bad[bad.size // 2] = np.nan if poison.kind == "nan" else np.inf
        return bad
    start = np.zeros_like(values) if base is None else base
    with flush_to_zero(), np.errstate(all="ignore"):
        update = values - start
        if poison.kind in ("scale", "flip"):
            factor = poison.factor if poison.kind == "scale" else -1.0
            return start + update * np.float32(factor)
        if poison.kind == "random":
            return start + _another(update, poison.seed)
    raise ValueError(f"numeric fault {poison.kind!r} is unknown; expected one of {', '.join(BEFORE_CODEC)}")


def spoiled(payload: np.ndarray, poison: Poison) -> np.ndarray:
    """Payload after the codec; itself for a fault that acts before it."""
    if poison.kind == "shape":
        return payload[:-1].copy()
    if poison.kind != "corrupt":
        return payload
    bad = payload.copy()
    raw = bad.reshape(-1).view(np.uint8)
    count = max(1, int(raw.size * CORRUPT_SHARE))
    raw[_generator(poison.seed).integers(0, raw.size, count)] ^= CORRUPT_MASK
    return bad


def _another(update: np.ndarray, seed: int) -> np.ndarray:
    """A random vector (size,) of the same norm."""
    drawn = _generator(seed).standard_normal(update.size, dtype=np.float32)
    wanted, has = _norm(update), _norm(drawn)
    return drawn * np.float32(wanted / has if has > 0.0 else 0.0)


def _norm(values: np.ndarray) -> float:
    return float(np.sqrt(np.add.reduce(np.square(values, dtype=np.float64))))


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))
