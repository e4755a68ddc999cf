"""Threads: how many a fit may use, and libraries that keep to it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import joblib
import threadpoolctl
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Made = TypeVar("Made")

_lock = threading.Lock()
_wanted: list[int] = []  # by the fits under way
_restore: list[Any] = []


def thread_count(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None follows joblib's ``parallel_config`` (else one), -1 all cores, -2 all but one."""
    if n_jobs is None:
        return max(1, joblib.effective_n_jobs(None))
    if n_jobs > 0:
        return min(int(n_jobs), 4 * (os.cpu_count() or 1))
    return max(1, joblib.cpu_count() + 1 + int(n_jobs))


def in_order(work: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """What is made of each item, in their order; no more than one for each thread waits to be asked for."""
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


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """BLAS and OpenMP use at most so many threads meanwhile.

    Their setting belongs to the whole process: fits under way at the same time share the smallest of their limits,
    and the last one to end puts back what was there.
    """
    _enter(threads)
    try:
        yield
    finally:
        _leave(threads)


def _enter(threads: int) -> None:
    with _lock, _free_to_set():
        _wanted.append(threads)
        if len(_wanted) == 1:
            _restore.append(_libraries().limit(limits=threads))
        elif threads < min(_wanted[:-1]):
            _libraries().limit(limits=threads)


def _leave(threads: int) -> None:
    with _lock, _free_to_set():
        _wanted.remove(threads)
        if not _wanted:
            _restore.pop().restore_original_limits()
        elif threads < min(_wanted):
            _libraries().limit(limits=min(_wanted))


@contextmanager
def _free_to_set() -> Iterator[None]:
    """threadpoolctl (from 3.8 on) lets one thread alone set OpenBLAS; ours take turns, and none keeps the right."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    yield
    release(force=True)


def _after_fork() -> None:
    """A child has one thread: fits of the parent's other threads are not under way here."""
    global _lock
    _lock = threading.Lock()
    _wanted.clear()
    _restore.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
