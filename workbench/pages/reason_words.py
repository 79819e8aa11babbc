"""The tape's words for why something happened, in words for people; the tape's own stand behind them in brackets."""

from __future__ import annotations

REASONS = {
    # why a contribution is not merged, or a learner is left out
    "not_ready": "it had not come as far as the round",
    "not_fresh": "nothing had been heard of its steps in time",
    "base_behind": "it had not yet folded the newest version in",
    "base_differs": "it had folded another version when it was asked",
    "update_unfolded": "an update of the fragment lay unfolded",
    "no_steps": "it had made no step since it folded the fragment",
    "pull_limit": "its contribution did not come in time",
    "unanswered": "it did not answer",
    "late": "it came after the round was closed",
    "gone": "its learner was lost meanwhile",
    "stale": "it rested on a version that is too old",
    "nonfinite": "it held NaN or an infinity",
    "guard": "a guard refused its numbers",
    "shape": "it had another size or type",
    "incarnation": "it came from an earlier life of its learner",
    "duplicate": "it had come already",
    "records": "the records before it had not come whole",
    "quarantined": "its learner is quarantined",
    "rejoined": "it was lost and came back meanwhile",
    "round_skipped": "the round was skipped",
    "healing": "it was new and had not folded everything in",
    # why a round came to no merge
    "backlog": "merging had fallen behind the learners",
    "weights_zero": "all weights were 0",
    "rolled_back": "the run went back to a snapshot",
    "run_ended": "the run ended",
    # why a learner is counted on no more
    "exit": "its process ended",
    "socket": "its connection broke",
    "heartbeat": "nothing was heard of it",
    "superseded": "a newer process took its place",
    "left": "it left",
    "ended": "it had nothing left to do",
    "removed": "somebody removed it",
    # how somebody began
    "process": "a new process",
    "rejoin": "back after it was lost",
    "restored": "from a snapshot",
    "new": "a new run",
    "restart": "again, from its journal",
    "resume": "the run goes on",
}
"""Reasons of all kinds of record; one that is missing says itself (an exit code, a signal, a sentence)."""


def because(reason: str) -> str:
    """A reason in words.

    Examples
    --------
    >>> because("pull_limit"), because("SIGKILL")
    ('its contribution did not come in time (pull_limit)', 'SIGKILL')
    """
    return f"{REASONS[reason]} ({reason})" if reason in REASONS else reason
