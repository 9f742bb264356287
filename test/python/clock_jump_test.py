"""The system's clock jumps by hours and days, ahead and back, while sessions, certificates and worlds are in use. What a
process thinks of the time is changed by a library that is loaded before all others (clock_jump.c)."""

import json
import os
import subprocess
import sys

import pytest

from two_hosts import hosts, start, start_python  # noqa: F401 (a fixture)
from identity_test import ADDRESS, HAWSER, PATIENCE, WRITER, identities, log_of, ping  # noqa: F401 (a fixture)

from conftest import SCALE, eventually

HOUR, DAY = 3600, 86400
BOTH_WAYS = (3 * HOUR, -3 * HOUR, 300 * DAY, -300 * DAY, 0)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if "TEST_CLOCK_JUMP" in os.environ:
        return os.environ["TEST_CLOCK_JUMP"]
    made = tmp_path_factory.mktemp("clock") / "clock_jump.so"  # Where the tests run on wheels.
    source = os.path.join(os.path.dirname(__file__), "clock_jump.c")
    try:
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs a C compiler")
    return str(made)


class Clock:
    """Of one process."""

    def __init__(self, library, path):
        self.path = path
        self.environment = {"LD_PRELOAD": library, "CLOCK_JUMP": str(path)}
        self.jump(0)

    def jump(self, seconds):
        """It is so far ahead from now on. The file is changed at once: whoever looks sees all of it."""
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.write(f"{seconds:<20}".encode())


@pytest.fixture
def clock(library, tmp_path):
    return lambda name: Clock(library, tmp_path / f"clock-{name}")


def written(marks):
    return (marks / "count").stat().st_size if (marks / "count").exists() else 0


# Adds a byte to a file for each write that went well.
COUNTED = WRITER.replace("        count += 1\n", "        count += 1\n        open(f'{marks}/count', 'a').write('x')\n")


def goes_on(writer, marks):
    before = written(marks)
    eventually(lambda: written(marks) >= before + 5 or writer.poll() is not None)
    assert writer.poll() is None, writer.communicate()


@pytest.mark.parametrize("backend", ["tcp", "quic"])
def test_sessions_with_tickets_do_not_look_at_the_clock(hosts, clock, backend, tmp_path):  # noqa: F811
    """Their certificates are of one incarnation, and of any time."""
    here, there = clock("store"), clock("reader")
    store = start(hosts[0], HAWSER, "serve", "--name", "store", "--listen", "10.78.0.1:7000", "--json", "--size", "1MiB",
                  HAWSER_BACKENDS=backend, **here.environment)
    try:
        ready = json.loads(store.stdout.readline())
        ticket = next(value for value in ready.values() if isinstance(value, str) and "#" in value and "7000" in value)
        address = next(word for word in ticket.split() if "#" in word)
        writer = start_python(hosts[1], COUNTED, address, str(tmp_path), HAWSER_BACKENDS=backend,
                              PYTHONPATH=os.environ["PYTHONPATH"], **there.environment)
        eventually(lambda: (tmp_path / "began").exists() or writer.poll() is not None)
        for seconds in BOTH_WAYS:
            for each in (here, there):
                each.jump(seconds)
                goes_on(writer, tmp_path)
                # A new session, while the clocks differ.
                assert ping(hosts[1], address, HAWSER_BACKENDS=backend)[0] == 0
        (tmp_path / "end").touch()
        out, err = writer.communicate(timeout=PATIENCE)
        assert out.splitlines()[-1].startswith("wrote"), (out, err)
    finally:
        store.kill()


def test_certificates_go_by_the_clock_and_sessions_come_back_with_it(hosts, clock, identities, tmp_path):  # noqa: F811
    """A jump within a certificate's time changes nothing. Beyond it the session ends with both times in its error, and a
    new one is refused; once the clock is right again all works, though nobody was started anew."""
    its = clock("store")
    store = start(hosts[0], HAWSER, "serve", "--name", "store", "--listen", "10.78.0.1:7000", "--json", "--size", "1MiB",
                  HAWSER_IDENTITY=identities("store"), HAWSER_IDENTITY_LOOK="100ms", HAWSER_LOG="info", **its.environment)
    environment = {"HAWSER_IDENTITY": identities("reader"), "PYTHONPATH": os.environ["PYTHONPATH"]}
    try:
        assert json.loads(store.stdout.readline())["event"] == "ready"
        for number, (far, word) in enumerate(((40 * DAY, "expired at"), (-40 * DAY, "valid from"))):
            marks = tmp_path / f"marks-{number}"
            marks.mkdir()
            writer = start_python(hosts[1], COUNTED, ADDRESS, str(marks), **environment)
            eventually(lambda: (marks / "began").exists() or writer.poll() is not None)
            for seconds in (3 * HOUR, 0):
                its.jump(seconds)
                goes_on(writer, marks)
            its.jump(far)
            out, err = writer.communicate(timeout=PATIENCE)
            assert out.splitlines()[-1].startswith("error"), (out, err)
            code, said = ping(hosts[1], HAWSER_IDENTITY=environment["HAWSER_IDENTITY"])
            assert code != 0, said
            its.jump(0)
            code, said = ping(hosts[1], HAWSER_IDENTITY=environment["HAWSER_IDENTITY"])
            assert code == 0, said
        log = log_of(store)
        assert "expired at" in log and "valid from" in log, log
    finally:
        store.kill()


RANK = """
import sys, time
import numpy, hawser

with hawser.World.open() as world:
    ones, stop, rounds = numpy.ones(1000, dtype=numpy.float32), numpy.zeros(1, dtype=numpy.int32), 0
    while not stop[0]:
        sum_of_all = ones.copy()
        world.all_reduce(sum_of_all)
        assert (sum_of_all == world.size).all()
        if world.rank == 0:
            try:
                open(sys.argv[1] + "/end").close()
                stop[:] = 1
            except FileNotFoundError:
                pass
            rounds += 1
            open(sys.argv[1] + "/rounds", "a").write("x")
        world.broadcast(stop, root=0)
        time.sleep(0.002)
print("good", flush=True)
"""


@pytest.mark.parametrize("backend", ["shm", "tcp", "quic"])
def test_a_world_goes_on_whatever_its_ranks_take_for_the_time(clock, backend, tmp_path):
    clocks = [clock(rank) for rank in range(3)]
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | its.environment | {
                                  "HAWSER_WORLD_RANK": str(rank), "HAWSER_WORLD_SIZE": "3", "HAWSER_BACKENDS": backend,
                                  "HAWSER_DIRECTORY": f"file:{tmp_path}/cards"}) for rank, its in enumerate(clocks)]
    rounds = tmp_path / "rounds"
    try:
        for step, its in enumerate(clocks):
            for seconds in BOTH_WAYS:
                its.jump(seconds + step * HOUR)
                before = rounds.stat().st_size if rounds.exists() else 0
                eventually(lambda: rounds.exists() and rounds.stat().st_size >= before + 10
                           or any(each.poll() is not None for each in ranks))
        (tmp_path / "end").touch()
        for each in ranks:
            out, err = each.communicate(timeout=60 * SCALE)
            assert (each.returncode, out) == (0, "good\n"), out + err
    finally:
        for each in ranks:
            each.kill()
            each.wait()
