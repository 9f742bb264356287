"""The package hawser: agents, memory, plans, transfers, messages."""

import array
import concurrent.futures
import ctypes
import json
import mmap
import pathlib
import pickle
import socket
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from multiprocessing import shared_memory

import numpy
import pytest

import hawser
from conftest import SCALE, eventually, python_command


def test_a_write_arrives_with_its_notification(pair):
    one, two = pair
    one.array[:] = numpy.arange(65536, dtype=numpy.uint64).astype(numpy.uint8)
    source = one.range_of(one.array).region.table(4096)
    target = one.peer.table("memory", 4096)
    assert len(source) == len(target) == 16 and source[1] == (4096, 4096) and source[-1] == (15 * 4096, 4096)
    plan = one.plan_write(one.peer, source, target, numpy.array([0, 1, 5], numpy.uint32), [3, 4, 15])
    assert (plan.operation, plan.bytes, plan.range_count, plan.piece_count) == ("write", 3 * 4096, 3, 2)
    transfer = plan.submit(notify=b"three\0blocks", deadline=timedelta(seconds=20))
    transfer.wait(20)
    assert transfer.done and transfer.status == "ok" and transfer.error is None and transfer.bytes == 3 * 4096
    note = eventually(two.take_notification)
    assert note.data == b"three\0blocks" and note.peer.name == "one" and note.peer == two.peer
    assert (two.array[3 * 4096:5 * 4096] == one.array[:2 * 4096]).all()
    assert (two.array[15 * 4096:] == one.array[5 * 4096:6 * 4096]).all()
    assert two.take_notification() is None and two.take_notifications() == []


def test_reads_and_ranges(pair):
    one, two = pair
    two.array[100:108] = range(8)
    one.read(one.peer, one.peer.range("memory", 100, 8), one.array[0:8]).wait(20)
    assert one.array[:8].tolist() == list(range(8))
    region = one.range_of(one.array).region
    one.plan_write(one.peer, [region.range(0, 4), region.range(4, 4)],
                   [one.peer.range("memory", 4, 4), one.peer.range("memory", 0, 4)]).submit().wait(20)
    assert two.array[:8].tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    one.write(one.peer, one.array, one.peer.region("memory")).wait(20)
    assert (two.array == one.array).all()
    assert one.explain(one.plan_write(one.peer, one.array, one.peer.region(0)))


@pytest.mark.parametrize("make", [
    lambda: bytearray(4096), lambda: mmap.mmap(-1, 4096), lambda: numpy.zeros(1024, "float32"),
    lambda: memoryview(bytearray(4096)), lambda: array.array("q", [0] * 512), lambda: (ctypes.c_char * 4096)(),
    lambda: numpy.zeros((4, 4), [("a", "i4"), ("b", "f8")])])
def test_regions_of_anything_with_the_buffer_protocol(pair, make):
    one, two = pair
    memory = make()
    region = one.add_region(memory, "other")
    assert region.name == "other" and region.size == memoryview(memory).nbytes == len(region)
    assert region.writable and region.rights == "read_write" and region.device == "host"
    two.array[:8] = 7
    size = min(8, region.size)
    one.read(one.peer, one.peer.range("memory", 0, size), region.range(0, size)).wait(20)
    assert bytes(memoryview(region)[:size]) == b"\x07" * size
    region.close()


def test_an_owner_has_its_memory_back_once_the_region_is_closed(pair):
    one, _ = pair
    memory = bytearray(4096)
    region = one.add_region(memory, "other")
    view = memoryview(region)
    with pytest.raises(BufferError):
        memory.append(1)
    region.close()
    with pytest.raises(BufferError):
        memory.append(1)
    assert memoryview(region).nbytes == 4096
    view.release()
    memory.append(1)
    with pytest.raises(BufferError):
        memoryview(region)
    region.close()
    shared = shared_memory.SharedMemory(create=True, size=4096)
    try:
        with one.add_region(shared.buf, "shared") as region:
            assert region.size == 4096
        shared.close()
    finally:
        shared.unlink()
    own = one.allocate(4096)
    own.close()
    assert memoryview(own).nbytes == 4096  # It goes with the last who refers to it.


def test_a_range_is_found_in_whichever_open_region_holds_it(pair):
    one, _ = pair
    memory = numpy.zeros(65536, numpy.uint8)
    regions = {name: one.add_region(part, name) for name, part in
               [("outer", memory), ("inner", memory[1000:2000]), ("next", memory[3000:4000])]}

    def found(begin, end):
        place = one.range_of(memory[begin:end])
        assert place.size == end - begin and place.offset == begin - (place.region.address - memory.ctypes.data)
        return place.region.name

    assert [found(*part) for part in [(1500, 2000), (1500, 2001), (999, 1001), (2500, 2600), (5000, 65536)]] == [
        "inner", "outer", "outer", "outer", "outer"]
    regions["inner"].close()
    assert found(1500, 1600) == "outer"
    again = one.add_region(memory, "again")
    assert found(0, 10) == "again"
    del again
    assert found(0, 10) == "outer" and found(3000, 4000) == "next"
    regions["outer"].close()
    with pytest.raises(hawser.NotFoundError):
        found(0, 10)


