"""All forms of x[key], x[key] = value and x[key] op= value against numpy, with gradients."""

from __future__ import annotations

import random
from typing import Any

import gradwire as torch
import numpy as np
import pytest


def random_key(r: random.Random, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Ints, slices, None, one Ellipsis, bool masks, index arrays and lists, in any order."""
    key: list[Any] = []
    dim = 0
    ellipsis = False
    for _ in range(r.choice([1, 1, 2, 3, 4])):
        left = sizes[dim:]
        if not left or ellipsis and len(left) < 2:
            break
        size = left[0]
        kind = r.choice(["int", "slice", "slice", "none", "ellipsis", "mask", "list", "array"])
        if kind == "none":
            key.append(None)
            continue
        if kind == "ellipsis":
            if not ellipsis:
                # What follows must fit into the last dims: nothing but slices may.
                key.append(Ellipsis)
                ellipsis = True
                dim = len(sizes) - 1
            continue
        if kind == "mask":
            shape = left[: r.choice([1, 2])]
            key.append(np.array([r.random() < 0.5 for _ in range(np.prod(shape))]).reshape(shape))
            dim += len(shape)
            continue
        dim += 1
        if kind == "slice":
            bounds = [r.choice([None, r.randrange(-size - 1, size + 2)]) for _ in range(2)]
            key.append(slice(*bounds, r.choice([None, 1, 2])))
        elif kind == "int":
            key.append(r.randrange(-size, size))
        elif kind == "list":
            key.append([r.randrange(-size, size) for _ in range(2)])
        else:
            shape = r.choice([(2,), (1,), (2, 2), (2, 1)])
            values = [r.randrange(-size, size) for _ in range(np.prod(shape))]
            key.append(np.array(values).reshape(shape))
    return tuple(key)


def is_array(item: Any) -> bool:
    return isinstance(item, (list, np.ndarray))


def in_two_steps(x: np.ndarray, key: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The view by the plain items, and the key of arrays that is left: an int is no array, which
    numpy takes it for when arrays stand beside it."""
    taken = sum(
        np.asarray(k).ndim if is_array(k) and np.asarray(k).dtype == bool else 1
        for k in key
        if k is not None and k is not Ellipsis
    )
    plain: list[Any] = []
    arrays: list[Any] = []
    for item in key:
        if item is Ellipsis:
            plain += [slice(None)] * (x.ndim - taken)
            arrays += [slice(None)] * (x.ndim - taken)
        elif is_array(item):
            array = np.asarray(item)
            plain += [slice(None)] * (array.ndim if array.dtype == bool else 1)
            arrays.append(array)
        else:
            plain.append(item)
            if not isinstance(item, int):
                arrays.append(slice(None))
    return x[(*plain, Ellipsis)], tuple(arrays)


def cases() -> list[tuple[tuple[int, ...], tuple[Any, ...]]]:
    r = random.Random(7)
    made = []
    while len(made) < 120:
        sizes = tuple(r.choice([1, 2, 3, 4]) for _ in range(r.choice([1, 2, 3, 4])))
        key = random_key(r, sizes)
        try:
            view, rest = in_two_steps(np.zeros(sizes), key)
            view[rest]
        except IndexError:
            continue  # masks and arrays of counts that do not go together
        if key:
            made.append((sizes, key))
    return made


CASES = cases()
NAMES = [f"{i}" for i in range(len(CASES))]


def key_of(key: tuple[Any, ...], tensors: bool) -> Any:
    made = tuple(torch.tensor(k) if tensors and is_array(k) else k for k in key)
    return made[0] if len(made) == 1 else made


def numbers(sizes: tuple[int, ...], start: float = 1) -> np.ndarray:
    return np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes) + np.float32(start)


@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(("sizes", "key"), CASES, ids=NAMES)
def test_read_and_its_gradient(sizes, key, tensors):
    x = numbers(sizes)
    view, rest = in_two_steps(x, key)
    want = view[rest]
    leaf = torch.tensor(x, requires_grad=True)
    got = leaf[key_of(key, tensors)]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.detach().numpy(), want)
    weight = numbers(want.shape)
    (got * torch.tensor(weight)).sum().backward()
    gradient = np.zeros_like(x)
    np.add.at(in_two_steps(gradient, key)[0], rest, weight)
    np.testing.assert_array_equal(leaf.grad.numpy(), gradient)


