"""Three hosts with a cable between each two of them, one of which is cut: both ranks at its ends live, and reach the third."""

import os

import pytest

from conftest import SCALE
from two_hosts import ip, lay_cable, namespaces, start_python

HOSTS = [f"hwthree{os.getpid()}{each}" for each in "abc"]

RANK = """
import os, sys, time
import numpy, hawser

rank, folder, recovery, topology = int(sys.argv[1]), *sys.argv[2:]
world = hawser.World.open(3, rank, hawser.file_directory(folder + "/directory"), timeout=60, recovery=recovery,
                          topology=topology, quorum="majority")
total = numpy.ones(1, numpy.int64)
world.all_reduce(total)
print("up", flush=True)
try:
    while True:
        world.all_reduce(total)
        time.sleep(0.01)
except hawser.DisconnectedError:
    pass
try:
    next = world.shrink(timeout=60) if recovery == "manual" else world.recovered(60).world
    total[0] = 1
    next.all_reduce(total)
    print(f"goes on as {next.rank} of {total[0]}, was {next.old_rank}")
    next.shutdown()
except (hawser.DisconnectedError, hawser.DeniedError) as error:
    print(error)
    world.close()
"""


@pytest.fixture
def hosts():
    with namespaces(HOSTS):
        for one, other in ((0, 1), (0, 2), (1, 2)):
            lay_cable(f"cable{one}{other}", HOSTS[one], f"10.79.{one}{other}.1/24", HOSTS[other],
                      f"10.79.{one}{other}.2/24")
        yield HOSTS


def run_ranks(hosts, folder, cut, *arguments):
    """What each rank says at its end, after the cable between two of them was cut."""
    ranks = [start_python(host, RANK, str(rank), str(folder), *arguments, HAWSER_PEER_TIMEOUT="1s")
             for rank, host in enumerate(hosts)]
    try:
        for process in ranks:
            assert process.stdout.readline() == "up\n", process.stderr.read()
        for end in cut:
            ip("-n", hosts[end], "link", "set", f"cable{cut[0]}{cut[1]}", "down")
        said = []
        for process in ranks:
            out, err = process.communicate(timeout=60 * SCALE)
            assert process.returncode == 0, f"{out}\n{err}"
            said.append(out.strip())
        return said
    finally:
        for process in ranks:
            process.kill()
            process.wait()


@pytest.mark.parametrize("cut, recovery", [((0, 1), "manual"), ((0, 2), "automatic")])
def test_of_two_ranks_that_lost_each_other_the_higher_is_left_out(hosts, tmp_path, cut, recovery):
    said = run_ranks(hosts, tmp_path, cut, recovery, "full")
    loser = max(cut)
    for number, rank in enumerate(each for each in range(3) if each != loser):
        assert said[rank] == f"goes on as {number} of 2, was {rank}"
    assert f"holds this rank, {loser}, for failed" in said[loser]


@pytest.mark.parametrize("recovery", ["manual", "automatic"])
def test_one_part_of_a_sparse_world_goes_on_where_a_majority_is_asked_for(hosts, tmp_path, recovery):
    said = run_ranks(hosts, tmp_path, (1, 2), recovery, "edges:0-1,1-2")
    assert said[:2] == ["goes on as 0 of 2, was 0", "goes on as 1 of 2, was 1"]
    assert "has no quorum: 1 ranks are left of 3 that are not proven dead" in said[2]