def test_regions_tell_whether_peers_can_map_them(pair):
    one, _ = pair
    own = one.add_region(bytearray(64), "own")
    assert not own.mappable and "adopt" in own.why_not_mappable
    allocated = one.allocate(4096)
    assert allocated.mappable and allocated.why_not_mappable is None


def test_dlpack_memory_is_not_copied(pair):
    one, two = pair

    class Tensor:  # What torch shows of itself.
        def __init__(self, data):
            self.data = data

        def __dlpack__(self, **options):
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.data.__dlpack_device__()

    memory = numpy.zeros(512, "float32")
    region = one.add_region(Tensor(memory), "tensor")
    assert region.address == memory.ctypes.data and region.size == 2048
    two.array[:4] = [0, 0, 128, 63]
    one.read(one.peer, one.peer.range("memory", 0, 4), region.range(4, 4)).wait(20)
    assert memory[:3].tolist() == [0, 1, 0]
    with pytest.raises(hawser.InvalidError):
        one.add_region(Tensor(memory.reshape(16, 32).T), "transposed")
    index = Tensor(numpy.array([1, 2], "int64"))
    plan = one.plan_write(one.peer, region.table(64), one.peer.table("memory", 64), index, index)
    assert plan.bytes == 128


def test_torch_tensors(pair):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    one, two = pair
    tensor = one.torch_empty((4, 8), torch.float32, name="tensor")
    assert tensor.shape == (4, 8) and not tensor.any()
    two.array[:128] = numpy.arange(32, dtype="float32").view("uint8")
    one.read(one.peer, one.peer.range("memory", 0, 128), tensor).wait(20)
    assert tensor.flatten().tolist() == list(range(32))
    region = one.add_region(torch.zeros(16), "own")
    assert region.size == 64 and one.range_of(tensor).region.name == "tensor"
    assert (one.range_of(tensor[2]).offset, one.range_of(tensor[2]).size) == (64, 32)
    for kind in (torch.bfloat16, torch.bool, torch.complex64):
        assert one.add_region(torch.zeros(8, dtype=kind)).size == 8 * kind.itemsize
        assert one.torch_empty((2, 3), kind).shape == (2, 3)
    assert one.add_region(torch.nn.Linear(4, 4).weight).size == 64, "what needs a gradient"
    for bad in (torch.zeros(8, 8).T, torch.zeros(8, 8)[:, ::2], torch.zeros(8, device="meta"),
                torch.zeros(8, 8).to_sparse()):
        with pytest.raises(hawser.InvalidError, match="^invalid: add_region: the tensor is not contiguous"):
            one.add_region(bad)
    with pytest.raises(hawser.InvalidError, match="not contiguous"):
        one.read(one.peer, one.peer.range("memory", 0, 16), tensor[:, 0])
    source, target = one.range_of(tensor).region.table(32), one.peer.table("memory", 32)
    assert one.plan_write(one.peer, source, target, torch.arange(4)[::2], torch.tensor([1, 2])).range_count == 2
    with pytest.raises(hawser.InvalidError, match="source_index"):
        one.plan_write(one.peer, source, target, torch.tensor([0.5]), torch.tensor([1]))


def test_read_only_memory_is_never_written(pair):
    one, two = pair
    text = b"do not touch" * 10
    region = one.add_region(text, "text")
    assert not region.writable and region.rights == "read" and memoryview(region).readonly
    one.write(one.peer, region.range(0, 12), one.peer.range("memory", 0, 12)).wait(20)
    assert bytes(two.array[:12]) == b"do not touch"
    with pytest.raises(hawser.DeniedError):
        one.read(one.peer, one.peer.range("memory", 0, 12), region.range(0, 12))
    with pytest.raises(hawser.InvalidError):
        one.add_region(text, "again", rights="read_write")
    peer = two.add_peer(one.card())
    with pytest.raises(hawser.DeniedError) as caught:
        two.write(peer, two.range_of(two.array[:12]), peer.region("text"))
    assert caught.value.peer == "one" and isinstance(caught.value, PermissionError)


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_index_arrays_of_any_integer_type(pair, kind):
    one, _ = pair
    source, target = one.range_of(one.array).region.table(1024), one.peer.table("memory", 1024)
    index = numpy.arange(64, dtype=kind)
    assert one.plan_write(one.peer, source, target, index, index).bytes == 65536
    assert one.plan_write(one.peer, source, target, index[::2], index[1::2]).range_count == 32
    assert one.plan_write(one.peer, source, target).bytes == 65536
    with pytest.raises(hawser.InvalidError):
        one.plan_write(one.peer, source, target, index + numpy.array(1, kind), index)
    with pytest.raises(hawser.InvalidError):
        one.plan_write(one.peer, source, target, index[:0], index[:0])
    if kind.startswith("int"):
        with pytest.raises(hawser.InvalidError):
            one.plan_write(one.peer, source, target, -index, index)


