"""Whether a learner that was started by hand means the same run as the syncer: key by key, with both values.

Both sides write what they mean as texts by key (*claims*), and the syncer compares.  What may differ between the
machines of one run is left out: where the text lies, what only the syncer decides, what only virtual time reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from workbench.algorithms.digest import digest
from workbench.config import RunConfig, flatten
from workbench.datasets import Text
from workbench.protocol.settings import MERGE_KEYS, POLICY_KEYS

FREE = frozenset(
    {*POLICY_KEYS, *MERGE_KEYS, "preset", "start_limit_s", "connect_limit_s", "eval_every", "eval_batches"}
    | {"data.source", "data.path"}
)
"""Keys that a learner may have otherwise: the syncer decides by them, or they are each machine's own business."""

FREE_GROUPS = ("virtual.", "machine.")

DATA, WEIGHTS = "data manifest", "initial weights"
"""Claims that are no keys: digests of what each machine has made of the configuration."""

CLAIMS_MAX, CLAIM_CHARACTERS_MAX = 256, 2000

Claims = Mapping[str, str]


def claims_of(config: RunConfig) -> dict[str, str]:
    """What a configuration says that both ends must have alike."""
    return {
        key: "none" if value is None else str(value)
        for key, value in flatten(config).items()
        if key not in FREE and not key.startswith(FREE_GROUPS)
    }


def data_claim(text: Text) -> dict[str, str]:
    """Digest of the data manifest: names, sizes, splits and digests of all files of the text; reads it once."""
    rows = (asdict(entry) | {"digest": f"{entry.digest:016x}"} for entry in text.manifest)
    return {DATA: _manifest_digest(rows)}


def weights_claim(initial_digest: int) -> dict[str, str]:
    """Digest of the initial weights."""
    return {WEIGHTS: f"{initial_digest:016x}"}


def claims_of_header(config: RunConfig, header: Mapping[str, Any]) -> dict[str, str]:
    """All that a syncer compares: of its configuration and of the journal's header."""
    return {
        **claims_of(config),
        DATA: _manifest_digest(header["data_manifest"]),
        WEIGHTS: str(header["initial_digest"]),
    }


def _manifest_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    listed = [[row["path"], row["start"], row["bytes"], row["digest"], row["split"]] for row in rows]
    return f"{digest(msgspec.msgpack.encode(listed)):016x}"


def first_difference(here: Claims, there: Claims) -> str:
    """One line for the first claim of a learner (``there``) that the syncer (``here``) has otherwise, empty if none."""
    for key, value in there.items():
        mine = here.get(key)
        if mine == value:
            continue
        if mine is None:
            return f"{key!r:.100} means nothing to the syncer: use the same release on both sides"
        return f"{key} = {value:.200} at the learner, {mine:.200} at the syncer; {_remedy(key, mine)}"
    return ""


def _remedy(key: str, mine: str) -> str:
    if key == DATA:
        return "give the learner the same text, byte for byte (--data PATH); its names and its split count too"
    if key == WEIGHTS:
        return "both make them from model, seed and software: use the same versions on both machines"
    return f"start the learner with --set {key}={mine:.200}"
