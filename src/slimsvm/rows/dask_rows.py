"""Rows on the workers of a dask cluster, or in the graph of a dask collection where there is no cluster.

Blocks are results of tasks that dask can run again: those of a lost worker come back by themselves. Workers also keep
features between passes, as far as their memory allows; these are computed again where they are missing.
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

from ..data.counts import SUM_SCALE_BITS, exact_sums, leading_bits
from ..data.dataset import class_sums
from ..data.duplicates import row_keys
from ..linalg.arrays import Array, is_remote
from .coded_blocks import KeptRows, block_info, code_block, read_block, reread_block
from .dask_partitions import columns_and_dtype, partitions
from .labels import LabelRule
from .remote import FeatureMap, RemoteFeatures, RemoteRows, RowBlock
from .sums import Sums
from .target_kinds import CLASSES, TargetKind, check_same_targets

MAX_WORKER_MEMORY_SHARE = 0.6  # of a worker's memory limit: beyond it no features are kept
SECONDS_UNTIL_LOST = 2.0  # seconds until a worker may be thought lost
LOCAL_BATCH = 64  # blocks that are worked on together where there is no cluster
MAX_GROUP_BYTES = 1 << 25  # bytes of rows that one task looks at, where blocks are small
SUMS_PER_TASK = 16  # sums of other workers that one adds up


# --- on the workers ------------------------------------------------------------------------------------------------


class WorkerFeatureCache:
    """Features that a worker's process keeps between passes: of each fit those of its latest look."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.fits: dict[str, tuple[str, dict[int, tuple[Any, int]]]] = {}

    def home(self, look: CachedFeatureMap, piece: RowBlock, rule: LabelRule) -> Any:
        """The home of a block: as it is kept, or a new one."""
        size = len(piece.codes) * look.T.shape[1] * look.dtype.itemsize
        with self.lock:
            if look.fit not in self.fits or self.fits[look.fit][0] != look.token:
                self.fits[look.fit] = look.token, {}
            mine = self.fits[look.fit][1]
            if piece.first in mine and mine[piece.first][0] is not None:
                return mine[piece.first][0]
            taken = sum(size for kept in self.fits.values() for _, size in kept[1].values())
            keeps = taken + size <= look.keep and _has_room(size)
            if keeps:
                mine[piece.first] = None, size  # its room, before others take it
        home = replace(look, keep=float(size) if keeps else 0.0).at(piece.X, rule.of(piece))
        if keeps:
            with self.lock:
                mine[piece.first] = home, size
        return home

    def forget(self, fit: str) -> None:
        """All of a fit."""
        with self.lock:
            self.fits.pop(fit, None)


WORKER_CACHE = WorkerFeatureCache()


def _has_room(size: int) -> bool:
    """Would a worker stay well below its limit with so many bytes more? Dask ends workers that come near it.

    What is kept holds the rows of its block, too: where dask has moved blocks to disk, it would keep them in memory.
    """
    try:
        from distributed import get_worker

        worker = get_worker()
    except (ImportError, ValueError):
        return True  # no worker
    if len(getattr(worker.data, "slow", None) or ()):
        return False
    limit = worker.memory_manager.memory_limit
    return not limit or worker.monitor.get_process_memory() + size <= MAX_WORKER_MEMORY_SHARE * limit


async def forget(fit: str) -> None:
    """The features of a fit, on a worker; nobody waits for it."""
    WORKER_CACHE.forget(fit)


@dataclass(frozen=True)
class CachedFeatureMap(FeatureMap):
    """A look whose features stay on the workers; ``keep`` counts for each of them."""

    fit: str = ""
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def on(self, piece: RowBlock, rule: LabelRule) -> Any:
        return WORKER_CACHE.home(self, piece, rule)


def _run(held: Any, sent: bytes, look: bytes | None, own: Any = ()) -> Any:
    """What a function makes of a block; the look, if there is one, is its first argument after the block."""
    work, small = pickle.loads(sent)
    if look is not None:
        small = pickle.loads(zlib.decompress(look)), *small
    X, codes, counts, first, targets = held
    piece = RowBlock(X, codes, np.broadcast_to(1.0, len(codes)) if counts is None else counts, first, None, targets)
    return work(piece, *small, *own)


def _together(blocks: list[Any], sent: bytes, look: Any, each: list[Any]) -> Sums:
    """The sum of what a function makes of blocks."""
    return _sum([Sums.of(_run(block, sent, look, own)) for block, own in zip(blocks, each, strict=True)])


