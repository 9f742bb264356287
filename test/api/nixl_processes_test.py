#!/usr/bin/env python3
"""The NIXL face between processes: peers that die, restart, stop, fork or leave, seen by those that stay.

usage: nixl_processes_test.py PROGRAM shm|tcp CASE SCALE

PROGRAM is nixl_peer; CASE one of the functions below without its "test_"; SCALE how much slower this build is.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, WAY, CASE = sys.argv[1:4]
SCALE = int(sys.argv[4])
PATIENCE = 30 * SCALE  # Seconds for one answer.
IN_PROGRESS, BACKEND, INVALID, NOT_FOUND = 1, -2, -1, -6
SIZE, BLOCKS = 16 << 20, 64
CANARY, BEFORE = 0xCA, 1


class Peer:
    """A process with one agent. It is killed when it goes; what it says on stderr is kept."""

    def __init__(self, name, mode="thread", size=SIZE):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HAWSER_", "NIXL_"))}
        environment["HAWSER_BACKENDS"] = WAY
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=environment, bufsize=0)
        self.name = name
        self.rest = b""
        self.ask("open", name, mode, size)

    def send(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words).encode() + b"\n")

    def answer(self, timeout=PATIENCE):
        end = time.monotonic() + timeout
        while b"\n" not in self.rest:
            assert select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))[0], \
                f"{self.name} does not answer\n{self.said()}"
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            assert got, f"{self.name} has ended: {self.process.wait(PATIENCE)}\n{self.said()}"
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        word, _, text = line.decode().partition(" ")
        assert word == "ok", f"{self.name}: {line.decode()}\n{self.said()}"
        return text.strip()

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def code(self, *words):
        return int(self.ask(*words).split()[0])

    def must(self, *words):
        code = self.code(*words)
        assert code >= 0, f"{self.name}: {' '.join(map(str, words))[:80]} gave {code}\n{self.said()}"
        return code

    def knows(self, other):
        assert self.ask("load", other.ask("md")) == f"0 {other.name}"

    def prepares(self, other, op="write", size=SIZE, blocks=BLOCKS):
        """Knows the other, with lists of its memory and a request."""
        self.knows(other)
        self.must("prep", other.name, other.ask("where"), size, blocks)
        self.must("make", op, "done")

    def runs(self):
        """Posts and waits; the code, and the milliseconds that waiting took."""
        if (code := self.code("post")) < 0:
            return code, 0
        return tuple(int(word) for word in self.ask("wait", 1000 * PATIENCE // 2).split())

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def ends(self, *words):
        """Sends a last line and gives the exit status."""
        self.send(*words)
        return self.process.wait(PATIENCE)

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.errors.close()


def eventually(check, what, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while not (found := check()):
        assert time.monotonic() < end, what
        time.sleep(0.001)
    return found


@contextlib.contextmanager
def pair(mode="thread", op="write", size=SIZE):
    """`here`, which transfers, and `there`, whose memory it uses; connected."""
    with Peer("here", mode, size) as here, Peer("there", "thread", size) as there:
        here.prepares(there, op, size)
        there.knows(here)
        here.must("connect", "there")
        yield here, there


def check_transfer(here, there):
    """The prepared write moves what is here, and tells of it."""
    here.ask("fill", 7)
    assert here.runs()[0] == 0, here.said()
    assert there.code("count", 7) == SIZE
    took = eventually(lambda: there.ask("take"), "no notification came")
    assert took.split()[0] == here.name, took


def test_killed_in_flight():
    """A polled agent moves on only when it is asked, so its transfer surely is in flight."""
    for mode in ("polled", "thread"):
        for op in ("write", "read"):
            with pair(mode, op, 8 * SIZE) as (here, there):
                posted = here.must("post")
                there.kill()
                code, took = (int(word) for word in here.ask("wait", 1000 * PATIENCE // 2).split())
                if mode == "polled":
                    assert posted == IN_PROGRESS and code == BACKEND, (posted, code, here.said())
                    assert "disconnected" in here.said(), here.said()
                assert code in (0, BACKEND) and took < 3000 * SCALE, (code, took, here.said())
                assert eventually(lambda: here.code("check", "there") == NOT_FOUND, "the death was not noticed", 5)
                assert here.code("post") in (BACKEND, NOT_FOUND)
                assert here.must("release") == 0


def test_killed_at_rest():
    """Whoever does nothing but ask for the peer learns of its death."""
    for mode in ("polled", "thread"):
        with pair(mode) as (here, there):
            assert here.code("check", "there") == 0
            there.kill()
            eventually(lambda: here.code("check", "there") == NOT_FOUND, "the death was not noticed", 5)


def test_killed_in_a_flood():
    for mode in ("polled", "thread"):
        for delay in (0, 0.002, 0.01, 0.03):
            with pair(mode, "read" if delay == 0.002 else "write") as (here, there):
                here.ask("flood", "write")
                time.sleep(delay)
                there.kill()
                assert eventually(lambda: here.code("check", "there") == NOT_FOUND, "the death was not noticed", 5)
                start = time.monotonic()
                assert here.must("calm") == 0, here.said()
                assert time.monotonic() - start < 5 * SCALE
                here.ask("fill", CANARY)
                assert here.must("deregister") == 0, here.said()
                assert here.code("count", CANARY) == SIZE


def test_restarted():
    """The name is free at once, with and without anybody having noticed the death; what was prepared is refused."""
    with Peer("here") as here:
        for noticed in (True, False, True, False):
            with Peer("there") as there:
                here.prepares(there)
                check_transfer(here, there)
                there.kill()
                if noticed:
                    assert eventually(lambda: here.code("check", "there") == NOT_FOUND, "not noticed", 5)
            with Peer("there") as there:
                if noticed:
                    assert here.code("check", "there") == NOT_FOUND, "the former's metadata came back"
                    assert here.code("make", "write") == NOT_FOUND and here.code("connect", "there") == NOT_FOUND
                here.knows(there)
                assert here.code("check", "there") == 0
                assert here.code("make", "write") == NOT_FOUND, "the former's list was taken for the new one"
                assert here.code("post") == NOT_FOUND, "the former's request reached the new one"
                there.ask("fill", CANARY)
                here.prepares(there)
                check_transfer(here, there)


def test_released_in_flight():
    """After the release the memory is ours: what is written there is not seen at the peer, and nothing comes in."""
    early = 0
    for mode in ("polled", "thread"):
        for op in ("write", "read"):
            with pair(mode, op) as (here, there):
                for polls in range(6):
                    here.ask("fill", BEFORE)
                    there.ask("fill", 2)
                    posted = here.must("post")
                    for _ in range(polls):
                        posted = here.must("status")
                    early += posted == IN_PROGRESS
                    assert here.must("release") == 0, here.said()
                    here.ask("fill", CANARY)
                    there.code("check", "here")  # There and back: what was under way has come.
                    assert here.code("count", CANARY) == SIZE, "something came in after the release"
                    assert there.code("count", CANARY) == 0, "something went out after the release"
                    time.sleep(0.02)
                    assert here.code("count", CANARY) == SIZE and there.code("count", CANARY) == 0
                    here.must("make", op, "done")
    assert early >= 4, "all were over before their release: nothing was tested"


def test_stopped():
    """Nobody hangs on a process that is stopped; when it goes on, so does the work."""
    for mode in ("polled", "thread"):
        with pair(mode) as (here, there):
            check_transfer(here, there)
            there.stop()
            start = time.monotonic()
            posted = here.code("post")
            for _ in range(20):
                here.code("status")
                here.ask("take")
                here.code("check", "there")
                here.code("notify", "there", 10, 1)
            code = here.code("release")
            assert time.monotonic() - start < 10 * SCALE, (posted, code)
            there.resume()
            if code != 0:
                assert eventually(lambda: here.code("release") == 0, "the request is never over")
            eventually(lambda: there.ask("take") or True, "it does not go on")
            here.prepares(there)  # It may have been given up meanwhile: it is met again.
            there.knows(here)
            here.ask("fill", 9)
            assert here.runs()[0] == 0, here.said()
            assert there.code("count", 9) == SIZE


def test_stopped_in_flight():
    with pair("thread") as (here, there):
        check_transfer(here, there)
        there.stop()
        here.must("post")
        code, took = (int(word) for word in here.ask("wait", 1000 * PATIENCE // 2).split())
        # The initiator copies by itself over shm; over tcp the silence ends it.
        assert code == (0 if WAY == "shm" else BACKEND) and took < 10_000 * SCALE, (code, took, here.said())
        there.kill()
        assert here.must("release") == 0


def test_forked():
    """A client forks: in the child every handle says no, a new agent works, and its end is clean; we notice nothing."""
    for mode in ("thread", "polled"):
        with pair(mode) as (here, there):
            for how in ("leave", "destroy", "leave"):
                assert (status := here.code("fork", how)) == 0, (status, here.said())
                check_transfer(here, there)
            here.must("post")  # And in flight.
            assert (status := here.code("fork", "destroy")) == 0, (status, here.said())
            assert int(here.ask("wait", 1000 * PATIENCE // 2).split()[0]) == 0, here.said()
            assert there.code("check", "here") == 0


def test_forked_while_busy():
    """The same while another thread is in the middle of posts: what it has locked stays so for ever in the child."""
    with pair("thread") as (here, there):
        here.ask("flood", "write", "thread")
        for round in range(40):
            how = "destroy" if round % 4 == 0 else "leave"
            assert (status := here.code("fork", how)) == 0, (round, status, here.said()[-4000:])
        assert there.code("check", "here") == 0
        assert here.ends("exit", 0) == 0


def test_ended_without_a_word():
    """A process ends with everything alive: no crash, no hang, and the peer goes on."""
    with Peer("there") as there:
        for how in ("exit", "return"):
            for mode in ("thread", "polled"):
                for work in ("nothing", "known", "posted", "flood", "thread"):
                    with Peer("here", mode) as here:
                        if work != "nothing":
                            here.prepares(there)
                            there.knows(here)
                        if work == "posted":
                            here.must("post")
                        if work in ("flood", "thread"):
                            here.ask("flood", "write", *(["thread"] if work == "thread" else []))
                        status = here.ends(how, 0)
                        assert status == 0, (how, mode, work, status, here.said())
        assert there.must("deregister") == 0


def test_registered_twice():
    """One deregistration takes one away. What is gone is refused, and is not touched any more, also in flight."""
    with pair() as (here, there):
        there.must("register")
        here.prepares(there)
        check_transfer(here, there)
        there.must("deregister")
        here.prepares(there)
        check_transfer(here, there)
        here.ask("flood", "write")
        time.sleep(0.01)
        start = time.monotonic()
        assert there.must("deregister") == 0, there.said()
        assert time.monotonic() - start < 5 * SCALE
        there.ask("fill", CANARY)
        assert there.code("deregister") == NOT_FOUND
        assert here.must("calm") == 0, here.said()
        assert here.runs()[0] == BACKEND, here.said()
        assert there.code("count", CANARY) == SIZE, "the memory was touched after its deregistration"
        assert here.must("release") == 0
        there.must("register")
        here.prepares(there)
        check_transfer(here, there)


def test_destroyed_with_live_requests():
    """After destroy_agent nothing touches the memory, and the request's handle can still be destroyed."""
    for mode in ("polled", "thread"):
        for op in ("write", "read"):
            with pair(mode, op, 4 * SIZE) as (here, there):
                here.ask("fill", BEFORE)
                here.must("post")
                start = time.monotonic()
                assert here.must("destroy") == 0
                assert time.monotonic() - start < 5 * SCALE
                here.ask("fill", CANARY)
                there.code("check", "here")
                assert here.code("count", CANARY) == 4 * SIZE, "a transfer outlived its agent"
                assert there.code("count", CANARY) == 0, "a transfer outlived its agent"
                assert here.code("status") == INVALID and here.code("post") == INVALID
                assert here.must("drop") == 0, here.said()
                assert here.code("drop") == INVALID
                assert eventually(lambda: there.code("check", "here") == NOT_FOUND, "the peer was not told", 5)
                assert here.ends("exit", 0) == 0


