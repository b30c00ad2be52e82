#!/usr/bin/env python3
# ruff: noqa: E501 (tables of forms)
"""Records random programs of tensor ops and what PyTorch makes of them: tests/data/programs.*

A program is lines of Python over `torch` and tensors v0, v1, ...: views, in-place writes, mixed
dtypes, broadcasting, indexing, then backward. Lines that raise are left out. Programs whose results
hang on the last bits (a comparison of nearly equal values, cancellation) are told by running them
again from inputs moved by a few units in the last place, and are drawn anew.
"""

import random
import sys
import warnings

import numpy as np
import programs
import record
import torch

COUNT = 2000
DTYPES = (
    "float32",
    "float32",
    "float64",
    "float64",
    "int64",
    "int32",
    "bool",
    "float16",
    "uint8",
)

UNARY = """
{a}.tanh() | {a}.sigmoid() | {a}.sin() | {a}.cos() | {a}.neg() | -{a} | {a}.abs() | {a}.square()
{a}.relu() | torch.exp({a}.clamp(-3, 3)) | torch.log({a}.abs() + 0.5) | torch.sqrt({a}.abs() + 0.1)
torch.rsqrt({a}.abs() + 0.5) | torch.erf({a}) | torch.log1p({a}.abs()) | torch.expm1({a}.clamp(-2, 2))
torch.floor({a}) | torch.round({a}) | torch.sign({a}) | torch.atan({a}) | {a}.clamp(-1, 1.5)
{a}.clamp(min=0) | torch.nn.functional.gelu({a}) | torch.nn.functional.silu({a}) | {a} + {s}
{s} - {a} | {a} * {s} | {a} / 3 | {a} ** 2 | {a} // 2 | {a} % 3 | ~({a} > 0) | {a} > {s} | {a} != 0
torch.nn.functional.leaky_relu({a}, 0.1) | torch.nn.functional.softplus({a}) | torch.reciprocal({a}.abs() + 1)
torch.isfinite({a}) | {a}.clone() | {a}.detach() | {a}.contiguous() | torch.zeros_like({a}) | torch.ones_like({a})
"""
BINARY = """
{a} + {b} | {a} - {b} | {a} * {b} | {a} / ({b}.abs() + 0.5) | torch.maximum({a}, {b})
torch.minimum({a}, {b}) | torch.where({a} > 0, {a}, {b}) | torch.add({a}, {b}, alpha=2)
torch.atan2({a} * 1.0, {b}.abs() + 0.5) | {a} <= {b} | {a} == {b} | torch.lerp({a}, {b}, 0.25) | torch.hypot({a}, {b})
torch.addcmul({a}, {b}, {c}, value=0.5) | torch.addcdiv({a}, {b}, {c}.abs() + 1) | ({a} > 0) & ({b} > 0)
torch.fmod({a}, {b}.abs() + 1) | torch.nn.functional.mse_loss({a}, {b}.to({a}.dtype)) | {a}.masked_fill({b} > 0, 0.5)
({a} > 0) ^ ({b} > 0) | torch.logical_or({a}, {b}) | torch.nn.functional.smooth_l1_loss({a}, {b}.to({a}.dtype)) | torch.pow({a}.abs() + 0.5, 1.5)
"""
REDUCE = """
{a}.sum() | {a}.mean() | {a}.sum({d}) | {a}.mean({d}, keepdim=True) | {a}.amax({d}) | {a}.amin({d}, keepdim=True)
{a}.max() | {a}.min() | {a}.max({d})[0] | {a}.min({d}, keepdim=True)[1] | {a}.argmax({d}) | torch.std(torch.cat([{a}.flatten(), {a}.flatten() + 1]))
{a}.var() | {a}.prod({d}) | {a}.cumsum({d}) | torch.logsumexp({a}, {d}) | torch.softmax({a}, {d})
torch.log_softmax({a}, {d}) | {a}.any({d}) | {a}.all() | {a}.norm() | torch.sort({a}, {d})[0]
torch.topk({a}, 1, {d})[0] | {a}.flip({d}) | torch.count_nonzero({a}) | {a}.argsort({d}, stable=True) | torch.cumprod({a}, {d})
torch.median(torch.cat([{a}.flatten(), torch.ones(1)])) | {a}.sum({d}, dtype=torch.float64) | torch.nn.functional.normalize({a}, dim={d}) | torch.nn.functional.layer_norm({a}, {a}.shape[-1:])
"""
SHAPE = """
{a}.reshape(-1) | {a}.transpose({d}, {e}) | {a}.unsqueeze({d}) | {a}.squeeze() | {a}.flatten() | {a}.T
{a}.permute(*reversed(range({a}.dim()))) | {a}.expand(2, *{a}.shape) | {a}.select({d}, 0) | {a}.narrow({d}, 0, 1)
{a}[0] | {a}[..., -1] | {a}[:, 1:] | {a}[None] | {a}[..., ::2] | {a}[-1:] | {a}.chunk(2, {d})[0] | {a}.split(2, {d})[-1]
torch.cat([{a}, {a}], {d}) | torch.cat([{a}, {b}], {d}) | torch.stack([{a}, {b}], {d}) | torch.stack([{a}, {a}])
{a}[{a} > 0] | {a}[torch.tensor([0, -1, 0])] | {a}[:, torch.tensor([1, 0])] | {a}.unbind({d})[0] | torch.tril({a}) | torch.triu({a}, 1)
{a}.index_select({d}, torch.tensor([0, 1, 1])) | {a}.gather({d}, torch.zeros_like({a}, dtype=torch.int64)) | {a}.roll(1, {d})
{a}.repeat(2, 1) | {a}.view(-1, 1) | {a}.repeat_interleave(2, {d}) | torch.diagonal({a}) | {a}.movedim(0, -1) | {a}.expand_as({b}) | {a}.tile(2)
{a} @ {b}.transpose(-1, -2) | {a} @ {b} | torch.outer({a}.flatten()[:3], {b}.flatten()[:2]) | torch.einsum("ij,kj->ik", {a}, {b})
torch.nn.functional.pad({a}, (1, 1)) | torch.nn.functional.one_hot({a}.long().clamp(0, 4), 5) | {a}.unfold({d}, 2, 1) | {a}.masked_select({a} > 0)
"""
CAST = """
{a}.float() | {a}.double() | {a}.long() | {a}.to(torch.int32) | {a}.bool() | {a}.half() | {a}.to({b}.dtype) | {a}.type_as({b}) | {a}.to(torch.uint8)
"""
IN_PLACE = """
{a}.add_({b}) | {a}.mul_({s}) | {a}.sub_(1) | {a}.clamp_(-1, 1) | {a}.zero_() | {a}.fill_({s}) | {a}.copy_({b}) | {a}.relu_()
{a}[0] = {s} | {a}[..., 0] = 1 | {a}[{a} > 1] = 0 | {a}[1:] += 1 | {a} += {b} | {a} *= 2 | {a}.masked_fill_({a} < 0, 0.25)
{a}[0].mul_(2) | {a}.transpose(0, -1).add_(1) | {a}[torch.tensor([0])] = 2 | {a}.tanh_() | {a}.index_fill_({d}, torch.tensor([0]), 3)
{a}[0] = {b}[0] | {a}.view(-1)[0] = 5 | {a}.addcmul_({b}, {c}) | {a}.div_(2) | {a}.neg_() | {a}[:, 0] *= {s} | {a}.exp_().clamp_(max=5)
"""


