"""The tape that comes with the repository, and what to look at in it first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DEMO = Path(__file__).parents[2] / "data" / "demo-tape"
"""Absent where the package was installed without its repository."""


class Caption(NamedTuple):
    """What a moment of the demo tape shows.

    Attributes
    ----------
    title : str
    time_s : float
        From the start of rounds [s].
    text : str
    """

    title: str
    time_s: float
    text: str


CAPTIONS = (
    Caption(
        "grid", 3.0,
        "One cell for each learner: colour, sign and word say what it does. Here all four train; the numbers are "
        "its step, its loss, and how many versions it is behind.",
    ),
    Caption(
        "lanes", 7.5,
        "One lane for each process. L1 was killed at 5.5 s: its lane is white, which is idle, and the band names the "
        "fault. The others go on; nobody waits for it.",
    ),
    Caption(
        "quorum", 8.5,
        "A round closes when at least K learners are ready: K is 2 here, so rounds close without L1, and the sentence "
        "beside the lanes says who is missing and why.",
    ),
    Caption(
        "grace", 15.5,
        "With its quorum there, a round still waits a little for the slow: the grace window. A step of L2 takes 2.5 "
        "times as long, and it misses some merges by a fraction of a second.",
    ),
    Caption(
        "staleness", 27.0,
        "The link of L3 is cut. It trains on what it has, and falls behind the syncer's versions; once it is back it "
        "folds the updates in and is merged again.",
    ),
)  # fmt: skip


def demo_folder() -> list[Path]:
    """The demo tape's folder, if it is there."""
    return [DEMO] if DEMO.is_dir() else []