@pytest.mark.parametrize("bad", [numpy.zeros(4), numpy.zeros((2, 2), int), "text", 5, object(), [0.5], [-1], [2**40],
                                 numpy.zeros(4, "O"), numpy.zeros(4, ">i4"), numpy.zeros(4, "bool"), {}])
def test_wrong_indices(pair, bad):
    one, _ = pair
    source, target = one.range_of(one.array).region.table(1024), one.peer.table("memory", 1024)
    with pytest.raises((hawser.InvalidError, TypeError)):
        one.plan_write(one.peer, source, target, bad, bad)


def test_tables(pair):
    one, _ = pair
    region = one.range_of(one.array).region
    rows = numpy.array([[0, 16, 64, 10], [4096, 16, 64, 10]], numpy.uint64)
    table = region.table(rows)
    assert len(table) == 20 and table[11] == (4096 + 64, 16) and not table.is_remote
    assert len(region.table(rows.astype("int64"))) == len(region.table(rows.tolist())) == 20
    assert region.table(rows[:, :2].copy())[1] == (4096, 16)
    shape = table.encode()
    assert isinstance(shape, bytes) and len(shape) < 1024
    for bad in [rows[:, :2], rows.astype("float64"), rows.astype("uint32"), rows[:0], rows.reshape(-1), [(1,)], [5],
                [(0, 70000)], [(2**64 - 1, 2)], 0, -1, 2**70, None, "x", [(None, 1)]]:
        with pytest.raises((hawser.InvalidError, TypeError)):
            region.table(bad)
    for index in (20, -21):
        with pytest.raises(IndexError):
            table[index]
    assert [len(entry) for entry in table] == [2] * 20  # Iterates, and ends.


def test_a_table_travels(pair):
    one, two = pair
    shape = two.range_of(two.array).region.table([(0, 128, 1024, 8)]).encode()
    target = one.peer.import_table(shape)
    assert target.is_remote and len(target) == 8
    one.array[:1024] = 9
    one.plan_write(one.peer, one.range_of(one.array).region.table(128), target, range(8), range(8)).submit().wait(20)
    assert two.array[1024:1152].tolist() == [9] * 128 and two.array[1152] == 0
    with pytest.raises(hawser.Error):
        one.peer.import_table(b"garbage")


def test_messages_events_and_signals(pair):
    one, two = pair
    two.open_channel(17, 8)
    one.peer.connect(20)
    one.peer.reconnect()
    assert one.peer.state == "up"
    one.peer.send(17, "first", timeout=0)  # The greeting told of the channel.
    one.peer.send(17, bytearray(b"second"))
    assert one.peer.opened(17) and not one.peer.opened(18)
    with pytest.raises(hawser.BusyError, match="has not opened channel 18"):
        one.peer.send(18, "nobody", timeout=0.01)
    assert eventually(lambda: two.take_message(17)).data == b"first"
    message = eventually(lambda: two.take_message(17))
    assert (message.data, message.channel, message.peer.name) == (b"second", 17, "one")
    two.open_channel(18, priority="bulk")
    two.open_channel(18, 4, "bulk")  # Once more is no other one.
    with pytest.raises(hawser.InvalidError, match="another class"):
        two.open_channel(18)
    one.peer.send(18, b"a large one")
    assert eventually(lambda: two.take_message(18)).data == b"a large one"
    one.peer.notify("plain")
    assert eventually(two.take_notification).text == "plain"
    assert eventually(two.take_event).kind in ("up", "card_changed")
    word = two.range_of(two.array).region.range(8, 8)
    one.plan_write(one.peer, one.array[:4], one.peer.range("memory", 64, 4)).submit(
        signal=(one.peer.range("memory", 8, 8), 3)).wait(20)
    two.wait_signal(word, 3, 20)
    assert two.read_signal(word) == 3
    with pytest.raises(hawser.TimedOutError):
        two.wait_signal(word, 4, 0.01)


def test_atomics(pair):
    one, two = pair
    word = one.peer.range("memory", 64, 8)
    assert one.fetch_add(word, 2 ** 64 - 1).wait(20) == 0
    op = one.fetch_add(word, 6)
    assert op.wait(20) == 2 ** 64 - 1 and op.done and op.status == "ok" and op.error is None and op.agent is one
    assert one.compare_swap(word, 5, 40).wait(20) == 5
    assert one.compare_swap(word, 5, 50).wait(20) == 40
    assert int.from_bytes(bytes(two.array[64:72]), "little") == 40
    queue = one.make_queue(64)
    one.fetch_add(word, 1, queue=queue, cookie=9, deadline=20).wait(20)
    assert (1, 9, 8, None) in queue.wait(20)
    with pytest.raises(hawser.InvalidError, match="aligned to 8"):
        one.fetch_add(one.peer.range("memory", 4, 8), 1)
    with pytest.raises(hawser.InvalidError, match="size 16"):
        one.compare_swap(one.peer.range("memory", 0, 16), 0, 1)
    with pytest.raises(hawser.InvalidError, match="the deadline is zero"):
        one.fetch_add(word, 1, deadline=0)
    with pytest.raises(hawser.InvalidError, match="add is -1"):
        one.fetch_add(word, -1)
    read_only = two.add_region(bytearray(64), name="read only", rights="read")
    one.add_peer(two.card())
    with pytest.raises(hawser.DeniedError, match="read only"):
        one.fetch_add(one.peer.range("read only", 0, 8), 1)
    del read_only


