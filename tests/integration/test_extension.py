"""A pointwise op is one hunk: a patch adds a row, everything else is generated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCH = ROOT / "tests" / "extension" / "squareplus.patch"
GENERATED = {
    "clients/catalog.json",
    "clients/python/gradwire/_ops.py",
    "clients/python/gradwire/_rows.py",
}
SCRIPT = """
import math
import gradwire as torch

x = torch.tensor([-3.0, 0.0, 0.5], requires_grad=True)
y = torch.squareplus(x, b=2.0)
want = [(v + math.sqrt(v * v + 2)) / 2 for v in (-3.0, 0.0, 0.5)]
assert torch.allclose(y, torch.tensor(want)), y
y.sum().backward()
slope = [(1 + v / math.sqrt(v * v + 2)) / 2 for v in (-3.0, 0.0, 0.5)]
assert torch.allclose(x.grad, torch.tensor(slope)), x.grad
assert "smooth relu" in torch.squareplus.__doc__
z = torch.tensor([1.0])
z.squareplus_()
assert torch.allclose(z, torch.tensor([(1 + math.sqrt(5)) / 2]))
assert x.detach().double().squareplus().dtype is torch.float64
print("all good")
"""


@pytest.fixture(autouse=True)
def session() -> None:
    """These tests have a daemon of their own."""


def run(*command: str | Path, cwd: Path, **options: object) -> str:
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1500,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return str(done.stdout)


@pytest.mark.timeout(1800)
def test_one_hunk_adds_an_op(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    files = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    present = "\0".join(f for f in files if f and (ROOT / f).exists())
    run("cp", "--parents", "-t", tree, *present.split("\0"), cwd=ROOT)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]
    run(*git, "init", "-q", cwd=tree)
    run(*git, "add", "-A", cwd=tree)
    run(*git, "commit", "-qm", "before", cwd=tree)

    assert PATCH.read_text().count("\n@@ ") == 1, "the patch is one hunk"
    run("git", "apply", PATCH, cwd=tree)
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    run("cmake", "--preset", "release", "-DGRADWIRE_TESTS=OFF", cwd=tree, env=environment)
    run("ninja", "-C", "build", "gradwired", cwd=tree, env=environment)
    run(sys.executable, "clients/generate", "--daemon", "build/gradwired", cwd=tree)

    changed = {line[3:] for line in run("git", "status", "--porcelain", cwd=tree).splitlines()}
    assert changed <= GENERATED | {"engine/ops/rows_pointwise.cc"}, changed
    assert GENERATED <= changed

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "clients" / "python"),
        "GRADWIRED": str(tree / "build" / "gradwired"),
    }
    environment.pop("GRADWIRE_ADDRESS", None)
    assert "all good" in run(sys.executable, script, cwd=tmp_path, env=environment)
