"""`hawser cp` and `hawser serve --dir` against a side that lies: a server or a client of their protocol, written here."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading

import pytest

import hawser
from conftest import SCALE, eventually

PROGRAM = pathlib.Path(os.environ["TEST_BUILD"]) / "bin/hawser"
CHANNEL, REGION, CHUNK = 64, "cp", 4 << 20
INVALID, CORRUPT, FAILED, DENIED, BUSY = 11, 18, 20, 19, 14


class LyingServer:
    """Serves one file of one chunk; `told` changes what it says of its bytes."""

    def __init__(self, data, told=None):
        self.data, self.told, self.requests = data, told or {}, []
        self.agent = hawser.Agent("liar")
        self.buffer = self.agent.empty(CHUNK, "uint8", name="files")
        self.buffer[:len(data)] = memoryview(data)
        self.agent.open_channel(CHANNEL, 64)
        self.client, self.ending = None, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    @property
    def target(self):
        tcp = next(one for one in self.agent.backends() if one["name"] == "tcp")
        return "liar@" + tcp["address"].split(", ")[0]

    def run(self):
        while not self.ending:
            message = self.agent.take_message(CHANNEL)
            if message is None:
                threading.Event().wait(0.002)
                continue
            text, _, tail = bytes(message.data).partition(b"\0")
            self.answer(message.peer, json.loads(text), tail)

    def answer(self, peer, request, tail):
        self.requests.append(request["op"])
        facts = {"size": len(self.data), "mtime_ns": 10**18, **self.told}
        said = {"id": request["id"], "ok": True}
        if request["op"] == "hello":
            self.client = self.agent.add_peer(tail)
            said |= {"chunk": CHUNK}
        elif request["op"] == "stat":
            said |= {"exists": True, "file": True, "folder": False, "mode": 0o600, "size": len(self.data),
                     "mtime_ns": 10**18}
        elif request["op"] == "read":
            said |= {"hash": "0" * 16, **facts}
            self.agent.write(self.client, self.agent.range_of(self.buffer[:request["size"]]),
                             self.client.range(REGION, request["slot"], request["size"])).wait(10)
        peer.notify(json.dumps(said).encode())

    def close(self):
        self.ending = True
        self.thread.join()
        self.agent.close()


def cp(*arguments):
    return subprocess.run([PROGRAM, "cp", *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("told, code, why", [
    ({}, CORRUPT, "do not have the sum that was told"),
    ({"mtime_ns": 10**18 + 1}, FAILED, "changed while it was copied"),
    ({"size": 1}, FAILED, "changed while it was copied"),
])
def test_a_download_is_no_better_than_its_sums(tmp_path, told, code, why):
    server = LyingServer(b"x" * 100_000, told)
    try:
        done = cp(f"{server.target}:file", tmp_path / "copy")
    finally:
        server.close()
    assert done.returncode == code and why in done.stderr, (done.returncode, done.stderr)
    assert "read" in server.requests and not (tmp_path / "copy").exists()


class Client:
    """A client that says what the test wants."""

    def __init__(self, target, name="client"):
        self.target = target
        self.agent = hawser.Agent(name)
        self.window = self.agent.empty(CHUNK, "uint8", name=REGION)
        self.peer = self.agent.find_peer(target, timeout=10 * SCALE)
        self.next_id = 0
        self.call("hello", tail=self.agent.card())

    def call(self, op, tail=b"", **fields):
        self.next_id += 1
        text = json.dumps({"op": op, "id": self.next_id, **fields}).encode()
        self.peer.send(CHANNEL, text + (b"\0" + tail if tail else b""))
        note = eventually(self.agent.take_notification)
        answer = json.loads(note.data)
        assert answer["id"] == self.next_id, answer
        return answer

    def close(self):
        self.agent.close()

    def refused(self, op, **fields):
        answer = self.call(op, **fields)
        assert answer["ok"] is False, answer
        return 10 + answer["error"]["number"], answer["error"]["message"]


@contextlib.contextmanager
def client_of_a_server(folder, *options):
    process = subprocess.Popen([PROGRAM, "serve", "--json", "--name", "store", "--size", "1MiB", "--dir", folder, *options],
                               stdout=subprocess.PIPE, text=True)
    client = Client(json.loads(process.stdout.readline())["target"])
    try:
        yield client
    finally:
        client.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_an_upload_is_no_better_than_its_sums(tmp_path):
    with client_of_a_server(tmp_path) as client:
        assert client.call("begin", path="file")["size"] == 0
        code, why = client.refused("write", path="file", offset=0, size=1000, slot=0, hash="0" * 16)
        assert code == CORRUPT and "do not have the sum that was told" in why, (code, why)
        code, why = client.refused("finish", path="file", size=1000, mode=0o600, mtime_ns=10**18)
        assert code == FAILED and "0 bytes of 1000" in why, (code, why)
    assert not (tmp_path / "file").exists()


def test_a_file_is_not_finished_that_was_not_begun(tmp_path):
    """It would be one of zeros."""
    with client_of_a_server(tmp_path) as client:
        assert client.refused("finish", path="file", size=1000, mode=0o600, mtime_ns=10**18)[0] == 12
        assert not list(tmp_path.iterdir())
        assert client.call("finish", path="empty", size=0, mode=0o600, mtime_ns=10**18)["ok"]
    assert [one.name for one in tmp_path.iterdir()] == ["empty"]


def test_every_request_is_answered(tmp_path):
    """Whatever bytes it quotes, and however long the words are."""
    with client_of_a_server(tmp_path) as client:
        for path in [{"hex": "ff"}, {"hex": "0"}, {"hex": 1}, 7, None, "\x01" * 9_000, {"hex": "ff" * 20_000}]:
            assert client.refused("read", path=path, offset=0, size=1, slot=0)[1]
        assert client.refused("read", path="no size")[0] == INVALID
        assert client.refused("what?")[1]
        name = os.fsencode(tmp_path) + b"/\xff\x01"
        with open(name, "wb") as file:
            file.write(b"1234")
        assert client.call("stat", path={"hex": "ff01"})["size"] == 4
        assert client.call("list", path="")["files"] == [{"path": {"hex": "ff01"}, "size": 4}]


def test_a_client_writes_one_file_at_a_time(tmp_path):
    """So that it holds one lock, however many it begins; another path lets the one before go."""
    with client_of_a_server(tmp_path) as one, contextlib.closing(Client(one.target, "other")) as other:
        one.call("begin", path="a")
        code, why = other.refused("begin", path="a")
        assert code == BUSY and "another copy writes" in why, (code, why)
        one.call("begin", path="b")
        assert other.call("begin", path="a")["ok"]
        assert one.refused("begin", path="a")[0] == BUSY
        other.close()  # And who goes lets go.
        eventually(lambda: one.call("begin", path="a")["ok"])
        assert one.refused("begin", path="")[0] == INVALID


def test_read_only_begins_nothing(tmp_path):
    with client_of_a_server(tmp_path, "--read-only") as client:
        assert client.refused("begin", path="file")[0] == DENIED
    assert not list(tmp_path.iterdir())
