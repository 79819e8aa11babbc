"""The committed slots in their file: blank, kept over processes, refused for another model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.algorithms.committed import mapped_slots
from workbench.algorithms.fragment_slots import VERSION, allocate_slots
from workbench.config import ConfigError

SIZES = [10, 17, 1]
WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from workbench.algorithms.committed import mapped_slots
slots = mapped_slots(Path(sys.argv[1]), [10, 17, 1], 2, 1)[1]
slots.theta[1] = 3
slots.outer[1, 0] = 4
slots.header[1, 0] = 8
os.kill(os.getpid(), 9)
"""


def test_blank_slots_have_the_shapes_of_those_in_memory(tmp_path: Path) -> None:
    for size, slots in zip(SIZES, mapped_slots(tmp_path / "c", SIZES, 3, 2), strict=True):
        other = allocate_slots(size, 3, 2)
        for mapped, fresh in zip(slots, other, strict=True):
            assert mapped.shape == fresh.shape and mapped.dtype == fresh.dtype and not mapped.any()
        assert slots.theta.ctypes.data % 64 == slots.theta[1].ctypes.data % 64 == 0
        assert slots.outer[2, 1].ctypes.data % 64 == 0
        assert slots.find(0) == -1
    assert os.stat(tmp_path / "c").st_mode & 0o777 == 0o600


def test_what_a_killed_process_committed_is_there(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(tmp_path / "c")], check=False)
    assert ended.returncode == -signal.SIGKILL
    found = mapped_slots(tmp_path / "c", SIZES, 2, 1)
    assert found[1].find(7) == 1
    assert (found[1].theta == [[0] * 17, [3] * 17]).all() and (found[1].outer[1] == 4).all()
    assert not found[0].theta.any() and not found[2].outer.any()


def test_a_reader_sees_the_writer_and_cannot_write(tmp_path: Path) -> None:
    writer = mapped_slots(tmp_path / "c", SIZES, 2, 1)
    reader = mapped_slots(tmp_path / "c", SIZES, 2, 1, write=False)
    writer[2].theta[0] = 5
    writer[2].header[0, VERSION] = 1
    assert reader[2].find(0) == 0 and (reader[2].theta[0] == 5).all()
    with pytest.raises(ValueError, match="read-only"):
        reader[2].theta[0] = 6


@pytest.mark.parametrize("other", [([10, 17, 2], 2, 1), ([17, 10, 1], 2, 1), (SIZES, 3, 1), (SIZES, 2, 2)])
def test_a_file_of_other_sizes_is_refused(tmp_path: Path, other: tuple[list[int], int, int]) -> None:
    slots = mapped_slots(tmp_path / "c", SIZES, 2, 1)
    slots[0].theta[0] = 1
    with pytest.raises(ConfigError, match="another config"):
        mapped_slots(tmp_path / "c", *other)
    assert (mapped_slots(tmp_path / "c", SIZES, 2, 1)[0].theta[0] == np.ones(10)).all()


def test_a_reader_does_not_make_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mapped_slots(tmp_path / "c", SIZES, 2, 1, write=False)
