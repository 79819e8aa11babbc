"""Flags that verbs share, and what they stand for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config import PRESETS, ConfigError, RunConfig, load

if TYPE_CHECKING:
    from workbench.protocol.faults import FaultPlan

PATH_MAX = 4000
"""Characters of a path that a file system can take, about."""

RUNS = Path("runs")
"""Folder of runs that were given no --out."""


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add RUN, the folder of a run."""
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run (the --out of workbench train)")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the flags that make up a configuration."""
    parser.add_argument("--preset", metavar="NAME", help=f"starting point: {', '.join(PRESETS)}")
    parser.add_argument("--config", metavar="FILE", type=Path, help="TOML file of keys")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="set one key; may be repeated"
    )
    parser.add_argument("--seed", metavar="N", help="the one seed that all randomness hangs off")
    parser.add_argument("--data", metavar="PATH", help="file or folder of your own text")


def config_of(arguments: argparse.Namespace) -> RunConfig:
    """Return the configuration that the flags of `add_config` ask for.

    Raises
    ------
    ConfigError
        For anything in them that cannot work.
    """
    sets = list(arguments.sets)
    if arguments.seed is not None:
        sets.append(f"seed={arguments.seed}")
    if arguments.data is not None:
        if not arguments.data or len(arguments.data) > PATH_MAX or not Path(arguments.data).exists():
            raise ConfigError(f"--data {arguments.data[:100]!r} does not exist; allowed: a file or folder of text")
        sets += ["data.source=path", f"data.path={Path(arguments.data).resolve()}"]
    return load(arguments.preset, arguments.config, sets)


def add_faults(parser: argparse.ArgumentParser) -> None:
    """Add the flags that make up a plan of faults."""
    parser.add_argument("--faults", metavar="FILE", type=Path, help="scenario: TOML with [[fault]] entries")
    parser.add_argument("--chaos", metavar="SPEC", help="faults drawn at random: mtbi=40s,kinds=kill,stall")


def faults_of(arguments: argparse.Namespace, config: RunConfig) -> FaultPlan:
    """Return the plan of faults that the flags of `add_faults` ask for; an empty one without them.

    Raises
    ------
    ConfigError
        For a scenario or a specification that cannot work.
    """
    from workbench.protocol.chaos import parse_chaos
    from workbench.protocol.faults import FaultPlan
    from workbench.protocol.plans import horizon_s
    from workbench.protocol.scenario import load_faults

    plan = FaultPlan()
    if arguments.faults is not None:
        plan += load_faults(arguments.faults, config)
    if arguments.chaos is not None:
        plan += parse_chaos(arguments.chaos, config, horizon_s(config) if arguments.clock == "virtual" else None)
    return plan


def out_of(arguments: argparse.Namespace, config: RunConfig) -> Path:
    """Return the folder of the new run: --out, else the next free number under ``runs``.

    Raises
    ------
    ConfigError
        If something is there already.
    """
    from workbench.tape.taken import check_free

    if arguments.out is None:
        stem = f"{config.preset or 'run'}-s{config.seed}"
        return next(path for n in range(1, 10**9) if not (path := RUNS / f"{stem}-{n}").exists())
    out = Path(arguments.out)
    check_free(out)
    return out
