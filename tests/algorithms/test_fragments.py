import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.algorithms.fragments import FRAGMENTATIONS, TensorSpec, fragment
from workbench.config import ConfigError
from workbench.config.validate import CHOICES


def specs(sizes: list[int]) -> list[TensorSpec]:
    return [TensorSpec(f"t{i:02}", (size,), "float32", "matrix", i) for i, size in enumerate(sizes)]


def decoder(layers: int) -> list[TensorSpec]:
    inside = [
        TensorSpec(f"layers.{i}.{name}", (8, 4), "float32", kind, i)
        for i in range(layers)
        for name, kind in (("attention", "matrix"), ("mlp", "matrix"), ("norm", "vector"))
    ]
    return [
        TensorSpec("embedding", (16, 4), "float32", "embedding"),
        *inside,
        TensorSpec("final_norm", (4,), "float32", "vector"),
        TensorSpec("head", (4, 16), "float32", "head"),
    ]


def test_table_has_the_words_of_the_configuration() -> None:
    assert tuple(FRAGMENTATIONS) == CHOICES["fragmentation"]


def test_greedy_packing() -> None:
    assert fragment(specs([7, 7, 6, 6, 5, 5, 4, 4, 4]), 4, "balanced").sizes == (15, 11, 11, 11)


def test_greedy_ties_go_by_name_then_lowest_bin() -> None:
    tensors = [TensorSpec(name, (5,), "float32", "matrix", 0) for name in "cbad"]
    assert fragment(tensors, 2, "balanced").assignment == (0, 1, 0, 1)  # a b c d


def best(sizes: list[int], bins: int) -> int:
    """Smallest possible largest bin, by trying all."""
    return min(
        max(sum(s for s, b in zip(sizes, choice, strict=True) if b == p) for p in range(bins))
        for choice in itertools.product(range(bins), repeat=len(sizes))
    )


@given(st.lists(st.integers(1, 30), min_size=3, max_size=6), st.integers(2, 3))
def test_greedy_bound(sizes: list[int], bins: int) -> None:
    largest = max(fragment(specs(sizes), bins, "balanced").sizes)
    assert largest <= (4 / 3 - 1 / (3 * bins)) * best(sizes, bins) + 1e-9


@pytest.mark.parametrize("rule", FRAGMENTATIONS)
@given(layers=st.integers(1, 6), fragments=st.integers(1, 4), order=st.randoms())
def test_every_tensor_is_in_one_fragment_and_none_is_empty(rule: str, layers: int, fragments: int, order: Any) -> None:
    tensors = decoder(layers)
    shuffled = order.sample(tensors, len(tensors))
    result = fragment(shuffled, fragments, rule)
    assert result == fragment(tensors, fragments, rule)
    assert [t.name for t in result.tensors] == sorted(t.name for t in tensors)
    members = [result.members(p) for p in range(fragments)]
    assert all(members)
    assert sorted(t for part in members for t in part) == sorted(tensors)
    assert result.sizes == tuple(result.layout(p).size for p in range(fragments))
    assert sum(result.sizes) == sum(math.prod(t.shape) for t in tensors)


def test_layout_lays_tensors_end_to_end_by_name() -> None:
    layout = fragment(decoder(1), 1, "balanced").layout(0)
    assert layout.names == (
        "embedding",
        "final_norm",
        "head",
        "layers.0.attention",
        "layers.0.mlp",
        "layers.0.norm",
    )
    assert layout.offsets == (0, 64, 68, 132, 164, 196, 228)
    assert layout.kinds == ("embedding", "vector", "head", "matrix", "matrix", "vector")
    assert layout.shapes[0] == (16, 4)


def test_layer_rule_keeps_layers_whole_and_in_order() -> None:
    result = fragment(decoder(5), 4, "layer")
    where = {t.name: p for t, p in zip(result.tensors, result.assignment, strict=True)}
    assert where["embedding"] == 0 and where["head"] == 3
    depth = [{where[f"layers.{i}.{n}"] for n in ("attention", "mlp", "norm")} for i in range(5)]
    assert all(len(places) == 1 for places in depth)
    order = [places.pop() for places in depth]
    assert order == sorted(order)


def test_strided_rule() -> None:
    result = fragment(decoder(5), 3, "strided")
    assert all(p == t.layer % 3 for t, p in zip(result.tensors, result.assignment, strict=True) if t.layer >= 0)


def test_tensor_rule_deals_tensors_out_one_by_one() -> None:
    assert fragment(specs([9, 1, 1, 1]), 4, "tensor").sizes == (9, 1, 1, 1)
    assert fragment(specs([9, 1, 1, 1]), 2, "tensor").assignment == (0, 1, 0, 1)


@pytest.mark.parametrize("rule", FRAGMENTATIONS)
@pytest.mark.parametrize("fragments", [0, 10, 100])
def test_more_fragments_than_tensors_are_refused_with_both_numbers(rule: str, fragments: int) -> None:
    with pytest.raises(ConfigError, match=rf"fragments = {fragments} .*9 tensors"):
        fragment(decoder(2), fragments, rule)


def test_layer_rules_refuse_more_fragments_than_layers() -> None:
    assert len(decoder(2)) == 9
    with pytest.raises(ConfigError, match="fragments = 6 is more than the 5 layers"):
        fragment(decoder(2), 6, "layer")
    with pytest.raises(ConfigError, match="leaves 1 of 6 fragments empty"):
        fragment(decoder(2), 6, "strided")


def test_unknown_rules_and_equal_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="allowed: balanced"):
        fragment(specs([1]), 1, "random")
    with pytest.raises(ConfigError, match="two tensors are named 't00'"):
        fragment(specs([1]) * 2, 1, "balanced")
