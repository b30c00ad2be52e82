"""torch.backends: switches that scripts set. The daemon chooses kernels by shape and dtype alone,
the same ones each time, so that none of them changes a result."""

from __future__ import annotations


class _Switches:
    """Takes any attribute, as a script sets it, and gives it back."""

    def __init__(self, available: bool = False, **values: object) -> None:
        self._available = available
        self.__dict__.update(values)

    def is_available(self) -> bool:
        return self._available

    def is_built(self) -> bool:
        return self._available

    def version(self) -> None:
        return None


cudnn = _Switches(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Switches(matmul=_Switches(allow_tf32=False))
mps = _Switches()
mkl = _Switches()
mkldnn = _Switches(enabled=True)
openmp = _Switches()
