"""Fingerprint, advice on the environment, compile cache."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import jax
import jaxlib
import pytest

from workbench.config import ConfigError
from workbench.training.compile_cache import enable_compile_cache
from workbench.training.environment import MALLOC_ADVICE, fingerprint, malloc_advice

REPOSITORY = Path(__file__).parents[2]


def test_fingerprint_names_what_bits_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    jax.devices()  # reads the environment once, before it is changed here
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("PJRT_NPROC", "1")
    found = fingerprint()
    assert found["jaxlib"] == jaxlib.__version__
    assert (found["xla_flags"], found["openblas_coretype"], found["nproc"]) == (
        "--xla_cpu_enable_fast_math=false",
        "Haswell",
        "1",
    )
    assert found["visible_cores"] == str(len(os.sched_getaffinity(0)))
    assert found["flush_to_zero"] == "false"
    assert found["device_kind"] and found["cpu_features"] and "+" in found["code"]
    assert fingerprint() == found


def test_fingerprint_without_device_does_not_load_jax() -> None:
    code = (
        "import importlib.util as u, sys; s = u.spec_from_file_location('e', sys.argv[1]); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); f = m.fingerprint(device=False); "
        "assert 'jax' not in sys.modules and f['device_kind'] == '' and f['jaxlib']"
    )
    path = REPOSITORY / "workbench/training/environment.py"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)


def test_malloc_advice_is_what_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MALLOC_ADVICE:
        monkeypatch.delenv(name, raising=False)
    assert malloc_advice() == MALLOC_ADVICE
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "7")
    assert "MALLOC_MMAP_MAX_" not in malloc_advice()


CACHED = """
import sys
from pathlib import Path
import jax
from workbench.training.compile_cache import enable_compile_cache
enable_compile_cache(Path(sys.argv[1]))
jax.jit(lambda x: x * 3 + 1)(2.0).block_until_ready()
"""


def test_compiled_programs_are_kept_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", CACHED, str(folder)], check=True, env=environment, timeout=120)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(folder.iterdir())


def test_compile_cache_on_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="expected a folder of your own"):
        enable_compile_cache(tmp_path / "file")
