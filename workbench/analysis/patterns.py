"""Patterns of interaction: words for what happens to a learner, found in its events, as in "sent, excluded, sent".

A pattern is found where its words follow each other in the events of one learner, and of one fragment where they
concern one, with none of its words between them, and each event happened before the next (by the tape's clocks).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.analysis.arrays.tables import NS
from workbench.config import ConfigError
from workbench.protocol.records import FIRST_LEARNER, Kind
from workbench.tape.own_events import OwnEvents, own_events

__all__ = ["find"]

WORDS: dict[str, tuple[Kind, ...]] = {
    "stepped": (Kind.STEP_ENDED,),
    "asked": (Kind.PULL_SENT,),
    "sent": (Kind.FRAGMENT_CAPTURED,),
    "arrived": (Kind.FRAGMENT_ARRIVED,),
    "dropped": (Kind.FRAGMENT_DROPPED,),
    "refused": (Kind.REFUSAL_ARRIVED,),
    "excluded": (Kind.FRAGMENT_DROPPED, Kind.REFUSAL_ARRIVED, Kind.GRACE_ENDED),
    "merged": (Kind.MERGED,),
    "updated": (Kind.UPDATE_SENT,),
    "folded": (Kind.UPDATE_FOLDED,),
    "started": (Kind.PROCESS_STARTED,),
    "joined": (Kind.LEARNER_JOINED,),
    "adopted": (Kind.STATE_ADOPTED,),
    "healed": (Kind.LEARNER_HEALED,),
    "stalled": (Kind.LEARNER_STALLED,),
    "lost": (Kind.LEARNER_LOST,),
    "died": (Kind.PROCESS_ENDED,),
    "struck": (Kind.FAULT_INJECTED,),
    "recovered": (Kind.FAULT_ENDED,),
}
"""Kinds of event that a word stands for; of GRACE_ENDED the learners that it leaves out."""
AGAIN = "re-"
PARTS_MAX = 8
MATCHES_MAX = 10_000


class _Words(NamedTuple):
    """Events that words of the pattern stand for: event, learner, fragment (-1: none), number of the word."""

    event: np.ndarray[Any, Any]
    learner: np.ndarray[Any, Any]
    fragment: np.ndarray[Any, Any]
    word: np.ndarray[Any, Any]


def parts_of(pattern: str) -> list[str]:
    """Words of a pattern; ``re-sent`` is ``sent``.

    Raises
    ------
    ConfigError
        For a word that stands for nothing, or too many.

    Examples
    --------
    >>> parts_of("sent, excluded -> re-sent")
    ['sent', 'excluded', 'sent']
    """
    words = [word.removeprefix(AGAIN) for word in re.split(r"(?:->|→|,|\s)+", pattern.lower()) if word]
    unknown = next((word for word in words if word not in WORDS), "")
    if unknown or not 1 <= len(words) <= PARTS_MAX:
        said = f"{unknown[:40]!r} in a pattern" if unknown else f"a pattern of {len(words)} words"
        raise ConfigError(f"{said}; allowed: 1 to {PARTS_MAX} of {', '.join(WORDS)}, as in: sent, excluded, sent")
    return words


def find(tape: xr.DataTree, pattern: str, learner: int | None = None) -> xr.Dataset:
    """Find a pattern of interaction between learners and syncer.

    Parameters
    ----------
    tape : xarray.DataTree
    pattern : str
        Words in their order, as in ``"sent, excluded, sent"``: `WORDS`.
    learner : int, optional
        Of this one only.

    Returns
    -------
    xarray.Dataset
        ``event`` (match, part), ascending by the first; ``learner``, ``fragment`` (-1 where the words concern none),
        ``start_s`` and ``end_s`` [s from the start of rounds] (match,).  At most the first 10,000.

    Raises
    ------
    ConfigError
        For a word that stands for nothing.
    """
    parts = parts_of(pattern)
    names = list(dict.fromkeys(parts))
    own = own_events(tape)
    found = _words(tape, own, names)
    wanted = np.array([names.index(part) for part in parts])
    rows: dict[tuple[int, ...], tuple[int, int]] = {}
    for m in tape.wb.learners if learner is None else [learner]:
        mine = _Words(*(column[found.learner == m] for column in found))
        for fragment in np.unique(mine.fragment[mine.fragment >= 0]).tolist() or [-1]:
            here = (mine.fragment == fragment) | (mine.fragment < 0)
            for events in _windows(mine.event[here], mine.word[here], wanted):
                if all(own.index.before(a, b) for a, b in pairwise(events)):
                    rows.setdefault(events, (m, fragment))
    return _labelled(own, parts, sorted(rows.items())[:MATCHES_MAX])


def _windows(events: Any, words: Any, wanted: Any) -> list[tuple[int, ...]]:
    """Where the words stand behind each other."""
    width = len(wanted)
    if len(words) < width:
        return []
    at = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(words, width) == wanted).all(1))
    return [tuple(events[i : i + width].tolist()) for i in at.tolist()]


def _words(tape: xr.DataTree, own: OwnEvents, names: list[str]) -> _Words:
    """Events of each word, in journal order."""
    kinds, process, peer = own["kind"], own["process"], own["peer"]
    parts: list[_Words] = []
    for number, name in enumerate(names):
        plain = [kind for kind in WORDS[name] if kind not in (Kind.MERGED, Kind.GRACE_ENDED)]
        events = np.flatnonzero(np.isin(kinds, plain) & (own["reason"] != _code(own, "duplicate")))
        learner = np.where(process[events] >= FIRST_LEARNER, process[events], peer[events]) - FIRST_LEARNER
        pairs = [(events, learner)]
        pairs += [_merged(tape)] if Kind.MERGED in WORDS[name] else []
        pairs += [_left_out(own)] if Kind.GRACE_ENDED in WORDS[name] else []
        for events, learner in pairs:
            parts.append(_Words(events, learner, own["fragment"][events], np.full(len(events), number)))
    whole = _Words(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(whole.event, kind="stable")
    return _Words(*(column[order] for column in whole))


def _code(own: OwnEvents, word: str) -> int:
    return own.words.index(word) if word in own.words else -2


def _merged(tape: xr.DataTree) -> tuple[Any, Any]:
    """Events of merges, one for each learner in them."""
    merges = tape["merges"].dataset
    merge, learner = np.nonzero(merges["included"].values.astype(bool))
    return merges["event"].values[merge], learner


def _left_out(own: OwnEvents) -> tuple[Any, Any]:
    """Ends of grace, one for each learner that they leave out."""
    found = [
        (event, int(m))
        for event, detail in sorted(own.details(Kind.GRACE_ENDED).items())
        for m in (detail.get("left_out") or {})
    ]
    events, learners = zip(*found, strict=True) if found else ((), ())
    return np.array(events, np.int64), np.array(learners, np.int64)


def _labelled(own: OwnEvents, parts: list[str], rows: list[Any]) -> xr.Dataset:
    events = np.array([row[0] for row in rows], np.int64).reshape(len(rows), len(parts))
    times_s = (own["time_ns"][events] - own.began_ns) * NS
    of = np.array([row[1] for row in rows], np.int64).reshape(len(rows), 2)
    seconds = {"units": "s", "long_name": "from the start of rounds"}
    return xr.Dataset(
        {
            "event": (("match", "part"), events, {"units": "1", "long_name": "index in /events"}),
            "learner": ("match", of[:, 0], {"units": "1", "long_name": "whose events they are"}),
            "fragment": ("match", of[:, 1], {"units": "1", "long_name": "of which fragment, -1 for none"}),
            "start_s": ("match", times_s[:, 0], seconds),
            "end_s": ("match", times_s[:, -1], seconds),
        },
        coords={"word": ("part", parts)},
        attrs={"title": f"matches of: {', '.join(parts)}"},
    )
