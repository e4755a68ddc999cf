"""The number of threads of a fit, and an ordered map over threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import joblib

Item = TypeVar("Item")
Made = TypeVar("Made")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads: -1 all cores, -2 all but one, None that of joblib's ``parallel_config`` (else one)."""
    if n_jobs is None:
        return max(1, joblib.effective_n_jobs(None))
    if n_jobs == 1:
        return 1
    if n_jobs > 0:
        return min(int(n_jobs), 4 * (os.cpu_count() or 1))
    return max(1, joblib.cpu_count() + 1 + int(n_jobs))


def map_in_order(work: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """``work(item)`` for each item, in order; at most ``threads`` results wait for the caller."""
    if threads == 1:
        yield from map(work, items)
        return
    ahead: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            ahead.append(pool.submit(work, item))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
