"""State of the token ledger: one account per learner, one book per (learner, fragment)."""

from __future__ import annotations

from array import array

from workbench.protocol.records import FIRST_LEARNER, label_of
from workbench.tape.ledger_book import LOST, Book, RunTotals

GAP_MAX = 1_000_000
"""Own steps that may be missing between two records of one learner."""


class LedgerError(ValueError):
    """The ledger does not balance, or a record counts other tokens than the steps before it."""


class Account:
    """One learner: its total, the totals after its own steps, and a book per fragment.

    Parameters
    ----------
    books : list of Book
        One per fragment.

    Attributes
    ----------
    total, rolled_back : int
        Tokens of the recorded steps that count, and of those that a resume took back.
    first_step : int
        Own step whose total is ``ends[0]``.
    number : int
        Process number of the process that trains, -1 before the first.
    connected : bool
        Between LEARNER_JOINED and LEARNER_LOST.
    left : bool
        It left at the end of the run: the exit that follows ends no interval.
    """

    __slots__ = ("books", "connected", "ends", "first_step", "left", "number", "rolled_back", "total")

    def __init__(self, books: list[Book]) -> None:
        self.books = books
        self.total = 0
        self.rolled_back = 0
        self.first_step = 0
        self.ends = array("q")
        self.number = -1
        self.connected = False
        self.left = False

    def at(self, step: int) -> int | None:
        """Total after own step ``step``; 0 just before the first, None if the journal does not hold the step."""
        index = step - self.first_step
        if 0 <= index < len(self.ends):
            return self.ends[index]
        return 0 if index == -1 or not self.ends else None

    def realign(self, step: int) -> None:
        """Make ``step`` the next one: forget steps that are made again, bridge those that no record reached."""
        ends = self.ends
        missing = step - self.first_step - len(ends)
        if not ends or missing > GAP_MAX or step < self.first_step:
            self.first_step = step
            del ends[:]
        elif missing < 0:
            del ends[missing:]
        else:
            ends.extend([self.total] * missing)


class LedgerState:
    """What the moves of `workbench.tape.ledger_moves` change.

    Parameters
    ----------
    sizes : list of int
        Elements of each fragment.

    Attributes
    ----------
    touched : list of (learner, fragment)
        Books that the last record moved.
    faults : list of str
        Records that contradict the steps before them.
    ended : bool
        The run is ending: the exits that follow end no interval.
    """

    __slots__ = ("accounts", "ended", "faults", "run", "sizes", "touched")

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.run = RunTotals()
        self.accounts: list[Account] = []
        self.touched: list[tuple[int, int]] = []
        self.faults: list[str] = []
        self.ended = False

    def account(self, learner: int) -> Account:
        """Account of a learner; the axis grows up to it."""
        while len(self.accounts) <= learner:
            self.accounts.append(Account([Book(size, self.run) for size in self.sizes]))
        return self.accounts[learner]

    def find(self, process: int, fragment: int) -> tuple[Account, Book] | None:
        """Account and book that a record touches, None (and a fault) where it names no learner or no fragment."""
        learner = process - FIRST_LEARNER
        if learner < 0 or not 0 <= fragment < len(self.sizes):
            self.faults.append(f"{label_of(max(process, 0))}, fragment {fragment}: no such book")
            return None
        account = self.account(learner)
        self.touched.append((learner, fragment))
        return account, account.books[fragment]

    def fault(self, process: int, fragment: int, text: str) -> None:
        """Note that a record contradicts the steps before it."""
        self.faults.append(f"{label_of(max(process, 0))}, fragment {fragment}: {text}")

    def end_process(self, learner: int, cause: str = "death") -> None:
        """Close all open intervals of a learner as lost."""
        account = self.account(learner)
        for p, book in enumerate(account.books):
            book.close(account.total, account.total, LOST, cause)
            book.folded = False
            self.touched.append((learner, p))
