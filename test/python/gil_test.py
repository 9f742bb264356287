"""Python's lock: calls that work for long give it up, so that other threads run meanwhile; polls do not pass it around."""

import gc
import pickle
import sys
import threading
import time

import numpy
import pytest

import hawser
from nixl import _bindings
from nixl._api import nixl_agent, nixl_agent_config
from conftest import eventually

MANY = 2_000_000
TRIES = 40  # On a busy machine the other thread is often not woken in time. It never runs where the lock is kept.


class Ticker:
    """A thread that runs whenever it is let: `ticks` grows, `gap` is the longest time in which it did not."""

    def __init__(self):
        self.ticks, self.gap, self.ending = 0, 0.0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        last = time.monotonic()
        while not self.ending:
            time.sleep(0)  # Gives the lock up.
            now = time.monotonic()
            self.gap, last = max(self.gap, now - last), now
            self.ticks += 1

    def close(self):
        self.ending = True
        self.thread.join()


@pytest.fixture
def runs_beside():
    """Whether another thread runs during a call. Nobody takes the lock from who does not give it up."""
    interval = sys.getswitchinterval()
    ticker = Ticker()
    sys.setswitchinterval(1000)

    def check(call):
        for _ in range(TRIES):
            before = ticker.ticks
            made = call()
            if ticker.ticks > before:
                return True
            del made
            time.sleep(0.01)
        return False

    yield check
    sys.setswitchinterval(interval)
    ticker.close()


def test_the_test_can_fail(runs_beside):
    assert not runs_beside(lambda: sum(range(MANY)))
    assert runs_beside(lambda: time.sleep(0.01))


def test_cards(runs_beside):
    with hawser.Agent("one") as agent:
        memory = numpy.zeros((3000, 16), numpy.uint8)
        regions = [agent.add_region(row, f"region {i}") for i, row in enumerate(memory)]
        assert runs_beside(agent.card)
        assert runs_beside(lambda: agent.card(since=0))
        assert runs_beside(lambda: agent.card(regions=regions[::2]))


def test_tables_and_plans(pair, runs_beside):
    one, two = pair
    pairs = numpy.zeros((MANY, 2), numpy.uint64)
    pairs[:, 1] = 1
    pairs[:, 0] = numpy.random.default_rng(1).integers(0, 65535, MANY)  # No shape that is short to tell.
    region = one.range_of(one.array).region
    assert runs_beside(lambda: region.table(pairs))
    assert runs_beside(lambda: one.peer.table("memory", pairs))
    assert runs_beside(region.table(pairs).encode)
    blob = two.range_of(two.array).region.table(pairs).encode()
    assert runs_beside(lambda: one.peer.import_table(blob))
    blocks, theirs = region.table(1), one.peer.table("memory", 1)
    index = numpy.zeros(65536, numpy.int64)
    assert runs_beside(lambda: one.plan_write(one.peer, blocks, theirs, index, index))


def test_index_arrays_are_widened_beside_others(pair, runs_beside):
    """What is wrong in them is told after the lock was had again."""
    one, _ = pair
    blocks, theirs = one.range_of(one.array).region.table(1), one.peer.table("memory", 1)
    index = numpy.zeros(MANY * 8, numpy.int64)
    index[-1] = -1

    def refused():
        with pytest.raises(hawser.InvalidError, match="negative or above"):
            one.plan_write(one.peer, blocks, theirs, index, index)

    assert runs_beside(refused)


@pytest.mark.parametrize("kind", [_bindings.nixlXferDList, _bindings.nixlRegDList])
def test_lists_are_built_and_pickled_beside_others(runs_beside, kind):
    rows = numpy.ones((MANY, 3), numpy.uint64)
    assert runs_beside(lambda: kind(_bindings.DRAM_SEG, rows))
    assert runs_beside(lambda: kind(_bindings.DRAM_SEG, MANY))
    made = kind(_bindings.DRAM_SEG, rows)
    assert runs_beside(made.__getstate__)
    state = made.__getstate__()
    assert runs_beside(lambda: kind.__new__(kind).__setstate__(state))
    again = pickle.loads(pickle.dumps(made))
    assert runs_beside(lambda: again == made) and again == made


def test_a_list_is_not_changed_while_it_is_read():
    made = _bindings.nixlRegDList(_bindings.DRAM_SEG, numpy.ones((MANY, 3), numpy.uint64))
    refused, over = [], threading.Event()

    def change():
        while not over.is_set():
            for change in (lambda: made.append((1, 1, 1, "")), lambda: made.remDesc(-1)):
                try:
                    change()
                except BufferError:
                    refused.append(change)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        eventually(lambda: made.__getstate__() and refused, 60)
    finally:
        over.set()
        thread.join()
    made.clear()
    assert len(made) == 0


def test_polls_keep_the_lock(runs_beside):
    """Who polls is not held up by others that want to run."""
    one = nixl_agent("one", nixl_agent_config())
    memory = numpy.zeros(4096, numpy.uint8)
    one.register_memory([(memory.ctypes.data, 4096, 0, "")], "DRAM")
    descs = one.get_xfer_descs([(memory.ctypes.data, 1024, 0)], "DRAM")
    handle = one.initialize_xfer("WRITE", descs, one.get_xfer_descs([(memory.ctypes.data + 2048, 1024, 0)], "DRAM"), "one")
    one.transfer(handle)
    eventually(lambda: one.check_xfer_state(handle) == "DONE")
    gc.collect()  # What goes meanwhile would be given back without the lock.
    gc.disable()

    def often(call):
        for _ in range(10_000):
            call()

    try:
        assert not runs_beside(lambda: often(lambda: one.check_xfer_state(handle)))
        assert not runs_beside(lambda: often(one.get_new_notifs))
        with hawser.Agent("two") as two:
            assert not runs_beside(lambda: often(two.take_notifications))
    finally:
        gc.enable()
