"""Says how a result differs from the recorded one, or None. Arrays are numpy's."""

import json

import numpy as np
from pack import DATA

# The C++ test of the catalog reads them, too. Tolerances are relative, and absolute per unit of the
# tensor's largest value (at least 1).
_FACTS = json.loads((DATA / "tolerances.json").read_text())
TOLERANCE = {name: tuple(pair) for name, pair in _FACTS["tolerance"].items()}
TOLERANCE_LOOSE = tuple(_FACTS["loose_tolerance"])

# Ill-conditioned on some of the samples: looser.
LOOSE = set(_FACTS["loose"])

# Defined only up to sign or order: what they must satisfy is checked, and the values that are
# unique; gradients are not.
AMBIGUOUS = set(_FACTS["ambiguous"])


def difference(what, got, got_dtype, want, want_dtype, loose=False):
    if got.shape != want.shape:
        return f"{what}: shape {got.shape}, want {want.shape}"
    if got_dtype != want_dtype:
        return f"{what}: dtype {got_dtype}, want {want_dtype}"
    if want_dtype in TOLERANCE:
        relative, absolute = TOLERANCE[want_dtype]
        if loose:
            relative = max(relative, TOLERANCE_LOOSE[0])
            absolute = max(absolute, TOLERANCE_LOOSE[1])
        got, want = got.astype("f8"), want.astype("f8")
        largest = np.max(np.abs(np.where(np.isfinite(want), want, 0)), initial=1.0)
        bad = ~np.isclose(got, want, rtol=relative, atol=absolute * largest, equal_nan=True)
    else:
        bad = got != want
    if not bad.any():
        return None
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    return (
        f"{what}: {int(bad.sum())} of {bad.size} differ, "
        f"first at {first}: {got[first]}, want {want[first]}"
    )


def _near(x, y):
    tolerance = 1e-3 * np.max(np.abs(y), initial=1.0)
    return x.shape == y.shape and np.allclose(x, y, atol=tolerance, rtol=1e-3)


def _transpose(m):
    return np.swapaxes(m, -1, -2)


def difference_of_factors(name, matrix, upper, outputs, want):
    """For the AMBIGUOUS ops: outputs in float64 of the factorisation of `matrix`."""
    for i, (output, expected) in enumerate(zip(outputs, want, strict=True)):
        if output.shape != expected.shape:
            return f"output {i}: shape {output.shape}, want {expected.shape}"
    if name in ("svd", "linalg.svd") and len(outputs) == 3:
        u, s, v = outputs
        if not _near(s, want[1]):
            return "singular values differ"
        rank = s.shape[-1]
        u, v = u[..., :rank], (v if name == "svd" else _transpose(v))[..., :rank]
        computed = u.size and v.size and u.any() and v.any()
        if computed and not _near(u * s[..., None, :] @ _transpose(v), matrix):
            return "U S V' is not the argument"
    elif name in ("qr", "linalg.qr") and len(outputs) == 2 and outputs[0].size:
        q, r = outputs
        if not _near(q @ r, matrix):
            return "Q R is not the argument"
        gram = _transpose(q) @ q
        if not _near(gram, np.broadcast_to(np.eye(q.shape[-1]), gram.shape)):
            return "Q is not orthogonal"
    elif name == "linalg.eigh":
        values, vectors = outputs
        if not _near(values, want[0]):
            return "eigenvalues differ"
        half, strict = (np.triu(matrix), np.triu(matrix, 1))
        if not upper:
            half, strict = (np.tril(matrix), np.tril(matrix, -1))
        symmetric = half + _transpose(strict)
        if vectors.size and not _near(symmetric @ vectors, vectors * values[..., None, :]):
            return "A V is not V w"
    elif name == "linalg.lstsq" and outputs and not _near(outputs[0], want[0]):
        return "solution differs"
    return None