def _add_under_a_lock(name, card, me, rounds):
    """Reads a number of the owner, adds one, writes it back: right only while nobody else is between these two."""
    with hawser.Agent(name) as agent:
        owner = agent.add_peer(card)
        mine = agent.empty(8, name="mine")
        lock, number = owner.range("words", 0, 8), owner.range("words", 8, 8)
        for _ in range(rounds):
            while agent.compare_swap(lock, 0, me).wait(20) != 0:
                pass
            agent.read(owner, number, mine).wait(20)
            mine[:] = bytearray((int.from_bytes(bytes(mine), "little") + 1).to_bytes(8, "little"))
            agent.write(owner, mine, number).wait(20)
            assert agent.compare_swap(lock, me, 0).wait(20) == me
        del mine, lock, number, owner


def test_a_lock_by_compare_swap():
    rounds = 100
    with hawser.Agent("owner") as owner:
        words = owner.empty(16, "uint8", name="words")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(_add_under_a_lock, f"worker {me}", owner.card(), me, rounds) for me in (1, 2)]
            for job in jobs:
                job.result(60)
        assert int.from_bytes(bytes(words[8:]), "little") == 2 * rounds
        assert not any(words[:8])
        del words


def test_atomics_to_a_peer_that_leaves_end():
    with hawser.Agent("one") as one:
        with hawser.Agent("two") as two:
            region = two.empty(64, name="words")
            peer = one.add_peer(two.card())
            word = peer.range("words", 0, 8)
            assert one.fetch_add(word, 1).wait(20) == 0
            del region
        with pytest.raises(hawser.Error) as failure:
            one.fetch_add(word, 1, deadline=20).wait(20)
        assert not isinstance(failure.value, hawser.TimedOutError)
        stopped = hawser.Agent("three", driver=False)
        try:
            there = stopped.empty(64, name="words")
            silent = one.add_peer(stopped.card())
            op = one.fetch_add(silent.range("words", 0, 8), 1)
            assert op.status == "in_flight"
            op.cancel()
            with pytest.raises(hawser.CancelledError):
                op.wait(20)
            del there
        finally:
            stopped.close(20)


def _sent(peer, channel, data):
    try:
        peer.send(channel, data)
    except hawser.Error:  # The peer's channel is not known here yet.
        return False
    return True


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_messages_have_numbers_and_a_peer_that_is_gone_has_taken_so_many(backend):
    with hawser.Agent("here", backends=[backend]) as here, hawser.Agent("there", backends=[backend]) as there:
        there.open_channel(20, 64)
        there.open_channel(21, 64, "bulk")
        peer = here.add_peer(there.card())
        peer.connect(20)
        assert peer.acknowledged() == {}
        assert [peer.send(20, b"x") for _ in range(5)] == [1, 2, 3, 4, 5]
        assert peer.send(21, b"another channel") == 1
        with pytest.raises(hawser.InvalidError):
            peer.send(20, b"x" * 70000)
        assert peer.send(20, b"what is refused takes no number") == 6
        assert eventually(lambda: peer.acknowledged() == {20: 6, 21: 1})
        there.close(20)
        assert eventually(lambda: peer.state == "down")
        events = []
        while (event := here.take_event()) is not None:
            events.append(event)
        assert [each.acknowledged for each in events if each.kind == "down"] == [{20: 6, 21: 1}]
        assert all(each.acknowledged == {} for each in events if each.kind != "down")
        assert peer.acknowledged() == {20: 6, 21: 1}


def test_the_first_send_after_find_peer_works(tmp_path):
    with hawser.Agent("there", directory=hawser.file_directory(str(tmp_path))) as there:
        there.open_channel(20, 4)
        for number in range(5):
            with hawser.Agent(f"here-{number}", directory=hawser.file_directory(str(tmp_path))) as here:
                here.find_peer("there", 20).send(20, "first")
                assert eventually(lambda: there.take_message(20)).data == b"first"


