"""The machines of the breadth-first search as pure functions of numbered states, each computed once.

A state, a message, a batch of records or a contribution has a number: that of its canonical bytes.  One call of a
machine maps (number of its state, what happened) to (number of the next state, effects), and worlds that differ
elsewhere share it.  Within a call the driver does at once what the virtual-time driver does at the same instant: a
capture is encoded, a state adopted, an UPDATE handed to the transport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.config import RunConfig
from workbench.protocol import syncer
from workbench.protocol.settings import fixed_settings_of, learner_settings_of
from workbench.simulate.small import syncers
from workbench.simulate.small.journals import Journals
from workbench.simulate.small.learners import LearnerRun, new_life
from workbench.simulate.small.tables import Event, Outcome, Tables
from workbench.simulate.world import settings_book_of


class Machines:
    """All that processes can do, by number.

    Parameters
    ----------
    config : RunConfig
        The run.
    offsets : tuple of int
        Due offset of each fragment.
    """

    def __init__(self, config: RunConfig, offsets: tuple[int, ...]) -> None:
        self.config = config
        self.fixed = fixed_settings_of(config, offsets)
        self.tables = Tables()
        self.journals = Journals(self.tables, self.fixed, lambda: settings_book_of(config))
        self._known: dict[tuple[Any, ...], Any] = {}
        self.first_journal = self.journals.put(())

    def once(self, key: tuple[Any, ...], compute: Callable[..., Any], *arguments: Any) -> Any:
        """What ``compute`` gives, computed once for each key."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = compute(*arguments)
        return found

    def learner(self, life: int, event: Event) -> Outcome:
        """A learner takes an input."""
        return self.once(("learner", life, event), self._learner, life, event)

    def _learner(self, life: int, event: Event) -> Outcome:
        return LearnerRun(self.tables, self.tables.lives.get(life)).take(event)

    def first_life(self, learner: int, number: int) -> Outcome:
        """A new process of a learner makes its first actions."""
        return self.once(("life", learner, number), self._first_life, learner, number)

    def _first_life(self, learner: int, number: int) -> Outcome:
        life = new_life(learner, number, self.fixed, learner_settings_of(self.config))
        return LearnerRun(self.tables, life).take(("start",))

    def syncer(self, state: int, event: Event) -> Outcome:
        """The syncer takes an input."""
        return self.once(("syncer", state, event), syncers.take, self.tables, state, event)

    def first_syncer(self) -> Outcome:
        """The run's first syncer makes its first actions."""
        return syncers.start(self.tables, syncer.new_state(self.fixed, settings_book_of(self.config)), "new", [])

    def restarted_syncer(self, journal: int) -> Outcome:
        """A syncer that has read a journal makes its first actions."""
        return self.once(("restart", journal), self._restarted, journal)

    def _restarted(self, journal: int) -> Outcome:
        found = self.tables.journals.get(journal)
        return syncers.start(self.tables, found.state, "restart", found.uncommitted)

    def append(self, journal: int, batch: int) -> int:
        """A batch of records is appended to a journal."""
        return self.once(("append", journal, batch), self.journals.append, journal, batch)
