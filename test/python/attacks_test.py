"""A peer is served while its owner is attacked. The owner is on one host, the innocent peers and the attackers are on another
(network namespaces; see two_hosts.py).

Before and during each attack the innocent peers read 4 KiB again and again, over tcp and over quic. The harness tells their p99
during the attack as a multiple of that before it, and how much memory the owner has more. It fails where an innocent peer is
not served, where the owner grows beyond its bound or ends, or where an attacker is let do what it must not. Times do not fail
it: both hosts, and the compilers beside, share this machine's cores.

    pytest test/python/attacks_test.py -s                          # prints the table of docs/threat-model.md
    ATTACK_SECONDS=1 ATTACK_NICE=-19 chrt -r 1 pytest ...          # longer phases; compilers beside do not count

Attackers are ordinary processes whatever this one is: on hosts of their own they would not take the owner's cores.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from two_hosts import hosts, start, start_python  # noqa: F401 (a fixture)

from conftest import SCALE
from quic_test import WHY_NOT

BUILD = os.environ["TEST_BUILD"]
HAWSER = os.path.join(BUILD, "bin", "hawser")
ATTACKER = os.path.join(BUILD, "bin", "real_attacker")
SECONDS = float(os.environ.get("ATTACK_SECONDS", "0.6"))
PATIENCE = 30 * SCALE
ORDINARY = ["chrt", "-o", "0", "nice", "-n", os.environ.get("ATTACK_NICE", "0")] if shutil.which("chrt") else []
# What an owner may grow by under all attacks together: 64 unproven connections of 64 KiB over tcp and 128 KiB over QUIC, 4 MiB of
# first datagrams, quotas of 64 MiB of notifications for each peer, and what its allocator keeps.
GROWS_MOST = 96 << 20

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")

OWNER_CODE = """
import sys, time
import hawser

folder = sys.argv[1]
agent = hawser.Agent("owner", backends=["tcp", "quic"])
memory = agent.empty(1 << 20, "uint8", name="m")
memory[:] = 7
with open(folder + "/card", "wb") as file:
    file.write(agent.card())
print("ready", agent.ticket, flush=True)
while True:
    time.sleep(0.2)
    while agent.take_notification():
        pass
"""

# Reads until it is asked how that went; then from the begin.
INNOCENT_CODE = """
import select, sys, time
import numpy, hawser

backend, card = sys.argv[1:]
agent = hawser.Agent("innocent-" + backend, backends=[backend])
mine = agent.empty(4096, "uint8", name="mine")
peer = agent.add_peer(open(card, "rb").read()) if card.startswith("/") else agent.find_peer(card, timeout=10)
far = peer.range("m", 0, 4096)
agent.read(peer, far, mine).wait(10)
print("ready", flush=True)
times, failed = [], 0
while True:
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        its = numpy.array(times) if times else numpy.zeros(1)
        print(len(times), failed, float(numpy.quantile(its, 0.5)), float(numpy.quantile(its, 0.99)), flush=True)
        times, failed = [], 0
    began = time.perf_counter()
    try:
        agent.read(peer, far, mine).wait(10)
        times.append(time.perf_counter() - began)
    except hawser.Error as error:
        failed += 1
        print(error, file=sys.stderr)
        time.sleep(0.01)
    assert (mine == 7).all()
    time.sleep(0.002)  # It is no attack itself.
"""

# ---- Attacks of strangers: functions of this name, run on the other host.

STRANGER_CODE = r"""
import os, random, socket, ssl, sys, threading, time

HOST, PORT = "10.78.0.1", 7000
name, seconds, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]
dice, until, tries = random.Random(1), time.monotonic() + seconds, 0


def connect(kind=socket.SOCK_STREAM):
    made = socket.socket(socket.AF_INET, kind)
    made.settimeout(0.5)
    made.connect((HOST, PORT))
    return made


def garbage():
    with connect() as made:
        try:
            made.sendall(dice.randbytes(dice.choice((1, 40, 300, 5000))))
            made.recv(100)
        except OSError:
            pass


def datagrams_of_garbage():
    with connect(socket.SOCK_DGRAM) as made:
        for _ in range(50):
            try:
                made.send(dice.randbytes(dice.choice((0, 1, 17, 300, 1200, 1400))))
            except OSError:
                pass


