"""Text: sources, split, manifest, mapped files, and what is refused."""

from __future__ import annotations

import builtins
import os
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from workbench.config import ConfigError, DataConfig
from workbench.datasets import Text, open_text
from workbench.datasets.sources import LEFT_OUT
from workbench.datasets.stream import MAPPED_MAX, MappedReader, Stream, TextFile


def write_folder(folder: Path, files: int = 10, size: int = 200) -> Path:
    for index in range(files):
        (folder / f"part{index:03}.txt").write_bytes(bytes([index]) * (size + index))
    return folder


def open_path(path: Path, **keys: Any) -> Text:
    return open_text(DataConfig(source="path", path=str(path), **keys))


def read_all(stream: Stream) -> bytes:
    return stream.windows(np.array([0]), stream.size)[0].tobytes()


def test_stdlib_text_leaves_tests_out_and_is_large_enough() -> None:
    text = open_text(DataConfig())
    names = [file.name for file in text.train.files + text.heldout.files]
    assert not any(LEFT_OUT & set(name.split("/")) for name in names)
    assert {"argparse.py", "json/decoder.py"} <= set(names)
    assert text.train.size > 5_000_000
    assert 0.01 < text.heldout.size / text.train.size < 0.2


def test_stdlib_bytes_are_those_on_disk() -> None:
    text = open_text(DataConfig())
    file = next(file for file in text.train.files if file.size > 100)
    place = sum(other.size for other in text.train.files[: text.train.files.index(file)])
    expected = Path(sysconfig.get_path("stdlib"), file.name).read_bytes()[:100]
    assert text.train.windows(np.array([place]), 100)[0].tobytes() == expected


def test_every_nth_file_is_held_out_by_the_hash_of_its_name(tmp_path: Path) -> None:
    text = open_path(write_folder(tmp_path), holdout_every=4)
    held = [file.name for file in text.heldout.files]
    ranked = sorted((f"part{i:03}.txt" for i in range(10)), key=lambda name: xxhash.xxh3_64_intdigest(name.encode()))
    assert sorted(held) == sorted(ranked[::4])
    assert not set(held) & {file.name for file in text.train.files}


def test_single_file_holds_out_its_tail(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(1000)
    (tmp_path / "one.bin").write_bytes(content)
    text = open_path(tmp_path / "one.bin", holdout_every=10)
    assert read_all(text.train) == content[:900]
    assert read_all(text.heldout) == content[900:]
    assert [(entry.start, entry.bytes, entry.split) for entry in text.manifest] == [
        (0, 900, "train"),
        (900, 100, "heldout"),
    ]


def test_manifest_names_every_file_with_its_digest(tmp_path: Path) -> None:
    text = open_path(write_folder(tmp_path, files=3))
    for entry in text.manifest:
        content = (tmp_path / entry.path).read_bytes()
        assert (entry.bytes, entry.digest) == (len(content), xxhash.xxh3_64_intdigest(content))
    assert [entry.path for entry in text.manifest] == ["part000.txt", "part001.txt", "part002.txt"]


def test_windows_run_on_into_the_next_file(tmp_path: Path) -> None:
    text = open_path(write_folder(tmp_path, files=6, size=3), holdout_every=2)
    whole = read_all(text.train)
    assert whole == b"".join((tmp_path / file.name).read_bytes() for file in text.train.files)
    windows = text.train.windows(np.arange(text.train.size - 5), 6)
    assert [row.tobytes() for row in windows] == [whole[i : i + 6] for i in range(text.train.size - 5)]


def test_sparse_file_larger_than_memory_is_mapped_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 36)
        file.seek((1 << 36) - 4)
        file.write(b"tail")
    text = open_path(path)
    assert text.train.size + text.heldout.size == 1 << 36
    assert text.heldout.windows(np.array([text.heldout.size - 4]), 4)[0].tobytes() == b"tail"


def test_only_so_many_files_are_mapped_at_one_time(tmp_path: Path) -> None:
    write_folder(tmp_path, files=MAPPED_MAX + 20, size=2)
    before = len(os.listdir("/proc/self/fd"))
    text = open_path(tmp_path)
    read_all(text.train)
    assert len(os.listdir("/proc/self/fd")) - before <= MAPPED_MAX + 2


def test_file_that_shrinks_after_opening_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.bin"
    path.write_bytes(b"12345")
    stream = Stream([TextFile("short.bin", str(path), 0, 9, "train")], MappedReader())
    with pytest.raises(ConfigError, match="expected 9 bytes as when the text was opened"):
        stream.windows(np.array([0]), 9)
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be mapped"):
        Stream(stream.files, MappedReader()).windows(np.array([0]), 9)


def test_shards_are_disjoint_complete_and_balanced(tmp_path: Path) -> None:
    text = open_path(write_folder(tmp_path, files=40, size=10))
    shards = [text.shard(learner, 4) for learner in range(4)]
    names = [file.name for shard in shards for file in shard.files]
    assert sorted(names) == sorted(file.name for file in text.train.files)
    assert max(shard.size for shard in shards) - min(shard.size for shard in shards) <= 49
    assert text.shard(5, 4) is shards[1]


def test_what_cannot_be_read_is_passed_over_with_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    write_folder(folder, files=4)
    (folder / "empty.txt").touch()
    (folder / ".hidden").write_bytes(b"x")
    (folder / "dangling").symlink_to(folder / "nowhere")
    (tmp_path / "outside").write_bytes(b"secret")
    (folder / "leads_out").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    text = open_path(folder)
    assert len(text.manifest) == 4
    assert sorted(text.warnings) == [
        ".hidden is hidden",
        "dangling cannot be read (No such file or directory)",
        "empty.txt is empty",
        "leads_out is a link that leads out of the folder",
        "pipe is no regular file",
    ]


def test_unreadable_files_are_skipped_and_refused_when_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path, files=3)
    locked = {"part001.txt"}
    real_open = builtins.open

    def guarded(path: Any, *arguments: Any, **keys: Any) -> Any:
        if Path(path).name in locked:
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *arguments, **keys)

    monkeypatch.setattr("workbench.datasets.sources.open", guarded, raising=False)
    assert open_path(tmp_path).warnings == ("part001.txt cannot be read (Permission denied)",)
    with pytest.raises(ConfigError, match=r"cannot be read .* give another"):
        open_path(tmp_path / "part001.txt")
    locked |= {"part000.txt", "part002.txt"}
    with pytest.raises(ConfigError, match=r"holds nothing to train on .*Permission denied.* give another"):
        open_path(tmp_path)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: None, r"does not exist; .*--data PATH"),
        (lambda path: path.mkdir(), r"holds nothing to train on \(no files\)"),
        (lambda path: path.touch(), r"is empty; expected a readable file"),
        (lambda path: path.write_bytes(b"abc"), r"has 3 bytes, of which data.holdout_every = 20 holds out none"),
        (lambda path: os.mkfifo(path), r"is no regular file"),
    ],
)
def test_path_with_nothing_to_train_on_is_refused_in_one_line(tmp_path: Path, prepare: Any, message: str) -> None:
    prepare(tmp_path / "text")
    with pytest.raises(ConfigError, match=message) as refused:
        open_path(tmp_path / "text")
    assert "\n" not in str(refused.value)
