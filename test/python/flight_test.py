"""`hawser top WORLD`: what the ranks of a world do, and did, and whom they wait for."""

import json
import os
import subprocess
import sys
import uuid

import pytest

from conftest import SCALE, eventually

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
PATIENCE = 60 * SCALE

RANK = """
import os, sys, time
import numpy, hawser

world = hawser.World.open()
numbers = numpy.ones(1000, "float32")
for _ in range(3):
    world.all_reduce(numbers)
while world.rank == 1 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
if world.rank == 1 and sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
world.all_reduce(numbers)
world.shutdown(10)
"""


LEAVING = """
import os, sys, time
import hawser

world = hawser.World.open()
world.barrier()
while world.rank == 1 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
world.shutdown(60)
"""


def top(name, *arguments, expect=0):
    done = subprocess.run([HAWSER, "top", name, *arguments, "--json"], capture_output=True, text=True)
    assert done.returncode == expect, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def ranks(name, tmp_path, what, program=RANK):
    script = tmp_path / "rank.py"
    script.write_text(program)
    return subprocess.Popen([HAWSER, "run", "-n", "3", "--", sys.executable, str(script), what, str(tmp_path / "go")],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ, HAWSER_WORLD_NAME=name.removeprefix("world.")))


def stuck(name):
    """The world, once two of its ranks wait for the third."""
    done = subprocess.run([HAWSER, "top", name, "--once", "--json"], capture_output=True, text=True)
    worlds = json.loads(done.stdout).get("worlds", []) if done.returncode == 0 else []
    return worlds and worlds[0]["behind"] and len(worlds[0]["behind"][0]["waiting"]) == 2 and worlds[0]


@pytest.fixture
def name():
    """Of a world that nobody else has."""
    return f"world.{uuid.uuid4().hex[:12]}"


def test_a_live_world_tells_whom_it_waits_for(name, tmp_path):
    process = ranks(name, tmp_path, "wait")
    world = eventually(lambda: stuck(name))
    assert (world["size"], [rank["state"] for rank in world["ranks"]]) == (3, ["up"] * 3)
    late = world["behind"][0]
    assert (late["rank"], late["number"], late["last_number"], late["is_alive"]) == (1, 4, 3, True), late
    assert late["operation"] == "all_reduce f32" and late["waiting"] == [0, 2], late
    text = subprocess.run([HAWSER, "top", name, "--once"], capture_output=True, text=True, check=True).stdout
    assert f"rank 1 of '{name}' has not begun all_reduce f32 number 4" in text, text
    assert max(len(line) for line in text.splitlines()) < 200, text
    (tmp_path / "go").touch()
    out = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0, out
    assert "flight recorder" in top(name, "--post-mortem", expect=12)["error"]["message"]


def test_a_shutdown_has_its_own_name(name, tmp_path):
    process = ranks(name, tmp_path, "leave", LEAVING)
    world = eventually(lambda: stuck(name))
    late = world["behind"][0]
    assert (late["rank"], late["operation"], late["waiting"]) == (1, "shutdown", [0, 2]), late
    (tmp_path / "go").touch()
    out = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0, out


def test_a_rank_that_was_killed_is_found_afterwards(name, tmp_path):
    process = ranks(name, tmp_path, "kill")
    eventually(lambda: stuck(name))
    (tmp_path / "go").touch()
    out = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode != 0 and "rank 1" in out, out
    world = top(name, "--post-mortem")["worlds"][0]
    assert [rank["state"] for rank in world["ranks"]] == ["dead"] * 3, world
    assert [(late["rank"], late["number"]) for late in world["behind"]] == [(1, 4)], world["behind"]
    for rank in world["ranks"]:
        flight = rank["flight_recorder"]
        (group,) = flight["pg_config"].values()
        assert group["desc"] == name and group["ranks"] == "[0, 1, 2]", group
        calls = [entry for entry in flight["entries"] if entry["profiling_name"] == "hawser:all_reduce"]
        assert [entry["collective_seq_id"] for entry in calls][:3] == [1, 2, 3], calls
        assert all(entry["input_sizes"] == [[1000]] and entry["input_dtypes"] == ["Float"] for entry in calls), calls
        assert [entry["state"] for entry in calls][:3] == ["completed"] * 3, calls


