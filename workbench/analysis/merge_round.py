"""One merge of a tape with the syncer's events of its round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from workbench.protocol.records import Kind, process_of
from workbench.tape import TapeError
from workbench.tape.own_events import OwnEvents, own_events
from workbench.tape.whole import whole

NS = 1e-9


class MergeRound(NamedTuple):
    """A merge and its round.

    Attributes
    ----------
    merge, event, round, fragment, version, epoch : int
        Row of /merges, its event, and what it made.
    events : ndarray
        The syncer's events of this round and fragment, ascending, late answers and all UPDATEs of it too.
    quorum_ns, grace_ns, closed_ns : int
        When the quorum was there, grace ended, and pulling ended, on the syncer's clock; -1 where it is not told.
    own : OwnEvents
    """

    merge: int
    event: int
    round: int
    fragment: int
    version: int
    epoch: int
    events: np.ndarray[Any, Any]
    quorum_ns: int
    grace_ns: int
    closed_ns: int
    own: OwnEvents

    def last(self, *kinds: Kind, peer: int = -1, before: int | None = None) -> int:
        """The round's last event of these kinds up to an event (its merge by default), of a peer if given; -1: none."""
        upto = self.event if before is None else before
        found = self.of(*kinds, peer=peer)
        found = found[found <= upto]
        return int(found[-1]) if len(found) else -1

    def of(self, *kinds: Kind, peer: int = -1) -> np.ndarray[Any, Any]:
        """The round's events of these kinds, of a peer if given."""
        keep = np.isin(self.own["kind"][self.events], kinds)
        if peer >= 0:
            keep &= self.own["peer"][self.events] == peer
        return self.events[keep]

    def time_ns(self, event: int) -> int:
        """Time of an event on its own process's clock."""
        return int(self.own["time_ns"][event])

    def reason(self, event: int) -> str:
        """Reason of an event as a word."""
        return str(self.own.words[int(self.own["reason"][event])])

    def detail(self, event: int) -> dict[str, Any]:
        """What an event has beyond its columns."""
        return self.own.detail(event)

    def heard(self, event: int, learner: int) -> int:
        """Clock entry of a learner at an event: the number of its last record that counted there."""
        clock = self.own.index.clock_of(event)
        process = process_of(learner)
        return max(0, int(clock[process])) if process < len(clock) else 0

    def record_of(self, learner: int, seq: int) -> int:
        """Event of a learner's record, the last up to that number; -1 for none."""
        process, index = process_of(learner), self.own.index
        if process >= len(index.rows):
            return -1
        return index.last(process, int(np.searchsorted(index.seqs[process], seq, "right")))

    def next_of(self, learner: int, kind: Kind, seq: int, **equal: int) -> int:
        """The learner's first event of a kind after its record ``seq``; -1 for none."""
        process, index = process_of(learner), self.own.index
        if process >= len(index.rows):
            return -1
        begin = int(np.searchsorted(index.seqs[process], seq, "right"))
        places = self.own.places(process, kind, **equal)
        at = int(np.searchsorted(places, begin))
        return self.own.event(process, int(places[at])) if at < len(places) else -1


def merge_round(tape: xr.DataTree, merge: int) -> MergeRound:
    """A merge by its row in /merges (negative: from the end), with its round.

    Raises
    ------
    TapeError
        When there is none.
    """
    merges = tape["merges"].dataset
    total = merges.sizes.get("merge", 0)
    merge = whole(merge, "merge")
    if not -total <= merge < total:
        raise TapeError(
            f"there is no merge {merge}; the tape has {total} merges{f', 0 to {total - 1}' if total else ''}"
        )
    merge %= total
    names = ("event", "round", "fragment", "version", "epoch", "quorum_ns", "grace_ns", "pull_ns")
    row = {name: int(merges[name].values[merge]) for name in names}
    own = own_events(tape)
    rows = own.of_round(row["round"])
    mine = (own["fragment"][rows] == row["fragment"]) & (own["epoch"][rows] == row["epoch"])
    return MergeRound(
        merge, row["event"], row["round"], row["fragment"], row["version"], row["epoch"], rows[mine],
        row["quorum_ns"], row["grace_ns"], row["pull_ns"], own,
    )  # fmt: skip
