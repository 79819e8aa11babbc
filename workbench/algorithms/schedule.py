"""Which fragment is due at which global step (ALGORITHM section 2, arXiv 2604.21428)."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.config import ConfigError


def offsets(fragments: int, period: int) -> tuple[int, ...]:
    """Distinct offsets t_p = floor(p H / P) of the fragments within the period.

    Parameters
    ----------
    fragments, period : int
        P and H [steps].

    Returns
    -------
    tuple of int, shape (fragment,)
        Ascending, each in 0 .. H - 1.

    Raises
    ------
    ConfigError
        If P is below 1 or above H: one fragment at most is due at a step.

    Examples
    --------
    >>> offsets(3, 12)
    (0, 4, 8)
    """
    if not 1 <= fragments <= period:
        raise ConfigError(
            f"fragments = {fragments} with period = {period} is not possible; allowed: 1 to {max(period, 1)} "
            "fragments, since one fragment at most is due at a step"
        )
    return tuple(p * period // fragments for p in range(fragments))


def due_fragment(step: int, offsets: Sequence[int], period: int) -> int:
    """Fragment due at global step ``step``: the p with step mod H = t_p, or -1 for none.

    Examples
    --------
    >>> [due_fragment(t, (0, 2), 4) for t in range(5)]
    [0, -1, 1, -1, 0]
    """
    phase = step % period
    for p, offset in enumerate(offsets):
        if offset == phase:
            return p
    return -1


def next_due(step: int, offsets: Sequence[int], period: int) -> int:
    """First global step after ``step`` at which a fragment is due.

    Examples
    --------
    >>> next_due(0, (0, 2), 4), next_due(2, (0, 2), 4)
    (2, 4)
    """
    phase = step % period
    return step + min((offset - phase - 1) % period + 1 for offset in offsets)
