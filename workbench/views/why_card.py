"""Why a merge contains what it contains, as a card whose lines are never wider than a page."""

from __future__ import annotations

from workbench.analysis.merge_reasons import Why
from workbench.views import markup


def why_card(found: Why) -> str:
    """HTML of the sentence."""
    text = markup.paragraph(found.sentence)
    return markup.card(f"merge {found.merge}, event {found.event}", "why", [text])
