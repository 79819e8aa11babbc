"""Faults that struck and what the syncer reported, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.cli import output, words
from workbench.protocol.faults import COUNTED_KINDS

FAULTS_MAX = 8
LOSSES = {
    "socket": "its connection closed",
    "heartbeat": "nothing was heard of it",
    "unanswered": "it did not answer",
    "superseded": "another process took its place",
    "left": "it left in order",
}


def show(report: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the faults and the incidents of a run; nothing where nothing happened."""
    faults = report["faults"]
    if faults:
        yield ""
        shown, hidden = output.some(faults, FAULTS_MAX)
        rows = [(struck_at(row), struck(row), effect(row)) for row in shown]
        yield output.aligned(heading(faults), (">at", "fault", "effect"), rows)
        if hidden:
            yield hidden
    if report["faults_unstruck"]:
        yield ""
        yield output.pairs("", [("never struck", unstruck(report["faults_unstruck"]))])
    lines = list(sentences(report["incidents"]))
    if lines:
        yield ""
        yield output.pairs("what else happened", lines)


def heading(rows: list[Mapping[str, Any]]) -> str:
    """Return how many faults of which kind struck, and how many struck nobody."""
    counts = Counter(row["kind"].removesuffix("_syncer") for row in rows if row["effect"])
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.most_common()) or "none"
    missed = len(rows) - counts.total()
    return f"faults that struck: {kinds}{f' ({missed:,} found nobody)' if missed else ''}"


def unstruck(rows: list[Mapping[str, Any]]) -> str:
    """Return the faults for which the run was over too soon."""
    shown, _ = output.some(rows, FAULTS_MAX)
    places = {"at_s": "at {:g} s", "at_round": "at round {:,}", "at_merge": "at merge {:,}"}
    named = [
        f"{row['kind'].removesuffix('_syncer')} {words.label(row['learner'])} "
        f"{places[row['trigger']].format(row['at'])}"
        for row in shown
    ]
    more = f" and {len(rows) - len(shown):,} more" if len(rows) > len(shown) else ""
    return f"{', '.join(named)}{more}: the run was over before"


def struck_at(row: Mapping[str, Any]) -> str:
    """Return when a fault struck: a late start is one of the run's start, whatever the time until rounds began."""
    return "start" if row["kind"] == "late" else words.moment(row["time_s"])


def struck(row: Mapping[str, Any]) -> str:
    """Return kind, target and duration of a fault."""
    lasted = "" if row["kind"] in COUNTED_KINDS or row["for_s"] == 0 else f" for {words.seconds(row['for_s'])}"
    forever = " for good" if row["for_s"] is None else lasted
    return f"{row['kind'].removesuffix('_syncer')} {words.label(row['learner'])}{forever}"


def effect(row: Mapping[str, Any]) -> str:
    """Return what came of a fault."""
    if row["skipped"]:
        return "skipped: due while nothing ran"
    if not row["effect"]:
        return "none: its target was gone"
    if row["learner"] is None:
        gap = row["without_merge_s"]
        return "no merge before or after it" if gap is None else f"{words.seconds(gap)} between two merges"
    missed = row["merges_missed"]
    if row["merged_again_s"] is None:
        return f"missed {words.plural(missed, 'merge')}, not merged again"
    if not missed:
        return "missed no merge"
    return f"missed {words.plural(missed, 'merge')}, merged again at {words.seconds(row['merged_again_s'])}"


