"""Numbers and sides that a call cannot take: what was expected, and what came."""

import array

import numpy
import pytest

import hawser
import hawser.rdma as rdma

KIB = 1024


@pytest.fixture(scope="module")
def pair():
    here, there = hawser.Agent("here"), hawser.Agent("there")
    local = here.allocate(64 * KIB, name="local")
    remote = there.allocate(64 * KIB, name="remote")
    peer = here.add_peer(there.card())
    yield here, peer, local
    remote.close()
    here.close()
    there.close()


@pytest.fixture(scope="module", autouse=True)
def no_agent_of_buffers_stays():
    yield
    rdma.close()


@pytest.fixture(scope="module")
def world():
    world, = hawser.World.local(1)
    yield world
    world.close()


def calls(here, peer, local, world):
    """(name, call with one number, bits of that number)"""
    remote, one = peer.range("remote", 0, 8), numpy.zeros(1)
    grant = here.import_grant(local.grant(expiry=None).data)
    buffer = rdma.RDMABuffer(bytearray(64))
    return {
        "Region.range offset": (lambda n: local.range(n, 8), 64),
        "Region.range size": (lambda n: local.range(0, n), 64),
        "Region.table": (local.table, 64),
        "Region.table ranges": (lambda n: local.table([(n, 8)]), 64),
        "Region.grant": (lambda n: local.grant(n, expiry=None), 64),
        "GrantedRegion.range": (lambda n: grant.range(n, 8), 64),
        "GrantedRegion.table": (grant.table, 64),
        "Peer.range offset": (lambda n: peer.range("remote", n, 8), 64),
        "Peer.range size": (lambda n: peer.range("remote", 0, n), 64),
        "Peer.region": (peer.region, 32),
        "Peer.table": (lambda n: peer.table("remote", n), 64),
        "Peer.send": (lambda n: peer.send(n, b"", timeout=0), 32),
        "Peer.opened": (peer.opened, 32),
        "Agent.allocate": (lambda n: here.allocate(n).close(), 64),
        "Agent.open_channel": (here.open_channel, 32),
        "Agent.open_channel credit": (lambda n: here.open_channel(20, n), 32),
        "Agent.take_message": (here.take_message, 32),
        "Agent.take_notifications": (here.take_notifications, 64),
        "Agent.make_queue": (here.make_queue, 64),
        "Agent.end": (here.end, 64),
        "Agent.fetch_add": (lambda n: here.fetch_add(remote, n).wait(), 64),
        "Agent.compare_swap": (lambda n: here.compare_swap(remote, n, 1).wait(), 64),
        "Agent.wait_signal": (lambda n: here.wait_signal(local.range(0, 8), n, 0), 64),
        "Plan.submit label": (lambda n: here.plan_read(peer, remote, local.range(0, 8)).submit(label=n).wait(), 64),
        "plan index": (lambda n: here.plan_read(peer, peer.table("remote", 8), local.table(8), [n], [0]), 32),
        "Driver": (lambda n: hawser.Driver(min(n, 2) if n == 3 else n), 32),
        "World.send dest": (lambda n: world.isend(one, n).cancel(), 32),
        "World.send tag": (lambda n: world.isend(one, 0, n).cancel(), 64),
        "World.recv source": (lambda n: world.irecv(one, n).cancel(), 32),
        "World.broadcast root": (lambda n: world.broadcast(one, root=n), 32),
        "World.group": (lambda n: world.group([n]), 32),
        "World.host_of": (world.host_of, 32),
        "World.local": (lambda n: [each.close() for each in hawser.World.local(min(n, 2) if n == 3 else n)], 32),
        "Compressor": (lambda n: hawser.Compressor.random_k(0.5, n), 64),
        "RDMABuffer.slice offset": (lambda n: buffer.slice(n, 8), 64),
        "RDMABuffer.slice size": (lambda n: buffer.slice(0, n), 64),
        "RDMABuffer.fetch_add offset": (lambda n: buffer.fetch_add(1, offset=n).get(), 64),
    }


def test_numbers_out_of_bounds_are_named(pair, world):
    for name, (call, bits) in calls(*pair, world).items():
        for number in (-1, numpy.int64(-1), -(1 << 70), 1 << bits, 1 << 70):
            with pytest.raises(hawser.InvalidError, match="from 0 to|a rank|above 2\\^32") as raised:
                call(number)
            assert isinstance(raised.value, ValueError), name


