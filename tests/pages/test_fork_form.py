from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.runs import FAULTS, simulated
from tests.analysis.tapes import taped
from workbench.config import RunConfig
from workbench.pages.access import new_access
from workbench.pages.addresses import Address
from workbench.pages.clicks import Command
from workbench.pages.controls import clicks_html
from workbench.pages.folders import Folders
from workbench.pages.fork_form import ForkForm
from workbench.pages.forking import page_words
from workbench.pages.recording import Recording
from workbench.pages.session import Session
from workbench.pages.site import Site

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
"""Panel 2's names, which Panel 1.9 does not know."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("runs") / "faulty"
    taped(folder, simulated(FAULTS))
    return Recording(folder)


@pytest.fixture
def form(recording: Recording) -> Any:
    site = Site(Folders([recording.path]), new_access(), RunConfig())
    return ForkForm(Session(site, "control", "t", Address("replay", "faulty")), recording)


def test_where_no_round_follows_there_is_nothing_to_change(form: Any, recording: Recording) -> None:
    opened = recording.places("round")
    last = int(opened[-1])
    form._key.value, form._text.value = "quorum", "2"
    form.move(recording.count - 1)
    assert form._round() is None and f"cursor to event {last:,}, the opening of round" in form._where.object
    form._ask()
    assert "No round opens from event" in form._said.object and form._fork is None
    form.move(last)
    assert form._said.object == "", "what was refused there holds here no longer"
    assert form._question().from_round == int(recording.column("round")[last])
    form.move(0)
    assert form._question().from_round == -1 and "from the start of the run" in form._where.object
    form.move(recording.count - 1)
    form._key.value, form._without.value = "nothing", "kill:1"
    assert form._question().without == ("kill:1",), "a fault is left out of the whole run, wherever the cursor stands"


def test_a_setting_of_few_words_is_chosen_among_them(form: Any, recording: Recording) -> None:
    form.move(int(recording.places("round")[3]))
    form._key.value = "grace"
    now = str(recording.tape.wb.at(form._event).settings["grace"])
    assert form._choice.visible and not form._text.visible
    assert now not in form._choice.options and {"none", "fixed"} <= {*form._choice.options, now}
    assert form._question().changes == (("grace", form._choice.value),)
    form._key.value = "quorum"
    assert form._text.visible and not form._choice.visible and form._text.placeholder == "now 1"


def test_a_refusal_goes_with_what_was_asked(form: Any, recording: Recording) -> None:
    form.move(int(recording.places("round")[3]))
    form._key.value, form._text.value = "quorum", "many"
    form._ask()
    assert "quorum" in form._said.object and not form._button.disabled
    form._key.value = "grace"
    assert form._said.object == ""
    form._without.value = "kill:1"
    form._ask()
    assert "kill:1 is left out of the whole run" in form._said.object


def test_pages_do_not_speak_of_the_command_line() -> None:
    said = "quorum = 9, but there are 4 learners; no merge can wait for more (try --set quorum=4)"
    assert page_words(said).endswith("(try quorum = 4)")
    assert page_words("--set a.b=1; or --set c=2, d") == "a.b = 1; or c = 2, d"
    one = Command.__new__(Command)
    one.what, one.requested, one.refused = "set quorum", "now", said
    assert "--set" not in clicks_html([one])
