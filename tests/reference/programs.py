"""Runs a recorded program of tensor ops against a module that mirrors torch."""

import numpy as np

KEPT = 8  # the last values of a program that are compared

# Relative, and absolute per unit of the largest value; a program is as exact as its least exact
# dtype.
TOLERANCE = {"float64": 1e-9, "float32": 2e-4, "float16": 2e-2}


def scope(torch, inputs):
    """Names for a program's lines: torch, v0, v1, ..."""
    names = {"torch": torch}
    for i, (values, grad) in enumerate(inputs):
        tensor = torch.tensor(values if values.ndim else values[()])
        if grad:
            leaf = tensor.requires_grad_(True)
            names[f"leaf{i}"] = leaf
            tensor = leaf * 1  # in-place writes are for tensors that are no leaves
        names[f"v{i}"] = tensor
    return names


def run(torch, lines, inputs):
    """The program's last values ("v12") and its leaves' gradients ("grad0"), as numpy arrays.

    "raises" is the class of the error of its backward, where that is what it gives.
    """
    names = scope(torch, inputs)
    # Chained and augmented assignments name what they write.
    exec("\n".join(lines), names)
    values = [name for name in names if name[0] == "v" and name[1:].isdigit()]
    kept = sorted(values, key=lambda name: int(name[1:]))[-KEPT:]
    result = {name: _numpy(torch, names[name]) for name in kept}
    dtypes = {str(names[name].dtype).split(".")[-1] for name in values}
    result["exactness"] = max(dtypes & TOLERANCE.keys(), key=TOLERANCE.__getitem__, default="")
    roots = [names[name] for name in values if names[name].requires_grad]
    leaves = {i: names[f"leaf{i}"] for i in range(len(inputs)) if f"leaf{i}" in names}
    if not roots:
        return result
    loss = sum(root.double().mean() for root in roots if root.numel())
    try:
        # A client that does not wait hears of a refused backward when it reads.
        loss.backward()
        grads = {i: leaf.grad for i, leaf in leaves.items()}
        found = {f"grad{i}": _numpy(torch, g) for i, g in grads.items() if g is not None}
    except Exception as error:
        result["raises"] = type(error).__name__
        return result
    return result | found


def _numpy(torch, tensor):
    return np.array(tensor.detach().numpy())


def differences(got, want, strict=1.0):
    """What differs, as text; "" when nothing does.

    A backward that PyTorch refuses, because an operand that it had saved was written since, may
    succeed where less is saved; values must be the same all the same.
    """
    exactness = got.get("exactness", "")
    got = {name: value for name, value in got.items() if name != "exactness"}
    want = {name: value for name, value in want.items() if name != "exactness"}
    if want.get("raises") and "raises" not in got:
        got = {name: got[name] for name in want if name != "raises"}
        want = {name: value for name, value in want.items() if name != "raises"}
    if "raises" in got and "raises" in want:
        got, want = got | {"raises": ""}, want | {"raises": ""}  # one is the other's subclass
    if got.get("raises", "") != want.get("raises", ""):
        given, wanted = got.get("raises") or "nothing", want.get("raises") or "nothing"
        return f"backward raises {given}, want {wanted}"
    if got.keys() != want.keys():
        return f"gives {sorted(got)}, want {sorted(want)}"
    tolerance = strict * TOLERANCE.get(exactness, 1e-9)
    for name, value in want.items():
        if name == "raises":
            continue
        mine = got[name]
        if mine.shape != value.shape or mine.dtype != value.dtype:
            return (
                f"{name} is {mine.dtype}{list(mine.shape)}, want {value.dtype}{list(value.shape)}"
            )
        if value.dtype.kind == "f":
            finite = np.abs(value[np.isfinite(value)])
            scale = tolerance * max(1.0, float(finite.max()) if finite.size else 1.0)
            same = np.isclose(mine, value, rtol=tolerance, atol=scale, equal_nan=True)
        else:
            same = mine == value
        if not np.all(same):
            at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
            return f"{name}{list(at)} is {mine[at]}, want {value[at]}"
    return ""
