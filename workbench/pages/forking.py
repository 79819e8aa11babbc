"""Counterfactuals that a page asked for: each in a process of its own, behind everything else on the machine."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

NICE = 10
SAID_MAX = 4000
"""Letters of its words that are kept."""
PROGRESS = re.compile(r"merges (\d+/\d+)")
ERROR = re.compile(r"^workbench(?: what-if)?: (?:error: )?(.+)$")


FLAGGED, FLAG = re.compile(r"--set (\S+?)=([^\s);,]+)"), re.compile(r" \(--[a-z-]+\)")


def page_words(sentence: str) -> str:
    """A refusal without what is typed on a command line.

    Examples
    --------
    >>> page_words("quorum = 9 of 4 learners; allowed: 1 to 4 (try --set quorum=4)")
    'quorum = 9 of 4 learners; allowed: 1 to 4 (try quorum = 4)'
    >>> page_words("ask from another round (--from-round) or for the whole (--resimulate)")
    'ask from another round or for the whole'
    """
    return FLAG.sub("", FLAGGED.sub(r"\1 = \2", sentence))


class Question(NamedTuple):
    """What is asked of a tape.

    Attributes
    ----------
    changes : tuple of (str, str)
        Keys with their new values, as texts.
    from_round : int
        From whose opening on; -1: from the start.
    without : tuple of str
        Faults that are left out, as ``kill:2``.
    seeds : int
    """

    changes: tuple[tuple[str, str], ...] = ()
    from_round: int = -1
    without: tuple[str, ...] = ()
    seeds: int = 1

    def arguments(self) -> list[str]:
        """Flags of ``workbench what-if``."""
        found = [f"--set={key}={value}" for key, value in self.changes]
        found += [f"--without={fault}" for fault in self.without]
        found += [f"--from-round={self.from_round}"] if self.from_round >= 0 and self.changes else []
        return [*found, f"--seeds={self.seeds}"]


class Fork:
    """One counterfactual on its way.

    Parameters
    ----------
    parent, out : Path
        Folders of the run, and of the answer.
    question : Question

    Attributes
    ----------
    progress : str
        Merges done, of those to do; empty at first.
    over : bool
    trouble : str
        Why there is no answer, one line; empty if there is one.
    """

    def __init__(self, parent: Path, out: Path, question: Question) -> None:
        self.out, self.question = out, question
        self.progress, self.over, self.trouble = "", False, ""
        command = [
            sys.executable, "-c", "import os, sys; os.nice(int(sys.argv[1])); from workbench.cli.main import main; "
            "sys.exit(main(sys.argv[2:]))", str(NICE), "what-if", str(parent), *question.arguments(),
            f"--out={out}", "--json",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._listen, name=f"fork {out.name}", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        said: list[str] = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = PROGRESS.search(line)
            if found:
                self.progress = found[1]
            else:
                said = [*said, line.strip()][-20:]
        code = self._process.wait()
        self._process.stderr.close()
        if code:
            self.trouble = sentence_of(said) or f"it ended with exit code {code}"
        self.over = True

    def stop(self) -> None:
        """Give it up."""
        if not self.over:
            self._process.terminate()

    def runs(self) -> list[Path]:
        """Folders of the answer: one for each seed."""
        return [self.out] if self.question.seeds == 1 else [self.out / f"seed-{n}" for n in range(self.question.seeds)]


def sentence_of(lines: Sequence[str]) -> str:
    """The line that says what is wrong."""
    shown = [line for line in lines if line]
    told = [found[1] for line in shown if (found := ERROR.match(line))]
    return (told or shown or [""])[-1][:SAID_MAX]
