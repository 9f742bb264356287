"""Collectives of processes of one host that read each other's memory (`World.empty`), one of which may be killed."""

import gc
import json
import os
import subprocess
import sys
import uuid

import numpy
import pytest

import hawser
from conftest import SCALE
from hawser import World

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
PATIENCE = 60 * SCALE

RANK = """
import os, subprocess, sys, time
import numpy, hawser

world = hawser.World.open()
count, rounds = 400_003, 30
data, total = world.empty(count, "float32"), world.empty(count, "float32")
for round in range(rounds):
    data[:] = numpy.arange(count) % 50 + world.rank + round
    world.all_reduce(data, out=total)
    right = world.size * (numpy.arange(count) % 50 + round) + sum(range(world.size))
    assert (total == right).all(), (round, total, right)
if sys.argv[1] == "kill" and world.rank == 1:
    os.kill(os.getpid(), 9)
try:
    while sys.argv[1] == "kill":
        world.all_reduce(data, out=total)
except hawser.DisconnectedError as error:
    assert error.ranks == [1], error.ranks
    print(f"rank {world.rank} goes on", flush=True)
    world = world.shrink()
    data[:] = 1
    world.all_reduce(data)
    assert (data == world.size).all()
world.barrier()
if world.rank == 0:
    print(subprocess.run([sys.argv[2], "top", sys.argv[3], "--once", "--json"], capture_output=True, text=True).stdout, flush=True)
world.barrier()
world.shutdown(20)
"""


def run(tmp_path, what, ranks=3):
    name = f"world.{uuid.uuid4().hex[:12]}"
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    return subprocess.run([HAWSER, "run", "-n", str(ranks), "--", sys.executable, str(script), what, HAWSER, name],
                          capture_output=True, text=True, timeout=PATIENCE,
                          env=dict(os.environ, HAWSER_WORLD_NAME=name.removeprefix("world.")))


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_read_each_others_memory(tmp_path, ranks):
    done = run(tmp_path, "all", ranks)
    assert done.returncode == 0, (done.stdout, done.stderr)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith('[0] {"')]
    for rank in json.loads(line[4:])["worlds"][0]["ranks"]:
        calls = [each for each in rank["flight_recorder"]["entries"] if each["profiling_name"] == "hawser:all_reduce"]
        assert calls[0]["algorithm"] != "mapped", "nobody has mapped anything before the first"
        assert [each["algorithm"] for each in calls[-5:]] == ["mapped"] * 5, [each["algorithm"] for each in calls]


def test_a_rank_that_is_killed_meanwhile_is_named_and_the_others_go_on(tmp_path):
    done = run(tmp_path, "kill")
    assert "rank 0 goes on" in done.stdout and "rank 2 goes on" in done.stdout, (done.stdout, done.stderr)


def test_empty_has_shape_and_type_and_goes_with_its_arrays():
    for world in World.local(2):
        array = world.empty((3, 5), "float64")
        assert (array.shape, array.dtype, array.sum()) == ((3, 5), numpy.float64, 0)
        array[:] = 7
        part = array[1, 2:]
        del array
        gc.collect()
        assert (part == 7).all()
        assert world.empty(0).shape == (0,)
        with pytest.raises(hawser.InvalidError, match="Python objects"):
            world.empty(3, "object")
        world.close()
        assert (part == 7).all()
