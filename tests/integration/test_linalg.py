"""Linear algebra: gradients of first and second order against differences, and errors."""

from __future__ import annotations

import gradwire as torch
import numpy as np
import pytest
from gradwire import linalg
from gradwire.nn import functional

RANDOM = np.random.default_rng(0)
STEP = 1e-6
INF = float("inf")


def numbers(*shape):
    return RANDOM.standard_normal(shape)


SQUARE = numbers(2, 3, 3) + 2 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(3)


def symmetric(a):
    return a + a.transpose(-1, -2)


def signless(values, vectors):
    return values, vectors.abs()


def signless_svd(a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return u.abs(), s, vh.abs()


TWICE = {
    "cholesky": (lambda a: linalg.cholesky(symmetric(a)), POSITIVE),
    "cholesky upper": (lambda a: linalg.cholesky(symmetric(a), upper=True), POSITIVE),
    "lu": (lambda a: linalg.lu(a)[1:], SQUARE),
    "lu wide": (lambda a: linalg.lu(a)[1:], numbers(2, 3, 5)),
    "lu tall": (lambda a: linalg.lu(a)[1:], numbers(2, 5, 3)),
    "qr": (linalg.qr, SQUARE),
    "qr wide": (linalg.qr, numbers(2, 3, 5)),
    "qr tall": (linalg.qr, numbers(2, 5, 3)),
    "eigh": (lambda a: signless(*linalg.eigh(symmetric(a))), numbers(2, 4, 4)),
    "eigvalsh": (lambda a: linalg.eigvalsh(symmetric(a)), numbers(2, 4, 4)),
    "svd": (signless_svd, SQUARE),
    "svd wide": (signless_svd, numbers(2, 3, 4)),
    "svd tall": (signless_svd, numbers(2, 4, 3)),
    "svdvals": (linalg.svdvals, numbers(2, 4, 3)),
    "solve": (linalg.solve, SQUARE, numbers(3, 2)),
    "solve vectors": (linalg.solve, SQUARE, numbers(2, 3)),
    "solve right": (
        lambda a, b: linalg.solve(a, b, left=False),
        SQUARE,
        numbers(2, 4, 3),
    ),
    "lu_solve": (
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b),
        SQUARE,
        numbers(2, 3, 2),
    ),
    "lu_solve adjoint right": (
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=False, adjoint=True),
        SQUARE,
        numbers(2, 2, 3),
    ),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True),
        SQUARE,
        numbers(2, 3, 2),
    ),
    "solve_triangular unit right": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        SQUARE,
        numbers(2, 2, 3),
    ),
    "cholesky_solve": (
        lambda a, b: torch.cholesky_solve(b, a.tril()),
        SQUARE,
        numbers(2, 3, 2),
    ),
    "cholesky_inverse": (
        lambda a: torch.cholesky_inverse(a.triu(), upper=True),
        SQUARE,
    ),
    "inv": (linalg.inv, SQUARE),
    "det": (linalg.det, SQUARE),
    "slogdet": (linalg.slogdet, SQUARE),
    "pinv": (linalg.pinv, numbers(2, 4, 3)),
    "pinv wide": (linalg.pinv, numbers(2, 3, 4)),
    "lstsq": (
        lambda a, b: linalg.lstsq(a, b, driver="gels")[:2],
        numbers(5, 3),
        numbers(5, 2),
    ),
    "matrix_exp": (torch.matrix_exp, 2 * numbers(2, 3, 3)),
    "matrix_power": (lambda a: linalg.matrix_power(a, -3), SQUARE),
    "renorm": (lambda a: torch.renorm(a, 2, 0, 1.0), numbers(3, 4)),
    "cosine_similarity": (functional.cosine_similarity, numbers(3, 4), numbers(3, 4)),
    "addmm": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        numbers(4),
        numbers(3, 2),
        numbers(2, 4),
    ),
    "einsum": (
        lambda a, b, c: torch.einsum("bij, bjk, Zk -> bZi", a, b, c),
        numbers(2, 3, 4),
        numbers(2, 4, 5),
        numbers(6, 5),
    ),
    "corrcoef": (torch.corrcoef, numbers(3, 5)),
    **{
        f"vector_norm {p}": (
            lambda a, p=p: linalg.vector_norm(a, p, dim=1),
            numbers(3, 4),
        )
        for p in (0.5, 1, 1.5, 2, 3, INF, -1)
    },
    **{
        f"matrix_norm {p}": (lambda a, p=p: linalg.matrix_norm(a, p), numbers(3, 4))
        for p in (1, -1, 2, -2, INF, "fro", "nuc")
    },
}
ONCE = {
    "det singular": (linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]])),
    **{
        f"cdist {p}": (
            lambda a, b, p=p: torch.cdist(a, b, p),
            numbers(2, 3, 4),
            numbers(5, 4),
        )
        for p in (0.5, 1, 1.5, 2, 3, INF)
    },
    **{
        f"pdist {p}": (lambda a, p=p: functional.pdist(a, p), numbers(4, 3))
        for p in (1, 1.5, 2, 3, INF)
    },
}


