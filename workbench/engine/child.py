"""What a process needs of its operating system: death with its parent, niceness, signals, a log of its own."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
LINE_MAX = 300


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (Linux); leave at once if that has happened already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def name_process(name: str) -> None:
    """Name this process in lists of the operating system (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def default_signals() -> None:
    """Ctrl-C of a terminal is the supervisor's business; SIGTERM ends a process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def log_to(path: Path) -> None:
    """Write stdout and stderr, of whichever library, to the end of a file (0600)."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.enable(sys.stderr)


def settle(nice: int, cores: Sequence[int]) -> None:
    """Lower the priority, and stay on some cores if any are given."""
    if nice:
        os.nice(nice)
    stay_on(cores)


def stay_on(cores: Sequence[int]) -> None:
    """Have the calling thread, and those that it starts, stay on these cores; on all as before if none are given."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def move_aside(beside: Sequence[int]) -> tuple[int, ...]:
    """Have the calling thread, and those that it starts from now on, leave its cores to the threads there are.

    Parameters
    ----------
    beside : sequence of int
        Where it goes; none: it stays.

    Returns
    -------
    tuple of int
        The cores that it leaves, empty if it stays.
    """
    if not beside or not hasattr(os, "sched_getaffinity"):
        return ()
    left = tuple(sorted(os.sched_getaffinity(0)))
    stay_on(beside)
    return left


def signal_name(status: int) -> str:
    """How a process ended, from its wait status: ``exit 0``, ``SIGKILL``."""
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.WEXITSTATUS(status)}"


def last_line(error: BaseException) -> str:
    """The line of a traceback that says what it is about."""
    return "".join(traceback.format_exception_only(error)).strip().partition("\n")[0][:LINE_MAX]


def run_and_leave(main: Callable[[], int]) -> None:
    """Run ``main`` and end this process with its code, without exit handlers: of a fork they are the parent's."""
    code = 3
    try:
        code = main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 3
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
