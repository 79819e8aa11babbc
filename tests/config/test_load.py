from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from tests.config.strategies import configs
from workbench.config import PRESETS, ConfigError, ModelConfig, RunConfig, diff, flatten, from_toml, load, to_toml
from workbench.config.keys import key_types
from workbench.config.load import preset, presets


@given(configs())
@settings(max_examples=60, deadline=None)
def test_toml_round_trip_gives_the_same_configuration_and_text(config: RunConfig) -> None:
    text = to_toml(config)
    assert from_toml(text) == config
    assert to_toml(from_toml(text)) == text


@given(configs(), configs())
@settings(max_examples=20, deadline=None)
def test_diff_holds_exactly_what_turns_one_into_the_other(a: RunConfig, b: RunConfig) -> None:
    changed = diff(a, b)
    assert a.set({key: new for key, (_, new) in changed.items()}) == b
    assert all(old != new for old, new in changed.values())
    assert diff(a, a) == {}


def test_sources_win_in_order_preset_file_set_keyword(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("learners = 5\nrounds = 50\nseed = 1\n[model]\nwidth = 64\n", encoding="utf-8")
    config = load("tiny-4", file, ["rounds=60", "seed=2"], seed=3)
    assert (config.preset, config.learners, config.rounds, config.seed) == ("tiny-4", 5, 60, 3)
    assert config.model == ModelConfig(width=64)


def test_a_file_may_name_its_preset(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('preset = "small-8"\nrounds = 7\n', encoding="utf-8")
    assert (load(toml=file).learners, load(toml=file).rounds) == (PRESETS["small-8"]["learners"], 7)
    assert load("tiny-4", file).learners == PRESETS["tiny-4"]["learners"]


def test_a_stored_configuration_outlives_its_preset() -> None:
    text = to_toml(RunConfig()).replace('preset = ""', 'preset = "gone-by-now"')
    assert from_toml(text).preset == "gone-by-now"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("learners=8", "learners", 8),
        ("outer_rate=1", "outer_rate", 1.0),
        ("inner.eps=1e-9", "inner.eps", 1e-9),
        ("lead=none", "lead", None),
        ("lead=2", "lead", 2),
        ("guard_nonfinite=False", "guard_nonfinite", False),
        (" merge = mean ", "merge", "mean"),
        ("virtual.slow=1,1.22", "virtual.slow", (1.0, 1.22)),
        ("virtual.slow=[2, 3]", "virtual.slow", (2.0, 3.0)),
        ("virtual.slow=", "virtual.slow", ()),
    ],
)
def test_set_reads_the_type_of_its_key(text: str, key: str, value: object) -> None:
    got = flatten(load(sets=[text]))[key]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("learnrs=3", ["'learnrs'", "nearest: learners", "all keys: workbench train --keys"]),
        ("width=3", ["'width'", "nearest: model.width"]),
        ("model.widht=3", ["nearest: model.width", "allowed: model.layers, model.width"]),
        ("model=3", ["group", "model.width"]),
        ("learners=1e3", ["learners = '1e3'", "whole number", "1 to 4096"]),
        ("lead=x", ["lead = 'x'", "or none"]),
        ("guard_nonfinite=1", ["true or false"]),
        ("quorum", ["--set quorum has no value", "KEY=VALUE"]),
        ("quorum=9", ["quorum = 9", "learners = 4", "--set quorum=4"]),
        ("merge=median", ["merge = 'median'", "mean, rda"]),
        ("outer_rate=nan", ["outer_rate = nan", "0 to 100"]),
        ("virtual.slow=1,x", ["virtual.slow = 'x'", "a number"]),
        ("preset=huge", ["preset = 'huge'", "tiny-4, small-8"]),
    ],
)
def test_a_wrong_set_says_what_and_what_is_allowed(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(sets=[text])
    assert [part for part in parts if part not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("learners = \n", "is not TOML"),
        ("[modle]\n", "unknown key 'modle'"),
        ("[modle]\nwidth = 3\n", "nearest: model.width"),
        ("learners = true\n", "learners = True is not a whole number"),
        ("learners = {a = 1}\n", "unknown key 'learners.a'"),
        ('merge = ["mean"]\n', "is not text"),
        ("virtual = 3\n", "group of keys"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: str, part: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(toml=file)
    assert part in str(caught.value)


def test_a_missing_or_binary_file_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(toml=tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(toml=tmp_path / "bytes.toml")


def test_an_empty_section_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[model]\n", encoding="utf-8")
    assert load(toml=file) == RunConfig()


def test_types_are_checked_however_a_configuration_is_built() -> None:
    with pytest.raises(ConfigError, match=r"learners = 2.5 is not a whole number"):
        RunConfig(learners=2.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="lead = True"):
        RunConfig().set(lead=True)
    assert RunConfig().set(learners=np.int64(3), outer_rate=np.float32(0.5)) == RunConfig(learners=3)


def test_groups_may_be_given_whole() -> None:
    assert load(model=ModelConfig(width=64)).model.width == 64
    assert load(model={"width": 64}).model == ModelConfig(width=64)


def test_flatten_names_every_key_once_in_order() -> None:
    flat = flatten(RunConfig())
    assert list(flat) == list(key_types())
    assert flat["model.width"] == RunConfig().model.width


def test_presets_are_listed_by_name_and_can_be_built() -> None:
    assert list(presets()) == list(PRESETS)
    assert preset("tiny-4").preset == "tiny-4"
    with pytest.raises(ConfigError, match="allowed: tiny-4, small-8"):
        preset("tiny")
