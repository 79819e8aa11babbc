"""Mapped blocks: whole or refused, whatever becomes of the writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.engine.blocks import PAGE, BlockError, BlockReader, BlockWriter, Descriptor, file_bytes

SIZE = 4000
WRITE_FOR_EVER = """
import sys
from pathlib import Path
import numpy as np
from workbench.engine.blocks import BlockWriter
writer, value = BlockWriter(Path(sys.argv[1]), 1, int(sys.argv[2])), 0
print("ready", flush=True)
while True:
    value += 1
    writer.write(np.full(int(sys.argv[2]) // 4, value, np.float32))
"""


def _pair(path: Path, slots: int = 3) -> tuple[BlockWriter, BlockReader]:
    return BlockWriter(path / "b", slots, SIZE), BlockReader(path / "b", SIZE, slots)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_what_is_written_is_read(tmp_path: Path, dtype: type) -> None:
    writer, reader = _pair(tmp_path)
    array: np.ndarray = np.arange(777).astype(dtype)
    found = writer.write(array)
    out = np.zeros_like(array)
    assert found == Descriptor("b", 0, 1, array.nbytes)
    assert reader.read(found, out)
    np.testing.assert_array_equal(out, array)
    assert os.stat(writer.path).st_mode & 0o777 == 0o600


def test_a_reader_that_comes_too_late_learns_it(tmp_path: Path) -> None:
    writer, reader = _pair(tmp_path)
    first = writer.write(np.ones(10, np.float32))
    view = reader.view(first)
    assert view is not None and reader.holds(first)
    for _ in range(3):
        last = writer.write(np.zeros(10, np.float32))
    assert (last.slot, last.generation) == (0, 2)
    assert not reader.holds(first) and reader.view(first) is None
    out = np.full(10, 7, np.float32)
    assert not reader.read(first, out)
    np.testing.assert_array_equal(out, np.full(10, 7, np.float32))


@pytest.mark.parametrize(
    "wrong",
    [
        Descriptor("other", 0, 1, 40),
        Descriptor("b", 3, 1, 40),
        Descriptor("b", -1, 1, 40),
        Descriptor("b", 0, 2, 40),
        Descriptor("b", 1, 0, 40),
        Descriptor("b", 0, 1, SIZE + 1),
        Descriptor("b", 0, 1, -1),
        Descriptor("b", 0, 1, 44),
    ],
)
def test_a_wrong_descriptor_reads_nothing(tmp_path: Path, wrong: Descriptor) -> None:
    writer, reader = _pair(tmp_path)
    writer.write(np.ones(10, np.float32))
    assert not reader.read(wrong, np.zeros(10, np.float32))


def test_sizes_are_checked_before_mapping(tmp_path: Path) -> None:
    writer, _ = _pair(tmp_path)
    with pytest.raises(BlockError, match="expected slots of 8000"):
        BlockReader(writer.path, 8000)
    with pytest.raises(BlockError, match="no block file of 1 to 2 slots"):
        BlockReader(writer.path, SIZE, 2)
    os.truncate(writer.path, file_bytes(3, SIZE) - 1)
    with pytest.raises(BlockError, match="has 16"):
        BlockReader(writer.path, SIZE)
    (tmp_path / "text").write_text("hello")
    os.chmod(tmp_path / "text", 0o600)
    with pytest.raises(BlockError, match="no block file"):
        BlockReader(tmp_path / "text", SIZE)
    os.chmod(tmp_path / "text", 0o644)
    with pytest.raises(BlockError, match="not a private file"):
        BlockReader(tmp_path / "text", SIZE)
    (tmp_path / "link").symlink_to(writer.path)
    with pytest.raises(OSError):
        BlockReader(tmp_path / "link", SIZE)
    with pytest.raises(BlockError, match="payload of 4004 bytes"):
        writer.write(np.zeros(1001, np.float32))
    with pytest.raises(BlockError, match="expected 1 to"):
        BlockWriter(tmp_path / "c", 0, 4)


def test_no_room_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        BlockWriter(tmp_path / "b", 100, 1 << 50)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_leaves_the_readers_of_the_old_one_alone(tmp_path: Path) -> None:
    writer, reader = _pair(tmp_path)
    found = writer.write(np.full(1000, 3, np.float32))
    view = reader.view(found)
    other = BlockWriter(tmp_path / "b", 3, SIZE)
    other.write(np.zeros(1000, np.float32))
    other.close()
    assert view is not None and (view.view(np.float32) == 3).all() and reader.holds(found)


def test_a_writer_killed_in_mid_write_never_shows_torn_data(tmp_path: Path) -> None:
    size = 1 << 20
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path / "b"), str(size)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        reader = BlockReader(tmp_path / "b", size, 1)
        whole = torn = 0
        out = np.zeros(size // 4, np.float32)
        for turn in range(400):
            generation = _generation(tmp_path / "b")
            if reader.read(Descriptor("b", 0, generation, size), out):
                whole += 1
                assert out[0] == generation and (out == out[0]).all()
            else:
                torn += 1
            if turn == 200:
                process.send_signal(signal.SIGKILL)
                process.wait()
        assert torn > 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _generation(path: Path) -> int:
    with path.open("rb") as file:
        return int(np.frombuffer(file.read(PAGE), np.int64)[9])
