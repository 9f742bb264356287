"""Large collectives of processes of one host, one of which may be killed: in memory that they map (`World.empty`) they
read each other's, and in any other memory they go over boards in pieces."""

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import uuid

import numpy
import pytest

import hawser
from conftest import SCALE
from hawser import World

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
PATIENCE = 60 * SCALE
COUNT, ROUNDS = 400_003, 30


def algorithms(name):
    """By which each rank's all_reduces went, in their order."""
    told = subprocess.run([HAWSER, "top", name, "--once", "--json"], capture_output=True, text=True, check=True).stdout
    return [[call["algorithm"] for call in rank["flight_recorder"]["entries"]
             if call["profiling_name"] == "hawser:all_reduce"] for rank in json.loads(told)["worlds"][0]["ranks"]]


def run_rank(rank, size, folder, name, die, maps, results):
    world = World.open(size=size, rank=rank, directory=hawser.file_directory(folder), name=name, timeout=60)
    empty = world.empty if maps else numpy.empty
    data, total = empty(COUNT, "float32"), empty(COUNT, "float32")
    places = numpy.arange(COUNT) % 50
    for number in range(ROUNDS):
        data[:] = places + rank + number
        world.all_reduce(data, out=total, timeout=30)
        assert (total == size * (places + number) + sum(range(size))).all(), number
    world.barrier()
    told = algorithms(name) if rank == 0 else None
    world.barrier()
    if die and rank == 1:
        data[:] = places
        begun = world.iall_reduce(data, out=total)  # The others may have read some of its input.
        assert begun is not None
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while die:
            data[:] = places
            world.all_reduce(data, out=total, timeout=30)
    except hawser.DisconnectedError:
        assert (data == places).all(), "the input is untouched"
        told = world.failed
        world = world.shrink(timeout=30)
        data[:] = 1
        world.all_reduce(data, timeout=30)
        assert (data == world.size).all()
    results.put((rank, told))
    world.shutdown(30)


def run(tmp_path, size, die, maps=True):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    name = f"world.{uuid.uuid4().hex[:12]}"
    processes = [context.Process(target=run_rank, args=(rank, size, str(tmp_path), name, die, maps, results))
                 for rank in range(size)]
    for process in processes:
        process.start()
    told = dict(results.get(timeout=PATIENCE) for _ in range(size - 1 if die else size))
    for process in processes:
        process.join(PATIENCE)
    return told


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_read_each_others_memory(tmp_path, ranks):
    for calls in run(tmp_path, ranks, False)[0]:
        assert calls[0] != "mapped", "nobody has mapped anything before the first"
        assert calls[-5:] == ["mapped"] * 5, calls


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_bring_other_memory_in_pieces(tmp_path, ranks):
    for calls in run(tmp_path, ranks, False, maps=False)[0]:
        assert calls[-5:] == ["staged"] * 5, calls


@pytest.mark.parametrize("maps", [True, False], ids=["mapped", "staged"])
def test_a_rank_that_is_killed_meanwhile_is_named_and_the_others_go_on(tmp_path, maps):
    assert run(tmp_path, 3, True, maps) == {0: [1], 2: [1]}


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
