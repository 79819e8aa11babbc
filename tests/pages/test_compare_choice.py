from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.config import RunConfig
from workbench.pages.access import new_access
from workbench.pages.addresses import Address
from workbench.pages.compare_choice import Choice, left_out, named
from workbench.pages.folders import Folders
from workbench.pages.session import Session
from workbench.pages.site import Site


def session_of(folder: Path, *names: str, address: Address) -> Session:
    for name in names:
        (folder / "r" / name).mkdir(parents=True)
        (folder / "r" / name / "config.toml").write_text("", encoding="utf-8")
    return Session(Site(Folders([folder / "r"]), new_access(), RunConfig()), "view", "t", address)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # Panel 2's names, which Panel 1.9 does not know
def test_runs_keep_the_order_in_which_they_were_ticked_and_any_may_be_the_reference(tmp_path: Path) -> None:
    session = session_of(tmp_path, "a", "b", "c", address=Address("compare", "r/c"))
    choice = Choice(session, named(session))
    assert choice.order == ["r/c"]
    for ticked in (["r/b", "r/c"], ["r/a", "r/b", "r/c"]):  # a group of boxes tells them in its own order
        choice.boxes.value = ticked
    assert choice.order == ["r/c", "r/b", "r/a"] == choice.reference.options
    choice.reference.value = "r/b"
    assert choice.order == ["r/b", "r/c", "r/a"]
    assert "<b>A</b> r/b · <b>B</b> r/c" in choice.said.object
    choice.boxes.value = ["r/a", "r/c"]
    assert choice.order == ["r/c", "r/a"] and choice.reference.value == "r/c"


def test_runs_that_do_not_fit_are_named(tmp_path: Path) -> None:
    def said(count: int) -> list[Any]:
        names = [f"r/{at}" for at in range(count)]
        return left_out(named(session_of(tmp_path, address=Address("compare", names[0], others=tuple(names[1:])))))

    assert said(6) == []
    (banner,) = said(8)
    assert "names 8 runs; 6 stand side by side. Left out: r/6, r/7." in banner.object
