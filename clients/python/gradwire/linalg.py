"""torch.linalg, as far as the catalog has it."""

from __future__ import annotations

from .wire.errors import LinAlgError

__all__ = ["LinAlgError"]
