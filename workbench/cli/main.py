"""The dispatcher: finds the verb, runs it, and turns what it raises into one line and an exit code."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

import workbench
from workbench.config.validate import ConfigError

DONE, AGAINST, WRONG, LOST, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done; ran and found against you; the request is wrong; the run was lost; Ctrl-C."""

VERBS = {
    "train": "train a run and record its tape",
    "replay": "recompute a run from its tape and compare every digest",
    "what-if": "what a run would have been with something changed",
    "serve": "show runs in a browser: live, with controls, and recorded",
    "control": "look at a run of real processes, kill, stall or set",
    "snapshot": "take a snapshot of a run of real processes that goes on",
    "resume": "go on with a run that was stopped or lost",
    "stop": "end a run of real processes in order",
    "inspect": "tables of what a run did",
    "compare": "two to six runs side by side: settings, first divergence, figures",
    "import": "a tape from the JSONL event logs of another trainer",
    "export": "a tape in another format: Perfetto trace, NetCDF, CSV",
    "syncer": "run a syncer for learners that are started by hand, on any machine",
    "learner": "run one learner of such a run in the foreground",
    "keys": "make the keys of a run across machines",
    "explore": "run random fault schedules and check the protocol's invariants after every event",
    "bench": "what this machine gives: the step alone, a merge, the wire",
    "doctor": "what this machine has, and what to type where something is amiss",
}
"""Verbs with their line of help; `workbench.cli.VERB` holds ``add_arguments`` and ``run``."""

FILES = {"import": "import_logs"}
"""File of a verb that cannot be called as the verb is."""

WRONG_PATHS = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
"""Errors of the operating system that the request caused; others, such as a full disk, lose the run."""

WRONG_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)


class Parser(argparse.ArgumentParser):
    """Argument parser that raises `ConfigError` instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        """Raise the error as one line that says where the help is."""
        raise ConfigError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``workbench`` command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``workbench``; without it those of the command line.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _dispatch(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _close_stdout()
        return DONE
    except KeyboardInterrupt as error:
        print(f"workbench: {str(error) or 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if "--debug" in words:
            traceback.print_exc()
        line, code = explain(error)
        print(f"workbench: {line}", file=sys.stderr)
        return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return DONE if words else WRONG
    if words[0] == "--version":
        print(f"workbench {workbench.__version__}")
        return DONE
    _check_folder()
    verb = load_verb(words[0])
    parser = Parser(
        prog=f"workbench {words[0]}",
        description=verb.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return int(verb.run(parser.parse_args(words[1:])))


def _check_folder() -> None:
    """Refuse to work in a folder that somebody has taken away: no path means anything there."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise ConfigError("the folder that this was typed in is gone; go to one that is there (cd)") from error


def load_verb(name: str) -> ModuleType:
    """Return the module of a verb.

    Raises
    ------
    ConfigError
        For a verb that does not exist, with those that do.
    """
    if name not in VERBS:
        near = difflib.get_close_matches(name, VERBS, 1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise ConfigError(f"unknown verb {name!r}{hint}; allowed: {', '.join(VERBS)}")
    return importlib.import_module(f"workbench.cli.{FILES.get(name, name.replace('-', '_'))}")


def overview() -> str:
    """Return the help of the command as a whole."""
    verbs = "\n".join(f"  {name:<9} {line}" for name, line in VERBS.items())
    return (
        "usage: workbench VERB [options]\n\n"
        "Research workbench for Decoupled DiLoCo.\n\n"
        f"verbs:\n{verbs}\n\n"
        "workbench VERB --help says more; --version prints the version.\n"
        "exit codes: 0 done, 1 ran and found against you, 2 wrong request, 3 run lost, 130 interrupted"
    )


def explain(error: Exception) -> tuple[str, int]:
    """Return the one line for the user and the exit code of an error."""
    tape = sys.modules.get("workbench.tape.errors")
    if tape is not None and isinstance(error, tape.StorageFull):
        return str(error), LOST
    if isinstance(error, ConfigError) or (tape is not None and isinstance(error, tape.TapeError)):
        return str(error), WRONG
    if isinstance(error, WRONG_PATHS) or (isinstance(error, OSError) and error.errno in WRONG_NAMES):
        return _shortened(str(error)), WRONG
    if isinstance(error, OSError):
        from workbench.tape.errors import is_full, no_room

        return str(no_room(error.filename or "what was being written") if is_full(error) else error), LOST
    return f"unexpected {type(error).__name__}: {error} (--debug shows the traceback)", LOST


def _shortened(line: str) -> str:
    return line if len(line) <= 300 else f"{line[:200]}… {line[-80:]}"


def _close_stdout() -> None:
    """Leave quietly when the reader of a pipe has gone: Python flushes stdout once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
