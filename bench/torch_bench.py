#!/usr/bin/env python3
"""Times torch.distributed on the backend hawser beside Gloo, in the same processes, by turns.

    python -m venv peers && peers/bin/pip install torch numpy
    PYTHONPATH=build/release/python peers/bin/python bench/torch_bench.py --ranks 4

Each rank has a group of each backend. In every round both groups do every operation at every size, one after the other;
each round begins with the other one. Before each repetition the input is written anew, and the ranks meet. A repetition
takes what its slowest rank takes. Shown are the medians over the rounds of each round's mean, p50 and p99 in microseconds,
and how often Hawser's time goes into Gloo's: above 1 Hawser is ahead. Every result is checked once a round. With `--busy N`
so many endless loops want the cores meanwhile.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from datetime import timedelta

BACKENDS = ("hawser", "gloo")
FIGURES = ("mean", "p50", "p99")
OPS = "all_reduce,all_gather_into_tensor,reduce_scatter_tensor,broadcast,all_to_all_single,barrier"
SIZES = "4,4096,65536,1048576,16777216"


class Work:
    """One operation of one size: its buffers, and what must come out."""

    def __init__(self, op: str, size: int, rank: int, ranks: int) -> None:
        import torch

        self.op, self.rank, self.ranks = op, rank, ranks
        elements = max(1, size // 4)  # Bytes of the larger buffer.
        if op in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"):
            elements = max(1, elements // ranks) * ranks
        share = elements // ranks
        self.input = torch.empty(share if op == "all_gather_into_tensor" else elements)
        self.output = torch.empty(share if op == "reduce_scatter_tensor" else elements)

    def write(self, turn: int) -> None:
        self.input.fill_(self.rank + turn)

    def call(self, group) -> None:
        import torch.distributed as dist

        if self.op == "barrier":
            dist.barrier(group=group)
        elif self.op == "all_reduce":
            dist.all_reduce(self.input, group=group)
        elif self.op == "broadcast":
            dist.broadcast(self.input, 0, group=group)
        else:
            getattr(dist, self.op)(self.output, self.input, group=group)

    def check(self, turn: int) -> None:
        every = [rank + turn for rank in range(self.ranks)]
        if self.op == "barrier":
            return
        if self.op in ("all_reduce", "reduce_scatter_tensor"):
            right = [sum(every)]
        else:
            right = [turn] if self.op == "broadcast" else every
        got = self.input if self.op in ("all_reduce", "broadcast") else self.output
        blocks = got.reshape(len(right), -1)
        for block, value in zip(blocks, right):
            if not bool((block == value).all()):
                raise SystemExit(f"{self.op}: rank {self.rank} got {block[0].item()}, {value} is right")


def repetitions(size: int, scale: float) -> int:
    return max(5, int(scale * min(1000, 2e9 / (size + 2e6))))


def rank_of(rank: int, asked, path: str) -> None:
    import torch
    import torch.distributed as dist

    from hawser import torch_backend

    torch_backend.register()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=asked.ranks,
                            timeout=timedelta(seconds=300))
    groups = {"gloo": dist.group.WORLD, "hawser": dist.new_group(backend="hawser", timeout=timedelta(seconds=300))}
    rows: dict = {}
    for turn in range(asked.rounds):
        for op in asked.ops.split(","):
            for size in [0] if op == "barrier" else [int(each) for each in asked.sizes.split(",")]:
                work = Work(op, size, rank, asked.ranks)
                for backend in BACKENDS if turn % 2 == 0 else BACKENDS[::-1]:
                    times = timed(work, groups[backend], repetitions(size, asked.scale), turn)
                    every = [None] * asked.ranks
                    dist.all_gather_object(every, times)
                    slowest = sorted(max(each) for each in zip(*every))
                    rows.setdefault((op, size), {}).setdefault(backend, []).append(
                        (statistics.fmean(slowest), statistics.median(slowest),
                         slowest[min(len(slowest) - 1, int(0.99 * len(slowest)))]))
    if rank == 0:
        show(rows, asked)
    dist.barrier()
    dist.destroy_process_group()


def timed(work: Work, group, times: int, turn: int) -> list[float]:
    import torch.distributed as dist

    all_times = []
    for number in range(times + 3):
        work.write(turn + number)
        dist.barrier(group=group)
        begun = time.perf_counter()
        work.call(group)
        all_times.append(1e6 * (time.perf_counter() - begun))
    work.check(turn + times + 2)
    return all_times[3:]


def show(rows: dict, asked) -> None:
    for (op, size), ways in rows.items():
        row = {"op": op, "bytes": size}
        for backend in BACKENDS:
            for place, name in enumerate(FIGURES):
                row[f"{backend}_{name}"] = round(statistics.median(each[place] for each in ways[backend]), 1)
        for name in FIGURES:
            row[f"ratio_{name}"] = round(row[f"gloo_{name}"] / row[f"hawser_{name}"], 2)
        if asked.json:
            print(json.dumps(row), flush=True)
        else:
            cells = "; ".join(f"{name}: {row[f'hawser_{name}']:>9} and {row[f'gloo_{name}']:>9} us, "
                              f"{row[f'ratio_{name}']:>6} times" for name in FIGURES)
            print(f"{op:24} {size:>9} B  {cells}", flush=True)


def spin() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=0.3, help="of the number of repetitions")
    parser.add_argument("--ops", default=OPS)
    parser.add_argument("--sizes", default=SIZES, help="bytes of the larger buffer of a rank")
    parser.add_argument("--busy", type=int, default=0, help="so many programs that compute without end beside the ranks")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=rank_of, args=(rank, asked, f"{folder}/init")) for rank in range(asked.ranks)]
        busy = [context.Process(target=spin, daemon=True) for _ in range(asked.busy)]
        for each in ranks + busy:
            each.start()
        for each in ranks:
            each.join()
    if any(each.exitcode for each in ranks):
        raise SystemExit("a rank failed")


if __name__ == "__main__":
    main()
