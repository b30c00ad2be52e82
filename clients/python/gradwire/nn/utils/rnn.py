"""Sequences of different lengths: padded side by side, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ... import _call, _dtype, _host, _ops, _row
from ..._rows import ROWS


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Fields):
    """The steps of sequences without padding, time by time, the longest sequence first.

    `data` [steps, ...]; `batch_sizes` how many sequences have a step at each time; the indices
    are the order of the sequences in the batch and its inverse, None when it was sorted.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **named: Any) -> PackedSequence:
        data = self.data.to(*args, **named)
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cpu(self) -> PackedSequence:
        return self.to(device="cpu")

    def cuda(self, *args: Any, **named: Any) -> PackedSequence:
        return self.to(device="cuda")

    def double(self) -> PackedSequence:
        return self.to(dtype=_dtype.float64)

    def float(self) -> PackedSequence:
        return self.to(dtype=_dtype.float32)

    def half(self) -> PackedSequence:
        return self.to(dtype=_dtype.float16)

    def long(self) -> PackedSequence:
        return self.to(dtype=_dtype.int64)

    def int(self) -> PackedSequence:
        return self.to(dtype=_dtype.int32)

    def pin_memory(self) -> PackedSequence:
        return self

    @property
    def is_cuda(self) -> bool:
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        return False


def _indices(values: list[int]) -> Any:
    return _host.tensor(values, dtype=_dtype.int64)


def invert_permutation(permutation: Any) -> Any:
    """Where each place went."""
    if permutation is None:
        return None
    inverse = [0] * len(permutation)
    for place, index in enumerate(permutation.tolist()):
        inverse[index] = place
    return _indices(inverse)


def _batch_sizes(lengths: list[int]) -> list[int]:
    """How many of the sequences, the longest first, reach each time."""
    sizes, running = [], len(lengths)
    for time in range(lengths[0] if lengths else 0):
        while running and lengths[running - 1] <= time:
            running -= 1
        sizes.append(running)
    return sizes


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences [T, B, ...] (batch_first: [B, T, ...]) of the given lengths."""
    reach: list[int] = lengths.tolist() if isinstance(lengths, _row.Tensor) else list(lengths)
    order = None
    if not enforce_sorted:
        places = sorted(range(len(reach)), key=lambda i: -reach[i])
        order = _indices(places)
        reach = [reach[i] for i in places]
        input = input.index_select(0 if batch_first else 1, order)
    data = _call.call(ROWS["_pack_padded_sequence"], (input, reach, batch_first))
    return PackedSequence(data, _indices(_batch_sizes(reach)), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """The padded sequences in their first order, and their lengths."""
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {len(sizes)}"
        )
    values = (sequence.data, sizes, batch_first, padding_value, total_length or 0)
    padded = _call.call(ROWS["_pad_packed_sequence"], values)
    lengths = [sum(size > i for size in sizes) for i in range(sizes[0])]
    back = sequence.unsorted_indices
    if back is None:
        return padded, _indices(lengths)
    padded = padded.index_select(0 if batch_first else 1, back)
    return padded, _indices([lengths[i] for i in back.tolist()])


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Sequences [L, ...] side by side, padded to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    values = (list(sequences), batch_first, padding_value, padding_side)
    return _call.call(ROWS["_pad_sequence"], values)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded batch, each in its own length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    reach = lengths.tolist() if isinstance(lengths, _row.Tensor) else list(lengths)
    rows = _ops.unbind(padded_sequences, 0)
    return [row[:length] for row, length in zip(rows, reach, strict=True)]


def pack_sequence(sequences: list[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [L, ...]."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
