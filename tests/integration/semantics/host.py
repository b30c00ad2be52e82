"""Points 21 and 23 to 26: random choice, statistics, layouts, devices, files."""

from __future__ import annotations

import os
import pickle
import tempfile
from typing import Any

from . import case, raises

nan, inf = float("nan"), float("inf")


@case(21, "multinomial refuses negatives, nan and inf.")
def multinomial(torch: Any) -> Any:
    says = "probability tensor contains either `inf`, `nan` or element < 0"
    return [
        *(raises(torch, says, lambda v=v: torch.multinomial(torch.tensor([0.5, v]), 1))
          for v in (-1.0, nan, inf)),
        torch.multinomial(torch.tensor([0.0, 0, 3]), 2, replacement=True),
        sorted(torch.multinomial(torch.tensor([1.0, 2, 0, 3]), 3).tolist()),
    ]  # fmt: skip


@case(21, "Same seed, same device: same numbers.")
def seeds(torch: Any) -> Any:
    torch.manual_seed(5)
    a = [torch.rand(3), torch.randn(3), torch.randint(0, 100, (3,)), torch.randperm(5)]
    torch.manual_seed(5)
    b = [torch.rand(3), torch.randn(3), torch.randint(0, 100, (3,)), torch.randperm(5)]
    state = torch.get_rng_state()
    first = torch.rand(4)
    torch.set_rng_state(state)
    again = torch.equal(first, torch.rand(4))
    return [[torch.equal(x, y) for x, y in zip(a, b, strict=True)], again]


@case(23, "median takes the lower middle; quantile interpolates.")
def medians(torch: Any) -> Any:
    x = torch.tensor([4.0, 1, 3, 2])
    return [
        x.median(),
        list(torch.tensor([[4, 1, 3, 2]]).median(1)),
        torch.quantile(x, 0.5),
        torch.quantile(x, torch.tensor([0.1, 0.6])),
        torch.tensor([1.0, nan]).median(),
    ]


@case(23, "chunk(4) of 5 gives 3 pieces.")
def chunks(torch: Any) -> Any:
    return [list(torch.arange(5).chunk(4)), list(torch.arange(5).split(2))]


@case(23, "Bool minus is an error; item()/bool() of many elements is an error.")
def bools(torch: Any) -> Any:
    b = torch.tensor([True, False])
    return [
        raises(torch, "Subtraction, the `-` operator, with", lambda: b - b),
        raises(torch, "a Tensor with 2 elements cannot be converted to Scalar", b.item),
        raises(torch, "Boolean value of Tensor with more than one value is ambiguous",
               lambda: bool(b)),
        bool(torch.tensor([[2.0]])),
    ]  # fmt: skip


@case(24, "Elementwise results keep a permuted input's layout.")
def layouts(torch: Any) -> Any:
    x = torch.arange(24.0).reshape(2, 3, 4)
    p = x.permute(2, 0, 1)
    c = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    return [
        *(list(y.stride()) for y in (p.exp(), p + 1, p * p, p + torch.ones(3), p.clone())),
        list((c + 1).stride()),
        list(x.expand(5, 2, 3, 4).exp().stride()),
        list((p > 1).stride()),
    ]


@case(24, "`view` on an incompatible layout is an error that suggests reshape.")
def incompatible_views(torch: Any) -> Any:
    x = torch.arange(6).reshape(2, 3).t()
    return [
        raises(torch, "Use .reshape(...) instead.", lambda: x.view(6)),
        x.reshape(6),
        raises(torch, "shape '[4]' is invalid for input of size 6", lambda: x.reshape(4)),
    ]


@case(25, "Tensors of different devices: RuntimeError; 0-dim CPU tensors mix freely.")
def devices(torch: Any) -> Any:
    return [
        str(torch.ones(1, device="cpu").device),
        torch.ones(2, device="cpu") * torch.tensor(3.0),
    ]


@case(25, "the factory functions take `device=`, and `set_default_device` is honoured.")
def default_devices(torch: Any) -> Any:
    torch.set_default_device("cpu")
    found = [str(f.device) for f in (torch.ones(1), torch.arange(2), torch.rand(2))]
    torch.set_default_device(None)
    return found


class _Bomb:
    def __reduce__(self) -> Any:
        return (os.system, ("true",))


@case(26, "load never unpickles code: torch's zip format through a restricted reader.")
def loading(torch: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.pt")
        torch.save({"w": torch.arange(3.0), "n": [1, "x"]}, path)
        good = torch.load(path)
        with open(path, "wb") as file:
            pickle.dump(_Bomb(), file)
        try:
            torch.load(path)
        except Exception:
            return [good["w"], good["n"], "refused"]
        return [good["w"], good["n"], "loaded"]
