"""Every Python, C and C++ block of the documents: Python runs, C and C++ is compiled. A block that is new needs a place here.

What a block takes for granted (an agent, a peer, a world) is made around it; addresses and paths are those of the test.
"""

import asyncio
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import types

import numpy
import pytest

import hawser
from conftest import SCALE

SOURCE = pathlib.Path(os.environ.get("HAWSER_TEST_SOURCE", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("HAWSER_TEST_BUILD", SOURCE / "build" / "dev"))
PATIENCE = 60 * SCALE


def blocks(*languages):
    found = {}
    for page in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        texts = re.findall(r"```(\w+)\n(.*?)```", page.read_text(), re.S)
        for number, text in enumerate(text for language, text in texts if language in languages):
            found[page.stem, number] = text
    return found


PYTHON, C, CPP = blocks("python"), blocks("c"), blocks("cpp")
HERE = {}


def block(page, number):
    """Marks the test of that Python block, which it gets as its text."""
    def mark(test):
        HERE[page, number] = test
        return test
    return mark


def run(code, names):
    names.setdefault("hawser", hawser)
    exec(compile(code, "a block of the documents", "exec"), names)
    return names


def in_world(code, size, **names):
    """In each rank of a world of this process."""
    results, worlds = {}, hawser.World.local(size)

    def rank(world):
        try:
            results[world.rank] = run(code, {"world": world} | names)
        except BaseException as error:  # It is told below.
            results[world.rank] = error
    threads = [threading.Thread(target=rank, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for world in worlds:
        world.close()
    for result in results.values():
        if isinstance(result, BaseException):
            raise result
    return [results[number] for number in range(size)]


def by_launcher(code, size):
    command = [str(BUILD / "bin" / "hawser"), "run", "-n", str(size), "--", sys.executable, "-c", code]
    return said(command)


def by_itself(code, **environment):
    return said([sys.executable, "-c", code], **environment)


def said(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def two():
    with hawser.Agent("one") as one, hawser.Agent("two") as two:
        yield one, two


@block("collectives", 0)
def mapped(code):
    assert all(len(names["gradient"]) == 1 << 20 for names in in_world(code, 2))


@block("collectives", 1)
def compressed(code):
    in_world(code, 2, gradient=numpy.ones(10_000, "float32"))


@block("grants", 0)
@block("python", 2)
def grants(code, two):
    one, other = two
    memory, mine = one.empty(8192, "uint8", name="memory"), other.empty(4096, "uint8")
    mine[:] = 7
    names = {"region": one.range_of(memory).region, "holder": one.add_peer(other.card()),
             "owner": other.add_peer(one.card()), "agent": other, "local": other.range_of(mine).region}
    run(code, names)
    assert (memory[:4096] == 7).all() and (memory[4096:] == 0).all()


@block("order", 0)
def layers(code, two):
    one, other = two
    theirs = [other.empty(4096, "uint8", name=name) for name in ("keys", "values")]
    ours = [one.empty(4096, "uint8") for _ in theirs]
    for array in ours:
        array[:] = 5
    keys, values = (one.range_of(array).region for array in ours)
    run(code, {"agent": one, "peer": one.add_peer(other.card()), "keys": keys, "values": values, "size": 4096})
    assert all((array == 5).all() for array in theirs)


@block("python", 3)
def told_segments(code):
    one = {"address": 4096, "total_size": 8192, "device": 1, "is_expandable": True}
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(memory_snapshot=lambda: [one, one | {"is_expandable": False}]))
    assert len(run(code, {"torch": torch})["segments"]()) == 1


@block("python", 4)
def spilled(code, two, tmp_path):
    one, _ = two
    pages = one.empty(65536, "uint8")
    pages[:] = 3
    run(code.replace("/nvme", str(tmp_path)), {"agent": one, "pages": pages})
    assert (tmp_path / "spill").read_bytes() == bytes([3]) * 65536


@block("python", 5)
def words(code, two):
    one, other = two
    counters, locks = (other.empty(8, "uint64", name=name) for name in ("counters", "locks"))
    counters[0] = 41
    names = run(code, {"agent": one, "peer": one.add_peer(other.card()), "n": 2, "my_id": 9})
    assert names["ticket"] == 41 and counters[0] == 42 and names["mine"] and locks[2] == 9


@block("quic", 0)
def over_quic(code):
    assert by_itself(code.replace(".wait(5)", f".wait({PATIENCE})")).startswith("42 ")


@block("rdma-python", 0)
def names_of_monarch(code):
    assert by_itself(code + "print(RDMABuffer.__name__, RDMAAction.__name__)") == "RDMABuffer RDMAAction\n"


@block("rdma-python", 1)
def renewed(code, tmp_path):
    """The owner restarts between the two halves."""
    owner, holder = code.replace("/run/hawser", str(tmp_path)).split("\n\n")
    begin = """
import pickle, sys, numpy, hawser
from hawser import rdma
from hawser.rdma import RDMABuffer
weights = numpy.full(1024, int(sys.argv[1]), "uint8")
"""
    end = """
sys.stdout.write(pickle.dumps(buffer).hex() + "\\n"); sys.stdout.flush()
sys.stdin.read()
"""
    def start(value):
        process = subprocess.Popen([sys.executable, "-c", begin + owner + end, str(value)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        return process, process.stdout.readline().strip()
    first, handle = start(1)
    second = None
    try:
        holds = f"""
import asyncio, pickle, sys, numpy, hawser
from hawser import rdma
rdma.configure(name="holder", directory=hawser.file_directory({str(tmp_path)!r}))
buffer = pickle.loads(bytes.fromhex("{handle}"))
mine = numpy.zeros(1024, "uint8")
async def main():
    await buffer.read_into(mine)
    print(mine[0]); sys.stdout.flush()
    sys.stdin.readline()
    await asyncio.to_thread(renew)
    await buffer.read_into(mine)
    print(mine[0])
def renew():
    {holder.replace("timeout=60", f"timeout={PATIENCE}").strip()}
asyncio.run(main())
"""
        reader = subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert reader.stdout.readline() == "1\n"
        first.kill()
        first.wait()
        second, _ = start(2)
        assert reader.communicate("go on\n", timeout=PATIENCE)[0] == "2\n"
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.communicate()


@block("security", 0)
def by_ticket(code):
    code = code.replace("10.0.0.5:7000", "127.0.0.1:' + port + '").replace('"store@', "'store@").replace('#" +', "#' +")
    code = code.replace("print(store.ticket)", "ticket, port = store.ticket, re.search(r'127.0.0.1:(\\d+)', "
                        "str(store.backends())).group(1)")
    assert by_itself("import re\n" + code + "\nprint(peer.name)", HAWSER_LISTEN="127.0.0.1") == "store\n"


@block("slurm", 0)
def by_srun(code):
    assert by_launcher(code + "\nprint(x[0])", 2).count("2.0") == 2


@block("worlds", 0)
def first_world(code):
    assert "array([10., 10., 10., 10.])" in by_launcher(code, 4)


@block("worlds", 1)
def on_own_agents(code, tmp_path):
    ranks = {}

    def open_one(rank):
        ranks[rank] = run(code.replace("/shared/cards", str(tmp_path / "cards")), {"rank": rank})
    threads = [threading.Thread(target=open_one, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [ranks[rank][world].size for rank in range(2) for world in ("world", "pairs")] == [2] * 4
    for names in ranks.values():
        names["pairs"].close(), names["world"].close(), names["agent"].close()


@block("worlds", 2)
def batches(code):
    names = in_world(code, 2, x=numpy.ones(3), y=numpy.zeros(3))
    assert all(each["y"].sum() == 3 and each["told"][1].data == b"more" for each in names)


@block("worlds", 3)
def pools(code):
    assert by_launcher("import hawser\n" + code + "\nprint(world.config()[10].value)", 2).count("256 of 64KiB") == 2


@block("worlds", 4)
def classes(code):
    checkpoint = [numpy.ones(size, numpy.uint8) for size in (10, 3_000_000, 50_000)]
    rest = """
if world.rank == 1:
    for x in checkpoint:
        world.recv(numpy.empty_like(x), source=0, tag=1)
else:
    for each in copies:
        each.wait(60)
"""
    assert in_world(code + rest, 2, checkpoint=checkpoint, numpy=numpy)[1]["word"] == b"stop"


@block("worlds", 5)
def cost_model(code, tmp_path):
    """The file of docs/collectives.md, as it stands there."""
    blocks = re.findall(r"```toml\n(.*?)```", (SOURCE / "docs" / "collectives.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "costs.toml").write_text(blocks[0])
    told = by_launcher(f"import hawser, os\nos.chdir({str(tmp_path)!r})\n" + code + "\nprint(world.cost_model)", 2)
    assert told.count("told by rank 0: message_ns = 1441, byte_ns = 0.1056, ") == 2, told


@block("worlds", 6)
def sparse(code):
    told = by_launcher("import hawser\n" + code + "\nprint(world.is_sparse, len(worlds))", 4)
    assert told.count("True 4") == 4, told


@block("worlds", 7)
def training_goes_on(code):
    """Rank 2 closes the world; the others go on without it until their step says that it is enough."""
    class Enough(Exception):
        pass

    def step(world):
        if world.size == 2:
            raise Enough
        world.close() if world.rank == 2 else world.barrier(timeout=PATIENCE)
        if world.rank == 2:
            raise Enough
    restored = []
    names = {"step": step, "restore_checkpoint": restored.append, "Enough": Enough}
    in_world(code + "\ntry:\n    train(world)\nexcept Enough:\n    pass\n", 3, **names)
    assert len(restored) == 2


@block("worlds", 8)
def recovers(code):
    worlds = hawser.World.local(3, recovery="automatic")
    body = "".join(f"    {line}\n" for line in code.splitlines()) + "        return event\n"
    names = run("async def main(world):\n" + body, {})

    async def both():
        events = asyncio.gather(*(names["main"](world) for world in worlds[:2]))
        await asyncio.to_thread(worlds[2].close)
        return await asyncio.wait_for(events, PATIENCE)
    for number, event in enumerate(asyncio.run(both())):
        assert (event.world.size, event.old_rank, event.failed) == (2, number, [2])
        event.world.close()


@block("worlds", 9)
def calls(code):
    register, call = code.splitlines()
    script = f"if world.rank == 1:\n    {register}\nworld.barrier()\nsum = {call}\nworld.barrier()\n"
    assert [names["sum"] for names in in_world(script, 2, x=2, y=3)] == [5, 5]


@block("worlds", 10)
def torch_runs_on_it(code):
    pytest.importorskip("torch", reason="torch is not installed: torch_backend_test.py runs it where it is")
    by_launcher("import torch\n" + code + "\ntorch.distributed.destroy_process_group()", 2)


ELSEWHERE = {  # Where these run.
    ("README", 0): "docs_example_test.py", ("python", 0): "docs_example_test.py", ("python", 1): "docs_example_test.py",
    **{("tutorial", number): "tutorial_test.py" for number in range(5)}}


@pytest.mark.parametrize("where", sorted(PYTHON), ids=lambda where: f"{where[0]}-{where[1]}")
def test_python(where, request, tmp_path):
    if where in ELSEWHERE:
        assert (SOURCE / "test" / "python" / ELSEWHERE[where]).exists()
        return
    assert where in HERE, f"block {where[1]} of {where[0]}.md has no test: write one above"
    test = HERE[where]
    wants = test.__code__.co_varnames[1:test.__code__.co_argcount]
    test(PYTHON[where], **{name: request.getfixturevalue(name) for name in wants})


# What stands before and behind a block, so that it is a whole file. `BODY` is the block.
FUNCTION = "int main(void) {\nBODY\nreturn 0; }\n"
C_AROUND = {
    ("c-api", 0): "int run(void* pages, size_t pages_size, const uint32_t* source_blocks, const uint32_t* target_blocks, "
                  "size_t count);\nint run(void* pages, size_t pages_size, const uint32_t* source_blocks, "
                  "const uint32_t* target_blocks, size_t count) {\nBODY\nreturn 0; }\n",
    ("c-api", 1): "int run(hawser_region region);\nint run(hawser_region region) { hawser_grant grant; "
                  "hawser_buffer bytes = HAWSER_INIT(hawser_buffer);\nBODY\nreturn 0; }\n",
    ("c-api", 2): "typedef struct { size_t count; int32_t gpu; struct { void* base; size_t mapped; } runs[8]; } allocator;\n"
                  "BODY\nint main(void) { return tell(NULL, (hawser_segments){0}); }\n",
    ("c-api", 3): "int run(hawser_agent agent);\nint run(hawser_agent agent) {\nBODY\nreturn 0; }\n",
    ("c-api", 4): "void use(const char* text, size_t size);\nint run(hawser_directory directory);\n"
                  "int run(hawser_directory directory) {\nBODY\nreturn 0; }\n",
    ("c-api", 5): "#include <stdio.h>\n#include <hawser/c_world.h>\n" + FUNCTION,
    ("writing-a-backend", 0): "#include <hawser/plugin.h>\nstatic const hawser_plugin_backend_api backend_api;\n"
                              "static const hawser_plugin_port_api port_api;\n"
                              "static const hawser_plugin_path_api path_api;\nBODY\n",
}
CPP_AROUND = {
    ("errors", 0): "using namespace hawser;\nusing Bytes = std::vector<std::byte>;\nconstexpr std::uint32_t kChannel = 16;\n"
                   "void run(Peer peer, const Bytes& bytes, const PeerEvent& event, "
                   "std::vector<std::pair<std::uint64_t, Bytes>> kept) {\nBODY\n}\n",
    ("collectives", 0): "#include <cstring>\nvoid run(hawser::World& world) {\nBODY\n}\n",
    ("README", 0): "using namespace std::chrono_literals;\nvoid run(std::shared_ptr<hawser::Directory> directory, "
                   "std::uint64_t bytes, std::uint64_t block_bytes, std::vector<std::uint32_t> from, "
                   "std::vector<std::uint32_t> to) {\nBODY\n}\n",
    ("files", 0): "void run(std::uint64_t block, std::uint64_t slots, std::vector<std::uint32_t> blocks, "
                  "std::vector<std::uint32_t> places) {\nBODY\n}\n",
    ("grants", 0): "using namespace hawser;\nvoid run(Agent* agent, std::span<std::byte> memory) {\nBODY\n}\n",
    ("grants", 1): "using namespace hawser;\nusing namespace std::chrono_literals;\nconstexpr std::uint32_t kChannel = 7;\n"
                   "void run(Agent* agent, Region* region, Peer holder, Peer owner, std::uint64_t offset, "
                   "std::uint64_t size, const Message& message, const LocalRange& local) {\nBODY\n}\n",
}
CPP_ELSEWHERE = {("writing-a-backend", 0): "test/plugin"}  # A piece of a conformance suite like those there.


def compiles(code, compiler, flags, path):
    path.write_text(code)
    include = [f"-I{SOURCE / 'include'}", f"-I{BUILD / 'include'}"]
    done = subprocess.run([compiler, *flags, *include, "-fsyntax-only", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")
@pytest.mark.parametrize("where", sorted(C), ids=lambda where: f"{where[0]}-{where[1]}")
def test_c(where, tmp_path):
    assert where in C_AROUND, f"C block {where[1]} of {where[0]}.md has no place: write one above"
    code = "#include <hawser/c.h>\n" + C_AROUND[where].replace("BODY", C[where])
    compiles(code, "cc", ["-std=c11", "-Wall", "-Werror", "-Wno-unused", "-Wno-uninitialized"], tmp_path / "block.c")


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler: c++")
@pytest.mark.parametrize("where", sorted(CPP), ids=lambda where: f"{where[0]}-{where[1]}")
def test_cpp(where, tmp_path):
    if where in CPP_ELSEWHERE:
        assert (SOURCE / CPP_ELSEWHERE[where]).is_dir()
        return
    assert where in CPP_AROUND, f"C++ block {where[1]} of {where[0]}.md has no place: write one above"
    code = "#include <hawser/hawser.h>\n" + CPP_AROUND[where].replace("BODY", CPP[where])
    compiles(code, "c++", ["-std=c++20", "-Wall", "-Werror", "-Wno-unused", "-Wno-missing-field-initializers"],
             tmp_path / "block.cc")
