"""Parts of a snapshot as named arrays: the syncer's Theta and outer state, a learner's state, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from workbench.algorithms.digest import combine, digest
from workbench.algorithms.fragment_slots import outer_digest
from workbench.algorithms.outer import OUTER_OPTIMIZERS
from workbench.algorithms.syncer_arithmetic import OuterState
from workbench.training.held_state import StateArrays


class SyncerPart(NamedTuple):
    """Theta (size,) and outer state of each fragment, of one set of versions."""

    thetas: list[np.ndarray]
    outers: list[OuterState]

    @property
    def digest(self) -> int:
        """One digest of all of it, in the order of the fragments."""
        states = [outer_digest(o.rule, o.steps, [digest(vector) for vector in o.vectors]) for o in self.outers]
        return combine([*(digest(theta) for theta in self.thetas), *states])

    def arrays(self) -> dict[str, np.ndarray]:
        """By name."""
        found = {f"theta/{p}": theta for p, theta in enumerate(self.thetas)}
        for p, outer in enumerate(self.outers):
            found[f"outer/{p}/steps"] = np.array([outer.steps], np.int64)
            for index, vector in enumerate(outer.vectors):
                found[f"outer/{p}/vector/{index}"] = vector
        return found

    @property
    def rules(self) -> list[str]:
        """Outer optimiser of each fragment's state; the arrays do not say it."""
        return [outer.rule for outer in self.outers]


def syncer_part(arrays: Mapping[str, np.ndarray], rules: list[str]) -> SyncerPart:
    """The syncer's part from its arrays and its rules."""
    outers = []
    for p, rule in enumerate(rules):
        count = OUTER_OPTIMIZERS[rule].vectors if rule else 0
        size = arrays[f"theta/{p}"].size
        vectors = [arrays[f"outer/{p}/vector/{index}"] for index in range(count)]
        stacked = np.stack(vectors) if vectors else np.zeros((0, size), np.float32)
        outers.append(OuterState(rule, int(arrays[f"outer/{p}/steps"][0]), stacked))
    return SyncerPart([arrays[f"theta/{p}"] for p in range(len(rules))], outers)


def learner_arrays(state: StateArrays) -> dict[str, np.ndarray]:
    """A learner's state by name."""
    found = {f"parameters/{p}": flat for p, flat in enumerate(state.parameters)}
    found |= {f"moments/{index}": leaf for index, leaf in enumerate(state.moments)}
    found |= {f"bases/{p}": flat for p, flat in state.bases.items()}
    return found | {f"captured/{p}/{n}": flat for (p, n), flat in state.captured.items()}


def learner_state(arrays: Mapping[str, np.ndarray]) -> StateArrays:
    """A learner's state from its arrays."""
    by_kind: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    for name, array in arrays.items():
        kind, *numbers = name.split("/")
        by_kind.setdefault(kind, {})[tuple(map(int, numbers))] = array
    return StateArrays(
        [array for _, array in sorted(by_kind.get("parameters", {}).items())],
        [array for _, array in sorted(by_kind.get("moments", {}).items())],
        {p: array for (p,), array in sorted(by_kind.get("bases", {}).items())},
        {(p, n): array for (p, n), array in sorted(by_kind.get("captured", {}).items())},
    )