class Check:
    """A scalar function of arrays, its gradient, and differences of both in one direction."""

    def __init__(self, function, arrays):
        self.function, self.arrays = function, arrays
        self.along = [numbers(*a.shape) for a in arrays]
        self.weights = [numbers(*o.shape) for o in self.outputs(self.tensors(0))]
        self.others = [numbers(*a.shape) for a in arrays]

    def outputs(self, tensors):
        made = self.function(*tensors)
        made = made if isinstance(made, tuple | list) else [made]
        return [t for t in made if t.is_floating_point()]

    def tensors(self, step):
        moved = [a + step * d for a, d in zip(self.arrays, self.along, strict=True)]
        return [torch.tensor(a).requires_grad_(True) for a in moved]

    def gradients(self, tensors, again):
        weights = [torch.tensor(w) for w in self.weights]
        return torch.autograd.grad(
            self.outputs(tensors), tensors, weights, create_graph=again, allow_unused=True
        )

    def value(self, step):
        outputs = self.outputs(self.tensors(step))
        return sum((o * torch.tensor(w)).sum() for o, w in zip(outputs, self.weights, strict=True))

    def slope(self, step, again=False):
        tensors = self.tensors(step)
        grads = self.gradients(tensors, again)
        return self.dot(grads, self.others), tensors

    def dot(self, grads, arrays):
        pairs = zip(grads, arrays, strict=True)
        return sum((g * torch.tensor(a)).sum() for g, a in pairs if g is not None)

    def first(self):
        got = float(self.dot(self.gradients(self.tensors(0), False), self.along))
        want = float(self.value(STEP) - self.value(-STEP)) / (2 * STEP)
        assert got == pytest.approx(want, rel=1e-5, abs=1e-5)

    def second(self):
        slope, tensors = self.slope(0, again=True)
        grads = torch.autograd.grad(slope, tensors, allow_unused=True)
        got = float(self.dot(grads, self.along))
        want = float(self.slope(STEP)[0] - self.slope(-STEP)[0]) / (2 * STEP)
        assert got == pytest.approx(want, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", [*TWICE, *ONCE])
def test_gradient(name):
    function, *arrays = (TWICE | ONCE)[name]
    Check(function, arrays).first()


@pytest.mark.parametrize("name", TWICE)
def test_gradient_of_the_gradient(name):
    function, *arrays = TWICE[name]
    Check(function, arrays).second()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: linalg.inv(torch.zeros(3, 2, 2)),
            linalg.LinAlgError,
            "linalg.inv: (Batch element 0): The diagonal element 1 is zero",
        ),
        (
            lambda: linalg.solve(torch.zeros(2, 2), torch.ones(2)),
            linalg.LinAlgError,
            "torch.linalg.solve: The solver failed because the input matrix is singular.",
        ),
        (
            lambda: linalg.cholesky(-torch.eye(2)),
            linalg.LinAlgError,
            "(the leading minor of order 1 is not positive-definite)",
        ),
        (
            lambda: linalg.det(torch.ones(2, 3)),
            RuntimeError,
            "linalg.det: A must be batches of square matrices, but they are 2 by 3 matrices",
        ),
        (
            lambda: linalg.inv(torch.eye(2).half()),
            RuntimeError,
            "linalg.inv: Low precision dtypes not supported. Got Half",
        ),
        (
            lambda: linalg.matrix_norm(torch.ones(2, 2), 3),
            RuntimeError,
            "linalg.matrix_norm: Order 3 not supported.",
        ),
        (
            lambda: torch.einsum("ij,jk->iz", torch.ones(2, 2), torch.ones(2, 2)),
            RuntimeError,
            "output subscript z does not appear",
        ),
    ],
)
def test_error(call, kind, text):
    with pytest.raises(kind) as caught:
        call().numpy()
    assert text in str(caught.value)


def test_norm_has_a_subgradient_at_zero():
    for p in (0.5, 1, 1.5, 2, 3, INF):
        x = torch.zeros(3, requires_grad=True)
        torch.norm(x, p).backward()
        assert x.grad.tolist() == [0, 0, 0], p


def test_in_place_keeps_what_backward_needs():
    x = torch.ones(3, 3, requires_grad=True)
    y = x * 2
    y.renorm_(2, 0, 1.0)
    y.sum().backward()
    z = torch.ones(3, 3, requires_grad=True)
    torch.renorm(z * 2, 2, 0, 1.0).sum().backward()
    assert x.grad.tolist() == z.grad.tolist()
