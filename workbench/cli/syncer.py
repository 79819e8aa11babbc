"""Run a syncer, and what belongs to it, for learners that are started by hand.

No learner is started here: the command line of each is printed, for this or
another machine. --keys makes the keys at the first use; without keys the
syncer listens on this machine's loopback only. Rounds begin when all learners
have joined, or start_limit_s after the start with those that have. Ctrl-C ends
the run in order; `workbench control RUN` works as for any run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from workbench.cli import options
from workbench.config import ConfigError, RunConfig
from workbench.config.load import given_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench syncer``."""
    parser.add_argument("--listen", metavar="ADDRESS", required=True, help="tcp://HOST:PORT; port 0: a free one")
    parser.add_argument("--keys", metavar="FOLDER", type=Path, help="folder of keys, made if there is none")
    options.add_config(parser)
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="folder of the run (default: a new one in runs/)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the run is over, print its summary, return its exit code."""
    from workbench.cli import train
    from workbench.engine.listening import check_listening, new_listening

    config, note = with_codec(options.config_of(arguments), arguments)
    keys, made = keys_of(arguments, config)
    check_listening(arguments.listen, keys)
    out = options.out_of(arguments, config)
    for line in (*made, note):
        print(line, file=sys.stderr)
    listening = new_listening(arguments.listen, arguments.keys, flags_of(arguments))
    code, more = serve(config, out, listening)
    return train.tell(out, code, more, arguments.json) if more else code


def with_codec(config: RunConfig, arguments: argparse.Namespace) -> tuple[RunConfig, str]:
    """Return the configuration with the codec for its network, and a line that says which, if nobody chose one."""
    from workbench.engine.security import host_and_port, is_loopback

    host, _ = host_and_port(arguments.listen)
    if "codec" in given_keys(arguments.config, arguments.sets):
        return config, f"codec = {config.codec}, as asked for"
    if is_loopback(host):
        return config, f"codec = {config.codec}: {arguments.listen} is reached from this machine only"
    return config.set(codec="bf16"), (
        "codec = bf16: across machines a contribution travels as its difference to the base version, in 2 bytes a "
        "parameter; --set codec=f32 sends it whole"
    )


def keys_of(arguments: argparse.Namespace, config: RunConfig) -> tuple[Any, list[str]]:
    """Return the syncer's keys, made if they are not there, and lines about those that were made.

    Raises
    ------
    ConfigError
        Others may read them, or they are no keys.
    """
    if arguments.keys is None:
        return None, []
    from workbench.cli.keys import lines_of
    from workbench.engine.key_folder import make_key_folder, server_keys

    made = make_key_folder(arguments.keys, config.learners)
    return server_keys(arguments.keys), lines_of(arguments.keys, made) if made else []


def serve(config: RunConfig, out: Path, listening: Any) -> tuple[int, dict[str, Any]]:
    """Start the run, print how learners join, watch it to its end; returns as `train_real.see_through`."""
    from workbench.cli import train_real
    from workbench.engine.launch import launch

    run = launch(config, out, detach=True, listening=listening)
    return train_real.see_through(run, lambda: print_joining(run, listening, config.learners))


def print_joining(run: Any, listening: Any, learners: int) -> None:
    """Print the address and the command line of each learner, once the syncer listens."""
    from workbench.engine.listening import joining_line

    while run.running:
        try:
            address = run.status()["address"]
        except ConfigError:
            address = ""
        if address:
            print(f"the syncer listens at {address}; start each learner with its line:", file=sys.stderr)
            for m in range(learners):
                print(f"  {joining_line(listening, address, m)}", file=sys.stderr, flush=True)
            return
        time.sleep(0.05)


def flags_of(arguments: argparse.Namespace) -> list[str]:
    """Return what this run was given and its learners need too."""
    words = []
    for flag in ("preset", "config", "seed", "data", "keys"):
        value = getattr(arguments, flag)
        if value is not None:
            words += [f"--{flag}", str(value)]
    for text in arguments.sets:
        words += ["--set", text]
    return words
