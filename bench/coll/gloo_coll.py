"""The same by Gloo, as torch.distributed has it: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, then WHO SCALE OPS SIZES."""

import json
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    who, scale, ops, sizes = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(","), sys.argv[4].split(",")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for op in ops:
        for text in ["0"] if op == "barrier" else sizes:
            run(who, scale, op, int(text), rank, size)
    dist.destroy_process_group()


def filled(count: int, rank: int, repetition: int) -> torch.Tensor:
    return ((torch.arange(count) + rank * 7 + repetition * 3) % 64).float()


def run(who: str, scale: float, op: str, size_bytes: int, rank: int, size: int) -> None:
    count = size_bytes // 4
    wanted = 2000 if size_bytes <= 16384 else 2000 * 16384 / size_bytes
    repetitions = max(10, int(wanted * scale))
    warm = 1 + repetitions // 10
    x, out = torch.zeros(count), torch.zeros(count * size)
    each = count // size
    calls = {
        "barrier": dist.barrier,
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(out, x),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(out[:each], x),
        "all_to_all": lambda: dist.all_to_all_single(out[:count], x),
        "pingpong": lambda: pingpong(x, rank),
    }
    call = calls[op]
    seconds, wrong = [], 0
    for i in range(-warm, repetitions):
        x.copy_(filled(count, rank, i + warm))  # Written anew each time.
        dist.barrier()
        begin = time.perf_counter()
        call()
        if i >= 0:
            seconds.append(time.perf_counter() - begin)
        if i % 16 == 0:
            wrong += wrong_of(op, x, out, count, rank, size, i + warm)
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    if rank == 0:
        times = times.sort().values * 1e6
        print(json.dumps({"who": who, "op": op, "bytes": size_bytes, "n": repetitions, "p50": round(float(times[repetitions // 2]), 3),
                          "p99": round(float(times[int(repetitions * 0.99)]), 3), "wrong": wrong}), flush=True)


def wrong_of(op: str, x: torch.Tensor, out: torch.Tensor, count: int, rank: int, size: int, repetition: int) -> int:
    """Elements that are not what they should be."""
    of_ranks = [filled(count, each, repetition) for each in range(size)]
    share = slice(rank * (count // size), (rank + 1) * (count // size))
    if op == "all_reduce":
        got, right = x, sum(of_ranks)
    elif op == "broadcast" or (op == "pingpong" and rank < 2):
        got, right = x, of_ranks[0]
    elif op == "all_gather":
        got, right = out, torch.cat(of_ranks)
    elif op == "reduce_scatter":
        got, right = out[:count // size], sum(of_ranks)[share]
    elif op == "all_to_all":
        got, right = out[:count], torch.cat([each[share] for each in of_ranks])
    else:
        return 0
    return int((got != right).sum())


def pingpong(x: torch.Tensor, rank: int) -> None:
    if rank == 0:
        dist.send(x, 1)
        dist.recv(x, 1)
    elif rank == 1:
        dist.recv(x, 0)
        dist.send(x, 0)


if __name__ == "__main__":
    main()
