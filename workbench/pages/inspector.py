"""What is said of an event: itself, its merge and why that holds what it holds, its causes and effects."""

from __future__ import annotations

from html import escape

from workbench.analysis.merge_reasons import Why
from workbench.pages.event_words import sentence, who
from workbench.pages.recording import Look, Recording
from workbench.pages.style import do

MARKS = {
    "recorded": "✓ recorded: as it happened",
    "re_simulated": "≈ re-simulated: virtual time from the branch on",
    "recomputed": "∑ recomputed: the recorded schedule, other arithmetic",
}
LOST = "what it could know of", "what could know of it"


def inspector_html(recording: Recording, look: Look, holding: bool) -> str:
    """The inside of the inspector; ``holding``: its event is held while the cursor moves."""
    event = look.held
    said = recording.said(event)
    before, after, beside = look.counts
    head = f"Event {event:,}" + (" (held)" if holding else "")
    hold = do("hold", "follow the cursor" if holding else "hold its past and future", "", event=event)
    return (
        f"<h2>{head}</h2><p><b>{escape(who(said))}</b>: {escape(sentence(said))}, at {recording.time_s[event]:.3f} s "
        f'<span class="mark">{MARKS[look.mark]}</span></p>{_why(look)}'
        f'<p class="quiet">{before:,} events are in its past ({LOST[0]}), {after:,} in its future ({LOST[1]}), '
        f"{beside:,} in neither.</p>{_links(recording, look)}<p class='dos'>{hold}</p>"
    )


def _why(look: Look) -> str:
    if look.untold:
        return f'<p class="quiet">This tape cannot tell why merges hold what they hold: {escape(look.untold)}.</p>'
    if look.why is None:
        return '<p class="quiet">No merge before it.</p>'
    return f'<p class="why">{escape(look.why.sentence)}</p>{_clock(look.why)}'


def _clock(why: Why) -> str:
    """Clock entries of the merge: up to which record of each learner it knew."""
    rows = [
        f"<tr><td>✓ L{one.learner}</td><td class='num'>{one.heard:,}</td><td>in it with {one.weight:.0%}: "
        f"{one.steps:,} steps since version {one.base_version}, captured {one.lag_s * 1e3:,.0f} ms before</td></tr>"
        for one in why.taken
    ]
    rows += [
        f"<tr><td>✕ L{one.learner}</td><td class='num'><b>{one.heard:,}</b></td><td>"
        + escape(one.reason.replace("_", " "))
        + (f"; its record {one.came_seq:,} came too late" if one.came_seq > one.heard else "")
        + (f" {do('go', 'event that decided', '', event=one.decided)}" if one.decided >= 0 else "")
        + "</td></tr>"
        for one in why.missed
    ]
    return (
        "<table><caption>clock of the merge: up to which record of each learner "
        f"it could know</caption><tr><th>learner</th><th class='num'>entry</th><th></th></tr>{''.join(rows)}</table>"
    )


def _links(recording: Recording, look: Look) -> str:
    parts = []
    for name, title in (("cause", "follows directly from"), ("effect", "leads directly to")):
        found = [
            do(
                "go",
                f"{event:,} {who(recording.said(event))}",
                f"{sentence(recording.said(event))}; {how}",
                event=event,
            )
            for kind, event, how in look.links
            if kind == name
        ]
        if found:
            parts.append(f'<p class="dos"><span class="quiet">{title}</span> {"".join(found)}</p>')
    return "".join(parts)
