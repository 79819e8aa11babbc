"""Act on a run of real processes that goes on, or look at it.

  status                   phase, merges, one line for each learner
  kill TARGET              SIGKILL; it starts again after --down S (0: never)
  exit LEARNER             exit code 1 from inside; --down S as of kill
  stall TARGET             SIGSTOP; --for S (3)
  slow LEARNER             steps take --factor X (3) times as long; --for S
  cut LEARNER              its link loses everything; --direction up or down
                           for one way; --for S
  lose LEARNER             the next --count N (1) messages are lost;
                           --direction up (default) or down
  delay LEARNER            messages take --delay S (0.2), give or take
                           --jitter S (0), longer each way; --for S
  loss LEARNER             messages are lost with probability --share X (0.3);
                           --for S
  bandwidth LEARNER        fragments travel at --bytes-per-s X (1e6); --for S
  poison LEARNER           --kind nan (default), inf, scale, flip, random,
                           corrupt or shape on its next --count N (1)
                           contributions; --factor X of scale (10);
                           --persistent: on its own weights too
  heal LEARNER             end what lasts: slow, cut, delay, loss, bandwidth
  add                      one more learner (--count N) takes part; where
                           learners are started by hand its line is printed
  remove LEARNER           it leaves for good
  release LEARNER          let a learner that is quarantined in again
  revive TARGET            start now what failed, was killed or is down
  set KEY=VALUE ...        change live settings
  stop                     end the run in order

TARGET is a learner (2 or L2), or syncer. Without --for a fault that lasts acts
until it is healed. Every fault and its end is on the tape.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.engine.launch import Run

FLAGS: dict[str, tuple[str, ...]] = {
    "status": (),
    "kill": ("down_s",),
    "exit": ("down_s",),
    "stall": ("for_s",),
    "slow": ("factor", "for_s"),
    "cut": ("direction", "for_s"),
    "lose": ("direction", "count"),
    "delay": ("delay_s", "jitter_s", "for_s"),
    "loss": ("share", "for_s"),
    "bandwidth": ("bytes_per_s", "for_s"),
    "poison": ("kind", "count", "factor", "persistent"),
    "heal": (),
    "add": ("count",),
    "remove": (),
    "release": (),
    "revive": (),
    "set": (),
    "stop": (),
}
"""Flags of each action, by the names that `Run` has for them."""
POISON_KIND = "nan"
"""Kind of a poison where none is given, as `Run.poison` has it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench control``."""
    options.add_run(parser)
    parser.add_argument("action", choices=FLAGS, metavar="ACTION", help="one of the above")
    parser.add_argument("what", nargs="*", metavar="TARGET | KEY=VALUE", help="whom, or the settings")
    seconds: dict[str, Any] = {"metavar": "S", "type": float}
    parser.add_argument(
        "--down", dest="down_s", help="seconds until another process starts (default 0.5; 0: never)", **seconds
    )
    parser.add_argument("--for", dest="for_s", help="seconds that a fault lasts", **seconds)
    parser.add_argument("--factor", metavar="X", type=float, help="of slow and of poison --kind scale")
    parser.add_argument("--direction", metavar="WORD", help="of cut (both, up, down) and lose (up, down)")
    parser.add_argument("--count", metavar="N", type=int, help="of lose (messages), poison (contributions), add")
    parser.add_argument("--delay", dest="delay_s", help="seconds of a delay", **seconds)
    parser.add_argument("--jitter", dest="jitter_s", help="seconds by which a delay varies", **seconds)
    parser.add_argument("--share", metavar="X", type=float, help="share of messages that are lost, 0 to 1")
    parser.add_argument("--bytes-per-s", metavar="X", type=float, help="of bandwidth")
    parser.add_argument("--kind", metavar="WORD", help="of poison")
    parser.add_argument("--persistent", action="store_true", default=None, help="poison the learner itself too")
    parser.add_argument("--who", metavar="NAME", default="cli", help="who asks for a change, for the tape (cli)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked, print what came of it, return 0."""
    from workbench.cli import live_picture, output
    from workbench.engine.launch import attach

    run = attach(arguments.run)
    answer = act(run, arguments)
    if arguments.json:
        output.print_json(answer)
    elif arguments.action == "status":
        screen = output.console()
        screen.print(live_picture.picture(answer, screen.size.width, len(answer["learners"]) + 16))
    else:
        start = answer.pop("start", [])
        screen = output.console()
        screen.print(", ".join(f"{key} {value}" for key, value in answer.items()))
        for line in start:
            screen.print(f"start it, on any machine, with its key: {line}", soft_wrap=True, markup=False)
    return 0


def act(run: Run, arguments: argparse.Namespace) -> dict[str, Any]:
    """Carry out one action on a run; returns what came of it.

    Raises
    ------
    ConfigError
        It cannot be done.
    """
    action, given = arguments.action, flags_of(arguments)
    if action in ("status", "stop") and arguments.what:
        raise ConfigError(f"{action} takes no {arguments.what[0]!r} (see workbench control --help)")
    if action == "status":
        return run.status()
    if action == "stop":
        run.stop()
        return {"done": "stop", "run": str(run.path)}
    if action == "set":
        return {"done": "set", "revision": run.set(settings_of(arguments.what), who=arguments.who)}
    given |= {"who": arguments.who} if action in ("add", "remove", "release") else {}
    if action == "add":
        if arguments.what:
            raise ConfigError(f"add takes no {arguments.what[0]!r}: the next numbers are given out (--count N)")
        return added(run, run.add(**given))
    target = target_of(arguments.what, action)
    came = getattr(run, action)(target, **given)
    done = {"done": action, "target": target}
    if action == "heal":
        return done | {"ended": came}
    return done | ({"kind": given.get("kind", POISON_KIND)} if action == "poison" else {})


def added(run: Run, learners: list[int]) -> dict[str, Any]:
    """Return what came of an addition: who is there now, and what starts them where that is done by hand."""
    from workbench.engine.listening import joining_line, read_listening

    done = {"done": "add", "learners": learners}
    listening = read_listening(run.path)
    if listening is None:
        return done
    address = run.status()["address"]
    return done | {"start": [joining_line(listening, address, m) for m in learners]}


def flags_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the flags that were given.

    Raises
    ------
    ConfigError
        The action does not know one of them.
    """
    names = sorted({name for flags in FLAGS.values() for name in flags})
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    unknown = [name for name in given if name not in FLAGS[arguments.action]]
    if unknown:
        allowed = ", ".join(_flag(name) for name in FLAGS[arguments.action]) or "no flags of its own"
        raise ConfigError(f"{arguments.action} takes no {_flag(unknown[0])}; allowed: {allowed}")
    return given


def _flag(name: str) -> str:
    return "--" + (name if name == "bytes_per_s" else name.removesuffix("_s")).replace("_", "-")


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
    from workbench.protocol.settings import require_live

    if not words:
        raise ConfigError("set (nothing): give KEY=VALUE, for example grace_gamma=0.5")
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals:
            raise ConfigError(f"set {word} has no value; give KEY=VALUE, for example grace_gamma=0.5")
        require_live(key.strip())
    return dict(parse_set(word) for word in words)