def sentences(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the syncer reported, by kind."""
    for cause, rows in grouped(found["starved"], "cause").items():
        who = ", ".join(f"{words.label(row['learner'])} {row['rounds_missed']:,}" for row in rows)
        remedy = f"; helps: {rows[0]['remedy']}" if rows[0]["remedy"] else ""
        yield (
            "starved",
            f"left out of 2 H rounds in a row and more: {who} rounds, most often {words.word(cause)}{remedy}",
        )
    if found["stalled"]:
        who = ", ".join(f"{words.label(row['learner'])} {times(row['reports'])}" for row in found["stalled"])
        yield "stalled", f"no step for so long that rounds no longer waited for it: {who}"
    if found.get("quorum_awaited_s"):
        yield "learners", f"waited for at the start, {words.seconds(found['quorum_awaited_s'])} with fewer than K there"
    if found["quorums_lost"]:
        yield "quorum lost", lost_quorums(found["quorums_lost"], found["quorum_lost_s"])
    if found["own_stops"]:
        row = max(found["own_stops"], key=lambda row: row["for_s"])
        longest = f"{words.seconds(row['for_s'])} {words.at(row['time_s'])}"
        yield "syncer late", f"woken more than 0.5 s late {times(len(found['own_stops']))}, at most {longest}"
    if found["syncer_restarts"]:
        yield "syncer", f"started again {times(found['syncer_restarts'])}"
    yield from came_back(found)
    yield from guarded(found)
    ends, more = output.some(found["own_ends"], FAULTS_MAX)
    for row in ends:
        said = f": {row['line']}" if row["line"] else ""
        yield "ended by itself", f"{row['process']} {words.at(row['time_s'])}, {row['how']}{said}"
    if more:
        yield "", str(more)
    left, more = output.some(found.get("left_by_hand", []), FAULTS_MAX)
    for row in left:
        again = (
            "it never came again" if row["again_s"] is None else f"another came {words.seconds(row['again_s'])} later"
        )
        how = LOSSES.get(row["reason"], row["reason"])
        yield "left", f"{words.label(row['learner'])} {words.at(row['time_s'])}, {how}; {again}"
    if more:
        yield "", str(more)
    changes, more = output.some(found["settings_changed"], FAULTS_MAX)
    for row in changes:
        values = ", ".join(f"{key} = {value}" for key, value in row["values"].items())
        who = f", by {row['who']}" if row["who"] else ""
        yield "settings", f"{values}, asked for {words.at(row['time_s'])} (revision {row['revision']}{who})"
    if more:
        yield "", str(more)


def came_back(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how learners and the run came back, and the snapshots."""
    rows, more = output.some(found.get("recoveries", []), FAULTS_MAX)
    for row in rows:
        yield "recovered", recovered(row)
    if more:
        yield "", str(more)
    taken = found.get("snapshots", {})
    if taken.get("complete"):
        newest = f"the newest, {taken['newest']}, {words.at(taken['newest_s'])}"
        yield "snapshots", f"{taken['complete']:,} complete, {newest}"
    rows, more = output.some(taken.get("given_up", []), FAULTS_MAX)
    for row in rows:
        yield "snapshot", f"{row['snapshot']} given up {words.at(row['time_s'])}: {row['reason']}"
    if more:
        yield "", str(more)
    for row in found.get("resumes", []):
        back = "from where it was: nothing that was merged is lost"
        if row["snapshot"] is not None:
            back = f"back to snapshot {row['snapshot']} (epoch {row['epoch']})"
        yield "resumed", f"{words.at(row['time_s'])}, {back}"


def recovered(row: Mapping[str, Any]) -> str:
    """Return what a learner began with."""
    who = f"{words.label(row['learner'])} {words.at(row['time_s'])}"
    if row["source"] == "own":
        return f"{who}: as it was in snapshot {row['snapshot']}"
    if row["source"] == "snapshot":
        return f"{who}: its moments from snapshot {row['snapshot']}"
    size = "" if row["bytes"] is None else f", {row['bytes'] / 1e6:.3g} MB"
    took = "" if row["took_s"] is None else f" in {words.seconds(row['took_s'])}"
    return f"{who}: the state of {row['donor']}{size}{took}"


def guarded(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the guards did."""
    for row in found.get("refused", ()):
        parts = [f"{times(count)} {words.word(reason)}" for reason, count in row["reasons"].items()]
        parts += [f"flagged in {words.plural(row['flagged'], 'merge')}: against the others"] if row["flagged"] else []
        yield "refused" if row["reasons"] else "flagged", f"{words.label(row['learner'])}: {', '.join(parts)}"
    rows, more = output.some(found.get("quarantines", []), FAULTS_MAX)
    for row in rows:
        did = "quarantined" if row["quarantined"] else "released"
        why = f": {row['why']}" if row["why"] else ""
        yield did, f"{words.label(row['learner'])} at {words.seconds(row['time_s'])}, by {row['who']}{why}"
    if more:
        yield "", str(more)


def grouped(rows: list[Mapping[str, Any]], key: str) -> dict[Any, list[Mapping[str, Any]]]:
    """Return the rows by the value of a key, in order of first sight."""
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def times(number: int) -> str:
    """Return how often."""
    return "once" if number == 1 else f"{number:,} times"


def lost_quorums(rows: list[Mapping[str, Any]], total_s: float) -> str:
    """Return all losses of the quorum in one sentence."""
    longest = max(rows, key=lambda row: row["for_s"])
    often = "once," if len(rows) == 1 else f"{times(len(rows))}, {words.seconds(total_s)} in all, longest"
    missing = f", {' and '.join(longest['missing'])} missing" if longest["missing"] else ""
    open_ = "" if longest["regained"] else ", not regained"
    if longest["quarantined"]:
        who = " and ".join(longest["quarantined"])
        open_ += f"; {who} quarantined, which workbench control RUN release {longest['quarantined'][0]} ends"
    return (
        f"{often} {words.seconds(longest['for_s'])} {words.at(longest['start_s'])}: "
        f"{longest['possible']} of the {longest['quorum']} that K asks for{missing}{open_}"
    )
