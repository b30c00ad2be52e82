"""Every op family at 1 k, 1 M and 10 M elements against PyTorch, as a table of ratios.

    TORCH_PYTHON=... python tests/bench/families_bench.py [--sizes N ...]

Times are medians of several rounds, the queue drained in each: microseconds of one op through the
daemon, of one in PyTorch on the same number of threads, and the second over the first.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time

# By family: how many elements a size stands for is the largest operand's.
FORMS = {
    "pointwise: x + y": "x + y",
    "pointwise: exp": "torch.exp(x)",
    "pointwise chain: gelu(x * y) + x": "F.gelu(x * y) + x",
    "reduce: sum": "x.sum()",
    "reduce: mean of squares": "(x * x).mean()",
    "reduce: amax of rows": "m.amax(1)",
    "scan: cumsum of rows": "m.cumsum(1)",
    "sort: rows": "m.sort(1)",
    "softmax: rows": "torch.softmax(m, 1)",
    "layer norm: rows": "F.layer_norm(m, (m.shape[1],))",
    "view and copy: transpose": "m.t().contiguous()",
    "join: cat": "torch.cat([m, m])",
    "index: rows": "m[i]",
    "index: gather": "m.gather(0, g)",
    "matmul": "m.t() @ m",
    "cast: to float64": "x.double()",
    "random: randn": "torch.randn(n)",
    "autograd: backward of tanh(x * y).sum()": "(lx * y).tanh().sum().backward()",
}


def measure(module: str, size: int) -> dict[str, float]:
    """Microseconds of each form."""
    torch = importlib.import_module(module)
    functional = importlib.import_module(module + ".nn.functional")
    columns = 100
    rows = size // columns
    synchronize = getattr(torch, "synchronize", lambda: None)
    names = {"torch": torch, "F": functional, "n": size}
    names["x"], names["y"] = torch.rand(size), torch.rand(size)
    names["m"] = torch.rand(rows, columns)
    names["i"] = torch.randint(0, rows, (rows,))
    names["g"] = torch.randint(0, rows, (rows, columns))
    names["lx"] = torch.rand(size).requires_grad_(True)
    result = {}
    for name, form in FORMS.items():
        code = compile(form, name, "eval")
        rounds, count = [], max(1, min(200, 2_000_000 // size))
        for turn in range(6):
            synchronize()
            start = time.perf_counter()
            for _ in range(count):
                eval(code, names)
            synchronize()
            if turn:
                rounds.append((time.perf_counter() - start) / count)
        names["lx"].grad = None
        result[name] = statistics.median(rounds) * 1e6
    return result


def elsewhere(python: str, size: int) -> dict[str, float] | None:
    """The same with PyTorch, in a process of its own."""
    run = subprocess.run(
        [python, __file__, "--only", "torch", "--sizes", str(size)],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        print(f"no PyTorch in {python}: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 1_000_000, 10_000_000])
    parser.add_argument("--only", help="print the times of this module as JSON")
    options = parser.parse_args()
    if options.only:
        torch = importlib.import_module(options.only)
        if hasattr(torch, "set_num_threads"):
            torch.set_num_threads(os.cpu_count())
        print(json.dumps(measure(options.only, options.sizes[0])))
        return
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    print("| op | elements | us | PyTorch, us | ratio |\n|---|---|---|---|---|")
    for size in options.sizes:
        other = elsewhere(python, size)
        for name, ours in measure("gradwire", size).items():
            theirs = other[name] if other else None
            ratio = f"{theirs:.1f} | {theirs / ours:.2f}" if theirs else "- | -"
            print(f"| {name} | {size:,} | {ours:.1f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
