"""The text of ``machine.cores``: which processor cores the learners stay on."""

from __future__ import annotations

from collections.abc import Sequence

NOWHERE, SPREAD, APART = "none", "spread", "apart"
CORE_MAX = 1 << 16


def parse_cores(text: str) -> list[tuple[int, ...]]:
    """Cores of each learner from lists such as ``0,1 2-3``: one list for each learner, blanks between them.

    Returns
    -------
    list of tuple of int
        Ascending, one entry for each list; empty for ``none``, ``spread`` and ``apart``.

    Raises
    ------
    ValueError
        The text is none of these.

    Examples
    --------
    >>> parse_cores("0,1 2-3")
    [(0, 1), (2, 3)]
    """
    if text in (NOWHERE, SPREAD, APART):
        return []
    lists = [_one_list(words) for words in text.split()]
    if not lists:
        raise ValueError(text)
    return lists


def _one_list(words: str) -> tuple[int, ...]:
    found: set[int] = set()
    for word in words.split(","):
        first, dash, last = word.partition("-")
        low, high = int(first), int(last) if dash else int(first)
        if not (first + last).isdecimal() or not 0 <= low <= high < CORE_MAX:
            raise ValueError(words)
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def cores_of(text: str, learner: int, learners: int, available: Sequence[int]) -> tuple[int, ...]:
    """Cores that a learner stays on, empty if it may use all.

    Parameters
    ----------
    text : str
        ``machine.cores``.
    learner, learners : int
        Which of how many.
    available : sequence of int
        Cores that the run may use: ``spread`` deals them out, as evenly as they go; with fewer cores than learners
        each learner has one, and some share it.

    Examples
    --------
    >>> [cores_of("spread", m, 2, range(5)) for m in range(2)]
    [(0, 1), (2, 3, 4)]
    >>> [cores_of("spread", m, 3, range(2)) for m in range(3)]
    [(0,), (1,), (0,)]
    """
    lists = parse_cores(text)
    if lists:
        return lists[learner]
    if text != SPREAD or not available:
        return ()
    cores = sorted(available)
    if len(cores) < learners:
        return (cores[learner % len(cores)],)
    return tuple(cores[learner * len(cores) // learners : (learner + 1) * len(cores) // learners])


def apart(learners: int, threads: int, available: Sequence[int]) -> list[tuple[int, ...]]:
    """Cores of each learner's step, and last those of all else: ``machine.cores = apart``.

    Parameters
    ----------
    learners, threads : int
        How many learners, and threads of each one's device.
    available : sequence of int
        Cores that the run may use.

    Raises
    ------
    ValueError
        No core is left for all else.

    Examples
    --------
    >>> apart(2, 2, range(6))
    [(0, 1), (2, 3), (4, 5)]
    """
    cores, taken = sorted(available), learners * threads
    if taken >= len(cores):
        raise ValueError(f"{learners} learners of {threads} threads leave none of {len(cores)} cores to all else")
    return [*(tuple(cores[m * threads : (m + 1) * threads]) for m in range(learners)), tuple(cores[taken:])]
