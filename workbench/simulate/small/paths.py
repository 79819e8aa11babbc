"""Paths of the small world as one line of text: the world, a bar, and its moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import msgspec

from workbench.protocol.acting import TO_LEARNER, TO_SYNCER
from workbench.simulate.small.node import LEARNERS, SYNCER_INDEX, Move, Small

FAIR: Move = ("fair", 0)
"""At the end of a path: from here on a fair run."""
_CHANNELS = ("control", "bulk")
_OF_QUEUES = ("deliver", "lose")
_OF_PROCESSES = ("start", "kill", "wake")


def path_text(small: Small, moves: Sequence[Move]) -> str:
    """A path as one line; of the world stand there the quorum and what is not the default.

    Examples
    --------
    >>> path_text(Small(quorum=2), [("start", 2), ("deliver", 5)])
    'quorum=2 | start:syncer deliver:1.0.up.bulk'
    """
    plain = Small()
    names = [f.name for f in fields(Small)]
    said = [n for n in names if n == "quorum" or getattr(small, n) != getattr(plain, n)]
    return " ".join([*(f"{name}={getattr(small, name)}" for name in said), "|", *map(move_text, moves)])


def move_text(move: Move) -> str:
    """A move as a word; queues are named learner.connection.direction.channel."""
    kind, number = move
    if kind in _OF_QUEUES:
        connection, direction, channel = number // 4, number // 2 % 2, number % 2
        nth, learner = divmod(connection, LEARNERS)
        return f"{kind}:{learner}.{nth}.{'down' if direction == TO_LEARNER else 'up'}.{_CHANNELS[channel]}"
    return f"{kind}:syncer" if kind in _OF_PROCESSES and number == SYNCER_INDEX else f"{kind}:{number}"


def parse_path(text: str) -> tuple[Small, list[Move]]:
    """World and moves of a path.

    Raises
    ------
    ValueError
        A line that is not ``key=value ... | move:number ...``.
    """
    head, bar, tail = text.partition("|")
    if not bar:
        raise ValueError(f"{text[:60]!r} holds no bar; expected 'quorum=1 | start:0 start:1 ...'")
    values = dict(item.partition("=")[::2] for item in head.split())
    unknown = sorted(set(values) - {f.name for f in fields(Small)})
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no field of a small world; expected {[f.name for f in fields(Small)]}")
    try:
        small = msgspec.convert({k: None if v == "None" else v for k, v in values.items()}, Small, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"{head.strip()!r} describes no small world: {error}") from error
    return small, parse_moves(tail)


def parse_moves(text: str) -> list[Move]:
    """Moves from their words.

    Raises
    ------
    ValueError
        A word that names no move.
    """
    return [_move(word) for word in text.split()]


def _move(word: str) -> Move:
    kind, _, rest = word.partition(":")
    try:
        if kind not in _OF_QUEUES:
            return kind, SYNCER_INDEX if rest == "syncer" else int(rest)
        learner, nth, direction, channel = rest.split(".")
        towards = {"up": TO_SYNCER, "down": TO_LEARNER}[direction]
        connection = int(learner) + LEARNERS * int(nth)
        return kind, connection * 4 + towards * 2 + _CHANNELS.index(channel)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{word!r} is no move; expected as 'step:0', 'kill:syncer', 'deliver:0.0.up.bulk'") from error
