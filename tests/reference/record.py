"""What the record_*.py scripts share: runs in three precisions, bounds, files.

Needs torch and safetensors; the tests that read the results need neither.
"""

import json
from pathlib import Path

import safetensors.torch
import torch

DATA = Path(__file__).parent.parent / "data"


def run_all(train):
    """The losses of `train(dtype)` in float64, and in float32 on 1 and on 2 threads."""
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    runs = {"float64": train(torch.float64), "float32_1_thread": train(torch.float32)}
    torch.set_num_threads(2)
    runs["float32_2_threads"] = train(torch.float32)
    return runs


def bounds(runs):
    """Per value of a run, how far from float64 a float32 run may be.

    Three times the larger distance that PyTorch's own float32 runs have reached by then, relative
    to the value, plus 1e-7. "By then": a single value of theirs may be close by chance, and an
    honest run must not fail on its luck.
    """
    reached, result = 0.0, []
    columns = (runs["float64"], runs["float32_1_thread"], runs["float32_2_threads"])
    for exact, one, two in zip(*columns, strict=True):
        reached = max(reached, abs(one - exact) / abs(exact), abs(two - exact) / abs(exact))
        result.append((3 * reached + 1e-7) * abs(exact))
    return result


def write(name, facts, tensors):
    facts = {"torch": torch.__version__.split("+")[0], **facts}
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items())
    (DATA / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")
    tensors = {key: tensor.detach().clone().contiguous() for key, tensor in tensors.items()}
    path = DATA / f"{name}.safetensors"
    safetensors.torch.save_file(tensors, path)
    path.chmod(0o644)
