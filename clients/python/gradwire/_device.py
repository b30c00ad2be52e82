"""torch.device and what is asked of devices."""

from __future__ import annotations

from typing import Any


class device:
    """A device by name: "cpu", "cuda" (where the session was placed), "cuda:1"."""

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int):
            self.type, self.index = "cuda", type
            return
        name, _, number = str(type).partition(":")
        if name not in ("cpu", "cuda", "meta", "mps", "xpu") or (number and not number.isdigit()):
            raise RuntimeError(
                f"Expected one of cpu, cuda device type at start of device string: {type}"
            )
        self.type = name
        self.index = int(number) if number else index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (str(self),))


CPU = device("cpu")


def check(wanted: Any) -> device | None:
    """A device from what users write; refuses one that the session does not have."""
    if wanted is None:
        return None
    found = wanted if isinstance(wanted, device) else device(wanted)
    if found.type != "cpu":
        from .wire import current

        granted = current.session().devices
        if found.type not in {name.partition(":")[0] for name in granted}:
            raise RuntimeError(
                f"this session has no device '{found}': it was granted {', '.join(granted)}. "
                "Use device='cpu', or choose by torch.cuda.is_available()."
            )
    return found