def _sum(parts: list[Sums]) -> Sums:
    return reduce(Sums.__add__, parts)


def _last_sum(parts: list[Sums]) -> Sums:
    return _sum(parts).rounded()


def _keys(piece: RowBlock, n_classes: int, weighted: bool) -> tuple[Array, Array, Array | None, list[int]]:
    """What the caller holds of each row, and the exact sums of what the rows of each class count."""
    keys = piece.X.row_keys() if is_remote(piece.X) else row_keys(piece.X)
    if not weighted:
        return keys, piece.codes, None, [n << SUM_SCALE_BITS for n in class_sums(piece.codes, n_classes).tolist()]
    return keys, piece.codes, leading_bits(piece.counts), exact_sums(piece.counts, piece.codes, n_classes)


def _picked(piece: RowBlock, rows: Array) -> tuple[Any, Array]:
    return piece.X[rows], piece.counts[rows]


# --- at the caller -------------------------------------------------------------------------------------------------


def current_client() -> Any:
    """Of `dask.distributed`; None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


Make = Callable[[], list[Any]]  # tasks, anew with each call


class WorkerLost(Exception):
    """A worker that has blocks is gone."""


class Cluster:
    """Tasks run by the workers of a client; results are asked for in order.

    Those of a block run where it is, and nowhere else: features are there, and dask does not know what they cost. When
    that worker is gone, dask makes the block again elsewhere, and the tasks are made again.
    """

    def __init__(self, client: Any):
        self.client = client
        self.places: dict[str, str] = {}
        self.threads: dict[str, int] = {}

    def kept(self, tasks: list[Any]) -> list[Any]:
        """Results that stay where they are made, until nobody has them any more."""
        return self.client.compute(tasks)

    def beside(self, block: Any) -> Any:
        """Within this context tasks are made that run where a block is."""
        import dask

        place = self.places.get(block.key)
        return nullcontext() if place is None else dask.annotate(workers=[place], allow_other_workers=False)

    def settle(self, blocks: list[Any]) -> None:
        """Where the blocks are, as far as that is known."""
        if not self.places:
            found = self.client.who_has(blocks)
            self.places = {key: places[0] for key, places in found.items() if places}
            self.threads = self.client.nthreads()

    def spread(self, blocks: list[Any]) -> list[tuple[list[int], int]]:
        """Numbers of the blocks of each worker, and its threads. Blocks that are nowhere yet are by themselves."""
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
        """Waits without `result(timeout)`: the traceback of its TimeoutError would keep the future, and with it what
        workers have, until the garbage is collected."""
        if not future.done():
            ready = threading.Event()
            future.add_done_callback(lambda _: ready.set())
            while not ready.wait(SECONDS_UNTIL_LOST):
                if not set(self.places.values()) <= set(self.client.nthreads()):
                    raise WorkerLost
        return future.result()

    def end(self, fit: str) -> None:
        """Workers forget it; those that are gone have nothing to forget."""
        if self.client.status == "running":
            self.client.run(forget, fit, wait=False, on_error="ignore")


class LocalScheduler:
    """Dask's own scheduler: blocks are made anew in each pass, unless the user has them in memory."""

    def kept(self, tasks: list[Any]) -> list[Any]:
        return tasks

    def beside(self, block: Any) -> Any:
        return nullcontext()

    def settle(self, blocks: list[Any]) -> None:
        """They are nowhere."""

    def spread(self, blocks: list[Any]) -> list[tuple[list[int], int]]:
        """Each by itself."""
        return [([k], 1) for k in range(len(blocks))]

    def results(self, make: Make) -> Iterator[Any]:
        import dask

        tasks = make()
        for start in range(0, len(tasks), LOCAL_BATCH):
            yield from dask.compute(*tasks[start : start + LOCAL_BATCH])

    def end(self, fit: str) -> None:
        WORKER_CACHE.forget(fit)


