"""Settings without an effect are told, each once, and only those that somebody has set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.config.strategies import configs
from workbench.config import PRESETS, RunConfig, flatten, preset
from workbench.config.idle import idle_in, idle_notes
from workbench.config.keys import key_types
from workbench.protocol.settings import fixed_settings_of, settings_book_of, values_in_force


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"grace_s": 1.0}, "grace_s has no effect with grace = adaptive"),
        ({"grace": "fixed", "grace_gamma": 0.5}, "grace_gamma has no effect with grace = fixed"),
        (
            {"grace": "all", "grace_gamma": 0.5, "grace_cap_steps": 2.0},
            "grace_cap_steps, grace_gamma have no effect with grace = all",
        ),
        ({"fold_alpha": 0.2}, "fold_alpha has no effect with fold = overwrite"),
        ({"anchors_kept": 3}, "anchors_kept has no effect with anchor = current"),
        ({"outer": "sgd", "outer_momentum": 0.9}, "outer_momentum has no effect with outer = sgd"),
        (
            {"inner.schedule": "constant", "inner.warmup": 5},
            "inner.warmup has no effect with inner.schedule = constant",
        ),
        ({"inner.optimizer": "sgd", "inner.beta1": 0.5}, "inner.beta1 has no effect with inner.optimizer = sgd"),
        ({"eval_every": 0, "eval_batches": 3}, "eval_batches has no effect with eval_every = 0"),
        ({"virtual.step_s": 1.0, "virtual.loss": 0.1}, "virtual.loss, virtual.step_s have no effect with --clock real"),
    ],
)
def test_what_has_no_effect_is_one_line(changes: dict[str, Any], note: str) -> None:
    assert idle_in(RunConfig().set(changes), "real") == [note]


def test_what_acts_is_not_told() -> None:
    acting = {"grace": "fixed", "grace_s": 1.0, "fold": "blend", "fold_alpha": 0.2, "anchor": "base", "anchors_kept": 3}
    assert idle_in(RunConfig().set(acting), "real") == []
    assert all(idle_in(preset(name), clock) == [] for name in PRESETS for clock in ("real", "virtual"))


def test_in_virtual_time_the_model_acts_and_cores_do_not() -> None:
    config = RunConfig().set({"virtual.step_model": "fixed", "virtual.jitter": 0.3, "machine.cores": "spread"})
    assert idle_in(config, "virtual") == [
        "machine.cores has no effect with --clock virtual",
        "virtual.jitter has no effect with virtual.step_model = fixed",
    ]


def test_a_live_change_is_judged_by_what_is_in_force_after_it() -> None:
    config = RunConfig()
    book = settings_book_of(config)
    change = {"grace": "fixed", "grace_gamma": 0.3}
    book.apply(change, fixed_settings_of(config, (0,)))
    values = values_in_force(config, book)
    assert (values["grace"], values["grace_gamma"], values["fold"]) == ("fixed", 0.3, "overwrite")
    assert idle_notes(values, change, "real") == ["grace_gamma has no effect with grace = fixed"]


@given(configs())
def test_every_configuration_can_be_judged_and_no_key_is_told_twice(config: RunConfig) -> None:
    for clock in ("real", "virtual"):
        notes = idle_notes(flatten(config), key_types(), clock)
        told = [key for note in notes for key in note.split(" ha")[0].split(", ")]
        assert len(told) == len(set(told)) and set(told) <= set(key_types())
        assert not any("{" in note.split(" with ")[1] for note in notes)
