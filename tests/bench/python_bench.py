"""Speed of the Python client: ops, reads, transfers, and steps of the digits example.

    python tests/bench/python_bench.py [--steps N]

Connects as any client does ($GRADWIRE_ADDRESS, else a private daemon). Where PyTorch can be
imported in $TORCH_PYTHON, or here, the digits step is timed there too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "clients" / "python" / "examples"


def microseconds(run, count: int, rounds: int = 5) -> float:
    """The median time of one call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times) * 1e6


def report(name: str, value: str) -> None:
    print(f"{name:<44} {value}", flush=True)


def ops(torch) -> None:
    """Ops per second of one client thread, the daemon keeping up."""
    x, y = torch.ones(16), torch.ones(16)
    for name, run in {
        "add of two tensors": lambda: x + y,
        "mul by a number": lambda: x * 2.0,
        "in-place add": lambda: x.add_(y),
        "sum along a dim": lambda: x.sum(0),
        "select": lambda: x[3],
    }.items():
        count = 5000

        def batch(run=run, count=count):
            for _ in range(count):
                run()
            torch.synchronize()

        batch()
        each = microseconds(batch, 1, 3) / count
        report(f"ops: {name}", f"{1e3 / each:8.1f} k/s  ({each:.2f} us)")


def reads(torch) -> None:
    x = torch.ones(1) + 0
    times = []
    for _ in range(1000):
        start = time.perf_counter()
        x.item()
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    report("read of a number, p50 / p99", f"{times[500]:8.0f} / {times[990]:.0f} us")


def transfers(torch) -> None:
    import numpy as np

    values = np.random.default_rng(0).standard_normal(16 << 20).astype(np.float32)
    up, down = [], []
    for _ in range(4):
        start = time.perf_counter()
        x = torch.from_numpy(values) + 0
        torch.synchronize()
        middle = time.perf_counter()
        back = x.numpy()
        end = time.perf_counter()
        assert back[-1] == values[-1]
        up.append(values.nbytes / (middle - start) / 1e9)
        down.append(values.nbytes / (end - middle) / 1e9)
    report("upload of 64 MB", f"{statistics.median(up):8.2f} GB/s")
    report("download of 64 MB", f"{statistics.median(down):8.2f} GB/s")


def digits_steps(torch, steps: int, synchronize) -> float:
    """Median seconds of a training step of the digits example, batch 64."""
    sys.path.insert(0, str(EXAMPLES))
    import digits

    images, labels = digits.load_digits()
    images, labels = images[:64] + 0, labels[:64] + 0
    model = digits.make_network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(10):
        step()
    synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        synchronize()
        times.append((time.perf_counter() - start) / steps)
    return statistics.median(times)


def numbers(found, prefix: str = "") -> dict[str, float]:
    """The numbers of a nested dict, by path."""
    made: dict[str, float] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            made.update(numbers(value, f"{prefix}{key}."))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            made[prefix + key] = value
    return made


def digits(gradwire, steps: int) -> None:
    gradwire.install()
    digits_steps(gradwire, 1, gradwire.synchronize)  # compiles, warms up
    before = numbers(gradwire.stats())
    each = digits_steps(gradwire, steps, gradwire.synchronize)
    after = numbers(gradwire.stats())
    report("digits step", f"{each * 1e3:8.2f} ms")
    for name in after:
        if name.rpartition(".")[2] in ("tasks", "kernels", "launches"):
            count = (after[name] - before.get(name, 0)) / (5 * steps + 10)
            report(f"digits: {name} per step", f"{count:8.1f}")
    theirs = with_torch(steps)
    if theirs is None:
        report("digits step of PyTorch", "       - (not importable; set TORCH_PYTHON)")
    else:
        report("digits step of PyTorch", f"{theirs * 1e3:8.2f} ms")
        report("PyTorch's time / ours", f"{theirs / each:8.2f}")


def with_torch(steps: int) -> float | None:
    """The same step by PyTorch in a process of its own, or None."""
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    run = subprocess.run(
        [python, __file__, "--torch", "--steps", str(steps)], capture_output=True, text=True
    )
    return float(run.stdout) if run.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        import torch

        print(digits_steps(torch, options.steps, lambda: None))
        return 0
    import gradwire

    gradwire.connect()
    ops(gradwire)
    reads(gradwire)
    transfers(gradwire)
    digits(gradwire, options.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
