#!/usr/bin/env python3
"""What comes between `hawser cp` and its end: odd names, a second copy, Ctrl-C, kills, power that fails.

usage: cp_test.py PROGRAM names|dots|kinds|tickets|durable|two_copies|removed|changed|interrupted|killed|progress|over_tcp [SYNC_LOG_LIBRARY]
"""

import fcntl
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cli_test import PROGRAM, Serve, run, run_json, same_file

BUSY, DISCONNECTED, CANCELLED, DENIED, FAILED = 14, 15, 17, 19, 20
CHUNK = 4 << 20
UNDER_WAY = 8 * CHUNK  # More than that in the part, and one chunk at least is whole.
SIZE = 96 << 20
TRIES = 20  # A copy may be over before it is stopped.


def files(folder, *options):
    """Folders of a test and a server for one of them."""
    served, here = pathlib.Path(folder) / "served", pathlib.Path(folder) / "here"
    served.mkdir()
    here.mkdir()
    server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served), *options)
    return served, here, server


def fill(path, size=SIZE):
    block = os.urandom(1 << 20)
    path.write_bytes(block * (size >> 20) + b"end")
    return path


def allocated(path):
    """Bytes of the file that are there: chunks come in any order, so its size says nothing."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:  # Not made yet, or it has its own name by now.
        return 0


class Stopped:
    """A copy of a large file, stopped (SIGSTOP) between its first chunk and its last."""

    def __init__(self, target, served, here, *, up, options=()):
        self.source, self.copy = (here / "large", served / "large") if up else (served / "large", here / "large")
        self.part = self.copy.with_name("large.part")
        if not self.source.exists():
            fill(self.source)
        remote = f"{target}:large"
        self.paths = [str(here / "large"), remote] if up else [remote, str(here / "large")]
        for _ in range(TRIES):
            self.part.unlink(missing_ok=True)
            self.copy.unlink(missing_ok=True)
            self.process = subprocess.Popen([PROGRAM, "cp", *options, *self.paths], stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)
            while self.process.poll() is None and allocated(self.part) <= UNDER_WAY:
                time.sleep(0.0005)
            self.process.send_signal(signal.SIGSTOP)
            if self.process.poll() is None and not self.copy.exists():
                return
            self.process.send_signal(signal.SIGCONT)
            self.process.wait(timeout=60)
        sys.exit("every copy was over before it could be stopped")

    def go_on(self, signal_number=signal.SIGCONT):
        """Lets it run, or end by the signal; gives its exit code and what it said."""
        self.process.send_signal(signal_number)
        self.process.send_signal(signal.SIGCONT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err

    def again(self):
        """The same copy; what was there is not moved again."""
        report = run_json("cp", *self.paths)
        same_file(self.source, self.copy)
        assert not self.part.exists()
        return report["bytes_kept"]


def both_ways(check):
    """Runs a check of a stopped copy for downloads and for uploads."""
    for up in [False, True]:
        with tempfile.TemporaryDirectory() as folder:
            served, here, server = files(folder)
            check(Stopped(server.ready["target"], served, here, up=up))
            server.end()


def test_names():
    """Names of files are bytes: they are copied as they are, both ways, and errors that quote them arrive."""
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        target = server.ready["target"]
        names = [b"plain", "ä".encode(), b"latin-\xe4", b"folder-\xff/\xfe", b"control-\x01\n\x7f"]
        (served / "tree").mkdir()
        for name in names:
            path = os.fsencode(served / "tree") + b"/" + name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(name * 100)
        for n in range(300):  # More than one answer lists, each name longer there than here.
            (served / "tree" / (chr(1) * 200 + str(n))).touch()
        start = time.monotonic()
        assert run_json("cp", "-r", f"{target}:tree", str(here))["files"] == 305
        assert run_json("cp", "-r", str(here / "tree"), f"{target}:back")["files"] == 305
        for name in names:
            for tree in [here / "tree", served / "back"]:
                with open(os.fsencode(tree) + b"/" + name, "rb") as file:
                    assert file.read() == name * 100, name
        assert len(list((served / "back").iterdir())) == 305
        run_json("cp", "-r", str(here / "tree") + "/.", f"{target}:dot")
        assert len(list((served / "dot").iterdir())) == 305
        for folder in ["one", "other"]:
            (here / folder).mkdir()
            (here / folder / "same").write_text(folder)
        run("cp", str(here / "one" / "same"), str(here / "other" / "same"), f"{target}:both/", expect=11)
        assert not (served / "both").exists()
        (here / "loop").symlink_to("loop")  # What cannot be looked at is an answer, too.
        assert "loop" in run_json("cp", f"{target}:tree/plain", str(here / "loop"), expect=FAILED)["error"]["message"]
        run("cp", f"{target}:none-" + os.fsdecode(b"\xff"), str(here), expect=12)
        assert time.monotonic() - start < 20, "an answer was lost"
        server.end()


def test_dots():
    """What cp(1) takes: "." is the folder, "./a//b" is a/b, and what is in "a/." goes into the target itself."""
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        target = server.ready["target"]
        (served / "sub").mkdir()
        (served / "sub" / "file").write_text("a file")
        for source, there in [(".", "sub/file"), ("./", "sub/file"), ("sub/.", "file"), ("./sub/", "sub/file"),
                              (".//sub", "sub/file")]:
            run("cp", "-r", f"{target}:{source}", str(here / "all") + "/")
            assert (here / "all" / there).read_text() == "a file", source
            shutil.rmtree(here / "all")
        for source in ["./sub/file", "sub//file", "sub/./file"]:
            run("cp", f"{target}:{source}", str(here))
            (here / "file").rename(here / "again")
        for place in [".", "./", "new/.", "./new//deep/"]:
            run("cp", str(here / "again"), f"{target}:{place}")
            (served / place / "again").unlink()
        for place in [".", "..", "no/..", "no/."]:
            (here / "in").mkdir(exist_ok=True)
            subprocess.run([os.path.abspath(PROGRAM), "cp", f"{target}:sub/file", place], cwd=here / "in", check=True)
            (here / "in" / place / "file").unlink()
        run("cp", f"{target}:.", str(here), expect=11)  # A folder, without -r.
        run("cp", f"{target}:sub/file/.", str(here), expect=11)  # No folder.
        for source in ["..", "./..", "sub/../sub/file", "/sub/file"]:
            run("cp", "-r", f"{target}:{source}", str(here / "out"), expect=DENIED)
        assert not (here / "out").exists()
        server.end()


def test_kinds():
    """What is no regular file is neither read, opened nor replaced, and the error says what it is."""
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        target = server.ready["target"]
        listeners = []
        for at in [served, here]:
            (at / "file").write_text("a file")
            os.mkfifo(at / "fifo")
            (at / "null").symlink_to("/dev/null")
            listeners.append(socket.socket(socket.AF_UNIX))
            listeners[-1].bind(str(at / "socket"))
        # Its writer would be told of a reader that goes at once.
        writer = os.open(here / "fifo", os.O_RDWR | os.O_NONBLOCK)
        os.write(writer, b"stays")
        for kind in ["fifo", "socket", "null"]:
            said = [json.loads(run("cp", "--json", *paths, expect=expect).stdout)["error"]["message"]
                    for paths, expect in [
                        ([str(here / kind), f"{target}:copy"], 11),
                        ([f"{target}:{kind}", str(here / "copy")], DENIED if kind == "null" else 11),
                        ([str(here / "file"), f"{target}:{kind}"], DENIED if kind == "null" else 11),
                        ([f"{target}:file", str(here / kind)], 11)]]
            word = {"fifo": "a FIFO", "socket": "a socket", "null": "a device"}[kind]
            links = "symbolic link" if kind == "null" else word
            assert [word in said[0], links in said[1], links in said[2], word in said[3]] == [True] * 4, said
        assert os.read(writer, 100) == b"stays"
        os.close(writer)
        for at in [served, here]:
            assert sorted(path.name for path in at.iterdir()) == ["fifo", "file", "null", "socket"], list(at.iterdir())
            assert (at / "fifo").is_fifo() and (at / "null").is_char_device() and (at / "socket").is_socket()
        assert run_json("cp", "-r", f"{target}:.", str(here / "tree"))["files"] == 1  # -r leaves them out.
        assert run_json("cp", "-r", str(here / "tree"), f"{target}:tree")["files"] == 1
        server.end()


def test_tickets():
    """A ticket is a password: processes of other users see none, and no error has one."""
    with tempfile.TemporaryDirectory() as folder:
        _, here, server = files(folder)
        ticket = "Rz877RLAUmUaKQAXdaSp_iPkRwM-QTOP99ateBS1oUmW0jumUksWTOTY6bQaMprG"  # Of nobody.
        address = server.ready["target"] + "#" + ticket
        for paths, expect in [([f"{address}#{ticket}:f", here], 11), ([f"store@localhost#{ticket}:f", here], 11),
                              ([f"{address}:f", f"{address}:f"], 11), ([f"{address}:f", here, "--odd#" + ticket], 2),
                              ([f"{address}{ticket}:f", here], 11), ([f"store@127.0.0.1:1#{ticket}:f", here], 15)]:
            for options in [[], ["--json"]]:
                done = run("cp", *options, *map(str, paths), expect=expect)
                assert ticket[43:] not in done.stdout + done.stderr, (paths, done.stdout, done.stderr)
        silent = socket.socket()  # Answers nothing, so the command stays.
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"store@127.0.0.1:{silent.getsockname()[1]}#{ticket}"
        process = subprocess.Popen([PROGRAM, "ping", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = ticket
        until = time.monotonic() + 20
        while (not seen or ticket in seen) and process.poll() is None and time.monotonic() < until:
            seen = pathlib.Path(f"/proc/{process.pid}/cmdline").read_text()
        process.kill()
        process.wait(timeout=60)
        assert "ping" in seen and "#" + "x" * len(ticket) in seen, seen
        server.end()


def logged(log):
    """(call, name) of what the library saw, in order."""
    return [tuple(line.split(" ", 1)) for line in log.read_text().splitlines()]


def check_order(calls, name):
    """Synced, then named, then the name synced; nothing else counts as durable."""
    mine = [call for call, what in calls if what.endswith((f"/{name}.part", f"/{name}"))]
    assert mine == ["fsync", "rename"], calls
    renamed = next(i for i, (call, what) in enumerate(calls) if call == "rename" and what.endswith(f"/{name}.part"))
    folder = calls[renamed][1].rsplit("/", 1)[0]
    assert ("fsync", folder) in calls[renamed:], calls


def test_durable():
    """After power fails, a final name has all its bytes: file, rename, folder, in this order; errors keep the name away."""
    library = sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        fill(served / "down", 6 << 20)
        log = pathlib.Path(folder) / "log"
        loaded = {"LD_PRELOAD": library, "SYNC_LOG": str(log)}
        run("cp", f"{server.ready['target']}:down", str(here / "down"), env=loaded)
        check_order(logged(log), "down")
        run("cp", f"{server.ready['target']}:down", str(here / "lost"), env={**loaded, "SYNC_FAILS": "1"}, expect=FAILED)
        assert not (here / "lost").exists() and (here / "lost.part").exists()
        server.end()

        log.unlink()
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served), env=loaded)
        run("cp", str(here / "down"), f"{server.ready['target']}:sub/up")
        check_order(logged(log), "up")
        server.end()
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served), env={**loaded, "SYNC_FAILS": "1"})
        run("cp", str(here / "down"), f"{server.ready['target']}:lost", expect=FAILED)
        assert not (served / "lost").exists() and (served / "lost.part").exists()
        server.end()


def test_two_copies():
    """A second copy into a file that is under way is told so, and does not disturb the first."""
    def check(first):
        second = run("cp", *first.paths, expect=BUSY)
        assert "another copy writes" in second.stderr, second.stderr
        code, said = first.go_on()
        assert code == 0, (code, said)
        same_file(first.source, first.copy)
        assert first.again() == 0

    both_ways(check)
    with tempfile.TemporaryDirectory() as folder:  # Other programs' locks hold, too: two servers of one folder.
        served, here, server = files(folder)
        fill(here / "file", 1 << 20)
        with open(served / "file.part", "wb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            run("cp", str(here / "file"), f"{server.ready['target']}:file", expect=BUSY)
        run("cp", str(here / "file"), f"{server.ready['target']}:file")
        server.end()


def test_removed():
    """A part that is taken away in the middle never becomes a file of zeros that looks complete."""
    def check(copy):
        copy.part.unlink()
        code, said = copy.go_on()
        assert code == FAILED and "removed or replaced" in said, (code, said)
        assert not copy.copy.exists()
        assert copy.again() == 0

    both_ways(check)


def test_changed():
    """A source that changes under the copy ends it, before its name is there."""
    def check(copy):
        with open(copy.source, "ab") as file:
            file.write(b"more")
        code, said = copy.go_on()
        assert code == FAILED and "changed while it was copied" in said, (code, said)
        assert not copy.copy.exists()
        copy.again()

    both_ways(check)


def test_interrupted():
    def check(copy):
        code, said = copy.go_on(signal.SIGINT)
        assert code == CANCELLED and "Ctrl-C" in said, (code, said)
        assert copy.part.exists() and not copy.copy.exists()
        assert copy.again() >= CHUNK

    both_ways(check)


def test_killed():
    """A client that was killed left its part to the next, at once; a server that was killed to the next server."""
    def check(copy):
        assert copy.go_on(signal.SIGKILL)[0] == -signal.SIGKILL
        assert copy.again() >= CHUNK

    both_ways(check)
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        copy = Stopped(server.ready["target"], served, here, up=True)
        server.process.kill()
        server.process.communicate(timeout=60)
        code, said = copy.go_on()
        assert code == DISCONNECTED, (code, said)
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served))
        copy.paths[-1] = f"{server.ready['target']}:large"
        assert copy.again() >= CHUNK
        server.end()


def test_progress():
    """A terminal sees a bar that grows and goes; who asked for JSON sees none."""
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder)
        fill(served / "large", 256 << 20)
        for options in [[], ["--json"]]:
            terminal, side = pty.openpty()
            process = subprocess.Popen([PROGRAM, "cp", *options, f"{server.ready['target']}:large", str(here / "l")],
                                       stdout=subprocess.PIPE, stderr=side,
                                       env={name: value for name, value in os.environ.items()
                                            if not name.startswith("HAWSER_")})  # Of those it does not know it warns.
            os.close(side)
            drawn = b""
            while True:
                try:
                    more = os.read(terminal, 65536)
                except OSError:  # Its other side is closed.
                    break
                drawn += more
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0, (process.returncode, drawn)
            os.close(terminal)
            if options:
                assert not drawn and json.loads(out)["ok"], drawn
                continue
            done = [int(bar.rsplit(b"] ", 1)[1].split(b"/")[0]) for bar in drawn.split(b"\r\x1b[K") if b"copying [" in bar]
            assert done and done == sorted(done) and done[0] >= CHUNK, drawn
            assert drawn.endswith(b"\r\x1b[K"), drawn[-200:]
        server.end()


def test_over_tcp():
    """As between hosts: no shared memory."""
    with tempfile.TemporaryDirectory() as folder:
        served, here, server = files(folder, "--backend", "tcp")
        target = server.ready["target"]
        fill(served / "large")
        run("cp", "--backend", "tcp", f"{target}:large", str(here / "large"))
        same_file(served / "large", here / "large")
        run("cp", "--backend", "tcp", str(here / "large"), f"{target}:back")
        same_file(here / "large", served / "back")
        stopped = Stopped(target, served, here, up=True, options=["--backend", "tcp"])
        assert stopped.go_on(signal.SIGKILL)[0] == -signal.SIGKILL
        assert stopped.again() >= CHUNK
        server.end()


if __name__ == "__main__":
    globals()[f"test_{sys.argv[2]}"]()
