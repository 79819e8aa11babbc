"""What records show of the effect of a click: stages that come one after the other as the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.pages.event_words import missed_by
from workbench.pages.reason_words import because
from workbench.protocol.faults import COUNTED_KINDS, ENDING_KINDS, LASTING_KINDS, NUMBER_KINDS, SYNCER_KINDS
from workbench.protocol.records import SYNCER, Kind, Record, label_of, process_of

Answer = dict[str, Any]
Shows = Callable[[Record, Answer], str]
"""What of a stage a record shows, "" for one that shows nothing of it."""

SHOWING = frozenset({
    Kind.LEARNER_ADDED, Kind.LEARNER_JOINED, Kind.LEARNER_LOST, Kind.SYNCER_STARTED, Kind.FAULT_INJECTED,
    Kind.FAULT_ENDED, Kind.FAULT_APPLIED, Kind.FRAGMENT_DROPPED, Kind.ROUND_SKIPPED, Kind.MERGED, Kind.PROCESS_STARTED,
    Kind.PROCESS_ENDED, Kind.SETTING_CHANGED, Kind.SETTING_APPLIED, Kind.RUN_ENDED,
})  # fmt: skip
"""Kinds that a stage may wait for."""


class Stage(NamedTuple):
    """Attributes
    ----------
    shows : function (Record, answer) -> str
    is_vital : bool
        The stages behind it are not looked for before it is seen; another may be passed over, since telemetry may
        lose its record.
    """

    shows: Shows
    is_vital: bool = True


class Effect:
    """Parameters
    ----------
    *stages : Stage

    Attributes
    ----------
    told : list of str
        What was seen.
    done : bool
        Nothing more is looked for.
    """

    def __init__(self, *stages: Stage) -> None:
        self._left = list(stages)
        self.told: list[str] = []
        self.done = False

    def note(self, record: Record, answer: Answer) -> str:
        """Look whether a record shows the next stage; what it shows, "" for nothing."""
        for place, stage in enumerate(self._left):
            text = stage.shows(record, answer)
            if text:
                self._left = [] if text.endswith(NO_MORE) else self._left[place + 1 :]
                self.done = not self._left
                return text.removesuffix(NO_MORE)
            if stage.is_vital:
                break
        return ""

    def tell(self, text: str) -> None:
        """Keep what was seen."""
        self.told.append(text)

    def end(self, text: str = "") -> None:
        """Look for nothing more."""
        self._left, self.done = [], True
        if text:
            self.told.append(text)


NO_MORE = "\0"
"""At the end of what a stage shows: the stages behind it will not come."""


def of_fault(kind: str, learner: int, *, for_good: bool = False) -> Effect:
    """A fault is recorded, does its harm, and is over.

    Parameters
    ----------
    kind : str
    learner : int
        -1 for the syncer.
    for_good : bool
        A process that it ends does not start again.
    """
    injected = Stage(_injected)
    if kind in SYNCER_KINDS:
        last = [_gone(SYNCER), Stage(_of(Kind.SYNCER_STARTED, "started again"))] if kind in ENDING_KINDS else [_over()]
        return Effect(injected, *(last[:1] if for_good else last))
    if kind in ENDING_KINDS:
        return Effect(injected, _gone(process_of(learner)), *([] if for_good else _back(learner)))
    if kind in NUMBER_KINDS:
        return Effect(injected, *_poisoned(kind, learner))
    return Effect(injected, _over())


def of_heal(learner: int) -> Effect:
    """Every fault that was ended is over."""
    left: list[str] = []

    def over(record: Record, answer: Answer) -> str:
        if record.kind == Kind.FAULT_ENDED and record.peer == process_of(learner):
            left.append(record.reason)
            if len(left) == answer.get("healed"):
                return f"its {'fault is' if len(left) == 1 else 'faults are'} over: {', '.join(left)}"
        return ""

    return Effect(Stage(over))


def of_coming(learner: int | None, begins: Kind, words: Callable[[Record], str]) -> Effect:
    """A learner is added, revived or released, joins and is merged; None: the answer says which."""

    def of(answer: Answer) -> int:
        return process_of(int(answer["learner"]) if learner is None else learner)

    def begun(record: Record, answer: Answer) -> str:
        return words(record) if record.kind == begins and record.peer == of(answer) else ""

    def joined(record: Record, answer: Answer) -> str:
        return "joined" if record.kind == Kind.LEARNER_JOINED and record.peer == of(answer) else ""

    def merged(record: Record, answer: Answer) -> str:
        return _merged_in(record) if _holds(record, of(answer)) else ""

    joins = [] if begins == Kind.SETTING_CHANGED else [Stage(joined)]
    return Effect(Stage(begun), *joins, Stage(merged))


def of_going(learner: int) -> Effect:
    """A learner leaves for good."""
    return Effect(Stage(_of(Kind.LEARNER_LOST, "nobody counts on it", process_of(learner)), False),
                  _gone(process_of(learner)))  # fmt: skip


def of_settings() -> Effect:
    """Somebody acts on the revision, or on a later one."""

    def applied(record: Record, answer: Answer) -> str:
        if record.kind != Kind.SETTING_APPLIED or not 0 <= answer.get("revision", -1) <= record.setting:
            return ""
        place = f"from round {record.round:,}" if record.round >= 0 else f"from step {record.step:,}"
        return f"{label_of(record.process)} acts on it {place}"

    return Effect(Stage(applied))


def is_in_force_until_healed(kind: str, learner: int) -> bool:
    """Whether a fault of this kind acts on a learner until it is over or somebody heals it."""
    return kind in LASTING_KINDS and learner >= 0


def may_be_doubled(kind: str) -> bool:
    """Whether a second fault of the same numbers says something: so many messages more."""
    return kind in COUNTED_KINDS or kind not in LASTING_KINDS


def _injected(record: Record, answer: Answer) -> str:
    if record.kind != Kind.FAULT_INJECTED or record.detail.get("fault") != answer.get("fault"):
        return ""
    missed = missed_by(record.detail)
    return f"on the tape, without effect: {missed}{NO_MORE}" if missed else "on the tape"


def _of(kind: Kind, text: str, peer: int = -1) -> Shows:
    return lambda record, answer: text if record.kind == kind and peer in (-1, record.peer) else ""


def _over() -> Stage:
    def over(record: Record, answer: Answer) -> str:
        mine = record.kind == Kind.FAULT_ENDED and record.detail.get("fault") == answer.get("fault")
        return f"{WHY_OVER.get(str(record.detail.get('why')), 'over')} after {record.value:.1f} s" if mine else ""

    return Stage(over)


WHY_OVER = {"over": "over", "healed": "healed", "used_up": "used up"}


def _gone(process: int) -> Stage:
    return Stage(_of(Kind.PROCESS_ENDED, "process gone", process), is_vital=False)


def _back(learner: int) -> list[Stage]:
    process = process_of(learner)
    return [
        Stage(_of(Kind.LEARNER_JOINED, "joined again", process)),
        Stage(lambda record, answer: _merged_in(record, " again") if _holds(record, process) else ""),
    ]


def _merged_in(record: Record, again: str = "") -> str:
    return f"merged{again} in round {record.round:,}"


def _holds(record: Record, process: int) -> bool:
    return record.kind == Kind.MERGED and any(process_of(int(m)) == process for m in record.detail.get("learners", ()))


def _poisoned(kind: str, learner: int) -> list[Stage]:
    """The contribution that holds bad numbers, and what became of it."""
    process, round_ = process_of(learner), -1

    def applied(record: Record, answer: Answer) -> str:
        nonlocal round_
        if record.kind != Kind.FAULT_APPLIED or record.process != process or record.reason != kind:
            return ""
        round_ = int(record.detail.get("round", -1))
        return f"in its contribution to round {round_:,}" if round_ >= 0 else ""

    def judged(record: Record, answer: Answer) -> str:
        if record.round != round_:
            return ""
        if record.kind == Kind.FRAGMENT_DROPPED and record.peer == process:
            guard = record.detail.get("guard")
            return f"refused: {because(record.reason)}{f', guard_{guard}' if guard else ''}"
        if record.kind == Kind.ROUND_SKIPPED:
            return f"round skipped: {because(record.reason)}"
        if record.kind == Kind.MERGED:
            return "merged: nothing refused it" if _holds(record, process) else "not in the merge of its round"
        return ""

    return [Stage(applied), Stage(judged)]
