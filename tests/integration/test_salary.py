"""Linear regression of salaries: the recorded losses, and the fit for three seeds."""

from __future__ import annotations

import json
from pathlib import Path

import gradwire as torch
import gradwire.nn as nn
import pytest

DATA = Path(__file__).parents[1] / "data"
FACTS = json.loads((DATA / "salary.json").read_text())


def data():
    inputs = torch.tensor([FACTS["ages"], FACTS["years"]], dtype=torch.float32).T.contiguous()
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    targets = torch.tensor(FACTS["salaries"], dtype=torch.float32).unsqueeze(1) / 100
    return inputs, targets


def train(model, inputs, targets):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=FACTS["lr"])
    losses = []
    for _ in range(FACTS["epochs"]):
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


def test_losses_match():
    model = nn.Linear(2, 1)
    model.load_state_dict(torch.load(DATA / "salary.safetensors"))
    losses = train(model, *data())
    for step, (got, want, bound) in enumerate(
        zip(losses, FACTS["losses"]["float64"], FACTS["bounds"], strict=True)
    ):
        assert abs(got - want) <= bound, f"step {step}"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_predictions(seed):
    torch.manual_seed(seed)
    inputs, targets = data()
    model = nn.Linear(2, 1)
    losses = train(model, inputs, targets)
    assert losses[-1] < losses[0]
    with torch.no_grad():
        off = (model(inputs) * 100 - targets * 100).abs().max().item()
    assert off <= 12
