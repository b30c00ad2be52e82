"""Every sentence of the edge semantics against what PyTorch gave (tests/data/semantics.json)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gradwire
import pytest
from semantics import CASES, functional, gradients, host, plain, tensors, training

DATA = json.loads((Path(__file__).parents[1] / "data" / "semantics.json").read_text())
MODULES = (functional, gradients, host, tensors, training)
# Rounding of float32 results that PyTorch sums in another order.
RELATIVE, ABSOLUTE = 2e-6, 1e-6


def differ(expected: Any, found: Any, where: str = "") -> str:
    """Where two results differ, or ""."""
    if isinstance(expected, float) and isinstance(found, (int, float)):
        same = expected == found or (math.isnan(expected) and math.isnan(found))
        near = math.isclose(expected, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return "" if same or near else f"{where}: {found} instead of {expected}"
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return next((d for i, (e, f) in pairs if (d := differ(e, f, f"{where}[{i}]"))), "")
    if isinstance(expected, dict) and isinstance(found, dict) and list(expected) == list(found):
        keys = ((expected[k], found[k], f"{where}.{k}") for k in expected)
        return next((d for e, f, at in keys if (d := differ(e, f, at))), "")
    same = type(expected) is type(found) and expected == found
    return "" if same else f"{where}: {found!r} instead of {expected!r}"


@pytest.mark.parametrize("name", CASES)
def test_semantics(name: str) -> None:
    sentence, function = CASES[name]
    found = plain(function(gradwire))
    assert not differ(DATA["results"][name], found), sentence


def test_every_case_is_recorded() -> None:
    assert list(DATA["results"]) == list(CASES)
    assert {int(name[:2]) for name in CASES} == set(range(1, 27))
