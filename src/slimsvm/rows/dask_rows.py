"""Rows on the workers of a Dask cluster, or in the graph of a Dask collection without a cluster.

Blocks are results of tasks, so dask recomputes those of a lost worker. Workers also cache features between passes, as
far as their memory allows, and recompute missing ones.
"""

from __future__ import annotations

import pickle
import sys
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.classes import class_sums
from ..data.counts import SUM_SCALE_BITS, exact_sums, leading_bits
from ..data.duplicates import row_keys
from ..linalg.arrays import Array, is_remote
from .coded_blocks import KeptRows, block_info, code_block, read_block, reread_block
from .dask_partitions import columns_and_dtype, partitions
from .labels import LabelRule
from .remote import FeatureMap, RemoteFeatures, RemoteRows, RowBlock
from .sums import Sums
from .target_kinds import CLASSES, TargetKind, check_same_targets

MAX_WORKER_MEMORY_SHARE = 0.6  # share of a worker's memory limit above which no features are cached
SECONDS_UNTIL_LOST = 2.0  # seconds without a result until the caller looks for lost workers
LOCAL_BATCH = 64  # blocks that are computed together without a cluster
MAX_GROUP_BYTES = 1 << 25  # bytes of rows in one task; small blocks are grouped
SUMS_PER_TASK = 16  # workers' sums that one task adds up


# --- on the workers ------------------------------------------------------------------------------------------------


class WorkerFeatureCache:
    """The features that a worker process keeps between passes: for each fit those of its latest feature map."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.fits: dict[str, tuple[str, dict[int, tuple[Any, int]]]] = {}

    def with_features(self, feature_map: CachedFeatureMap, row_block: RowBlock, rule: LabelRule) -> Any:
        """The features of a block, from the cache or computed."""
        size = len(row_block.codes) * feature_map.T.shape[1] * feature_map.dtype.itemsize
        with self.lock:
            if feature_map.fit not in self.fits or self.fits[feature_map.fit][0] != feature_map.token:
                self.fits[feature_map.fit] = feature_map.token, {}
            mine = self.fits[feature_map.fit][1]
            if row_block.first in mine and mine[row_block.first][0] is not None:
                return mine[row_block.first][0]
            taken = sum(size for kept in self.fits.values() for _, size in kept[1].values())
            keeps = taken + size <= feature_map.cache_bytes and _has_room(size)
            if keeps:
                mine[row_block.first] = None, size  # reserves the memory
        source = replace(feature_map, cache_bytes=float(size) if keeps else 0.0).apply(row_block.X, rule.of(row_block))
        if keeps:
            with self.lock:
                mine[row_block.first] = source, size
        return source

    def forget(self, fit: str) -> None:
        """Drop all features of a fit."""
        with self.lock:
            self.fits.pop(fit, None)


WORKER_CACHE = WorkerFeatureCache()


def _has_room(size: int) -> bool:
    """Whether ``size`` more bytes leave this worker well below its memory limit, near which dask restarts workers.

    Cached features also keep the rows of their block in memory: no room if dask has spilled blocks to disk.
    """
    try:
        from distributed import get_worker

        worker = get_worker()
    except (ImportError, ValueError):
        return True  # not on a worker
    if len(getattr(worker.data, "slow", None) or ()):
        return False
    limit = worker.memory_manager.memory_limit
    return not limit or worker.monitor.get_process_memory() + size <= MAX_WORKER_MEMORY_SHARE * limit


async def forget(fit: str) -> None:
    """Drop the features of a fit on a worker."""
    WORKER_CACHE.forget(fit)


@dataclass(frozen=True)
class CachedFeatureMap(FeatureMap):
    """A feature map whose features are cached on the workers; ``cache_bytes`` is the limit of each worker."""

    fit: str = ""
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def apply_to_block(self, row_block: RowBlock, rule: LabelRule) -> Any:
        return WORKER_CACHE.with_features(self, row_block, rule)


def _run(held: Any, sent: bytes, feature_map: bytes | None, own: Any = ()) -> Any:
    """Apply a pickled function to a block; a feature map becomes its first argument after the block."""
    work, args = pickle.loads(sent)
    if feature_map is not None:
        args = pickle.loads(zlib.decompress(feature_map)), *args
    X, codes, counts, first, targets = held
    row_block = RowBlock(X, codes, np.broadcast_to(1.0, len(codes)) if counts is None else counts, first, None, targets)
    return work(row_block, *args, *own)


def _sum_group(blocks: list[Any], sent: bytes, feature_map: Any, each: list[Any]) -> Sums:
    """The sum of a function's results for several blocks."""
    return _sum([Sums.of(_run(block, sent, feature_map, own)) for block, own in zip(blocks, each, strict=True)])


