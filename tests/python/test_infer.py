"""Shapes and dtypes known at the call equal those of the result; errors that need no daemon."""

from __future__ import annotations

import itertools

import gradwire as torch
import numpy as np
import pytest
from gradwire import _shapes, _type_rules
from gradwire._dtype import ALL


def known(x):
    assert x._shape is not None and x._dtype is not None
    return x._shape, x._dtype


@pytest.mark.parametrize(
    ("a", "b"),
    itertools.product([(), (1,), (3,), (2, 1), (2, 3), (1, 1, 3), (0, 3), (4, 2, 3)], repeat=2),
)
def test_broadcast(a, b):
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(_shapes.ShapeError):
            _shapes.broadcast(a, b)
    else:
        assert _shapes.broadcast(a, b) == want


@pytest.mark.parametrize(
    "size", [(6,), (2, 3), (-1,), (3, -1), (-1, 1, 2), (7,), (-1, 4), (-1, -1), (2, -3), ()]
)
def test_resolve(size):
    try:
        want = np.zeros(6).reshape(size).shape if size.count(-1) < 2 and -3 not in size else None
    except ValueError:
        want = None
    if want is None:
        with pytest.raises(_shapes.ShapeError):
            _shapes.resolve(size, 6)
    else:
        assert _shapes.resolve(size, 6) == want


@pytest.mark.parametrize(
    ("a", "b"),
    itertools.product([(), (3,), (2, 3), (3, 2), (5, 2, 3), (1, 3, 4), (5, 1, 3, 2)], repeat=2),
)
def test_matmul(a, b):
    try:
        want = (np.zeros(a) @ np.zeros(b)).shape
    except ValueError:
        with pytest.raises(_shapes.ShapeError):
            _shapes.matmul(a, b)
    else:
        assert _shapes.matmul(a, b) == want


def test_conv_and_pool():
    assert _shapes.conv((8, 1, 8, 8), (32, 1, 3, 3), 1, 1, 1, 1) == (8, 32, 8, 8)
    assert _shapes.conv((1, 9, 9), (4, 1, 3, 2), (2, 1), 0, 1, 1) == (4, 4, 8)
    assert _shapes.pool((8, 32, 8, 8), 2, None, 0, 1, False, 2) == (8, 32, 4, 4)
    assert _shapes.pool((1, 5, 5), 2, 2, 0, 1, True, 2) == (1, 3, 3)
    with pytest.raises(_shapes.ShapeError, match="channels"):
        _shapes.conv((8, 3, 8, 8), (32, 1, 3, 3), 1, 1, 1, 1)
    with pytest.raises(_shapes.ShapeError, match="half"):
        _shapes.pool((1, 5, 5), 2, 2, 2, 1, False, 2)


def test_pieces():
    assert _shapes.chunks(5, 4) == [2, 2, 1] and _shapes.chunks(6, 3) == [2, 2, 2]
    assert _shapes.pieces(7, 3) == [3, 3, 1] and _shapes.pieces(3, [1, 2]) == [1, 2]
    with pytest.raises(_shapes.ShapeError):
        _shapes.pieces(3, [1, 1])


def test_promotion_of_dtypes():
    p = torch.promote_types
    assert p(torch.float16, torch.bfloat16) is torch.float32
    assert p(torch.uint8, torch.int8) is torch.int16
    assert p(torch.uint8, torch.int32) is torch.int32
    assert p(torch.int64, torch.float16) is torch.float16
    assert p(torch.bool, torch.uint8) is torch.uint8
    for a, b in itertools.product(ALL, repeat=2):
        assert p(a, b) is p(b, a)


class Operand:
    def __init__(self, dtype, shape):
        self._dtype, self._shape = dtype, shape


def test_promotion_of_operands():
    wide, scalar = (3,), ()
    p = _type_rules.promoted
    assert p((Operand(torch.int8, wide), 300)) is torch.int8
    assert p((Operand(torch.float32, wide), Operand(torch.float64, scalar))) is torch.float32
    assert p((Operand(torch.int64, wide), Operand(torch.float16, scalar))) is torch.float16
    assert p((Operand(torch.int32, wide), 1.0)) is torch.float32
    assert p((Operand(torch.bool, wide), 1)) is torch.int64
    assert p((Operand(torch.bool, scalar), True)) is torch.bool
    assert p((Operand(torch.int64, scalar), Operand(torch.int8, wide))) is torch.int8
    assert p((Operand(torch.float32, None), 1)) is None


OPS = {
    "add": lambda x, y: x + y,
    "number": lambda x, y: x * 2.5,
    "divide": lambda x, y: x / 2,
    "compare": lambda x, y: x < y,
    "sum": lambda x, y: x.sum(),
    "sum_dim": lambda x, y: x.sum(1, keepdim=True),
    "sum_axis": lambda x, y: x.sum(axis=-1),
    "mean": lambda x, y: x.float().mean((0, 1)),
    "any": lambda x, y: (x > 0).any(0),
    "view": lambda x, y: x.view(3, -1),
    "transpose": lambda x, y: x.transpose(0, 1),
    "T": lambda x, y: x.T,
    "permute": lambda x, y: x.permute(1, 0),
    "expand": lambda x, y: x[:, :1].expand(-1, 7),
    "unsqueeze": lambda x, y: x.unsqueeze(-1),
    "squeeze": lambda x, y: x.unsqueeze(0).squeeze(),
    "select": lambda x, y: x[1],
    "slice": lambda x, y: x[:, 1:],
    "cat": lambda x, y: torch.cat([x, y], 1),
    "stack": lambda x, y: torch.stack([x, y]),
    "matmul": lambda x, y: x @ y.T,
    "cast": lambda x, y: x.double(),
    "split": lambda x, y: x.split(2, 1)[1],
    "chunk": lambda x, y: x.chunk(2)[0],
    "unbind": lambda x, y: x.unbind(1)[0],
    "clamp": lambda x, y: x.clamp(1, 3),
    "like": lambda x, y: torch.zeros_like(x),
    "new": lambda x, y: x.new_full((2,), 3),
}


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int16", "uint8"])
@pytest.mark.parametrize("name", OPS)
def test_known_equals_actual(daemon, name, kind):
    x = torch.tensor(np.arange(6).reshape(2, 3), dtype=getattr(torch, kind)) + 0
    made = OPS[name](x, x + 1)
    shape, dtype = known(made)
    values = made.numpy()
    assert values.shape == shape
    if name not in ("sum", "sum_dim", "sum_axis", "divide", "number", "mean"):
        assert values.dtype == dtype.numpy
    made._fetch()
    assert made._shape == shape


