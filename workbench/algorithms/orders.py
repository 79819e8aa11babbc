"""Orders of the syncer's machine carried out by its arithmetic: the same for every driver that has numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.digest import digest
from workbench.algorithms.merging import MergeSettings
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic


class Arrived(NamedTuple):
    """A contribution as its receiver has decoded it: parameters (size,) and their xxh3-64."""

    values: np.ndarray
    digest: int


class Look(NamedTuple):
    """What a receiver finds in a payload; ``arrived`` is None where it cannot be decoded."""

    finite: bool
    fits: bool
    norm: float
    arrived: Arrived | None


class MergeOutcome(NamedTuple):
    """A merged fragment; the lists go with the learners of the order."""

    finite: bool
    digest: int
    outer_digest: int
    norm: float
    norms: list[float]
    cosines: list[float]
    digests: list[int]


def look(arithmetic: SyncerArithmetic, p: int, payload: Any, codec: str, base_version: int, sent: int) -> Look:
    """Decode and check a contribution, before the machine sees its header; ``sent``: digest of the payload there."""
    if digest(payload) != sent:
        return Look(True, False, 0.0, None)
    try:
        values = arithmetic.decode(p, payload, codec, base_version)
    except LookupError:
        return Look(True, True, 0.0, None)  # the base is gone: the machine refuses it as stale, whatever it holds
    except ValueError:
        return Look(True, False, 0.0, None)
    try:
        seen = arithmetic.check(p, values)
    except ValueError:
        return Look(True, False, 0.0, None)
    return Look(seen.finite, True, seen.norm, Arrived(values, seen.digest))


def settings_of_order(values: Mapping[str, Any], seed: int) -> MergeSettings:
    """Settings of a merge order in the arithmetic's own words."""
    return MergeSettings(
        values["merge"], values["outer"], values["outer_rate"], values["outer_momentum"], values["anchor"], seed
    )


def merge(
    arithmetic: SyncerArithmetic,
    p: int,
    version: int,
    learners: Sequence[int],
    arrived: Sequence[Arrived],
    weights: Sequence[float],
    base_versions: Sequence[int],
    settings: MergeSettings,
    fresh_outer: bool,
) -> MergeOutcome:
    """Merge into the free slot of fragment ``p``; see `SyncerArithmetic.merge`."""
    if fresh_outer:
        arithmetic.reset_outer(p)
    info = arithmetic.merge(p, version, learners, [a.values for a in arrived], weights, base_versions, settings)
    norms = dict(zip(info.used, info.norms, strict=True))
    cosines = dict(zip(info.used, info.cosines, strict=True))
    return MergeOutcome(
        bool(np.isfinite(info.norm)),
        info.digest,
        info.outer_digest,
        info.norm,
        [float(norms.get(m, 0.0)) for m in learners],
        [float(cosines.get(m, 0.0)) for m in learners],
        [a.digest for a in arrived],
    )
