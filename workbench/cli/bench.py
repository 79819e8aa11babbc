"""Measure what this machine gives, without a run.

The jitted step alone, in one process and in as many at once as there are
learners, each started as a learner is; then a merge, and a fragment on its way
from a learner to the syncer. Nothing is written unless --out names a file.

What the figures are for: a run's throughput ratio is the tokens/s of one of
its learners over "tokens/s, each" of as many learners at once: 1 if engine,
network and syncer cost nothing. Measure while nothing else is running.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.config import RunConfig
    from workbench.engine.reference import Rates

WARM_S = 0.5
SECONDS_MAX = 600.0
LOAD_MAX = 0.5
"""Processes that may be running before the figures are doubted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench bench``."""
    options.add_config(parser)
    parser.add_argument("--seconds", metavar="S", type=float, default=8.0, help="of stepping, per measurement (8)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the figures as JSON, too")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, return 0."""
    from workbench.cli import output

    if not (math.isfinite(arguments.seconds) and 0 < arguments.seconds <= SECONDS_MAX):
        raise ConfigError(f"--seconds {arguments.seconds:g} is not possible; allowed: up to {SECONDS_MAX:g}")
    if arguments.out is not None and arguments.out.exists():
        raise ConfigError(f"--out {arguments.out} exists; allowed: a new file")
    config = options.config_of(arguments)
    found = measure(config, arguments.seconds)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if arguments.json:
        output.print_json(found)
    else:
        show(found)
    return 0


def measure(config: RunConfig, seconds: float) -> dict[str, Any]:
    """Return all figures of a configuration.

    Returns
    -------
    dict
        ``reference``: for each number of learners at once rates [tokens/s], durations [s], memory [bytes]; ``merge``
        and ``wire``: bytes per second, those of a copy, and their ratio; and what they depend on.
    """
    from workbench.cli.checks import visible_cores
    from workbench.engine import yardsticks
    from workbench.training.environment import fingerprint
    from workbench.training.flat import fragmentation_of

    load = os.getloadavg()[0]
    reference = []
    for learners in sorted({1, config.learners}):
        _say(f"the step alone, {learners} at once, {seconds:g} s")
        reference.append(_rates(config, learners, seconds)._asdict())
    _say("a merge; a fragment on its way")
    merge, wire = yardsticks.merging(config), yardsticks.wire()
    inner = config.inner
    return {
        "preset": config.preset,
        "parameters": sum(fragmentation_of(config).sizes),
        "tokens_a_step": inner.batch * inner.accumulation * config.model.context,
        "learners": config.learners,
        "cores": visible_cores(),
        "load_before": load,
        "threads": config.machine.threads,
        "merge_rule": config.merge,
        "outer": config.outer,
        "reference": reference,
        "merge": {**merge._asdict(), "ratio": merge.ratio},
        "wire": {**wire._asdict(), "ratio": wire.ratio},
        "fingerprint": fingerprint(device=False),
    }


def _rates(config: RunConfig, learners: int, seconds: float) -> Rates:
    from workbench.engine.reference import Reference, ReferenceFailed, rates_of

    try:
        with Reference(config, learners) as reference:
            reference.measure(min(WARM_S, seconds))
            return rates_of(reference.measure(seconds))
    except ReferenceFailed as error:
        raise ConfigError(str(error)) from error


def _say(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


def show(found: dict[str, Any]) -> None:
    """Print the figures as a table, and what they are for."""
    from workbench.cli import output, words

    reference = found["reference"]
    name = found["preset"] or "this configuration"
    threads = "JAX's own number of" if found["threads"] is None else found["threads"]
    screen = output.console()
    screen.print(
        f"{name}: {found['parameters']:,} parameters, {found['tokens_a_step']:,} tokens a step; "
        f"{words.plural(found['cores'], 'core')}, {threads} threads a learner",
        soft_wrap=True,
    )
    heads = ["the step alone", *(f">{words.plural(one['learners'], 'learner')}" for one in reference)]
    rows = [
        ("tokens/s, each", *(f"{one['tokens_per_s']:,.0f}" for one in reference)),
        ("tokens/s, all", *(f"{one['tokens_per_s_all']:,.0f}" for one in reference)),
        ("step, median", *(f"{one['step_s'] * 1e3:.1f} ms" for one in reference)),
        ("step, 95th percentile", *(f"{one['step_p95_s'] * 1e3:.1f} ms" for one in reference)),
        ("peak memory of a learner", *(f"{one['peak_bytes'] / 2**20:,.0f} MiB" for one in reference)),
    ]
    screen.print(output.aligned("", heads, rows))
    merge, wire = found["merge"], found["wire"]
    rule = f"merge, {found['merge_rule']} + {found['outer']}, {words.plural(found['learners'], 'learner')}"
    screen.print()
    screen.print(
        output.aligned(
            "",
            ["besides the step", ">speed", ">over a copy"],
            [
                (rule, f"{merge['bytes_per_s'] / 1e9:.2f} GB/s", f"{merge['ratio']:.2f}"),
                ("fragment, learner to syncer", f"{wire['bytes_per_s'] / 1e9:.2f} GB/s", f"{wire['ratio']:.2f}"),
            ],
        )
    )
    if found["load_before"] > LOAD_MAX:
        screen.print(
            f"\nother programs were running (load {found['load_before']:.1f}): measure again when they are not",
            style="yellow",
        )
    screen.print("\nthroughput ratio of a run: tokens/s of one of its learners over 'tokens/s, each'", soft_wrap=True)
    screen.print("of as many learners at once (1: nothing is lost besides the step)", soft_wrap=True)
