"""Worlds from Python: in one process, and of processes that find one another in a folder, one of which is killed."""

import asyncio
import base64
import ctypes
import datetime
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy
import pytest

import hawser
from hawser import World, _codec

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


def test_messages():
    a, b = World.local(2)
    sent = a.isend(numpy.arange(5, dtype=numpy.int32), 1, tag=7)
    into = numpy.zeros(10, dtype=numpy.int32)
    got = b.recv(into, source=0, tag=7)
    assert (got.source, got.tag, got.bytes) == (0, 7, 20) and got.data is into
    assert list(into[:5]) == [0, 1, 2, 3, 4]
    assert sent.wait(10) is None and sent.done()
    large = a.isend(b"x" * 300_000, 1)
    assert b.probe(timeout=10).bytes == 300_000
    got = b.recv()
    assert got.data == b"x" * 300_000 and got.tag == 0
    large.wait(10)
    assert b.probe() is None
    with pytest.raises(hawser.TimedOutError):
        b.recv(timeout=0.05)
    with pytest.raises(hawser.InvalidError, match="no rank 2"):
        a.send(b"", 2)
    with pytest.raises(hawser.InvalidError, match="can be written"):
        b.irecv(b"constant")


@pytest.mark.parametrize("priority", ["critical", "realtime", "bulk"])
def test_a_message_has_a_class(priority):
    a, b = World.local(2)
    sent = [a.isend(bytes([i]) * size, 1, tag=3, priority=priority) for i, size in enumerate([1, 200_000, 5])]
    assert [b.recv(source=0, tag=3).data for _ in sent] == [b"\0", b"\1" * 200_000, b"\2" * 5]
    for each in sent:
        each.wait(10)
    a.send([b"two ", b"parts"], 1, tag=3, priority=priority)
    assert b.recv().data == b"two parts"


def test_an_unknown_class_is_refused():
    a, _ = World.local(2)
    for call in (a.send, a.isend):
        with pytest.raises(hawser.InvalidError, match="priority = 'urgent'"):
            call(b"x", 1, priority="urgent")


def test_an_urgent_message_overtakes_bulk():
    a, b = World.local(2)
    large = numpy.ones(64 << 20, numpy.uint8)
    receives = [b.irecv(numpy.empty_like(large), source=0, tag=1) for _ in range(8)]
    sends = [a.isend(large, 1, tag=1) for _ in receives]
    a.send(b"now", 1, tag=2, priority="critical")
    assert b.recv(source=0, tag=2).data == b"now"
    assert not receives[-1].done()
    for each in sends + receives:
        each.wait(60)


def check_collectives(world):
    n, rank = world.size, world.rank
    x = numpy.full(1000, rank + 1.0, dtype=numpy.float32)
    out = numpy.empty_like(x)
    world.all_reduce(x, out=out)
    assert (out == n * (n + 1) / 2).all() and (x == rank + 1).all()
    world.all_reduce(x, "max")
    assert (x == n).all()
    x[:] = rank
    world.broadcast(x, root=n - 1)
    assert (x == n - 1).all()
    gathered = numpy.empty(3 * n, dtype=numpy.int64)
    world.all_gather(gathered, numpy.full(3, rank, dtype=numpy.int64))
    assert (gathered == numpy.repeat(numpy.arange(n), 3)).all()
    counts = [r + 1 for r in range(n)]
    gathered = numpy.empty(sum(counts), dtype=numpy.int64)
    world.all_gatherv(gathered, numpy.full(rank + 1, rank, dtype=numpy.int64), counts)
    assert (gathered == numpy.repeat(numpy.arange(n), counts)).all()
    part = numpy.empty(2, dtype=numpy.int64)
    world.reduce_scatter(part, numpy.arange(2 * n, dtype=numpy.int64), reproducible=True)
    assert list(part) == [2 * rank * n, (2 * rank + 1) * n]
    swapped = numpy.empty(n, dtype=numpy.uint8)
    world.all_to_all(swapped, numpy.full(n, rank, dtype=numpy.uint8))
    assert list(swapped) == list(range(n))
    collected = numpy.empty(n, dtype=numpy.int16) if rank == 0 else None
    world.gather(collected, numpy.full(1, rank, dtype=numpy.int16))
    assert rank != 0 or list(collected) == list(range(n))
    own = numpy.empty(1, dtype=numpy.int16)
    world.scatter(own, collected)
    assert own[0] == rank
    prefix = numpy.full(1, 1, dtype=numpy.int64)
    world.scan(prefix)
    assert prefix[0] == rank + 1
    world.exclusive_scan(prefix)
    assert rank == 0 or prefix[0] == rank * (rank + 1) // 2
    reduced = numpy.full(4, 2.0)
    world.reduce(reduced, root=1, op="prod")
    assert rank != 1 or (reduced == 2.0**n).all()
    truth = numpy.array([rank == 0, True])
    world.all_reduce(truth, "and")
    assert list(truth) == [False, True]
    world.barrier()


def test_collectives():
    worlds = World.local(4)
    on_all(worlds, check_collectives)
    on_all(worlds, lambda world: world.shutdown(10))


