"""Random programs of tensor ops against what PyTorch made of them."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import gradwire as torch
import numpy as np
import pytest
from gradwire import serialization

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
            want = {
                name: value
                for name, value in names.items()
                if not name.startswith("in")
            }
            if program["raises"]:
                want["raises"] = program["raises"]
            try:
                difference = programs.differences(
                    programs.run(torch, program["lines"], inputs), want
                )
            except Exception as error:
                difference = (
                    f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
                )
            if difference:
                failures.append(f"program {number}: {difference}")
    assert not failures, "\n".join(failures)


_arrays: dict[int, dict[str, np.ndarray]] = {}


def arrays(path: Path) -> dict[int, dict[str, np.ndarray]]:
    if not _arrays:
        for key, value in serialization.read_arrays(path).items():
            number, _, name = key.partition("/")
            _arrays.setdefault(int(number), {})[name] = value
    return _arrays
