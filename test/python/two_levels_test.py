"""Ranks on two hosts, two on each: they know who is where, and collectives go on two levels."""

import os
import sys

from conftest import SCALE
from two_hosts import hosts, start_python  # noqa: F401 (hosts is a fixture)

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")

RANK = """
import os, sys
import numpy, hawser

rank, folder = int(sys.argv[1]), sys.argv[2]
world = hawser.World.open(4, rank, hawser.file_directory(folder), timeout=60)
assert [world.host_of(each) for each in range(4)] == [0, 1, 0, 1], "hosts"
assert (world.host, world.local_rank, world.local_size) == (rank % 2, rank // 2, 2)
for _ in range(600):  # Ranks of a host try again until all of them see its boards.
    world.barrier()
for count in (1, 3, 1000, 100_001):
    mine = numpy.arange(count, dtype=numpy.int64) + rank
    world.all_reduce(mine)
    assert (mine == 4 * numpy.arange(count) + 6).all(), count
    mine = numpy.full(count, rank)
    world.broadcast(mine, root=3)
    assert (mine == 3).all(), count
    mine = numpy.full(count, 1 << rank)
    world.reduce(mine, root=2)
    assert rank != 2 or (mine == 15).all(), count
    gathered = numpy.zeros(4 * count, dtype=numpy.int64)
    world.all_gather(gathered, numpy.arange(count, dtype=numpy.int64) + 10 * rank)
    assert (gathered.reshape(4, count) == numpy.arange(count) + 10 * numpy.arange(4)[:, None]).all(), count
    part = numpy.zeros(count, dtype=numpy.int64)
    world.reduce_scatter(part, numpy.arange(4 * count, dtype=numpy.int64) + rank)
    assert (part == 4 * numpy.arange(rank * count, (rank + 1) * count) + 6).all(), count
    world.barrier()
part = world.split(rank // 2)
assert [part.host_of(each) for each in range(2)] == [0, 1], "one rank of each host"
assert (part.local_rank, part.local_size) == (0, 1)
alone = world.split(rank % 2)
assert (alone.host, alone.local_rank, alone.local_size) == (0, rank // 2, 2)
print("done", flush=True)
sys.stdin.readline()
world.shutdown()
"""

# Two ranks of one host, and what `hawser top` says of them there.
HOST = """
import json, subprocess, sys

hawser, code, folder, *ranks = sys.argv[1:]
started = [subprocess.Popen([sys.executable, "-c", code, rank, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True) for rank in ranks]
for process in started:
    assert process.stdout.readline() == "done\\n"
top = subprocess.run([hawser, "top", "world", "--once", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
json.loads(top)
print([name for name in ("two levels", "boards in hosts", "pat") if f'"{name}"' in top], flush=True)
for process in started:
    process.stdin.write("\\n")
    process.stdin.flush()
for process in started:
    assert process.wait() == 0
"""


def test_ranks_know_their_hosts_and_go_on_two_levels(hosts, tmp_path):  # noqa: F811
    both = [start_python(name, HOST, HAWSER, RANK, str(tmp_path), str(number), str(number + 2))
            for number, name in enumerate(hosts)]
    try:
        for process in both:
            out, err = process.communicate(timeout=60 * SCALE)
            assert process.returncode == 0, f"{out}\n{err}"
            assert out == "['two levels', 'boards in hosts', 'pat']\n", out
    finally:
        for process in both:
            process.kill()
            process.wait()