@pytest.mark.parametrize(
    ("run", "kind", "text"),
    [
        (lambda: torch.ones(2, 3) @ torch.ones(2, 3), RuntimeError, "2x3 and 2x3"),
        (lambda: torch.ones(2, 3).view(4), RuntimeError, "invalid for input of size 6"),
        (lambda: torch.ones(2, 3).sum(2), IndexError, "Dimension out of range"),
        (lambda: torch.ones(2, 3).sum((0, 0)), RuntimeError, "multiple times"),
        (lambda: torch.tensor([1]).mean(), RuntimeError, "could not infer output dtype"),
        (lambda: torch.tensor([1.0]) & 1, NotImplementedError, "bitwise_and"),
        (lambda: torch.ones(2).add_(torch.ones(3)), RuntimeError, "size of tensor"),
        (lambda: torch.ones(2).add_(torch.ones(3, 2)), RuntimeError, "output with shape"),
        (lambda: torch.tensor([1]).add_(1.5), RuntimeError, "result type Float can't be cast"),
        (lambda: torch.cat([torch.ones(2, 2), torch.ones(2, 3)]), RuntimeError, "Expected size 2"),
        (lambda: torch.stack([torch.ones(2), torch.ones(3)]), RuntimeError, "equal size"),
        (lambda: torch.ones(3).transpose(0, 2), IndexError, "Dimension out of range"),
        (lambda: torch.zeros(0).view(0, -1), RuntimeError, "ambiguous"),
        (lambda: torch.ones(2, 3).expand(2, 4), RuntimeError, "expanded size"),
        (lambda: torch.ones(2).add(1, alpha="a"), TypeError, "must be Number, not str"),
        (lambda: torch.ones(2).sum("a"), TypeError, "tuple of ints"),
        (lambda: torch.zeros(2).item(), RuntimeError, "cannot be converted to Scalar"),
        (lambda: bool(torch.zeros(2)), RuntimeError, "ambiguous"),
        (lambda: torch.arange(0, 5, -1), RuntimeError, "inconsistent with step sign"),
        (lambda: torch.tensor([[1, 2], [3]]), ValueError, "equal length"),
        (lambda: torch.tensor(object()), RuntimeError, "Could not infer dtype"),
        (lambda: torch.ones(2).to("cuda"), RuntimeError, "this session has no device"),
        (lambda: torch.ones(2).device_of_none, AttributeError, "device_of_none"),
    ],
)
def test_errors_at_the_call(daemon, run, kind, text):
    with pytest.raises(kind, match=text.replace("(", r"\(")):
        run()


def test_gradient_flags(daemon):
    w = torch.ones(2, requires_grad=True)
    assert w.is_leaf and w.grad_fn is None and w.grad is None
    y = w * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    assert not (w > 1).requires_grad and not y.detach().requires_grad
    with torch.no_grad():
        assert not (w * 2).requires_grad
        w.add_(1)
    assert (w * 1).requires_grad
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w += 1
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        w[0] = 1
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        w.numpy()
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        y.backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.detach().sum().backward()

    @torch.no_grad()
    def frozen():
        return w * 2

    assert not frozen().requires_grad
    assert torch.is_grad_enabled()


def test_tensor_from_data(daemon):
    assert torch.tensor(np.float64(1.5)).dtype is torch.float64
    assert torch.tensor([1.5]).dtype is torch.float32
    assert torch.tensor(np.zeros(2)).dtype is torch.float64
    assert torch.tensor([True]).dtype is torch.bool and torch.tensor(3).dtype is torch.int64
    assert torch.tensor([]).dtype is torch.float32 and torch.tensor([]).shape == (0,)
    assert torch.arange(3).dtype is torch.int64 and torch.arange(3.0).dtype is torch.float32
    assert torch.full((2,), 1).dtype is torch.int64
    assert torch.full((2,), True).dtype is torch.bool
    assert torch.tensor([0.1], dtype=torch.bfloat16).item() == 0.10009765625
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.FloatTensor([1]).tolist() == [1.0]
    assert isinstance(torch.LongTensor([1]), torch.LongTensor)
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.5]).dtype is torch.float64 and torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_copies(daemon):
    import copy
    import pickle

    w = torch.ones(2, requires_grad=True)
    for x in (w, w.detach() + 0):
        twin = copy.deepcopy(x)
        assert twin is not x and twin.tolist() == x.tolist()
        assert twin.requires_grad == x.requires_grad
        back = pickle.loads(pickle.dumps(x))
        assert back.tolist() == x.tolist() and back.requires_grad == x.requires_grad
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(w * 2)
    assert hash(w) == id(w) and {w: 1}[w] == 1
