"""The backend quic: between two agents, between two hosts with a bad cable, under ranks, and against strangers."""

import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy
import pytest

import hawser
from two_hosts import hosts, start_python  # noqa: F401 (a fixture)

from conftest import SCALE, eventually

PATIENCE = 60 * SCALE
SIZE = 4 << 20


def is_here():
    """Whether QUIC's libraries are; the reason if they are not."""
    try:
        with hawser.Agent("probe", backends=["quic"]):
            return None
    except hawser.UnsupportedError as error:
        return str(error)


WHY_NOT = is_here()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


def noise(size, seed):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


@pytest.fixture
def two():
    with hawser.Agent("a", backends=["quic"]) as a, hawser.Agent("b", backends=["quic"]) as b:
        yield a, b


def test_bytes_go_both_ways_and_explain_names_the_cipher(two):
    a, b = two
    mine, theirs = a.empty(SIZE, numpy.uint8, name="m"), b.empty(SIZE, numpy.uint8, name="m")
    mine[:] = noise(SIZE, 1)
    peer = a.add_peer(b.card())
    a.write(peer, mine, peer.range("m", 0, SIZE), notify=b"there").wait(PATIENCE)
    assert (theirs == mine).all()
    assert eventually(b.take_notification).data == b"there"
    theirs[:] = noise(SIZE, 2)
    a.read(peer, peer.range("m", 0, SIZE), mine).wait(PATIENCE)
    assert (theirs == mine).all()
    told = a.explain(a.plan_write(peer, mine, peer.range("m", 0, SIZE)))
    assert "QUIC v1" in told and "TLS1.3" in told, told


def test_without_quic_at_the_other_agent_the_error_says_so(two):
    a, _ = two
    with hawser.Agent("c", backends=["tcp"]) as c:
        c.empty(16, numpy.uint8, name="m")
        peer = a.add_peer(c.card())
        with pytest.raises(hawser.Error, match="quic|tcp"):
            peer.connect(timeout=5 * SCALE)


def ports_of_this_process():
    """UDP ports of loopback on which this process listens."""
    inodes = {os.readlink(link)[8:-1] for link in glob.glob("/proc/self/fd/*") if is_socket(link)}
    rows = [line.split() for line in open("/proc/net/udp").readlines()[1:]]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes]


def is_socket(link):
    try:
        return os.readlink(link).startswith("socket:")
    except OSError:
        return False


def test_the_card_of_an_earlier_agent_leads_to_nobody(two):
    """Another agent on the same port, of the same name, has another secret and key: the opener's token is no good there."""
    a, _ = two
    before = set(ports_of_this_process())
    first = hawser.Agent("c", backends=["quic"])
    old, port = first.card(), (set(ports_of_this_process()) - before).pop()
    first.close()
    with hawser.Agent("c", backends={"quic": {"port": str(port)}}):
        with pytest.raises(hawser.Error):
            a.add_peer(old).connect(timeout=5 * SCALE)


def test_a_typed_address_with_its_ticket_goes_over_quic(two):
    a, b = two
    theirs = b.empty(64, numpy.uint8, name="m")
    theirs[:] = 9
    for port in ports_of_this_process():
        try:
            peer = a.find_peer(f"b@127.0.0.1:{port}#{b.ticket}", timeout=5 * SCALE)
        except hawser.Error:  # Its own port.
            continue
        got = a.empty(64, numpy.uint8, name="got")
        a.read(peer, peer.range("m", 0, 64), got).wait(PATIENCE)
        assert (got == 9).all()
        break
    else:
        pytest.fail("neither port is b's")
    with pytest.raises(hawser.Error, match="card|ticket"):
        a.find_peer(f"b@127.0.0.1:{port}", timeout=2 * SCALE)