GUESTS = """
import os, sys, threading, time
import hawser, numpy

folder, name, end = sys.argv[1:4]
rank = int(sys.argv[4])
agent = hawser.Agent(f"{name}-node{rank}", directory=f"file:{folder}/cards", backends=["shm"])
step = hawser.World.open(size=2, rank=rank, agent=agent, name=f"{name}-step", timeout=60)
pairs = hawser.World.open(size=2, rank=rank, agent=agent, name=f"{name}-pairs", timeout=60)
numbers = numpy.ones(10, "float32")
step.all_reduce(numbers)
pairs.barrier()
half = step.split(rank)
twin = step.duplicate()
half.barrier()
twin.barrier()
open(f"{folder}/ready{rank}", "w").close()
while not os.path.exists(f"{folder}/go"):
    if rank == 0 and twin is not None:
        waiting = [twin.iall_reduce(numbers), pairs.ibarrier()]
        twin = None
    time.sleep(0.01)
if end == "kill":
    os.kill(os.getpid(), 9)
"""


def test_all_worlds_of_an_agent_and_their_groups_are_shown(name, tmp_path):
    script = tmp_path / "guest.py"
    script.write_text(GUESTS)
    processes = [subprocess.Popen([sys.executable, str(script), str(tmp_path), name, "kill", str(rank)])
                 for rank in range(2)]
    try:
        eventually(lambda: all((tmp_path / f"ready{rank}").exists() for rank in range(2)), PATIENCE)

        def waits_in(world):
            done = subprocess.run([HAWSER, "top", world, "--once", "--json"], capture_output=True, text=True)
            worlds = json.loads(done.stdout).get("worlds", []) if done.returncode == 0 else []
            return [(late["world"], late["operation"], late["rank"]) for each in worlds for late in each["behind"]]

        step, pairs = f"{name}-step", f"{name}-pairs"
        eventually(lambda: waits_in(pairs) == [(pairs, "barrier", 1)])
        (late,) = eventually(lambda: waits_in(step))
        twin = late[0]
        assert twin.startswith(step + "/") and late[1:] == ("all_reduce f32", 1), late
        text = subprocess.run([HAWSER, "top", step, "--once"], capture_output=True, text=True, check=True).stdout
        assert f"world '{step}': 2 of 2 ranks" in text and f"'{twin}': 2 of 2 ranks" in text, text
        assert text.count(": 1 of 1 ranks") == 2, text  # The split: each of its two groups.

        # The agent: all of its worlds.
        agent = f"{name}-node0"
        (row,) = top(agent, "--once")["agents"]
        assert sorted(each["world"] for each in row["worlds"]) == [pairs, step], row["worlds"]
        flights = {each["world"]: each["flight_recorder"] for each in row["worlds"]}
        names = {group["desc"] for group in flights[step]["pg_config"].values()}
        assert {step, twin} < names and len(names) == 3, names
        (open_one,) = [each for each in flights[pairs]["entries"] if each["state"] == "started"]
        assert open_one["profiling_name"] == "hawser:barrier", open_one
        text = subprocess.run([HAWSER, "top", agent, "--once"], capture_output=True, text=True, check=True).stdout
        assert f"world '{pairs}': rank 0 of 2, barrier number" in text, text
        assert f"world '{twin}': rank 0 of 2, all_reduce f32 number" in text, text
    finally:
        (tmp_path / "go").touch()
        for process in processes:
            process.wait(PATIENCE)
    # Both are dead. By the world's name, by an agent's, and all of them.
    for named, wanted in ((step, {step}), (pairs, {pairs}), (agent, {step, pairs})):
        worlds = top(named, "--post-mortem")["worlds"]
        assert {world["world"] for world in worlds} == wanted, worlds
        for world in worlds:
            assert [rank["state"] for rank in world["ranks"]] == ["dead"] * 2, world
    everything = json.loads(subprocess.run([HAWSER, "top", "--post-mortem", "--json"], capture_output=True, text=True,
                                           check=True).stdout)["worlds"]
    assert {step, pairs} <= {world["world"] for world in everything}