def test_what_is_no_whole_number_is_a_type_error(pair, world):
    for name, (call, _) in calls(*pair, world).items():
        for thing in (1.0, numpy.float64(1), "1", b"1", [1]):
            if name in ("Region.table", "GrantedRegion.table", "Peer.table") and isinstance(thing, list):
                continue
            if name == "Peer.region" and isinstance(thing, str):
                continue
            with pytest.raises((TypeError, hawser.InvalidError)) as raised:
                call(thing)
            assert str(raised.value), name


def test_whole_numbers_of_all_kinds_are_taken(pair, world):
    here, peer, local = pair
    for eight in (8, numpy.int64(8), numpy.uint8(8), numpy.uint64(8), numpy.int32(8)):
        assert local.range(eight, eight).offset == 8
        assert len(local.table(eight)) == 64 * KIB // 8
        assert local.table([(eight, eight), [eight, eight, eight, eight]])[0] == (8, 8)
        assert len(peer.table("remote", eight)) == 64 * KIB // 8
        assert peer.range("remote", eight, eight).size == 8
        assert local.table(eight)[eight] == (64, 8)
        here.plan_read(peer, peer.table("remote", 8), local.table(8), [eight], (eight,))
        rdma.RDMABuffer(bytearray(64)).slice(eight, eight)
    assert local.range(size=None).size == 64 * KIB
    assert local.table(8)[-1] == (64 * KIB - 8, 8)
    assert local.range(True, True).offset == 1  # As in Python's own calls.
    assert peer.region(numpy.int64(0)).size == 64 * KIB
    assert world.group(numpy.array([0])).size == 1


def test_words_of_more_than_64_bits_are_refused():
    buffer = rdma.RDMABuffer(array.array("Q", [(1 << 64) - 1]))
    assert buffer.compare_and_swap(-1, 5).get() == (1 << 64) - 1
    assert buffer.fetch_add((1 << 64) + 1).get() == 5  # Modulo 2^64.
    for compare, swap in [(1 << 64, 0), (0, 1 << 64), (-(1 << 63) - 1, 0)]:
        with pytest.raises(ValueError, match="64 bits"):
            buffer.compare_and_swap(compare, swap)
        with pytest.raises(ValueError, match="64 bits"):
            rdma.RDMAAction().compare_and_swap(buffer, bytearray(8), compare, swap)
    assert buffer.fetch_add(0).get() == 6


def test_sides_in_the_order_of_another_call(pair):
    here, peer, local = pair
    there, table = peer.range("remote", 0, 8), peer.table("remote", 8)
    for wrong, is_what in [(local, "Region"), (local.range(0, 8), "Range"), (local.table(8), "a Table of this agent"),
                           (None, "None"), (b"bytes", "bytes"), (peer, "Peer"), ([there, local], "Region")]:
        for plan in (here.plan_read, here.read):
            with pytest.raises(hawser.InvalidError, match=f"plan_read: source must be memory of the peer.*is {is_what}"):
                plan(peer, wrong, local)
        for plan in (here.plan_write, here.write):
            with pytest.raises(hawser.InvalidError, match=f"plan_write: target must be memory of the peer.*is {is_what}"):
                plan(peer, local, wrong)
    for wrong, is_what in [(there, "RemoteRange"), (table, "a Table of a peer"), (None, "None"), (peer, "Peer"),
                           ([local, there], "RemoteRange")]:
        with pytest.raises(hawser.InvalidError, match=f"plan_read: target must be memory of this agent.*is {is_what}"):
            here.read(peer, there, wrong)
        with pytest.raises(hawser.InvalidError, match=f"plan_write: source must be memory of this agent.*is {is_what}"):
            here.write(peer, wrong, there)
    with pytest.raises(hawser.InvalidError, match="list gives out no memory|5 gives|int gives out no memory"):
        here.write(peer, 5, there)
    for call in (here.read, here.write):
        with pytest.raises(hawser.InvalidError, match="peer must be a Peer, and is Range"):
            call(local.range(0, 8), there, peer)


@pytest.mark.parametrize("wrong", ["5s", -1, float("nan"), []])
def test_a_wrong_timeout_is_told_though_nothing_is_left_to_wait_for(wrong):
    with hawser.Agent("one", environment=False) as one:
        memory = one.allocate(16, "memory")
        transfer = one.write(one.self(), memory.range(0, 8), one.self().range("memory", 8, 8))
        transfer.wait(20)
        atomic = one.fetch_add(one.self().range("memory", 8, 8), 1)
        atomic.wait(20)
        for ended in (transfer, atomic):
            with pytest.raises(hawser.InvalidError, match="timeout"):
                ended.wait(wrong)
