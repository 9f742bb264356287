"""Weights from one rank to all others, one rank a process: `hawser run -n 4 python examples/world_weights.py`.

Rank 0 has the weights, as if it had read them from a file. It tells the others their names, types and shapes, and then
broadcasts each array. The arrays lie in memory that all ranks of a host map (`World.empty`), so a large one is read
where it lies.
"""

import time
import zlib

import numpy

import hawser

LAYERS, SIDE = 4, 512


def load():
    random = numpy.random.default_rng(7)
    return {f"layer.{i}.weight": random.standard_normal((SIDE, SIDE), dtype=numpy.float32) for i in range(LAYERS)}


def distribute(world, weights):
    """What rank 0 gives, on all ranks."""
    table = None
    if world.rank == 0:
        world.register("table", lambda: [(name, str(each.dtype), list(each.shape)) for name, each in weights.items()])
    world.barrier()
    table = world.call(0, "table", timeout=10)
    all_weights = {}
    for name, dtype, shape in table:
        all_weights[name] = world.empty(tuple(shape), dtype)
        if world.rank == 0:
            all_weights[name][...] = weights[name]
        world.broadcast(all_weights[name], root=0)
    return all_weights


def main():
    with hawser.World.open() as world:
        weights = load() if world.rank == 0 else {}
        begin = time.perf_counter()
        weights = distribute(world, weights)
        seconds = time.perf_counter() - begin
        sums = numpy.empty((world.size, len(weights)), numpy.int64)
        world.all_gather(sums, numpy.array([zlib.crc32(each) for each in weights.values()], numpy.int64))
        assert (sums == sums[0]).all(), "a rank has other weights"
        if world.rank == 0:
            size = sum(each.nbytes for each in weights.values())
            print(f"{len(weights)} arrays, {size >> 20} MiB, to {world.size} ranks in {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
