"""hawser.rdma beside monarch.rdma: reads and writes between two actor processes, and the memory of large ones.

    PYTHONPATH=build/release/python python bench/rdma_bench.py             # both, interleaved; needs torchmonarch
    PYTHONPATH=build/release/python python bench/rdma_bench.py --plain     # hawser.rdma alone, two plain processes
    PYTHONPATH=build/release/python python bench/rdma_bench.py --memory    # 2 GiB written and read, and what it takes
    --backends tcp: by tcp alone.  --ceiling: beside it, between actors what the same two processes do without a library
    (bench/rdma_ceiling.py: process_vm_readv and writev, or sockets with --backends tcp), between plain processes one copy
    between two arrays of one process.

Times are medians of whole calls, as a program sees them: `await` in an endpoint, `.get()` in a plain process. Rounds of all
alternate in one run, so that they see the same machine.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time

import rdma_ceiling

os.environ.setdefault("MONARCH_RDMA_ALLOW_TCP_FALLBACK", "1")
# The actors' processes import rdma_ceiling, too.
os.environ["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
SIZES = [8, 64 << 10, 1 << 20, 64 << 20]
OPERATIONS = ["read", "write"]
ROUNDS = 7


def times_of(size):
    return 200 if size <= 1 << 16 else 50 if size <= 1 << 20 else 4


def name_of(size):
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def print_row(size, operation, seconds):
    cells = [f"{1e6 * one:10.1f} us {size / one / 1e9:8.3f} GB/s" for one in seconds]
    ratios = [f"{one / seconds[0]:8.2f} x" for one in seconds[1:]]
    print(f"{name_of(size):>8} {operation:>6}  " + "  ".join(cells + ratios), flush=True)


def medians(measured):
    """Of each (size, operation, library): the median over rounds of the rounds' medians."""
    return {key: statistics.median(rounds) for key, rounds in measured.items()}


# Between actors.

def between_actors(sizes):
    import torch
    from monarch.actor import Actor, endpoint, this_host

    class Owner(Actor):
        def __init__(self, backends):
            import hawser.rdma
            hawser.rdma.configure(backends=backends)
            self.kept = {}

        @endpoint
        async def lend(self, library: str, size: int):
            import importlib
            data = torch.zeros(size, dtype=torch.uint8)
            buffer = importlib.import_module(library).RDMABuffer(data)
            self.kept[library, size] = data, buffer
            return buffer

        @endpoint
        async def lend_plainly(self, size: int):
            data = torch.zeros(size, dtype=torch.uint8)
            self.kept["ceiling", size] = data
            return os.getpid(), data.data_ptr(), rdma_ceiling.listen(memoryview(data.numpy()))

    class User(Actor):
        def __init__(self, backends):
            import hawser.rdma
            hawser.rdma.configure(backends=backends)
            self.memory, self.ceilings = {}, {}
            self.by_sockets = backends == ["tcp"]

        @endpoint
        async def run(self, buffer, size: int, operation: str, times: int) -> float:
            memory = self.memory.setdefault(size, torch.ones(size, dtype=torch.uint8))
            work = buffer.read_into if operation == "read" else buffer.write_from
            seconds = []
            for _ in range(times):
                begin = time.perf_counter()
                await work(memory, timeout=60)
                seconds.append(time.perf_counter() - begin)
            return statistics.median(seconds)

        @endpoint
        async def run_ceiling(self, lent, size: int, operation: str, times: int) -> float:
            memory = self.memory.setdefault(size, torch.ones(size, dtype=torch.uint8))
            if size not in self.ceilings:
                self.ceilings[size] = rdma_ceiling.Ceiling(lent, memoryview(memory.numpy()), self.by_sockets)
            return self.ceilings[size].seconds(operation, times)

    backends = OPTIONS.backends
    owner = this_host().spawn_procs(per_host={"gpus": 1}).spawn("owner", Owner, backends)
    user = this_host().spawn_procs(per_host={"gpus": 1}).spawn("user", User, backends)
    libraries = ["hawser.rdma", "monarch.rdma"]
    buffers = {(library, size): owner.lend.call_one(library, size).get() for library in libraries for size in sizes}
    lent = {size: owner.lend_plainly.call_one(size).get() for size in sizes} if OPTIONS.ceiling else {}
    measured = {}
    for turn in range(ROUNDS + 1):
        for size in sizes:
            for operation in OPERATIONS:
                if OPTIONS.ceiling:
                    one = user.run_ceiling.call_one(lent[size], size, operation, times_of(size)).get()
                    if turn > 0:
                        measured.setdefault((size, operation, "ceiling"), []).append(one)
                for library in libraries:
                    times = times_of(size) if library == "hawser.rdma" or size <= 1 << 20 else 2
                    one = user.run.call_one(buffers[library, size], size, operation, times).get()
                    if turn > 0:  # The first warms up.
                        measured.setdefault((size, operation, library), []).append(one)
    columns = libraries + (["ceiling"] if OPTIONS.ceiling else [])
    print(f"{'size':>8} {'':>6}" + "".join(f"  {name:>27}" for name in columns) + "   each / hawser.rdma")
    result = medians(measured)
    for size in sizes:
        for operation in OPERATIONS:
            print_row(size, operation, [result[size, operation, name] for name in columns])