def _sum(parts: list[Sums]) -> Sums:
    return reduce(Sums.__add__, parts)


def _last_sum(parts: list[Sums]) -> Sums:
    return _sum(parts).rounded()


def _keys(row_block: RowBlock, n_classes: int, weighted: bool) -> tuple[Array, Array, Array | None, list[int]]:
    """Keys, class numbers and leading bits of the counts of a block's rows, and the exact count sum of each class."""
    keys = row_block.X.row_keys() if is_remote(row_block.X) else row_keys(row_block.X)
    if not weighted:
        return (
            keys,
            row_block.codes,
            None,
            [n << SUM_SCALE_BITS for n in class_sums(row_block.codes, n_classes).tolist()],
        )
    return (
        keys,
        row_block.codes,
        leading_bits(row_block.counts),
        exact_sums(row_block.counts, row_block.codes, n_classes),
    )


def _picked(row_block: RowBlock, rows: Array) -> tuple[Any, Array]:
    return row_block.X[rows], row_block.counts[rows]


# --- at the caller -------------------------------------------------------------------------------------------------


def current_client() -> Any:
    """The current client of `dask.distributed`, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


Make = Callable[[], list[Any]]  # returns new tasks with each call


class WorkerLost(Exception):
    """A worker that holds blocks was lost."""


class Cluster:
    """Runs tasks on the workers of a client and returns their results in order.

    The tasks of a block are pinned to the worker that holds it and its cached features, whose cost dask does not know.
    When that worker is lost, dask recomputes the block elsewhere and the tasks are submitted again.
    """

    def __init__(self, client: Any):
        self.client = client
        self.places: dict[str, str] = {}
        self.threads: dict[str, int] = {}

    def persist(self, tasks: list[Any]) -> list[Any]:
        """Futures whose results stay on the workers for as long as the futures exist."""
        return self.client.compute(tasks)

    def near(self, block: Any) -> Any:
        """A context that pins new tasks to the worker of a block."""
        import dask

        place = self.places.get(block.key)
        return nullcontext() if place is None else dask.annotate(workers=[place], allow_other_workers=False)

    def locate(self, blocks: list[Any]) -> None:
        """Ask the scheduler which worker holds each block."""
        if not self.places:
            found = self.client.who_has(blocks)
            self.places = {key: places[0] for key, places in found.items() if places}
            self.threads = self.client.nthreads()

    def groups_by_worker(self, blocks: list[Any]) -> list[tuple[list[int], int]]:
        """The block numbers of each worker and its number of threads; a block on no worker forms its own group."""
        found: dict[str, list[int]] = {}
        for k, block in enumerate(blocks):
            found.setdefault(self.places.get(block.key, f"{k}"), []).append(k)
        return [(mine, self.threads.get(place, 1)) for place, mine in found.items()]

    def results(self, make: Make) -> Iterator[Any]:
        futures, done = self.client.compute(make()), 0
        try:
            while done < len(futures):
                try:
                    found = self._result(futures[done])
                except WorkerLost:
                    self.places = {}
                    self.client.cancel(futures)
                    futures = [None] * done + self.client.compute(make()[done:])
                    continue
                yield found
                futures[done] = None
                done += 1
        finally:
            left = [future for future in futures if future is not None]
            if left:  # the caller was interrupted, or a task failed
                self.client.cancel(left)

    def _result(self, future: Any) -> Any:
        """The result of a future. `result(timeout)` is avoided: the traceback of its TimeoutError would keep the future
        and its data on the workers alive until garbage collection."""
        if not future.done():
            ready = threading.Event()
            future.add_done_callback(lambda _: ready.set())
            while not ready.wait(SECONDS_UNTIL_LOST):
                if not set(self.places.values()) <= set(self.client.nthreads()):
                    raise WorkerLost
        return future.result()

    def forget(self, fit: str) -> None:
        """Drop the cached features of a fit on all workers."""
        if self.client.status == "running":
            self.client.run(forget, fit, wait=False, on_error="ignore")


class LocalScheduler:
    """Runs tasks on dask's local scheduler; each pass recomputes the blocks unless the user persisted them."""

    def persist(self, tasks: list[Any]) -> list[Any]:
        return tasks

    def near(self, block: Any) -> Any:
        return nullcontext()

    def locate(self, blocks: list[Any]) -> None:
        """No-op: blocks have no location."""

    def groups_by_worker(self, blocks: list[Any]) -> list[tuple[list[int], int]]:
        """A group for each block."""
        return [([k], 1) for k in range(len(blocks))]

    def results(self, make: Make) -> Iterator[Any]:
        import dask

        tasks = make()
        for start in range(0, len(tasks), LOCAL_BATCH):
            yield from dask.compute(*tasks[start : start + LOCAL_BATCH])

    def forget(self, fit: str) -> None:
        WORKER_CACHE.forget(fit)


