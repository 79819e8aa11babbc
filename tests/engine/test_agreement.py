"""Whether a learner and its syncer mean the same run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.real_runs import tiny
from workbench.datasets import open_text
from workbench.engine.agreement import (
    DATA,
    WEIGHTS,
    claims_of,
    claims_of_header,
    data_claim,
    first_difference,
    weights_claim,
)
from workbench.training.program import TrainingProgram
from workbench.training.run_header import run_header


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.width", 32),
        ("seed", 5),
        ("fragments", 2),
        ("period", 8),
        ("overlap", 1),
        ("inner.rate", 0.5),
        ("lead", 3),
        ("rounds", 7),
        ("data.shards", "file"),
    ],
)
def test_what_must_be_alike_is_named_with_both_values_and_a_remedy(key: str, value: object) -> None:
    here, there = claims_of(tiny()), claims_of(tiny().set({key: value}))
    line = first_difference(here, there)
    assert line.startswith(f"{key} = {value} at the learner, {here[key]} at the syncer")
    assert line.endswith(f"--set {key}={here[key]}")


@pytest.mark.parametrize(
    ("key", "value"),
    [("quorum", 2), ("codec", "bf16"), ("merge", "mean"), ("eval_every", 9), ("virtual.step_s", 3.0), ("preset", "")],
)
def test_what_the_syncer_decides_alone_may_differ(key: str, value: object) -> None:
    assert first_difference(claims_of(tiny()), claims_of(tiny().set({key: value}))) == ""


def test_a_key_that_the_other_release_lacks_is_named() -> None:
    assert "new.key" in first_difference(claims_of(tiny()), {"new.key": "1"})


def test_data_is_told_by_its_digest_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text.txt").write_text("some text of a run " * 400)
    config = tiny(learners=1).set({"data.source": "path", "data.path": str(tmp_path / "a")})
    text = open_text(config.data)
    header = run_header(config, text, TrainingProgram(config, text), "real", {"chaos": "", "scenario": ""})
    here = claims_of_header(config, header)
    elsewhere = config.set({"data.path": str(tmp_path / "b")})
    assert first_difference(here, {**claims_of(elsewhere), **data_claim(open_text(elsewhere.data))}) == ""
    (tmp_path / "b" / "text.txt").write_text("another text " * 600)
    line = first_difference(here, data_claim(open_text(elsewhere.data)))
    assert line.startswith(f"{DATA} = ") and here[DATA] in line and "--data PATH" in line
    assert first_difference(here, weights_claim(int(header["initial_digest"], 16))) == ""
    assert first_difference(here, weights_claim(1)).startswith(f"{WEIGHTS} = {1:016x} at the learner")
