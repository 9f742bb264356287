"""hawser.rdma between processes. Names begin with the row of the list of conformance that they cover."""

import array
import asyncio
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy
import pytest

import hawser
import hawser.rdma as rdma
from hawser import _rdma_wait
from conftest import SCALE, eventually

LONG = 30 * SCALE
pytestmark = pytest.mark.filterwarnings("ignore::hawser.rdma.RDMATcpFallbackWarning")


class Far:
    """Another process that runs what it is told: a function of this file's, with its arguments."""

    def __init__(self, **environment):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            self.process = context.Process(target=_serve, args=(other,), daemon=True)
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name)
                else:
                    os.environ[name] = value
        other.close()

    def start(self, work, *arguments):
        self.pipe.send((work, arguments))

    def result(self):
        assert self.pipe.poll(2 * LONG), "the other process does not answer"
        good, value = self.pipe.recv()
        if not good:
            raise value
        return value

    def __call__(self, work, *arguments):
        self.start(work, *arguments)
        return self.result()

    def close(self):
        if self.process.is_alive():
            try:
                self.pipe.send(None)
            except OSError:
                pass
        self.process.join(10)
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.join()


def _serve(pipe):
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        if task is None:
            return
        work, arguments = task
        try:
            pipe.send((True, work(*arguments)))
        except Exception as error:
            pipe.send((False, error))


_kept = {}


