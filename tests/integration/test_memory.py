"""A chain's temporaries take memory only while they are used."""

from __future__ import annotations

import gradwire as torch
import pytest


def peak() -> int:
    return int(torch.cuda.max_memory_allocated())


@pytest.mark.parametrize("fusable", [True, False])
def test_a_chain_of_fifty_ops_needs_four_tensors_at_most(fusable: bool) -> None:
    size = 2_000_000
    tensor_bytes = 4 * size
    x = torch.ones(size)
    for i in range(50):
        # Kernels of their own between pointwise ops, or pointwise ops alone.
        x = x * 1.01 if fusable or i % 2 else x.flip(0)
    assert x.sum().item() > 0
    assert peak() <= 4 * tensor_bytes + (1 << 20)
