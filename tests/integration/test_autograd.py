"""Client code inside backward: errors, nesting, and that the daemon lets go of it."""

from __future__ import annotations

import gc
import time
from typing import Any

import gradwire as torch
import pytest
from gradwire.autograd import callbacks
from gradwire.utils.checkpoint import checkpoint, checkpoint_sequential


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values], requires_grad=True)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.saved_tensors[0].shape == g.shape
        return g * 2


def settle() -> None:
    """Until releases have reached the daemon, and what it says of them has come back."""
    gc.collect()
    for _ in range(100):
        torch.ones(1).item()
        if not callbacks.live:
            return
        time.sleep(0.01)


def test_the_daemon_lets_go_of_client_code():
    x = leaf(1, 2)
    x.register_hook(lambda g: g)
    y = Double.apply(x)
    y.register_hook(lambda g: None)
    assert len(callbacks.live) == 3
    y.sum().backward()
    assert len(callbacks.live) == 3
    del y
    gc.collect()
    for _ in range(100):
        torch.ones(1).item()
        if len(callbacks.live) == 1:
            break
        time.sleep(0.01)
    assert len(callbacks.live) == 1  # the leaf's
    del x
    settle()
    assert not callbacks.live


def test_an_error_in_client_code_ends_the_backward():
    x = leaf(1, 2)

    def hook(g: Any) -> None:
        raise LookupError("mine")

    handle = x.register_hook(hook)
    with pytest.raises(LookupError, match="mine"):
        (x * 2).sum().backward()
    assert x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_backward_within_backward_over_the_same_leaf():
    x = leaf(1, 2)

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with torch.enable_grad():
                (x * 10).sum().backward()
            return g

    (Outer.apply(x) + x * 3).sum().backward()
    assert x.grad.tolist() == [14, 14]


def test_gradients_of_a_hook_under_create_graph():
    x = leaf(1, 2)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [2, 8] and h.tolist() == [4, 8]


def test_a_node_hook_on_a_leafs_end():
    x = leaf(1, 2)
    seen = []
    end = (x * 2).grad_fn.next_functions[0][0]
    end.register_prehook(lambda grads: seen.append(grads[0].tolist()))
    (x * 5).sum().backward()
    assert seen == [[5, 5]] and end.variable.tolist() == [1, 2]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_chain(reentrant: bool):
    x, w = leaf(0.5, 1.5), leaf(2, 3)
    runs = []

    def step(t: Any) -> Any:
        runs.append(1)
        return (t * w).sin()

    checkpoint_sequential([step] * 4, 2, x * 1, use_reentrant=reentrant).sum().backward()
    assert len(runs) == 6
    x2, w2 = leaf(0.5, 1.5), leaf(2, 3)
    t = x2
    for _ in range(4):
        t = (t * w2).sin()
    t.sum().backward()
    assert torch.allclose(x.grad, x2.grad) and torch.allclose(w.grad, w2.grad)


def test_checkpoint_serves_autograd_grad_and_nesting():
    x, w = leaf(0.5, 1.5), leaf(2, 3)

    def inner(t: Any) -> Any:
        return (t * w).exp()

    def outer(t: Any) -> Any:
        return checkpoint(inner, t.sin(), use_reentrant=False).cos() * t

    y = checkpoint(outer, x, use_reentrant=False).sum()
    got = torch.autograd.grad(y, [x, w], retain_graph=True)
    again = torch.autograd.grad(y, [x, w])
    z = ((x.sin() * w).exp().cos() * x).sum()
    want = torch.autograd.grad(z, [x, w])
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(got, again, strict=True))


def test_a_checkpoint_that_changes_its_mind():
    x = leaf(0.5, 1.5)
    runs: list[int] = []

    def fickle(t: Any) -> Any:
        runs.append(1)
        return t.sin().exp() if len(runs) == 1 else t.sin()

    y = checkpoint(fickle, x, use_reentrant=False).sum()
    with pytest.raises(RuntimeError, match="A different number of tensors was saved"):
        y.backward()


def test_a_checkpoint_keeps_no_intermediate():
    def used() -> int:
        torch.synchronize()
        return torch.stats()["memory"]["used"]

    x = torch.ones(1 << 16, requires_grad=True)

    def deep(t: Any) -> Any:
        for _ in range(10):
            t = t.sin().exp()
        return t

    before = used()
    plain = deep(x)
    kept = used() - before
    del plain
    settle()
    before = used()
    y = checkpoint(deep, x, use_reentrant=False)
    assert used() - before < kept / 5
    y.sum().backward()


def test_fork_rng():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        a = torch.rand(3)
    assert torch.equal(a, torch.rand(3))
