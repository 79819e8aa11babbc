"""Token ledger: at every event each token of each (learner, fragment) is in exactly one place.

DESIGN section 3, "Token ledger".  One step touches every fragment and fragments are merged in different
rounds, so each (learner, fragment) keeps a book of its own (`workbench.tape.ledger_book`); which record moves
what stands in `workbench.tape.ledger_moves`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from workbench.protocol.records import Record
from workbench.tape.ledger_book import CLOSED_FATES, LOCAL, MERGED
from workbench.tape.ledger_moves import MOVES, roll_back
from workbench.tape.ledger_state import LedgerError, LedgerState

__all__ = ["Ledger", "LedgerError"]


class Ledger:
    """Fates of all tokens, moved event by event.

    Parameters
    ----------
    learners, fragments : int
        M and P; the learner axis grows when a record names a higher learner.
    sizes : sequence of int
        Elements of each fragment, the weights of the run totals.

    Examples
    --------
    >>> from workbench.protocol.records import Kind, process_of
    >>> ledger = Ledger(1, 2, [10, 10])
    >>> ledger.apply(Record(Kind.STEP_ENDED, process_of(0), 0, 1, 0, step=1, steps=1, tokens=100))
    >>> ledger.books(0, 1)["local"], ledger.totals()["tokens_processed"]
    (100, 100.0)
    """

    def __init__(self, learners: int, fragments: int, sizes: Sequence[int]) -> None:
        if len(sizes) != fragments or fragments < 1 or min(sizes) < 1:
            raise LedgerError(f"sizes {list(sizes)}: expected {fragments} positive numbers, one per fragment")
        self._state = LedgerState([int(size) for size in sizes])
        self._size = sum(self._state.sizes)
        if learners > 0:
            self._state.account(learners - 1)

    def apply(self, record: Record) -> None:
        """Move the tokens that one record moves; records come in journal order."""
        state = self._state
        if state.touched:
            state.touched = []
        move = MOVES.get(record.kind)
        if move is not None:
            move(state, record)

    def roll_back(self, steps: Mapping[int, int], versions: Sequence[int]) -> None:
        """Go back to a snapshot: later tokens become rolled_back, later merges and folds are undone.

        Parameters
        ----------
        steps : mapping of learner to own step
            Last own step of every learner that the snapshot knows; the others roll back whole.
        versions : sequence of int
            Version of each fragment in the snapshot.
        """
        self._state.touched = []
        roll_back(self._state, steps, versions)

    @property
    def faults(self) -> list[str]:
        """Records that contradict the steps before them; `check` and `check_last` raise the first."""
        return self._state.faults

    def books(self, learner: int, fragment: int) -> dict[str, int]:
        """Tokens of one (learner, fragment) by fate."""
        account = self._state.accounts[learner]
        book = account.books[fragment]
        return {**book.fates, LOCAL: book.local(account.total)}

    @property
    def learners(self) -> int:
        """Learners on the axis."""
        return len(self._state.accounts)

    def processed(self, learner: int) -> int:
        """Tokens that the learner's recorded steps processed."""
        account = self._state.accounts[learner]
        return account.total + account.rolled_back

    def totals(self) -> dict[str, float]:
        """Run totals ``tokens_*``: sum over fragments, each weighted by its share of the model."""
        return self.totals_of(self.counts())

    def counts(self) -> tuple[int, ...]:
        """What `totals` is made of, in whole numbers: cheap enough to be taken after every record."""
        return (self._state.run.processed, *self._state.run.fates.values())

    def totals_of(self, counts: Sequence[int]) -> dict[str, float]:
        """Run totals of the moment at which `counts` was taken."""
        processed, *fates = counts
        given = {f"tokens_{fate}": tokens / self._size for fate, tokens in zip(CLOSED_FATES, fates, strict=True)}
        local = processed * self._size - sum(fates)
        return {"tokens_processed": float(processed), **given, "tokens_local": local / self._size}

    def by_reason(self) -> dict[str, dict[str, float]]:
        """Run totals by fate and reason: not_merged and lost by word, blended by alpha."""
        found: dict[str, dict[str, float]] = {fate: {} for fate in CLOSED_FATES if fate != MERGED}
        for (fate, key), weighted in sorted(self._state.run.keys.items(), key=str):
            if fate != MERGED and weighted:
                found[fate]["" if key == -1 else str(key)] = weighted / self._size
        return found

    def merged_by_round(self) -> dict[int, float]:
        """Run total merged in each round, rolled-back merges left out."""
        return {
            _number(key): weighted / self._size
            for (fate, key), weighted in sorted(self._state.run.keys.items(), key=lambda item: _number(item[0][1]))
            if fate == MERGED and weighted
        }

    def check_last(self) -> None:
        """Verify the books that the last record moved.

        Raises
        ------
        LedgerError
            Naming learner, fragment and the numbers.
        """
        if self._state.faults:
            raise LedgerError(self._state.faults[0])
        for learner, fragment in self._state.touched:
            self._check_book(learner, fragment)

    def _check_book(self, learner: int, fragment: int) -> None:
        account = self._state.accounts[learner]
        fault = account.books[fragment].fault(account.total, account.rolled_back)
        if fault:
            raise LedgerError(f"L{learner}, fragment {fragment}, {self.processed(learner)} tokens processed: {fault}")

    def check(self) -> None:
        """Verify every book, and the run totals against their sum.

        Raises
        ------
        LedgerError
            Naming learner, fragment and the numbers.
        """
        if self._state.faults:
            raise LedgerError(self._state.faults[0])
        sums = dict.fromkeys(CLOSED_FATES, 0)
        for learner, account in enumerate(self._state.accounts):
            for p, book in enumerate(account.books):
                self._check_book(learner, p)
                for fate, tokens in book.fates.items():
                    sums[fate] += tokens * book.size
        if sums != self._state.run.fates:
            raise LedgerError(f"run totals {self._state.run.fates} are not the sum of the books {sums}")


def _number(key: Hashable) -> int:
    return key if isinstance(key, int) else -1
