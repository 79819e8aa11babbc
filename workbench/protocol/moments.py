"""Times that are none, beside those of a clock [ns]."""

from __future__ import annotations

NEVER = -(2**62)
"""A time long before everything."""
UNSET = -1
"""No such time yet (a machine's clock starts at 0)."""
