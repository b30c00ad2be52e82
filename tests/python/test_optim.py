"""Optimizers: what is sent and when; schedulers; loaders; files; the name torch."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import gradwire as torch
import numpy as np
import pytest
from gradwire import nn
from gradwire.utils import data

GOLDENS = Path(__file__).parents[1] / "data" / "goldens" / "schedulers.json"


def sent(daemon, *names):
    torch.ones(1).tolist()
    return [c for c in daemon.commands if c[0] in names]


def test_a_step_is_one_command(daemon):
    w, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
    optimizer.zero_grad()
    optimizer.step()
    optimizer.step()
    made = sent(daemon, "optim.SGD")[0]
    assert made[2] == [w._id, b._id] and made[3] == [optimizer._id]
    assert made[4][:2] == [0.1, 0.9]
    steps = sent(daemon, "session.optimizer_step")
    assert [c[2] for c in steps] == [[optimizer._id]] * 2
    assert sent(daemon, "session.optimizer_set_group") == []


def test_changed_options_are_sent_once(daemon):
    optimizer = torch.optim.Adam([nn.Parameter(torch.ones(2))], lr=0.1)
    optimizer.add_param_group({"params": nn.Parameter(torch.ones(3)), "lr": 0.5})
    optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.25
    optimizer.step()
    optimizer.step()
    added = sent(daemon, "session.optimizer_add_group")[0]
    assert added[4][0][:3] == [0.5, 0.9, 0.999]
    changed = sent(daemon, "session.optimizer_set_group")
    assert len(changed) == 1 and changed[0][4][0] == 1 and changed[0][4][1][0] == 0.25


def test_arguments_are_checked(daemon):
    w = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        torch.optim.SGD([w], lr=-1)
    with pytest.raises(TypeError, match="iterable"):
        torch.optim.SGD(w)
    with pytest.raises(ValueError, match="non-leaf"):
        torch.optim.SGD([w * 2])
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.SGD([{"params": [w]}, {"params": [w]}])
    with pytest.raises(ValueError, match="Nesterov"):
        torch.optim.SGD([w], nesterov=True)


SCHEDULERS = ["StepLR", "CosineAnnealingLR", "LambdaLR", "MultiStepLR", "ExponentialLR"]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(daemon, name):
    if not GOLDENS.exists():
        pytest.skip("no recorded schedules")
    cases = json.loads(GOLDENS.read_text())["cases"]
    case = next(c for c in cases if c["scheduler"] == name)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=case["base_lr"])
    kinds = torch.optim.lr_scheduler
    if name == "LambdaLR":
        scheduler = kinds.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
    else:
        scheduler = getattr(kinds, name)(optimizer, **case["kwargs"])
    for want in case["lr"]:
        assert optimizer.param_groups[0]["lr"] == pytest.approx(want, rel=1e-6, abs=1e-12)
        optimizer.step()
        scheduler.step()


def test_scheduler_before_optimizer_warns(daemon):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


def test_loader_of_tensors(daemon):
    x, y = torch.arange(10), torch.from_numpy(np.arange(10) * 2.0)
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 10 and [t.item() for t in dataset[3]] == [3, 6]
    loader = data.DataLoader(dataset, batch_size=4)
    assert len(loader) == 3
    assert [b[0].tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(data.DataLoader(dataset, 4, drop_last=True)) == 2
    torch.manual_seed(3)
    shuffled = data.DataLoader(dataset, 4, shuffle=True)
    first = [i for b in shuffled for i in b[0].tolist()]
    assert sorted(first) == list(range(10)) and first != sorted(first)
    assert [i for b in shuffled for i in b[0].tolist()] != first
    torch.manual_seed(3)
    assert [i for b in shuffled for i in b[0].tolist()] == first
    seeded = [
        [i for b in data.DataLoader(dataset, 4, shuffle=True, generator=g) for i in b[0].tolist()]
        for g in (torch.Generator().manual_seed(1), torch.Generator().manual_seed(1))
    ]
    assert seeded[0] == seeded[1]


class Squares(data.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i >= 7:
            raise IndexError
        return {"x": np.full(2, i, np.float32), "y": i * i, "name": str(i)}


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_collates(daemon, workers):
    batches = list(data.DataLoader(Squares(), batch_size=3, num_workers=workers))
    assert [b["y"].tolist() for b in batches] == [[0, 1, 4], [9, 16, 25], [36]]
    assert batches[0]["x"].shape == (3, 2) and batches[0]["x"].dtype is torch.float32
    assert batches[0]["name"] == ["0", "1", "2"]
    assert not daemon.commands  # nothing was needed in the daemon
    own = data.DataLoader(Squares(), batch_size=2, collate_fn=lambda b: len(b))
    assert list(own) == [2, 2, 2, 1]


def test_splits(daemon):
    parts = data.random_split(Squares(), [5, 2], torch.Generator().manual_seed(0))
    assert sorted(i for p in parts for i in p.indices) == list(range(7))
    assert [len(p) for p in data.random_split(Squares(), [0.5, 0.5])] == [4, 3]
    assert data.Subset(Squares(), [2, 4])[1]["y"] == 16
    assert len(Squares() + Squares()) == 14
    with pytest.raises(ValueError):
        data.random_split(Squares(), [1, 2])


class Numbers(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))


def test_iterable(daemon):
    batches = data.DataLoader(Numbers(), batch_size=2)
    assert [b.tolist() for b in batches] == [[0, 1], [2, 3], [4]]


def test_save_and_load(daemon, tmp_path):
    from safetensors.numpy import load_file

    state = {
        "a": torch.arange(3) + 0,
        "b.c": torch.tensor([[1.5]]),
        "flag": torch.tensor([True, False]),
        "half": torch.tensor([0.1, 2.0], dtype=torch.bfloat16),
        "empty": torch.zeros(0, 2),
    }
    path = tmp_path / "state.safetensors"
    torch.save(state, path)
    back = torch.load(path)
    assert list(back) != [] and {k: v.tolist() for k, v in back.items()} == {
        k: v.tolist() for k, v in state.items()
    }
    assert back["half"].dtype is torch.bfloat16
    del state["half"]
    torch.save(state, path)
    theirs = load_file(path)
    assert theirs["a"].tolist() == [0, 1, 2] and theirs["b.c"].tolist() == [[1.5]]


@pytest.mark.parametrize("padding", [128, 640])
def test_header_length_like_a_pickle(daemon, padding):
    # 128 and 640 are little-endian 80 00 and 80 02: a pickle begins with 80 02.
    head = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(padding)
    file = padding.to_bytes(8, "little") + head + b"\0\0\x80\x3f"
    assert torch.load(io.BytesIO(file))["a"].tolist() == [1.0]


def test_save_nested(daemon):
    file = io.BytesIO()
    value = {"epoch": 3, "lr": 0.1, "best": float("inf"), "model": {"w": torch.ones(2)},
             "list": [1, (torch.zeros(1), None)], "kind": torch.float64, 7: "seven"}  # fmt: skip
    torch.save(value, file)
    back = torch.load(io.BytesIO(file.getvalue()))
    assert back["epoch"] == 3 and back["lr"] == 0.1 and back["best"] == float("inf")
    assert back["model"]["w"].tolist() == [1, 1] and back["list"][1][0].tolist() == [0.0]
    assert back["list"][1][1] is None and back["kind"] is torch.float64 and back[7] == "seven"
    with pytest.raises(TypeError, match="cannot write a object"):
        torch.save({"x": object()}, io.BytesIO())


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x02.", b"PK\x03\x04rest", b"\xff" * 16, b"\x02\0\0\0\0\0\0\0[]",
     (30).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[4'],
)  # fmt: skip
def test_load_refuses(content):
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(content))


def test_load_refuses_bad_offsets():
    for entry in (
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 99]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
    ):
        head = json.dumps({"a": entry}).encode()
        raw = len(head).to_bytes(8, "little") + head + b"\0" * 8
        with pytest.raises(RuntimeError, match="tensor 'a'"):
            torch.load(io.BytesIO(raw))


def test_install(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(
        "import torch, sys\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        "from torch.utils.data import DataLoader\nfrom torch.optim.lr_scheduler import StepLR\n"
        "import torch.optim as optim, torch.autograd, torch.nn.utils\nimport gradwire\n"
        "assert torch is gradwire and F is gradwire.nn.functional and optim is gradwire.optim\n"
        "assert torch.__spec__.name == 'gradwire' and nn.Linear is gradwire.nn.Linear\n"
        "print(sys.argv[1:], __name__, torch.tensor([1.0]))\n"
        "try:\n    import torch.missing\nexcept ImportError as e:\n    print(e)\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "gradwire", str(script), "--x", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "['--x', '1'] __main__ tensor([1.])",
        "No module named 'torch.missing'",
    ]