def test_serve_and_ping_speak_quic(tmp_path):
    command = [os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")]
    server = subprocess.Popen([*command, "serve", "--name", "s", "--backend", "quic", "--json", "--size", "1MiB"],
                              stdout=subprocess.PIPE, text=True)
    try:
        target = json.loads(server.stdout.readline())["target"]
        done = subprocess.run([*command, "ping", target, "--backend", "quic", "--json", "-c", "3"], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        assert [path["backend"] for path in json.loads(done.stdout)["paths"]] == ["quic"]
    finally:
        server.kill()
        server.wait()


def test_strangers_get_no_word_and_stop_nobody(two):
    a, b = two
    mine, theirs = a.empty(SIZE, numpy.uint8, name="m"), b.empty(SIZE, numpy.uint8, name="m")
    ports = ports_of_this_process()
    assert len(ports) == 2
    dice = random.Random(3)
    peer = a.add_peer(b.card())
    a.write(peer, mine, peer.range("m", 0, SIZE)).wait(PATIENCE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        for i in range(3000):
            size = dice.choice((0, 1, 17, 300, 1200, 1500, 20000))
            bytes_ = bytearray(dice.randbytes(size))
            if size >= 1200:  # The head of a first datagram, with ids and a token that claim this and that.
                token = dice.choice((b"", b"TLSH" + dice.randbytes(60), b"\xb6" + dice.randbytes(80), b"\xff" * 8))
                bytes_[:] = (b"\xc3\x00\x00\x00\x01\x12" + dice.randbytes(18) + b"\x00" + bytes([0x40, len(token)]) + token +
                             b"\x44\x00" + dice.randbytes(1200))[:1200]
            for port in ports:
                stranger.sendto(bytes_, ("127.0.0.1", port))
            if i % 100 == 0:
                mine[:] = noise(SIZE, i)
                a.write(peer, mine, peer.range("m", 0, SIZE)).wait(PATIENCE)
                assert (theirs == mine).all()
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(2000)


def test_a_folder_for_qlog_gets_a_file_of_each_end(tmp_path, monkeypatch):
    monkeypatch.setenv("HAWSER_BACKEND_QUIC_QLOG", str(tmp_path))
    with hawser.Agent("a", backends=["quic"]) as a, hawser.Agent("b", backends=["quic"]) as b:
        theirs, mine = b.empty(SIZE, numpy.uint8, name="m"), a.empty(SIZE, numpy.uint8, name="m")
        mine[:] = 7
        peer = a.add_peer(b.card())
        a.write(peer, mine, peer.range("m", 0, SIZE)).wait(PATIENCE)
        assert (theirs == 7).all()
    files = sorted(tmp_path.iterdir())
    assert [name.name.rsplit("-", 1)[1] for name in files] == ["client.sqlog", "server.sqlog"]
    for name in files:
        records = [json.loads(record) for record in name.read_text().split("\x1e")[1:]]
        assert records[0]["qlog_version"] == "0.3" and records[0]["qlog_format"] == "JSON-SEQ"
        events = records[1:]
        assert events[0]["name"] == "connectivity:connection_started"
        assert events[-1]["name"] == "connectivity:connection_closed"
        assert [event["time"] for event in events] == sorted(event["time"] for event in events)
        moved = sum(event["data"]["length"] for event in events if event["name"] == "transport:data_moved")
        assert moved > SIZE
    monkeypatch.setenv("HAWSER_BACKEND_QUIC_QLOG", str(tmp_path / "missing"))
    with pytest.raises(hawser.InvalidError, match="qlog"):
        hawser.Agent("c", backends=["quic"])


# ---- Two hosts.

SIDE = """
import os, sys, time
import numpy, hawser

role, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
other = {"a": "b", "b": "a"}[role]
agent = hawser.Agent(role, backends=["quic"])
own = agent.empty(size, numpy.uint8, name="m")
own[:] = numpy.random.default_rng(ord(role)).integers(0, 256, size, dtype=numpy.uint8)
with open(f"{folder}/{role}.part", "wb") as card:
    card.write(agent.card())
os.rename(f"{folder}/{role}.part", f"{folder}/{role}")
while not os.path.exists(f"{folder}/{other}"):
    time.sleep(0.02)
if role == "a":
    peer = agent.add_peer(open(f"{folder}/b", "rb").read())
    got = agent.empty(size, numpy.uint8, name="got")
    agent.read(peer, peer.range("m", 0, size), got).wait(60)
    assert (got == numpy.random.default_rng(ord("b")).integers(0, 256, size, dtype=numpy.uint8)).all()
    began = time.monotonic()
    agent.write(peer, own, peer.range("m", 0, size), notify=b"there").wait(60)
    print("wrote", agent.explain(agent.plan_write(peer, own, peer.range("m", 0, size))).replace("\\n", " "), flush=True)
    if os.path.exists(f"{folder}/cut"):
        open(f"{folder}/ready", "w").close()
        try:
            while time.monotonic() - began < 60:
                agent.write(peer, own, peer.range("m", 0, size)).wait(60)
            print("still there")
        except hawser.Error as error:
            print("error", type(error).__name__, flush=True)
else:
    while agent.take_notification() is None:
        agent.wait(1)
    right = (own == numpy.random.default_rng(ord("a")).integers(0, 256, size, dtype=numpy.uint8)).all()
    print("right" if right else "wrong", flush=True)
    while not os.path.exists(f"{folder}/over"):
        time.sleep(0.02)
"""


def drop(host, chance, which=""):
    """Of all packets that reach a host, or of those that a rule names, so many in a hundred are lost from now on."""
    dice = "" if chance == 100 else f"numgen random mod 100 < {chance}"
    rules = f"add table inet quic; flush table inet quic; add chain inet quic in {{ type filter hook input priority 0; }}; " \
            f"add rule inet quic in meta l4proto udp {which} {dice} drop"
    subprocess.run(["ip", "netns", "exec", host, "nft", rules], check=True, capture_output=True, text=True)


@pytest.fixture
def bad_cable(hosts):  # noqa: F811
    if not shutil.which("nft"):
        pytest.skip("needs the program nft")
    try:
        drop(hosts[0], 1)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"nft cannot drop packets here: {error.stderr.strip()}")
    return hosts


def run_sides(hosts, tmp_path, size):  # noqa: F811
    environment = {"HAWSER_LISTEN": "auto", "HAWSER_PEER_TIMEOUT": "3s"}
    return [start_python(host, SIDE, role, str(tmp_path), str(size), **environment) for host, role in zip(hosts, "ab")]


def test_a_cable_that_loses_packets_changes_nothing_but_time(bad_cable, tmp_path):
    for host in bad_cable:
        drop(host, 3)
    a, b = run_sides(bad_cable, tmp_path, SIZE)
    try:
        out, err = a.communicate(timeout=2 * PATIENCE)
        assert a.returncode == 0 and "wrote" in out and "10.78.0.2" in out and "QUIC v1" in out, out + err
        assert b.stdout.readline() == "right\n"
        (tmp_path / "over").touch()
        assert b.wait(PATIENCE) == 0
    finally:
        a.kill(), b.kill()


# One side reads and writes until it is told to stop; the other only lends its memory.
MOVES = """
import os, sys, time
import numpy, hawser

role, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
other = {"a": "b", "b": "a"}[role]
agent = hawser.Agent(role, backends=["quic"])
own = agent.empty(size, numpy.uint8, name="m")
with open(f"{folder}/{role}.part", "wb") as card:
    card.write(agent.card())
os.rename(f"{folder}/{role}.part", f"{folder}/{role}")
while not os.path.exists(f"{folder}/{other}"):
    time.sleep(0.02)
if role == "a":
    peer = agent.add_peer(open(f"{folder}/b", "rb").read())
    got = agent.empty(size, numpy.uint8, name="got")
    rounds = 0
    while not os.path.exists(f"{folder}/over"):
        own[:] = rounds % 251
        began = time.monotonic()
        agent.write(peer, own, peer.range("m", 0, size)).wait(60)
        agent.read(peer, peer.range("m", 0, size), got).wait(60)
        assert (got == own).all(), rounds
        rounds += 1
        with open(f"{folder}/rounds", "a") as times:
            print(time.monotonic() - began, file=times)
    print(agent.explain(agent.plan_write(peer, own, peer.range("m", 0, size))).replace("\\n", " "), flush=True)
    open(f"{folder}/done", "w").close()
else:
    while not os.path.exists(f"{folder}/done"):
        time.sleep(0.02)
    print(sum(each["let_in"] for each in agent.counters()["admissions"]), flush=True)
"""


def test_a_transfer_goes_on_where_the_openers_host_gets_another_address(hosts, tmp_path, record_property):  # noqa: F811
    def rounds():
        text = (tmp_path / "rounds").read_text() if (tmp_path / "rounds").exists() else ""
        return [float(line) for line in text.split("\n")[:-1]]

    def go_on(count):
        """The longest of so many rounds."""
        known = len(rounds())
        eventually(lambda: len(rounds()) >= known + count or a.poll() is not None, 60)
        return max(rounds()[known:], default=0)

    def replace(old, new, pause=0):
        subprocess.run(["ip", "-n", hosts[0], "addr", "del", f"{old}/24", "dev", "cable"], check=True)
        time.sleep(pause)
        subprocess.run(["ip", "-n", hosts[0], "addr", "add", f"{new}/24", "dev", "cable"], check=True)

    environment = {"HAWSER_LISTEN": "auto", "HAWSER_HEARTBEAT": "1s"}
    a, b = [start_python(host, MOVES, role, str(tmp_path), str(SIZE), **environment) for host, role in zip(hosts, "ab")]
    try:
        go_on(5)
        held = []
        for old, new, pause in (("1", "7", 0), ("7", "8", 0.5), ("8", "8", 0.2), ("8", "9", 0)):
            replace(f"10.78.0.{old}", f"10.78.0.{new}", pause)
            held.append(f"{old} to {new}: {go_on(5) - pause:.2f} s")
        record_property("held up beside the time without an address", ", ".join(held))
        print("held up beside the time without an address:", ", ".join(held))
        (tmp_path / "over").touch()
        out, err = a.communicate(timeout=PATIENCE)
        assert a.returncode == 0 and "10.78.0.9" in out, out + err
        said, err = b.communicate(timeout=PATIENCE)
        assert b.returncode == 0, said + err
        assert said == "1\n", f"the path was replaced: {said} sessions"
    finally:
        a.kill(), b.kill()


# Two agents, `role` and `other`, get each other's cards by a folder.
MEET = """
with open(f"{folder}/{role}.part", "wb") as card:
    card.write(agent.card())
os.rename(f"{folder}/{role}.part", f"{folder}/{role}")
while not os.path.exists(f"{folder}/{other}"):
    time.sleep(0.02)
peer = agent.add_peer(open(f"{folder}/{other}", "rb").read())
peer.connect(30)
"""

# Messages there and back while writes go on all the time; times in us.
PINGS = """
import os, sys, time
import numpy, hawser

role, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
other = {"a": "b", "b": "a"}[role]
agent = hawser.Agent(role, backends=["quic"])
agent.open_channel(16, 64)
own = agent.empty(4 << 20, numpy.uint8, name="m")
""" + MEET + """
def await_message():
    while (message := agent.take_message(16)) is None:
        agent.wait(1)
    return bytes(message.data)

if role == "a":
    times, writes = [], []
    for i in range(count):
        while len(writes) < 4:
            writes.append(agent.write(peer, own, peer.range("m", 0, own.nbytes)))
        writes = [write for write in writes if not write.done]
        began = time.monotonic()
        peer.send(16, b"ping")
        await_message()
        times.append((time.monotonic() - began) * 1e6)
    for write in writes:
        write.wait(60)
    peer.send(16, b"over")
    times.sort()
    print(times[len(times) // 2], times[len(times) * 99 // 100], flush=True)
else:
    while await_message() != b"over":
        peer.send(16, b"pong")
    time.sleep(0.2)
"""


def test_messages_beside_bulk_of_which_packets_are_lost(bad_cable, tmp_path, record_property):
    """The figures are told, and nothing depends on them: `src/backend/quic/connection_test.cc` bounds them in virtual time."""
    for host in bad_cable:  # A packet is a datagram then, not a batch of them.
        subprocess.run(["ip", "-n", host, "link", "set", "cable", "gso_max_segs", "1"], check=True, capture_output=True)
    for number, lost in enumerate((0, 2)):
        drop(bad_cable[1], lost, "meta length > 1000")
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = {"HAWSER_LISTEN": "auto"}
        a, b = [start_python(host, PINGS, role, str(folder), "300", **environment) for host, role in zip(bad_cable, "ab")]
        try:
            out, err = a.communicate(timeout=2 * PATIENCE)
            assert a.returncode == 0, out + err
            p50, p99 = map(float, out.split())
            record_property(f"{lost} percent of bulk lost", f"p50 {p50:.0f} us, p99 {p99:.0f} us")
            print(f"{lost} % of bulk's packets lost: messages there and back p50 {p50:.0f} us, p99 {p99:.0f} us")
        finally:
            a.kill(), b.kill()


# Messages there and back on one channel, and large ones on another one all the while; times in us.
CHANNELS = """
import os, sys, time
import hawser

role, folder, count, pinged = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
other = {"a": "b", "b": "a"}[role]
agent = hawser.Agent(role, backends=["quic"])
for channel in (16, pinged):
    agent.open_channel(channel, 1024)
""" + MEET + """
def await_message(channel):
    while (message := agent.take_message(channel)) is None:
        agent.wait(1)
    return bytes(message.data)

if role == "a":
    times = []
    for i in range(count):
        peer.send(16, i.to_bytes(1300, "little"))
        time.sleep(0.001)  # Its datagram is on its way: the next message has one of its own.
        began = time.monotonic()
        peer.send(pinged, b"ping")
        await_message(pinged)
        times.append((time.monotonic() - began) * 1e6)
    peer.send(pinged, b"over")
    assert await_message(16) == b"all"
    times.sort()
    print(times[len(times) // 2], times[len(times) * 99 // 100], flush=True)
else:
    while await_message(pinged) != b"over":
        peer.send(pinged, b"pong")
    for i in range(count):
        assert int.from_bytes(await_message(16), "little") == i
    peer.send(16, b"all")
    agent.wait(1)
    time.sleep(0.5)
"""


def test_messages_beside_those_of_another_channel_of_which_packets_are_lost(bad_cable, tmp_path, record_property):
    """All messages arrive, and in order. The figures are told: `src/backend/quic/links_test.cc` bounds them in virtual time."""
    figures = []
    for channel, lost in ((17, 0), (17, 10), (20, 10)):  # Channel 20 is of channel 16's group.
        drop(bad_cable[1], lost, "meta length > 1000")
        folder = tmp_path / f"{channel}-{lost}"
        folder.mkdir()
        words = [str(folder), "400", str(channel)]
        a, b = [start_python(host, CHANNELS, role, *words, HAWSER_LISTEN="auto") for host, role in zip(bad_cable, "ab")]
        try:
            out, err = a.communicate(timeout=2 * PATIENCE)
            assert a.returncode == 0, out + err
            p50, p99 = map(float, out.split())
            figures.append(f"channel {channel}, {lost} % of channel 16 lost: p50 {p50:.0f} us, p99 {p99:.0f} us")
        finally:
            a.kill(), b.kill()
    record_property("there and back", "; ".join(figures))
    print("\n".join(figures))


def test_a_cut_cable_ends_the_transfer_with_an_error(bad_cable, tmp_path):
    (tmp_path / "cut").touch()
    a, b = run_sides(bad_cable, tmp_path, SIZE)
    try:
        eventually((tmp_path / "ready").exists, 60)
        for host in bad_cable:
            drop(host, 100)
        began = time.monotonic()
        out, err = a.communicate(timeout=2 * PATIENCE)
        assert "error" in out and "still there" not in out, out + err
        assert time.monotonic() - began < 30 * SCALE
    finally:
        a.kill(), b.kill()


# ---- A peer that dies, and ranks.

DIES = """
import sys
import numpy, hawser
agent = hawser.Agent("b", backends=["quic"])
own = agent.empty(1 << 20, numpy.uint8, name="m")
print(agent.card().hex(), flush=True)
sys.stdin.readline()
"""


def test_a_killed_peer_is_noticed_at_once(two):
    a, _ = two
    process = subprocess.Popen([sys.executable, "-c", DIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        peer = a.add_peer(bytes.fromhex(process.stdout.readline().decode()))
        mine = a.empty(1 << 20, numpy.uint8, name="m")
        a.write(peer, mine, peer.range("m", 0, 1 << 20)).wait(PATIENCE)
        process.send_signal(signal.SIGKILL)
        process.wait()
        began = time.monotonic()
        with pytest.raises(hawser.Error):
            while time.monotonic() - began < 20 * SCALE:
                a.write(peer, mine, peer.range("m", 0, 1 << 20)).wait(PATIENCE)
        assert time.monotonic() - began < 5 * SCALE
    finally:
        process.kill()


RANKS = """
import sys, threading
import numpy, hawser
worlds = hawser.World.local(4)
told = []
def rank(world):
    for count in (1, 1000, 300_000):
        x = numpy.arange(count, dtype=numpy.float64) + world.rank
        world.all_reduce(x)
        assert (x == 4 * numpy.arange(count) + 6).all()
    world.barrier()
    told.append(world.rank)
threads = [threading.Thread(target=rank, args=(world,)) for world in worlds]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(told))
"""


def test_ranks_go_over_quic():
    done = subprocess.run([sys.executable, "-c", RANKS], capture_output=True, text=True, timeout=PATIENCE,
                          env=os.environ | {"HAWSER_BACKENDS": "quic"})
    assert done.returncode == 0 and done.stdout.strip() == "[0, 1, 2, 3]", done.stdout + done.stderr
