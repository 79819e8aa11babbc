from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from workbench.cli.main import VERBS, load_verb, main
from workbench.config import ConfigError
from workbench.tape.errors import StorageFull, TapeError


def raising(error: BaseException) -> Callable[..., None]:
    def run(*_: object, **__: object) -> None:
        raise error

    return run


def test_help_names_every_verb_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [verb for verb in VERBS if f"\n  {verb} " not in out] == []
    assert "130 interrupted" in out


def test_no_verb_is_a_wrong_request() -> None:
    assert main([]) == 2


def test_help_is_quick_and_loads_neither_arrays_nor_tables() -> None:
    code = (
        "import sys; from workbench.cli.main import main; main(['--help']);"
        "print([m for m in ('jax', 'numpy', 'rich', 'xarray') if m in sys.modules], file=sys.stderr)"
    )
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        best = min(best, time.perf_counter() - began)
    assert done.stderr.strip() == "[]"
    assert best < 3.0, "a hang guard of ten times the 0.3 s that help may take"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_fits_a_terminal(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: workbench {verb}" in out
    assert "--json" in out
    assert "--debug" in out
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["trian"], ["unknown verb 'trian'", "nearest: train", "allowed: train, replay"]),
        (["train", "--sed", "3"], ["unrecognized arguments", "workbench train --help"]),
        (["train", "--preset", "huge"], ["preset = 'huge'", "tiny-4, small-8"]),
        (["train", "--set", "learnrs=3"], ["nearest: learners"]),
        (["train", "--seed", "x"], ["seed = 'x'", "whole number"]),
        (["replay"], ["RUN"]),
    ],
)
def test_a_wrong_request_is_one_line_and_code_2(
    words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("workbench: ")
    assert captured.err.count("\n") == 1
    assert [part for part in parts if part not in captured.err] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no"), 2),
        (TapeError("no tape"), 2),
        (StorageFull("disk is full"), 3),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 3),
        (ZeroDivisionError("division by zero"), 3),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_errors_become_a_line_and_a_code(
    error: BaseException, code: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_verb("doctor"), "run", raising(error))
    saved = os.dup(1)
    try:
        assert main(["doctor"]) == code
    finally:
        os.dup2(saved, 1)
        os.close(saved)
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.count("\n") == (0 if isinstance(error, BrokenPipeError) else 1)


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_verb("doctor"), "run", raising(ConfigError("no")))
    assert main(["doctor", "--debug"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("workbench: no\n")


@pytest.mark.parametrize("shown", ["'x' * 10**6", "output.console().print('x' * 10**6)"])
def test_a_reader_that_leaves_early_is_no_error(shown: str) -> None:
    """Neither of plain text nor of tables: exit code 1 would say that something was found against the run."""
    more = f"cli.overview = lambda: {shown};sys.exit(cli.main(['--help']))"
    code = f"import sys, workbench.cli.main as cli;from workbench.cli import output;{more}"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(30), err) == (0, "")
