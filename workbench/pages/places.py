"""A place on a tape as people type it: an event, a time, a round, a merge, a fault."""

from __future__ import annotations

import re

import numpy as np

from workbench.config import ConfigError
from workbench.pages.recording import Recording

EXAMPLE = "a command, a place as 12.5 s, round 40, merge 7, or a pattern as sent, excluded, sent"
_TIME = re.compile(r"(-?\d+(?:\.\d+)?)\s*(ms|s)$")
_NUMBERED = re.compile(r"(event|round|merge|fault|exclusion)?\s*#?(\d{1,12})$")


def event_of(recording: Recording, text: str) -> int:
    """The event at a place.

    Parameters
    ----------
    recording : Recording
    text : str
        ``120`` or ``event 120``, ``12.5 s``, ``round 40`` (its opening), ``merge 7``, ``fault 2``, ``exclusion 3``
        (counted from 0).

    Raises
    ------
    ConfigError
        There is no such place.
    """
    words = " ".join(text.lower().replace(",", "").split())[:60]
    if found := _TIME.match(words):
        return recording.at_time(float(found[1]) * (1e-3 if found[2] == "ms" else 1.0))
    found = _NUMBERED.match(words)
    if found is None:
        raise ConfigError(f"{text[:60]!r} is no place; type event 120, 12.5 s, round 40, merge 7 or fault 2")
    kind, number = found[1] or "event", int(found[2])
    if kind == "event":
        return _checked(kind, number, number, recording.count)
    places = recording.places(kind)
    if kind == "round":
        rounds = recording.column("round")[places]
        at = np.flatnonzero(rounds == number)
        if not len(at):
            raise ConfigError(f"no round {number:,} was opened; {_span(rounds)}")
        return int(places[at[0]])
    return int(places[_checked(kind, number, number, len(places))])


def _checked(kind: str, number: int, value: int, count: int) -> int:
    if number >= count:
        last = f"the last is {count - 1:,}" if count else "there is none"
        raise ConfigError(f"there is no {kind} {number:,}: {last}")
    return value


def _span(rounds: np.ndarray) -> str:
    return f"rounds are named {rounds.min():,} to {rounds.max():,}" if len(rounds) else "none was"
