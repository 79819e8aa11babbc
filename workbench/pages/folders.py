"""The runs that the pages may open: those below the given folders, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workbench.config import ConfigError
from workbench.tape.run_folder import RunFolder

DEPTH_MAX = 2
"""Levels below a given folder at which runs are found."""
FOUND_MAX = 200
LOOKED_MAX = 5000
NAME_MAX = 500


class Folders:
    """Folders of runs, or single runs.

    Parameters
    ----------
    given : sequence of Path

    Attributes
    ----------
    left_out : int
        Runs that the last `names` did not list.
    """

    def __init__(self, given: Sequence[Path]) -> None:
        self._roots: dict[str, Path] = {}
        for path in given:
            real = path.resolve()
            label, number = real.name or "root", 2
            while label in self._roots and self._roots[label] != real:
                label, number = f"{real.name}-{number}", number + 1
            self._roots[label] = real
        self.left_out = 0

    @property
    def new_runs(self) -> Path | None:
        """Where a new run may go: the first given folder that is no run itself; None if there is none."""
        return next((root for root in self._roots.values() if not _is_run(root)), None)

    def names(self) -> list[str]:
        """Names of the runs, the newest first, at most `FOUND_MAX`."""
        found: dict[str, float] = {}
        looked = 0
        for label, root in self._roots.items():
            waiting = [(root, label, 0)]
            while waiting and looked < LOOKED_MAX:
                path, name, depth = waiting.pop()
                looked += 1
                if _is_run(path):
                    found[name] = changed_s(path)
                elif depth < DEPTH_MAX:
                    waiting += [(one, f"{name}/{one.name}", depth + 1) for one in _children(path)]
        ordered = sorted(found, key=lambda name: (-found[name], name))
        self.left_out = max(0, len(ordered) - FOUND_MAX)
        return ordered[:FOUND_MAX]

    def path(self, name: str) -> Path:
        """Folder of a run.

        Raises
        ------
        ConfigError
            No run of that name lies below the given folders; a link that leads out of them is none.
        """
        label, _, rest = name.partition("/")
        root = self._roots.get(label)
        refused = ConfigError(f"there is no run {name[:80]!r} below {self.said}; choose one on the start page")
        if root is None or len(name) > NAME_MAX or "\0" in name:
            raise refused
        try:
            path = (root / rest).resolve() if rest else root
            inside = path.is_relative_to(root) and _is_run(path)
        except (OSError, RuntimeError):
            inside = False
        if not inside:
            raise refused
        return path

    def name(self, path: Path) -> str:
        """Name of a folder below the given ones."""
        real = path.resolve()
        for label, root in self._roots.items():
            if real.is_relative_to(root):
                return "/".join([label, *real.relative_to(root).parts])
        raise ConfigError(f"{path} does not lie below {self.said}")

    @property
    def said(self) -> str:
        """The given folders, for people."""
        return ", ".join(map(str, self._roots.values()))


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.config.is_file() or folder.journal.is_file() or folder.tape.is_dir()


def _children(path: Path) -> list[Path]:
    try:
        return [one for one in path.iterdir() if one.is_dir() and not one.is_symlink() and one.name[:1] != "."]
    except OSError:
        return []


def changed_s(path: Path) -> float:
    """When a run last wrote something [s since the epoch]."""
    folder = RunFolder(path)
    for one in (folder.journal, folder.tape, folder.config):
        try:
            return one.stat().st_mtime
        except OSError:
            continue
    return 0.0