def forms(text):
    return [
        form.strip()
        for line in text.strip().split("\n")
        for form in line.split("|")
        if form.strip()
    ]


# `|` separates forms, so that an "or" is written by name.
TEMPLATES = [
    (22, forms(UNARY)),
    (22, forms(BINARY)),
    (14, forms(REDUCE)),
    (20, forms(SHAPE)),
    (7, forms(CAST)),
    (15, forms(IN_PLACE)),
]


def draw_inputs(rng):
    inputs = []
    for _ in range(rng.randint(3, 5)):
        dtype = rng.choice(DTYPES) if inputs else rng.choice(("float32", "float64"))
        shape = rng.choice(
            (
                (3, 4),
                (3, 4),
                (4,),
                (1, 4),
                (3, 1),
                (),
                (2, 3, 4),
                (4, 3),
                (4, 4),
            )
        )
        shape = shape if inputs else (3, 4)
        count = int(np.prod(shape))
        values = np.array([rng.uniform(-2, 2) for _ in range(count)])
        if not dtype.startswith("float"):
            values = np.array(
                [rng.randint(0 if dtype in ("uint8", "bool") else -3, 5) for _ in range(count)]
            )
        if dtype == "bool":
            values = values % 2
        grad = dtype.startswith("float") and rng.random() < 0.7
        inputs.append((values.reshape(shape).astype(dtype), grad))
    return inputs


