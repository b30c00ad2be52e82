"""Optimizers against a daemon: state dicts, groups, gradients clipped."""

from __future__ import annotations

import gradwire as torch
import pytest
from gradwire import nn

KINDS = {
    "ASGD": {"t0": 1},
    "Adadelta": {"weight_decay": 0.1},
    "Adafactor": {},
    "Adagrad": {"initial_accumulator_value": 0.5, "lr_decay": 0.1},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "Adamax": {},
    "LBFGS": {"max_iter": 3, "line_search_fn": "strong_wolfe"},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "SGD": {"momentum": 0.9},
}
STATE = {
    "ASGD": {"step", "eta", "mu", "ax"},
    "Adadelta": {"step", "square_avg", "acc_delta"},
    "Adagrad": {"step", "sum"},
    "Adam": {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    "AdamW": {"step", "exp_avg", "exp_avg_sq"},
    "Adamax": {"step", "exp_avg", "exp_inf"},
    "NAdam": {"step", "mu_product", "exp_avg", "exp_avg_sq"},
    "RAdam": {"step", "exp_avg", "exp_avg_sq"},
    "RMSprop": {"step", "square_avg", "momentum_buffer", "grad_avg"},
    "Rprop": {"step", "prev", "step_size"},
    "SGD": {"momentum_buffer"},
}


def made(kind):
    torch.manual_seed(1)
    params = [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]
    return params, getattr(torch.optim, kind)(params, lr=0.05, **KINDS[kind])


def advance(params, optimizer, steps):
    def closure():
        optimizer.zero_grad()
        loss = sum(((p - 0.5) ** 4).sum() + (p**2).sum() for p in params)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_state_goes_on_alike(kind):
    params, optimizer = made(kind)
    advance(params, optimizer, 3)
    saved = optimizer.state_dict()
    if kind in STATE:
        assert all(set(entry) == STATE[kind] for entry in saved["state"].values())
    copies = [nn.Parameter(p.detach().clone()) for p in params]
    other = getattr(torch.optim, kind)(copies)
    other.load_state_dict(saved)
    advance(params, optimizer, 2)
    advance(copies, other, 2)
    for a, b in zip(params, copies, strict=True):
        assert a.tolist() == b.tolist()


def test_adafactor_state_fits_the_shape():
    params, optimizer = made("Adafactor")
    advance(params, optimizer, 1)
    first, second = optimizer.state_dict()["state"].values()
    assert {k: tuple(v.shape) for k, v in first.items()} == {
        "step": (),
        "row_var": (3, 1),
        "col_var": (1, 4),
    }
    assert {k: tuple(v.shape) for k, v in second.items()} == {
        "step": (),
        "variance": (5,),
    }


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"LBFGS"}))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dtypes_and_layouts(kind, dtype):
    torch.manual_seed(2)
    start, grad = torch.randn(4, 6), torch.randn(4, 6)
    results = []
    for arranged in (lambda x: x.clone(), lambda x: x.t().contiguous().t()):
        param = nn.Parameter(arranged(start.to(dtype)))
        optimizer = getattr(torch.optim, kind)([param], lr=0.05, **KINDS[kind])
        for _ in range(3):
            param.grad = grad.to(dtype)
            optimizer.step()
        results.append(param.detach().float())
    assert (results[0] - results[1]).abs().max().item() < 1e-6
    # RMSprop's first steps, centered and with momentum, are the longest: about 47 lr in all.
    assert 0 < (results[0] - start).abs().max().item() < 50 * 0.05
    empty = nn.Parameter(torch.zeros(0, 3, dtype=dtype))
    empty.grad = torch.zeros(0, 3, dtype=dtype)
    getattr(torch.optim, kind)([empty], **KINDS[kind]).step()
    torch.synchronize()


def test_clip_grad_norm():
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    norm = nn.utils.clip_grad_norm_([a, b], 1.0)
    assert norm.item() == 5.0
    assert b.grad.item() == pytest.approx(4.0 / (5.0 + 1e-6), rel=1e-6)
    norm = nn.utils.clip_grad_norm_([a, b], 100.0)
    assert norm.item() == pytest.approx(1.0, rel=1e-5)
    assert a.grad.tolist()[0] == pytest.approx(3.0 / (5.0 + 1e-6), rel=1e-6)
    a.grad, b.grad = torch.tensor([3.0, -7.0]), torch.tensor([4.0])
    assert nn.utils.clip_grad_norm_([a, b], 1e9, norm_type=float("inf")).item() == 7.0
    assert nn.utils.clip_grad_norm_([a, b], 1e9, norm_type=1.0).item() == 14.0
    b.grad = torch.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([a, b], 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    a = nn.Parameter(torch.zeros(3))
    a.grad = torch.tensor([-3.0, 0.5, 9.0])
    nn.utils.clip_grad_value_(a, 1.0)
    assert a.grad.tolist() == [-1.0, 0.5, 1.0]