def first_datagrams():
    # The head of a first datagram of QUIC, with ids and a token that claim this and that.
    with connect(socket.SOCK_DGRAM) as made:
        for _ in range(50):
            token = dice.choice((b"", b"TLSH" + dice.randbytes(60), b"\xb6" + dice.randbytes(80)))
            text = (b"\xc3\x00\x00\x00\x01\x12" + dice.randbytes(18) + b"\x00" + bytes([0x40, len(token)]) + token +
                    b"\x44\x00" + dice.randbytes(1200))[:1200]
            try:
                made.send(text)
            except OSError:
                pass


kept = []


def unknown_versions():
    # Versions of QUIC that nobody speaks. An answer may go to each, and nothing may be kept.
    with connect(socket.SOCK_DGRAM) as made:
        for _ in range(50):
            made.send((b"\xc0" + dice.randbytes(4) + b"\x12" + dice.randbytes(18) + b"\x08" + dice.randbytes(1200))[:1200])


def packets_of_no_connection():
    # As of connections that the owner had once. Ids that are made up hold no MAC of the owner's, so nobody is answered.
    with connect(socket.SOCK_DGRAM) as made:
        for _ in range(50):
            made.send(bytes([0x40 | dice.randrange(64)]) + dice.randbytes(dice.choice((20, 40, 300, 1200))))
        made.settimeout(0.02)
        try:
            made.recv(2000)
        except TimeoutError:
            return
        raise SystemExit("it got an answer")


def replayed_first_datagram():
    # What a peer with the card once sent first, from ever new ports: the token in it is good, and no handshake follows.
    first = open(folder + "/first", "rb").read()
    for _ in range(50):
        with connect(socket.SOCK_DGRAM) as made:
            made.send(first)


def half_open():
    # Connections that say nothing; the oldest of 4,000 goes.
    try:
        kept.append(connect())
    except OSError:
        pass
    if len(kept) > 4000:
        kept.pop(0).close()


def slow_loris():
    # 64 connections that begin TLS a byte at a time.
    while len(kept) < 64:
        kept.append(connect())
    for i, each in enumerate(kept):
        try:
            each.send(b"\x16"[:1] if i % 2 else b"H")
        except OSError:
            each.close()
            kept[i] = connect()
    time.sleep(0.01)


def no_certificate():
    # TLS as any client speaks it: without the secret of the card, and without a certificate.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with context.wrap_socket(connect()) as made:
            made.recv(1)
            raise SystemExit("it was let in")
    except OSError:
        pass


def replay():
    # What a proven peer once sent, byte by byte: its hello, its proofs, and what names its session.
    said = open(folder + "/said", "rb").read()
    with connect() as made:
        try:
            made.sendall(said)
            made.recv(100)
        except OSError:
            pass


def agent_with(backend, opened, address):
    import hawser
    with hawser.Agent("stranger", backends=[backend], settings=opened) as agent:
        try:
            agent.find_peer(address, timeout=1).connect(timeout=1)
        except hawser.Error:
            return
    raise SystemExit("it was let in: " + address)


def swapped_card():
    # The owner's address with the ticket of another agent: another secret, and another key.
    agent_with("tcp", {}, "owner@10.78.0.1:7000#" + open(folder + "/other-ticket").read())


def swapped_card_over_quic():
    agent_with("quic", {}, "owner@10.78.0.1:7000#" + open(folder + "/other-ticket").read())


def downgrade():
    # An agent of the level `none`, which has the address only: it asks for a session in clear.
    agent_with("tcp", {"security": "none"}, "owner@10.78.0.1:7000")


def identity():
    # An agent with the identity that the environment gives it, as the agent of that name.
    agent_with("tcp", {}, "owner@10.78.0.1:7000")


attack = globals()[name]
while time.monotonic() < until:
    try:
        attack()
    except (TimeoutError, ConnectionError):
        pass
    tries += 1
print(tries, 0)
"""

STRANGERS = ["garbage", "datagrams_of_garbage", "first_datagrams", "unknown_versions", "packets_of_no_connection",
             "replayed_first_datagram", "half_open", "slow_loris", "no_certificate", "replay",
             "swapped_card", "swapped_card_over_quic", "downgrade"]
PEERS = ["guessed_key", "closed_region", "beyond_bounds", "wraps_around", "far_away", "never_reads", "sessions_without_end",
         "announces_very_much", "message_flood"]


class Innocent:
    def __init__(self, host, backend, card, **environment):
        self.backend = backend
        self.process = start(host, sys.executable, "-c", INNOCENT_CODE, backend, card, stdin=subprocess.PIPE,
                             **environment)

    def ask(self):
        """Reads since it was asked last, those that failed, p50 and p99 in seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        count, failed, middle, late = self.process.stdout.readline().split()
        return int(count), int(failed), float(middle), float(late)


