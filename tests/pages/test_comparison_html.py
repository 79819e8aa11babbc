from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.analysis.comparing.test_comparison import run
from tests.analysis.runs import CONFIG
from workbench.pages.comparison_html import FIGURES, _less, figures_html, settings_html
from workbench.pages.linked import Linked
from workbench.tape import open_tape


def linked(*paths: Path) -> Any:
    recordings: Any = [SimpleNamespace(tape=open_tape(path)) for path in paths]
    return Linked([path.name for path in paths], recordings)


@pytest.mark.parametrize(
    ("less", "name", "said"),
    [
        (7e-05, "val_loss_last", "+0.0001"),
        (-4e-05, "val_loss_last", "less than 0.0001"),
        (0.0, "val_loss_last", "the same"),
        (0.004, "time_s", "less than 0.01"),
        (-7e-05, "goodput", "less than 0.1 points"),
        (-0.19, "goodput", "-19.0 points"),
        (2e-6, "uptime", "less than 0.1 points"),
        (0.0, "uptime", "the same"),
        (-171128.0, "tokens_merged", "-171,128"),
    ],
)
def test_a_difference_has_the_digits_of_its_figure(less: float, name: str, said: str) -> None:
    assert _less(less, FIGURES[name][1]) == said


def test_settings_of_every_run_are_told_in_words(tmp_path: Path) -> None:
    lineage = {"run_id": "a", "event": 6, "class": "schedule", "changes": {"quorum": 2}, "seed": 0}
    a, b = run(tmp_path / "a", 2.0), run(tmp_path / "b", 2.5, CONFIG.set(quorum=2), digest=5)
    c = run(tmp_path / "c", 2.5, digest=6, parent={**lineage, "without": ["kill:1"], "from_round": 3})
    html = settings_html(linked(a, b, c))
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in html.split("<tr>")]
    assert ["quorum", "1", "2", "1"] in cells and ["faults left out (what-if)", "–", "–", "kill:1"] in cells
    assert "from_round" not in html and ">live<" not in html


def test_over_seeds_leaves_out_a_run_of_the_same_seed(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", 2.0), run(tmp_path / "b", 2.5, digest=5)
    assert "Over seeds" not in figures_html(linked(a, b))
    c = run(tmp_path / "c", 2.2, CONFIG.set(seed=9), digest=6)
    html = figures_html(linked(a, b, c))
    assert "A, C, n = 2" in html and "so no further seed: B" in html
