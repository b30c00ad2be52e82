"""Datasets."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import _create, _host
from ..._random import Generator


class Dataset:
    """Samples by index. Subclasses define __getitem__, and mostly __len__."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after the other."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset):
    """Samples are tuples of rows of tensors."""

    def __init__(self, *tensors: Any) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def batch(self, indices: Sequence[int]) -> list[Any]:
        """The collated batch of these samples: one index op a tensor."""
        rows = _host.from_numpy(np.asarray(indices, dtype=np.int64))
        return [t[rows] for t in self.tensors]

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class Subset(Dataset):
    """Some samples of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """Disjoint random parts of the given lengths, or fractions."""
    total = len(dataset)
    if abs(sum(lengths) - 1.0) < 1e-9 and all(0 <= n <= 1 for n in lengths):
        sizes = [int(total * n) for n in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(n) for n in lengths]
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _create.host_permutation(total, generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, sizes, strict=True)]
