"""Where a change from a round on is asked for: before the input of the syncer at which that round is opened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from workbench.protocol.records import SYNCER, Kind, Record
from workbench.replay.counterfactual.parent import Parent


class Turn(NamedTuple):
    """Where a question about a round begins.

    Attributes
    ----------
    number : int
        Input of the syncer's machine before which the change is asked for.
    event : int
        First event of the tape behind that.
    time_ns : int
        Of that input [ns].
    round : int
        The first that is opened behind it.
    """

    number: int
    event: int
    time_ns: int
    round: int


def openings(records: Sequence[Record]) -> list[tuple[int, int]]:
    """(event, round) of all rounds that were opened, but those that a resume has taken back."""
    found: list[tuple[int, int]] = []
    oldest: dict[float, int] = {}
    for event, r in enumerate(records):
        if r.kind == Kind.ROUND_OPENED:
            found.append((event, r.round))
        elif r.kind == Kind.SNAPSHOT_RECORDED and r.process == SYNCER:
            oldest[r.value] = r.detail["round"]
        elif r.kind == Kind.SYNCER_STARTED and r.detail.get("cut"):
            first = oldest.get(float(r.detail["cut"]["snapshot"]), 0)
            found = [(there, t) for there, t in found if t < first]
    return found


def turn_of(parent: Parent, from_round: int) -> Turn:
    """Where a change from a round on is asked for; that the tape opens such a round has been checked."""
    event, round_ = next((event, t) for event, t in openings(parent.records) if t >= from_round)
    number = max(0, bisect_right(parent.positions, event) - 1)
    if event >= parent.ends[number] and parent.records[event].epoch > parent.records[parent.positions[number]].epoch:
        number = min(number + 1, len(parent.inputs) - 1)  # it was opened by a syncer that had gone back
    return Turn(number, parent.positions[number], parent.inputs[number].time_ns, round_)
