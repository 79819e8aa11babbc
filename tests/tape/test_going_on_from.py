"""A resume that cannot go on is refused before anything is touched: the folder stays as it was, byte for byte."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.replay.runs import SMALL, config_of
from tests.tape.headers import rewrite_header
from workbench.config import ConfigError
from workbench.engine.resume import resume
from workbench.engine.weights import initial_path, save_initial
from workbench.protocol.records import Kind
from workbench.simulate.resuming import resume_virtual
from workbench.simulate.training_run import Progress, train_virtual
from workbench.tape.going_on import resumable, snapshot_numbers
from workbench.tape.going_on_from import look
from workbench.tape.run_folder import RunFolder
from workbench.training.flat import initial_weights

ROUNDS = 60
Damage = Callable[[Path, Path], None]


def interrupted(text: Path, out: Path, **keys: Any) -> Path:
    """A run that Ctrl-C ended, its tape closed, with two snapshots; then its journal lost its last bytes."""
    pressed: list[int] = []

    def press(progress: Progress) -> None:
        if progress.merges >= 30 and not pressed:
            pressed.append(progress.merges)
            signal.raise_signal(signal.SIGINT)

    config = config_of(text, rounds=ROUNDS, snapshot_every=10, snapshots_kept=2, **keys)
    with pytest.raises(KeyboardInterrupt):
        train_virtual(config, out, progress=press)
    journal = RunFolder(out).journal
    journal.write_bytes(journal.read_bytes()[:-10])
    return out


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "counting.bin"
    path.write_bytes(b"".join(b"%d " % number for number in range(60_000)))
    return path


@pytest.fixture(scope="module")
def virtual(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interrupted(text, tmp_path_factory.mktemp("runs") / "virtual")


@pytest.fixture(scope="module")
def wider(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of another model."""
    return interrupted(text, tmp_path_factory.mktemp("runs") / "wider", model=replace(SMALL, mlp=48))


@pytest.fixture(scope="module")
def real(virtual: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run told as one of real processes, its tape ahead of its journal too."""
    path = tmp_path_factory.mktemp("runs") / "real"
    shutil.copytree(virtual, path)
    rewrite_header(path, clock="real")
    shutil.copytree(virtual / "tape", path / "tape")
    save_initial(path, initial_weights(resumable(path).config))
    return path


def all_of(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def no_slots_and_no_snapshot(run: Path, _: Path) -> None:
    RunFolder(run).slots.unlink()
    for number in snapshot_numbers(resumable(run)):
        shutil.rmtree(run / "snapshots" / str(number))


def no_slots_and_a_snapshot_of_another_model(run: Path, wider: Path) -> None:
    RunFolder(run).slots.unlink()
    newest = snapshot_numbers(resumable(run))[-1]
    shutil.rmtree(run / "snapshots" / str(newest))
    shutil.copytree(wider / "snapshots" / str(newest), run / "snapshots" / str(newest))


def no_slots_and_a_damaged_part(run: Path, _: Path) -> None:
    RunFolder(run).slots.unlink()
    newest = run / "snapshots" / str(snapshot_numbers(resumable(run))[-1])
    largest = max((path for path in (newest / "L1").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    raw = bytearray(largest.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    largest.write_bytes(raw)


def another_configuration(run: Path, _: Path) -> None:
    rewrite_header_and_keep_the_tape(run, config="rounds = 'many'")


def another_text(run: Path, _: Path) -> None:
    manifest = [{"path": "counting.bin", "bytes": 3, "digest": "0" * 16}]
    rewrite_header_and_keep_the_tape(run, data_manifest=manifest)


def all_merges_done(run: Path, _: Path) -> None:
    config = resumable(run).header["config"]
    rewrite_header_and_keep_the_tape(run, config=config.replace(f"rounds = {ROUNDS}", "rounds = 5"))


def rewrite_header_and_keep_the_tape(run: Path, **facts: Any) -> None:
    aside = run / "aside"
    shutil.copytree(run / "tape", aside)
    rewrite_header(run, **facts)
    aside.rename(run / "tape")


REFUSED: dict[str, tuple[Damage, str]] = {
    "no slots, no snapshot": (no_slots_and_no_snapshot, "there is no snapshot; train it anew"),
    "another model's snapshot": (
        no_slots_and_a_snapshot_of_another_model,
        r"cannot go back to snapshot .* the journal",
    ),
    "a damaged part": (no_slots_and_a_damaged_part, r"cannot go back to snapshot .*; others: \d+ \(workbench resume"),
    "another configuration": (another_configuration, "rounds = 'many'"),
    "another text": (another_text, "the text is not that which"),
    "all merges done": (all_merges_done, "nothing is left to go on with"),
}


@pytest.mark.parametrize("clock", ["virtual", "real"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_go_on_stays_as_it_was(
    case: str, clock: str, wider: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(clock), run)
    damage, line = REFUSED[case]
    damage(run, wider)
    before = all_of(run)
    with pytest.raises(ConfigError, match=line) as refused:
        (resume if clock == "real" else resume_virtual)(run)
    assert "\n" not in str(refused.value)
    assert all_of(run) == before


def test_a_snapshot_that_is_asked_for_and_is_not_there_changes_nothing(real: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(real, run)
    before = all_of(run)
    with pytest.raises(ConfigError, match="there is no snapshot 99"):
        resume(run, snapshot=99)
    initial_path(run).write_bytes(b"PK")
    before["snapshots/0/weights.npz"] = b"PK"
    with pytest.raises(ConfigError, match=r"the first weights, .* cannot be read"):
        resume(run)
    assert all_of(run) == before


def test_slots_of_another_size_make_way_for_the_snapshot(virtual: Path, wider: Path, tmp_path: Path) -> None:
    run, said = tmp_path / "run", list[str]()
    shutil.copytree(virtual, run)
    shutil.copyfile(RunFolder(wider).slots, RunFolder(run).slots)
    cut = look(resumable(run), None)
    assert cut is not None and cut["snapshot"] == snapshot_numbers(resumable(run))[-1]
    assert resume_virtual(run, say=said.append).merges == ROUNDS
    assert len(said) == 1 and "the journal was cut" in said[0] and (run / "tape.ahead-1").is_dir()


def test_a_run_that_has_merged_nothing_needs_no_slots(virtual: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(virtual, run)
    RunFolder(run).slots.unlink()
    found = resumable(run)
    records = found.records[: next(i for i, record in enumerate(found.records) if record.kind == Kind.MERGED)]
    nothing = [0] * found.config.fragments
    assert look(found._replace(records=records, versions=nothing, digests=nothing, merges=0), None) is None
