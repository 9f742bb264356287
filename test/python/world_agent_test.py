"""Worlds on agents of the program's, batches, handlers by number, pools, and what a world tells of itself."""

import asyncio
import gc
import multiprocessing
import os
import signal
import threading

import numpy
import pytest

import hawser
from hawser import Recv, Send, World

from conftest import SCALE


def on_all(worlds, call):
    """Runs call(world) in a thread for each rank."""
    errors = []

    def run(world):
        try:
            call(world)
        except BaseException as error:  # Told by the thread that started this one.
            errors.append(error)

    threads = [threading.Thread(target=run, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def add_up(world):
    x = numpy.full(3, world.rank + 1.0)
    world.all_reduce(x)
    assert x[0] == world.size * (world.size + 1) / 2


@pytest.fixture
def agents():
    made = [hawser.Agent(f"node{i}", backends=["shm"]) for i in range(2)]
    yield made
    for each in made:
        each.close(10)


def open_all(agents, name, **options):
    made = [None] * len(agents)

    def run(rank):
        peers = [agent.add_peer(other.card()) if other is not agent else None for other in agents
                 for agent in [agents[rank]]]
        made[rank] = World.open(rank=rank, agent=agents[rank], peers=peers, name=name, **options)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(agents))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return made


def test_two_worlds_on_one_agent(agents):
    one, two = open_all(agents, "one"), open_all(agents, "two")
    on_all(one, add_up)
    sent = one[0].isend(b"one", 1), two[0].isend(b"two", 1)
    assert two[1].recv().data == b"two" and one[1].recv().data == b"one"
    for each in sent:
        each.wait(10)
    one[0].close(5)
    with pytest.raises(hawser.DisconnectedError, match="rank 0"):
        one[1].recv(source=0, timeout=10)
    assert one[1].failed == [0]
    on_all(two, add_up)
    agents[0].close(10)
    with pytest.raises(hawser.InvalidError, match="closed"):
        two[0].barrier()
    with pytest.raises(hawser.DisconnectedError):
        two[1].barrier(timeout=10)


def test_the_agents_messages_stay_the_programs(agents):
    worlds = open_all(agents, "beside")
    agents[1].open_channel(20)
    there = agents[0].add_peer(agents[1].card())
    there.send(20, b"mine", timeout=10)
    on_all(worlds, add_up)
    for _ in range(1000):
        message = agents[1].take_message(20)
        if message is not None:
            break
        agents[1].wait(0.01)
    assert message.data == b"mine"


def test_worlds_on_agents_that_cannot_be(agents):
    there = agents[0].add_peer(agents[1].card())
    for wrong, why in (({"peers": [None, there]}, "no agent"), ({"agent": 5, "peers": [None, there]}, "no hawser.Agent"),
                       ({"agent": agents[0], "peers": [None, 7]}, "no hawser.Peer"),
                       ({"agent": agents[0], "peers": []}, "no ranks"),
                       ({"agent": agents[1], "peers": [None, there]}, "another agent")):
        with pytest.raises(hawser.InvalidError, match=why):
            World.open(rank=0, **wrong)
    with pytest.raises(hawser.InvalidError, match="rank says which"):
        World.open(agent=agents[0], peers=[None, there])
    with pytest.raises(hawser.InvalidError, match="a place to find them"):
        World.open(rank=0, agent=agents[0], peers=[None, there], directory="inproc:none")
    agents[0].close(10)
    with pytest.raises(hawser.InvalidError, match="closed"):
        World.open(rank=0, agent=agents[0], peers=[None, there])


def test_ranks_with_agents_find_one_another_in_a_directory():
    directory = hawser.inproc_directory("world-agents")
    agents = [hawser.Agent(f"listed{i}", backends=["shm"], directory=directory) for i in range(2)]
    made = [None, None]

    def run(rank):
        made[rank] = World.open(size=2, rank=rank, agent=agents[rank], name="listed")

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    on_all(made, add_up)
    told = {each.name: each for each in made[0].config()}
    assert told["world.place"].value == "directory of kind inproc"
    assert (told["name"].value, told["name"].origin) == ("listed0", "agent")
    on_all(made, lambda world: world.shutdown(10))
    for each in agents:
        each.close(10)


def die_in_a_world(folder):
    agent = hawser.Agent("dies", directory=f"file:{folder}")
    world = World.open(size=2, rank=1, agent=agent, name="mortal")
    world.send(b"alive", 0)
    world.recv(source=0)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_ends_the_world_and_not_the_agent(tmp_path):
    other = multiprocessing.get_context("spawn").Process(target=die_in_a_world, args=(tmp_path,))
    other.start()
    agent = hawser.Agent("stays", directory=f"file:{tmp_path}")
    world = World.open(size=2, rank=0, agent=agent, name="mortal", timeout=60 * SCALE)
    assert world.recv(source=1).data == b"alive"
    waits, barrier = world.irecv(source=1), world.ibarrier()
    world.send(b"go", 1)
    for each in (waits, barrier):
        with pytest.raises(hawser.DisconnectedError, match="rank 1|'dies'"):
            each.wait(20 * SCALE)
    other.join()
    alone = world.shrink()
    assert (alone.size, alone.epoch) == (1, 1)
    alone.shutdown(10)
    assert agent.card()
    agent.close(10)


def test_a_forked_child_leaves_its_parents_world_alone(agents):
    worlds = open_all(agents, "forked")
    child = os.fork()
    if child == 0:
        signal.alarm(20 * int(SCALE + 1))  # It must not wait for its parent's locks.
        try:
            worlds[0].send(b"x", 1)
        except hawser.InvalidError:
            del worlds
            gc.collect()
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    on_all(worlds, add_up)


def test_a_world_that_is_dropped_is_a_failure_to_the_others(agents):
    one, two = open_all(agents, "dropped"), open_all(agents, "kept")
    waits = one[1].irecv(source=0)
    one[0] = None
    gc.collect()
    with pytest.raises(hawser.DisconnectedError, match="rank 0"):
        waits.wait(20 * SCALE)
    on_all(two, add_up)


def test_batches():
    a, b = World.local(2)
    into = numpy.zeros(4)
    got = b.ibatch([Recv(into, source=0, tag=1), Recv(source=0, tag=2), Send(b"back", 0, 3)])
    assert len(got) == 3 and not got[0].done()
    assert a.batch([Send(numpy.arange(4.0), 1, 1), Send(b"bytes", 1, 2), Recv(tag=3)])[2].data == b"back"
    told = got.wait(10)
    assert told[0].data is into and list(into) == [0, 1, 2, 3] and told[1].data == b"bytes" and told[2] is None
    assert got.done() and [each.done() for each in got] == [True] * 3

    async def both():
        batch = b.ibatch([Recv(tag=4)])
        a.send(b"awaited", 1, 4)
        return await batch

    assert asyncio.run(both())[0].data == b"awaited"
    wrong = a.ibatch([Send(b"good", 1, 5), Send(b"bad", 7, 5)])
    with pytest.raises(hawser.InvalidError, match="no rank 7"):
        wrong.wait(10)
    assert b.recv(tag=5).data == b"good"
    waiting = b.ibatch([Recv(tag=9), Recv(tag=10)])
    with pytest.raises(hawser.TimedOutError):
        waiting.wait(0.01)
    waiting.cancel()
    with pytest.raises(hawser.CancelledError):
        waiting.wait(10)
    assert a.batch([]) == []
    for nonsense in ([b"x"], [(b"x", 1)], None):
        with pytest.raises(TypeError):
            a.ibatch(nonsense)
    with pytest.raises(hawser.InvalidError, match="no dest"):
        a.ibatch([Send(b"x", None)])
    with pytest.raises(hawser.InvalidError, match="x of a receive"):
        a.ibatch([Recv(b"constant")])


def test_a_dropped_batch_goes_on():
    a, b = World.local(2)
    into = numpy.zeros(1)
    b.ibatch([Recv(into, 0, 1)])
    a.send(numpy.ones(1), 1, 1)
    b.barrier if into[0] else None
    on_all([a, b], lambda world: world.barrier())
    assert into[0] == 1


def test_handlers_by_number():
    a, b = World.local(2)
    b.register(7, lambda x: x + 1)
    b.register("7", lambda x: x + 2)
    assert a.call(1, 7, 1) == 2 and a.call(1, "7", 1) == 3 and a.icall(1, numpy.uint8(7), 5).wait(10) == 6
    with pytest.raises(hawser.NotFoundError, match="handler 8"):
        a.call(1, 8)
    with pytest.raises(hawser.InvalidError, match="handler 7"):
        b.register(7, print)
    for wrong in (7.5, True, None, b"7"):
        with pytest.raises(TypeError):
            b.register(wrong, print)
    with pytest.raises(hawser.InvalidError):
        b.register(-1, print)
    with pytest.raises(hawser.InvalidError):
        a.call(1, 1 << 64)
    b.register(9, lambda: 1 / 0)
    with pytest.raises(hawser.RemoteError, match="division by zero"):
        a.call(1, 9)


def test_pools_of_buffers():
    pool = hawser.BufferPool.with_tiers([(1 << 20, 1), (1000, 2)])
    a, b = World.local(2, pool=pool)
    held = [b.irecv() for _ in range(2)]
    for _ in held:
        a.send(b"x" * 500, 1)
    assert [each.wait(10).data for each in held] == [b"x" * 500] * 2
    told = pool.statistics()
    assert [each["bytes"] for each in told["tiers"]] == [1000, 1 << 20]
    assert told["tiers"][0]["used"] == 2 and told["beyond"] == 0 and b.memory()["pool"] == 2000
    del held, _
    assert pool.statistics()["tiers"][0]["used"] == 0
    pool.trim()
    assert pool.statistics()["bytes"] == 0
    strict = hawser.BufferPool.with_tiers([(10, 1)], refuse=True)
    c, d = World.local(2, pool=strict)
    c.send(b"longer than ten bytes", 1)
    with pytest.raises(hawser.BusyError, match="pool"):
        d.recv(timeout=10)
    assert d.recv(numpy.zeros(30, "u1"), timeout=10).bytes == 21  # It stayed.
    assert [each["count"] for each in hawser.BufferPool.training().statistics()["tiers"]] == [256, 32, 16, 4]
    for wrong in ([], [(0, 1)], [(5, 1), (5, 2)], [5], [(1, 2, 3)]):
        with pytest.raises(hawser.InvalidError):
            hawser.BufferPool.with_tiers(wrong)
    with pytest.raises(hawser.InvalidError, match="no hawser.BufferPool"):
        World.local(1, pool=5)


def test_config_and_memory(monkeypatch):
    monkeypatch.setenv("HAWSER_HEARTBEAT", "300ms")
    a, b = World.local(2, quorum="majority")
    told = {each.name: each for each in a.config()}
    assert (told["world.size"].value, told["world.rank"].value) == ("2", "0")
    assert tuple(told["heartbeat"][1:]) == ("300ms", "HAWSER_HEARTBEAT")
    assert told["world.quorum"].origin == "caller" and told["world.timeout"].origin == "default"
    assert set(a.memory()) == {"boards", "unreceived", "receives", "pool", "calls", "collectives", "relays",
                               "flight recorder"}
    a.send(b"x" * 1000, 1)
    assert b.probe(timeout=10) and 1000 <= b.memory()["unreceived"] < 3000
    b.recv()
    assert b.memory()["unreceived"] == 0
