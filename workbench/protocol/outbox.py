"""Records on their way to the journal (PROTOCOL section 6).

Each channel of a connection carries every unacknowledged record once; when no acknowledgement comes for
a while, or the connection is another, they are carried again.  The journal knows duplicates by their seq.
"""

from __future__ import annotations

from workbench.protocol.learner_state import Outbox
from workbench.protocol.records import Record


def put(box: Outbox, record: Record, now: int) -> None:
    """Keep a record until it is acknowledged."""
    if not box.unacked:
        box.progress_at = now
    box.unacked.append(record)


def take(box: Outbox, channel: int) -> list[Record]:
    """What this channel has not carried yet."""
    if not box.unacked:
        return []
    first = max(box.sent[channel], box.acked)
    box.sent[channel] = box.unacked[-1].seq
    return box.unacked[first - box.acked :]


def acknowledge(box: Outbox, acked: int, now: int) -> None:
    """Records up to ``acked`` are in the journal."""
    if acked <= box.acked:
        return
    if box.unacked:
        del box.unacked[: acked - box.acked]
    box.acked = acked
    box.progress_at = now


def rewind(box: Outbox) -> None:
    """Carry everything unacknowledged again."""
    box.sent = [box.acked, box.acked]


def rewind_when_silent(box: Outbox, now: int, patience_ns: int) -> None:
    """Carry it again if no acknowledgement came for ``patience_ns``."""
    if box.unacked and now - box.progress_at > patience_ns:
        rewind(box)
        box.progress_at = now
