"""The faults of autograd side by side, as users read them: tests/data/faults.txt, for review.

Run this file as a script to write that file anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradwire as torch

EXPECTED = Path(__file__).parents[1] / "data" / "faults.txt"


def leaf() -> Any:
    return torch.tensor([1.0, 2.0], requires_grad=True)


def second_backward() -> None:
    loss = (leaf() ** 3).sum()
    loss.backward()
    loss.backward()


def saved_output_changed() -> None:
    y = leaf().exp()
    y.add_(1)
    y.sum().backward()


def saved_input_changed() -> None:
    h = leaf() * 3
    y = h * h
    h.mul_(2)
    y.sum().backward()


def saved_matrix_changed() -> None:
    w = torch.ones(2, 2) * leaf()
    y = w @ w
    w[0].zero_()
    y.sum().backward()


def leaf_in_place() -> None:
    leaf().add_(1)


def view_of_a_leaf_in_place() -> None:
    leaf()[0].mul_(2)


def expanded_in_place() -> None:
    torch.ones(1).expand(3).add_(1)


def vector_without_cotangent() -> None:
    (leaf() * 2).backward()


def constant_backward() -> None:
    torch.ones(2).sum().backward()


def cotangent_of_another_shape() -> None:
    (leaf() * 2).backward(torch.ones(3))


def unused_input() -> None:
    torch.autograd.grad((leaf() * 2).sum(), leaf())


def nan_gradient() -> None:
    with torch.autograd.detect_anomaly():
        (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


def inference_tensor_saved() -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    (leaf() * made).sum().backward()


def integer_requires_grad() -> None:
    torch.ones(2).long().requires_grad_()


FAULTS: list[Callable[[], None]] = [
    second_backward,
    saved_output_changed,
    saved_input_changed,
    saved_matrix_changed,
    leaf_in_place,
    view_of_a_leaf_in_place,
    expanded_in_place,
    vector_without_cotangent,
    constant_backward,
    cotangent_of_another_shape,
    unused_input,
    nan_gradient,
    inference_tensor_saved,
    integer_requires_grad,
]


def message(fault: Callable[[], None]) -> str:
    try:
        fault()
        torch.ones(1).item()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        # The site as the file's name alone: the working directory is the caller's matter.
        text = re.sub(r"\S*test_faults\.py:\d+", "test_faults.py:N", text)
        return text
    return "no error"


def report() -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [f"--- {f.__name__.replace('_', ' ')}\n{message(f)}\n" for f in FAULTS]
    return "\n".join(parts)


def test_messages_are_as_reviewed() -> None:
    assert report() == EXPECTED.read_text()


def test_each_message_names_the_users_line() -> None:
    for part in report().split("--- ")[1:]:
        name = part.partition("\n")[0].replace(" ", "_")
        assert "no error" not in part
        assert f"test_faults.py:N in {name}" in part, part


if __name__ == "__main__":
    EXPECTED.write_text(report())
    sys.stdout.write(report())
