"""What may be done to a run from its page: faults, storms, live settings, its end; and what came of each click."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

from workbench.pages import commands, style
from workbench.pages.clicks import Command
from workbench.pages.fault_form import FaultForm
from workbench.pages.forking import page_words
from workbench.pages.session import Session
from workbench.pages.settings_form import SettingsForm
from workbench.pages.storm_form import StormForm
from workbench.pages.watcher import Watcher
from workbench.views.states import state_of

ACTIONS: dict[str, Callable[[int], Command]] = {
    "kill": partial(commands.fault, "kill", down_s=3.0),
    "stall 3 s": partial(commands.fault, "stall", for_s=3.0),
    "slow ×3": lambda m: commands.fault("slow", m, factor=3.0, for_s=0.0),
    "cut": lambda m: commands.fault("cut", m, for_s=0.0),
    "delay 0.2 s": lambda m: commands.fault("delay", m, delay_s=0.2, for_s=0.0),
    "nan": lambda m: commands.fault("nan", m, count=1),
    "heal": commands.heal,
    "release": commands.release,
    "revive": commands.revive,
    "remove": commands.remove,
}
MEANINGS = {
    "kill": "SIGKILL; another process starts after 3 s",
    "stall 3 s": "SIGSTOP for 3 s",
    "slow ×3": "its steps take three times as long, until it is healed",
    "cut": "its link loses everything, until it is healed",
    "delay 0.2 s": "its messages take 0.2 s longer each way, until it is healed",
    "nan": "its next contribution holds NaN",
    "heal": "ends what lasts: slow, cut, delay, loss, bandwidth",
    "release": "lets it in again after a guard has quarantined it",
    "revive": "starts it now after it failed or was killed, for good or for a time",
    "remove": "lets it go for good: its id is never given again",
}


class Controls:
    """Parameters
    ----------
    session : Session
    watcher : Watcher

    Attributes
    ----------
    learner : int
        Whom the buttons act on, and the faults of the form.
    heard : function (int)
        Called with whom the form of faults was aimed at.
    """

    def __init__(self, session: Session, watcher: Watcher) -> None:
        self._session, self._watcher = session, watcher
        self.learner = 0
        self._asked_to_stop = False
        self.heard: Callable[[int], None] = self.choose
        self._acts, self._clicks = style.html(""), style.html("")
        self._faults = FaultForm(watcher.targets, self.send, lambda learner: self.heard(learner))
        self._settings = SettingsForm(watcher.settings, self.send)
        self._storm = StormForm(watcher, session)
        self._card: Any = style.card()
        self.choose(0)

    def panel(self) -> Any:
        """Everything, or why there is nothing to press."""
        if not self._session.may_control:
            note = "<h2>Controls</h2><p>You are looking on: acting needs the address with the control token.</p>"
            self._card = style.card(style.html(note), self._clicks)
            return self._card
        self._card = style.card(
            self._acts,
            style.html('<h2 class="next">Any fault</h2>'),
            self._faults.panel(),
            style.html('<h2 class="next">Storm of faults at random</h2>'),
            self._storm.panel(),
            style.html('<h2 class="next">Live settings</h2>'),
            self._settings.panel(),
            self._clicks,
        )
        return self._card

    def end(self) -> None:
        """The run is over: what was clicked stays, and nothing can be pressed."""
        note = "<h2>Controls</h2><p>The run is over: nothing acts on it any more.</p>"
        self._card[:] = [style.html(note), *([self._clicks] if self._watcher.commands.kept else [])]

    def choose(self, learner: int) -> None:
        """Act on another learner from now on."""
        self.learner = learner
        self._show()
        self._faults.choose(learner, self._why_not("kill"))

    def _show(self) -> None:
        html = acts_html(self.learner, {name: self._why_not(name) for name in ACTIONS}, stopping=self._asked_to_stop)
        if html != self._acts.object:
            self._acts.object = html

    def _why_not(self, action: str) -> str:
        """Why an action makes no sense for the chosen learner, "" where it does."""
        status = self._watcher.status
        learners = status["learners"] if status is not None else []
        state = state_of(learners[self.learner]) if self.learner < len(learners) else ""
        if state in ("removed", "left"):
            return f"L{self.learner} {'was removed' if state == 'removed' else 'has left'}: it takes part no more"
        if state == "ended" and action not in ("revive", "remove"):
            return f"L{self.learner} has ended: there is no process; revive it first"
        return ""

    def act(self, name: str, learner: int) -> None:
        """Do what a button says."""
        if name in ACTIONS:
            self.send(ACTIONS[name](learner))

    def add(self) -> None:
        """Ask for one more learner."""
        self.send(commands.add())

    def undo(self, number: Any) -> None:
        """Ask for the inverse of a click."""
        with self._watcher.lock:
            inverse = self._watcher.commands.inverse(str(number))
        if inverse is not None:
            self.send(inverse)

    def send(self, command: Command) -> None:
        """Hand a click to the run, unless this tab may not or it is refused already."""
        if not (self._session.may_control and self._watcher.going):
            return
        with self._watcher.lock:
            command.refused = command.refused or self._watcher.commands.why_not(command)
            self._watcher.commands.add(command)
        if not command.refused:
            self._session.site.asking.submit(self._watcher.send, command)

    def update(self) -> None:
        """Show what has become of the clicks, and the settings in force; under the watcher's lock."""
        self._show()
        self._faults.offer(self._watcher.targets, self._why_not("kill"))
        html = clicks_html(list(self._watcher.commands.kept), may=self._session.may_control and self._watcher.going)
        if html != self._clicks.object:
            self._clicks.object = html
        self._settings.update(self._watcher.settings)
        self._storm.update()

    def stop(self) -> None:
        """End the run, the second time that this is asked for."""
        if not self._asked_to_stop:
            self._asked_to_stop = True
            self._show()
            return
        self._asked_to_stop = False
        self._show()
        self.send(commands.stop())


