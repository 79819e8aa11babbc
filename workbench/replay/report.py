"""What a replay found."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from workbench.algorithms.digest import digest
from workbench.algorithms.fragments import Fragmentation
from workbench.replay.differences import Difference, Findings
from workbench.replay.program import Programs
from workbench.replay.syncer import ReplayedSyncer


class ReplayDiffers(RuntimeError):
    """A replay did not give the tape's bits."""


class ReplayReport(NamedTuple):
    """Outcome of an exact replay.

    Attributes
    ----------
    bit_exact : bool or None
        Every value that was compared is the tape's, and everything on the tape was executed; None if the tape holds
        neither step nor merge, so that there was nothing to compare.
    merges, merges_compared : int
        On the tape, and recomputed and compared.
    steps, captures : int
        Inner steps and contributions recomputed and compared.
    match : str
        ``bit``, ``1e-6`` (only digests differ; all losses and norms agree within that) or ``diverged``.
    largest : float
        Largest relative difference of a loss or a norm.
    difference : Difference or None
        The first that the journal has.
    environment : tuple of str
        Entries of the fingerprint that differ, with both values.
    final : list of arrays (size,)
        Final weights, flat by fragment.
    fragmentation : Fragmentation
    """

    bit_exact: bool | None
    merges: int
    merges_compared: int
    steps: int
    captures: int
    match: str
    largest: float
    difference: Difference | None
    environment: tuple[str, ...]
    final: list[np.ndarray]
    fragmentation: Fragmentation

    def __repr__(self) -> str:
        """One line; the weights are in `final`."""
        done = f"{self.merges_compared} of {self.merges} merges, {self.steps} inner steps"
        return f"<ReplayReport: {self.verdict}; {done}, weights {self.final_digest:016x}>"

    def _repr_html_(self) -> str:
        card: str = import_module("workbench.views.replay_card").replay_card(self)
        return card

    @property
    def first_difference(self) -> str | None:
        """The first difference as one line, None if there is none."""
        return self.difference.text() if self.difference is not None else None

    @property
    def final_digest(self) -> int:
        """xxh3-64 of the final weights in the order of the fragments."""
        return digest(np.concatenate(self.final))

    @property
    def verdict(self) -> str:
        """One line: what can be said of the run after this replay."""
        return f"{self._compared()}; nothing was merged" if not self.merges else self._compared()

    def _compared(self) -> str:
        if self.bit_exact is None:
            return "nothing to compare: the tape holds no inner step"
        same = "" if self.merges else f" in {self.steps} inner steps"
        if self.environment:
            there = f"environment differs: {'; '.join(self.environment)}"
            if self.bit_exact:
                return f"{there}; every value is the same all the same{same}"
            return f"{there}; {_MATCHES[self.match]} (largest relative difference {self.largest:.3g})"
        return f"bit for bit the same{same}" if self.bit_exact else "not the same, in the same environment"

    def verify(self) -> ReplayReport:
        """Return this report if the replay was bit-exact.

        Raises
        ------
        ReplayDiffers
            Else, with the verdict and the first difference, also when there was nothing to compare.
        """
        if self.bit_exact is None:
            raise ReplayDiffers(self.verdict)
        if not self.bit_exact:
            raise ReplayDiffers(f"{self.verdict}; first difference: {self.first_difference}")
        return self

    def weights(self) -> Mapping[str, np.ndarray]:
        """Final weights by tensor name, float32."""
        return tensors_by_name(self.fragmentation, self.final)

    def to_json(self) -> dict[str, Any]:
        """What ``workbench replay --json`` prints."""
        return {
            "bit_exact": self.bit_exact,
            "verdict": self.verdict,
            "match": self.match,
            "largest_relative_difference": self.largest,
            "merges": self.merges,
            "merges_compared": self.merges_compared,
            "steps": self.steps,
            "captures": self.captures,
            "first_difference": self.first_difference,
            "difference": self.difference._asdict() if self.difference is not None else None,
            "environment": list(self.environment),
            "final_digest": f"{self.final_digest:016x}",
        }


_MATCHES = {
    "bit": "every value is the same",
    "1e-6": "losses and norms agree within 1e-6",
    "diverged": "losses and norms diverge",
}


def tensors_by_name(fragmentation: Fragmentation, flat: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Fragments (size,) as the model's tensors, by name."""
    tensors = {}
    for p, values in enumerate(flat):
        layout = fragmentation.layout(p)
        bounds = zip(layout.offsets, layout.offsets[1:], strict=False)
        for name, shape, (begin, end) in zip(layout.names, layout.shapes, bounds, strict=True):
            tensors[name] = values[begin:end].reshape(shape)
    return dict(sorted(tensors.items()))


def report_of(
    programs: Programs,
    findings: Findings,
    syncer: ReplayedSyncer,
    fragmentation: Fragmentation,
    steps: int,
    captures: int,
    environment: tuple[str, ...] = (),
) -> ReplayReport:
    """The report on an execution that has come to its end, with its inner steps and captures."""
    passed = [m.event for m in programs.merges[: syncer.merges]]
    compared = sum(map(findings.compares, passed))
    return ReplayReport(
        bit_exact=False if findings.count else (True if steps + compared > 0 else None),
        merges=len(programs.merges),
        merges_compared=compared,
        steps=steps,
        captures=captures,
        match=findings.match,
        largest=findings.largest,
        difference=_with_number(findings.first, programs),
        environment=environment,
        final=[syncer.arithmetic.theta(p).copy() for p in range(fragmentation.fragments)],
        fragmentation=fragmentation,
    )


def _with_number(difference: Difference | None, programs: Programs) -> Difference | None:
    """The difference with the number of its merge, if it is one."""
    if difference is None or difference.kind != "merged":
        return difference
    numbers = {merge.event: number for number, merge in enumerate(programs.merges)}
    return difference._replace(merge=numbers.get(difference.event, -1))
