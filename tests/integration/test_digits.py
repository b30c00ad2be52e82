"""The digits example: the recorded losses, and its accuracy for three seeds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gradwire
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "clients" / "python" / "examples"
DATA = ROOT / "tests" / "data"
FACTS = json.loads((DATA / "digits.json").read_text())


@pytest.fixture
def digits(monkeypatch):
    """The example as a module, its torch ours."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    gradwire.install()
    import digits

    return digits


def test_losses_match(digits):
    torch = gradwire
    model = digits.make_network(dropout=0.0)
    model.load_state_dict(torch.load(DATA / "digits.safetensors"))
    images, labels = digits.load_digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=FACTS["lr"])
    losses = []
    for batch in FACTS["batches"]:
        loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    for step, (loss, want, bound) in enumerate(
        zip(losses, FACTS["losses"]["float64"], FACTS["bounds"], strict=True)
    ):
        assert abs(loss.item() - want) <= bound, f"step {step}"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_accuracy(seed, tmp_path, environment):
    checkpoint = tmp_path / "digits.safetensors"
    run = subprocess.run(
        [
            sys.executable, "-m", "gradwire", str(EXAMPLES / "digits.py"), "--seed", str(seed),
            "--checkpoint", str(checkpoint),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    accuracy = float(run.stdout.split("test accuracy: ")[1].split("%")[0])
    assert accuracy >= 97.0
    state = gradwire.load(checkpoint)
    assert state["0.weight"].shape == (32, 1, 3, 3)
