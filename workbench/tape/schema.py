"""The tape's schema, as data: one table that the recorder, the readers and the documentation share.

Every variable has a dtype, a fill value for "has none", ``units`` and ``long_name``; a variable that
holds codes has CF ``flag_values`` and ``flag_meanings``.  A schema version is raised with every change
that an older reader would misread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.protocol.records import Kind

SCHEMA_VERSION = 1
FORMAT_NAME = "workbench-tape"

FATES = ("open", "merged", "dropped", "skipped", "aborted", "forgotten")
"""What became of a contribution: still open; in a merge; dropped with a reason; its round skipped or
aborted; or forgotten by a syncer that restarted the round (the work is still in the learner)."""
OPEN, MERGED, DROPPED, SKIPPED, ABORTED, FORGOTTEN = range(len(FATES))

WORDS_MAX = 4096
WORD_LENGTH_MAX = 96
NO_WORD = -1
"""Code of a text too long or too rare for the vocabulary; the text itself is in ``/details``."""


@dataclass(frozen=True)
class Variable:
    """One array of a group.

    Attributes
    ----------
    name, dtype, long_name, units : str
        ``dtype`` is a Zarr v3 data type name.
    fill : int, float or str
        Value of "has none".
    axis : str
        Second dimension ("" for none); such an axis grows and its labels never change meaning.
    flags : tuple of (int, str)
        Codes of a coded variable and their meanings.
    words : bool
        Whether the codes index the tape's vocabulary (attribute ``words``), which grows.
    """

    name: str
    dtype: str
    long_name: str
    units: str = "1"
    fill: Any = -1
    axis: str = ""
    flags: tuple[tuple[int, str], ...] = ()
    words: bool = False

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype in memory; texts are objects."""
        return np.dtype(object) if self.dtype == "string" else np.dtype(self.dtype)


@dataclass(frozen=True)
class Group:
    """One table of the tape: rows along ``dim``.

    Attributes
    ----------
    name, dim, title : str
        Name, row dimension and what a row is.
    variables : tuple of Variable
        All of length ``dim``.
    mutable : bool
        Whether rows change after they were first written (a contribution gets its fate later).
    chunk : int
        Rows per chunk while the run goes on.
    path : str
        Zarr group that holds the variables; two tables may share one (rows, and the bytes they name).
    added : bool
        Tapes of the same schema version that were made before it lack the table; it is empty then.
    """

    name: str
    dim: str
    title: str
    variables: tuple[Variable, ...]
    mutable: bool = False
    chunk: int = 8192
    path: str = ""
    added: bool = False

    @property
    def where(self) -> str:
        """Zarr group of the variables."""
        return self.path or self.name

    def variable(self, name: str) -> Variable:
        """The variable of that name."""
        return next(v for v in self.variables if v.name == name)


def _int(name: str, long_name: str, units: str = "1", fill: int = -1, dtype: str = "int64", **more: Any) -> Variable:
    return Variable(name, dtype, long_name, units, fill, **more)


def _small(name: str, long_name: str, fill: int = -1, **more: Any) -> Variable:
    return Variable(name, "int32", long_name, "1", fill, **more)


def _real(name: str, long_name: str, units: str = "1", fill: float = float("nan")) -> Variable:
    return Variable(name, "float64", long_name, units, fill)


def _text(name: str, long_name: str) -> Variable:
    return Variable(name, "string", long_name, "1", "")


def _digest(name: str, long_name: str) -> Variable:
    return Variable(name, "uint64", long_name, "1", 0)


_EVENT = _int("event", "index of the event in /events")
_KIND_FLAGS = tuple((int(k), k.name.lower()) for k in sorted(Kind))

EVENTS = Group(
    "events",
    "event",
    "one recorded event, in journal order, a linear extension of the causal order",
    (
        Variable("kind", "int16", "kind of event", "1", -1, flags=_KIND_FLAGS),
        _small("process", "process that recorded the event; row of /processes"),
        _small("incarnation", "life of the process"),
        _int("seq", "how-manieth record of the process, its own clock entry"),
        _int("time_ns", "the process's own monotonic clock since the run began", "ns"),
        _int("cause", "event of the send that was received, -1 for none"),
        _small("peer", "the other process, -1 for none"),
        _small("fragment", "fragment p"),
        _int("round", "round t"),
        _int("version", "version of the fragment"),
        _int("base_version", "version that the event rests on"),
        _int("step", "own step n"),
        _int("global_step", "global step g"),
        _int("steps", "inner steps counted or moved", fill=0),
        _int("tokens", "tokens counted or moved", fill=0),
        _real("value", "the number of the kind: loss, alpha, weight, seconds", fill=0.0),
        _small("reason", "the word of the kind", fill=0, words=True),
        _digest("digest", "xxh3-64 of the bytes concerned, 0 for none"),
        _int("setting", "settings revision"),
        _small("epoch", "rises when a resume goes back", fill=0),
        _int("clock", "vector clock, own entry = seq; -1 behind the entries recorded", axis="process"),
    ),
)

