import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from workbench.algorithms.digest import combine, digest
from workbench.algorithms.seeds import sub_seed
from workbench.algorithms.slots import Key

PARTS = st.lists(st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=5)), max_size=4)


def test_sub_seeds_do_not_change_between_versions_or_processes() -> None:
    expected = sub_seed(7, "data", 3)
    assert expected == 39276643505342449
    code = "from workbench.algorithms.seeds import sub_seed; print(sub_seed(7, 'data', 3))"
    for hash_seed in ("0", "12345"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        assert int(run.stdout) == expected


@given(PARTS, PARTS)
def test_different_names_give_different_seeds(a: list[int | str], b: list[int | str]) -> None:
    assert (sub_seed(0, *a) == sub_seed(0, *b)) == ([(type(x), x) for x in a] == [(type(x), x) for x in b])
    assert 0 <= sub_seed(0, *a) < 2**64


@pytest.mark.parametrize("name", [1.0, None, True, b"x"])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(TypeError, match="cannot name a seed"):
        sub_seed(0, name)


def test_keys_separate_what_random_choices_may_depend_on() -> None:
    keys = [Key(1, 2, 3, 4), Key(2, 2, 3, 4), Key(1, 3, 3, 4), Key(1, 2, 4, 4), Key(1, 2, 3, 5)]
    assert len({key.seed_for("codec") for key in keys} | {keys[0].seed_for("merge")}) == 6


@given(st.binary(max_size=300))
def test_digest_is_xxh3_of_the_bytes(data: bytes) -> None:
    expected = xxhash.xxh3_64_intdigest(data)
    assert digest(data) == digest(memoryview(data)) == digest(np.frombuffer(data, np.uint8)) == expected
    assert 0 <= expected < 2**64


def test_digest_reads_arrays_in_c_order() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert digest(a.T) == digest(a.T.copy()) != digest(a)
    assert digest(a) == digest(a.tobytes())


def test_combined_digests_keep_their_order() -> None:
    assert combine([1, 2]) != combine([2, 1])