def test_directories_and_configuration(tmp_path):
    directory = hawser.file_directory(str(tmp_path))
    with hawser.Agent("here", directory=directory, backends={"shm": None, "tcp": {"connections": 2}},
                      settings={"deadline": "7s", "limits.transfers": 100}) as here:
        with hawser.Agent("there", directory=hawser.file_directory(str(tmp_path))) as there:
            assert there.find_peer("here", 20).name == "here" and directory.kind == "file"
        assert [one["name"] for one in here.backends() if one["open"]] == ["shm", "tcp"]
        assert here.backends()[1]["params"]["connections"] == "2" and here.has_backend("TCP")
        here.require_backend("shm")
        with pytest.raises(hawser.NotFoundError) as caught:
            here.require_backend("pigeon")
        assert "shm" in caught.value.advice and isinstance(caught.value, LookupError)
        with pytest.raises(hawser.Error):
            here.find_peer("nobody", 0.05)
        assert here.counters()["agent"] == "here" and len(here.incarnation) >= 32
    for options in [{"settings": {"deadline": "soon"}}, {"settings": {"no.such": 1}}, {"backends": ["pigeon"]},
                    {"settings": 5}, {"config_file": "/no/such/file"}, {"name": "x" * 300}, {"spin": "fast"}]:
        with pytest.raises((hawser.Error, TypeError)):
            hawser.Agent(**options)
    with pytest.raises(TypeError, match=r"no argument 'listen'.*settings=\{'listen': "):
        hawser.Agent("x", listen="127.0.0.1")
    with pytest.raises(hawser.InvalidError, match="Did you mean 'peer_timeout'"):
        hawser.Agent("x", settings={"peer_timeout_s": 5})


class Far:
    """Forwards what comes to it, late, as a host does that is far away."""

    def __init__(self, port, late):
        self.port, self.late = port, late
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here = self.listener.accept()[0]
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self.port))
            for ends in [(here, there), (there, here)]:
                threading.Thread(target=self.forward, args=ends, daemon=True).start()

    def forward(self, source, target):
        try:
            while data := source.recv(1 << 16):
                time.sleep(self.late)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_a_peer_that_answers_late_is_found():
    with hawser.Agent("late", backends=["tcp"]) as late, hawser.Agent("here", backends=["tcp"]) as here:
        port = int(late.backends()[0]["address"].split(",")[0].rsplit(":", 1)[1])
        far = Far(port, 0.1)
        try:
            assert here.find_peer("late@" + far.address, timeout=20 * SCALE).name == "late"
        finally:
            far.listener.close()


def test_without_a_directory_nobody_appears():
    with hawser.Agent("alone") as alone:
        start = time.monotonic()
        with pytest.raises(hawser.NotFoundError):
            alone.find_peer("nobody", timeout=60)
        assert time.monotonic() - start < 30


def test_cards(pair):
    one, two = pair
    assert isinstance(one.card(), bytes) and one.card_revision >= 1
    revision = one.card_revision
    region = one.add_region(bytearray(100), "more")
    assert two.add_peer(one.card(since=revision)) == two.peer
    assert sorted(two.peer.region_names()) == ["memory", "more"]
    assert two.peer.range("more").size == 100 and two.peer.region("more").rights == "read_write"
    assert len(one.card(regions=[region])) <= len(one.card())
    for bad in [b"", b"garbage", b"\0" * 1000, one.card()[:-1]]:
        with pytest.raises(hawser.Error):
            two.add_peer(bad)
    assert [peer.name for peer in two.peers()] == ["one"] and two.self().is_self
    two.invalidate(two.peer)
    with pytest.raises(hawser.DisconnectedError):
        two.plan_write(two.peer, two.array[:4], two.peer.range("memory", 0, 4)).submit()


def test_errors_have_fields_and_travel(pair):
    one, _ = pair
    with pytest.raises(hawser.InvalidError) as caught:
        one.range_of(one.array).region.table([(0, 10**9)])
    error = caught.value
    assert error.code == hawser.Code.INVALID and error.message in str(error) and error.advice
    assert (error.peer, error.device, error.bytes, error.scope) == ("", "", 0, "request")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and vars(again) == vars(error) and str(again) == str(error)
    with pytest.raises(hawser.NotFoundError) as caught:
        one.peer.region("nothing")
    assert "memory" in str(caught.value)


def test_cancel_and_time_out(pair):
    one, _ = pair
    region = one.range_of(one.array).region
    held = one.plan_write(one.peer, region.range(0, 8), one.peer.range("memory", 0, 8))
    word = region.range(1024, 8)
    transfer = held.submit(after=(word, 1))
    assert not transfer.done and transfer.status == "in_flight" and transfer.error is None
    with pytest.raises(TimeoutError):
        transfer.wait(0.01)
    transfer.cancel()
    with pytest.raises(hawser.CancelledError):
        transfer.wait(20)
    labelled = held.submit(after=(word, 1), label=5)
    assert one.end(5) == 1 and one.end(5) == 0
    with pytest.raises(hawser.CancelledError):
        labelled.wait(20)
    with pytest.raises(hawser.InvalidError):
        one.end(0)
    late = held.submit(after=(word, 1), deadline=0.01)
    with pytest.raises(hawser.TimedOutError):
        late.wait(20)
    assert late.done and late.status == late.error.code.name.lower()
    queue = one.make_queue(8)
    held.submit(queue=queue, cookie=77, done=(region.range(2048, 8), 5)).wait(20)
    entries = []
    eventually(lambda: entries.extend(queue.wait(1)) or any(entry[0] == 1 for entry in entries))
    cookie, size, error = next(entry[1:] for entry in entries if entry[0] == 1)
    assert (cookie, size, error) == (77, 8, None) and one.array[2048] == 5