class DaskRows(RemoteRows):
    """Rows of dask collections. Keys and class numbers or targets of all rows are kept here."""

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, wanted: TargetKind = CLASSES):
        """Two looks: the classes; then class numbers, and a key for each row. Rows of weight 0 are left out."""
        import cloudpickle
        import dask

        self.delayed, self.dumps = dask.delayed, cloudpickle.dumps
        self.names, self.dtype = columns_and_dtype(X, y, wanted.needed)
        client = current_client()
        self.site: Any = LocalScheduler() if client is None else Cluster(client)
        self.fit = uuid.uuid4().hex
        self.looks: dict[str, Any] = {}
        dataset = dask.delayed(read_block, pure=False)
        given = partitions(X, y, sample_weight, self.site)
        raw = self.site.kept([dataset(*block, k, self.dtype, self.names, wanted) for k, block in enumerate(given)])
        found = list(self.site.results(lambda: [dask.delayed(block_info, pure=False)(block) for block in raw]))
        self._count(found, sample_weight is not None)
        self._measure([what for what in found if what.rows], wanted)
        dataset = dask.delayed(code_block, pure=False)
        full = self._full(raw, found)
        self.held = self.site.kept([dataset(block, self.classes, first, self.units) for block, _, first in full])
        self._gather(found)
        if client is None:  # labels are here, and need not be made again with the rows
            self.held = [self._with_labels(block, what, first) for block, what, first in self._full(given, found)]

    def _full(self, given: list[Any], found: list[Any]) -> Iterator[tuple[Any, Any, int]]:
        """Blocks that have rows, what is known of them, and their first rows."""
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
        """What all blocks have together."""
        self.lengths = np.array([what.rows for what in found if what.rows], dtype=np.int64)
        self.n_samples = sum(what.given for what in found)
        if not self.n_samples:
            raise ValueError("X has no rows")
        if not len(self.lengths):
            raise ValueError("sample_weight is zero for every sample: nothing is left to fit")
        self.shape = int(self.lengths.sum()), found[0].columns
        self.classes = np.unique(np.concatenate([what.labels for what in found if what.rows]))
        self.weighted = weighted

    def _measure(self, found: list[Any], wanted: TargetKind) -> None:
        """Targets of all rows, if they have any, in units of their own."""
        if found[0].targets is None:
            return
        for number, what in enumerate(found):
            check_same_targets(number, what.targets.shape, found[0].targets.shape)
        values = np.concatenate([what.targets for what in found])
        self.single, values = values.ndim == 1, values.reshape(len(values), -1)
        ones = np.broadcast_to(1.0, len(values))
        self.units = wanted.units(values, np.concatenate([w.weight for w in found]) if self.weighted else ones)
        self.targets = self.units.measured(values)

    def _gather(self, found: list[Any]) -> None:
        """Keys, class numbers and leading bits of the weights, and the rows' numbers where some are left out."""
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
        self.weigh(bits, units)
        left = [replace(what, targets=None, weight=None) for what in found]  # what is known of all rows is here by now
        self.numbers = KeptRows(left) if n < self.n_samples else None

    def map_blocks(self, work: Callable[..., Any], *small: Any, each: list[Any] | None = None) -> Iterator[Any]:
        return self.site.results(lambda: self._tasks(_run, work, *small, each=each))

    def added(self, work: Callable[..., Any], *small: Any, each: list[Any]) -> tuple[Array, ...]:
        """The sum over blocks of what a function makes of them. Workers add up what is theirs, then one of them what
        all have: one sum is sent for each worker, and it has the same bits wherever blocks are."""

        def make() -> list[Any]:
            sent, look = self._shared(work, small)
            self.site.settle(self.held)
            parts = []
            for groups in self._groups():
                with self.site.beside(self.held[groups[0][0]]):
                    dataset = self.delayed(_together, pure=False)
                    mine = [dataset([self.held[k] for k in g], sent, look, [(each[k],) for k in g]) for g in groups]
                    parts.append(mine[0] if len(mine) == 1 else self.delayed(_sum, pure=False)(mine))
            while len(parts) > SUMS_PER_TASK:
                parts = [
                    self.delayed(_sum, pure=False)(parts[k : k + SUMS_PER_TASK])
                    for k in range(0, len(parts), SUMS_PER_TASK)
                ]
            return [self.delayed(_last_sum, pure=False)(parts)]

        (total,) = self.site.results(make)
        return total.whole()

    def _groups(self) -> Iterator[list[list[int]]]:
        """For each worker the blocks that are there, some of them together where they are small."""
        width = self.shape[1] * self.dtype.itemsize
        for blocks, threads in self.site.spread(self.held):
            most = max(1, -(-len(blocks) // threads))  # so that all threads have something to do
            groups: list[list[int]] = [[]]
            size = 0
            for k in blocks:
                size += int(self.lengths[k]) * width
                if groups[-1] and (size > MAX_GROUP_BYTES or len(groups[-1]) >= most):
                    groups.append([])
                    size = int(self.lengths[k]) * width
                groups[-1].append(k)
            yield groups

    def _tasks(self, run: Callable[..., Any], work: Any, *small: Any, each: list[Any] | None = None) -> list[Any]:
        """One for each block."""
        sent, look = self._shared(work, small)
        own: list[Any] = [()] * len(self.held) if each is None else [(one,) for one in each]
        self.site.settle(self.held)
        return [self._task(run, block, sent, look, mine) for block, mine in zip(self.held, own, strict=True)]

    def _shared(self, work: Any, small: tuple[Any, ...]) -> tuple[Any, Any]:
        """What all blocks need goes out once, and a look once for all its passes."""
        look = None
        if small and isinstance(small[0], CachedFeatureMap):
            look, small = self._sent(small[0]), small[1:]
        return self.delayed(bytes, pure=False)(self.dumps((work, small))), look

    def _task(self, run: Callable[..., Any], block: Any, *given: Any) -> Any:
        with self.site.beside(block):
            return self.delayed(run, pure=False)(block, *given)

    def _sent(self, look: CachedFeatureMap) -> Any:
        """On the workers; one at a time, as they keep features of one."""
        if look.token not in self.looks:
            sent = zlib.compress(self.dumps(look), 1)  # T has many zeros; workers pass it on as it is
            self.looks = {look.token: self.site.kept([self.delayed(bytes, pure=False)(sent)])[0]}
        return self.looks[look.token]

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        starts = np.append(self.starts, self.shape[0])
        places = np.searchsorted(rows, starts)
        sent = self.dumps((_picked, ()))

        def make() -> list[Any]:
            self.site.settle(self.held)
            return [
                self._task(_run, block, sent, None, (rows[a:b] - first,))
                for block, a, b, first in zip(self.held, places[:-1], places[1:], starts[:-1], strict=True)
                if a < b
            ]

        found, counts = zip(*self.site.results(make), strict=True)
        X = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
        return X, np.concatenate(counts)

    def feature_source(
        self, kernel: Any, labels: Any, Z: Any, T: Array, dtype: Any, threads: int, keep: float
    ) -> RemoteFeatures:
        """With features ``k(X, Z) T``; each worker computes on one thread for each of its own."""
        return DaskFeatures(
            self, self.known(labels), CachedFeatureMap(kernel, Z, T, np.dtype(dtype), 1, keep, fit=self.fit)
        )

    def close(self) -> None:
        """The fit has ended: workers may forget all of it."""
        self.held, self.looks = [], {}
        self.site.end(self.fit)


class DaskFeatures(RemoteFeatures):
    """The home of rows on workers, who also add up."""

    X: DaskRows

    def summed(self, work: Callable[..., Any], *small: Any, each: list[Any]) -> tuple[Array, ...]:
        return self.X.added(work, *small, each=each)


# --- predictions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockPrediction:
    """A method of a fitted model, for blocks."""

    model: Any
    name: str
    columns: list[str] | None
    none: Array | None = None  # the answer for no rows

    def __call__(self, X: Any) -> Array:
        if self.none is not None and not X.shape[0]:
            return self.none
        if self.columns is not None and not hasattr(X, "columns"):
            import pandas

            X = pandas.DataFrame(X, columns=self.columns)
        return getattr(self.model, self.name)(X)


def map_predictions(model: Any, name: str, X: Any) -> Any:
    """What a method of a fitted model says of the rows of a dask collection: a dask array, computed when asked for."""
    import dask.array as da

    names, dtype = columns_and_dtype(X)
    frame = hasattr(X, "columns")
    columns = [str(column) for column in X.columns] if frame else None
    answer = BlockPrediction(model, name, columns if names is not None else None)
    # One row of zeros: the model says what is wrong with the columns, and which type and shape answers have.
    sample = answer(X._meta_nonempty[:1].fillna(0) if frame else np.zeros((1, X.shape[1]), dtype=dtype))
    meta = np.empty((0,) * sample.ndim, dtype=sample.dtype)
    answer = replace(answer, none=sample[:0])
    X = X.to_dask_array() if frame else X.rechunk({1: X.shape[1]})
    if sample.ndim == 1:
        return da.map_blocks(answer, X, dtype=sample.dtype, drop_axis=1, meta=meta)
    chunks = (X.chunks[0], (sample.shape[1],))
    return da.map_blocks(answer, X, dtype=sample.dtype, chunks=chunks, meta=meta)


__all__ = ["DaskRows", "map_predictions"]
