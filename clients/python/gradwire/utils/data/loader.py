"""DataLoader: batches of a dataset, read ahead by threads when it has workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from ..._random import Generator
from .collate import default_collate, default_convert
from .dataset import IterableDataset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    """Iterates over batches; each iteration starts anew."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                "and drop_last"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self.dataset, self.num_workers, self.pin_memory = dataset, num_workers, pin_memory
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.prefetch_factor = prefetch_factor or 2
        self.generator, self.drop_last = generator, drop_last
        self.iterable = isinstance(dataset, IterableDataset)
        if self.iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: no sampler and no shuffle")
        if sampler is None and not self.iterable:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        self.sampler: Any = sampler
        self.batch_size = None if batch_sampler is not None else batch_size
        if batch_sampler is None and batch_size is not None and not self.iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if self.iterable:
            total = len(self.dataset)
            if self.batch_size is None:
                return total
            size = self.batch_size
            return total // size if self.drop_last else -(-total // size)
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        if self.iterable:
            return self._stream()
        if self.num_workers:
            return self._ahead()
        return (self._fetch(indices) for indices in self._orders())

    def _orders(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _fetch(self, indices: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[indices])
        if type(self.dataset) is TensorDataset and self.collate_fn is default_collate:
            return self.dataset.batch(indices)
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(indices))
        return self.collate_fn([self.dataset[i] for i in indices])

    def _stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            for sample in samples:
                yield self.collate_fn(sample)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)

    def _ahead(self) -> Iterator[Any]:
        """In order, with as many batches under way as the workers may hold."""
        orders = iter(self._orders())
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self.num_workers, thread_name_prefix="gradwire-loader") as pool:
            try:
                for indices in islice(orders, self.num_workers * self.prefetch_factor):
                    waiting.append(pool.submit(self._fetch, indices))
                while waiting:
                    batch = waiting.popleft().result(self.timeout or None)
                    for indices in islice(orders, 1):
                        waiting.append(pool.submit(self._fetch, indices))
                    yield batch
            finally:
                for future in waiting:
                    future.cancel()
