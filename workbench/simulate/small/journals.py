"""Journals of the small world, told apart by what a restart makes of them."""

from __future__ import annotations

from collections.abc import Callable

from workbench.protocol import restart
from workbench.protocol.records import SYNCER, Kind, Record
from workbench.protocol.settings import FixedSettings, SettingsBook
from workbench.simulate.small import checks, forms
from workbench.simulate.small.tables import Restored, Tables

_PASSED_OVER = (
    Kind.ROUND_READY, Kind.QUORUM_REACHED, Kind.GRACE_ENDED, Kind.PULL_SENT, Kind.UPDATE_SENT, Kind.FRAGMENT_ARRIVED,
    Kind.FRAGMENT_DROPPED, Kind.REFUSAL_ARRIVED, Kind.LEARNER_HEALED, Kind.LEARNER_LOST, Kind.LEARNER_STALLED,
)  # fmt: skip


class Journals:
    """Journals by number.

    `restart.restore` folds records from the left into what it returns.  So two journals of which it makes the same
    are continued alike, and one of them, as short as it may be, stands for both.

    Parameters
    ----------
    tables : Tables
        Where they get their numbers.
    fixed : FixedSettings
        Of the run.
    book : callable
        Gives the settings that the run began with.
    """

    def __init__(self, tables: Tables, fixed: FixedSettings, book: Callable[[], SettingsBook]) -> None:
        self.tables = tables
        self.fixed = fixed
        self.book = book
        self._records: list[tuple[Record, ...]] = []

    def append(self, number: int, batch: int) -> int:
        """Number of a journal with a batch of records at its end."""
        new = self.tables.batches.get(batch)
        checks.journal_takes(self.tables.journals.get(number).state, new)
        return self.put((*self._records[number], *new))

    def put(self, records: tuple[Record, ...]) -> int:
        """Number of the journal that holds these records."""
        number = self.tables.journals.put(self.restored(records))
        if number == len(self._records):
            fewer = compacted(records)
            same = self.tables.journals.put(self.restored(fewer)) == number
            self._records.append(fewer if same else records)
        return number

    def restored(self, records: tuple[Record, ...]) -> Restored:
        """What a restart makes of records."""
        found = restart.restore(self.fixed, self.book(), records)
        forms.tidy_syncer(found.state)
        return Restored(found.state, found.uncommitted)


def compacted(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Records without those that a restart passes over: of a learner, its last step and its last record stay."""
    last = {(record.process, record.kind == Kind.STEP_ENDED): i for i, record in enumerate(records)}
    kept = set(last.values())
    return tuple(
        record
        for i, record in enumerate(records)
        if (record.kind not in _PASSED_OVER if record.process == SYNCER else i in kept)
    )
