"""Ctrl-C during a run: the first asks for its end, the second does not wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed; a second Ctrl-C raises `KeyboardInterrupt` as ever.

    Where another handler is installed, or outside the main thread, signals are left alone.
    """
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed.set()

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed.is_set
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
