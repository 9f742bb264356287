"""World.open() under torchrun: by torchrun itself, with its store, and by its variables alone, where torch is missing."""

import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

import hawser

PROGRAM = """
import sys
if "--no-torch" in sys.argv:
    sys.modules["torch"] = None  # As where it is not installed.
import numpy, hawser
world = hawser.World.open(timeout=60)
x = numpy.full(4, world.rank + 1.0)
world.all_reduce(x)
told = {each.name: each for each in world.config()}
assert told["world.rank"].origin == "torchrun", told["world.rank"]
place = told["world.place"].value
assert place == ("a store" if "--no-torch" not in sys.argv else place) and "#" not in place, place
if world.rank == 0:
    print("sum", x[0], "of", told["world.name"].value, "at", place.split()[0], place.split()[1][:5], flush=True)
world.shutdown(60)
"""


def free_port():
    """A port below the ephemeral ones whose next one is free, too."""
    for port in range(20_000 + os.getpid() % 5000, 32_000, 2):
        with socket.socket() as one, socket.socket() as next_one:
            try:
                one.bind(("127.0.0.1", port))
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise OSError("no free ports")


def by_variables(program, size, run, restart, *arguments):
    """As torchrun starts ranks, where nobody serves a store."""
    port = free_port()
    own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "TORCHELASTIC_RUN_ID": run,
           "TORCHELASTIC_RESTART_COUNT": str(restart)}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    started = [subprocess.Popen([sys.executable, program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env={**clean, **own, "RANK": str(rank), "LOCAL_RANK": str(rank)})
               for rank in range(size)]
    told = [each.communicate(timeout=120)[0] for each in started]
    assert [each.returncode for each in started] == [0] * size, told
    return told[0]


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_without_torch_rank_0_serves_a_seed(program):
    assert "sum 6.0 of world.job.2 at seed 127.0" in by_variables(program, 3, "job", 2, "--no-torch")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here: ./dev actors runs this test")
class TestWithTorch:
    def test_rank_0_serves_the_store_where_nobody_does(self, program):
        assert "sum 3.0 of world.job.0 at a store" in by_variables(program, 2, "job", 0)

    def test_by_torchrun(self, program):
        torchrun = shutil.which("torchrun", path=str(pathlib.Path(sys.executable).parent))
        if torchrun is None:
            pytest.skip("torch's torchrun is not beside this interpreter")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
        done = subprocess.run([torchrun, "--standalone", "--nproc-per-node=3", program], capture_output=True, text=True,
                              timeout=240, env=clean)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "sum 6.0 of world." in done.stdout and "at a store" in done.stdout, done.stdout

    def test_a_restart_meets_anew(self, program, tmp_path):
        """The first run fails in one rank; torchrun starts all again, with the same store."""
        torchrun = shutil.which("torchrun", path=str(pathlib.Path(sys.executable).parent))
        if torchrun is None:
            pytest.skip("torch's torchrun is not beside this interpreter")
        failing = tmp_path / "failing.py"
        failing.write_text("import os, hawser\nworld = hawser.World.open(timeout=60)\n"
                           "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and world.rank == 1: os._exit(3)\n"
                           "world.barrier()\n"
                           "if world.rank == 0: print('met in restart', os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
                           "world.shutdown(60)\n")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
        done = subprocess.run([torchrun, "--standalone", "--max-restarts=1", "--nproc-per-node=2", failing],
                              capture_output=True, text=True, timeout=240, env=clean)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "met in restart 1" in done.stdout


def test_pmix_alone_says_what_to_set(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HAWSER_", "OMPI_", "PMI", "SLURM_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PMIX_RANK", "1")
    with pytest.raises(hawser.InvalidError, match="HAWSER_WORLD_SIZE"):
        hawser.World.open()
    monkeypatch.setenv("HAWSER_WORLD_SIZE", "2")
    with pytest.raises(hawser.InvalidError, match="directory, store or seed"):
        hawser.World.open()
