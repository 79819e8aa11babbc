#!/usr/bin/env python3
"""Make `.venv` ready: the pinned packages of requirements.lock, this package (editable), their bytecode.

Run by make with the interpreter to use.  Does nothing when all is in place, repairs what an
interrupted run left, and waits when another one is at work.  The word ``explicit`` as an argument
says that the interpreter was named by the user, so that an environment of another one is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".stamp"
STARTED = VENV / ".started"
SOURCES = ("requirements.lock", "pyproject.toml", ".ci/install.py")
SKIPPED = r"/(tests?|testing|lib2to3|pip|experimental/jax2tf)/"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_LIMIT_S = 300
SUPPORTED = ("3.11", "3.12", "3.13")


def main() -> int:
    """Install if need be, one process at a time."""
    own = "{}.{}".format(*sys.version_info[:2])
    with lock():
        found = version_of(PYTHON)
        keep = found == own if "explicit" in sys.argv[1:] else found in SUPPORTED
        if keep and STAMP.is_file() and STAMP.read_text() == stamp(found):
            STAMP.touch()
            return 0
        if not keep or STARTED.exists():
            say(f"making {VENV.name} with Python {own} ({sys.executable})")
            shutil.rmtree(VENV, ignore_errors=True)
            run(sys.executable, "-m", "venv", VENV)
        install()
        STAMP.write_text(stamp(version_of(PYTHON)))
    return 0


def install() -> None:
    """Install everything into the existing environment; `STARTED` stays behind if that fails."""
    began = time.monotonic()
    STAMP.unlink(missing_ok=True)
    STARTED.touch()
    pip = (PYTHON, "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input", "install", "--no-deps")
    say("installing the packages of requirements.lock")
    run(*pip, "--no-compile", "--requirement", ROOT / "requirements.lock")
    run(*pip, "--no-build-isolation", "--editable", ROOT)
    offer_browser()
    say("compiling bytecode")
    library = next((VENV / "lib").glob("python3*/site-packages"))
    # A package may ship a file for another Python: what does not compile is not imported either.
    run(PYTHON, "-m", "compileall", "-qq", "-j", "0", "-x", SKIPPED, library, ROOT / "workbench", check=False)
    STARTED.unlink()
    say(f"ready after {time.monotonic() - began:.0f} s")


def offer_browser() -> None:
    """Install Debian's Chromium for the tests of pages where there is none and this process may; never fail."""
    if any(map(shutil.which, BROWSERS)):
        return
    command = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
    if os.geteuid() == 0 and shutil.which(command[0]):
        say("installing chromium, for the tests of pages")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=BROWSER_LIMIT_S)
    if not any(map(shutil.which, BROWSERS)):
        say("no Chromium here: tests of pages in a browser are skipped; on Debian type apt install chromium")


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Hold a lock on this script's own file, so that one installation runs at a time."""
    with Path(__file__).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another installation is running; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def version_of(python: Path) -> str | None:
    """Return the version of an interpreter, None if it does not run."""
    code = "import sys; print('{}.{}'.format(*sys.version_info[:2]))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def stamp(version: str | None) -> str:
    """Return what the stamp holds when all is in place: folder, version and digest of the sources."""
    digest = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in SOURCES)).hexdigest()
    return f"{ROOT}\n{version}\n{digest}\n"


def run(*command: object, check: bool = True) -> None:
    """Run a command with this process's output; a failure ends this process."""
    environment = {**os.environ, "PIP_USER": "0", "PYTHONDONTWRITEBYTECODE": ""}
    code = subprocess.run([str(word) for word in command], env=environment).returncode
    if check and code:
        sys.exit(f"install: `{' '.join(str(word) for word in command)}` failed with exit status {code}")


def say(text: str) -> None:
    """Print one line."""
    print(f"install: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