def test_transfers_follow_one_another(pair):
    one, two = pair
    region = one.range_of(one.array).region
    there = one.plan_write(one.peer, region.range(0, 64), one.peer.range("memory", 4096, 64))
    back = one.plan_read(one.peer, one.peer.range("memory", 4096, 64), region.range(8192, 64))
    one.array[0] = 41
    gate = there.submit(after=(region.range(1024, 8), 1))
    last = back.submit(after=there.submit(after=gate))  # The one between is held by the last.
    assert not last.done
    one.array[1024] = 1
    last.wait(20)
    assert gate.done and one.array[8192] == 41 and two.array[4096] == 41
    one.array[1024] = 0
    gate = there.submit(after=(region.range(1024, 8), 1))
    last = back.submit(after=gate)
    gate.cancel()
    with pytest.raises(hawser.CancelledError, match="was to follow"):
        last.wait(20)
    with pytest.raises(hawser.CancelledError, match="was to follow"):
        back.submit(after=gate)


def test_several_tables_are_one_transfer(pair):
    one, two = pair
    region = one.range_of(one.array).region
    layers = [region.table([(start, 64, 64, 16)]) for start in (0, 2048)]
    copies = [one.peer.table("memory", [(start, 64, 64, 16)]) for start in (8192, 16384)]
    one.array[64], one.array[2048 + 64] = 5, 6
    plan = one.plan_write(one.peer, layers, copies, [1, 3], [0, 2])
    assert plan.bytes == 4 * 64
    plan.submit(notify=b"layers").wait(20)
    assert eventually(two.take_notification).text == "layers" and two.take_notification() is None
    assert two.array[8192] == 5 and two.array[16384] == 6
    single = [one.plan_write(one.peer, layers[i], copies[i], [1], [4]) for i in range(2)]
    joined = hawser.Plan.join(single)
    assert joined.range_count == 2
    joined.run()
    assert two.array[8192 + 4 * 64] == 5 and two.array[16384 + 4 * 64] == 6
    for wrong in (lambda: hawser.Plan.join([]), lambda: hawser.Plan.join([joined, 5]),
                  lambda: one.plan_write(one.peer, layers, copies[:1], [0], [0]),
                  lambda: one.plan_write(one.peer, [layers[0], region.range(0, 64)], copies, [0], [0])):
        with pytest.raises(hawser.InvalidError):
            wrong()


def test_use_after_close():
    agent = hawser.Agent("gone")
    array = agent.empty(4096, name="memory")
    region, peer = agent.range_of(array).region, agent.self()
    plan = agent.plan_write(peer, region.range(0, 8), peer.range("memory", 8, 8))
    region.close()
    array[:] = 3  # The memory stays until nobody refers to it.
    agent.close()
    agent.close()
    assert agent.closed and array.sum() == 3 * 4096 and bytes(memoryview(region)[:2]) == b"\3\3"
    calls = [lambda: agent.add_region(bytearray(8)), lambda: agent.allocate(8), plan.submit,
                 lambda: agent.add_peer(b"x"), lambda: agent.find_peer("x", 0.01), lambda: peer.notify("x"),
                 lambda: peer.connect(0.01), peer.reconnect, lambda: peer.send(20, "x"), lambda: agent.open_channel(20),
                 lambda: agent.plan_write(peer, region, region), lambda: agent.empty(5),
                 lambda: agent.plan_write(peer, region.range(0, 8), peer.range("memory", 8, 8)).submit()]
    for number, call in enumerate(calls):
        try:
            call()
        except (hawser.Error, TypeError):
            continue
        pytest.fail(f"call {number} was accepted")
    assert agent.take_notification() is None and agent.poll() == 0 and region.close() and peer.name == "gone"
    agent.counters(), agent.peers(), agent.backends(), agent.explain(plan)


