"""Run one learner in the foreground, for a run whose syncer listens on tcp.

The syncer's machine prints the command line of each learner. Preset, file,
--set and --seed must be those of the run: the syncer compares them key by key.
First weights and text are made here and compared by digest; --data may lie
elsewhere on each machine. Ctrl-C leaves the run, which goes on; a learner that
is started again takes its place again, and of two with one number the later
one stays.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli import options
from workbench.config import ConfigError, RunConfig, to_toml

PATIENCE_MAX_S = 1e7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench learner``."""
    parser.add_argument("--connect", metavar="ADDRESS", required=True, help="tcp://HOST:PORT of the syncer")
    parser.add_argument("--learner", metavar="M", type=int, required=True, help="which learner this is, from 0")
    parser.add_argument("--keys", metavar="FOLDER", type=Path, help="folder with learner-M.key and syncer.public")
    parser.add_argument(
        "--patience",
        metavar="S",
        type=float,
        default=600.0,
        help="seconds without a syncer (600); at first, before the run has been found, connect_limit_s at most",
    )
    options.add_config(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the request, then become the learner: its exit code is that of this command."""
    from workbench.engine.joiner import Joining, become

    config = options.config_of(arguments)
    check(arguments, config)
    become(
        Joining(
            to_toml(config),
            arguments.learner,
            arguments.connect,
            "" if arguments.keys is None else str(arguments.keys.resolve()),
            arguments.patience,
            arguments.json,
            arguments.debug,
        )
    )


def check(arguments: argparse.Namespace, config: RunConfig) -> None:
    """Refuse what cannot work before anything is started.

    Raises
    ------
    ConfigError
    """
    from workbench.engine.key_folder import LEARNERS_MAX, client_keys
    from workbench.engine.security import host_and_port, is_loopback

    host, port = host_and_port(arguments.connect)
    if not port:
        raise ConfigError(f"--connect {arguments.connect}: port 0 is nobody's; give the one that the syncer printed")
    if not 0 <= arguments.learner < LEARNERS_MAX:
        raise ConfigError(
            f"--learner {arguments.learner}: learners = {config.learners} here; allowed: 0 to {config.learners - 1}, "
            "and those that were added (workbench control RUN add)"
        )
    if not 0 <= arguments.patience <= PATIENCE_MAX_S:
        raise ConfigError(f"--patience {arguments.patience}: allowed: seconds from 0 to {PATIENCE_MAX_S:g}")
    if arguments.keys is not None:
        client_keys(arguments.keys, arguments.learner)
    elif not is_loopback(host):
        raise ConfigError(
            f"--connect {arguments.connect} lies beyond this machine, where syncers listen with keys only; give "
            "--keys FOLDER with this learner's key and the syncer's public key"
        )