@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(("sizes", "key"), CASES, ids=NAMES)
def test_assignment_and_its_gradients(sizes, key, tensors):
    x = numbers(sizes)
    view, rest = in_two_steps(x, key)
    shape = view[rest].shape
    for value in (np.float32(-1), numbers(shape, 100), numbers(shape[-1:], 100)):
        leaf = torch.tensor(x, requires_grad=True)
        given = torch.tensor(value, requires_grad=True)
        y = leaf * 2
        y[key_of(key, tensors)] = given
        want = x * 2
        in_two_steps(want, key)[0][rest] = value
        np.testing.assert_array_equal(y.detach().numpy(), want)
        weight = numbers(sizes)
        (y * torch.tensor(weight)).sum().backward()
        gradient = weight * 2
        in_two_steps(gradient, key)[0][rest] = 0
        np.testing.assert_array_equal(leaf.grad.numpy(), gradient)
        of_value = in_two_steps(weight, key)[0][rest]
        while of_value.ndim > value.ndim:
            of_value = of_value.sum(0)
        np.testing.assert_allclose(given.grad.numpy(), of_value)


@pytest.mark.parametrize(("sizes", "key"), CASES, ids=NAMES)
def test_operators(sizes, key):
    x = numbers(sizes)
    y, want = torch.tensor(x) * 1, x.copy()
    mine = key_of(key, False)
    y[mine] += 10
    y[mine] *= 3
    y[mine] -= 1
    y[mine] /= 2
    for step in (
        lambda part: part + 10,
        lambda part: part * 3,
        lambda part: part - 1,
        lambda part: part / np.float32(2),
    ):
        view, rest = in_two_steps(want, key)
        view[rest] = step(view[rest])  # once, however often an element is named
    np.testing.assert_array_equal(y.numpy(), want)


def test_bools_and_tensors_without_dims():
    x = torch.arange(12.0).reshape(3, 4) * 1
    assert x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)
    assert x[torch.tensor(True)].shape == (1, 3, 4)
    assert x[torch.tensor(1)].tolist() == [4, 5, 6, 7]
    # An int, whatever carries it, is no index array: the result's dims stay where they are.
    assert x[torch.tensor(1), [0, 2]].tolist() == [4, 6]
    assert x[None].expand(2, 3, 4)[torch.tensor(1), :, [0, 3, 3]].shape == (3, 3)
    x[True] = 7
    assert x.sum().item() == 84
    x[False] = 8
    assert x.sum().item() == 84


def test_lists_that_stand_for_tuples():
    x = torch.arange(12.0).reshape(3, 4) * 1
    assert x[[[0, 1], [1, 0]]].tolist() == [1, 4]
    assert x[[slice(0, 1), 0]].tolist() == [0]
    assert x[[torch.tensor([0, 1]), torch.tensor([1, 2])]].tolist() == [1, 6]
    assert x[[0, 2]].tolist() == x[(0, 2),].tolist()
    assert x[[]].shape == (0, 4)


def test_zero_sizes():
    x = torch.zeros(0, 3, requires_grad=True)
    for key in (False, True, slice(None), [], torch.zeros(0, dtype=torch.bool), (slice(None), [1])):
        y = (x * 1)[key]
        y.sum().backward()
    assert x.grad.shape == (0, 3)
    # Nobody looks at an index of an empty result, but no index fits a dim of size 0.
    assert x[:, [0, 1]].shape == (0, 2) and x[:, [7]].shape == (0, 1)
    with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 0"):
        x[[0]].tolist()
    y = x.detach().clone()
    y[[]] = 1
    y[False] = 2
    assert y.tolist() == []


def test_values_of_other_dtypes():
    x = torch.zeros(3)
    x[torch.tensor([True, False, True])] = torch.tensor(2)  # one value under a mask is filled in
    x[1:2] = torch.tensor([5])  # a copy converts
    assert x.tolist() == [2, 5, 2]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[[0, 1]] = torch.tensor([1, 2])
        x.tolist()
    whole = torch.zeros(3, dtype=torch.int64)
    whole[[0, 2]] = 1.5
    assert whole.tolist() == [1, 0, 1]


def test_leading_ones_of_the_value():
    x = torch.zeros(3, 4)
    x[:, [0, 1]] = torch.ones(1, 3, 2)
    x[2] = torch.full((1, 1, 4), 2.0)
    assert x.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [2, 2, 2, 2]]


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        ([3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((slice(None), [-5]), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        (
            ([0, 1], [0, 1, 2]),
            IndexError,
            "shape mismatch: indexing tensors could not be broadcast",
        ),
        ([0.5], IndexError, "must be long, int, byte or bool"),
        (1.0, IndexError, "only integers, slices"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (np.array([True, False]), IndexError, "The shape of the mask"),
        (np.array([0, 1], np.int16), IndexError, "must be long, int, byte or bool"),
    ],
    ids=str,
)
def test_errors(key, kind, text):
    x = torch.zeros(3, 4) * 1
    with pytest.raises(kind, match=text):
        x[key].tolist()


def test_index_put():
    x = torch.zeros(4)
    index = torch.tensor([1, 1, 3])
    x.index_put_((index,), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    assert x.tolist() == [0, 3, 0, 3]
    x[[1, 1]] += 1
    assert x.tolist() == [0, 4, 0, 3]
    assert x.index_put((index,), torch.tensor(0.0)).tolist() == [0, 0, 0, 0]
