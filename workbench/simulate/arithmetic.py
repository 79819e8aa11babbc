"""What the virtual-time driver asks of arithmetic, and the form that computes nothing but keeps the books."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from workbench.algorithms.poisons import AFTER_CODEC, NOT_FINITE, Poison
from workbench.protocol.actions import Fold, Merge, StartStep


class StepNumbers(NamedTuple):
    """What an inner step gave."""

    loss: float
    tokens: int
    batch: int
    accumulation: int


class CaptureNumbers(NamedTuple):
    """An encoded host copy."""

    digest: int
    nbytes: int
    handle: int


class MergeNumbers(NamedTuple):
    """A merged fragment."""

    finite: bool
    digest: int
    outer_digest: int
    norm: float
    norms: list[float]
    cosines: list[float]
    digests: list[int]


class Arithmetic(Protocol):
    """Arrays of all processes of a virtual run; numbered payloads stand for them in messages."""

    def adopt(self, learner: int, source: str) -> int:
        """A learner begins with the run's first weights and fresh moments; their digest."""

    def drop(self, learner: int) -> None:
        """A learner process is gone."""

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """Make an inner step."""

    def publish(self, learner: int, fragment: int) -> None:
        """Renew the host copy of a fragment, or of all (-1)."""

    def capture(self, learner: int, fragment: int, step: int, codec: str, poison: Poison | None) -> CaptureNumbers:
        """Encode the host copy; ``poison`` acts on what goes out."""

    def poison(self, learner: int, fragment: int, poison: Poison) -> None:
        """A numeric fault acts on the learner's own fragment, not on its host copy."""

    def fold(self, learner: int, order: Fold) -> None:
        """Absorb an update."""

    def forget(self, learner: int, fragment: int, step: int) -> None:
        """A captured copy is not needed any more."""

    def update(self, fragment: int, version: int) -> tuple[int, int]:
        """Handle and size [bytes] of the current version of a fragment."""

    def looks(self, handle: int) -> tuple[bool, bool, float]:
        """Whether a payload is finite, fits its fragment, and its norm, as its receiver finds it."""

    def release(self, handle: int) -> None:
        """A payload is not needed any more."""

    def merge(self, order: Merge) -> MergeNumbers:
        """Merge into the free slot."""

    def commit(self, fragment: int, version: int) -> None:
        """Make the merged slot the current one."""

    def recover(self, versions: list[int]) -> None:
        """A restarted syncer: current is the slot that holds the journal's version."""

    def evaluate(self) -> float | None:
        """Validation loss of the committed fragments, None where nothing is computed."""


class Work(NamedTuple):
    """A contribution without numbers: whose steps, since which base."""

    learner: int
    fragment: int
    base_version: int
    steps: tuple[int, ...]
    finite: bool
    fits: bool = True


