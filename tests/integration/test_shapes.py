"""Views in place, parts and places: geometry, versions, history, out= and errors."""

from __future__ import annotations

import gradwire as torch
import numpy as np
import pytest

A = np.arange(12, dtype=np.float64).reshape(3, 4)


def gradient(function, *values):
    leaves = [torch.tensor(v, requires_grad=True) for v in values]
    out = function(*leaves)
    weight = torch.arange(out.numel(), dtype=torch.float64).reshape(out.shape) + 1
    (out * weight).sum().backward()
    return [leaf.grad.numpy() for leaf in leaves]


# In-place forms of views.


@pytest.mark.parametrize(
    ("name", "arguments", "shape", "stride"),
    [
        ("t_", (), (4, 3), (1, 4)),
        ("transpose_", (0, -1), (4, 3), (1, 4)),
        ("swapaxes_", (1, 0), (4, 3), (1, 4)),
        ("swapdims_", (1, 0), (4, 3), (1, 4)),
        ("unsqueeze_", (1,), (3, 1, 4), (4, 4, 1)),
        ("squeeze_", (), (3, 4), (4, 1)),
        ("as_strided_", ((2, 2), (4, 2), 1), (2, 2), (4, 2)),
    ],
)
def test_views_in_place(name, arguments, shape, stride):
    x = torch.tensor(A) * 1
    y = x
    assert getattr(x, name)(*arguments) is x
    assert y.shape == shape and y.stride() == stride
    plain = getattr(torch.tensor(A) * 1, name[:-1])(*arguments)
    assert x.tolist() == plain.tolist()


def test_views_in_place_take_part_in_the_graph():
    got = gradient(lambda x: (x * 2).t_().unsqueeze_(0).squeeze_(0) ** 2, A)[0]
    weight = np.arange(12).reshape(4, 3).T + 1
    np.testing.assert_allclose(got, 8 * A * weight)


def test_views_in_place_of_views():
    def function(x):
        y = x * 2
        row = y[0]
        row.unsqueeze_(0)
        row.mul_(3)
        return y

    weight = np.arange(12).reshape(3, 4) + 1.0
    want = weight * 2
    want[0] *= 3
    np.testing.assert_allclose(gradient(function, A)[0], want)

    def written_later(x):
        y = x * 2
        part = y[:, 1:]
        part.t_()
        y.mul_(3)
        return part

    want = np.zeros((3, 4))
    want[:, 1:] = 6 * (np.arange(9).reshape(3, 3) + 1).T
    np.testing.assert_allclose(gradient(written_later, A)[0], want)


def test_grad_reaches_through_a_view_whose_base_was_written():
    x = torch.ones(3, 4, requires_grad=True)
    y = x * 2
    part = y.narrow(1, 1, 2)
    y.add_(3)
    (got,) = torch.autograd.grad((part * part).sum(), x)
    assert got[0].tolist() == [0, 20, 20, 0]


def test_a_saved_tensor_must_not_turn():
    x = torch.ones(2, 3, requires_grad=True)
    y = x.exp()
    z = y * y
    y.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(z.sum(), x)[0].tolist()


def test_a_leaf_keeps_its_shape():
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.t_()
    with torch.no_grad():
        x.t_()
    assert x.shape == (3, 2)


def test_expanded_tensors_may_turn():
    x = torch.ones(1, 3).expand(2, 3)
    assert x.t_().shape == (3, 2)


# Gradients over layouts.


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[:, 1:3],
        lambda x: x[0].expand(3, 4),
    ],
    ids=["rows", "columns", "part", "expanded"],
)
def test_as_strided_over_any_layout(layout):
    x = A.copy()
    got = gradient(lambda t: torch.as_strided(layout(t * 1), (2, 2), (1, 1)), x)[0]
    want = np.zeros(12)
    shown = np.zeros(12)
    places = torch.as_strided(layout(torch.arange(12).reshape(3, 4) * 1), (2, 2), (1, 1)).numpy()
    np.add.at(want, places.reshape(-1), np.arange(4) + 1.0)
    np.add.at(shown, layout(torch.arange(12).reshape(3, 4) * 1).numpy().reshape(-1), 1)
    # What the layout does not show gets nothing.
    want[shown == 0] = 0
    np.testing.assert_allclose(got.reshape(-1), want)


def test_masked_scatter():
    mask = A % 3 == 0
    got, of_source = gradient(
        lambda x, s: torch.masked_scatter(x, torch.tensor(mask), s), A, np.ones(6)
    )
    weight = np.arange(12).reshape(3, 4) + 1.0
    np.testing.assert_allclose(got, np.where(mask, 0, weight))
    np.testing.assert_allclose(of_source, [*weight[mask], 0, 0])


def test_an_entry_filled_twice_counts_once():
    index = torch.tensor([0, 0, -1])
    _, of_value = gradient(lambda x, v: x.index_fill(0, index, v), A, np.float64(5))
    weight = np.arange(12).reshape(3, 4) + 1.0
    np.testing.assert_allclose(of_value, weight[0].sum() + weight[2].sum())