def make(size, seed=0, name="memory"):
    """In the other process: a buffer over new memory."""
    _kept[name] = bytearray(bytes((i * 7 + seed) & 0xFF for i in range(256)) * (size // 256 + 1))[:size]
    return rdma.RDMABuffer(_kept[name])


def content(name="memory"):
    return bytes(_kept[name])


def pattern(size, seed=0):
    return bytes(bytearray(bytes((i * 7 + seed) & 0xFF for i in range(256)) * (size // 256 + 1))[:size])


def read(buffer, size, timeout=LONG):
    """In the other process: what a read gives."""
    into = bytearray(size)
    buffer.read_into(into, timeout=timeout).get()
    return bytes(into)


def counters():
    return rdma.agent().counters()


def buffer_count():
    return rdma._current().backend.buffer_count


@pytest.fixture(params=["best", "tcp"])
def far(request):
    """Both sides by the best path, or by tcp alone."""
    environment = {} if request.param == "best" else {"HAWSER_BACKENDS": "tcp"}
    rdma.close()
    for name, value in environment.items():
        os.environ[name] = value
    one = Far(**environment)
    one.backend = "shm" if request.param == "best" else "tcp"
    yield one
    one.close()
    for name in environment:
        del os.environ[name]
    rdma.close()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4095, 4096, 4097, (1 << 20) - 1, (1 << 20) + 1, 5 << 20])
def test_c2_sizes_and_prefixes(far, size):
    buffer = far(make, size, 3)
    into = bytearray(b"\xee" * (size + 9))
    buffer.read_into(into, timeout=LONG).get()
    assert into == pattern(size, 3) + b"\xee" * 9
    begin = size // 3
    buffer[begin:].write_from(memoryview(pattern(size, 9))[:size - begin], timeout=LONG).get()
    assert far(content) == pattern(size, 3)[:begin] + pattern(size, 9)[:size - begin]
    short = bytes(size // 2)
    buffer.write_from(short, timeout=LONG).get()
    assert far(content)[:size // 2] == short


def test_c2_zero_bytes(far):
    with pytest.raises(ValueError, match="no bytes"):
        rdma.RDMABuffer(bytearray())
    buffer = far(make, 100)
    assert buffer[100:].size() == 0
    buffer[50:50].read_into(bytearray(4), timeout=LONG).get()
    buffer.write_from(b"", timeout=LONG).get()
    assert far(content) == pattern(100)


def test_c3_what_does_not_fit_moves_nothing(far):
    buffer = far(make, 100)
    into = bytearray(b"\xee" * 99)
    with pytest.raises(ValueError, match="does not fit"):
        buffer.read_into(into, timeout=LONG).get()
    with pytest.raises(ValueError, match="does not fit"):
        buffer.write_from(bytes(101), timeout=LONG).get()
    with pytest.raises(PermissionError):
        buffer.read_into(bytes(100), timeout=LONG).get()
    assert into == b"\xee" * 99 and far(content) == pattern(100)


def test_types_and_layouts_are_refused(far):
    matrix = numpy.zeros((8, 8), numpy.uint8)
    for bad in ([1, 2], "text", 7, None, matrix.T[1:, :], memoryview(bytearray(64))[::2]):
        with pytest.raises(ValueError):
            rdma.RDMABuffer(bad)
    buffer = far(make, 64)
    for bad in ([1, 2], matrix[:, 1], memoryview(bytearray(200))[::2]):
        with pytest.raises(ValueError):
            buffer.read_into(bad)
        with pytest.raises(ValueError):
            buffer.write_from(bad)


@pytest.mark.parametrize("memory", [lambda: bytearray(4096), lambda: memoryview(bytearray(4096)),
                                    lambda: numpy.zeros((16, 32), "float64"), lambda: array.array("q", [0] * 512)])
def test_anything_with_a_contiguous_buffer(far, memory):
    buffer = far(make, 4096, 5)
    into = memory()
    buffer.read_into(into, timeout=LONG).get()
    assert bytes(memoryview(into).cast("B")) == pattern(4096, 5)
    mine = rdma.RDMABuffer(into)
    assert mine.size() == 4096 and mine.is_local and mine.backend in ("self", "loopback")
    assert far(read, mine, 4096) == pattern(4096, 5)
    mine.drop().get()


def test_c9_one_bad_operation_of_an_action(far):
    good, gone = far(make, 4096, 1, "good"), far(make, 4096, 2, "gone")
    gone.drop().get()
    parts = [bytearray(b"\xee" * 4096) for _ in range(3)]
    action = rdma.RDMAAction()
    action.read_remote(parts[0], good).read_remote(parts[1], gone).read_remote(parts[2], good)
    running = action.submit(timeout=LONG)
    with pytest.raises(hawser.Error, match="1 of 3 operations failed; the first of them is number 1"):
        running.get()
    errors = [error for error, _, _ in running.outcomes]
    assert errors[0] is None and errors[2] is None and isinstance(errors[1], hawser.DeniedError)
    assert parts[0] == parts[2] == pattern(4096, 1) and parts[1] == b"\xee" * 4096


def test_c10_timeouts(far):
    buffer = far(make, 1 << 20)
    into = bytearray(b"\xee" * (1 << 20))
    with pytest.raises(TimeoutError):
        buffer.read_into(into, timeout=0).get()
    with pytest.raises(OverflowError):
        buffer.read_into(into, timeout=-1)
    buffer.read_into(into, timeout=LONG).get()  # The path is up now.
    for timeout in (1e-6, 1e-5, 1e-4):
        operation = buffer.read_into(into, timeout=timeout)
        error = operation.exception()
        into[:] = b"\xdd" * len(into)
        time.sleep(0.005)
        assert into == b"\xdd" * len(into), "bytes came after the end"
        assert error is None or isinstance(error, TimeoutError)


def test_c10_a_stopped_owner_means_a_timeout(far):
    if far.backend != "tcp":
        pytest.skip("over shared memory the owner's process need not run")
    buffer = far(make, 4096)
    assert read(buffer, 4096) == pattern(4096)
    os.kill(far.process.pid, signal.SIGSTOP)
    os.waitpid(far.process.pid, os.WUNTRACED)  # Its threads may answer until then.
    try:
        begin = time.monotonic()
        with pytest.raises((TimeoutError, ConnectionError)):
            buffer.read_into(bytearray(4096), timeout=0.3).get()
        assert time.monotonic() - begin < 10 * SCALE
    finally:
        os.kill(far.process.pid, signal.SIGCONT)
    eventually(lambda: _read_or_none(buffer) == pattern(4096))  # The path comes back.


def _read_or_none(buffer):
    try:
        return read(buffer, 4096)
    except ConnectionError:
        return None


@pytest.mark.parametrize("by", ["holder", "owner"])
def test_c11_a_dropped_buffer_is_out_of_reach(far, by):
    buffer = far(make, 4096)
    again = pickle.loads(pickle.dumps(buffer))
    assert read(buffer, 4096) == pattern(4096)
    if by == "holder":
        buffer.drop().get()
    else:
        far(_drop, buffer)
    for each in (buffer, again, again[5:9]):
        with pytest.raises(hawser.Error):
            each.write_from(b"1234", timeout=LONG).get()
        with pytest.raises(hawser.Error):
            read(each, 4096)
    again.drop().get()  # Not an error.
    assert far(content) == pattern(4096) and far(buffer_count) == 0


def _drop(buffer):
    buffer.drop().get()


def test_c11_a_new_buffer_in_the_place_of_an_old_one(far):
    for seed in range(5):
        buffer = far(make, 4096, seed)
        assert read(buffer, 4096) == pattern(4096, seed)
        buffer.drop().get()
        assert isinstance(buffer.read_into(bytearray(4096)).exception(), hawser.DeniedError)


def test_c11_a_drop_that_nobody_waits_for_is_carried_out(far):
    far(make, 4096).drop()
    gc.collect()
    eventually(lambda: far(buffer_count) == 0)


def test_a_loop_waits_in_place_for_what_is_short_and_alone():
    class Batch:
        def __init__(self, ends):
            self.ends, self.waits = ends, 0

        def wait(self, _):
            self.waits += 1
            return self.ends

    async def run():
        link = _rdma_wait._link_of(asyncio.get_running_loop())
        assert link.linger(Batch(True))
        long = Batch(False)
        assert not any(link.linger(long) for _ in range(1 + _rdma_wait._VAIN_PAUSE))
        assert long.waits == 1
        assert link.linger(Batch(True))
        link.waiting[0] = None
        beside = Batch(True)
        assert not link.linger(beside) and beside.waits == 0
        del link.waiting[0]

    asyncio.run(run())


def test_c12_a_new_consumer_reads_what_an_earlier_one_read(far):
    memory = numpy.arange(4096, dtype=numpy.uint8)
    mine = rdma.RDMABuffer(memory)
    assert far(read, mine, 4096) == memory.tobytes()
    os.kill(far.process.pid, signal.SIGKILL)
    far.process.join()
    fresh = Far()
    try:
        assert fresh(read, mine, 4096) == memory.tobytes()
    finally:
        fresh.close()


def test_c12_an_owner_that_died_is_an_error_in_bounded_time(far):
    met, unmet = far(make, 4096, 0, "met"), far(make, 4096, 0, "unmet")
    assert read(met, 4096) == pattern(4096)
    os.kill(far.process.pid, signal.SIGKILL)
    far.process.join()
    for buffer in (met, unmet):
        begin = time.monotonic()
        with pytest.raises(hawser.Error):
            read(buffer, 4096, timeout=LONG)
        with pytest.raises(hawser.Error):
            buffer.drop(timeout=LONG).get()
        assert time.monotonic() - begin < 20 * SCALE


def test_c13_handles_come_back_from_any_pickle(far):
    mine = rdma.RDMABuffer(bytearray(b"0123456789"))
    part = mine[2:6]
    back = pickle.loads(pickle.dumps(part))
    assert back == part and hash(back) == hash(part) and back.size() == 4 and back.owner == mine.owner
    assert rdma.RDMABuffer.from_bytes(back.to_bytes()) == part
    assert "tcp" in mine.contexts
    assert far(read, part, 4) == b"2345"
    cloudpickle = pytest.importorskip("cloudpickle", reason="no cloudpickle in the virtual environment")
    assert cloudpickle.loads(cloudpickle.dumps({"x": [part]}))["x"][0] == part


def test_c13_backends_that_a_reader_does_not_know_are_passed_over(far):
    if far.backend == "tcp":
        pytest.skip("the other side has to know more than we do")
    buffer = far(make, 4096)
    assert {"shm", "tcp"} <= set(buffer.contexts)
    only_tcp = Far(HAWSER_BACKENDS="tcp")
    try:
        assert only_tcp(read, buffer, 4096) == pattern(4096)
        assert only_tcp(_backend_of, buffer) == "tcp"
    finally:
        only_tcp.close()


def _backend_of(buffer):
    return buffer.backend


def test_what_is_no_handle_is_corrupt():
    with pytest.raises(hawser.CorruptError):
        rdma.RDMABuffer.from_bytes(b"nothing of the kind")


def test_c14_memory_is_registered_once_while_it_lives(far):
    buffer = far(make, 4096)
    into = numpy.zeros(4096, numpy.uint8)
    buffer.read_into(into).get()
    before = rdma.agent().counters()["regions"]
    for _ in range(20):
        buffer.read_into(into).get()
    assert rdma.agent().counters()["regions"] == before
    del into
    gc.collect()
    eventually(lambda: rdma.agent().counters()["regions"] == before - 1)


def test_memory_is_what_it_is_now_not_what_it_was_when_it_was_first_used(far):
    buffer = far(make, 4096, 1)
    memory = numpy.zeros(4096, numpy.uint8)
    memory.flags.writeable = False
    buffer.write_from(memory).get()
    memory.flags.writeable = True
    buffer.read_into(memory).get()
    memory[:] = 7
    memory.flags.writeable = False
    with pytest.raises(hawser.DeniedError):
        buffer.read_into(memory).get()
    assert (memory == 7).all()


def test_memory_is_the_callers_again_once_a_wait_is_over(far):
    buffer = far(make, 64 << 10, 1)
    for _ in range(500):
        memory = bytearray(64 << 10)
        buffer.read_into(memory, timeout=LONG).get()
        memory.append(1)  # A BufferError while somebody holds its bytes.

    async def work():
        for _ in range(500):
            memory = bytearray(64 << 10)
            await buffer.read_into(memory, timeout=LONG)
            memory.append(1)

    asyncio.run(work())


def test_c22_the_backend_that_is_reported_is_the_one_that_moved(far):
    buffer = far(make, 1 << 20)
    assert buffer.backend == far.backend
    before = {path["backend"]: path["chunks"] for path in counters()["paths"]}
    read(buffer, 1 << 20)
    after = {path["backend"]: path["chunks"] for path in counters()["paths"]}
    moved = {name for name in after if after[name] > before.get(name, 0)}
    assert moved == {buffer.backend}
    assert rdma.get_rdma_backend() in ("ibverbs", "tcp") and isinstance(rdma.is_ibverbs_available(), bool)


def test_c23_no_torch_is_imported(far):
    code = ("import hawser.rdma as r, sys; b = bytearray(8); r.RDMABuffer(memoryview(b'12345678')).read_into(b).get();"
            "assert b == b'12345678' and 'torch' not in sys.modules and 'numpy' not in sys.modules; print('good')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * LONG)
    assert done.stdout.strip() == "good", done.stderr


class _GpuTensor:  # What torch shows of one that no backend here reaches; its bytes are never touched.
    device = types.SimpleNamespace(type="cuda", index=1)

    def is_contiguous(self):
        return True

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return 1 << 32

    def numel(self):
        return 1024

    def element_size(self):
        return 4

    def untyped_storage(self):
        return self


def test_memory_of_a_gpu_is_told_to_the_agent_which_says_what_reaches_it(far, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=_GpuTensor))
    for use in (rdma.RDMABuffer, far(make, 4096).read_into):
        with pytest.raises(hawser.UnsupportedError, match="cuda:1.*add_region|add_region.*cuda:1"):
            use(_GpuTensor())


def test_warning_of_tcp_comes_once(far):
    buffers = [far(make, 64, 0, str(i)) for i in range(2)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for buffer in buffers:
            read(buffer, 64)
    told = [each for each in caught if issubclass(each.category, rdma.RDMATcpFallbackWarning)]
    assert len(told) == (1 if far.backend == "tcp" else 0)


def test_atomics_between_two_processes(far):
    words = array.array("Q", [5, 0, 0])
    mine = rdma.RDMABuffer(words)
    far.start(_count, mine, 1000)
    for _ in range(1000):
        mine.fetch_add(1, offset=8, timeout=LONG).get()
    assert far.result() == 1000
    assert words[1] == 2000
    assert far(_swap, mine, 5, 7) == 5 and words[0] == 7
    assert far(_swap, mine, 5, 9) == 7 and words[0] == 7
    assert far(_add_by_action, mine, -2) == 7 and words[0] == 5
    with pytest.raises(ValueError, match="aligned"):
        far(_swap_at, mine, 4)


def _count(buffer, times):
    for _ in range(times):
        buffer.fetch_add(1, offset=8, timeout=LONG).get()
    return times


def _swap(buffer, compare, swap):
    return buffer.compare_and_swap(compare, swap, timeout=LONG).get()


def _swap_at(buffer, offset):
    return buffer.compare_and_swap(0, 1, offset=offset, timeout=LONG).get()


def _add_by_action(buffer, add):
    found = array.array("Q", [0])
    rdma.RDMAAction().fetch_add(buffer, found, add).submit(timeout=LONG).get()
    return found[0]


def test_the_owner_is_told_after_the_bytes(far):
    memory = bytearray(1 << 20)
    mine = rdma.RDMABuffer(memory)
    far.start(_write_and_tell, mine, 1 << 20)
    note = eventually(rdma.take_notification)
    assert note.data == b"it is there" and memory == pattern(1 << 20, 4)
    far.result()


def _write_and_tell(buffer, size):
    buffer.write_from(pattern(size, 4), notify=b"it is there", timeout=LONG).get()


def test_actions(far):
    first, second = far(make, 4096, 1, "first"), far(make, 4096, 2, "second")
    into = bytearray(4096)
    action = rdma.RDMAAction()
    action.submit().get()  # Of nothing: nothing.
    assert action.read_remote(into, first) is action
    action.write_remote(second, pattern(4096, 8))
    for _ in range(3):
        into[:] = bytes(4096)
        action.submit(timeout=LONG).get()
        assert into == pattern(4096, 1)
    assert far(content, "second") == pattern(4096, 8)
    with pytest.raises(ValueError):
        action.read_remote(bytearray(4095), first)
    with pytest.raises(ValueError):
        action.write_remote(second, bytes(4097))


def test_an_action_that_runs_is_not_changed(far):
    buffer = far(make, 64 << 20)
    into = bytearray(64 << 20)
    action = rdma.RDMAAction().read_remote(into, buffer)
    running = action.submit(timeout=LONG)
    if not running.done():
        with pytest.raises(RuntimeError):
            action.read_remote(into, buffer)
        with pytest.raises(RuntimeError):
            action.submit()
    running.get()
    assert bytes(into) == pattern(64 << 20)


def test_awaited_in_several_loops_at_once(far):
    buffer = far(make, 8 << 20, 6)

    async def work():
        parts = [bytearray(8 << 20) for _ in range(3)]
        for _ in range(5):
            await asyncio.gather(*(buffer.read_into(part, timeout=LONG) for part in parts))
        assert all(part == pattern(8 << 20, 6) for part in parts)
        with pytest.raises(ValueError):
            await buffer.read_into(bytearray(7))
        assert await rdma.RDMAAction().read_remote(parts[0], buffer).submit(timeout=LONG) is None
        return True

    results = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(work()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONG)
    assert results == [True] * 3


def test_a_cancelled_wait_cancels_the_operation(far):
    buffer = far(make, 64 << 20)
    into = bytearray(64 << 20)

    async def work():
        operation = buffer.read_into(into, timeout=LONG)
        task = operation.as_asyncio()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return operation

    operation = asyncio.run(work())
    error = operation.exception(LONG)
    assert error is None or isinstance(error, hawser.CancelledError)
    into[:] = b"\xdd" * len(into)
    time.sleep(0.01)
    assert into.count(b"\xdd") == len(into)


def test_memory_stays_alive_while_it_is_used(far):
    buffer = far(make, 16 << 20, 2)
    for _ in range(4):
        buffer.read_into(bytearray(16 << 20), timeout=LONG)  # Nobody holds either.
    gc.collect()
    assert read(buffer, 16 << 20) == pattern(16 << 20, 2)
    eventually(lambda: counters()["transfers_in_flight"] == 0)


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def now_peak():
    """The peak from here on: what an earlier test took does not hide what this one does."""
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")
    return peak()


def available():
    with open("/proc/meminfo") as memory:
        return next(int(line.split()[1]) << 10 for line in memory if line.startswith("MemAvailable"))


def make_touched(size):
    rdma.agent()
    _kept["large"] = bytearray(b"\1") * size
    return rdma.RDMABuffer(_kept["large"]), now_peak()


@pytest.mark.parametrize("size", [256 << 20, 2 << 30], ids=["256MiB", "2GiB"])
def test_a_large_buffer_takes_no_memory_beside_it(far, size):
    if available() < 4 * size:
        pytest.skip(f"{4 * size >> 30} GiB of free memory are needed, there are {available() >> 30}")
    room, patience = 64 << 20, 6 * LONG
    buffer, far_before = far(make_touched, size)
    mine = memoryview(bytearray(b"\2") * size)
    before = now_peak()
    buffer.write_from(mine, timeout=patience).get()
    mine[:8] = bytes(8)
    buffer.read_into(mine, timeout=patience).get()
    assert bytes(mine[:8]) == b"\2" * 8 and bytes(mine[-8:]) == b"\2" * 8
    assert peak() - before < room and far(peak) - far_before < room


def test_a_fork_has_an_agent_of_its_own(far):
    buffer = far(make, 4096, 1)
    assert read(buffer, 4096) == pattern(4096, 1)
    parent = rdma.agent().name
    child = os.fork()
    if child == 0:
        good = rdma.agent().name != parent and read(buffer, 4096) == pattern(4096, 1)
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert read(buffer, 4096) == pattern(4096, 1)


def test_tcp_that_is_not_allowed_is_not_opened():
    far = Far(MONARCH_RDMA_ALLOW_TCP_FALLBACK="0")
    try:
        assert "tcp" not in far(_open_backends)
    finally:
        far.close()
    far = Far(MONARCH_RDMA_ALLOW_TCP_FALLBACK="0", HAWSER_BACKENDS="tcp")
    try:
        with pytest.raises(RuntimeError, match="MONARCH_RDMA_ALLOW_TCP_FALLBACK"):
            far(make, 64)
    finally:
        far.close()


def _tcp_params():
    return next(each["params"] for each in rdma.agent().backends() if each["name"] == "tcp")


def _settings_of(**environment):
    """What Monarch's keys become, without an agent."""
    from hawser import _rdma_environment

    with pytest.MonkeyPatch.context() as patch:
        for key, value in environment.items():
            patch.setenv(key, value)
        return _rdma_environment.settings(None)


def test_keys_of_monarch_become_parameters():
    asked = _settings_of(MONARCH_RDMA_IBVERBS_TARGET="gpu:1", MONARCH_RDMA_PEER_DEVICE_AFFINITY="match_name",
                         MONARCH_RDMA_QPS_PER_PEER="4", MONARCH_RDMA_QP_INIT_TIMEOUT="12",
                         MONARCH_RDMA_TCP_FALLBACK_PARALLELISM="8")
    assert asked == {"backend.verbs.near": "cuda:1", "backend.verbs.rails": "match_name", "backend.verbs.pairs": "4",
                     "backend.verbs.connect_timeout": "12s", "backend.tcp.connections": "9"}
    assert _settings_of(MONARCH_RDMA_IBVERBS_TARGET="nic:mlx5_0") == {"backend.verbs.near": "nic:mlx5_0"}
    assert _settings_of(MONARCH_RDMA_TCP_FALLBACK_PARALLELISM="1") == {}, "Monarch's default is no wish"
    assert _settings_of(MONARCH_DEBUG_RDMA="1") == {"log": "debug"}
    assert _settings_of(MONARCH_DEBUG_RDMA="1", HAWSER_LOG="error") == {} == _settings_of(MONARCH_DEBUG_RDMA="0")
    assert _settings_of(MONARCH_RDMA_QPS_PER_PEER="4", HAWSER_BACKEND_VERBS_PAIRS="2") == {}, "ours wins"
    for key, value in (("IBVERBS_TARGET", "tpu:1"), ("QPS_PER_PEER", "0"), ("TCP_FALLBACK_PARALLELISM", "many")):
        with pytest.raises(hawser.InvalidError, match=f"MONARCH_RDMA_{key}='{value}'"):
            _settings_of(**{f"MONARCH_RDMA_{key}": value})


def test_keys_of_monarch_that_change_nothing_say_why_once():
    with pytest.warns(RuntimeWarning, match="MONARCH_RDMA_QPS_PER_CQ changes nothing"):
        assert _settings_of(MONARCH_RDMA_QPS_PER_CQ="4") == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _settings_of(MONARCH_RDMA_QPS_PER_CQ="4")


def test_keys_of_monarch_reach_the_backend():
    far = Far(MONARCH_RDMA_TCP_FALLBACK_PARALLELISM="4", MONARCH_RDMA_QPS_PER_PEER="2")
    try:
        assert far(_tcp_params)["connections"] == "5"
    finally:
        far.close()


def test_backends_can_be_told_by_the_program():
    rdma.close()
    rdma.configure(backends=["tcp"])
    try:
        assert _open_backends() == ["loopback", "tcp"] and rdma.get_rdma_backend() == "tcp"
    finally:
        rdma.close()
        rdma.configure()
    assert "shm" in _open_backends()


def _open_backends():
    return sorted(rdma._current().open)


def test_the_example_runs():
    source = os.environ.get("TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
    done = subprocess.run([sys.executable, os.path.join(source, "examples", "rdma_weights.py")], capture_output=True,
                          text=True, timeout=2 * LONG)
    assert done.returncode == 0 and "fetched by 2 generators" in done.stdout, done.stdout + done.stderr


def test_the_deprecated_name_says_so():
    with pytest.warns(DeprecationWarning):
        assert rdma.is_rdma_available() == rdma.is_ibverbs_available()
