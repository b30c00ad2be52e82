"""Points 1 to 9: ties, nan, statistics, promotion, integers, creation, sizes of zero, indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import case, gradient, raises

nan, inf = float("nan"), float("inf")


@case(1, "argmax/argmin/max(dim) ties: first index.")
def ties_give_the_first_index(torch: Any) -> Any:
    x = torch.tensor([[1.0, 3, 3, 0, 0], [2, 2, 2, 2, 2]])
    return [
        x.argmax(),
        x.argmax(1),
        x.argmin(1),
        x.argmin(0),
        list(x.max(1)),
        list(x.min(1)),
        torch.tensor([5, 7, 7]).argmax(),
        torch.tensor([True, True]).max(0).indices,
    ]


@case(1, "max()/amax share the gradient evenly over ties.")
def full_max_shares_the_gradient(torch: Any) -> Any:
    return [
        gradient(torch, lambda x: x.max(), [1.0, 3, 3, 0]),
        gradient(torch, lambda x: x.min(), [1.0, 0, 3, 0]),
        gradient(torch, lambda x: x.amax(1), [[1.0, 3, 3], [2, 2, 2]]),
        gradient(torch, lambda x: x.amin(0), [[1.0, 3], [1, 2]]),
    ]


@case(1, "max(dim) sends it to one.")
def max_of_a_dim_sends_the_gradient_to_one(torch: Any) -> Any:
    return [
        gradient(torch, lambda x: x.max(1).values, [[1.0, 3, 3], [2, 2, 2]]),
        gradient(torch, lambda x: x.min(1).values, [[1.0, 1, 3], [2, 2, 2]]),
    ]


@case(1, "maximum gives 0.5 each.")
def maximum_halves_the_gradient(torch: Any) -> Any:
    a = torch.tensor([1.0, 2, 3], requires_grad=True)
    b = torch.tensor([1.0, 3, 2], requires_grad=True)
    torch.maximum(a, b).sum().backward()
    first = [a.grad.clone(), b.grad.clone()]
    a.grad = b.grad = None
    torch.minimum(a, b).sum().backward()
    return [*first, a.grad, b.grad]


@case(2, "NaN wins in max, argmax, maximum and clamp.")
def nan_wins(torch: Any) -> Any:
    x = torch.tensor([1.0, nan, 3])
    return [
        x.max(),
        x.argmax(),
        x.argmin(),
        list(x.max(0)),
        x.amax(),
        torch.maximum(x, torch.tensor([nan, 0, 4])),
        x.clamp(0, 2),
        x.clamp(min=nan),
    ]


@case(2, "fmax ignores it.")
def fmax_ignores_nan(torch: Any) -> Any:
    a, b = torch.tensor([1.0, nan, nan]), torch.tensor([nan, 2.0, nan])
    return [torch.fmax(a, b), torch.fmin(a, b)]


@case(2, "sort puts it last.")
def sort_puts_nan_last(torch: Any) -> Any:
    x = torch.tensor([1.0, nan, inf, -inf])
    return [list(x.sort()), list(x.sort(descending=True)), x.argsort(), list(x.topk(2))]


@case(3, "std/var are unbiased by default.")
def std_is_unbiased(torch: Any) -> Any:
    x = torch.tensor([[1.0, 2, 4], [3, 9, 0]])
    return [x.std(), x.var(), x.std(1), x.var(0), x.var(unbiased=False), x.std(1, unbiased=False)]


@case(3, "one element gives nan.")
def std_of_one_element(torch: Any) -> Any:
    x = torch.tensor([3.0])
    return [x.std(), x.var(), x.var(unbiased=False)]


@case(4, "mean() of an int or bool tensor is an error.")
def mean_of_ints(torch: Any) -> Any:
    says = "mean(): could not infer output dtype. Input dtype must be either a floating point"
    return [
        raises(torch, says, lambda: torch.arange(3).mean()),
        raises(torch, says, lambda: torch.tensor([True]).mean()),
        torch.arange(3).mean(dtype=torch.float32),
    ]


@case(4, "sum, prod, cumsum of int or bool give int64.")
def sums_of_ints(torch: Any) -> Any:
    b = torch.tensor([True, True, False])
    i = torch.tensor([100, 100, 100], dtype=torch.int8)
    return [f for x in (b, i) for f in (x.sum(), x.prod(), x.cumsum(0), x.sum(0), x.cumprod(0))]


@case(5, "Python scalars and 0-dim tensors do not raise the dtype within a category.")
def weak_operands(torch: Any) -> Any:
    i8 = torch.tensor([1, 100], dtype=torch.int8)
    return [
        i8 + 300,
        torch.ones(2) * torch.tensor(2.0, dtype=torch.float64),
        i8 + torch.tensor(1000),
        i8 + 0.5,
        torch.ones(2, dtype=torch.float16) + 1.5,
        torch.tensor([True]) + 1,
        torch.tensor(1, dtype=torch.int8) + torch.tensor(1, dtype=torch.int64),
    ]


@case(5, "i64 + f16 is f16; bf16 + f16 is f32.")
def mixed_categories(torch: Any) -> Any:
    f16 = torch.ones(2, dtype=torch.float16)
    return [
        torch.ones(2, dtype=torch.int64) + f16,
        torch.ones(2, dtype=torch.bfloat16) + f16,
        torch.ones(2, dtype=torch.uint8) + torch.ones(2, dtype=torch.int8),
        torch.ones(2, dtype=torch.bool) + f16,
    ]


@case(5, "In-place may not up-cast: error.")
def in_place_may_not_upcast(torch: Any) -> Any:
    says = "can't be cast to the desired output type"
    return [
        raises(torch, says, lambda: torch.arange(3).add_(0.5)),
        raises(torch, says, lambda: torch.arange(3).mul_(torch.ones(3))),
        raises(torch, says, lambda: torch.tensor([True]).add_(1)),
        torch.ones(2).add_(torch.ones(2, dtype=torch.float64)),
    ]


@case(6, "`/` on ints gives float; `//` and `%` take the divisor's sign, `fmod` truncates.")
def integer_division(torch: Any) -> Any:
    a, b = torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])
    f = a.float()
    return [
        *(a / b, a // b, a % b, torch.fmod(a, b), f // b, f % b, torch.fmod(f, b)),
        *(-7 // torch.tensor([2]), 7 % torch.tensor([-2]), torch.tensor([-7]) // 2),
        *(torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor")),
    ]


@case(6, "integer division by zero on the CPU is an error.")
def integer_division_by_zero(torch: Any) -> Any:
    a, zero = torch.tensor([1, 2]), torch.tensor([1, 0])
    return [
        raises(torch, "ZeroDivisionError", lambda: a // zero),
        raises(torch, "ZeroDivisionError", lambda: a % zero),
        raises(torch, "ZeroDivisionError", lambda: torch.fmod(a, zero)),
        a / zero,
    ]


@case(6, "Int to a negative power is an error; `2**t` of an int tensor stays int.")
def integer_powers(torch: Any) -> Any:
    says = "Integers to negative integer powers are not allowed."
    return [
        raises(torch, says, lambda: torch.arange(3) ** -1),
        2 ** torch.tensor([0, 1, 10]),
        torch.tensor([2, 3]) ** 2,
        torch.tensor([2, 3]) ** 0.5,
    ]


@case(7, "`tensor(np.float64 array)` stays f64; a Python list of floats gives the default dtype.")
def dtypes_of_new_tensors(torch: Any) -> Any:
    return [
        torch.tensor(np.array([1.0, 2.0])),
        torch.tensor([1.0, 2.0]),
        torch.tensor(np.array([1, 2], np.int32)),
        torch.tensor([1, 2]),
        torch.tensor([True, False]),
        torch.tensor(np.float64(1.5)),
        torch.tensor([1, 2.5]),
    ]


@case(7, "`arange(3)` int64; `full((2,), 1)` int64.")
def dtypes_of_factories(torch: Any) -> Any:
    return [
        *(torch.arange(3), torch.arange(0, 1, 0.25), torch.arange(3.0), torch.full((2,), 1)),
        *(torch.full((2,), 1.0), torch.full((2,), True), torch.zeros(2), torch.linspace(0, 1, 3)),
    ]


@case(7, "round is half-to-even; `.long()` truncates.")
def rounding(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.7, -2.7])
    return [x.round(), x.long(), x.int(), torch.round(x * 0.1, decimals=1)]


@case(8, "Broadcasts with 1 but not with 2.")
def zero_sizes_broadcast(torch: Any) -> Any:
    zero = torch.zeros(0, 3)
    return [
        zero + torch.ones(1, 3),
        zero + torch.ones(3),
        raises(torch, "must match the size of tensor b", lambda: zero + torch.ones(2, 3)),
    ]


@case(8, "mean gives nan, prod 1, full `max()` is an error.")
def zero_sizes_reduce(torch: Any) -> Any:
    zero = torch.zeros(0)
    return [
        *(zero.mean(), zero.prod(), zero.sum()),
        *(torch.zeros(0, 2).sum(0), torch.zeros(2, 0).mean(1)),
        raises(torch, "max(): Expected reduction dim to be specified", lambda: zero.max()),
        raises(torch, "argmax(): Expected reduction dim", lambda: zero.argmax()),
        *(zero.all(), zero.any()),
    ]


@case(8, "`cat` accepts a legacy (0,) tensor.")
def cat_skips_the_legacy_empty(torch: Any) -> Any:
    return [
        torch.cat([torch.zeros(0), torch.ones(2, 2)]),
        torch.cat([torch.ones(1, 2), torch.zeros(0), torch.zeros(0, 2)]),
        raises(torch, "Tensors must have same number of dimensions",
               lambda: torch.cat([torch.zeros(1), torch.ones(2, 2)])),
    ]  # fmt: skip


@case(8, "`view(0, -1)` is ambiguous: error.")
def view_of_zero_is_ambiguous(torch: Any) -> Any:
    says = "because the unspecified dimension size -1 can be any value and is ambiguous"
    return [
        raises(torch, says, lambda: torch.zeros(0).view(0, -1)),
        torch.zeros(0, 2).view(-1, 2),
    ]


@case(9, "Separated advanced indices move the result's dim to the front.")
def separated_indices(torch: Any) -> Any:
    x = torch.arange(24).reshape(2, 3, 4)
    i, j = torch.tensor([0, 1, 1]), torch.tensor([3, 2, 0])
    return [x[i, :, j], x[:, i, j], x[0, :, j], x[i, :, 1], x[:, i][..., j]]


@case(9, "`x[[0, 0]] += 1` adds once; `index_put_(accumulate=True)` accumulates.")
def repeated_indices(torch: Any) -> Any:
    x, y = torch.zeros(3), torch.zeros(3)
    x[[0, 0]] += 1
    y.index_put_((torch.tensor([0, 0, 2]),), torch.tensor(1.0), accumulate=True)
    return [x, y, torch.zeros(3).index_add_(0, torch.tensor([1, 1]), torch.ones(2))]


@case(9, "A float index is IndexError, a negative slice step ValueError.")
def bad_indices(torch: Any) -> Any:
    x = torch.arange(5)
    return [
        raises(torch, "", lambda: x[1.0]),
        raises(torch, "tensors used as indices must be long", lambda: x[torch.tensor([1.0])]),
        raises(torch, "step must be greater than zero", lambda: x[::-1]),
        raises(torch, "out of bounds", lambda: x[7]),
        raises(torch, "out of bounds", lambda: x[torch.tensor([7])]),
        raises(torch, "too many indices", lambda: x[0, 0]),
    ]