PROCESSES = Group(
    "processes",
    "process",
    "one process; the row is its number in clocks",
    (
        _text("label", "syncer, supervisor, evaluator, L0, L1, …"),
        _text("kind", "syncer, supervisor, evaluator or learner"),
        _small("learner", "learner id, -1 for other processes"),
    ),
    mutable=True,
    chunk=1024,
)

INCARNATIONS = Group(
    "incarnations",
    "incarnation",
    "one life of one process",
    (
        _small("process", "process number"),
        _small("number", "incarnation, handed out by the syncer"),
        _text("host", "machine, as the process told"),
        _int("pid", "process id on its host, as the process told"),
        _int("start_number", "how-manieth start of the process, as its supervisor counts"),
        _int("start_ns", "start, on the clock of the process that recorded it", "ns"),
        _int("end_ns", "end, on the clock of the process that recorded it, -1 while it lives", "ns"),
        _text("why_ended", "exit, socket, heartbeat, unanswered, superseded, …"),
        _int("first_step", "first own step n"),
        _text("state_from", "where its first state came from: initial, syncer, peer, snapshot, own"),
        _text("fingerprint", "software and device that its bits depend on, as JSON"),
        _int("start_event", "event that began it"),
        _int("end_event", "event that ended it"),
    ),
    mutable=True,
    chunk=1024,
)

STEPS = Group(
    "steps",
    "step",
    "one inner step, none left out",
    (
        _EVENT,
        _small("process", "process number of the learner"),
        _small("learner", "learner id"),
        _small("incarnation", "life of the learner"),
        _int("n", "own step, over all incarnations: the batch index"),
        _int("g", "global step that drove the schedule"),
        _int("batch", "sequences in a micro-batch"),
        _int("accumulation", "micro-batches in the step"),
        _int("tokens", "tokens trained on"),
        _real("loss", "mean loss of the step", "nat"),
        _int("start_ns", "start, on the learner's clock", "ns"),
        _int("end_ns", "end, on the learner's clock", "ns"),
        _int("injected_ns", "time inside the step that an injected fault added", "ns"),
        _int("waited_ns", "time inside the step spent waiting", "ns"),
        _small("epoch", "rises when a resume goes back", fill=0),
    ),
)

FOLDS = Group(
    "folds",
    "fold",
    "one update folded by a learner: what its event has beyond the columns of /events",
    (
        _EVENT,
        _int("reference", "own step n of the copy that a delay-corrected fold keeps, -1 for the base", fill=-2),
        _small("included", "1 if the update names a contribution of the interval"),
        _small("anew", "1 if folded although its version is not higher"),
    ),
)

CONTRIBUTIONS = Group(
    "contributions",
    "contribution",
    "one FRAGMENT, merged or not, in order of arrival",
    (
        _int("event", "event of its arrival; of its drop or merge if no arrival was recorded"),
        _int("round", "round t"),
        _small("fragment", "fragment p"),
        _small("learner", "learner id"),
        _small("incarnation", "life of the learner (that of the capture, where it is known)"),
        _int("base_version", "version that it rests on"),
        _int("step", "own step n after which it was captured"),
        _int("c_steps", "inner steps that it holds"),
        _int("c_tokens", "tokens that it holds"),
        _small("codec", "codec of the payload", fill=0, words=True),
        _int("bytes", "payload on the wire", "bytes"),
        _int("captured_ns", "capture, on the learner's clock", "ns"),
        _int("arrival_ns", "arrival, on the syncer's clock", "ns"),
        _real("weight", "weight in the merge"),
        _real("norm", "norm of its outer gradient"),
        _real("cosine", "cosine to the merged outer gradient"),
        _digest("digest", "xxh3-64 of the fragment as captured"),
        _digest("decoded_digest", "xxh3-64 of the contribution as decoded and merged"),
        Variable("fate", "int16", "what became of it", "1", -1, flags=tuple(enumerate(FATES))),
        _small("reason", "why it was not merged", fill=0, words=True),
        _int("merge", "row of /merges, -1 if not merged"),
        _int("fate_event", "event that decided its fate"),
        _small("epoch", "rises when a resume goes back", fill=0),
    ),
    mutable=True,
)

MERGES = Group(
    "merges",
    "merge",
    "one merge of one fragment",
    (
        _EVENT,
        _int("round", "round t"),
        _small("fragment", "fragment p"),
        _int("version", "version made"),
        _int("base_version", "version before"),
        _int("setting", "settings revision of its arithmetic"),
        _int("tokens", "tokens moved to merged"),
        _int("first_ready_ns", "first learner ready", "ns"),
        _int("quorum_ns", "K-th learner ready", "ns"),
        _int("grace_ns", "end of grace", "ns"),
        _int("pull_ns", "end of pulling", "ns"),
        _int("merge_ns", "end of the arithmetic", "ns"),
        _int("commit_ns", "commit, on the syncer's clock", "ns"),
        _int("send_ns", "first UPDATE of this version handed to the transport", "ns"),
        Variable("included", "int8", "1 where the learner's contribution is in it", "1", 0, axis="learner"),
        _real("norm", "norm of the outer gradient"),
        _digest("digest", "xxh3-64 of the merged fragment"),
        _digest("outer_digest", "xxh3-64 of the outer state"),
        _small("epoch", "rises when a resume goes back", fill=0),
    ),
    mutable=True,
)

