"""The syncer of the small world takes one input: its machine acts, and its actions become effects by number."""

from __future__ import annotations

from typing import Any

from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.messages import Pull, Update
from workbench.protocol.records import SUPERVISOR, Kind, Record, process_of
from workbench.protocol.syncer import SyncerMachine
from workbench.protocol.syncer_state import SyncerState
from workbench.simulate.arithmetic import Ledgered
from workbench.simulate.small import checks, forms
from workbench.simulate.small.forms import NOW
from workbench.simulate.small.tables import TOKENS, Event, Outcome, Tables


def start(tables: Tables, state: SyncerState, reason: str, uncommitted: list[tuple[int, int, int]]) -> Outcome:
    """First actions of a process."""
    machine = SyncerMachine(state)
    return _act(tables, machine, None, None, machine.start(NOW, reason, uncommitted))


def take(tables: Tables, number: int, event: Event) -> Outcome:
    """The syncer takes an input."""
    state = tables.syncers.get(number)
    if event[0] == "age":
        forms.age_syncer(state, event[1])
        forms.tidy_syncer(state)
        return Outcome(tables.syncers.put(state), ())
    machine, given = SyncerMachine(state), _input(tables, event)
    return _act(tables, machine, tables.syncers.get(number), given, machine.handle(NOW, given))


def _act(
    tables: Tables,
    machine: SyncerMachine,
    before: SyncerState | None,
    given: ev.SyncerInput | None,
    todo: list[act.Action],
) -> Outcome:
    """Let the transport take each UPDATE at once, check what was done, and number it."""
    done: list[act.Action] = []
    while todo:
        done += todo
        sent = [action for action in todo if type(action) is act.Send]
        todo = []
        for action in sent:
            if type(action.message) is Update:
                handed = ev.Handed(action.connection, action.message.fragment, action.message.version)
                todo += machine.handle(NOW, handed)
    checks.syncer_acted(before, given, machine.state, done)
    effects = tuple(_effect(tables, action) for action in done if type(action) is not act.Release)
    forms.tidy_syncer(machine.state)
    return Outcome(tables.syncers.put(machine.state), effects)


def _input(tables: Tables, event: Event) -> ev.SyncerInput:
    kind = event[0]
    if kind == "got":
        return ev.Received(event[1], tables.up.get(event[2]))
    if kind == "closed":
        return ev.Disconnected(event[1])
    if kind == "exited":
        _, seq, learner, number = event
        ended = Record(Kind.PROCESS_ENDED, SUPERVISOR, 1, seq, 0, peer=process_of(learner), value=float(number))
        return ev.RecordsCame(SUPERVISOR, [ended])
    if kind == "merged":
        order = tables.orders.get(event[1])
        ledger = Ledgered(order.fragment + 1, TOKENS)
        ledger.payloads = {handle: tables.works[handle] for handle in order.handles}
        return ev.MergeDone(order.round, order.fragment, *ledger.merge(order))
    return ev.CommitDone(*event[1:]) if kind == "committed" else ev.Woken()


def _effect(tables: Tables, action: Any) -> Event:
    kind = type(action)
    if kind is act.Append:
        return ("append", tables.batches.put([forms.tidy_record(record) for record in action.records]))
    if kind is act.Send:
        message: Any = action.message
        number = tables.down.put(forms.tidy_message(message))
        if type(message) is Update:
            return ("send", action.connection, action.channel, number, "Update", message.fragment, message.version)
        t, p = (message.round, message.fragment) if type(message) is Pull else (-1, -1)
        return ("send", action.connection, action.channel, number, type(message).__name__, t, p)
    if kind is act.Merge:
        return ("merge", tables.orders.put(action))
    if kind is act.Commit:
        return ("commit", action.round, action.fragment, action.version)
    raise checks.Broken(f"the syncer stops in the middle of a run: {action}")