def test_wrong_values(pair):
    one, _ = pair
    region = one.range_of(one.array).region
    plan = one.plan_write(one.peer, region.range(0, 8), one.peer.range("memory", 0, 8))
    calls = [
        lambda: one.add_region(numpy.zeros((4, 4)).T), lambda: one.add_region(numpy.zeros(8)[::2]),
        lambda: one.add_region(None), lambda: one.add_region(5), lambda: one.add_region(b""),
        lambda: one.add_region(bytearray(8), "\udcff"), lambda: one.add_region(bytearray(8), "memory"),
        lambda: one.add_region(bytearray(8), "x", "all"), lambda: one.allocate(0), lambda: one.allocate(-1),
        lambda: one.allocate(2**62), lambda: one.allocate(8, huge_pages="giant"), lambda: one.empty(-1),
        lambda: one.empty(4, object), lambda: region.range(0, 10**6), lambda: region.range(2**64 - 1, 2),
        lambda: region.range(-1, 2), lambda: one.range_of(bytearray(8)), lambda: one.add_peer(None),
        lambda: one.add_peer("\ud800"), lambda: plan.submit(notify=5), lambda: plan.submit(notify=b"x" * 70000),
        lambda: plan.submit(deadline=-1), lambda: plan.submit(deadline=float("nan")), lambda: plan.submit(deadline=0),
        lambda: plan.submit(deadline="soon"), lambda: plan.submit(priority="urgent"), lambda: plan.submit(signal=5),
        lambda: plan.submit(signal=(region.range(0, 8), 1)), lambda: plan.submit(done=(region.range(4, 8), 1)),
        lambda: plan.submit(after=(region.range(0, 4), 1)), lambda: plan.submit(queue=5), lambda: plan.submit(b"x"),
        lambda: one.open_channel(3), lambda: one.open_channel(16, 4, "urgent"), lambda: one.open_channel(16, 0), lambda: one.peer.send(16, b"x" * 70000),
        lambda: one.peer.notify(b"x" * 70000), lambda: one.peer.table("nothing", 64), lambda: one.peer.region(99),
        lambda: one.peer.region(None), lambda: one.peer.range("memory", 10**9), lambda: one.make_queue(0),
        lambda: one.plan_write(None, region, region), lambda: one.plan_write(one.peer, region, region),
        lambda: one.plan_write(one.peer, [], []), lambda: one.plan_write(one.self(), region, one.peer.region("memory")),
        lambda: one.plan_write(one.peer, region.table(64), one.peer.region("memory")),
        lambda: one.plan_write(one.peer, region, one.peer.region("memory"), [0], [0]),
        lambda: one.plan_write(one.peer, one.peer.table("memory", 64), region.table(64)),
        lambda: hawser.Region(), lambda: hawser.Transfer(), lambda: hawser.file_directory("/proc/nothing/here")]
    for number, call in enumerate(calls):
        try:
            call()
        except (hawser.Error, TypeError, ValueError, OverflowError):
            continue
        pytest.fail(f"call {number} was accepted")
    plan.submit().wait(20)


def test_a_plan_is_run_in_one_call(pair):
    one, two = pair
    one.array[:] = 7
    plan = one.plan_write(one.peer, one.range_of(one.array).region.range(0, 4096), one.peer.range("memory", 0, 4096))
    assert plan.run() is None
    assert (two.array[:4096] == 7).all()
    one.array[:] = 8
    plan.run(deadline=20)
    assert (two.array[:4096] == 8).all()
    for bad in (0, -1, "soon"):
        with pytest.raises((hawser.Error, TypeError, ValueError)):
            plan.run(deadline=bad)
    two.close()
    with pytest.raises(hawser.Error):
        plan.run()


def test_threads(pair):
    one, two = pair
    source, target = one.range_of(one.array).region.table(1024), one.peer.table("memory", 1024)
    failures = []

    def move(start):
        try:
            for turn in range(100):
                plan = one.plan_write(one.peer, source, target, [start + turn % 8], [start + turn % 8])
                plan.submit(notify=b"n").wait(30)
        except Exception as error:  # noqa: BLE001 - told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=move, args=(8 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    got = 0
    while got < 400 and not failures:
        got += len(eventually(two.take_notifications))
    for thread in threads:
        thread.join()
    assert not failures and got == 400


def test_agents_share_a_driver():
    driver = hawser.Driver(2)
    agents = [hawser.Agent(str(number), driver=driver) for number in range(5)]
    del driver  # The agents keep it.
    assert all(agent.driven for agent in agents)
    target = agents[0].empty(4096, name="memory")
    for number, agent in enumerate(agents[1:], 1):
        peer = agent.add_peer(agents[0].card())
        source = agent.empty(4096)
        source[:] = number
        agent.write(peer, source, peer.region("memory")).wait(20)
        assert (target == number).all()
        agent.close()  # The others go on.
    for options in [{"driver": 5}, {"driver": None}, {"driver": hawser.Driver(), "spin": 1e-3}]:
        with pytest.raises((hawser.InvalidError, TypeError)):
            hawser.Agent("odd", **options)
    for arguments in [(0,), (1000,), (-1,), (1, "fast")]:
        with pytest.raises((hawser.InvalidError, TypeError)):
            hawser.Driver(*arguments)


def test_dropped_things_leave_nothing_behind(pair):
    one, two = pair
    for turn in range(50):
        region = one.add_region(bytearray(4096))
        transfer = one.plan_write(one.peer, region, one.peer.range("memory", 0, 4096)).submit()
        if turn % 2:
            del region
        del transfer
    array = one.empty(4096, "int64")
    region = one.range_of(array).region
    view = array.reshape(64, 64)[3]
    del array, region
    view[:] = 1
    assert view.sum() == 64


def test_a_child_process_may_fork_and_exit():
    code = """
import os, hawser
agent = hawser.Agent("parent")
array = agent.empty(4096, name="memory")
region = agent.range_of(array).region
driver = hawser.Driver()
shared = hawser.Agent("shared", driver=driver)
child = os.fork()
if child == 0:
    try:
        hawser.Agent("odd", driver=driver)
        raise SystemExit(9)
    except hawser.InvalidError as error:
        assert "parent" in str(error), error
    del driver, shared
    hawser.Agent("own").close()
    try:
        agent.card()
    except hawser.InvalidError as error:
        assert "fork" in str(error), error
        del region, array
        raise SystemExit(7)
    raise SystemExit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
agent.self().range("memory")
"""
    subprocess.run(python_command(code), check=True, timeout=60)