def shared(value):
    """Whether elements of a tensor share memory (expanded, or overlapping windows)."""
    if not isinstance(value, torch.Tensor) or value.numel() < 2:
        return False
    reach = 0
    for stride, size in sorted(
        (s, n) for s, n in zip(value.stride(), value.shape, strict=True) if n > 1
    ):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def draw(seed):
    """A program and its inputs."""
    rng = random.Random(seed)
    inputs = draw_inputs(rng)
    scope = programs.scope(torch, inputs)
    lines, count = [], len(inputs)
    for _ in range(20 * rng.randint(20, 60)):
        if len(lines) >= 20 and rng.random() < 1 / 40:
            break
        if len(lines) == 60:
            break
        group = rng.choices([g for _, g in TEMPLATES], [w for w, _ in TEMPLATES])[0]
        form = rng.choice(group)
        a, b, c = (
            f"v{max(0, min(count - 1, int(rng.triangular(0, count, count))))}" for _ in "abc"
        )
        rank = scope[a].dim()
        text = form.format(
            a=a,
            b=b,
            c=c,
            s=rng.choice((2, -1, 0.5, 1.5, 3)),
            d=rng.randint(-1, max(rank - 1, 0)),
            e=rng.randint(-1, max(rank - 1, 0)),
        )
        writes = group is TEMPLATES[-1][1]
        line = text if writes else f"v{count} = {text}"
        # Elements that share memory: one of the edges where the order of writes would show.
        if writes and any(shared(value) for value in scope.values()):
            continue
        trial = dict(scope)
        try:
            exec(line, trial)
        except Exception:
            if writes:  # it may have written before it failed
                scope = programs.scope(torch, inputs)
                exec("\n".join(lines), scope)
            continue
        if not writes:
            made = trial[f"v{count}"]
            if not isinstance(made, torch.Tensor) or made.numel() > 200:
                continue
            count += 1
        scope = trial
        lines.append(line)
    return lines, inputs


def moved(inputs, seed):
    """The inputs, floats a few units in the last place away."""
    rng = np.random.default_rng(seed)
    out = []
    for values, grad in inputs:
        if values.dtype.kind == "f":
            values = values * (
                1 + 4 * np.finfo(values.dtype).eps * rng.uniform(-1, 1, values.shape)
            )
            values = values.astype(inputs[len(out)][0].dtype)
        out.append((values, grad))
    return out


def is_half(value):
    return isinstance(value, torch.Tensor) and value.dtype is torch.float16


def tiny_half(value):
    """Whether a float16 result is so small that a rounding before it decides its digits."""
    kind = getattr(value, "dtype", None)
    return kind == np.float16 and bool(np.any((value != 0) & (np.abs(value) < 1e-3)))


def stable(lines, inputs, result):
    names = programs.scope(torch, inputs)
    for line in lines:
        exec(line, names)
        if any(tiny_half(v.detach().numpy()) for v in names.values() if is_half(v)):
            return False
    for seed in range(3):
        other = programs.run(torch, lines, moved(inputs, seed))
        if programs.differences(other, result, strict=0.2):
            return False
    return True


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    facts, tensors, seed = [], {}, 0
    while len(facts) < COUNT:
        seed += 1
        drawn = draw(seed)
        if len(drawn[0]) < 20:
            continue
        lines, inputs = drawn
        try:
            result = programs.run(torch, lines, inputs)
        except RuntimeError:  # a view that may no longer be looked at
            continue
        if not result or not stable(lines, inputs, result):
            continue
        number = len(facts)
        facts.append(
            {
                "lines": lines,
                "grad": [i for i, (_, grad) in enumerate(inputs) if grad],
                "raises": result.get("raises", ""),
            }
        )
        for i, (values, _) in enumerate(inputs):
            tensors[f"{number}/in{i}"] = torch.from_numpy(values.copy())
        for name, values in result.items():
            if name not in ("raises", "exactness"):
                tensors[f"{number}/{name}"] = torch.from_numpy(np.array(values))
        if number % 200 == 0:
            print(number, seed, file=sys.stderr)
    record.write("programs", {"programs": facts}, tensors)


if __name__ == "__main__":
    main()
