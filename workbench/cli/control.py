"""Act on a run of real processes that goes on, or look at it.

  status                   phase, merges, one line for each learner
  kill TARGET [--down S]   SIGKILL; it starts again after S seconds (0: never)
  stall TARGET [--for S]   SIGSTOP for S seconds (3)
  revive TARGET            start again what failed or was killed for good
  set KEY=VALUE ...        change live settings
  stop                     end the run in order

TARGET is a learner (2 or L2), or syncer.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.engine.launch import Run

ACTIONS = ("status", "kill", "stall", "revive", "set", "stop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench control``."""
    options.add_run(parser)
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("what", nargs="*", metavar="TARGET | KEY=VALUE", help="whom, or the settings")
    parser.add_argument("--down", metavar="S", type=float, help="seconds until another process starts (0: never)")
    parser.add_argument("--for", metavar="S", type=float, default=3.0, dest="for_s", help="seconds of a stall")
    parser.add_argument("--who", metavar="NAME", default="cli", help="who asks for a change, for the tape (cli)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked, print what came of it, return 0."""
    from workbench.cli import live, output
    from workbench.engine.launch import attach

    run = attach(arguments.run)
    answer = act(run, arguments)
    if arguments.json:
        output.print_json(answer)
    elif arguments.action == "status":
        output.console().print(live.picture(answer))
    else:
        output.console().print(", ".join(f"{key} {value}" for key, value in answer.items()))
    return 0


def act(run: Run, arguments: argparse.Namespace) -> dict[str, Any]:
    """Carry out one action on a run; returns what came of it.

    Raises
    ------
    ConfigError
        It cannot be done.
    """
    action = arguments.action
    if action in ("status", "stop") and arguments.what:
        raise ConfigError(f"{action} takes no {arguments.what[0]!r} (see workbench control --help)")
    if action == "status":
        return run.status()
    if action == "stop":
        run.stop()
        return {"done": "stop", "run": str(run.path)}
    if action == "set":
        return {"done": "set", "revision": run.set(settings_of(arguments.what), who=arguments.who)}
    target = target_of(arguments.what, action)
    if action == "kill":
        run.kill(target, arguments.down)
    elif action == "stall":
        run.stall(target, arguments.for_s)
    else:
        run.revive(target)  # type: ignore[arg-type]
    return {"done": action, "target": target}


def target_of(words: list[str], action: str) -> int | str:
    """Return the one target that the words name.

    Raises
    ------
    ConfigError
        It is none, or there are several.
    """
    if len(words) == 1:
        if words[0] == "syncer":
            return "syncer"
        number = words[0].removeprefix("L")
        if number.isascii() and number.isdigit():
            return int(number)
    raise ConfigError(f"{action} {' '.join(words) or '(nothing)'}: give one target, a learner (2 or L2) or syncer")


def settings_of(words: list[str]) -> dict[str, Any]:
    """Return the settings in ``KEY=VALUE`` words.

    Raises
    ------
    ConfigError
        There is none, or a word is no setting.
    """
    from workbench.config.load import parse_set

    if not words:
        raise ConfigError("set (nothing): give KEY=VALUE, for example grace_gamma=0.5")
    return dict(parse_set(word) for word in words)