class Ledgered:
    """No numbers: keeps, for every learner and fragment, which own steps its parameters hold.

    It knows nothing of the machines' counters, so that they can be checked against it.
    """

    def __init__(self, fragments: int, tokens: int = 512, fragment_bytes: int = 4096) -> None:
        self.fragments = fragments
        self.tokens = tokens
        self.fragment_bytes = fragment_bytes
        self.payloads: dict[int, Work | tuple[int, int]] = {}
        self.next_handle = 0
        self.work: dict[int, list[list[int]]] = {}
        self.base: dict[int, list[int]] = {}
        self.host: dict[int, list[tuple[int, ...]]] = {}
        self.kept: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self.unsound: set[tuple[int, int]] = set()
        self.published_unsound: set[tuple[int, int]] = set()
        self.versions = [0] * fragments
        self.slots: list[dict[int, list[Work]]] = [{0: []} for _ in range(fragments)]

    def _keep(self, payload: Work | tuple[int, int]) -> int:
        self.next_handle += 1
        self.payloads[self.next_handle] = payload
        return self.next_handle

    def adopt(self, learner: int, source: str) -> int:
        """See `Arithmetic.adopt`."""
        self.work[learner] = [[] for _ in range(self.fragments)]
        self.base[learner] = [-1] * self.fragments
        self.host[learner] = [()] * self.fragments
        for p in range(self.fragments):
            self.unsound.discard((learner, p))
        return 1

    def drop(self, learner: int) -> None:
        """See `Arithmetic.drop`."""
        self.work.pop(learner, None)
        self.kept = {key: value for key, value in self.kept.items() if key[0] != learner}

    def step(self, learner: int, order: StartStep) -> StepNumbers:
        """See `Arithmetic.step`."""
        for steps in self.work[learner]:
            steps.append(order.step)
        return StepNumbers(0.0, self.tokens, order.batch, order.accumulation)

    def publish(self, learner: int, fragment: int) -> None:
        """See `Arithmetic.publish`."""
        work, host = self.work[learner], self.host[learner]
        for p in range(self.fragments) if fragment < 0 else (fragment,):
            host[p] = tuple(work[p])
            move = self.published_unsound.add if (learner, p) in self.unsound else self.published_unsound.discard
            move((learner, p))

    def capture(self, learner: int, fragment: int, step: int, codec: str, poison: Poison | None) -> CaptureNumbers:
        """See `Arithmetic.capture`."""
        steps = self.host[learner][fragment]
        self.kept[learner, fragment, step] = steps
        kind = poison.kind if poison is not None else ""
        finite = kind not in NOT_FINITE and (learner, fragment) not in self.published_unsound
        work = Work(learner, fragment, self.base[learner][fragment], steps, finite, kind not in AFTER_CODEC)
        handle = self._keep(work)
        return CaptureNumbers(hash((learner, fragment, *steps)) & 0xFFFFFFFF, self.fragment_bytes, handle)

    def poison(self, learner: int, fragment: int, poison: Poison) -> None:
        """See `Arithmetic.poison`."""
        if poison.kind in NOT_FINITE:
            self.unsound.add((learner, fragment))

    def fold(self, learner: int, order: Fold) -> None:
        """See `Arithmetic.fold`."""
        p = order.fragment
        if order.rule == "overwrite":  # of others something that is not finite stays
            self.unsound.discard((learner, p))
        if order.rule == "delay_corrected":
            gone = set(self.kept.get((learner, p, order.reference), ())) if order.reference >= 0 else set()
            self.work[learner][p] = [n for n in self.work[learner][p] if n not in gone]
        else:
            self.work[learner][p] = []
        self.base[learner][p] = order.version

    def forget(self, learner: int, fragment: int, step: int) -> None:
        """See `Arithmetic.forget`."""
        self.kept.pop((learner, fragment, step), None)

    def update(self, fragment: int, version: int) -> tuple[int, int]:
        """See `Arithmetic.update`."""
        return self._keep((fragment, version)), self.fragment_bytes

    def looks(self, handle: int) -> tuple[bool, bool, float]:
        """See `Arithmetic.looks`."""
        payload = self.payloads[handle]
        return (payload.finite, payload.fits, 1.0) if isinstance(payload, Work) else (True, True, 1.0)

    def release(self, handle: int) -> None:
        """See `Arithmetic.release`."""
        self.payloads.pop(handle, None)

    def merge(self, order: Merge) -> MergeNumbers:
        """See `Arithmetic.merge`."""
        used = [self.payloads[handle] for handle in order.handles]
        self.slots[order.fragment][order.version] = [w for w in used if isinstance(w, Work)]
        ones = [1.0] * len(used)
        digest = hash((order.fragment, order.version, *order.learners)) & 0xFFFFFFFF
        return MergeNumbers(True, digest, 1, 1.0, ones, ones, [1] * len(used))

    def commit(self, fragment: int, version: int) -> None:
        """See `Arithmetic.commit`."""
        self.versions[fragment] = version
        self.slots[fragment].pop(version - 2, None)

    def recover(self, versions: list[int]) -> None:
        """See `Arithmetic.recover`."""
        self.versions = list(versions)

    def evaluate(self) -> float | None:
        """See `Arithmetic.evaluate`."""
        return None