def test_groups():
    def call(world):
        half = world.split(world.rank % 2, key=-world.rank)
        assert [half.root_rank(rank) for rank in range(half.size)] == ([2, 0] if world.rank % 2 == 0 else [3, 1])
        x = numpy.full(3, world.rank)
        half.all_reduce(x)
        assert (x == (2 if world.rank % 2 == 0 else 4)).all()
        assert world.split(None if world.rank else 1) is None or world.rank == 0
        copy = world.duplicate()
        copy.barrier()
        if world.rank < 2:
            with world.group([1, 0]) as pair:
                assert pair.rank == 1 - world.rank
                pair.barrier()
        world.barrier()
        with pytest.raises(hawser.InvalidError, match="no rank 7"):
            half.root_rank(7)

    on_all(World.local(4), call)


def test_calls():
    worlds = World.local(3)
    for world in worlds:
        world.register("whoami", lambda world=world: world.rank)
        world.register("add", lambda a, b=1: a + b)
        world.register("from", lambda source, *args: (source, args), with_source=True)
    for world in worlds:
        for dest in range(3):
            assert world.call(dest, "whoami") == dest
    a, b, _ = worlds
    assert a.call(1, "from", 1, "two", [3.0, None], {"k": (True, b"x")}) == (0, (1, "two", [3.0, None], {"k": (True, b"x")}))
    x = numpy.arange(300_000, dtype=numpy.float32).reshape(3, -1)
    got = b.call(0, "add", x, x)
    assert got.dtype == x.dtype and numpy.array_equal(got, x + x)
    calls = [a.icall(2, "add", i) for i in range(100)]
    assert [call.wait(10) for call in calls] == list(range(1, 101)) and calls[0].done()

    async def awaited():
        return await asyncio.gather(*(a.icall(1, "add", i, i) for i in range(20)))

    assert asyncio.run(awaited()) == [2 * i for i in range(20)]


def test_calls_that_fail():
    a, b = World.local(2)

    def broken(text):
        raise ValueError(text)

    b.register("broken", broken)
    b.register("object", lambda: object())
    b.register("slow", lambda: time.sleep(0.5))
    with pytest.raises(hawser.RemoteError, match="'broken' of rank 1 raised ValueError: oh no") as raised:
        a.call(1, "broken", "oh no")
    assert (raised.value.type, raised.value.text, raised.value.rank) == ("ValueError", "oh no", 1)
    with pytest.raises(hawser.RemoteError, match="an object of type object cannot be sent"):
        a.call(1, "object")
    with pytest.raises(hawser.InvalidError, match="cannot be sent"):
        a.call(1, "broken", object())
    with pytest.raises(hawser.NotFoundError, match="'nothing' of rank 1"):
        a.call(1, "nothing")
    with pytest.raises(hawser.TimedOutError, match="'slow' of rank 1"):
        a.call(1, "slow", timeout=0.05)
    with pytest.raises(hawser.InvalidError, match="has been registered"):
        b.register("slow", broken)
    call = a.icall(1, "slow")
    call.cancel()
    with pytest.raises(hawser.CancelledError):
        call.wait()


def test_what_is_pickled_must_be_asked_for():
    a, b = World.local(2)
    b.register("plain", lambda x: x)
    b.register("pickled", lambda x: x, pickled=True)
    day = datetime.date(2026, 11, 27)
    assert a.call(1, "pickled", day, pickled=True) == day
    with pytest.raises(hawser.RemoteError, match="nobody here asked for"):
        a.call(1, "plain", day, pickled=True)
    with pytest.raises(hawser.InvalidError, match="pickled=True"):
        a.call(1, "pickled", day)


def test_a_handler_that_refers_to_its_world_goes_with_it():
    a, b = World.local(2)
    seen = weakref.ref(b)
    b.register("self", lambda world=b: world.rank)
    assert a.call(1, "self") == 1
    b.close()
    del b
    deadline = time.monotonic() + 10
    while seen() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert seen() is None


@pytest.mark.parametrize("value", [
    None, True, False, 0, -1, 2**63 - 1, -2**63, 2**63, -2**63 - 1, 10**50, 0.0, -1.5, float("inf"), "", "text \u20ac", b"",
    b"\0\1", [], [1, [2, []]], (), (1,), {}, {"a": 1, 2: [b"x"], (1, 2): None}])
def test_values_come_back_as_they_were(value):
    got = _codec.decode(_codec.encode(value))
    assert got == value and type(got) is type(value)


def test_arrays_come_back_as_they_were():
    for dtype in ("?", "i1", "<u8", ">i4", "f2", "c16", "S5", "U3"):
        for shape in ((), (0,), (3,), (2, 0, 3), (4, 5)):
            array = numpy.ones(shape, dtype=dtype)
            got = _codec.decode(_codec.encode(array))
            assert got.dtype == array.dtype and got.shape == shape and numpy.array_equal(got, array)
    scalar = _codec.decode(_codec.encode(numpy.float16(1.5)))
    assert scalar == 1.5 and type(scalar) is numpy.float16
    transposed = numpy.arange(6).reshape(2, 3).T
    assert numpy.array_equal(_codec.decode(_codec.encode(transposed)), transposed)
    with pytest.raises(hawser.InvalidError):
        _codec.encode(numpy.array([object()]))


