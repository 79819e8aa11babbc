from __future__ import annotations

from workbench.protocol.acting import Acting
from workbench.protocol.faults import Fault
from workbench.protocol.poisoning import WEIGHTS, Poisons


def test_faults_act_on_the_next_contributions_one_after_the_other() -> None:
    poisons = Poisons()
    assert poisons.on_capture(0, 1) is None
    poisons.add(Acting(4, Fault("scale", 0, 1, factor=2.0, count=2, seed=7)))
    poisons.add(Acting(5, Fault("nan", 0, 1, seed=8)))
    found = [poisons.on_capture(p, 10 + p) for p in range(4)]
    kinds = [item[0].kind if item is not None else None for item in found]
    assert kinds == ["scale", "scale", "nan", None]
    assert poisons.used_up == [4, 5]
    assert poisons.on_weights() is None


def test_the_event_says_all_that_a_replay_needs() -> None:
    poisons = Poisons()
    poisons.add(Acting(1, Fault("random", 0, 1, count=2, seed=7)))
    first, second = (poisons.on_capture(3, t) for t in (20, 21))
    assert first is not None and second is not None
    (poison, event), (other, _) = first, second
    assert (event.reason, event.fragment) == ("random", 3)
    assert event.detail == {"round": 20, "factor": 1.0, "seed": poison.seed}
    assert poison.seed != other.seed and 0 <= poison.seed < 2**63


def test_a_persistent_fault_acts_on_the_weights_too_once() -> None:
    poisons = Poisons()
    poisons.add(Acting(1, Fault("flip", 0, 1, persistent=True, seed=1)))
    assert poisons.on_weights() is None, "not before its contribution"
    captured = poisons.on_capture(2, 9)
    assert captured is not None
    found = poisons.on_weights()
    assert found is not None
    fragment, poison, event = found
    assert (fragment, poison, event.detail["round"]) == (2, captured[0], WEIGHTS)
    assert poisons.on_weights() is None


def test_what_acts_after_the_codec_leaves_the_weights_alone() -> None:
    poisons = Poisons()
    poisons.add(Acting(1, Fault("corrupt", 0, 1, persistent=True, seed=1)))
    assert poisons.on_capture(2, 9) is not None
    assert poisons.on_weights() is None
