"""When what has no record of its arrival reached a tape's syncer, or left it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from workbench.protocol.events import Handed, Received
from workbench.protocol.messages import Join, Mark, Metadata, StateCopy
from workbench.replay.counterfactual.parent import Parent


class Arrived:
    """When what has no record of its arrival reached the syncer, or left it.

    Attributes
    ----------
    metadata : dict of (learner, own step) to int
    joins : dict of (learner, process number) to int
    handed : dict of (learner, fragment, version) to list of int
        When the transport had taken each UPDATE of it.
    parts : dict of int to int
        When the last part of a snapshot came.
    """

    def __init__(self, parent: Parent) -> None:
        self.metadata: dict[tuple[int, int], int] = {}
        self.joins: dict[tuple[int, int], int] = {}
        self.handed: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.parts: dict[int, int] = {}
        owners: dict[int, int] = {}
        for number, item in enumerate(parent.inputs):
            event = parent.decoded(number)
            if isinstance(event, Handed) and event.connection in owners:
                self.handed[owners[event.connection], event.fragment, event.version].append(item.time_ns)
            if not isinstance(event, Received):
                continue
            message: Any = event.message
            if isinstance(message, Metadata):
                self.metadata.setdefault((message.learner, message.n), item.time_ns)
            elif isinstance(message, Join):
                self.joins.setdefault((message.learner, message.process_number), item.time_ns)
                owners[event.connection] = message.learner
            elif isinstance(message, Mark) or (isinstance(message, StateCopy) and message.snapshot):
                self.parts[message.snapshot if isinstance(message, Mark) else message.number] = item.time_ns
