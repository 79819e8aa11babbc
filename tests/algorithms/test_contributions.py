from typing import Any

import numpy as np
import pytest

from workbench.algorithms.contributions import CONTRIBUTIONS
from workbench.algorithms.contributions.anchored import AnchoredConfig
from workbench.algorithms.slots import Anchored, ContributionInputs, Key

CURRENT, BASE, VALUE = (np.full(3, x, np.float32) for x in (1.0, 2.0, 3.0))


def contribute(anchor: str, weights: Any = "tokens2_per_step") -> Anchored:
    member, config = CONTRIBUTIONS["anchored"], AnchoredConfig(anchor, weights)
    inputs = ContributionInputs(VALUE, CURRENT, BASE, c_steps=2, c_tokens=10, age=1)
    return member.apply(config, member.init(config), inputs, Key(0))[0]


def test_default_chain_takes_the_anchor_that_is_asked_for() -> None:
    assert contribute("current").anchor is CURRENT
    assert contribute("base").anchor is BASE
    assert contribute("base").value is VALUE


def test_default_chain_weighs_by_the_rule() -> None:
    assert contribute("current").weight == 50.0
    assert contribute("current", "tokens").weight == 10.0


def test_other_anchors_are_refused() -> None:
    with pytest.raises(ValueError, match="allowed: current, base"):
        contribute("newest")