def test_scatter_reduce_of_zeros():
    source = np.array([[0.0, 0, 2, 3]])
    index = torch.tensor([[0, 0, 0, 1]])

    def product(x, s):
        return x.scatter_reduce(1, index, s, "prod")

    x = np.array([[5.0, 7.0]])
    of_x, of_source = gradient(product, x, source)
    np.testing.assert_allclose(of_x, [[0, 6]])
    np.testing.assert_allclose(of_source, [[0, 0, 0, 14]])
    of_source = gradient(product, x, np.array([[0.0, 1, 2, 3]]))[1]
    np.testing.assert_allclose(of_source, [[10, 0, 0, 14]])


# Results.


def test_repeats():
    x = torch.tensor([[1, 2], [3, 4]])
    counts = torch.tensor([0, 3])
    assert x.repeat_interleave(counts, dim=0).tolist() == [[3, 4]] * 3
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert torch.repeat_interleave(counts).tolist() == [1, 1, 1]
    assert x.repeat(2, 1, 1).shape == (2, 2, 2)
    many = torch.ones([2] * 10).repeat([2] * 10)
    assert many.shape == tuple([4] * 10) and many.sum().item() == 4**10
    for bad, text in ((torch.tensor([1, -1]), "can not be negative"), (-1, "non-negative")):
        with pytest.raises(RuntimeError, match=text):
            x.repeat_interleave(bad, dim=0).tolist()


def test_parts():
    x = torch.arange(10)
    assert [p.tolist() for p in torch.tensor_split(x, 4)] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    assert [p.tolist() for p in x.tensor_split((2, 5, 4))] == [
        [0, 1],
        [2, 3, 4],
        [],
        [4, 5, 6, 7, 8, 9],
    ]
    assert [p.shape for p in torch.tensor_split(x, torch.tensor([3]))] == [(3,), (7,)]
    assert [p.shape for p in torch.hsplit(torch.zeros(2, 4), 2)] == [(2, 2), (2, 2)]
    with pytest.raises(RuntimeError, match="not divisible by the split_size 3"):
        torch.hsplit(torch.zeros(2, 4), 3)[0].tolist()


def test_one_hot():
    one_hot = torch.nn.functional.one_hot
    assert one_hot(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert one_hot(torch.tensor([[1]]), 3).tolist() == [[[0, 1, 0]]]
    for values, classes, text in (([-1], -1, "non-negative"), ([3], 3, "smaller than num_classes")):
        with pytest.raises(RuntimeError, match=text):
            one_hot(torch.tensor(values), classes).tolist()


def test_places():
    x = torch.tensor([[0, 5], [6, 0]])
    assert torch.argwhere(x).tolist() == [[0, 1], [1, 0]]
    assert torch.nonzero(x, as_tuple=True)[1].tolist() == [1, 0]
    assert torch.nonzero_static(x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert [p.tolist() for p in torch.unravel_index(torch.tensor([5, 1]), (2, 3))] == [
        [1, 0],
        [2, 1],
    ]
    assert torch.tril_indices(2, 3, -1).tolist() == [[1], [0]]
    assert torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


def test_padding_keeps_the_layout():
    x = torch.ones(1, 2, 3, 4).permute(0, 3, 1, 2)
    y = torch.constant_pad_nd(x, (1, 1), 2)
    assert y.shape == (1, 4, 2, 5) and y.stride() == (40, 1, 20, 4)


# out=


def test_out_forms():
    x = torch.tensor(A)
    index = torch.tensor([[0, 1, 2, 0]])
    for function, arguments in (
        (torch.hstack, ([x, x],)),
        (torch.vstack, ([x, x],)),
        (torch.dstack, ([x, x],)),
        (torch.column_stack, ([x, x],)),
        (torch.stack, ([x, x], 1)),
        (torch.gather, (x, 0, index)),
        (torch.index_select, (x, 1, index[0])),
        (torch.take, (x, index)),
        (torch.take_along_dim, (x, index, 0)),
        (torch.scatter, (x, 0, index, 1.0)),
        (torch.scatter_add, (x, 0, index, x)),
        (torch.scatter_reduce, (x, 0, index, x, "amax")),
        (torch.index_copy, (x, 1, index[0, :1], x[:, :1])),
        (torch.diag, (x,)),
        (torch.tril, (x,)),
        (torch.masked_select, (x, x > 3)),
    ):
        want = function(*arguments)
        out = torch.empty(0, dtype=torch.float64)
        assert function(*arguments, out=out) is out
        assert out.shape == want.shape and out.tolist() == want.tolist()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float64"):
        out = torch.empty(1, 4)
        torch.gather(x, 0, index, out=out)
        out.tolist()
    assert torch.nonzero(x > 9, out=torch.empty(0, dtype=torch.int64)).tolist() == [[2, 2], [2, 3]]
    assert torch.logspace(0, 2, 3, out=torch.empty(3)).tolist() == [1, 10, 100]


def test_a_module_unflattens(daemon):
    net = torch.nn.Unflatten(1, (2, 3))
    assert net(torch.zeros(4, 6)).shape == (4, 2, 3)
    with pytest.raises(TypeError, match="found type int"):
        torch.nn.Unflatten(1, 6)


def test_clamp_takes_bounds_of_two_kinds_as_one() -> None:
    x = torch.tensor([0, 1, 200], dtype=torch.uint8)
    assert x.clamp(-1, 1.5).tolist() == [0.0, 1.0, 1.5]
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.clamp_(1, 1.5)
        x.tolist()
    assert x.tolist() == [0, 1, 200]