SETTINGS = Group(
    "settings",
    "setting",
    "one key of one accepted change",
    (
        _int("revision", "settings revision"),
        _text("key", "configuration key"),
        _text("value", "new value, as JSON"),
        _text("who", "who asked"),
        _EVENT,
        _int("time_ns", "acceptance, on the syncer's clock", "ns"),
        _int("first_step", "own step from which a learner first acted on it"),
        _int("first_round", "round from which it first acted"),
        _small("epoch", "rises when a resume goes back", fill=0),
    ),
    mutable=True,
    chunk=1024,
)

EVALS = Group(
    "evals",
    "eval",
    "one evaluation of a consistent set of versions",
    (
        _EVENT,
        _int("time_ns", "end of the evaluation, on the evaluator's clock", "ns"),
        _int("merges", "merges so far"),
        _int("tokens", "tokens merged so far"),
        _real("loss", "validation loss", "nat"),
        _real("seconds", "time that it took", "s"),
        Variable("versions", "int64", "version of each fragment", "1", -1, axis="fragment"),
    ),
    chunk=1024,
)

SNAPSHOT_FATES = ("taken", "complete", "abandoned")

SNAPSHOTS = Group(
    "snapshots",
    "part",
    "what one process was in one snapshot",
    (
        _EVENT,
        _int("snapshot", "number of the snapshot"),
        _small("process", "process number"),
        _small("learner", "learner id, -1 for the syncer"),
        _int("step", "own step n, -1 for the syncer"),
        _int("seq", "number of the record, among those of its process"),
        _int("time_ns", "when it was taken, on the process's clock", "ns"),
        Variable("versions", "int64", "version of each fragment: the syncer's, or those a learner holds", "1", -1,
                 axis="fragment"),
        _digest("digest", "xxh3-64 of the state, 0 if it was not kept"),
        _int("bytes", "size of a learner's state", "bytes"),
        Variable("fate", "int16", "what became of it", "1", -1, flags=tuple(enumerate(SNAPSHOT_FATES))),
        _text("reason", "why it was abandoned"),
        _small("epoch", "rises when a resume goes back", fill=0),
    ),
    mutable=True,
    chunk=1024,
    added=True,
)  # fmt: skip

DETAILS = Group(
    "details",
    "detail",
    "what an event has beyond the columns of all tables: msgpack [detail, absent keys, cause, reason], a slice of data",
    (_EVENT, _int("offset", "start of its slice of data", "bytes"), _int("bytes", "length of the slice", "bytes")),
)

INPUTS = Group(
    "inputs",
    "input",
    "one input of a machine, in journal order: running the machines on them gives their outputs again",
    (
        _small("process", "process whose machine it is"),
        _small("incarnation", "life of the process"),
        _int("time_ns", "now, as the machine was told it", "ns"),
        _int("event", "events that stand before it in the journal"),
        _int("offset", "start of its slice of data", "bytes"),
        _int("bytes", "length of the slice", "bytes"),
    ),
)


def _bytes(name: str, path: str, title: str) -> Group:
    return Group(
        name, "byte", title, (Variable("data", "uint8", "bytes, end to end", "1", 0),), chunk=1 << 18, path=path
    )


DETAIL_BYTES = _bytes("detail_bytes", "details", "one byte of the slices that rows of /details name")
INPUT_BYTES = _bytes("input_bytes", "inputs", "one byte of the encoded inputs that rows of /inputs name")

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        PROCESSES, INCARNATIONS, EVENTS, STEPS, FOLDS, CONTRIBUTIONS, MERGES, SETTINGS, EVALS, SNAPSHOTS,
        DETAILS, DETAIL_BYTES, INPUTS, INPUT_BYTES,
    )
}  # fmt: skip
"""All tables of a tape, by name."""


def attributes(variable: Variable, words: list[str]) -> dict[str, Any]:
    """CF attributes of a variable, given the tape's vocabulary so far.

    ``flag_meanings`` is a blank-separated list, so blanks inside a word become underscores there;
    ``words`` beside it holds the words as they are.
    """
    attrs: dict[str, Any] = {"units": variable.units, "long_name": variable.long_name}
    if variable.flags or variable.words:
        flags = list(enumerate(words)) if variable.words else variable.flags
        attrs["flag_values"] = [code for code, _ in flags]
        attrs["flag_meanings"] = " ".join("_".join(meaning.split()) or "none" for _, meaning in flags)
        if variable.words:
            attrs["words"] = list(words)
    return attrs


def describe() -> str:
    """The schema as text: one line per group, one per variable."""
    lines = []
    for group in GROUPS.values():
        lines.append(f"/{group.where} (dim {group.dim}): {group.title}")
        for v in group.variables:
            dims = f"{group.dim} x {v.axis}" if v.axis else group.dim
            unit = "" if v.units == "1" else f" [{v.units}]"
            lines.append(f"    {v.name} ({dims}, {v.dtype}): {v.long_name}{unit}")
    return "\n".join(lines) + "\n"
