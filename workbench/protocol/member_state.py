"""A learner as the syncer sees it: plain data (PROTOCOL sections 3, 5, 7 and 10)."""

from __future__ import annotations

import msgspec

from workbench.protocol.moments import NEVER, UNSET


class Sent(msgspec.Struct, gc=False):
    """An UPDATE handed to the transport and not yet seen in a METADATA."""

    version: int
    at: int


class Member(msgspec.Struct):
    """A learner as the syncer sees it.  Lists are by fragment, times in ns of the syncer's clock.

    Attributes
    ----------
    learner, process_number, incarnation, ended : int
        Id; number of its process; its life as handed out; the highest process number that the supervisor saw exit.
    connection, connected : int, bool
        Present connection, and whether it counts as alive.
    base, c_steps, n, g, healed : list of int, list of int, int, int, bool
        As its latest METADATA, or JOIN, says.
    last_merged, last_merged_step : list of int
        Version that holds its last contribution, and the own step of that; -1 for none.
    blocked : list of str
        Why it is not clean until newer METADATA (reason of a refusal or a drop); empty if nothing stands against it.
    anew : list of int
        Above 0: it has to fold the fragment anew, and has not said so.
    quarantined, stalled : bool
        Kept out by somebody or by a guard; METADATA too old.
    norms, norm_steps, opposed, poisonings : dict of fragment to list of float, of int, int, int
        Norms and own steps of its last merged contributions, rounds running in which it was against the others, and
        contributions in a row that were refused for what they hold.
    last_heard, metadata_at : int
        When anything, and when METADATA came.
    recent, median_ns, step_ema : list of int, int, float
        Last steps, their median, and their moving average (xi_step is the median of these over learners) [ns].
    pull_ema, send_ema : float
        Moving averages of PULL to answer, and of hand-over to the METADATA that shows the version [ns]; -1 for none.
    known_seq, last_step, joined_seq, asked_again_at : int
        Last record and last own step in the journal; record of its joining; when missing records were asked for.
    asked, unanswered : dict of round to time, int
        PULLs without an answer, of this incarnation; times in a row that it was lost because none came.
    pending, in_hand, sent : dict, int, dict
        Versions that wait by fragment; the fragment that the transport holds; what it has taken and nobody has shown.
    source, begin_seq : str, int
        What its process was told to begin with, and the record of that where it was not its joining.
    rounds_missed, missed_why : int, dict
        Closed rounds without it in a row, and how often for which cause.
    """

    learner: int
    process_number: int
    incarnation: int
    connection: int
    connected: bool
    base: list[int]
    c_steps: list[int]
    last_merged: list[int]
    last_merged_step: list[int]
    blocked: list[str]
    anew: list[int]
    ended: int = -1
    healed: bool = False
    quarantined: bool = False
    last_heard: int = NEVER
    metadata_at: int = NEVER
    n: int = 0
    g: int = 0
    recent: list[int] = []
    median_ns: int = 0
    step_ema: float = -1.0
    pull_ema: float = -1.0
    send_ema: float = -1.0
    known_seq: int = 0
    joined_seq: int = 0
    asked_again_at: int = NEVER
    last_step: int = 0
    asked: dict[int, int] = {}
    unanswered: int = 0
    pending: dict[int, int] = {}
    in_hand: int = UNSET
    sent: dict[int, Sent] = {}
    rounds_missed: int = 0
    missed_why: dict[str, int] = {}
    stalled: bool = False
    norms: dict[int, list[float]] = {}
    norm_steps: dict[int, list[int]] = {}
    opposed: int = 0
    poisonings: int = 0
    source: str = "initial"
    begin_seq: int = 0


def new_member(learner: int, fragments: int) -> Member:
    """A learner of which nothing is known: no process, no connection, nothing that may be merged."""
    return Member(
        learner=learner,
        process_number=-1,
        incarnation=0,
        connection=UNSET,
        connected=False,
        base=[-1] * fragments,
        c_steps=[0] * fragments,
        last_merged=[-1] * fragments,
        last_merged_step=[-1] * fragments,
        blocked=[""] * fragments,
        anew=[0] * fragments,
    )