def test_malformed_values_are_refused():
    good = _codec.encode([1, "two", {"three": numpy.zeros(3)}, (4.0, b"five", 10**30)])
    for cut in range(len(good)):
        with pytest.raises(hawser.InvalidError):
            _codec.decode(good[:cut])
    with pytest.raises(hawser.InvalidError):
        _codec.decode(good + b"N")
    rng = numpy.random.default_rng(1)
    for _ in range(5000):
        bad = bytearray(good)
        for place in rng.integers(0, len(good), 3):
            bad[place] = rng.integers(0, 256)
        try:
            _codec.decode(bytes(bad))
        except hawser.InvalidError:
            pass
    nested: list = []
    for _ in range(_codec.DEPTH_MAX):
        nested = [nested]
    assert _codec.decode(_codec.encode(nested)) == nested
    with pytest.raises(hawser.InvalidError, match="deeper"):
        _codec.encode([nested])
    with pytest.raises(hawser.InvalidError, match="deeper"):
        _codec.decode(b"l\1\0\0\0\0\0\0\0" * 101 + b"N")


class Store:
    """What a torch.distributed.Store does, for threads."""

    def __init__(self):
        self.values, self.news = {}, threading.Condition()

    def set(self, key, value):
        with self.news:
            self.values[key] = value
            self.news.notify_all()

    def wait(self, keys, timeout):
        with self.news:
            if not self.news.wait_for(lambda: all(key in self.values for key in keys), timeout.total_seconds()):
                raise RuntimeError(f"no {keys} after {timeout}")

    def get(self, key):
        return self.values[key]


