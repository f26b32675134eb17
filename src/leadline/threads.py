"""Threads for the CPU kernels, and BLAS kept out of their way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")

_scratch = threading.local()


@dataclass(frozen=True)
class Team:
    """As many threads as a job is worth."""

    size: int

    def run(self, work: Callable[[Part], None], parts: Sequence[Part]) -> None:
        """Do all parts, in any order; the caller works too."""
        remaining = iter(parts)  # taking the next part is atomic, so that the threads may share the iterator

        def take_parts() -> None:
            for part in remaining:
                work(part)

        others = [_pool().submit(take_parts) for _ in range(min(self.size, len(parts)) - 1)]
        try:
            take_parts()
        finally:
            for other in others:
                other.result()

    def step(self, size: int, largest: int) -> int:
        """Return the length of slices of ``size`` things, at most ``largest``, that keep all threads busy."""
        rounds = -(-size // (largest * self.size))
        return -(-size // (rounds * self.size))


ALONE = Team(1)


@contextmanager
def team(*, worth_it: bool, calls_blas: bool = True) -> Iterator[Team]:
    """Give all cores to a job that is worth it, with BLAS, where the job calls it, in one thread each meanwhile.

    Jobs of several callers take turns: one alone keeps every core busy, and none may restore the BLAS threads
    under another.
    """
    if not worth_it or core_count() == 1:
        yield ALONE
        return
    with _taking_turns(), _blas().limit(limits=1, user_api="blas") if calls_blas else nullcontext():
        yield Team(core_count())


def scratch(size: int) -> NDArray[np.float32]:
    """Return this thread's scratch memory, at least ``size`` long: fresh memory would cost page faults."""
    buffer: NDArray[np.float32] | None = getattr(_scratch, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _scratch.buffer = np.empty(size, dtype=np.float32)
    return buffer


def slices(size: int, step: int) -> list[slice]:
    """Cut a range into slices of at most ``step``."""
    return [slice(start, min(size, start + step)) for start in range(0, size, step)]


@lru_cache(maxsize=1)
def core_count() -> int:
    """Return the number of cores this process may use: those it is bound to, at most ``OMP_NUM_THREADS``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")  # Spark sets it to the cores of a task
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(core_count(), thread_name_prefix="leadline")


@lru_cache(maxsize=1)
def _taking_turns() -> threading.Lock:
    return threading.Lock()


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _after_fork() -> None:
    """Forget threads, which do not survive a fork, and a lock that one of them may have held."""
    _pool.cache_clear()
    _taking_turns.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
