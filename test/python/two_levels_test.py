"""Ranks on two hosts, two on each: they know who is where, and collectives go on two levels."""

import os
import sys

import pytest

from conftest import SCALE
from two_hosts import hosts, start_python  # noqa: F401 (hosts is a fixture)

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")

RANK = """
import os, sys
import numpy, hawser

rank, folder = int(sys.argv[1]), sys.argv[2]
world = hawser.World.open(size=4, rank=rank, directory=hawser.file_directory(folder), timeout=60)
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
    mine = numpy.arange(count, dtype=numpy.int64) + 10 * rank
    world.gather(gathered, mine, root=1)
    assert rank != 1 or (gathered.reshape(4, count) == numpy.arange(count) + 10 * numpy.arange(4)[:, None]).all(), count
    world.scatter(part, numpy.arange(4 * count, dtype=numpy.int64), root=3)
    assert (part == numpy.arange(rank * count, (rank + 1) * count)).all(), count
    prefix = numpy.full(count, 1 << rank)
    world.scan(prefix, "sum")
    assert (prefix == (2 << rank) - 1).all(), count
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
print([name for name in ("staged in hosts", "boards in hosts", "pat") if f'"{name}"' in top], flush=True)
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
            assert out == "['staged in hosts', 'boards in hosts', 'pat']\n", out
    finally:
        for process in both:
            process.kill()
            process.wait()


# Five ranks, one of which kills itself between two collectives of the others.
SURVIVOR = """
import os, signal, sys
import numpy, hawser

rank, folder, dies = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
world = hawser.World.open(size=5, rank=rank, directory=hawser.file_directory(folder), timeout=60)
small = numpy.zeros(10)
large, total = world.empty(100_000, "float32"), world.empty(100_000, "float32")
for number in range(700):
    small[:] = rank + number
    world.all_reduce(small)
    assert (small == 5 * number + 10).all(), number
for number in range(10):
    large[:] = rank + number
    world.broadcast(large, root=number % 5)
    assert (large == number % 5 + number).all(), number
world.agree(True)  # Unlike a barrier it ends well for all, though one of them dies when it has heard.
if rank == dies:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        world.all_reduce(small, timeout=30)
        world.broadcast(large, root=1, timeout=30)
except hawser.DisconnectedError:
    assert list(world.failed) == [dies], world.failed
world = world.shrink(timeout=30)
assert world.size == 4
for number in range(700):
    small[:] = world.rank + number
    world.all_reduce(small)
    assert (small == 4 * number + 6).all(), number
    large[:] = world.rank
    if number % 50 == 0:
        world.all_reduce(large, out=total)
        assert (total == 6).all(), number
world.shutdown(30)
"""

SEVERAL = """
import subprocess, sys

code, folder, dies, *ranks = sys.argv[1:]
started = {rank: subprocess.Popen([sys.executable, "-c", code, rank, folder, dies]) for rank in ranks}
for rank, process in started.items():
    assert process.wait() == (-9 if rank == dies else 0), rank
"""


@pytest.mark.parametrize("dies", [0, 2, 3])  # A leader, its mate, and the leader of the other host, of two ranks.
def test_a_rank_that_is_killed_ends_the_collectives_of_both_hosts(hosts, tmp_path, dies):  # noqa: F811
    both = [start_python(hosts[0], SEVERAL, SURVIVOR, str(tmp_path), str(dies), "0", "1", "2"),
            start_python(hosts[1], SEVERAL, SURVIVOR, str(tmp_path), str(dies), "3", "4")]
    try:
        for process in both:
            out, err = process.communicate(timeout=60 * SCALE)
            assert process.returncode == 0, f"{out}\n{err}"
    finally:
        for process in both:
            process.kill()
            process.wait()
