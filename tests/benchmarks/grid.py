"""Confirm the default numbers of the presets by training, one command per question.

``python -m tests.benchmarks.grid alone --steps 900`` trains each learner of a preset alone, without any
communication, and writes the validation loss at its own steps: what a run with communication has to beat.
``python -m tests.benchmarks.grid all`` makes the runs of `tests.benchmarks.cases`, the most telling first; their
modes (``joint``, ``decoupled``, ``synchronous``, ``outer``, ``inner``) may be named instead.
Results lie in ``tests/benchmarks/results``, with the command, the versions and the environment they come from.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks.cases import CASES, STEPS, WIDE_BATCHES, Case, chosen, config_of, run
from workbench.config import PRESETS, RunConfig
from workbench.datasets import heldout, open_text
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights
from workbench.training.environment import code_version, fingerprint
from workbench.training.evaluation import validation_loss
from workbench.training.flat import all_tensors

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


def train_alone(program: TrainingProgram, learner: int, steps: int, every: int) -> dict[str, Any]:
    """Train one learner without communication.

    Returns
    -------
    dict
        steps and val_loss: the curve [own steps, nats per byte]; val_loss_wide: the last one on a larger held-out
        set; step_s: mean duration of a step [s].
    """
    config = program.config
    arithmetic = LearnerArithmetic(config, learner, program, program.fragmentation)
    arithmetic.load(initial_weights(config))
    curve, spent = [(0, arithmetic.evaluate())], 0.0
    for n in range(1, steps + 1):
        begin = time.perf_counter()
        arithmetic.step(n, n)
        spent += time.perf_counter() - begin
        if n % every == 0 or n == steps:
            curve.append((n, arithmetic.evaluate()))
    wide = heldout(program.text, WIDE_BATCHES, config.inner.batch, config.model.context)
    parameters = all_tensors(arithmetic.weights(), program.fragmentation)
    return {
        "learner": learner,
        "steps": [n for n, _ in curve],
        "val_loss": [round(loss, 5) for _, loss in curve],
        "val_loss_wide": round(validation_loss(config.model, parameters, wide), 5),
        "step_s": round(spent / steps, 5),
    }


def alone(arguments: argparse.Namespace) -> Path:
    """Each learner of the preset alone, as many own steps as asked for; written after every learner."""
    config = RunConfig(**PRESETS[arguments.preset], preset=arguments.preset, seed=arguments.seed)
    config = replace(config, inner=replace(config.inner, horizon=arguments.steps, rate=arguments.rate))
    program = TrainingProgram(config, open_text(config.data))
    program.warm_up()
    learners: list[dict[str, Any]] = []
    for learner in range(config.learners):
        learners.append(train_alone(program, learner, arguments.steps, arguments.every))
        last = [result["val_loss"][-1] for result in learners]
        path = write(arguments.name, {"config": asdict(config), "best_val_loss": min(last), "learners": learners})
        print(f"L{learner}: {last[-1]:.3f} nats/byte after {arguments.steps} steps", flush=True)
    return path


def grid(arguments: argparse.Namespace) -> Path:
    """Runs of one mode or of all; a mode's file is written after every run, and keeps the runs with other labels."""
    path = RESULTS
    for case in chosen(arguments.command, arguments.only):
        done = run(case, arguments.steps, arguments.seed) | {"command": command(), "code": code_version()}
        config = asdict(config_of(case._replace(changes={}), arguments.steps, arguments.seed))
        path = write(case.mode, {"config": config, "runs": [*others(case), done]})
        print(f"{case.mode}, {case.label}: {done['val_loss']:.3f}, wide {done['val_loss_wide']:.3f}", flush=True)
    return path


def others(case: Case) -> list[dict[str, Any]]:
    """Runs of the mode that are on file under other labels, made with the same versions of the packages."""
    path = RESULTS / f"{case.mode}.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    if before.get("versions") != versions():
        return []
    return [done for done in before["runs"] if done["label"] != case.label]


def versions() -> dict[str, str]:
    """Versions of what decides the numbers."""
    return {package: version(package) for package in PACKAGES} | {"python": platform.python_version()}


def command() -> str:
    """What was typed."""
    return "python -m tests.benchmarks.grid " + " ".join(sys.argv[1:])


def write(name: str, result: dict[str, Any]) -> Path:
    """Write a result with where it comes from."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    whole = {"command": command(), "versions": versions(), "fingerprint": fingerprint(), **result}
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return path


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.grid", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("alone", help="each learner without communication")
    one.add_argument("--preset", default="tiny-4", choices=sorted(PRESETS))
    one.add_argument("--steps", type=int, default=900, help="own steps of each learner (default 900)")
    one.add_argument("--every", type=int, default=50, help="own steps between two evaluations (default 50)")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--rate", type=float, default=RunConfig().inner.rate, help="peak inner learning rate")
    one.add_argument("--name", default="alone", help="name of the result file (default alone)")
    one.set_defaults(command_function=alone)
    for mode in ("all", *dict.fromkeys(case.mode for case in CASES)):
        many = commands.add_parser(mode, help="runs of this mode in virtual time")
        many.add_argument("--steps", type=int, default=STEPS, help=f"own steps of each learner (default {STEPS})")
        many.add_argument("--seed", type=int, default=0)
        many.add_argument("--only", default="", metavar="LABEL", help="the run with this label alone")
        many.set_defaults(command_function=grid)
    arguments = parser.parse_args()
    code_version()  # read now and kept: the source may change while a long run goes on
    print(arguments.command_function(arguments))


if __name__ == "__main__":
    main()