def acts_html(learner: int, why_not: dict[str, str], *, stopping: bool = False) -> str:
    """Buttons for what is done most; one that makes no sense now is off, and says why to whoever hovers."""
    acts = [_press(name, "act", MEANINGS[name], why_not.get(name, ""), name=name) for name in ACTIONS]
    acts += [_press("add a learner", "add", "one more, with the next id")]
    acts += [_press("really stop it?" if stopping else "stop the run", "stop", "ends the run in order; asks once more")]
    return (
        f'<h2>Act on L{learner} <span class="quiet" style="font-weight:400">(click a cell to choose)</span></h2>'
        f'<div class="dos acts">{"".join(acts)}</div>'
    )


def _press(text: str, do: str, meaning: str, off: str = "", **data: str) -> str:
    """A button of which the browser says what it means: beneath the pointer, after a while, until it is pressed."""
    more = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    off_or_on = f'disabled title="{escape(off)}"' if off else f'title="{escape(meaning)}"'
    return f'<button type="button" class="do" data-do="{do}"{more} {off_or_on}>{escape(text)}</button>'


def clicks_html(kept: list[Command], *, may: bool = False) -> str:
    """What was clicked, the newest first, with its three moments, and a way back where there is one."""
    if not kept:
        return '<p class="quiet">Each click is shown here: requested, acknowledged, seen.</p>'
    return (
        '<table class="clicks"><tr><th>click</th><th>requested</th><th>acknowledged</th><th>seen</th><th></th></tr>'
        f"{''.join(_row(one, may) for one in reversed(kept))}</table>"
    )


def _row(one: Command, may: bool) -> str:
    begin = f"<tr><td>{escape(one.what)}</td><td>{one.requested}</td>"
    if one.refused:
        return f'{begin}<td colspan="3">✕ refused: {escape(page_words(one.refused))}</td></tr>'
    undo = style.do("undo", "undo", f"undo: {one.what}", number=one.number) if may and one.can_be_undone else ""
    return f"{begin}<td>{escape(one.acknowledged) or '…'}</td><td>{escape(one.seen) or '…'}</td><td>{undo}</td></tr>"