LONG = 8 << 20


def take_one(there, here):
    """The next notification, as (sender, digest). A sender without a thread moves on when it is asked."""
    return tuple(eventually(lambda: there.ask("take") or here.ask("take"), "no notification came").split())


def test_long_notifications():
    for mode in ("thread", "polled"):
        with pair(mode) as (here, there):
            for size in (64 << 10, (64 << 10) + 1, 1 << 20, LONG):
                assert here.code("notify", "there", size, size) == 0, here.said()
                digest = there.ask("digest", size, size)
                assert take_one(there, here) == ("here", digest)
                here.ask("fill", size % 251)
                assert here.must("tell", size, size) >= 0
                assert int(here.ask("wait", 1000 * PATIENCE // 2).split()[0]) == 0, here.said()
                assert take_one(there, here) == ("here", digest)
                assert there.code("count", size % 251) == SIZE, "told of before it was there"
            for line in (("notify", "there", LONG + 1, 1), ("tell", LONG + 1, 1)):
                assert here.code(*line) == BACKEND
                assert "8388609 bytes is longer than 8388608" in here.said(), here.said()


def test_killed_in_long_notifications():
    """Who dies half-way is not heard of with half of it, and its successor begins anew."""
    with Peer("there") as there:
        for delay in (0, 0.001, 0.003, 0.006, 0.01):
            with Peer("here") as here:
                here.prepares(there)
                there.knows(here)
                here.must("connect", "there")
                here.send("notify", "there", LONG, 3)
                time.sleep(delay)
                here.kill()
            whole = there.ask("digest", LONG, 3)
            assert eventually(lambda: there.code("check", "here") == NOT_FOUND, "the death was not noticed", 5)
            assert there.ask("take").split() in ([], ["here", whole])
            assert there.ask("take") == ""
            with Peer("here") as here:
                here.prepares(there)
                there.knows(here)
                assert here.code("notify", "there", LONG, 4) == 0, here.said()
                assert take_one(there, here) == ("here", there.ask("digest", LONG, 4))


def test_long_notifications_to_the_dead():
    with pair() as (here, there):
        there.stop()
        here.send("notify", "there", LONG, 1)
        here.send("notify", "there", LONG, 1)
        here.send("notify", "there", LONG, 1)  # More than the inbox of one that does not read has room for.
        start = time.monotonic()
        codes = [here.answer().split()[0] for _ in range(3)]
        assert str(BACKEND) in codes and time.monotonic() - start < 30 * SCALE, (codes, here.said())
        posted = here.code("tell", LONG, 2)
        # Over every way, silence has ended the session meanwhile, or soon will.
        assert posted in (IN_PROGRESS, BACKEND, NOT_FOUND), (posted, here.said())
        there.kill()
        code = int(here.ask("wait", 1000 * PATIENCE // 2).split()[0])
        assert code == BACKEND, (code, here.said())
        assert here.code("notify", "there", LONG, 1) in (BACKEND, NOT_FOUND)
        assert here.must("release") == 0


def test_many():
    """Several initiators at one target; one dies, the others go on."""
    with contextlib.ExitStack() as stack:
        there = stack.enter_context(Peer("there"))
        all_here = [stack.enter_context(Peer(f"here{i}", "polled" if i % 2 else "thread")) for i in range(4)]
        for here in all_here:
            here.prepares(there)
            there.knows(here)
            here.must("connect", "there")
            here.ask("flood", "write")
        time.sleep(0.02)
        all_here[0].kill()
        assert eventually(lambda: there.code("check", "here0") == NOT_FOUND, "the death was not noticed", 5)
        for here in all_here[1:]:
            assert there.code("check", here.name) == 0
            assert here.must("calm") == 0, here.said()
        for here in all_here[1:]:
            check_transfer(here, there)
        assert there.must("deregister") == 0


globals()[f"test_{CASE}"]()
