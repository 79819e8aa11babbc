"""Which runs the grid makes, in the order of what they decide, and how one is made.

All run the machines of the protocol in virtual time with real gradients, constant step times and no tape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from workbench.algorithms.schedule import offsets
from workbench.config import PRESETS, RunConfig
from workbench.datasets import Text, heldout, open_text
from workbench.protocol.records import Kind
from workbench.simulate.numbers import Numbers
from workbench.simulate.world import World
from workbench.training import LearnerArithmetic, TrainingProgram, initial_weights
from workbench.training.evaluation import validation_loss
from workbench.training.flat import all_tensors

STEPS = 450
WIDE_BATCHES = 256
EVALUATIONS = 9
LOCK_STEP: dict[str, Any] = {
    "lead": 0,
    "quorum": 4,
    "overlap": 0,
    "fragments": 1,
    "merge": "mean",
    "weights": "uniform",
}


class Case(NamedTuple):
    """One run of the grid.

    Attributes
    ----------
    mode : str
        Command that makes it, and the name of the file that it is written to.
    label : str
        Unique within the mode.
    changes : dict
        Keys that differ from the preset ``tiny-4`` with `STEPS` steps of each learner.
    """

    mode: str
    label: str
    changes: dict[str, Any]


def _outer(rate: float, momentum: float) -> Case:
    return Case("outer", f"eta {rate:g}, mu {momentum:g}", {"outer_rate": rate, "outer_momentum": momentum})


def _period(period: int) -> Case:
    return Case("decoupled", f"H {period}", {"period": period, "fragments": min(period, 12)})


CASES = (
    Case("joint", "batch 32", {"learners": 1, "inner.batch": 32}),
    _period(12),
    Case("synchronous", "H 24", {**LOCK_STEP, "period": 24}),
    _outer(1.0, 0.0),
    _outer(0.7, 0.0),
    _outer(0.3, 0.5),
    Case("inner", "rate 0.001", {"inner.rate": 1e-3}),
    Case("inner", "rate 0.006", {"inner.rate": 6e-3}),
    _outer(0.7, 0.5),
    _period(24),
    _period(8),
    _outer(0.1, 0.9),
)
"""The run of ``decoupled, H 12`` is also the one with eta 0.5, mu 0.5 and inner rate 0.003 of the other modes."""


def chosen(mode: str, label: str = "") -> Iterator[Case]:
    """Cases of a mode, or of every mode (``all``), in their order; only those with this label if one is given."""
    return (case for case in CASES if mode in ("all", case.mode) and label in ("", case.label))


def config_of(case: Case, steps: int, seed: int) -> RunConfig:
    """Configuration of a case: as many rounds as fall due in ``steps`` global steps, the last period whole."""
    base = RunConfig(**PRESETS["tiny-4"], preset="tiny-4", seed=seed)
    fixed = {"virtual.step_model": "fixed", "inner.horizon": steps, "eval_every": 0}
    config = base.set({**fixed, **case.changes})
    rounds = max(1, round(steps * config.fragments / config.period))
    return config.set(rounds=rounds, eval_every=max(1, rounds // EVALUATIONS))


def run(case: Case, steps: int, seed: int) -> dict[str, Any]:
    """Make the run of a case.

    Returns
    -------
    dict
        label, changes, seed: the case.  steps: own steps of each learner.  val_loss: nats per byte on the default
        held-out set; val_loss_wide: on `WIDE_BATCHES` batches.  With communication also merges;
        mean_contributors: learners in a merge; mean_c_steps: inner steps in a contribution; curve: [merges, nats
        per byte] pairs.
    """
    config = config_of(case, steps, seed)
    text = open_text(config.data)
    program = TrainingProgram(config, text)
    trained = _alone(config, program, steps) if config.learners == 1 else _together(config, program)
    whole = {"label": case.label, "changes": case.changes, "seed": seed, **trained}
    return whole | losses(text, config, program, whole.pop("weights"))


def losses(text: Text, config: RunConfig, program: TrainingProgram, weights: list[Any]) -> dict[str, float]:
    """Validation loss on the default set and on a wide one, both in batches of the preset's size."""
    parameters = all_tensors(weights, program.fragmentation)
    result = {}
    for name, batches in (("val_loss", config.eval_batches), ("val_loss_wide", WIDE_BATCHES)):
        sequences = heldout(text, batches, RunConfig().inner.batch, config.model.context)
        result[name] = round(validation_loss(config.model, parameters, sequences), 5)
    return result


def _alone(config: RunConfig, program: TrainingProgram, steps: int) -> dict[str, Any]:
    """One learner, no communication: data parallel over M learners if its batch is M times as large."""
    learner = LearnerArithmetic(config, 0, program, program.fragmentation)
    learner.load(initial_weights(config))
    for n in range(1, steps + 1):
        learner.step(n, n)
    return {"steps": [steps], "weights": learner.weights()}


def _together(config: RunConfig, program: TrainingProgram) -> dict[str, Any]:
    """All learners and the syncer, by the machines."""
    numbers = Numbers(config, program)
    sizes = program.fragmentation.sizes
    world = World(config, offsets(config.fragments, config.period), numbers, sizes=sizes)
    world.run()
    if not world.finished:
        raise RuntimeError(f"the run came to no end: {world.failed or 'nothing is left to happen'}")
    merged = [record for record in world.records if record.kind == Kind.MERGED]
    contributors = sum(len(record.detail["learners"]) for record in merged)
    evaluated = [record for record in world.records if record.kind == Kind.EVALUATED]
    return {
        "steps": [process.machine.state.n for process in world.learners.values()],
        "merges": len(merged),
        "mean_contributors": round(contributors / len(merged), 3),
        "mean_c_steps": round(sum(record.steps for record in merged) / contributors, 3),
        "curve": [[record.steps, round(record.value, 5)] for record in evaluated],
        "weights": numbers.current,
    }