def resident(process):
    """Bytes that the program has which `start` started, or the largest of those that it started itself."""
    pids, most = [process.pid], 0
    while pids:
        pid = pids.pop()
        try:
            with open(f"/proc/{pid}/status") as file:
                rows = dict(row.split(":", 1) for row in file if ":" in row)
            if "python" in rows["Name"]:
                most = max(most, int(rows["VmRSS"].split()[0]) << 10)
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                pids += [int(child) for child in file.read().split()]
        except (OSError, KeyError):
            continue
    return most


class Siege:
    """An owner, the innocent peers beside, and what they say of each attack."""

    def __init__(self, owner, innocents):
        self.owner, self.innocents, self.rows = owner, innocents, []
        self.begun_with = resident(owner)

    def attack(self, name, process_of):
        for each in self.innocents:
            each.ask()
        time.sleep(SECONDS)
        before = {each.backend: each.ask() for each in self.innocents}
        process = process_of()
        time.sleep(min(0.3, SECONDS / 2))  # Its interpreter starts.
        for each in self.innocents:
            each.ask()
        said, errors = process.communicate(timeout=PATIENCE)
        during = {each.backend: each.ask() for each in self.innocents}
        assert process.returncode == 0, f"{name}: {said}{errors}"
        assert self.owner.poll() is None, f"{name}: the owner has ended"
        grown = resident(self.owner) - self.begun_with
        tries = int(said.split()[0])
        assert tries > 0, f"{name}: it was not tried"
        self.rows.append((name, tries, before, during, grown))
        for backend, (count, failed, _, _) in during.items():
            assert count > 0, f"{name}: {backend} was not served at all ({failed} errors)"
        assert grown < GROWS_MOST, f"{name}: the owner has {grown >> 20} MiB more"

    def table(self):
        backends = [each.backend for each in self.innocents]
        head = "| attack | tries | " + " | ".join(f"p99 over {each}, us, before and during" for each in backends) + " | memory |"
        lines = [head, "|---" * (3 + len(backends)) + "|"]
        for name, tries, before, during, grown in self.rows:
            cells = [f"{before[each][3] * 1e6:.0f}, {during[each][3] * 1e6:.0f}: {during[each][3] / before[each][3]:.1f} x"
                     for each in backends]
            lines.append(f"| {name.replace('_', ' ')} | {tries} | {' | '.join(cells)} | {grown / (1 << 20):+.1f} MiB |")
        return "\n".join(lines)


def stop(*processes):
    for each in processes:
        each.kill()
        each.wait()


def first_line(process):
    line = process.stdout.readline()
    assert line.startswith("ready"), line + process.stderr.read()
    return line.split()


def record_a_session(peer_host, folder):
    """The bytes that a peer with the card said to the owner: by a relay between the two, on the peer's host."""
    relay = """
import os, socket, sys, threading
listener = socket.create_server(("10.78.0.2", 7100))
print("ready", flush=True)


def carry(one, other, said):
    while bytes_ := one.recv(65536):
        other.sendall(bytes_)
        if said is not None:
            said.extend(bytes_)
            if said is max(heard, key=len):
                with open(f"{sys.argv[1]}/said-{id(said)}", "wb") as file:
                    file.write(said)
                os.replace(file.name, sys.argv[1] + "/said")
    other.shutdown(socket.SHUT_WR)


heard = []
while True:
    asked, _ = listener.accept()
    owner = socket.create_connection(("10.78.0.1", 7000))
    heard.append(bytearray())
    for way in ((asked, owner, heard[-1]), (owner, asked, None)):
        threading.Thread(target=carry, args=way, daemon=True).start()
"""
    peer = """
import sys, hawser
agent = hawser.Agent("honest", backends={"tcp": {"connections": "1"}})
peer = agent.find_peer("owner@10.78.0.2:7100#" + sys.argv[1], timeout=10)
mine = agent.empty(4096, "uint8", name="mine")
agent.read(peer, peer.range("m", 0, 4096), mine).wait(10)
print("ready", flush=True)
"""
    between = start_python(peer_host, relay, str(folder))
    first_line(between)
    honest = start_python(peer_host, peer, (folder / "ticket").read_text())
    first_line(honest)
    honest.communicate(timeout=PATIENCE)
    stop(between)
    assert os.path.getsize(f"{folder}/said") > 500


def record_a_first_datagram(peer_host, folder):
    """What a peer with the ticket sends first over QUIC."""
    listener = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
    listener.bind(("10.78.0.2", 7200))
    listener.settimeout(10)
    print("ready", flush=True)
    first = listener.recv(2000)
