"""The first program of every tutorial, as a library and as an unmodified script."""

from __future__ import annotations

import subprocess
import sys

import gradwire as torch

SCRIPT = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

x = torch.tensor(2.0, requires_grad=True)
y = x**2 + 3*x + 1
y.backward()
assert x.grad == 7
assert torch.nn is nn and nn.functional is F and torch.optim.SGD
print("grad", x.grad.item(), __name__)
"""


def test_gradient_of_a_polynomial():
    x = torch.tensor(2.0, requires_grad=True)
    y = x**2 + 3 * x + 1
    y.backward()
    assert x.grad == 7
    assert y.item() == 11


def test_unmodified_script(tmp_path, environment):
    # An environment without torch: a folder that hides it, first on the path.
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "-m", "gradwire", str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "grad 7.0 __main__\n"


def test_private_daemon(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import gradwire as torch\nprint((torch.ones(2, 2) @ torch.ones(2)).tolist())"
    )
    import os

    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
    run = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[2.0, 2.0]\n" and run.stderr == ""
