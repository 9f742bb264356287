"""An allocator's segments, told by a function: against a library with RDMA devices in memory and a fake CUDA driver
(test/api/mock_library.h), because no GPU is at hand."""

import ctypes
import gc
import re
import subprocess
import sys
import threading
import weakref

import numpy
import pytest

import hawser
from conftest import SCALE, python_command
from dlpack_test import CUDA, UINT, Exporter

ALLOCATION = 64 * 1024
LIBRARY = ctypes.CDLL("libhawser.so.0")  # The one that hawser has loaded.


def exported():
    """How many dmabufs there were so far, and the last one's bytes."""
    count, size = ctypes.c_uint64(), ctypes.c_uint64()
    LIBRARY.hawser_mock_exported(ctypes.byref(count), ctypes.byref(size))
    return count.value, size.value


class Gpu:
    """Memory that stands for a GPU's: eight allocations."""

    def __init__(self):
        whole = numpy.full(9 * ALLOCATION, 0xDD, numpy.uint8)
        start = -whole.ctypes.data % 4096
        self.bytes = whole[start : start + 8 * ALLOCATION]
        self.address = self.bytes.ctypes.data
        for number in range(8):
            base = ctypes.c_void_p(self.address + number * ALLOCATION)
            LIBRARY.hawser_mock_gpu(base, ctypes.c_uint64(ALLOCATION), 0, ctypes.c_uint64(self.address + number))

    def tensor(self, offset, size):
        return Exporter(self.bytes[offset:], (size,), device=CUDA, code=UINT, bits=8)


@pytest.fixture
def gpu():
    yield Gpu()  # Its memory is not freed before the test's agents are closed.


def open_agent(segments=None, device="mock0", driver=True):
    return hawser.Agent("one", backends={"loopback": None, "verbs": {"devices": device}}, environment=False,
                        segments=segments, driver=driver)


def exported_for(agent, tensor):
    """What had to be exported for it: 0, or the bytes of one dmabuf."""
    before, _ = exported()
    region = agent.add_region(tensor)
    after, size = exported()
    region.close()
    assert after - before <= 1
    return size if after > before else 0


@pytest.mark.parametrize("driver", [True, False])
def test_regions_in_a_segment_share_its_key(gpu, driver):
    asked, allocations = [], 2

    def segments():
        asked.append(threading.get_ident())
        return [hawser.Segment(gpu.address, allocations * ALLOCATION), (gpu.address + 7 * ALLOCATION, ALLOCATION, 5, 1)]

    with open_agent(segments, driver=driver) as agent:
        assert exported_for(agent, gpu.tensor(100, 1000)) == 2 * ALLOCATION
        assert exported_for(agent, gpu.tensor(ALLOCATION - 500, 1000)) == 0
        assert asked == [threading.get_ident()]
        allocations = 4
        assert exported_for(agent, gpu.tensor(3 * ALLOCATION, 1000)) == 2 * ALLOCATION
        assert exported_for(agent, gpu.tensor(7 * ALLOCATION, 1000)) == ALLOCATION, "that segment is another GPU's"
        assert len(asked) == 3


def test_without_segments_each_allocation_is_registered(gpu):
    with open_agent() as agent:
        assert exported_for(agent, gpu.tensor(100, 1000)) == ALLOCATION


def test_bytes_go_by_the_key_of_a_segment(gpu):
    with open_agent(lambda: [(gpu.address, 2 * ALLOCATION)]) as owner, open_agent(device="mock1") as user:
        region = owner.add_region(gpu.tensor(ALLOCATION - 2048, 4096), "gpu")
        source = numpy.arange(4096, dtype=numpy.uint8)
        ours = user.add_region(source)
        peer = user.add_peer(owner.card())
        user.write(peer, ours.range(0, 4096), peer.range("gpu", 0, 4096)).wait(20 * SCALE)
        assert (gpu.bytes[ALLOCATION - 2048 : ALLOCATION + 2048] == source).all()
        region.close()


def test_other_threads_run_while_it_is_asked(gpu):
    """The function waits for another thread, which uses the agent meanwhile."""
    begun, over = threading.Event(), threading.Event()

    def segments():
        begun.set()
        assert over.wait(20 * SCALE)
        return [(gpu.address, 2 * ALLOCATION)]

    with open_agent(segments) as agent:
        made = []
        thread = threading.Thread(target=lambda: made.append(exported_for(agent, gpu.tensor(100, 1000))))
        thread.start()
        assert begun.wait(20 * SCALE)
        memory = numpy.zeros(4096, numpy.uint8)
        region = agent.add_region(memory, "host")
        agent.write(agent.self(), region.range(0, 8), agent.self().range("host", 64, 8)).wait(20 * SCALE)
        assert made == []
        over.set()
        thread.join()
        assert made == [2 * ALLOCATION]


def raise_it():
    raise RuntimeError("no allocator")


