"""Whether a learner's message is of this run at all: lists as long as the run has fragments.

The wire checks the same before a machine hears of it; the machine does not rely on that.
"""

from __future__ import annotations

from workbench.protocol.actions import Send
from workbench.protocol.messages import CONTROL, End, Join, Message, Metadata
from workbench.protocol.records import Kind, process_of
from workbench.protocol.syncer_core import SyncerCore

FOREIGN = "fragments"
"""Reason of the END that sends such a process away."""


def misfit(message: Join | Metadata, fragments: int) -> str:
    """What does not fit a run of so many fragments, as one line; empty if all does."""
    lists = {"base": message.base, "c_steps": message.c_steps, "c_tokens": message.c_tokens}
    wrong = [f"{name} has {len(values)}" for name, values in lists.items() if len(values) != fragments]
    what = type(message).__name__.upper()
    return f"{what} of another run: {', '.join(wrong)} entries, the run {fragments} fragments" if wrong else ""


def refused(core: SyncerCore, connection: int, message: Message) -> bool:
    """Refuse a message that does not fit, recorded with its reason; who wants to join with it is sent away."""
    if not isinstance(message, Join | Metadata):
        return False
    why = misfit(message, core.state.fixed.fragments)
    if not why:
        return False
    core.record(Kind.MESSAGE_REFUSED, peer=process_of(message.learner), reason=why)
    if isinstance(message, Join):
        core.out.append(Send(connection, CONTROL, End(-1, FOREIGN, 0, core.state.closed_below, core.state.clock)))
    return True
