"""The numbers above everything else, each with its definition, formula and unit for those who hover."""

from __future__ import annotations

from typing import Any

from workbench.pages import style
from workbench.pages.event_words import labels
from workbench.pages.work import UNHEARD_S, WINDOW_S, Shares, unheard_words
from workbench.tape.moment import Moment
from workbench.views.states import absent, kept_out, remaining

Status = dict[str, Any]

LAST = f"last {WINDOW_S:.0f} s"
WHEN = (
    "Work counts when it was done, however late it is reported; a learner of which nothing was heard for "
    f"{UNHEARD_S:.0f} s is left out until its reports come."
)
LOSS = "Mean of the connected learners' loss in their last step [nat per byte]; below it the loss on held-out text."
GOODPUT = (
    f"Useful time over allocated time of the learners that have joined, in the last {WINDOW_S:.0f} s: useful is the "
    f"length of completed steps less what was injected or waited in them. 1 means that nobody lost any time. {WHEN}"
)
PARTICIPATION = (
    "Three counts of learners. Alive: its process runs. Reachable: the syncer hears its heartbeats. "
    f"Contributed: it is in a merge of the last {WINDOW_S:.0f} s, wherever it is now."
)
QUORUM = "Learners that count, and how many are needed (quorum K) for a round to close."
TOKENS = f"Tokens trained per second in the last {WINDOW_S:.0f} s, summed over the learners [1/s]. {WHEN}"
MERGES = "Merges done, of those that the run will do; each makes one fragment's next version."

SHARE = "Tokens in merges so far over tokens processed so far; in steady state at most (H - tail) / H."
COUNTING = f"{SHARE} All tokens of the tape are being followed to their fate; the number comes in a moment."
SETTINGS = "Revision of the live settings in force, and the merge rule."


def live_html(status: Status, shares: Shares, contributed: set[int]) -> str:
    """Vitals of a run that goes on."""
    learners = status["learners"]
    loss = [one["loss"] for one in learners if one.get("loss") is not None and one.get("connected")]
    alive = sum(1 for one in learners if one.get("pid") and one["state"] == "running")
    reachable = sum(bool(one.get("connected")) for one in learners)
    goodput, rate, without = shares.goodput, shares.tokens_per_s, unheard_words(shares.unheard)
    validation = status.get("val_loss")
    cards = [
        style.vital(
            "loss", f"{sum(loss) / len(loss):.3f}" if loss else "–",
            "nothing evaluated yet" if validation is None else f"validation {validation:.3f}", LOSS,
        ),
        style.vital("goodput", "–" if goodput is None else f"{goodput:.0%}", without or LAST, GOODPUT),
        style.vital(
            "participation", f"{alive} / {reachable} / {len(contributed)}",
            f"alive/reachable/contributed in the {LAST}", PARTICIPATION,
        ),
        _quorum(status),
        style.vital("tokens per second", "–" if rate is None else f"{rate:,.0f}", without or LAST, TOKENS),
        style.vital("merges", f"{status['merges']:,}", f"of {status['rounds']:,}", MERGES),
    ]  # fmt: skip
    return f'<div class="vitals">{"".join(cards)}</div>'


def _quorum(status: Status) -> str:
    if "quorum" not in status:
        return style.vital("quorum", "–", "the syncer is starting", QUORUM)
    there = sum(bool(one.get("counts")) for one in status["learners"])
    waited_for, gone = absent(status["learners"])
    ended = "".join(f", {labels(learners)} {state}" for state, learners in gone.items())
    number = f"{there} of {remaining(status['learners'])} there"
    if status.get("quorum_lost"):
        since_s = max(0.0, status["elapsed_s"] - status["quorum_lost_since_s"])
        waits = f"; waits for {labels(waited_for)}" if waited_for else ""
        release = f"; release {labels(out)} to go on" if (out := kept_out(status)) else ""
        note = f"{status['quorum']} needed{ended}{waits}, {since_s:.1f} s{release}"
        return style.vital("✕ quorum lost", number, note, QUORUM, bad=True)
    if status.get("gathers"):
        note = f"waits for learners: {there} of the {status['quorum']} needed{ended}"
        return style.vital("quorum", number, note, QUORUM)
    without = f", without {labels(waited_for)}" if waited_for else ""
    return style.vital("quorum", number, f"{status['quorum']} needed{ended}{without}", QUORUM)


def then_vitals(moment: Moment, tokens: dict[str, float] | None) -> str:
    """Vitals of a moment of a tape; ``tokens``: totals by fate, None while they are being counted."""
    learners = [one for one in moment.learners if one.expected]
    loss = [one.loss for one in learners if one.connected and one.loss == one.loss]
    alive, reachable = sum(one.alive for one in learners), sum(one.connected for one in learners)
    validation = moment.validation
    quorum = moment.settings.get("quorum")
    cards = [
        style.vital(
            "loss", f"{sum(loss) / len(loss):.3f}" if loss else "–",
            "nothing evaluated yet" if validation is None else f"validation {validation[1]:.3f}", LOSS,
        ),
        style.vital("merges", f"{moment.merges:,}", f"{len(moment.rounds)} rounds in flight", MERGES),
        style.vital("participation", f"{alive} / {reachable}", "alive/reachable", PARTICIPATION),
        style.vital(
            "✕ quorum lost" if moment.quorum_lost else "quorum", f"{reachable} of {len(learners)} there",
            f"{quorum} needed" if quorum is not None else "", QUORUM, bad=moment.quorum_lost,
        ),
        _share(tokens),
        style.vital("settings", f"revision {moment.revision}", moment.settings.get("merge", ""), SETTINGS),
    ]  # fmt: skip
    return f'<div class="vitals">{"".join(cards)}</div>'


def _share(tokens: dict[str, float] | None) -> str:
    if tokens is None:
        return style.vital("merged share", "…", "counting tokens", COUNTING)
    processed, merged = tokens.get("tokens_processed", 0.0), tokens.get("tokens_merged", 0.0)
    return style.vital("merged share", f"{merged / processed:.0%}" if processed else "–", "of tokens processed", SHARE)
