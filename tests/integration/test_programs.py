"""Random programs of tensor ops against what PyTorch made of them."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import gradwire as torch
import numpy as np
import pytest

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "reference"))

import programs  # noqa: E402

DATA = TESTS / "data"
FACTS = json.loads((DATA / "programs.json").read_text())["programs"]
SLICES = 20  # tests that share the programs


@pytest.mark.parametrize("part", range(SLICES))
def test_programs(part: int) -> None:
    tensors = arrays(DATA / "programs.safetensors")
    failures = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(part, len(FACTS), SLICES):
            program = FACTS[number]
            names = tensors[number]
            inputs = [
                (names[f"in{i}"], i in program["grad"])
                for i in range(sum(name.startswith("in") for name in names))
            ]
            want = {name: value for name, value in names.items() if not name.startswith("in")}
            if program["raises"]:
                want["raises"] = program["raises"]
            try:
                difference = programs.differences(
                    programs.run(torch, program["lines"], inputs), want
                )
            except Exception as error:
                difference = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
            if difference:
                failures.append(f"program {number}: {difference}")
    assert not failures, "\n".join(failures)


_arrays: dict[int, dict[str, np.ndarray]] = {}


def arrays(path: Path) -> dict[int, dict[str, np.ndarray]]:
    if not _arrays:
        sys.path.insert(0, str(TESTS / "reference" / "goldens"))
        from pack import NUMPY

        raw = path.read_bytes()
        head = 8 + int.from_bytes(raw[:8], "little")
        index = json.loads(raw[8:head])
        index.pop("__metadata__", None)
        for key, facts in index.items():
            begin, end = facts["data_offsets"]
            values = np.frombuffer(raw[head + begin : head + end], NUMPY[facts["dtype"]])
            number, _, name = key.partition("/")
            _arrays.setdefault(int(number), {})[name] = values.reshape(facts["shape"]).copy()
    return _arrays
