"""The newest of what comes, for readers that each take what is new to them: bounded, and what was lost is counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Tail(Generic[T]):
    """Parameters
    ----------
    most : int
        Items that are kept.

    Attributes
    ----------
    total : int
        Items that ever came.
    """

    def __init__(self, most: int) -> None:
        self._kept: deque[T] = deque(maxlen=most)
        self.total = 0

    def add(self, items: Iterable[T]) -> None:
        """Take what is new."""
        for item in items:
            self._kept.append(item)
            self.total += 1

    def since(self, seen: int) -> News[T]:
        """What came after the first ``seen`` items, as far as it is kept."""
        first = self.total - len(self._kept)
        start = max(0, seen - first)
        return News(list(self._kept)[start:], max(0, first - seen), self.total)


class News(NamedTuple, Generic[T]):
    """Attributes
    ----------
    items : list
    lost : int
        Items between what the reader had and these.
    total : int
        To ask with the next time.
    """

    items: list[T]
    lost: int
    total: int
