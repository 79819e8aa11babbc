from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / ".ci" / "find-python"
VERSION = "{}.{}".format(*sys.version_info[:2])


def find(folder: Path, path: str, named: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": str(folder)}
    return subprocess.run(["/bin/sh", SCRIPT, named], env=environment, capture_output=True, text=True)


def command(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_shim_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    for version in ("3.13", "3.12", "3.11"):
        command(tmp_path / "shims" / f"python{version}", "echo not for you >&2; exit 127")
    real = command(tmp_path / "real" / f"python{VERSION}", f'exec "{sys.executable}" "$@"')
    found = find(tmp_path, f"{tmp_path / 'shims'}{os.pathsep}{tmp_path / 'real'}")
    assert (found.returncode, found.stdout.strip()) == (0, str(real))


def test_an_interpreter_in_pyenvs_own_folder_counts(tmp_path: Path) -> None:
    real = command(tmp_path / f".pyenv/versions/{VERSION}.0/bin/python", f'exec "{sys.executable}" "$@"')
    found = find(tmp_path, str(tmp_path))
    assert found.returncode == 0
    # A machine's own Python in these folders may be newer, and then goes first.
    assert found.stdout.strip() == str(real) or found.stdout.startswith(("/usr/local/bin/", "/opt/homebrew/bin/"))


def test_a_named_one_is_taken_or_refused(tmp_path: Path) -> None:
    assert find(tmp_path, "/bin", sys.executable).stdout.strip() == sys.executable
    refused = find(tmp_path, "/bin", str(command(tmp_path / "python3.9", "exit 1")))
    assert refused.returncode == 2
    assert "python3.9 does not run as Python 3.11 to 3.13" in refused.stderr
