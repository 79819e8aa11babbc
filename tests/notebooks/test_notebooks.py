"""The notebooks, from fresh kernels: they run to their end, answer what they ask, and leave nothing behind."""

from __future__ import annotations

import ast
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
LIMIT_S = 90.0
"""What each may take on two free cores; the guard against hangs is ten times that."""
ANSWERS = {
    "00_quickstart": ("finished, ", "L1 is missing in ", "it did not see "),
    "01_replay": ("✓ bit-exact", "it did not see ", "outer_rate = 0.1"),
}


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_there_is_an_answer_to_look_for_in_each() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(ANSWERS)


def test_it_is_kept_without_outputs(notebook: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")


def test_it_uses_the_public_api_alone(notebook: Path) -> None:
    code = [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    tree = ast.parse("\n".join(code))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"workbench", "numpy", *sys.stdlib_module_names}
    private = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    assert private == []


@pytest.mark.timeout(12 * LIMIT_S)
def test_it_runs_to_its_end_and_answers_its_question(notebook: Path, tmp_path: Path) -> None:
    made = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(made, timeout=int(10 * LIMIT_S), kernel_name="python3", resources=where)
    start = time.perf_counter()
    client.execute()
    print(f"{notebook.stem}: {time.perf_counter() - start:.0f} s (on two free cores: under {LIMIT_S:.0f} s)")
    said = "\n".join(_texts(made))
    assert [words for words in ANSWERS[notebook.stem] if words not in said] == []
    (run,) = set(re.findall(r"<Run (\S+),", said))
    assert not Path(run).exists() and list(tmp_path.iterdir()) == []
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and run in _command_line(pid)] == []


def _texts(made: Any) -> list[str]:
    """What a reader sees, figures left out."""
    found = []
    for cell in made.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            plain = re.sub(r"<[^>]+>", " ", data.get("text/html", "")) if "text/html" in data else ""
            found += [output.get("text", ""), data.get("text/plain", ""), re.sub(r"\s+", " ", plain)]
    return found


def _command_line(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
