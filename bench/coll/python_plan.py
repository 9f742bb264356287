"""What the programs of this folder measure (plan.h), in Python: a program gives its calls for two numpy arrays."""

from __future__ import annotations

import json
import sys
import time
from typing import Callable, Protocol

import numpy


class Ranks(Protocol):
    """A library's ranks. The arrays of `calls_on` are float32; `out` has room for all ranks' inputs."""

    rank: int
    size: int

    def barrier(self) -> None: ...

    def most(self, values: numpy.ndarray) -> None:
        """Each value becomes the largest of all ranks'."""

    def calls_on(self, x: numpy.ndarray, out: numpy.ndarray) -> dict[str, Callable[[], object]]: ...


def main(ranks: Ranks) -> None:
    """Arguments: WHO SCALE OPS SIZES."""
    who, scale, ops, sizes = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(","), sys.argv[4].split(",")
    for op in ops:
        for text in ["0"] if op == "barrier" else sizes:
            run(who, scale, op, int(text), ranks)


def filled(count: int, rank: int, repetition: int) -> numpy.ndarray:
    return ((numpy.arange(count) + rank * 7 + repetition * 3) % 64).astype(numpy.float32)


def run(who: str, scale: float, op: str, size_bytes: int, ranks: Ranks) -> None:
    count = size_bytes // 4
    wanted = 2000 if size_bytes <= 16384 else 2000 * 16384 / size_bytes
    repetitions = max(10, int(wanted * scale))
    warm = 1 + repetitions // 10
    x, out = numpy.zeros(count, numpy.float32), numpy.zeros(count * ranks.size, numpy.float32)
    call = ranks.calls_on(x, out)[op]
    seconds, wrong = [], 0
    for i in range(-warm, repetitions):
        x[:] = filled(count, ranks.rank, i + warm)  # Written anew each time.
        ranks.barrier()
        begin = time.perf_counter()
        call()
        if i >= 0:
            seconds.append(time.perf_counter() - begin)
        if i % 16 == 0:
            wrong += wrong_of(op, x, out, count, ranks, i + warm)
    times = numpy.array(seconds)
    ranks.most(times)
    if ranks.rank == 0:
        times = numpy.sort(times) * 1e6
        print(json.dumps({"who": who, "op": op, "bytes": size_bytes, "n": repetitions,
                          "mean": round(float(times.mean()), 3),
                          "p50": round(float(times[repetitions // 2]), 3),
                          "p99": round(float(times[int(repetitions * 0.99)]), 3), "wrong": wrong}), flush=True)


def wrong_of(op: str, x: numpy.ndarray, out: numpy.ndarray, count: int, ranks: Ranks, repetition: int) -> int:
    """Elements that are not what they should be."""
    of_ranks = [filled(count, each, repetition) for each in range(ranks.size)]
    each = count // ranks.size
    share = slice(ranks.rank * each, (ranks.rank + 1) * each)
    if op == "all_reduce":
        got, right = x, sum(of_ranks)
    elif op == "broadcast" or (op == "pingpong" and ranks.rank < 2):
        got, right = x, of_ranks[0]
    elif op == "all_gather":
        got, right = out, numpy.concatenate(of_ranks)
    elif op == "reduce_scatter":
        got, right = out[:each], sum(of_ranks)[share]
    elif op == "all_to_all":
        got, right = out[:count], numpy.concatenate([its[share] for its in of_ranks])
    else:
        return 0
    return int((got != right).sum())