@pytest.mark.parametrize("wait", ["transfer.wait()", "transfer.wait(0.001)", "agent.wait()", "agent.wait(0.001)"])
def test_the_interpreter_ends_beside_running_calls(wait):
    code = f"""
import threading, hawser
agent = hawser.Agent("leaves", driver={'agent' not in wait})
array = agent.empty(4096, name="memory")
region, peer = agent.range_of(array).region, agent.self()
plan = agent.plan_write(peer, region.range(0, 8), peer.range("memory", 8, 8))
transfer = plan.submit(after=(region.range(16, 8), 1))
started = threading.Event()
def work():
    while True:
        started.set()
        try:
            {wait}
        except hawser.TimedOutError:
            pass
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""
    done = subprocess.run(python_command(code), timeout=120, capture_output=True, text=True)
    assert done.returncode == 0 and "terminate" not in done.stderr, (done.returncode, done.stderr)


def test_ctrl_c_ends_a_wait():
    code = """
import hawser, signal, os, threading, time
agent = hawser.Agent("waits")
array = agent.empty(4096, name="memory")
region, peer = agent.range_of(array).region, agent.self()
transfer = agent.plan_write(peer, region.range(0, 8), peer.range("memory", 8, 8)).submit(after=(region.range(16, 8), 1))
try:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    transfer.wait(60)
except KeyboardInterrupt:
    raise SystemExit(3)
"""
    assert subprocess.run(python_command(code), timeout=60).returncode == 3


def test_the_benchmark_runs():
    bench = pathlib.Path(__file__).parents[2] / "bench" / "python_bench.py"
    done = subprocess.run([sys.executable, str(bench), "--entries", "1000", "--seconds", "0.01", "--json"],
                          capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    rows = {row["row"]: row["warm"] for row in json.loads(done.stdout[done.stdout.index("["):])}
    assert {"nixl.list", "nixl.prep", "nixl.make", "hawser.done", "write.1m.empty"} <= set(rows)
    assert all(value >= 0 for value in rows.values())


def tcp_address(agent):
    """Where it listens, as host:port."""
    return next(one["address"] for one in agent.backends() if one["name"] == "tcp").split(",")[0]


@pytest.mark.parametrize("security", ["default", "encrypt"])
def test_a_ticket_leads_to_the_agent_that_gave_it(security):
    settings = {"security": security}
    with hawser.Agent("owner", backends="tcp", settings=settings) as owner, \
            hawser.Agent("guest", backends="tcp", settings=settings) as guest:
        assert len(owner.ticket) == 64 and owner.ticket != guest.ticket
        target = owner.add_region(bytearray(4096), "target")
        peer = guest.find_peer(f"owner@{tcp_address(owner)}#{owner.ticket}", 20 * SCALE, regions=["target"])
        source = guest.empty(4096, "uint8")
        plan = guest.plan_write(peer, source, peer.region("target"))
        plan.submit().wait(20 * SCALE)
        assert ("TLS1.3" in guest.explain(plan)) == (security == "encrypt")
        target.close()
        with hawser.Agent("stranger", backends="tcp", settings=settings) as stranger:
            with pytest.raises(hawser.Error, match="no ticket"):
                stranger.find_peer(f"owner@{tcp_address(owner)}#{owner.ticket[:-1]}", 20 * SCALE)
            with pytest.raises(hawser.Error):
                stranger.find_peer(f"owner@{tcp_address(owner)}#{guest.ticket}", 20 * SCALE)


def test_who_lets_everybody_in_has_no_ticket():
    with hawser.Agent("open", backends="tcp", settings={"security": "none"}) as agent:
        assert agent.ticket == ""


def test_a_region_that_took_anothers_name_is_found():
    """The caller hears of it by other ways than the session, which may tell of it later."""
    program = textwrap.dedent("""
        import sys, hawser
        agent = hawser.Agent("owner", backends=sys.argv[1:])
        region = agent.allocate(4096, name="kv")
        print(agent.card().hex(), flush=True)
        for line in sys.stdin:
            region.close()
            region = agent.allocate(4096, name="kv")
            print("there", flush=True)
    """)
    for backends in (["shm"], ["tcp"]):
        owner = subprocess.Popen([sys.executable, "-c", program, *backends], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        with hawser.Agent("user", backends=backends) as agent:
            peer = agent.add_peer(bytes.fromhex(owner.stdout.readline()))
            mine = agent.allocate(4096)
            for _ in range(100):
                agent.write(peer, mine, peer.region("kv")).wait(20)
                owner.stdin.write("\n")
                owner.stdin.flush()
                assert owner.stdout.readline() == "there\n"
                peer.await_regions(["kv"], 20)
            agent.write(peer, mine, peer.region("kv")).wait(20)
            owner.stdin.close()
            assert owner.wait(20) == 0
