"""The overview: one screen that says what the run was, how it ended, what came out and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from workbench.cli import glyphs, output, words
from workbench.cli.pages import incidents
from workbench.cli.pages.ledger import fates_table, verdict
from workbench.cli.pages.rounds import not_due

Report = Mapping[str, Any]
LEARNERS_MAX = 40
SPARK_MAX = 40
TOLD = 0.001
"""Shares below this are left to the table of goodput."""


def show(report: Report, width: int) -> Iterator[Any]:
    """Yield the overview; the header stands above every page."""
    yield Text(settings(report["run"]["config"]), style="dim")
    changes = changed(report["run"])
    if changes:
        yield Text(changes, style="dim")
    yield ""
    yield output.pairs("", list(vitals(report)))
    yield ""
    yield verdict(report["ledger"])
    yield fates_table(report["ledger"], width)
    yield from incidents.show(report)
    yield ""
    yield from learners(report["learners"], report["participation"]["merges"])


def changed(run: Report) -> str:
    """Return the keys that differ from the preset and are not named by `settings`; empty if there are none."""
    rest = [f"{key} {value}" for key, (_, value) in run["changed"].items() if key not in run["config"]]
    return f"changed from {run['preset'] or 'the defaults'}: {', '.join(rest)}" if rest else ""


def settings(config: Report) -> str:
    """Return the settings that matter in one sentence."""
    grace = {
        "none": "no grace",
        "fixed": f"grace fixed {words.seconds(config['grace_s'])}",
        "adaptive": f"grace adaptive (gamma {config['grace_gamma']:g}, cap {config['grace_cap_steps']:g} steps)",
        "all": "grace until all are in",
    }[config["grace"]]
    lead = "" if config["lead"] is None else f", lead {config['lead']}"
    outer = f"{config['outer']} {config['outer_rate']:g}"
    momentum = f"/{config['outer_momentum']:g}" if config["outer_momentum"] else ""
    return (
        f"{words.plural(config['learners'], 'learner')}, K {config['quorum']}, {config['eligibility']}, {grace}{lead}; "
        f"P {config['fragments']}, H {config['period']}, tau {config['overlap']}; merge {config['merge']}, "
        f"weights {config['weights']}, outer {outer}{momentum}, fold {config['fold']}, codec {config['codec']}"
    )


def vitals(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the run as a whole."""
    validation, goodput, part = report["validation"], report["goodput"], report["participation"]
    losses = validation["curve"]["loss"]
    if losses:
        trained = (losses[1:] if len(losses) > 2 else losses)[-SPARK_MAX:]
        spark = glyphs.sparkline(trained, min(trained), max(trained)) if len(trained) > 1 else ""
        first = f"{losses[0]:.3f} → " if len(losses) > 1 else ""
        yield "validation loss", f"{first}{losses[-1]:.3f} nats/byte  {spark}"
    yield "goodput", f"{words.percent(goodput['goodput'])}{badput(goodput['badput'])}"
    yield "uptime", f"{words.percent(goodput['uptime'])} of the time some learner made progress"
    yield "merge availability", availability(report["rounds"])
    yield "participation", participation(part)
    stale = report["staleness"]["all"]
    yield (
        "staleness",
        (
            f"versions {words.three(stale['versions'], between='/')}, "
            f"steps {words.three(stale['steps'], between='/')}, "
            f"lag {words.three(stale['lag'], words.milliseconds, '/')} ms (median/p95/max)"
        ),
    )


def badput(shares: Report) -> str:
    """Return the causes that took a part worth telling, the largest first."""
    found = sorted(((share, cause) for cause, share in shares.items() if share and share >= TOLD), reverse=True)
    return "; badput: " + ", ".join(f"{cause} {words.percent(share)}" for share, cause in found) if found else ""


def availability(rounds: Report) -> str:
    """Return merge availability with what stands behind it."""
    waits = rounds["between_merges_s"]
    longest = f", longest wait for a merge {words.seconds(waits['max'])}" if waits["count"] else ""
    why = not_due(rounds)
    longest += f" ({why})" if why else ""
    late = f"; {words.seconds(rounds['late_s'])} beyond the bound" if rounds["late_s"] else ""
    return f"{words.percent(rounds['merge_availability'])}{longest}{late}"


def participation(part: Report) -> str:
    """Return participation with what stands behind it."""
    text = (
        f"{words.percent(part['participation'])}: {part['included']:,} of {part['expected']:,} expected contributions"
    )
    return f"{text}; left out: {words.listed(part['left_out'])}" if part["left_out"] else text


HEADS = ("", ">steps", ">step", ">tokens", ">merged", ">part.", ">goodput", ">alive", ">in", ">starts")


def learners(rows: list[Report], merges: int) -> Iterator[Any]:
    """Yield a row for each learner."""
    shown, hidden = output.some(rows, LEARNERS_MAX)
    table = [
        (
            words.label(row["learner"]),
            words.count(row["steps"]),
            words.seconds(row["step_s"]),
            words.compact(row["tokens"]),
            words.percent(row["merged_share"]),
            words.percent(row["participation"]),
            words.percent(row["goodput"]),
            words.count(row["alive"]),
            words.count(row["contributed"]),
            str(row["processes"]),
        )
        for row in shown
    ]
    yield output.aligned("learners", HEADS, table)
    yield Text(
        f"step: median; merged: share of its tokens; part.: participation; alive, in: merges of {merges:,}; starts: "
        "processes",
        style="dim",
    )
    if hidden:
        yield hidden
