"""C25 of the list in nexar_list_test.py: sparse worlds. Ranks that are no neighbours reach one another by others, in
everything that a world does, and go on when a relay dies.
"""

import multiprocessing
import os
import signal
import threading

import numpy
import pytest

import hawser

SHAPES = [("regular:2", 3), ("regular:2", 6), ("regular:4", 7), ("regular:6", 9), ("regular:6", 16),
          ("hypercube", 2), ("hypercube", 3), ("hypercube", 4), ("hypercube", 6), ("hypercube", 13), ("hypercube", 16),
          ([(0, 1), (1, 2), (2, 3), (3, 4)], 5)]
every_shape = pytest.mark.parametrize("topology, size", SHAPES, ids=[f"{'line' if isinstance(t, list) else t}-{n}" for t, n in SHAPES])


def ranks(topology, size, work, transport=None):
    """Runs `work(world)` by each rank at once; all leave together."""
    worlds, errors = hawser.World.local(size, topology=topology, backends=transport, timeout=60), []

    def run(world):
        try:
            work(world)
            world.shutdown(30)
        except BaseException as error:  # noqa: BLE001 (it is raised below)
            errors.append(error)
            world.close(10)

    threads = [threading.Thread(target=run, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def check_collectives(world, count):
    n, rank = world.size, world.rank
    x = numpy.full(count, rank + 1, dtype="int64")
    out = numpy.empty_like(x)
    world.all_reduce(x, out=out)
    assert (out == n * (n + 1) // 2).all()
    y = x.copy()
    world.broadcast(y, root=n - 1)
    assert (y == n).all()
    y = x.copy()
    world.reduce(y, root=n // 2, op="max")
    assert rank != n // 2 or (y == n).all()
    gathered = numpy.empty(count * n, dtype="int64")
    world.all_gather(gathered, x)
    assert (gathered == numpy.repeat(numpy.arange(n) + 1, count)).all()
    part = numpy.empty(count, dtype="int64")
    world.reduce_scatter(part, gathered)
    assert (part == n * (rank + 1)).all()
    swapped = numpy.empty(count * n, dtype="int64")
    world.all_to_all(swapped, numpy.repeat(numpy.arange(n) + 100 * rank, count))
    assert (swapped == numpy.repeat(100 * numpy.arange(n) + rank, count)).all()
    collected = numpy.empty(count * n, dtype="int64") if rank == n - 1 else None
    world.gather(collected, x, root=n - 1)
    world.scatter(out, collected, root=n - 1)
    assert (out == x).all()
    counts = [r % 3 for r in range(n)]
    uneven = numpy.empty(sum(counts), dtype="int64")
    world.all_gatherv(uneven, numpy.full(counts[rank], rank), counts)
    assert (uneven == numpy.repeat(numpy.arange(n), counts)).all()
    y = x.copy()
    world.scan(y)
    assert (y == (rank + 1) * (rank + 2) // 2).all()
    y = x.copy()
    world.exclusive_scan(y)
    assert rank == 0 or (y == rank * (rank + 1) // 2).all()
    world.barrier()


@every_shape
def test_c25_all_collectives(topology, size):
    def work(world):
        assert world.is_sparse and world.size == size and not world.has_direct_peer(world.rank)
        check_collectives(world, 5)
        check_collectives(world, 10_000)

    ranks(topology, size, work)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_c25_over_each_transport(transport):
    def work(world):
        check_collectives(world, 5000)
        large = world.isend(b"l" * 3_000_000, (world.rank + 3) % 7)
        assert world.recv(source=(world.rank - 3) % 7).data == b"l" * 3_000_000
        large.wait(30)

    ranks("regular:2", 7, work, [transport])


@every_shape
def test_c25_messages_small_and_large_and_from_any_source(topology, size):
    def work(world):
        far = (world.rank + size // 2) % size
        sizes = [0, 1, 1000, 70_000, 1_000_000]
        sends = [world.isend(bytes([world.rank]) * each, far, tag=each) for each in sizes]
        for each in reversed(sizes):
            got = world.recv(source=(world.rank - size // 2) % size, tag=each)
            assert got.data == bytes([(world.rank - size // 2) % size]) * each
        for send in sends:
            send.wait(30)
        world.barrier()
        if world.rank != 0:
            for i in range(20):
                world.send(f"{world.rank} {i}".encode(), 0, tag=world.rank)
            return
        following = [0] * size
        for _ in range(20 * (size - 1)):
            got = world.recv(timeout=30)
            assert got.data == f"{got.source} {following[got.source]}".encode(), "one overtook another"
            following[got.source] += 1

    ranks(topology, size, work)


@every_shape
def test_c25_calls_and_groups(topology, size):
    def work(world):
        world.register("double", lambda x: x * 2)
        world.barrier()
        for rank in range(size):
            assert world.call(rank, "double", rank + world.rank, timeout=30) == 2 * (rank + world.rank)
        assert len(world.call((world.rank + 1) % size, "double", b"x" * 300_000, timeout=30)) == 600_000
        half = world.split(world.rank % 2, key=-world.rank)
        check_collectives(half, 100)
        alike = world.duplicate()
        check_collectives(alike, 3)

    ranks(topology, size, work)


@pytest.mark.parametrize("topology, why", [("regular:3", "even"), ("regular:8", "others"), ("ring", "no topology"),
                                           ([(0, 1), (2, 2)], "itself"), ([(0, 9)], "out of the world"),
                                           ([(0, 1), (2, 3), (4, 5), (6, 7)], "rank 2")])
def test_c25_bad_topologies_are_told_of(topology, why):
    with pytest.raises(hawser.InvalidError, match=why):
        hawser.World.local(8, topology=topology)


def rank_of_a_sparse_world(rank, size, folder, topology, driven, results):
    """Rank 1, a relay, kills itself in the midst of messages that go by it. The others go on in both ways."""
    os.environ["HAWSER_TOPOLOGY"] = topology
    try:
        world = hawser.World.open(size=size, rank=rank, directory=hawser.file_directory(folder), driven=driven, timeout=60)
        assert world.is_sparse and world.has_direct_peer((rank ^ 1) % size)
        check_collectives(world, 1000)
        alive = [r for r in range(size) if r != 1]
        after = alive[(alive.index(rank) + len(alive) // 2) % len(alive)] if rank != 1 else 1
        before = alive[(alive.index(rank) - len(alive) // 2) % len(alive)] if rank != 1 else 1
        world.barrier()
        for i in range(300):
            if rank == 1:
                if i == 100:
                    os.kill(os.getpid(), signal.SIGKILL)
                world.probe(timeout=0.001)  # Progress, and as many rounds as the others.
                continue
            data = f"{i}".encode() * (1 if i % 10 else 30_000)
            send = world.isend(data, after, tag=1)
            assert world.recv(source=before, tag=1, timeout=40).data == data, i
            send.wait(40)
        with pytest.raises(hawser.DisconnectedError, match="rank 1"):
            while True:
                world.barrier(timeout=40)
        assert world.failed == [1]
        smaller = world.shrink(timeout=40)
        check_collectives(smaller, 1000)
        results.put((rank, "went on", smaller.size))
        smaller.shutdown(30)
    except BaseException as error:
        results.put((rank, repr(error), 0))
        raise


@pytest.mark.parametrize("topology, size, driven", [("regular:2", 6, True), ("regular:2", 5, False), ("hypercube", 8, True)])
def test_c25_a_relay_is_killed(tmp_path, topology, size, driven):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_of_a_sparse_world, args=(rank, size, str(tmp_path), topology, driven, results))
                 for rank in range(size)]
    for process in processes:
        process.start()
    told = sorted(results.get(timeout=120) for _ in range(size - 1))
    for process in processes:
        process.join(60)
    assert told == [(rank, "went on", size - 1) for rank in range(size) if rank != 1]
    assert [process.exitcode for process in processes] == [-signal.SIGKILL if rank == 1 else 0 for rank in range(size)]


def rank_of_a_ring(rank, folder, results):
    """Rank 1 stops itself; the others go on by the other way round; once it runs again it is told so."""
    world = hawser.World.open(size=5, rank=rank, directory=hawser.file_directory(folder), topology="regular:2", timeout=60)
    x = numpy.ones(1000)
    try:
        while True:
            world.all_reduce(x, "max", timeout=60)
            if rank == 1 and world.last_number == 5:
                os.kill(os.getpid(), signal.SIGSTOP)
    except hawser.Error as error:
        results.put((rank, type(error).__name__, str(error)))
    if rank == 1:
        return
    if rank in (0, 2):
        send = world.isend(b"round the ring", 2 - rank, tag=9)
        assert world.recv(source=2 - rank, tag=9, timeout=40).data == b"round the ring"
        send.wait(40)
    smaller = world.shrink(timeout=60)
    check_collectives(smaller, 100)
    results.put((rank, "went on", world.failed))
    smaller.shutdown(30)


def test_c25_a_relay_is_stopped_and_runs_again(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_of_a_ring, args=(rank, str(tmp_path), results)) for rank in range(5)]
    for process in processes:
        process.start()
    try:
        told = {(rank, what): detail for rank, what, detail in (results.get(timeout=90) for _ in range(8))}
        for rank in (0, 2, 3, 4):
            assert told[rank, "went on"] == [1] and "rank 1" in told[rank, "DisconnectedError"]
        os.kill(processes[1].pid, signal.SIGCONT)
        assert results.get(timeout=90)[:2] == (1, "DisconnectedError")
    finally:
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGCONT)
        for process in processes:
            process.join(30)
            process.kill()


def die_together(rank, folder, results):
    world = hawser.World.open(size=5, rank=rank, directory=hawser.file_directory(folder), topology="regular:2", timeout=60)
    world.barrier()
    results.put(rank)
    results.close()
    results.join_thread()
    world.barrier()
    os.kill(os.getpid(), signal.SIGKILL)


def test_c25_a_dead_run_leaves_nothing_in_the_way(tmp_path):
    context = multiprocessing.get_context("spawn")
    for _ in range(2):  # The second finds the cards of those that were killed.
        results = context.Queue()
        processes = [context.Process(target=die_together, args=(rank, str(tmp_path), results)) for rank in range(5)]
        for process in processes:
            process.start()
        assert sorted(results.get(timeout=100) for _ in range(5)) == [0, 1, 2, 3, 4]
        for process in processes:
            process.join(60)
