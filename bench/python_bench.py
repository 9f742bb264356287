"""What Python costs: lists and plans of a million entries, polls, a write beside the one that C++ reaches.

usage: python_bench.py [--entries N] [--cpp WRITE_BENCH] [--seconds S] [--json]

Run it on a quiet machine, with the packages built as they are shipped:
    ./dev wheel && ./dev build && build/wheel_venv/bin/python bench/python_bench.py --cpp build/release/bin/write_bench
The lists name blocks in random order; .random picks them in random order, too, so that every entry is a cache miss.
Cold is the first time, warm the median of what follows. WRITE_BENCH is the same write in C++; without it that row is
left out.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import hawser
from nixl._api import nixl_agent
from nixl.logging import get_logger

BLOCK = 64
BATCH = 16
ROUNDS = 7


def timed(what, rounds=ROUNDS):
    """(cold, warm) in seconds; what a call gives lives until the next is over."""
    times, kept = [], None
    for _ in range(rounds):
        begin = time.perf_counter()
        made = what()
        times.append(time.perf_counter() - begin)
        kept = made
    del kept
    return times[0], statistics.median(times[1:])


def each(what, count=200_000):
    """Seconds of one call, the best of a few stretches, less the loop's own."""
    def stretch(call):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - begin

    nothing = min(stretch(lambda: None) for _ in range(3))
    return max(min(stretch(what) for _ in range(5)) - nothing, 0.0) / count


def nixl_rows(entries):
    agent = nixl_agent("bench")
    buffer = numpy.zeros(entries * BLOCK, numpy.uint8)
    agent.register_memory([(buffer.ctypes.data, buffer.nbytes, 0, "")], "DRAM")
    order = numpy.random.default_rng(1).permutation(entries)
    rows = numpy.zeros((entries, 3), numpy.uint64)
    rows[:, 0] = buffer.ctypes.data + order * BLOCK
    rows[:, 1] = BLOCK
    in_order = numpy.arange(entries, dtype=numpy.int32)
    index = numpy.random.default_rng(2).permutation(entries).astype(numpy.int32)
    yield "nixl.list", "ms", timed(lambda: agent.get_xfer_descs(rows, "DRAM")), 5
    descs = agent.get_xfer_descs(rows, "DRAM")
    yield "nixl.prep", "ms", timed(lambda: agent.prep_xfer_dlist("", descs)), 5
    ours, theirs = agent.prep_xfer_dlist("", descs), agent.prep_xfer_dlist("bench", descs)
    yield "nixl.make", "ms", timed(lambda: agent.make_prepped_xfer("WRITE", ours, in_order, theirs, in_order)), 10
    yield "nixl.make.random", "ms", timed(lambda: agent.make_prepped_xfer("WRITE", ours, index, theirs, index)), 10
    handle = agent.make_prepped_xfer("WRITE", ours, index[:1], theirs, index[1:2])
    agent.transfer(handle)
    while agent.check_xfer_state(handle) != "DONE":
        pass
    yield "nixl.status", "ns", (None, each(lambda: agent.check_xfer_state(handle))), 1000
    yield "nixl.notifications", "ns", (None, each(agent.get_new_notifs)), 1000


def hawser_rows(entries):
    with hawser.Agent("bench") as agent:
        array = agent.empty(entries * BLOCK, name="memory")
        region, peer = agent.range_of(array).region, agent.self()
        order = numpy.random.default_rng(1).permutation(entries).astype(numpy.uint64)
        rows = numpy.zeros((entries, 4), numpy.uint64)
        rows[:, 0], rows[:, 1], rows[:, 3] = order * BLOCK, BLOCK, 1
        in_order, index = numpy.arange(entries, dtype=numpy.uint32), order.astype(numpy.uint32)
        yield "hawser.table", "ms", timed(lambda: region.table(rows)), 5
        ours, theirs = region.table(rows), peer.table("memory", BLOCK)
        yield "hawser.plan", "ms", timed(lambda: agent.plan_write(peer, ours, theirs, in_order, in_order)), 10
        yield "hawser.plan.random", "ms", timed(lambda: agent.plan_write(peer, ours, theirs, index, index)), 10
        transfer = agent.write(peer, region.range(0, 8), peer.range("memory", 8, 8))
        transfer.wait()
        yield "hawser.done", "ns", (None, each(lambda: transfer.done)), 1000
        yield "hawser.notifications", "ns", (None, each(agent.take_notification)), 1000