# Between plain processes.

def lend(pipe, sizes, backends):
    import hawser.rdma as rdma
    rdma.configure(backends=backends)
    kept = [bytearray(size) for size in sizes]
    pipe.send([rdma.RDMABuffer(each) for each in kept])
    pipe.recv()


def start(work, *arguments):
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=work, args=(other, *arguments), daemon=True)
    process.start()
    return pipe, process


def ceiling(size):
    import ctypes
    first, second = bytearray(b"\1" * size), bytearray(b"\2" * size)
    ours, theirs = (ctypes.addressof((ctypes.c_char * size).from_buffer(each)) for each in (first, second))
    seconds = []
    for _ in range(times_of(size) * 2):
        begin = time.perf_counter()
        ctypes.memmove(ours, theirs, size)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def between_processes(sizes):
    import hawser.rdma as rdma
    rdma.configure(backends=OPTIONS.backends)
    pipe, process = start(lend, sizes, OPTIONS.backends)
    measured = {}
    buffers = pipe.recv()
    memory = [memoryview(bytearray(b"\1" * size)) for size in sizes]
    for turn in range(ROUNDS + 1):
        for size, buffer, mine in zip(sizes, buffers, memory):
            for operation in OPERATIONS:
                work = buffer.read_into if operation == "read" else buffer.write_from
                seconds = []
                for _ in range(times_of(size)):
                    begin = time.perf_counter()
                    work(mine).get()
                    seconds.append(time.perf_counter() - begin)
                if turn > 0:
                    measured.setdefault((size, operation), []).append(statistics.median(seconds))
    print(f"backend: {buffers[0].backend}")
    for (size, operation), one in medians(measured).items():
        print_row(size, operation, [one] + ([ceiling(size)] if OPTIONS.ceiling else []))
    pipe.send(None)
    process.join()


# What memory it takes.

def peak():
    """Bytes that this process had at most, without what is shared with others' files."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def lend_large(pipe, size, backends):
    import hawser.rdma as rdma
    rdma.configure(backends=backends)
    rdma.agent()
    memory = bytearray(size)
    for at in range(0, size, 4096):
        memory[at] = 1
    before = peak()
    pipe.send(rdma.RDMABuffer(memory))
    while pipe.recv() is not None:
        pipe.send(peak() - before)


def memory_of(size):
    import hawser.rdma as rdma
    rdma.configure(backends=OPTIONS.backends)
    rdma.agent()
    memory = memoryview(bytearray(size))
    for at in range(0, size, 4096):
        memory[at] = 2
    pipe, process = start(lend_large, size, OPTIONS.backends)
    buffer = pipe.recv()
    before = peak()
    for operation in ("write_from", "read_into"):
        begin = time.perf_counter()
        getattr(buffer, operation)(memory).get()
        seconds = time.perf_counter() - begin
        pipe.send(1)
        print(f"{operation:>10} of {name_of(size)} by {buffer.backend}: {size / seconds / 1e9:.2f} GB/s; beyond the "
              f"buffers, user {(peak() - before) / 2**20:.1f} MiB, owner {pipe.recv() / 2**20:.1f} MiB", flush=True)
    pipe.send(None)
    process.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--ceiling", action="store_true")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=None)
    parser.add_argument("--size", type=int, action="append", help="bytes, instead of 8 B to 64 MiB; may be repeated")
    OPTIONS = parser.parse_args()
    if OPTIONS.memory:
        memory_of((OPTIONS.size or [2 << 30])[0])
    elif OPTIONS.plain:
        between_processes(OPTIONS.size or SIZES)
    else:
        between_actors(OPTIONS.size or SIZES)
        sys.stdout.flush()
        os._exit(0)  # The frameworks' threads need not be waited for.
