"""Indexing against numpy, through the views and index ops that keys become."""

from __future__ import annotations

import gradwire as torch
import numpy as np
import pytest

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
MASK = (np.arange(6).reshape(2, 3) % 2).astype(bool)
KEYS = [
    0,
    -1,
    (1, 2),
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    (slice(None), slice(0, 2), slice(1, 4, 2)),
    (slice(5, 9),),
    (Ellipsis, 1),
    (0, Ellipsis, slice(2)),
    None,
    (None, 0, None, slice(1)),
    Ellipsis,
    MASK,
    (MASK, 2),
    (slice(None), [0, 2]),
    [0, 1, 1],
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [2, 0]),
    (np.array([[0, 1], [1, 0]]), 1),
    (slice(None), [2, 0], [1, 3]),
    (0, [2, 0], slice(1, 3)),
    (Ellipsis, [4, 4]),
    (None, [0, 1]),
]


def to_numpy(key):
    """numpy reads an int among arrays as an array; torch selects first."""
    return key


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_read(daemon, key):
    x = torch.tensor(X)
    got = x[key]
    want = X[key]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_write_number(daemon, key):
    x, want = torch.tensor(X), X.copy()
    x[key] = -1
    want[key] = -1
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_write_through_operator(daemon, key):
    x, want = torch.tensor(X), X.copy()
    x[key] += 10
    want[key] += 10
    np.testing.assert_array_equal(x.numpy(), want)


def test_write_tensor_broadcasts(daemon):
    x, want = torch.tensor(X), X.copy()
    x[:, 1] = torch.arange(5)
    want[:, 1] = np.arange(5)
    x[MASK] = torch.ones(1, 1, 5)[0]
    want[MASK] = 1
    np.testing.assert_array_equal(x.numpy(), want)


def test_tensor_keys(daemon):
    x = torch.tensor(X)
    i = torch.tensor([1, 0])
    np.testing.assert_array_equal(x[i].numpy(), X[[1, 0]])
    np.testing.assert_array_equal(x[x > 60].numpy(), X[X > 60])
    np.testing.assert_array_equal(x[torch.tensor(1)].numpy(), X[1])


def test_views_share_storage(daemon):
    x = torch.zeros(3, 4)
    row = x[1]
    row += 5
    x[:, 0][2] = 7
    assert x.tolist() == [[0] * 4, [5] * 4, [7, 0, 0, 0]]


def test_whole_is_a_view_of_its_own(daemon):
    x = torch.zeros(2)
    y = x[:]
    assert y is not x
    y += 1
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (3, IndexError),
        ((0, -5), IndexError),
        ((0, 0, 0), IndexError),
        (1.0, IndexError),
        ("a", IndexError),
        ((Ellipsis, Ellipsis, 0), IndexError),
        ((slice(0, 1.5),), TypeError),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        (np.array([True, False]), IndexError),
        ([0.5], IndexError),
    ],
)
def test_errors(daemon, key, kind):
    x = torch.zeros(3, 4)
    with pytest.raises(kind, match="at .*test_indexing.py:"):
        x[key]


def test_iteration_and_containment(daemon):
    x = torch.tensor([[1, 2], [3, 4]]) + 0
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = x
    assert len(x) == 2 and 3 in x and 9 not in x
    assert a.tolist() == [1, 2] and b[1].item() == 4
