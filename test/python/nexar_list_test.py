"""What an independent implementation of nexar's client has to do: a list of checks that was made by reading and running
nexar 0.2.0, by number. Here they run on worlds of Hawser. Ranks are threads of this process; what needs processes that
die is in world_test.py, as docs/testing.md says for each number.
"""

import multiprocessing
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import hawser

FULL = os.environ.get("TEST_FULL") == "1"  # The sizes of the list, not those that CI has time for.

TRANSPORTS = [["shm"], ["tcp"], None]  # None: all that work here.


def every_transport(test):
    return pytest.mark.parametrize("transport", TRANSPORTS, ids=["shm", "tcp", "mixed"])(test)


def ranks(size, transport, work, timeout=60):
    """Runs `work(world)` by each rank at once, and gives what they return."""
    worlds = hawser.World.local(size, backends=transport, timeout=timeout)
    results, errors = [None] * size, []

    def run(world):
        try:
            results[world.rank] = work(world)
        except BaseException as error:  # noqa: BLE001 (it is raised below)
            errors.append(error)
            world.revoke()

    threads = [threading.Thread(target=run, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for world in worlds:
        world.close(10)
    if errors:
        raise errors[0]
    return results


def distinct(rank, count, dtype):
    """Values that tell rank and index, small enough for sums to be exact."""
    return ((numpy.arange(count) * 7 + rank * 3) % 11 + 1).astype(dtype)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
REDUCED = {"sum": numpy.add.reduce, "prod": numpy.multiply.reduce, "min": numpy.minimum.reduce, "max": numpy.maximum.reduce}


@every_transport
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_c01_all_reduce_of_all_types_is_right_and_the_same_on_all_ranks(transport, size):
    counts = [0, 1, size - 1, size, size + 1, 7, 1000, 65537]
    cases = [(dtype, op, 1000) for dtype in INTEGERS + FLOATS for op in REDUCED] + [("float32", "sum", count) for count in counts]

    def work(world):
        got = []
        for dtype, op, count in cases:
            x = distinct(world.rank, count, dtype)
            world.all_reduce(x, op)
            got.append(x)
        return got

    everywhere = ranks(size, transport, work)
    for i, (dtype, op, count) in enumerate(cases):
        inputs = numpy.stack([distinct(rank, count, dtype) for rank in range(size)])
        with numpy.errstate(over="ignore"):
            right = REDUCED[op](inputs, dtype=dtype) if op in ("sum", "prod") else REDUCED[op](inputs)
        for rank in range(size):
            assert everywhere[rank][i].tobytes() == everywhere[0][i].tobytes(), (dtype, op, count, rank)
        if dtype in FLOATS:
            numpy.testing.assert_allclose(everywhere[0][i].astype("float64"), right.astype("float64"), rtol=1e-2 if dtype == "float16" else 1e-5)
        else:
            assert numpy.array_equal(everywhere[0][i], right), (dtype, op, count)


@every_transport
@pytest.mark.parametrize("size, count", [(2, 2_500_000), (3, 2_500_000), (4, 3_000_001), (2, (64 << 20) // 4 + 1)])
def test_c02_large_sizes_that_no_segment_divides(transport, size, count):
    def work(world):
        x = (numpy.arange(count) % 1009 + world.rank).astype("float32")
        world.all_reduce(x)
        right = (numpy.arange(count) % 1009).astype("float32") * size + size * (size - 1) / 2
        return bool(numpy.array_equal(x, right))

    assert all(ranks(size, transport, work))


@every_transport
@pytest.mark.parametrize("size", [2, 4])
def test_c02_sizes_beside_each_border(transport, size):
    borders = [n for power in range(4, 21, 2) for n in ((1 << power) // 4 - 1, (1 << power) // 4, (1 << power) // 4 + 1)]

    def work(world):
        for count in borders:
            x = (numpy.arange(count) % 101 + world.rank).astype("float32")
            world.all_reduce(x)
            assert numpy.array_equal(x, (numpy.arange(count) % 101).astype("float32") * size + size * (size - 1) / 2), count

    ranks(size, transport, work)


def test_c03_halves_round_to_nearest_even_at_every_index():
    def work(world):
        for count in (1, 7, 8, 15, 16, 17, 31, 33, 100):
            x = numpy.full(count, 1.0 if world.rank == 0 else 0.99951, "float16")
            world.all_reduce(x)
            assert (x == numpy.float16(2.0)).all(), (count, x)
            x = numpy.full(count, 6e-8, "float16")  # The smallest subnormal.
            world.all_reduce(x)
            assert (x == numpy.float16(1.2e-7)).all(), (count, x)
            x = numpy.full(count, numpy.nan if world.rank == 0 else 1.0, "float16")
            world.all_reduce(x)
            assert numpy.isnan(x).all()

    ranks(2, None, work)


@every_transport
@pytest.mark.parametrize("size", [2, 3, 5])
def test_c04_each_rank_gets_its_own_chunk(transport, size):
    def work(world):
        whole = numpy.concatenate([numpy.full(10, 100.0 * chunk + world.rank, "float32") for chunk in range(size)])
        own = numpy.empty(10, "float32")
        world.reduce_scatter(own, whole)
        assert (own == 100.0 * world.rank * size + size * (size - 1) / 2).all(), own
        counts = [3 * rank for rank in range(size)]
        uneven = numpy.empty(counts[world.rank], "float32")
        world.reduce_scatterv(uneven, numpy.arange(sum(counts), dtype="float32"), counts)
        begin = sum(counts[: world.rank])
        assert numpy.array_equal(uneven, size * numpy.arange(begin, begin + counts[world.rank], dtype="float32"))
        gathered = numpy.empty(10 * size, "float32")
        world.all_gather(gathered, own)
        reduced = whole.copy()
        world.all_reduce(reduced)
        assert numpy.array_equal(gathered, reduced)

    ranks(size, transport, work)


@every_transport
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 262_144])
def test_c05_gathers_and_scatters_from_every_root(transport, size, count):
    def part(rank):
        return (numpy.arange(count) + 1000.0 * rank).astype("float32")

    whole = numpy.concatenate([part(rank) for rank in range(size)]) if count else numpy.empty(0, "float32")

    def work(world):
        out = numpy.empty(size * count, "float32")
        world.all_gather(out, part(world.rank))
        assert numpy.array_equal(out, whole)
        for root in range(size):
            at_root = world.rank == root
            out = numpy.zeros(size * count, "float32")
            world.gather(out if at_root else None, part(world.rank), root)
            assert not at_root or numpy.array_equal(out, whole)
            own = numpy.empty(count, "float32")
            world.scatter(own, whole if at_root else None, root)
            assert numpy.array_equal(own, part(world.rank))
        to = numpy.empty(size * count, "float32")
        world.all_to_all(to, numpy.concatenate([part(world.rank) + rank for rank in range(size)]) if count else to)
        assert not count or all((to[r * count:(r + 1) * count] == part(r) + world.rank).all() for r in range(size))

    ranks(size, transport, work)


@every_transport
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_c06_broadcast_and_reduce_from_every_root(transport, size):
    def work(world):
        for root in range(size):
            for count in (0, 1, 100_003):
                x = numpy.full(count, root if world.rank == root else 77, "uint8")
                world.broadcast(x, root)
                assert (x == root).all()
            x = numpy.full(1000, world.rank + 1.0, "float32")
            world.reduce(x, root)
            right = size * (size + 1) / 2 if world.rank == root else world.rank + 1.0
            assert (x == right).all(), "a rank that is no root keeps its input"

    ranks(size, transport, work)


def test_c06_broadcasts_64_mib():
    def work(world):
        x = numpy.full(64 << 20, 5 if world.rank == 2 else 0, "uint8")
        world.broadcast(x, 2)
        return int(x.min()) == int(x.max()) == 5

    assert all(ranks(3, None, work))


@every_transport
def test_c07_scans_keep_the_order_of_ranks(transport):
    def work(world):
        size = world.size
        for _ in range(20):
            x = numpy.full(100_000, world.rank + 1, "int64")
            world.scan(x)
            assert (x == (world.rank + 1) * (world.rank + 2) // 2).all()
            x = numpy.full(1000, world.rank + 1, "int64")
            world.exclusive_scan(x)
            assert world.rank == 0 or (x == world.rank * (world.rank + 1) // 2).all()
            x = numpy.full(10, world.rank, "int64")
            world.scan(x, "max")
            assert (x == world.rank).all()
        return size

    ranks(5, transport, work)


@pytest.mark.parametrize("size, count", [(3, 6), (3, 7), (4, 5), (4, 3), (8, 5)])
def test_c08_fewer_elements_than_ranks_and_rests(size, count):
    def work(world):
        x = distinct(world.rank, count, "float64")
        world.all_reduce(x)
        return x

    right = numpy.sum([distinct(rank, count, "float64") for rank in range(size)], axis=0)
    assert all(numpy.array_equal(x, right) for x in ranks(size, None, work))


@every_transport
def test_c11_messages_of_one_tag_keep_their_order_whatever_their_size(transport):
    def work(world):
        large = numpy.zeros(4 << 20, "uint8")
        for i in range(50):
            if world.rank == 0:
                large[:] = i % 251
                first, second = world.isend(large, 1, 5), world.isend(numpy.full(8, (i + 1) % 251, "uint8"), 1, 5)
                first.wait(), second.wait()
            else:
                into, small = numpy.empty(4 << 20, "uint8"), numpy.empty(8, "uint8")
                world.recv(into, 0, 5)
                world.recv(small, 0, 5)
                assert (into == i % 251).all() and (small == (i + 1) % 251).all(), i

    ranks(2, transport, work)


@every_transport
def test_c11_receives_in_any_order_of_tags_and_sizes_that_do_not_fit(transport):
    def work(world):
        if world.rank == 0:
            for tag in range(10):
                world.send(numpy.full(100, tag, "uint8"), 1, tag)
            world.send(numpy.arange(200, dtype="uint8"), 1, 50)
            world.send(b"short", 1, 60)
            world.send(b"to myself", 0, 70)
            assert world.recv(None, 0, 70).data == b"to myself"
        else:
            for tag in reversed(range(10)):
                x = numpy.empty(100, "uint8")
                world.recv(x, 0, tag)
                assert (x == tag).all()
            with pytest.raises(hawser.InvalidError, match="200"):
                world.recv(numpy.empty(100, "uint8"), 0, 50)
            x = numpy.empty(200, "uint8")
            world.recv(x, 0, 50)  # It is still there.
            assert numpy.array_equal(x, numpy.arange(200, dtype="uint8"))
            x = numpy.zeros(100, "uint8")
            assert world.recv(x, 0, 60).bytes == 5
            begun = time.monotonic()
            with pytest.raises(hawser.TimedOutError):
                world.recv(x, 0, 99, timeout=0.2)
            assert time.monotonic() - begun < 5
            request = world.irecv(x, 0, 98)
            request.cancel()
            with pytest.raises(hawser.CancelledError):
                request.wait()

    ranks(2, transport, work)


@every_transport
def test_c12_ten_thousand_unread_messages_are_in_nobodys_way(transport):
    def work(world):
        world.register("echo", lambda x: x)
        world.barrier()
        if world.rank == 0:
            sends = [world.isend(b"unread %d" % i, 1, 1) for i in range(10_000)]
            world.send(b"other tag", 1, 2, timeout=10)
            assert world.call(1, "echo", 7, timeout=10) == 7
        if world.rank == 1:
            assert world.recv(None, 0, 2, timeout=10).data == b"other tag"
        world.barrier(timeout=10)
        if world.rank == 1:
            for i in range(10_000):
                assert world.recv(None, 0, 1, timeout=10).data == b"unread %d" % i
        if world.rank == 0:
            for send in sends:
                send.wait(10)

    ranks(2, transport, work)


@every_transport
def test_c12_a_receive_from_any_source_is_fair(transport):
    def work(world):
        if world.rank > 0:
            for _ in range(200):
                world.send(b"x", 0, world.rank)
            return None
        sources = [world.recv(None).source for _ in range(600)]
        assert sorted(sources) == [1] * 200 + [2] * 200 + [3] * 200
        return None

    ranks(4, transport, work)


@every_transport
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_c09_buckets_give_what_each_tensor_would_have(transport, size):
    rng = random.Random(size)
    lists = [[1], [0], [0, 0, 0], [5, 0, 7], [rng.randrange(200) for _ in range(1000)], [100_000, 3, 2, 200_000, 1]]

    def work(world):
        for counts in lists:
            for bucket in (0, 1000, 25 << 20):
                tensors = [distinct(world.rank + i, count, "int64") for i, count in enumerate(counts)]
                world.all_reduce_bucketed(tensors, "sum", bucket, timeout=60)
                for i, (tensor, count) in enumerate(zip(tensors, counts)):
                    right = sum(distinct(rank + i, count, "int64") for rank in range(size))
                    assert numpy.array_equal(tensor, right), (counts, bucket, i)
        # Of several types: one collective at least for each run of them.
        mixed = [numpy.ones(3, "float32"), numpy.ones(2, "float32"), numpy.ones(4, "int32"), numpy.ones(1, "float32")]
        requests = world.iall_reduce_bucketed(mixed)
        assert len(requests) == 3
        for request in requests:
            request.wait(20)
        assert all((x == size).all() for x in mixed)
        world.all_reduce_bucketed([])

    ranks(size, transport, work)


def ways():
    yield lambda: hawser.Compressor.top_k(0.1)
    yield lambda: hawser.Compressor.random_k(0.1, seed=5)
    yield lambda: hawser.Compressor.int8()
    yield lambda: hawser.Compressor.fp8()
    yield lambda: hawser.Compressor.fp8("e5m2")


@every_transport
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_c10_compressed_sums_lose_nothing(transport, size):
    count, steps = 997, 6

    def inputs(rank, step):
        return (distinct(rank + step, count, "float32") - 6) * (1 + step % 3)

    def work(world):
        # All of it: exactly the plain sum.
        for make in (hawser.Compressor.top_k, hawser.Compressor.random_k):
            x = inputs(world.rank, 0)
            world.all_reduce(x, compress=make(1.0), timeout=60)
            assert numpy.array_equal(x, sum(inputs(rank, 0) for rank in range(size)))
        # The largest of six, at another place in each rank.
        x = numpy.ones(6, "float32")
        x[world.rank % 6] = 10
        top = hawser.Compressor.top_k(1 / 6)
        world.all_reduce(x, compress=top, timeout=60)
        assert x.tolist() == [10.0 * len([r for r in range(size) if r % 6 == i]) for i in range(6)]
        assert numpy.asarray(top.residual).tolist() == [0.0 if i == world.rank % 6 else 1.0 for i in range(6)]
        # What came and what is left out are what was given.
        got = []
        for make in ways():
            compressor = make()
            come = numpy.zeros(count)
            for step in range(steps):
                x = inputs(world.rank, step)
                kept, out = x.copy(), numpy.empty_like(x)
                world.all_reduce(x, out=out, compress=compressor, timeout=60)
                assert numpy.array_equal(x, kept), "the input stays as it is"
                got.append(out.tobytes())
                come += out
            left = numpy.array(compressor.residual, dtype="float64")
            world.all_reduce(left, timeout=60)
            given = sum(inputs(rank, step).astype("float64") for rank in range(size) for step in range(steps))
            numpy.testing.assert_allclose(come + left, given, atol=0.02, err_msg=compressor.name)
        # What cannot be compressed is refused by name, on each rank alone, and nothing else ends by it.
        for dtype in ("float64", "int32", "uint8"):
            with pytest.raises(hawser.InvalidError, match="does not pack"):
                world.all_reduce(numpy.zeros(4, dtype), compress=hawser.Compressor.int8())
        with pytest.raises(hawser.InvalidError, match="max is not compressed"):
            world.all_reduce(numpy.zeros(4, "float32"), "max", compress=hawser.Compressor.int8())
        half = numpy.full(5, 1 / 3, "float16")
        world.all_reduce(half, "avg", compress=hawser.Compressor.top_k(1.0), timeout=60)
        assert (half == numpy.float16(1 / 3)).all()
        return got

    everywhere = ranks(size, transport, work)
    assert all(got == everywhere[0] for got in everywhere), "the same bits on all ranks"


def cut(array, sizes):
    """Views of these many bytes of the array, one behind the other."""
    ends = numpy.cumsum(sizes)
    assert ends[-1] == array.size
    return [array[end - size:end] for end, size in zip(ends, sizes)]


@every_transport
def test_c13_messages_of_several_parts(transport):
    # Total, parts of the sender, parts of the receiver.
    cases = [([1, 2, 3], [6]), ([6], [1, 2, 3]), ([0, 4, 0, 2, 0], [3, 3]), ([0, 0], [0]), ([10] * 1000, [2500] * 4),
             ([50_000, 0, 20_000, 30_000], [99_999, 1]), ([300] * 1000, [3000] * 100), ([100_000] * 10, [1_000_000]),
             ([1_000_000], [1] * 1000 + [999_000])]

    def work(world):
        other = 1 - world.rank
        for tag, (out, into) in enumerate(cases):
            size = sum(out)
            data = (numpy.arange(size) * 7 + world.rank + tag).astype("uint8")
            got = numpy.zeros(size, "uint8")
            for x, y in ((cut(data, out), cut(got, into)), (data, cut(got, into)), (tuple(cut(data, out)), got)):
                got[:] = 0
                request = world.isend(x, other, tag)
                received = world.recv(y, other, tag, timeout=20)
                assert received[:3] == (other, tag, size)
                assert received.data is y
                assert numpy.array_equal(got, (numpy.arange(size) * 7 + other + tag).astype("uint8")), (out, into)
                request.wait(20)
        # To oneself, and without a buffer.
        world.isend([b"to ", b"", b"myself"], world.rank, 99).wait(20)
        assert world.recv(None, world.rank, 99, timeout=20).data == b"to myself"
        own = numpy.zeros(300_000, "uint8")
        request = world.isend([numpy.full(100_000, 3, "uint8"), numpy.full(200_000, 4, "uint8")], world.rank, 98)
        world.recv(cut(own, [200_000, 100_000]), world.rank, 98, timeout=20)
        request.wait(20)
        assert (own[:100_000] == 3).all() and (own[100_000:] == 4).all()
        # Another total: a shorter message is told, a longer one is refused and stays first.
        world.send([b"abc", b"de"], other, 97, timeout=20)
        parts = [bytearray(2), bytearray(2)]
        with pytest.raises(hawser.InvalidError, match="5 bytes"):
            world.recv(parts, other, 97, timeout=20)
        parts.append(bytearray(4))
        with pytest.raises(hawser.InvalidError, match="5 bytes"):
            world.recv(parts, other, 97, exact=True, timeout=20)
        assert world.recv(parts, other, 97, timeout=20).bytes == 5
        assert b"".join(parts) == b"abcde" + bytes(3)
        with pytest.raises(hawser.InvalidError, match="65536 are the most"):
            world.send([b""] * 65_537, other, 96)
        world.send([b""] * 65_536, other, 96, timeout=20)
        assert world.recv([bytearray(1)] * 65_536, other, 96, timeout=20).bytes == 0

    ranks(2, transport, work)


@every_transport
def test_c14_many_collectives_in_flight_with_delays(transport):
    def work(world):
        rng = random.Random(world.rank)
        pending = []
        for i in range(64):
            time.sleep(rng.random() * 0.003)
            kind = i % 4
            if kind == 0:
                x = distinct(world.rank, 1000 + i, "int64")
                pending.append((kind, i, x, world.iall_reduce(x)))
            elif kind == 1:
                x = numpy.full(500 + i, i if world.rank == i % world.size else -1, "int64")
                pending.append((kind, i, x, world.ibroadcast(x, i % world.size)))
            elif kind == 2:
                x = numpy.empty(world.size * 10, "int64")
                pending.append((kind, i, x, world.iall_gather(x, numpy.full(10, world.rank + i, "int64"))))
            else:
                pending.append((kind, i, None, world.ibarrier()))
        for kind, i, x, request in rng.sample(pending, len(pending)):
            request.wait(30)
            if kind == 0:
                assert numpy.array_equal(x, sum(distinct(rank, 1000 + i, "int64") for rank in range(world.size)))
            elif kind == 1:
                assert (x == i).all()
            elif kind == 2:
                assert numpy.array_equal(x, numpy.repeat(numpy.arange(world.size) + i, 10))

    ranks(4, transport, work)


@pytest.mark.parametrize("seed", range(6))
def test_c15_a_cancelled_collective_fails_its_world_and_skews_none(seed):
    delay = random.Random(seed).random() * 0.02

    def work(world):
        x = numpy.full(200_000, 1.0, "float32")
        request = world.iall_reduce(x)
        if world.rank == 1:
            time.sleep(delay)
            request.cancel()
        outcome = "good"
        try:
            request.wait(30)
        except hawser.Error as error:
            outcome = type(error).__name__
        if outcome == "good":
            assert (x == world.size).all()
        # Either all go on, or none does: a world that is usable gives the right result, the other an error.
        y = numpy.full(10, 2.0, "float32")
        try:
            world.all_reduce(y, timeout=20)
            assert (y == 2.0 * world.size).all()
        except hawser.Error:
            pass

    ranks(3, None, work)


@every_transport
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_c16_barriers_back_to_back_concurrent_and_after_idle_time(transport, size):
    def work(world):
        for _ in range(200):
            world.barrier(timeout=30)
        for request in [world.ibarrier() for _ in range(8)]:
            request.wait(30)
        time.sleep(0.6)  # More than two heartbeats.
        world.barrier(timeout=30)

    ranks(size, transport, work)


@every_transport
def test_c17_nobody_leaves_a_barrier_before_the_last_has_entered(transport):
    def work(world):
        times = []
        rng = random.Random(world.rank)
        for _ in range(30):
            time.sleep(rng.random() * 0.004)
            entered = time.monotonic_ns()
            world.barrier()
            times.append((entered, time.monotonic_ns()))
        return times

    for row in zip(*ranks(4, transport, work)):
        assert min(left for _, left in row) >= max(entered for entered, _ in row)


@every_transport
def test_c18_splits_of_all_kinds_work_beside_their_parent(transport):
    def work(world):
        row = world.split(world.rank // 2)
        column = world.split(world.rank % 2, key=-world.rank)
        alone = world.split(world.rank)
        nobody = world.split(None if world.rank == 3 else 0)
        assert (row.size, column.size, alone.size) == (2, 2, 1)
        assert column.rank == 1 - world.rank // 2  # Keys turn the order.
        assert (nobody is None) == (world.rank == 3)
        inner = row.duplicate().split(0).split(row.rank)
        assert inner.size == 1
        row.register("who", lambda: world.rank)
        row.barrier()
        assert row.call(1 - row.rank, "who", timeout=10) == row.root_rank(1 - row.rank)
        errors = []

        def beside():
            try:
                for _ in range(50):
                    y = numpy.full(100, row.rank + 1, "int64")
                    row.all_reduce(y)
                    assert (y == 3).all()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        thread = threading.Thread(target=beside)
        thread.start()
        for _ in range(50):
            x = numpy.full(100, world.rank, "int64")
            world.all_reduce(x)
            assert (x == 6).all()
        thread.join()
        assert not errors, errors
        row.send(b"to the other", 1 - row.rank, 4)
        assert row.recv(None, 1 - row.rank, 4).data == b"to the other"
        for group in (row, column, alone, nobody, inner):
            if group is not None:
                group.barrier()

    ranks(4, transport, work)


def memory_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


def check_memory_stays(measure, most_kib):
    """`measure` gives memory at two times of a run. What tests before left behind may end meanwhile, once."""
    told = []
    for _ in range(1 if FULL else 3):
        before, after = measure()
        if after - before < most_kib:
            return
        told.append((before, after))
    raise AssertionError(told)


def test_c19_groups_outlive_their_parents_handle_and_leave_nothing():
    count, x = (10_000 if FULL else 1500), 8

    def work(world):
        for i in range(count):
            group = world.split(i % 2) if i % 3 else world.duplicate()
            mine = numpy.full(x, group.rank + 1.0)
            group.all_reduce(mine)
            assert mine[0] == group.size * (group.size + 1) / 2
            group.close()
            if i == count // 3:
                before = memory_kib()
        return before, memory_kib()

    check_memory_stays(lambda: ranks(2, None, work, timeout=600)[0], 1024)
    worlds = hawser.World.local(2)
    groups = [None, None]
    threads = [threading.Thread(target=lambda w: groups.__setitem__(w.rank, w.duplicate()), args=(w,)) for w in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del worlds
    for request in [group.ibarrier() for group in groups]:
        request.wait(10)


def test_c26_many_collectives_leave_memory_as_it_was():
    rounds = 100_000 // 8 if FULL else 5000
    warm = rounds // 3 if FULL else rounds * 2 // 3  # Rings and the allocator's arenas fill at first: about 4,000 rounds.

    def work(world):
        x, out, mine = numpy.ones(64, "float32"), numpy.empty(64 * world.size, "float32"), numpy.empty(64, "float32")
        many = numpy.ones(64 * world.size, "float32")
        for i in range(rounds):
            x[:] = 1
            world.all_reduce(x)
            world.broadcast(x, i % world.size)
            world.all_gather(out, x)
            assert out[-1] == world.size
            world.reduce_scatter(mine, many)
            world.all_to_all(out, many)
            world.gather(out if world.rank == i % world.size else None, x, i % world.size)
            world.scan(mine)
            assert mine[0] == sum(world.size for _ in range(world.rank + 1))
            world.barrier()
            if i == warm:
                before = memory_kib()
        return before, memory_kib()

    check_memory_stays(lambda: ranks(3, None, work, timeout=600)[0], 1024)


@every_transport
def test_c20_calls_of_all_sizes_many_at_once_and_their_errors(transport):
    def work(world):
        def fails(text):
            raise ValueError(text)

        world.register("echo", lambda x: x)
        world.register("fails", fails)
        world.register("slow", lambda: time.sleep(2))
        world.barrier()
        if world.rank == 0:
            for size in (0, 1, 100, 70_000, 16 << 20):
                data = bytes(size)
                assert world.call(1, "echo", data, timeout=30) == data
            for call in [world.icall(1 + i % 2, "echo", i) for i in range(1000)]:
                call.wait(30)
            with pytest.raises(hawser.RemoteError, match="what went wrong"):
                world.call(1, "fails", "what went wrong", timeout=10)
            begun = time.monotonic()
            with pytest.raises(hawser.NotFoundError):
                world.call(1, "no such function", timeout=10)
            with pytest.raises(hawser.TimedOutError):
                world.call(1, "slow", timeout=0.2)
            assert time.monotonic() - begun < 5
            assert world.call(0, "echo", "to myself", timeout=10) == "to myself"
        world.barrier(timeout=30)

    ranks(3, transport, work)


def test_c29_messages_of_no_bytes_everywhere():
    def work(world):
        other = 1 - world.rank
        world.send(b"", other, 3)
        assert world.recv(None, other, 3).bytes == 0
        nothing = numpy.empty(0, "float32")
        world.all_reduce(nothing)
        world.broadcast(nothing)
        world.all_gather(nothing, nothing)
        world.reduce_scatter(nothing, nothing)
        world.all_to_all(nothing, nothing)
        world.scan(nothing)

    ranks(2, None, work)


@pytest.mark.skipif(not FULL, reason="4 GiB take some seconds and as much memory: TEST_FULL=1")
@every_transport
def test_c29_a_message_of_more_than_4_gib(transport):
    size = (4 << 30) + 5
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    if available < 10 << 20:
        pytest.skip(f"two buffers of 4 GiB, and {available >> 20} GiB are available")
    marks = [0, 1, (4 << 30) - 1, 4 << 30, size - 1]

    def work(world):
        x = numpy.zeros(size, "uint8")
        if world.rank == 0:
            for number, place in enumerate(marks):
                x[place] = number + 1
            world.send(x, 1, timeout=300)
        else:
            got = world.recv(x, 0, timeout=300)
            assert got.bytes == size
            assert [int(x[place]) for place in marks] == list(range(1, len(marks) + 1))
            assert int(numpy.count_nonzero(x)) == len(marks)

    ranks(2, transport, work, timeout=600)


def test_c30_many_ranks_form_on_loaded_cores():
    """As processes, beside one that computes on each core, with as few descriptors as a login shell has."""
    binaries = pathlib.Path(os.environ["TEST_BUILD"]) / "bin"
    count = 64 if FULL else 32
    loads = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        begun = time.monotonic()
        done = subprocess.run([binaries / "hawser", "run", "-n", str(count), "--", binaries / "example_ranks"],
                              capture_output=True, text=True, timeout=240,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
        took = time.monotonic() - begun
    finally:
        for load in loads:
            load.kill()
            load.wait()
    assert done.returncode == 0, done.stdout + done.stderr
    assert took < 60 * float(os.environ.get("TEST_TIMEOUT_SCALE", "1")), took


@every_transport
def test_c31_a_bulk_send_that_its_deadline_cut_harms_no_later_call(transport):
    def work(world):
        if world.rank == 0:
            large = numpy.zeros(256 << 20, "uint8")
            try:
                world.send(large, 1, 1, timeout=0.05)
            except hawser.TimedOutError:
                pass
        for _ in range(20):
            x = numpy.full(10, world.rank + 1.0)
            world.all_reduce(x, timeout=20)
            assert (x == 3.0).all()
        if world.rank == 0:
            world.send(b"after it", 1, 2, timeout=20)
        else:
            assert world.recv(None, 0, 2, timeout=20).data == b"after it"

    ranks(2, transport, work)


@pytest.mark.parametrize("what", ["count", "type", "op", "collective", "root", "gather", "reduce", "scatter"])
def test_c32_calls_that_differ_are_told_to_all(what):
    def work(world):
        odd = world.rank == 1
        x = numpy.ones(11 if odd and what == "count" else 10, "int32" if odd and what == "type" else "float32")
        with pytest.raises(hawser.Error) as told:
            if what == "collective" and odd:
                world.barrier(timeout=20)
            elif what == "gather":
                world.gather(numpy.empty(30, "float32"), x, 1 if odd else 0, timeout=20)
                world.barrier(timeout=20)
            elif what == "reduce":
                world.reduce(x, 1 if odd else 0, timeout=20)
                world.barrier(timeout=20)
            elif what == "scatter":
                world.scatter(x, numpy.empty(30, "float32"), 1 if odd else 0, timeout=20)
                world.barrier(timeout=20)
            elif what == "root":
                world.broadcast(x, 1 if odd else 0, timeout=20)
                world.barrier(timeout=20)  # A root that has sent all need not have heard of it before.
            else:
                world.all_reduce(x, "max" if odd and what == "op" else "sum", timeout=20)
        return str(told.value)

    begun = time.monotonic()
    said = ranks(3, None, work)
    assert time.monotonic() - begun < 15, "found at once, not by the deadline"
    assert all("differ" in text for text in said), said


@every_transport
def test_c23_of_two_parts_only_the_larger_one_goes_on(transport):
    worlds = hawser.World.local(5, backends=transport, timeout=60, quorum="majority")
    others = {0: [2, 3, 4], 1: [2, 3, 4], 2: [0, 1], 3: [0, 1], 4: [0, 1]}
    ended = [None] * 5

    def run(rank):
        try:
            ended[rank] = worlds[rank].shrink(without=others[rank], timeout=30)
        except hawser.Error as error:
            ended[rank] = error

    for part in ([0, 1], [2, 3, 4]):
        threads = [threading.Thread(target=run, args=(rank,)) for rank in part]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for rank in (0, 1):
        assert isinstance(ended[rank], hawser.DeniedError) and "has no quorum" in str(ended[rank]), ended[rank]
    assert [ended[rank].size for rank in (2, 3, 4)] == [3, 3, 3]
    for request in [ended[rank].ibarrier() for rank in (2, 3, 4)]:
        request.wait(20)
    for rank in (2, 3, 4):
        ended[rank].close(10)
    for rank in (0, 1):
        worlds[rank].close(10)
    with pytest.raises(hawser.InvalidError, match="quorum 'most'"):
        hawser.World.local(2, quorum="most")


@every_transport
def test_c34_a_receiver_that_lags_costs_its_sender_little(transport):
    """A cost that grows with what is unread grows in every round; what other programs take of the processors does not."""

    def work(world):
        def sent(count, unread):
            if world.rank == 0:
                for i in range(unread):
                    world.send(b"parked", 1, 9)
            world.barrier()
            begun = time.monotonic()
            for i in range(count):
                if world.rank == 0:
                    world.send(b"12345678", 1, 1)
                else:
                    world.recv(None, 0, 1)
            world.barrier()
            took = time.monotonic() - begun
            if world.rank == 1:
                for i in range(unread):
                    world.recv(None, 0, 9)
            world.barrier()
            return took

        sent(200, 0)
        return [(sent(500, 0), sent(500, 1000)) for _ in range(8)]

    rounds, _ = ranks(2, transport, work)
    assert min(lagging / idle for idle, lagging in rounds) < 3, rounds


def test_c35_worlds_without_an_orderly_end_leave_nothing():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    def once():
        worlds = hawser.World.local(4)
        requests = [world.ibarrier() for world in worlds]
        for request in requests:
            request.wait(10)
        for world in worlds:
            world.close(10)

    for _ in range(3):
        once()
    before, threads = descriptors(), threading.active_count()
    for _ in range(30):
        once()
    assert descriptors() <= before + 2 and threading.active_count() <= threads


def test_c36_a_death_is_seen_while_sends_to_another_are_blocked():
    worlds = hawser.World.local(3, timeout=60)
    for request in [world.ibarrier() for world in worlds]:
        request.wait(10)
    # Nobody receives: most of these wait for the receiver.
    sends = [worlds[0].isend(numpy.zeros(1 << 20, "uint8"), 1, 1) for _ in range(200)]
    worlds[2].close(10)
    deadline = time.monotonic() + 20
    while worlds[0].failed != [2] or worlds[1].failed != [2]:
        assert time.monotonic() < deadline, (worlds[0].failed, worlds[1].failed)
        time.sleep(0.01)
    for send in sends:
        send.cancel()
    for world in worlds[:2]:
        world.close(10)


def rank_of_three(rank, folder, results, transport):
    """Rank 2 stops itself; the others go on without it; once it runs again it is told so."""
    world = hawser.World.open(size=3, rank=rank, directory=hawser.file_directory(folder), backends=transport, timeout=60)
    x, begun = numpy.ones(1000), time.monotonic()
    try:
        while True:
            world.all_reduce(x, "max", timeout=60)
            if rank == 2 and world.last_number == 5:
                os.kill(os.getpid(), signal.SIGSTOP)
    except hawser.Error as error:
        results.put((rank, type(error).__name__, (str(error), world.failed, time.monotonic() - begun)))
    if rank != 2:
        smaller = world.shrink(timeout=60)
        smaller.all_reduce(x)
        results.put((rank, "went on", (smaller.size, float(x[0]))))
        smaller.shutdown(10)


@pytest.mark.parametrize("transport", TRANSPORTS, ids=["shm", "tcp", "mixed"])
def test_c21_c33_a_rank_that_is_stopped_has_failed_and_hears_of_it_when_it_runs_again(tmp_path, transport):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_of_three, args=(rank, str(tmp_path), results, transport)) for rank in range(3)]
    for process in processes:
        process.start()
    told = {}

    def take(count):
        while len(told) < count:
            rank, what, detail = results.get(timeout=90)
            told[rank, what] = detail

    try:
        take(2 + 2)
        for rank in range(2):
            text, failed, seconds = next(detail for (r, what), detail in told.items() if r == rank and what.endswith("Error"))
            assert failed == [2] and "rank 2" in text, text
            assert seconds < 20, seconds
            assert told[rank, "went on"] == (2, 2.0)
        os.kill(processes[2].pid, signal.SIGCONT)
        take(2 + 2 + 1)
        assert any(r == 2 and what.endswith("Error") for r, what in told), told
    finally:
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGCONT)
        for process in processes:
            process.join(30)
            process.kill()


def rank_that_goes_on(rank, folder, results, transport):
    """Reduces until rank 0 says that it is enough."""
    world = hawser.World.open(size=3, rank=rank, directory=hawser.file_directory(folder), backends=transport, timeout=60)
    results.put((rank, "in"))
    begun, rounds, x = time.monotonic(), 0, numpy.zeros(2)
    while x[0] == 0:
        x[:] = (float(rank == 0 and time.monotonic() - begun > 4), 1.0)
        world.all_reduce(x, "sum", timeout=60)
        assert x[1] == 3
        rounds += 1
    results.put((rank, "enough", rounds, world.failed))
    world.shutdown(30)


@pytest.mark.parametrize("transport", TRANSPORTS, ids=["shm", "tcp", "mixed"])
def test_a_rank_that_is_silent_for_two_seconds_has_not_failed(tmp_path, transport):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = [(rank, str(tmp_path), results, transport) for rank in range(3)]
    processes = [context.Process(target=rank_that_goes_on, args=each) for each in arguments]
    for process in processes:
        process.start()
    try:
        assert sorted(results.get(timeout=90) for _ in range(3)) == [(rank, "in") for rank in range(3)]
        time.sleep(0.5)
        os.kill(processes[1].pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(processes[1].pid, signal.SIGCONT)
        ends = sorted(results.get(timeout=90) for _ in range(3))
        assert [(rank, what, failed) for rank, what, _, failed in ends] == [(rank, "enough", []) for rank in range(3)]
        assert len({rounds for _, _, rounds, _ in ends}) == 1
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