def test_ranks_find_one_another_in_a_store():
    store, opened = Store(), [None] * 3

    def open_one(rank):
        opened[rank] = World.open(size=3, rank=rank, store=store, name="stored", timeout=30)

    threads = [threading.Thread(target=open_one, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    on_all(opened, check_collectives)
    assert sorted(store.values) == ["hawser/stored/0", "hawser/stored/1", "hawser/stored/2"]
    with pytest.raises(hawser.TimedOutError, match="these did not come: 1"):
        World.open(size=2, rank=0, store=Store(), timeout=0.1)
    with pytest.raises(hawser.FailedError, match="set raised"):
        World.open(size=2, rank=0, store=object(), timeout=0.1)


def test_ranks_with_a_token_by_value_meet_at_a_seed(tmp_path):
    token = base64.urlsafe_b64encode(os.urandom(24)).decode()
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text(token)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    program = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
    seed = subprocess.Popen([program, "seed", "--listen", address, "--token-file", str(tmp_path / "token")],
                            stdout=subprocess.PIPE, text=True)
    try:
        assert address in seed.stdout.readline()
        sums = {}

        def rank(number):
            with World.open(address, 2, number, token if number == 0 else token.encode(), timeout=30) as world:
                x = numpy.full(4, number + 1.0)
                world.all_reduce(x)
                sums[number] = x[0]

        threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60 * SCALE)
        assert sums == {0: 3.0, 1: 3.0}
    finally:
        seed.kill()
        seed.wait()


def test_open_takes_a_seed_first_and_a_token_by_value():
    with pytest.raises(TypeError, match="seed is the text 'HOST:PORT', not int"):
        World.open(4, 0)
    with pytest.raises(TypeError, match="token is a str or bytes, not int"):
        World.open("127.0.0.1:1", 2, 0, 5)
    with pytest.raises(hawser.InvalidError, match="one of token and token_file"):
        World.open("127.0.0.1:1", 2, 0, "a" * 22, token_file="file")
    with pytest.raises(hawser.InvalidError, match="4096"):
        World.open("127.0.0.1:1", 2, 0, "a" * 4097)
    for short in ("secret", b"secret"):
        with pytest.raises(hawser.InvalidError, match="6 characters"):
            World.open("127.0.0.1:1", 2, 0, short)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(hawser.Error):
            World.open("127.0.0.1:1", 2, 0, "short")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_child_waits_for_nothing():
    a, b = World.local(2)
    waits = a.irecv(source=1, tag=5)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            waits.wait()
        except hawser.InvalidError:
            os._exit(7)
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    b.send(b"here", 0, tag=5)
    assert waits.wait(10).data == b"here"


def test_wrong_calls_say_so():
    a, b = World.local(2)
    with pytest.raises(hawser.InvalidError, match="no op 'mean'"):
        a.all_reduce(numpy.zeros(2), "mean")
    with pytest.raises(hawser.InvalidError, match="xor of f64"):
        a.all_reduce(numpy.zeros(2), "xor")
    with pytest.raises(hawser.InvalidError, match="holds 3 elements, not 4"):
        a.all_gather(numpy.zeros(3), numpy.zeros(2))
    with pytest.raises(hawser.InvalidError, match="f64, the other f32"):
        a.all_reduce(numpy.zeros(2), out=numpy.zeros(2, dtype=numpy.float32))
    with pytest.raises(hawser.InvalidError, match="arrays of complex128 .*view"):
        a.all_reduce(numpy.zeros(2, dtype=complex))
    with pytest.raises(hawser.InvalidError, match="contiguous"):
        a.all_reduce(numpy.zeros(4)[::2])
    pairs = numpy.zeros(2, dtype=[("a", "f4"), ("b", "i4")])
    for odd, name in ((numpy.zeros(2, dtype=">f8"), ">f8"), (pairs, "'a'"), (numpy.zeros(2, dtype="M8[s]"), "datetime64")):
        with pytest.raises(hawser.InvalidError, match=f"all_reduce: x holds elements of type .*{name}"):
            a.all_reduce(odd)
        with pytest.raises(hawser.InvalidError, match=f"send: x holds elements of type .*{name}"):
            a.send(odd, 1)
    with pytest.raises(hawser.InvalidError, match="type int cannot be called"):
        a.register("number", 5)
    with pytest.raises(hawser.InvalidError, match="masked array"):
        a.icall(1, "number", numpy.ma.array([1, 2], mask=[True, False]))
    on_all([a, b], lambda world: world.barrier())  # None of these was a call that the other must match.


def test_requests_are_awaited_and_dropped():
    a, b = World.local(2)

    async def both():
        x, y = numpy.ones(10), numpy.ones(10)
        await asyncio.gather(awaited(a.iall_reduce(x)), awaited(b.iall_reduce(y)))
        return x

    async def awaited(request):
        return await request

    assert (asyncio.run(both()) == 2).all()
    a.iall_reduce(numpy.ones(100_000))  # Dropped: it goes on, and keeps its array.
    x = numpy.ones(100_000)
    b.all_reduce(x)
    assert (x == 2).all()


def test_buffers_without_strides_are_moved():
    """Those of ctypes leave them out."""
    a, b = World.local(2)
    x, y = (ctypes.c_int * 3)(1, 2, 3), (ctypes.c_int * 3)()
    a.isend(x, dest=1)
    b.recv(y, source=0)
    assert list(y) == [1, 2, 3]
    on_all([a, b], lambda world: world.all_reduce(x if world.rank == 0 else y))
    assert list(x) == list(y) == [2, 4, 6]
    rows = ((ctypes.c_uint64 * 2) * 1)((0, 8))
    with hawser.Agent("of-ctypes") as agent:
        assert len(agent.add_region(bytearray(16), "r").table(rows)) == 1


def test_the_error_of_a_dropped_request_keeps_no_later_call_from_being_made(caplog):
    """Raised by the next call, it would keep one rank out of a collective that the others begin."""
    a, b = World.local(2)
    a.irecv(numpy.empty(1), source=1, tag=7, timeout=0.05)  # Nobody sends that.
    until = time.monotonic() + 60
    while not caplog.records and time.monotonic() < until:
        on_all([a, b], lambda world: world.barrier(timeout=30))
    assert [record.name for record in caplog.records] == ["hawser"]
    assert "request was dropped" in caplog.text and "did not come through by its deadline" in caplog.text


@pytest.mark.parametrize("call", ["worlds[0].shutdown(60)", "worlds[0].split(0)",
                                  "World.open(size=2, rank=0, directory=hawser.file_directory(folder), timeout=60)"])
def test_ctrl_c_ends_what_waits_for_other_ranks(tmp_path, call):
    code = f"""
import os, signal, threading, hawser
from hawser import World
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = {str(tmp_path)!r}
worlds = World.local(2)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    raise SystemExit(7)
"""
    begun = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 7
    assert time.monotonic() - begun < 30


def test_a_collective_that_nobody_waits_for_any_more_goes_on():
    """Ctrl-C ends the wait for it, and the world's own thread looks after it from then on."""
    code = """
import _thread, signal, threading, time
import numpy
from hawser import World
signal.signal(signal.SIGINT, signal.default_int_handler)
a, b = World.local(2)
x, y = numpy.full(2, 1, "f4"), numpy.full(2, 2, "f4")
def others():
    for _ in range(20):
        b.barrier()
other = threading.Thread(target=others)
other.start()
for _ in range(20):  # They are on boards from then on.
    a.barrier()
other.join()
threading.Timer(0.3, _thread.interrupt_main).start()
try:
    a.all_reduce(x)
    raise SystemExit(1)
except KeyboardInterrupt:
    pass
b.all_reduce(y)
until = time.monotonic() + 20
while x[0] != 3:  # Nobody calls anything of rank 0 meanwhile.
    assert time.monotonic() < until
    time.sleep(0.01)
raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 7


def test_a_timeout_of_zero_only_looks():
    a, b = World.local(2)
    for timeout in (0, 0.0, 1e-15, datetime.timedelta(0)):
        with pytest.raises(hawser.TimedOutError):
            b.recv(source=0, timeout=timeout)
        with pytest.raises(hawser.TimedOutError):
            a.agree(timeout=timeout)
        with pytest.raises(hawser.TimedOutError):
            a.call(1, "nothing", timeout=timeout)
    a.send(b"here", 1, timeout=0)
    assert b.probe(timeout=10).bytes == 4
    assert b.recv(source=0, timeout=0).data == b"here"
    with pytest.raises(hawser.TimedOutError):
        a.barrier(timeout=0)


@pytest.mark.parametrize("driven", [True, False])
def test_what_is_awaited_holds_no_thread(tmp_path, driven):
    """More waits than an executor has threads; and the loop ends though one of them was given up."""
    def peer():
        with World.open(size=2, rank=1, directory=hawser.file_directory(tmp_path), timeout=30) as world:
            for tag in range(50):
                world.send(b"x", 0, tag=tag)
            world.recv(source=0, tag=50)

    async def main(world):
        async def wait(tag):
            return (await world.irecv(source=1, tag=tag)).tag

        waits = [asyncio.create_task(wait(tag)) for tag in range(100, 140)]  # Never sent.
        assert await asyncio.wait_for(asyncio.gather(*[wait(tag) for tag in range(50)]), 30) == list(range(50))
        for each in waits:
            each.cancel()
        given_up = world.irecv(source=1, tag=99)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(given_up, 0.01)
        assert not given_up.done()
        await world.isend(b"end", 1, tag=50)

    other = threading.Thread(target=peer)
    other.start()
    with World.open(size=2, rank=0, directory=hawser.file_directory(tmp_path), timeout=30, driven=driven) as world:
        begun = time.monotonic()
        asyncio.run(main(world))
        assert time.monotonic() - begun < 25
    other.join()


def rank_of_processes(rank, size, folder, results, die, driven):
    try:
        with World.open(size=size, rank=rank, directory=hawser.file_directory(folder), driven=driven, timeout=60) as world:
            try:
                check_collectives(world)
                if die and rank == size - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                while die:  # The others may hear of it in the last collective operation already.
                    world.barrier(timeout=30)
                results.put((rank, "ok"))
            except hawser.DisconnectedError as error:
                results.put((rank, (str(error), world.failed)))
                raise
    except hawser.DisconnectedError:
        pass
    except BaseException as error:
        results.put((rank, repr(error)))
        raise


@pytest.mark.parametrize("driven", [True, False])
@pytest.mark.parametrize("die", [False, True])
def test_processes(tmp_path, die, driven):
    size = 4
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_of_processes, args=(rank, size, str(tmp_path), results, die, driven))
                 for rank in range(size)]
    for process in processes:
        process.start()
    told = dict(results.get(timeout=120) for _ in range(size - 1 if die else size))
    for process in processes:
        process.join(60)
    if not die:
        assert told == {rank: "ok" for rank in range(size)}
        return
    for rank, what in told.items():
        assert isinstance(what, tuple), f"rank {rank}: {what}"
        text, failed = what
        # Who had told leaves, and is missed as well.
        assert f"rank {size - 1}" in text and size - 1 in failed, text


def go_on_in_smaller_worlds(rank, folder, results, driven):
    """Of 5 ranks, 3 and then 0, which leads, kill themselves; the others go on each time where all of them were."""
    world = World.open(size=5, rank=rank, directory=hawser.file_directory(folder), driven=driven, timeout=60)
    worlds, total = [world], numpy.zeros(1, dtype=numpy.int64)
    for victim in (3, 0):
        x = numpy.ones(1000, dtype=numpy.float32)
        try:
            while True:
                world.all_reduce(x, "max", timeout=30)
                if rank == victim and world.last_number > 20:
                    os.kill(os.getpid(), signal.SIGKILL)
        except hawser.DisconnectedError:
            world = world.shrink(timeout=30)
        assert worlds[-1].last_number - 1 <= world.last_good + 1
        worlds.append(world)
        total[0] = 1
        world.all_reduce(total)
        assert world.agree(True) and not world.agree(world.rank != 1)
    results.put((rank, world.size, world.epoch, world.old_rank, int(total[0])))
    world.shutdown()


@pytest.mark.parametrize("driven", [True, False])
def test_ranks_that_live_go_on_in_smaller_worlds(tmp_path, driven):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=go_on_in_smaller_worlds, args=(rank, str(tmp_path), results, driven))
                 for rank in range(5)]
    for process in processes:
        process.start()
    told = sorted(results.get(timeout=100) for _ in range(3))
    for process in processes:
        process.join(60)
    assert told == [(1, 3, 2, 1, 3), (2, 3, 2, 2, 3), (4, 3, 2, 3, 3)]


def test_failures_are_told_and_acknowledged():
    a, b, c = World.local(3)

    async def first_two():
        found = []
        async for rank in a.failures():
            found.append(rank)
            if len(found) == 1:
                b.close()
            if len(found) == 2:
                return found

    c.close()
    assert asyncio.run(first_two()) == [2, 1]
    with pytest.raises(hawser.DisconnectedError):
        a.recv(timeout=10)
    assert a.acknowledge() == [1, 2]
    alone = a.shrink()
    assert alone.size == 1 and alone.agree() and a.failed == [1, 2]
    with pytest.raises(hawser.InvalidError, match="no rank 7"):
        a.shrink([7])
    a.close()  # Only the old view: the agent is the new world's.
    alone.send(b"to itself", 0)
    assert alone.recv(timeout=10).data == b"to itself"


def recover_twice(rank, folder, results):
    world = World.open(size=5, rank=rank, directory=hawser.file_directory(folder), name="w", timeout=60, recovery="automatic")
    told = []

    async def follow():
        nonlocal world
        if rank == 1:  # Once all others are in: who dies before takes their `open` down with it.
            for _ in range(4):
                world.recv(tag=8)
            os.kill(os.getpid(), signal.SIGKILL)
        world.send(b"in", dest=1, tag=8)
        async for event in world.recoveries():
            told.append((event.old_rank, event.failed, event.world.size))
            world = event.world
            total = numpy.ones(1, numpy.int64)
            world.all_reduce(total)
            assert total[0] == world.size
            if len(told) == 2:
                return
            if rank == 3:
                for _ in range(world.size - 1):
                    world.recv(tag=9)
                os.kill(os.getpid(), signal.SIGKILL)
            world.send(b"done", dest=2, tag=9)

    asyncio.run(follow())
    with pytest.raises(hawser.TimedOutError):
        world.recovered(0)
    results.put((rank, told))
    world.shutdown()


def test_a_world_recovers_by_itself(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=recover_twice, args=(rank, str(tmp_path), results)) for rank in range(5)]
    for process in processes:
        process.start()
    told = sorted(results.get(timeout=100) for _ in range(3))
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, -9, 0, -9, 0]
    assert told == [(0, [(0, [1], 4), (0, [2], 3)]), (2, [(2, [1], 4), (1, [2], 3)]), (4, [(4, [1], 4), (3, [2], 3)])]


@pytest.mark.parametrize("driven", [True, False])
def test_a_task_that_is_cancelled_loses_no_event(tmp_path, driven):
    folder = hawser.file_directory(str(tmp_path))
    worlds = {}

    def open_one(rank):
        worlds[rank] = World.open(size=3, rank=rank, directory=folder, name="w", timeout=60, recovery="automatic", driven=rank != 0 or driven)

    threads = [threading.Thread(target=open_one, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def look_impatiently():
        first = asyncio.ensure_future(anext(worlds[0].recoveries()))
        await asyncio.sleep(0.01)  # It waits now.
        first.cancel()
        await asyncio.wait([first])
        worlds[2].close()
        await asyncio.sleep(1.5)  # The event comes while nobody asks for it.
        return await asyncio.wait_for(anext(worlds[0].recoveries()), 20)

    event = asyncio.run(look_impatiently())
    assert (event.failed, event.world.size) == ([2], 2)
    worlds[1].recovered(20).world.close()
    event.world.close()


def test_recovery_policies():
    with pytest.raises(hawser.InvalidError, match="none of manual, automatic and abort"):
        World.local(2, recovery="sometimes")
    a, b = World.local(2)
    with pytest.raises(hawser.InvalidError, match="does not recover by itself"):
        a.recovered(0)
    a, b, c = World.local(3, recovery="abort")
    waits = [a.irecv(source=1), b.irecv(source=0)]  # A send may go well before its rank has heard of the failure.
    c.close()
    for each in waits:
        with pytest.raises(hawser.DisconnectedError, match="rank 2 of world 'world' failed"):
            each.wait(20)
    with pytest.raises(hawser.DisconnectedError, match="rank 2"):
        a.send(b"x", 1)
    a, b, c = World.local(3, recovery="automatic", quorum="none")
    c.close()
    event = a.recovered(20)
    assert (event.old_rank, event.failed, event.world.size) == (0, [2], 2)
    with pytest.raises(hawser.InvalidError, match="was taken before"):
        a.recovered(0)
    with pytest.raises(hawser.BusyError, match="recovers by itself"):
        b.shrink()
    b.close()  # With the world that it has not taken.
    assert event.world.recovered(20).failed == [1]


def test_a_dead_run_leaves_nothing_in_the_way(tmp_path):
    context = multiprocessing.get_context("spawn")
    for _ in range(2):  # The second finds the cards of those that were killed.
        results = context.Queue()
        processes = [context.Process(target=die_together, args=(rank, str(tmp_path), results)) for rank in range(3)]
        for process in processes:
            process.start()
        assert sorted(results.get(timeout=100) for _ in range(3)) == [0, 1, 2]
        for process in processes:
            process.join(60)


def die_together(rank, folder, results):
    world = World.open(size=3, rank=rank, directory=hawser.file_directory(folder), timeout=60)
    world.barrier()
    results.put(rank)
    results.close()
    results.join_thread()
    world.barrier()
    os.kill(os.getpid(), signal.SIGKILL)


def test_who_does_not_come_is_named(tmp_path):
    with pytest.raises(hawser.TimedOutError, match="these did not come: 1, 2.*'world.[12]' did not appear"):
        World.open(size=3, rank=0, directory=hawser.file_directory(str(tmp_path)), timeout=0.5)


COSTS = """schema = "hawser.cost_model/1"
[within_host]
message_ns = {}
byte_ns = 0.2
combined_byte_ns = 0.1
read_byte_ns = 0.1
board_ns = 300
"""


def open_with(tmp_path, files):
    """A world of as many ranks, in threads; each has its file, and the result is a world or an error."""
    (tmp_path / "ranks").mkdir(exist_ok=True)
    results = [None] * len(files)

    def one(rank):
        try:
            results[rank] = World.open(size=len(files), rank=rank, directory=hawser.file_directory(str(tmp_path / "ranks")), timeout=60,
                                       cost_model=files[rank])
        except hawser.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_one_rank_tells_its_cost_model(tmp_path):
    (tmp_path / "costs.toml").write_text(COSTS.format(1234))
    worlds = open_with(tmp_path, [None, tmp_path / "costs.toml", None])
    assert all(world.cost_model.startswith("told by rank 1: message_ns = 1234,") for world in worlds), worlds
    for world in worlds:
        world.close()
    with World.local(1)[0] as alone:
        assert alone.cost_model == "built in"


def test_different_cost_models_are_an_error_on_all_ranks(tmp_path):
    (tmp_path / "one.toml").write_text(COSTS.format(1234))
    (tmp_path / "other.toml").write_text(COSTS.format(4321))
    errors = open_with(tmp_path, [None, str(tmp_path / "one.toml"), str(tmp_path / "other.toml")])
    for error in errors:
        assert isinstance(error, hawser.InvalidError), error
        assert "rank 2 was given another cost model than rank 1: message_ns is 4321 there" in str(error)
        assert "the same file to all" in str(error)
    with pytest.raises(hawser.NotFoundError, match="none.toml"):
        World.local(2, cost_model=str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text(COSTS.format("nan"))
    with pytest.raises(hawser.InvalidError, match="bad.toml:3: message_ns = nan is not"):
        World.local(2, cost_model=tmp_path / "bad.toml")


PROGRAM = """
import hawser, numpy, os, sys
with hawser.World.open(timeout=60) as world:
    x = numpy.full(4, world.rank + 1.0)
    world.all_reduce(x)
    print("sum", x[0], "of", world.size, sys.argv[1:])
    if "--die" in sys.argv and world.rank == 2:
        os.kill(os.getpid(), 9)
    world.barrier()
"""


def run(*arguments):
    program = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
    return subprocess.run([program, "run", *arguments], capture_output=True, text=True, timeout=120)


def test_hawser_run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py")]
    good = run("-n", "4", *command, "-n", "x")
    assert good.returncode == 0, good.stderr
    assert sorted(good.stdout.splitlines()) == [f"[{rank}] sum 10.0 of 4 ['-n', 'x']" for rank in range(4)]
    died = run("-n", "3", "--", *command, "--die")
    assert died.returncode == 128 + 9
    assert "hawser run: rank 2 (pid " in died.stderr and "was killed by signal 9 (Killed)" in died.stderr
    cut = run("-n", "1", "sh", "-c", "printf 'no newline'; echo wrong >&2; exit 7")
    assert (cut.returncode, cut.stdout) == (7, "[0] no newline\n") and cut.stderr.startswith("[0] wrong\n")
    assert run("-n", "1", "/nowhere/program").returncode == 127
    left = run("-n", "1", "--grace", "200ms", "sh", "-c", "sleep 60 & echo gone")  # It holds the pipe.
    assert (left.returncode, left.stdout) == (0, "[0] gone\n")
    lines = [json.loads(line) for line in run("-n", "1", "--json", "sh", "-c", "echo a; exit 7").stdout.splitlines()]
    assert [line["event"] for line in lines] == ["output", "end"] and lines[0]["schema"] == "hawser.run/1"
    assert (lines[0]["rank"], lines[0]["line"], lines[1]["exit_code"], lines[1]["failed_first"]) == (0, "a", 7, 0)
    assert run("-n", "1").returncode == 11


FAR_SHELL = """#!/bin/sh
# Stands for ssh: the host is a name only, and as ssh does, one line goes to a shell of the other side.
host=$1; shift
echo "$host $*" >> "$(dirname "$0")/called"
case $host in lost*) echo "no route to $host" >&2; exit 255;; esac
cd / && exec env -i PATH="$PATH" sh -c "$*"
"""


@pytest.fixture
def far_shell(tmp_path):
    shell = tmp_path / "ssh"
    shell.write_text(FAR_SHELL)
    shell.chmod(0o755)
    return shell


def far(shell, *arguments):
    return run("--ssh", str(shell), *arguments)


def test_hawser_run_on_several_hosts(tmp_path, far_shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(f"import sys\nsys.path[:0] = {sys.path!r}\n" + PROGRAM)
    command = [sys.executable, "program.py"]  # Beside them: the folder travels.
    good = far(far_shell, "-n", "5", "--hosts", "localhost:2,node1,node2", "--", *command, "it's", "$HOME")
    assert good.returncode == 0, good.stderr
    assert sorted(good.stdout.splitlines()) == [f"""[{rank}] sum 15.0 of 5 ["it's", '$HOME']""" for rank in range(5)]
    called = (tmp_path / "called").read_text()
    assert sorted(line.split()[0] for line in called.splitlines()) == ["node1", "node1", "node2"]
    assert "seed" not in called and "program.py" not in called, "a command line tells what only the input may"
    # No world: ranks of one would end by themselves, perhaps before the far end of this one has told of its death.
    died = far(far_shell, "-n", "3", "--hosts", "node1,node2", "sh", "-c",
               "if [ $HAWSER_WORLD_RANK = 2 ]; then kill -9 $$; fi; exec sleep 60")
    assert died.returncode == 128 + 9
    assert "rank 2 (pid " in died.stderr and "on node2; the others are ended" in died.stderr


def test_what_travels_to_another_host(tmp_path, far_shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAWSER_LOG", "warn")
    monkeypatch.setenv("OTHER", "stays")
    shown = far(far_shell, "-n", "2", "--hosts", "node1:2", "sh", "-c",
                "echo $(pwd) $HAWSER_LOG $HAWSER_WORLD_LOCAL_RANK $HAWSER_WORLD_SIZE ${OTHER-none}; cat")
    assert shown.returncode == 0, shown.stderr
    assert sorted(shown.stdout.splitlines()) == [f"[{rank}] {tmp_path} warn {rank} 2 none" for rank in range(2)]
    told = far(far_shell, "-n", "1", "--hosts", "node1", "--directory", "etcd://10.0.0.1:1", "sh", "-c",
               "echo $HAWSER_DIRECTORY ${HAWSER_SEED:-none}")
    assert told.stdout == "[0] etcd://10.0.0.1:1 none\n"


def test_a_host_that_is_not_reached_ends_the_others(far_shell):
    lost = far(far_shell, "-n", "2", "--hosts", "node1,lost1", "sleep", "60")
    assert lost.returncode == 255
    assert "[1] no route to lost1" in lost.stderr and "exit code 255 on lost1" in lost.stderr
    nowhere = far(far_shell, "-n", "1", "--hosts", "node1", "--remote-hawser", "/no where/hawser", "true")
    assert nowhere.returncode == 127
    few = far(far_shell, "-n", "3", "--hosts", "node1:1,node2:1", "true")
    assert few.returncode == 11 and "--hosts" in few.stderr
    assert run("-n", "1", "--hosts", "/nowhere/hosts", "true").returncode == 12


def test_ranks_that_are_bound_share_no_core(far_shell):
    cores = {tuple(int(Path(f"/sys/devices/system/cpu/cpu{n}/topology/{what}").read_text())
                   for what in ("physical_package_id", "core_id")): n for n in os.sched_getaffinity(0)}
    ranks = min(len(cores), 2)
    show = [sys.executable, "-c", "import os; print(*sorted(os.sched_getaffinity(0)))"]
    for hosts in ([], ["--hosts", f"node1:{ranks}", "--ssh", str(far_shell)]):
        bound = run("-n", str(ranks), "--bind-to", "core", *hosts, "--", *show)
        assert bound.returncode == 0, bound.stderr
        shares = [set(line.split()[1:]) for line in bound.stdout.splitlines()]
        assert len(shares) == ranks and all(shares)
        assert len(set.union(*shares)) == sum(map(len, shares)) == len(os.sched_getaffinity(0))
        many = run("-n", str(len(cores) + 1), "--bind-to", "core", *(["--hosts", "node1", *hosts[2:]] if hosts else []),
                   "--", *show)
        assert many.returncode == 11 and f"there are {len(cores) + 1} ranks on a host" in many.stderr, many.stderr
    free = run("-n", "1", "--", *show)
    assert set(free.stdout.split()[1:]) == {str(core) for core in os.sched_getaffinity(0)}
    assert run("-n", "1", "--bind-to", "socket", "true").returncode == 2


# A connection takes a while to come up, as to a real host. It notes how many are coming up at once.
SLOW_SHELL = """#!/bin/sh
here=$(dirname "$0"); shift
touch "$here/starting.$$"; ls "$here" | grep -c '^starting' >> "$here/counts"
sleep 0.2; rm "$here/starting.$$"
cd / && exec env -i PATH="$PATH" sh -c "$*"
"""


def test_a_host_is_not_flooded_with_connections(tmp_path, far_shell):
    """sshd turns away connections at random from ten on that have not proven who they are."""
    far_shell.write_text(SLOW_SHELL)
    done = far(far_shell, "--hosts", "node1:20", "sh", "-c", "echo 'hawser run-rank: here'; echo $HAWSER_WORLD_SIZE")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(lines) == sorted(f"[{rank}] {line}" for rank in range(20) for line in ("hawser run-rank: here", "20"))
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 20 and 2 <= max(counts) <= 8, counts
    far_shell.write_text("#!/bin/sh\necho no >&2; exit 255\n")
    refused = far(far_shell, "--hosts", "node1:20", "true")
    assert refused.returncode == 255 and "no" in refused.stderr


def test_without_a_number_each_slot_is_a_rank(far_shell):
    assert len(far(far_shell, "--hosts", "localhost:2,node1:3", "echo", "up").stdout.splitlines()) == 5
    for wrong in ([], ["--hosts", "node1"], ["--hosts", "node1:2,node2"]):
        refused = far(far_shell, *wrong, "true")
        assert refused.returncode == 11 and "-n" in refused.stderr, refused.stderr


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_lost_connection_ends_the_far_rank(tmp_path, far_shell):
    """Whatever happens to `hawser run`: it ends by SIGTERM, and by SIGKILL where that is not heard."""
    program = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
    deaf = "trap 'echo asked > {0}/asked' TERM; echo $$ > {0}/pid.new; mv {0}/pid.new {0}/pid; while :; do sleep 0.05; done"
    started = subprocess.Popen([program, "run", "-n", "1", "--ssh", str(far_shell), "--hosts", "node1", "--grace", "500ms",
                                "sh", "-c", deaf.format(tmp_path)], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < until:
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    assert is_running(pid)
    started.kill()  # No word of it comes from there.
    started.wait(60)
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(pid)


def test_the_example_trains():
    example = os.path.join(os.environ["TEST_SOURCE"], "examples", "world_training.py")
    trained = run("-n", "4", sys.executable, example)
    assert trained.returncode == 0, trained.stderr
    assert "largest error" in trained.stdout


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name, says", [("world_parameter_server.py", "pushes, largest error"),
                                        ("world_weights.py", "4 arrays, 4 MiB")])
def test_the_examples_run(name, says, ranks):
    example = os.path.join(os.environ["TEST_SOURCE"], "examples", name)
    done = run("-n", str(ranks), sys.executable, example)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_a_world_and_its_groups_have_numbers():
    worlds = World.local(4)
    assert {world.id for world in worlds} == {0}
    groups = [world.duplicate() for world in worlds]
    others = [world.duplicate() for world in worlds]
    pairs = [worlds[rank].group([0, 1]) for rank in (0, 1)]
    numbers = [{each.id for each in some} for some in (groups, others, pairs)]
    assert all(len(some) == 1 and some != {0} for some in numbers), numbers
    assert len(set.union(*numbers)) == 3
    for world in worlds:
        world.close()


def test_all_to_all_of_equal_blocks_is_not_the_one_with_counts():
    worlds = World.local(2)
    x, out = [numpy.arange(2.0) for _ in worlds], [numpy.empty(2) for _ in worlds]
    requests = [worlds[0].iall_to_all(out[0], x[0]), worlds[1].iall_to_allv(out[1], x[1], [1, 1], [1, 1])]
    for request in requests:
        with pytest.raises(hawser.InvalidError, match="differ"):
            request.wait(20)
    for world in worlds:
        world.close()


def test_no_launcher_says_so(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HAWSER_WORLD_", "OMPI_", "PMI_", "SLURM_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    with pytest.raises(hawser.NotFoundError, match="no launcher"):
        World.open()
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(hawser.InvalidError, match="RANK = 3"):
        World.open()