with open(sys.argv[1] + "/first", "wb") as file:
    file.write(first)
"""
    peer = """
import sys, hawser
with hawser.Agent("honest", backends=["quic"]) as agent:
    try:
        agent.find_peer("owner@10.78.0.2:7200#" + sys.argv[1], timeout=1)
    except hawser.Error:
        pass
"""
    hears = start_python(peer_host, listener, str(folder))
    first_line(hears)
    honest = start_python(peer_host, peer, (folder / "ticket").read_text())
    said, errors = hears.communicate(timeout=PATIENCE)
    assert hears.returncode == 0, said + errors
    honest.communicate(timeout=PATIENCE)
    assert os.path.getsize(f"{folder}/first") >= 1200


def stranger(host, name, folder, **environment):
    return start(host, *ORDINARY, sys.executable, "-c", STRANGER_CODE, name, str(SECONDS + 0.3), str(folder), **environment)


def owner_on(host, folder, **environment):
    return start_python(host, OWNER_CODE, str(folder), HAWSER_LISTEN="10.78.0.1:7000", HAWSER_LOG="info", **environment)


def test_a_peer_is_served_while_its_owner_is_attacked(hosts, tmp_path, record_property):  # noqa: F811
    far = hosts[1]
    processes = []
    try:
        owner = owner_on(hosts[0], tmp_path)
        processes.append(owner)
        (tmp_path / "ticket").write_text(first_line(owner)[1])
        other = start_python(far, OWNER_CODE.replace('"/card"', '"/other"'), str(tmp_path))
        processes.append(other)
        (tmp_path / "other-ticket").write_text(first_line(other)[1])
        stop(processes.pop())
        record_a_session(far, tmp_path)
        record_a_first_datagram(far, tmp_path)
        innocents = [Innocent(far, backend, str(tmp_path / "card")) for backend in ("tcp", "quic")]
        processes += [each.process for each in innocents]
        for each in innocents:
            first_line(each.process)
        siege = Siege(owner, innocents)
        for name in STRANGERS:
            siege.attack(name, lambda: stranger(far, name, tmp_path))
        for name in PEERS:
            siege.attack(name, lambda: start(far, *ORDINARY, ATTACKER, str(tmp_path / "card"), name, str(SECONDS + 0.3)))
        record_property("attacks", siege.table())
        print("\n" + siege.table())
    finally:
        stop(*processes)
    log = owner.stderr.read()
    assert "10.78.0.2" in log, "the log says who was refused: " + log[-2000:]


def test_a_peer_is_served_while_others_show_bad_identities(hosts, tmp_path, record_property):  # noqa: F811
    far = hosts[1]

    def ca(folder, *arguments):
        done = subprocess.run([HAWSER, "ca", *arguments, "--folder", str(tmp_path / folder), "--json"], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def issue(folder, name, out, *more):
        ca(folder, "issue", name, "--out", str(tmp_path / out), *more)
        return {"HAWSER_IDENTITY": str(tmp_path / out)}

    ca("ours", "init", "example.org")
    ca("theirs", "init", "example.org")
    known = issue("ours", "owner", "id-owner")
    innocent = issue("ours", "innocent-tcp", "id-innocent")
    attacks = {"no identity": {},
               "another authority": issue("theirs", "stranger", "id-theirs"),
               # Its own agent takes it for the stranger's.
               "another name": {**issue("ours", "somebody", "id-name"),
                                "HAWSER_IDENTITY_NAMES": "spiffe://example.org/somebody=stranger"},
               "revoked": issue("ours", "stranger", "id-revoked")}
    ca("ours", "revoke", "stranger")
    for folder in ("id-owner", "id-innocent"):
        (tmp_path / folder / "ca.crl").write_bytes((tmp_path / "ours" / "ca.crl").read_bytes())
    processes = []
    try:
        owner = owner_on(hosts[0], tmp_path, **known, HAWSER_IDENTITY_LOOK="100ms")
        processes.append(owner)
        first_line(owner)
        innocents = [Innocent(far, "tcp", "owner@10.78.0.1:7000", **innocent)]
        processes.append(innocents[0].process)
        first_line(innocents[0].process)
        siege = Siege(owner, innocents)
        for name, environment in attacks.items():
            siege.attack(name, lambda: stranger(far, "identity", tmp_path, **environment))
        record_property("attacks", siege.table())
        print("\n" + siege.table())
    finally:
        stop(*processes)
    log = owner.stderr.read()
    assert "10.78.0.2" in log and "revoked" in log, log[-3000:]