class DaskRows(RemoteRows):
    """Rows of Dask collections; the keys and the class numbers or targets of all rows are in the caller's memory."""

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, target_kind: TargetKind = CLASSES):
        """Read all blocks twice, for the classes, then for class numbers and keys; rows of weight 0 are left out."""
        import cloudpickle
        import dask

        self.delayed, self.dumps = dask.delayed, cloudpickle.dumps
        self.names, self.dtype = columns_and_dtype(X, y, target_kind.needed)
        client = current_client()
        self.scheduler: Any = LocalScheduler() if client is None else Cluster(client)
        self.fit = uuid.uuid4().hex
        self.sent_maps: dict[str, Any] = {}
        dataset = dask.delayed(read_block, pure=False)
        given = partitions(X, y, sample_weight, self.scheduler)
        raw = self.scheduler.persist(
            [dataset(*block, k, self.dtype, self.names, target_kind) for k, block in enumerate(given)]
        )
        found = list(self.scheduler.results(lambda: [dask.delayed(block_info, pure=False)(block) for block in raw]))
        self._count(found, sample_weight is not None)
        self._measure([what for what in found if what.rows], target_kind)
        dataset = dask.delayed(code_block, pure=False)
        blocks = [dataset(block, self.classes, first, self.target_scaler) for block, _, first in self._full(raw, found)]
        self.coded = self.scheduler.persist(blocks)
        self._gather(found)
        if client is None:  # keep the labels here: passes then recompute only the rows
            self.coded = [self._with_labels(block, what, first) for block, what, first in self._full(given, found)]

    def _full(self, given: list[Any], found: list[Any]) -> Iterator[tuple[Any, Any, int]]:
        """The nonempty blocks, with their metadata and the number of their first row."""
        first = 0
        for block, what in zip(given, found, strict=True):
            if what.rows:
                yield block, what, first
            first += what.rows

    def _with_labels(self, block: Any, what: Any, first: int) -> Any:
        X, _, weight = block
        mine = slice(first, first + what.rows)
        targets = None if self.targets is None else self.targets[mine]
        return self.delayed(reread_block, pure=False)(
            X, weight, self.dtype, self.names, self.codes[mine], first, self.keys[first], targets
        )

    def _count(self, found: list[Any], weighted: bool) -> None:
        """Set the shape, the classes and the lengths of the blocks."""
        self.lengths = np.array([what.rows for what in found if what.rows], dtype=np.int64)
        self.n_samples = sum(what.given for what in found)
        if not self.n_samples:
            raise ValueError("X has no rows")
        if not len(self.lengths):
            raise ValueError("sample_weight is zero for every sample: nothing is left to fit")
        self.shape = int(self.lengths.sum()), found[0].columns
        self.classes = np.unique(np.concatenate([what.labels for what in found if what.rows]))
        self.weighted = weighted

    def _measure(self, found: list[Any], target_kind: TargetKind) -> None:
        """Set the scaled targets of all rows in regression."""
        if found[0].targets is None:
            return
        for number, what in enumerate(found):
            check_same_targets(number, what.targets.shape, found[0].targets.shape)
        values = np.concatenate([what.targets for what in found])
        self.single_target, values = values.ndim == 1, values.reshape(len(values), -1)
        ones = np.broadcast_to(1.0, len(values))
        self.target_scaler = target_kind.units(
            values, np.concatenate([w.weight for w in found]) if self.weighted else ones
        )
        self.targets = self.target_scaler.transform(values)

    def _gather(self, found: list[Any]) -> None:
        """Set keys, class numbers, counts, and the row numbers in the user's data if rows were left out."""
        n, k = self.shape[0], len(self.classes)
        self.keys = np.empty(n, dtype=np.uint64)
        self.codes = np.empty(n, dtype=np.min_scalar_type(-1 - k))
        bits = np.empty(n, dtype=np.uint16) if self.weighted else None
        units, start = [0] * k, 0
        for keys, codes, mine, sums in self.map_blocks(_keys, k, self.weighted):
            rows = slice(start, start + len(keys))
            self.keys[rows], self.codes[rows] = keys, codes
            if bits is not None:
                bits[rows] = mine
            units = [a + b for a, b in zip(units, sums, strict=True)]
            start = rows.stop
        self.set_counts(bits, units)
        left = [replace(what, targets=None, weight=None) for what in found]  # both are gathered by now
        self.numbers = KeptRows(left) if n < self.n_samples else None

    def map_blocks(self, work: Callable[..., Any], *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        return self.scheduler.results(lambda: self._tasks(_run, work, *args, each=each))

    def sum_blocks(self, work: Callable[..., Any], *args: Any, each: list[Any]) -> tuple[Array, ...]:
        """The sum of a function's results over all blocks. Each worker sums its own blocks, and workers add up these
        sums. The total has the same bits wherever the blocks are."""

        def make() -> list[Any]:
            sent, feature_map = self._shared(work, args)
            self.scheduler.locate(self.coded)
            parts = []
            for groups in self._groups():
                with self.scheduler.near(self.coded[groups[0][0]]):
                    dataset = self.delayed(_sum_group, pure=False)
                    mine = [
                        dataset([self.coded[k] for k in g], sent, feature_map, [(each[k],) for k in g]) for g in groups
                    ]
                    parts.append(mine[0] if len(mine) == 1 else self.delayed(_sum, pure=False)(mine))
            while len(parts) > SUMS_PER_TASK:
                parts = [
                    self.delayed(_sum, pure=False)(parts[k : k + SUMS_PER_TASK])
                    for k in range(0, len(parts), SUMS_PER_TASK)
                ]
            return [self.delayed(_last_sum, pure=False)(parts)]

        (total,) = self.scheduler.results(make)
        return total.whole()

    def _groups(self) -> Iterator[list[list[int]]]:
        """The blocks of each worker, small ones in groups."""
        width = self.shape[1] * self.dtype.itemsize
        for blocks, threads in self.scheduler.groups_by_worker(self.coded):
            most = max(1, -(-len(blocks) // threads))  # so that all threads are busy
            groups: list[list[int]] = [[]]
            size = 0
            for k in blocks:
                size += int(self.lengths[k]) * width
                if groups[-1] and (size > MAX_GROUP_BYTES or len(groups[-1]) >= most):
                    groups.append([])
                    size = int(self.lengths[k]) * width
                groups[-1].append(k)
            yield groups

    def _tasks(self, run: Callable[..., Any], work: Any, *args: Any, each: list[Any] | None = None) -> list[Any]:
        """One task for each block."""
        sent, feature_map = self._shared(work, args)
        own: list[Any] = [()] * len(self.coded) if each is None else [(one,) for one in each]
        self.scheduler.locate(self.coded)
        return [self._task(run, block, sent, feature_map, mine) for block, mine in zip(self.coded, own, strict=True)]

    def _shared(self, work: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Send the pickled function and arguments once for all blocks, and the feature map once for all passes."""
        feature_map = None
        if args and isinstance(args[0], CachedFeatureMap):
            feature_map, args = self._send(args[0]), args[1:]
        return self.delayed(bytes, pure=False)(self.dumps((work, args))), feature_map

    def _task(self, run: Callable[..., Any], block: Any, *given: Any) -> Any:
        with self.scheduler.near(block):
            return self.delayed(run, pure=False)(block, *given)

    def _send(self, feature_map: CachedFeatureMap) -> Any:
        """Send a feature map to the workers, which cache the features of one map at a time."""
        if feature_map.token not in self.sent_maps:
            sent = zlib.compress(self.dumps(feature_map), 1)  # T has many zeros; workers pass it on compressed
            self.sent_maps = {feature_map.token: self.scheduler.persist([self.delayed(bytes, pure=False)(sent)])[0]}
        return self.sent_maps[feature_map.token]

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        starts = np.append(self.starts, self.shape[0])
        places = np.searchsorted(rows, starts)
        sent = self.dumps((_picked, ()))

        def make() -> list[Any]:
            self.scheduler.locate(self.coded)
            return [
                self._task(_run, block, sent, None, (rows[a:b] - first,))
                for block, a, b, first in zip(self.coded, places[:-1], places[1:], starts[:-1], strict=True)
                if a < b
            ]

        found, counts = zip(*self.scheduler.results(make), strict=True)
        X = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
        return X, np.concatenate(counts)

    def feature_source(
        self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, cache_bytes: float
    ) -> RemoteFeatures:
        """The features ``k(X, Z) T`` of these rows; each task computes on one thread."""
        return DaskFeatures(
            self,
            self.with_totals(labels),
            CachedFeatureMap(kernel, Z, T, np.dtype(dtype), 1, cache_bytes, fit=self.fit),
        )

    def close(self) -> None:
        """Release the data of this fit on all workers."""
        self.coded, self.sent_maps = [], {}
        self.scheduler.forget(self.fit)


class DaskFeatures(RemoteFeatures):
    """Remote features whose passes are summed on the workers."""

    X: DaskRows

    def summed(self, work: Callable[..., Any], *args: Any, each: list[Any]) -> tuple[Array, ...]:
        return self.X.sum_blocks(work, *args, each=each)


# --- predictions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockPrediction:
    """A prediction method of a fitted model, as a function of a block of rows."""

    model: Any
    name: str
    columns: list[str] | None
    none: Array | None = None  # the result for an empty block

    def __call__(self, X: Any) -> Array:
        if self.none is not None and not X.shape[0]:
            return self.none
        if self.columns is not None and not hasattr(X, "columns"):
            import pandas

            X = pandas.DataFrame(X, columns=self.columns)
        return getattr(self.model, self.name)(X)


def map_predictions(model: Any, name: str, X: Any) -> Any:
    """Apply a prediction method of a fitted model to a Dask collection, as a lazy Dask array."""
    import dask.array as da

    names, dtype = columns_and_dtype(X)
    frame = hasattr(X, "columns")
    columns = [str(column) for column in X.columns] if frame else None
    answer = BlockPrediction(model, name, columns if names is not None else None)
    # Predict one row of zeros: it raises errors of the columns, and gives the dtype and shape of the results.
    sample = answer(X._meta_nonempty[:1].fillna(0) if frame else np.zeros((1, X.shape[1]), dtype=dtype))
    meta = np.empty((0,) * sample.ndim, dtype=sample.dtype)
    answer = replace(answer, none=sample[:0])
    X = X.to_dask_array() if frame else X.rechunk({1: X.shape[1]})
    if sample.ndim == 1:
        return da.map_blocks(answer, X, dtype=sample.dtype, drop_axis=1, meta=meta)
    chunks = (X.chunks[0], (sample.shape[1],))
    return da.map_blocks(answer, X, dtype=sample.dtype, chunks=chunks, meta=meta)


__all__ = ["DaskRows", "map_predictions"]
