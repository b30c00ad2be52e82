"""repr of tensors equals what PyTorch prints (tests/data/printing.json, recorded from it)."""

from __future__ import annotations

import json
from pathlib import Path

import gradwire as torch
import pytest

CASES = json.loads((Path(__file__).parents[1] / "data" / "printing.json").read_text())["cases"]


def make(case):
    values = [{"True": True, "False": False}.get(v) for v in case["values"]]
    if case["dtype"] != "bool":
        values = [float(v) if "." in v or "e" in v or "n" in v else int(v) for v in case["values"]]
    kind = getattr(torch, case["dtype"])
    made = torch.tensor(values, dtype=kind)
    return made, case["shape"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
@pytest.mark.parametrize("remote", [False, True], ids=["host", "remote"])
def test_text(daemon, case, remote):
    x, shape = make(case)
    if case["dtype"] == "bfloat16" and remote:
        pytest.skip("the daemon in numpy has no bfloat16")
    if remote:
        x = x.reshape(shape)
    else:
        x._host = x._host.reshape(shape)
        x._shape = tuple(shape)
    assert repr(x) == case["text"]
    if "leaf" in case:
        leaf = x if not remote else x.detach()
        assert repr(torch.nn.Parameter(leaf)) == case["parameter"]
        assert repr(leaf.requires_grad_()) == case["leaf"]


def test_grad_fn(daemon):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"


def test_format(daemon):
    x = torch.tensor(3.14159)
    assert f"{x:.2f}" == "3.14" and f"{x}" == "tensor(3.1416)" == str(x)
    assert f"{torch.tensor([1, 2])}" == "tensor([1, 2])"


def test_options(daemon):
    try:
        torch.set_printoptions(precision=2, threshold=4, edgeitems=1)
        assert repr(torch.arange(9).float() / 8 + 0.25) == "tensor([0.25,  ..., 1.25])"
    finally:
        torch.set_printoptions(profile="default")
    assert repr(torch.arange(3)) == "tensor([0, 1, 2])"
