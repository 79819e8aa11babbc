"""Named sub-seeds: all randomness of a run hangs off its one seed."""

from __future__ import annotations

import hashlib


def sub_seed(seed: int, *names: str | int) -> int:
    """Seed of its own for what ``names`` describe, the same in every process and version.

    The names are encoded with type and length before hashing (BLAKE2b, 64 bits), so that ``("a", "bc")`` and
    ``("ab", "c")``, or ``1`` and ``"1"``, differ.

    Parameters
    ----------
    seed : int
        The run's seed, or another sub-seed.
    *names : str or int
        What the seed is for, the widest first: ``sub_seed(0, "data", learner)``.

    Returns
    -------
    int
        0 .. 2**64 - 1.

    Raises
    ------
    TypeError
        If a name is neither text nor a whole number.

    Examples
    --------
    >>> sub_seed(0, "data", 3) == sub_seed(0, "data", 3)
    True
    >>> sub_seed(0, "data", 3) == sub_seed(0, "data", 4)
    False
    """
    state = hashlib.blake2b(digest_size=8)
    for part in (seed, *names):
        state.update(_encoded(part))
    return int.from_bytes(state.digest(), "little")


def _encoded(part: str | int) -> bytes:
    if isinstance(part, bool) or not isinstance(part, str | int):
        raise TypeError(f"{part!r} cannot name a seed; expected text or a whole number, not {type(part).__name__}")
    text = part.encode() if isinstance(part, str) else str(part).encode()
    return (b"s" if isinstance(part, str) else b"i") + len(text).to_bytes(8, "little") + text
