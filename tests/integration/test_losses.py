"""Losses, norms and attention: gradients of gradients, and the fused forms against their parts."""

import gradwire as torch
import numpy as np
import pytest
from gradwire import nn

F = nn.functional


def _tensor(seed, *sizes):
    values = np.random.default_rng(seed).normal(size=sizes)
    return torch.tensor(values, dtype=torch.float64).requires_grad_(True)


def _slope(f, leaves, weight):
    """The weighted sum of all first gradients, which is a function of the leaves again."""
    gradients = torch.autograd.grad(f(*leaves), leaves, weight, create_graph=True)
    return sum((g * g).sum() for g in gradients)


CASES = {
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        [(4, 3, 2), (3,), (3,)],
    ),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (3, 2), w, b),
        [(4, 3, 2), (3, 2), (3, 2)],
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 3), (4,), (4,)]),
    "instance_norm": (lambda x: F.instance_norm(x), [(2, 3, 4)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), [(2, 3, 4), (4,)]),
    "normalize": (lambda x: F.normalize(x, 3.0), [(2, 3)]),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 3, 4), (2, 5, 4), (2, 5, 3)],
    ),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, "none", 0.7), [(3, 4), (3, 4)]),
    "bilinear": (lambda a, b, w: F.bilinear(a, b, w), [(2, 3), (2, 4), (5, 3, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_second_gradients_are_slopes_of_the_first(daemon, name):
    f, sizes = CASES[name]
    leaves = [_tensor(i, *s) for i, s in enumerate(sizes)]
    weight = _tensor(9, *f(*leaves).shape).detach()
    second = torch.autograd.grad(_slope(f, leaves, weight), leaves, allow_unused=True)
    step = 1e-5
    for i, leaf in enumerate(leaves):
        got = np.zeros(leaf.shape) if second[i] is None else second[i].numpy()
        base = leaf.detach().numpy().copy()
        place = tuple(s // 2 for s in base.shape)
        sides = []
        for sign in (1, -1):
            moved = base.copy()
            moved[place] += sign * step
            others = list(leaves)
            others[i] = torch.tensor(moved).requires_grad_(True)
            sides.append(_slope(f, others, weight).item())
        assert got[place] == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-4, abs=1e-6)


def test_attention_in_blocks_is_its_composition(daemon):
    q, k, v = (_tensor(i, 2, 150, 8) for i in range(3))
    for causal in (False, True):
        mask = torch.ones(150, 150, dtype=torch.bool)
        results = []
        for options in (
            {"is_causal": causal},
            {"attn_mask": mask.tril() if causal else mask},
        ):
            out = F.scaled_dot_product_attention(q, k, v, **options)
            results.append([out, *torch.autograd.grad(out.square().sum(), [q, k, v])])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(
                a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11
            )


def test_logit_losses_have_their_slope_at_zero(daemon):
    x = torch.zeros(2, requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, torch.tensor([0.0, 1.0]), reduction="sum")
    assert torch.autograd.grad(loss, x)[0].tolist() == [0.5, -0.5]
    assert torch.autograd.grad(F.logsigmoid(x).sum(), x)[0].tolist() == [0.5, 0.5]


def test_a_query_that_sees_no_key_gets_zeros(daemon):
    q = _tensor(0, 1, 2, 4)
    mask = torch.tensor([[True, False], [False, False]])
    out = F.scaled_dot_product_attention(q, q, q, mask)
    assert out[0, 1].tolist() == [0.0] * 4
    assert np.isfinite(torch.autograd.grad(out.sum(), q)[0].numpy()).all()


def test_values_out_of_range_are_named(daemon):
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0])).item()
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(torch.zeros(1), torch.zeros(1), -torch.ones(1)).item()
    with pytest.raises(RuntimeError, match="at most 4"):
        log_probs = torch.zeros(4, 1, 3)
        F.ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([5]), torch.tensor([1])).item()