@pytest.mark.parametrize("segments, text", [
    (raise_it, "no allocator"), (lambda: None, "not iterable"), (lambda: [1], "1 is no .address, size"),
    (lambda: [(4096,)], "is no .address"), (lambda: [(1, 2, 3, 4, 5)], "is no .address"),
    (lambda: [(4096, -1)], "no integer"), (lambda: [("a", 1)], "no integer"), (lambda: [(0, 1)], "no range"),
    (lambda: [(4096, 0)], "no range"), (lambda: [(2**64 - 1, 2)], "no range"), (lambda: [(4096, 1, 2**32)], "no range")])
def test_what_it_raises_is_told_and_stops_nobody(gpu, monkeypatch, segments, text):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: told.append((str(one.exc_value), one.object)))
    with open_agent(segments) as agent:
        assert exported_for(agent, gpu.tensor(100, 1000)) == ALLOCATION
    assert len(told) == 1 and told[0][1] is segments
    assert re.search(text, told[0][0])


def test_ctrl_c_in_it_is_raised_where_memory_is_registered(gpu):
    def segments():
        raise KeyboardInterrupt

    with open_agent(segments) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.add_region(gpu.tensor(100, 1000))
            for _ in range(1000):
                pass


def test_it_must_be_a_function():
    with pytest.raises(hawser.InvalidError, match="segments is no function"):
        open_agent([(1, 2)])


def test_it_goes_when_its_agent_is_closed(gpu):
    class Allocator:
        def __call__(self):
            return [(gpu.address, ALLOCATION)]

    allocator = Allocator()
    gone = weakref.ref(allocator)
    agent = open_agent(allocator)
    allocator.agent = agent  # A ring, which closing breaks.
    del allocator
    exported_for(agent, gpu.tensor(100, 1000))
    assert gone() is not None
    agent.close()
    gc.collect()
    assert gone() is None
    allocator = Allocator()
    gone = weakref.ref(allocator)
    with pytest.raises(hawser.Error):
        open_agent(allocator, device="mock7")
    del allocator
    gc.collect()
    assert gone() is None


class TensorOfGpu:
    """As much of a torch tensor as hawser.rdma looks at."""

    class Where:
        type, index = "cuda", 0

    device = Where()

    def __init__(self, gpu, offset, size):
        self.gpu, self.offset, self.size = gpu, offset, size

    def is_contiguous(self):
        return True

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return self.gpu.address + self.offset

    def numel(self):
        return self.size

    def element_size(self):
        return 1

    def untyped_storage(self):
        return self


class Torch:
    Tensor = TensorOfGpu

    class cuda:
        segments = []
        is_initialized = staticmethod(lambda: True)
        memory_snapshot = staticmethod(lambda: Torch.cuda.segments)


def test_remote_buffers_lie_in_pytorchs_expandable_segments(gpu, monkeypatch):
    rdma = pytest.importorskip("hawser.rdma")
    monkeypatch.setitem(sys.modules, "torch", Torch)
    monkeypatch.setattr(Torch.cuda, "segments", [
        {"address": gpu.address, "total_size": 2 * ALLOCATION, "device": 0, "is_expandable": True},
        {"address": gpu.address + 4 * ALLOCATION, "total_size": 2 * ALLOCATION, "device": 0, "is_expandable": False}])
    devices = 2
    try:
        before, _ = exported()
        first = rdma.RDMABuffer(TensorOfGpu(gpu, ALLOCATION - 500, 100))
        assert exported() == (before + 2 * devices, 2 * ALLOCATION), "its allocation for itself, its segment for peers"
        second = rdma.RDMABuffer(TensorOfGpu(gpu, ALLOCATION + 300, 100))
        assert exported() == (before + 3 * devices, ALLOCATION), "its allocation for itself"
        third = rdma.RDMABuffer(TensorOfGpu(gpu, 5 * ALLOCATION, 100))
        assert exported() == (before + 5 * devices, ALLOCATION), "that is in no expandable one"
        for one in (first, second, third):
            one.drop().get(timeout=20 * SCALE)
    finally:
        rdma.close()


AT_EXIT = """
import sys, threading, time
sys.path.insert(0, {folder!r})
import segments_test

gpu = segments_test.Gpu()
begun = threading.Event()

def segments():
    begun.set()
    {meanwhile}
    return []

agent = segments_test.open_agent(segments)
threading.Thread(target=lambda: agent.add_region(gpu.tensor(100, 1000)), daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("meanwhile", ["time.sleep(0.3)", "threading.Event().wait()"])
def test_the_interpreter_ends_while_it_is_asked(meanwhile):
    folder = __file__.rpartition("/")[0]
    ended = subprocess.run(python_command(AT_EXIT.format(folder=folder, meanwhile=meanwhile)), capture_output=True,
                           text=True, timeout=60 * SCALE)
    assert (ended.returncode, ended.stderr) == (0, "")