def target_side(pipe, size, registered):
    agent = hawser.Agent("target")
    if registered:
        kept = agent.add_region(numpy.zeros(size, numpy.uint8), "memory")
    else:
        kept = agent.empty(size, name="memory")
    pipe.send(agent.card())
    pipe.recv()
    agent.close()
    del kept


class Target:
    """Another process with memory to write to."""

    def __init__(self, size, registered):
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=target_side, args=(there, size, registered))
        self.process.start()
        self.card = self.pipe.recv()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipe.send(None)
        self.process.join(20)


def python_rate(target, size, registered, seconds, one_call=True):
    """GB/s of writes of `size`, from memory of `empty`, or only registered; with Plan.run, or submit and wait."""
    with hawser.Agent("source", driver=False) as agent:
        array = numpy.zeros(size, numpy.uint8) if registered else agent.empty(size)
        region = agent.add_region(array) if registered else agent.range_of(array).region
        plan = agent.plan_write(agent.add_peer(target.card), region.range(0, size),
                                agent.peers()[-1].region("memory"))
        rates, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.perf_counter()
            if one_call:
                for _ in range(BATCH):
                    plan.run()
            else:
                for _ in range(BATCH):
                    plan.submit().wait(20)
            rates.append(BATCH * size / (time.perf_counter() - begin) / 1e9)
    return statistics.median(rates)


def cpp_rate(program, target, size, seconds):
    with tempfile.NamedTemporaryFile() as card:
        card.write(target.card)
        card.flush()
        out = subprocess.run([program, card.name, str(size), str(seconds)], check=True, capture_output=True, text=True,
                             timeout=60)
    return float(out.stdout)


@contextlib.contextmanager
def one_core():
    """This process, and those that it starts meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def write_rows(program, seconds, size=1 << 20, rounds=7):
    """The ways take turns, so that what disturbs the machine disturbs all; ratios are of the same round. All write from
    one core, as programs that are moved between cores differ by more than what is measured."""
    mapped, submitted, registered, cpp = [], [], [], []
    with Target(size, False) as allocated, Target(size, True) as foreign, one_core():
        for _ in range(rounds):
            mapped.append(python_rate(allocated, size, False, seconds))
            submitted.append(python_rate(allocated, size, False, seconds, one_call=False))
            registered.append(python_rate(foreign, size, True, seconds))
            if program:
                cpp.append(cpp_rate(program, allocated, size, seconds))
    median = statistics.median
    yield "write.1m.empty", "GB/s", median(mapped), None
    yield "write.1m.submitted", "GB/s", median(submitted), None
    yield "write.1m.registered", "GB/s", median(registered), None
    yield "write.1m.empty / registered", "", median(a / b for a, b in zip(mapped, registered)), None
    if program:
        yield "write.1m.cpp", "GB/s", median(cpp), None
        yield "write.1m.empty / cpp", "", median(a / b for a, b in zip(mapped, cpp)), 0.98
        yield "write.1m.submitted / cpp", "", median(a / b for a, b in zip(submitted, cpp)), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--cpp", metavar="WRITE_BENCH")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each way in each of the rounds of writes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    get_logger("nixl").setLevel("ERROR")
    found = []
    scale = {"ms": 1e3, "ns": 1e9}
    for rows in (nixl_rows, hawser_rows):
        for name, unit, (cold, warm), target in rows(options.entries):
            found.append({"row": name, "unit": unit, "cold": None if cold is None else cold * scale[unit],
                          "warm": warm * scale[unit], "target": target})
    for name, unit, value, target in write_rows(options.cpp, options.seconds):
        found.append({"row": name, "unit": unit, "cold": None, "warm": value, "target": target})
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        return
    print(f"{options.entries} entries, {hawser.__version__}\n{'row':30} {'cold':>10} {'warm':>10} {'target':>8}")
    for one in found:
        cold = "" if one["cold"] is None else f"{one['cold']:.2f}"
        target = "" if one["target"] is None else f"{one['target']}"
        print(f"{one['row']:30} {cold:>10} {one['warm']:>10.2f} {target:>8} {one['unit']}")


if __name__ == "__main__":
    main()
