"""Recompute a run from its tape: every digest, and every record of the syncer.

Exit code 0: bit for bit the same; 1: it differs, and the first event is named.
On another machine, or with other versions, the entries that differ are named,
and losses and norms are compared within 1e-6. With --upto only what led to a
merge is recomputed, and --out holds the weights just after it; with --from what
led to a merge is recomputed, as the rest hangs off it, and not compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.replay.exact import ReplayReport
    from workbench.replay.machines import MachinesReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench replay``."""
    options.add_run(parser)
    parser.add_argument("--out", metavar="FILE", help="write the weights there, an .npz archive; must not exist yet")
    parser.add_argument(
        "--upto", metavar="MERGE", type=int, help="end just after this merge (from 0; -1 is the last); machines rest"
    )
    parser.add_argument(
        "--from", dest="since", metavar="MERGE", type=int, help="compare only what lies behind this merge and its past"
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=1,
        help="processes that share the learners (1); the bits are the same",
    )
    parser.add_argument(
        "--weights-only", action="store_true", help="do not run the machines again on their recorded inputs"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay, print what was compared, return 0 if nothing differs and 1 if something does."""
    out = None if arguments.out is None else checked_out(arguments.out)
    if arguments.workers < 1:
        raise ConfigError(f"--workers {arguments.workers}: expected 1 or more processes")

    from workbench.cli import output
    from workbench.cli.opening import opened
    from workbench.replay.environment import check_training
    from workbench.replay.exact import replay
    from workbench.replay.machines import rerun_machines
    from workbench.tape import config_difference

    tape = opened(arguments.run)
    check_training(tape, str(arguments.run))
    config = config_difference(arguments.run, tape)
    with output.progress("merges replayed") as report:
        session = replay(
            tape,
            progress=lambda done, total: report(done, total, ""),
            upto=arguments.upto,
            since=arguments.since,
            workers=arguments.workers,
        )
        result = session.report
    rest = arguments.weights_only or arguments.upto is not None
    machines = None if rest else rerun_machines(tape)
    if out is not None:
        write_weights(out, result.weights())
    if config is not None:
        print(f"workbench: warning: {config}", file=sys.stderr)
    if arguments.json:
        output.print_json({**result.to_json(), **machines_json(machines), "config_difference": config})
    else:
        output.console().print(report_table(result, machines, out, arguments.upto, arguments.since))
    return 1 if result.bit_exact is False or (machines is not None and not machines.equal) else 0


def checked_out(name: str) -> Path:
    """Return the file that the weights will be written to.

    Raises
    ------
    ConfigError
        For an empty name, one of another kind of file, something that exists, or a folder that is missing or cannot be
        written.
    """
    if not name.strip() or "\0" in name:
        raise ConfigError("--out has no name; type --out FILE, for example --out weights.npz")
    path = Path(name)
    if path.suffix not in ("", ".npz"):
        raise ConfigError(f"--out {path}: an .npz archive is written; type --out {path.with_suffix('.npz')}")
    try:
        folder = path.resolve().parent
        if path.is_dir():
            raise ConfigError(f"--out {path}: this is a folder; type a file, for example --out {path / 'weights.npz'}")
        if os.path.lexists(path):
            raise ConfigError(f"--out {path}: this file exists, and nothing is overwritten; type a new name")
        if not folder.is_dir():
            raise ConfigError(f"--out {path}: the folder {folder} does not exist; make it first (mkdir -p {folder})")
        partial_name(path).lstat()
    except FileNotFoundError:
        pass  # the name is one that a file may have
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"--out {name[:80]}: no file can have this name ({why}); type another") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {path}: the folder {folder} cannot be written; type a file in another folder")
    try_to_write(path, folder)
    return path


def try_to_write(path: Path, folder: Path) -> None:
    """See that a folder takes a file, whatever its mode says: before anything is computed.

    Raises
    ------
    ConfigError
        It does not.
    """
    from workbench.tape.errors import is_full, no_room

    partial = partial_name(path)
    try:
        partial.touch(mode=0o600)
        partial.unlink()
    except OSError as error:
        if is_full(error):
            raise no_room(path, "nothing of it is left") from error
        raise ConfigError(
            f"--out {path}: nothing can be written to the folder {folder} ({error.strerror}); type a file in another "
            "folder"
        ) from error


def machines_json(machines: MachinesReport | None) -> dict[str, Any]:
    """Return what the machines' second run gave, null where they were left out or the tape has no record."""
    if machines is None:
        return {"machines_agree": None, "machine_records": None, "machines_first_difference": None}
    return {
        "machines_agree": machines.equal if machines.records else None,
        "machine_records": machines.records,
        "machines_first_difference": machines.first_difference,
    }


def report_table(
    result: ReplayReport,
    machines: MachinesReport | None,
    out: Path | None,
    upto: int | None = None,
    since: int | None = None,
) -> Any:
    """Return the outcome of a replay as a table."""
    from workbench.cli import output

    rows = [
        ("bit-exact", "nothing to compare" if result.bit_exact is None else result.bit_exact),
        ("verdict", result.verdict),
        ("merges on the tape" if upto is None else f"merges up to {_merge(upto, result.merges)}", result.merges),
        ("merges compared" if since is None else f"merges compared, behind merge {since}", result.merges_compared),
        ("inner steps compared", result.steps),
        (f"digest of the {_which(upto)}", digest_text(result.final_digest)),
    ]
    if result.first_difference is not None:
        rows.append(("first difference", result.first_difference))
    rows += machine_rows(machines, "--weights-only" if upto is None else "--upto")
    if out is not None:
        rows.append((_which(upto), str(out)))
    return output.pairs("replay", rows)


def _merge(upto: int, merges: int) -> str:
    """The merge that ends a replay of so many, numbered from 0 however it was asked for."""
    return f"merge {upto}" if upto >= 0 else f"merge {merges - 1} ({upto}, counted from the end)"


def _which(upto: int | None) -> str:
    return "final weights" if upto is None else "weights after it"


def machine_rows(machines: MachinesReport | None, flag: str = "--weights-only") -> list[tuple[str, Any]]:
    """Return the rows on the machines that were run again; ``flag`` is the one that kept them from it."""
    if machines is None:
        return [("machines agree", f"not run again ({flag})")]
    if not machines.records:
        return [("machines agree", "nothing to compare: the tape holds no record")]
    rows: list[tuple[str, Any]] = [
        ("machines agree", machines.equal),
        ("records made again", f"{machines.compared:,} of {machines.records:,}"),
    ]
    if machines.first_difference is not None:
        rows.append(("first record that differs", machines.first_difference))
    return rows


def digest_text(digest: int | str) -> str:
    """Return a 64-bit digest as 16 hexadecimal digits."""
    return digest if isinstance(digest, str) else f"{digest:016x}"


def partial_name(path: Path) -> Path:
    """Return the name that a file has while it is written."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def write_weights(path: Path, weights: Mapping[str, Any]) -> None:
    """Write arrays by name as an npz file, whole or not at all; a file that exists is not overwritten.

    Raises
    ------
    ConfigError
        When a file of that name has appeared since it was asked for.
    """
    import numpy as np

    from workbench.tape.errors import is_full, no_room

    partial = partial_name(path)
    try:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **weights)
        _name_it(partial, path)
    except OSError as error:
        if is_full(error):
            raise no_room(path, "what was begun is removed") from error
        if not isinstance(error, FileExistsError):
            raise
        raise ConfigError(f"--out {path}: this file exists by now, and nothing is overwritten; type another") from error
    finally:
        partial.unlink(missing_ok=True)


def _name_it(partial: Path, path: Path) -> None:
    """Give a whole file its name, unless there is a file of that name."""
    try:
        os.link(partial, path)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        partial.rename(path)
