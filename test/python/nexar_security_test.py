"""Of the list of what an independent implementation of nexar's client has to do (nexar_list_test.py): C28 and the security faults
S1 to S9 that were found in nexar, a test for each by its number. Owner, seed and strangers are on two hosts (two_hosts.py)."""

import base64
import subprocess
import sys
import time

import numpy
import pytest

import hawser

import two_tokens_test as tokens
from attacks_test import first_line, owner_on, resident, stop
from two_hosts import hosts, start_python  # noqa: F401 (a fixture)
from two_tokens_test import far_shell, make_token, open_rank, said, seed  # noqa: F401 (fixtures)

from conftest import SCALE, python_command

SEED = tokens.SEED

# Passes connections to the seed on, and keeps what each side said.
RELAY = """
import socket, sys, threading

listener = socket.create_server(("10.78.0.2", 7200))
print("ready", flush=True)
lock = threading.Lock()


def carry(one, other):
    while bytes_ := one.recv(65536):
        with lock, open(sys.argv[1], "ab") as file:
            file.write(bytes_)
        other.sendall(bytes_)
    other.shutdown(socket.SHUT_WR)


while True:
    asked, _ = listener.accept()
    seed = socket.create_connection(("10.78.0.1", 7100))
    for way in ((asked, seed), (seed, asked)):
        threading.Thread(target=carry, args=way, daemon=True).start()
"""

RANK_AT = """
import sys
import hawser

try:
    with hawser.World.open(size=int(sys.argv[2]), rank=int(sys.argv[1]), seed=sys.argv[3], token_file=sys.argv[4], timeout=30) as world:
        world.barrier()
        print("in")
except hawser.Error as error:
    print(type(error).__name__, error)
"""


def tickets_of(count):
    code = f"import hawser\nfor i in range({count}): print(hawser.Agent(f'a{{i}}', backends=['tcp']).ticket)"
    done = subprocess.run(python_command(code), capture_output=True, text=True, timeout=60 * SCALE, check=True)
    return done.stdout.split()


def test_s1_secrets_differ_between_processes_and_have_no_constant_part():
    tickets = tickets_of(8) + tickets_of(8)
    assert len(set(tickets)) == 16
    secrets = [base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4)) for ticket in tickets]
    changing = [len({secret[i] for secret in secrets}) > 4 for i in range(min(map(len, secrets)))]
    # The key of 32 bytes and the secret of 16; the rest is the ticket's form.
    assert sum(changing) >= 48, changing


def test_s2_the_token_that_a_run_makes_lets_its_ranks_in(hosts, tmp_path, far_shell):  # noqa: F811
    done = tokens.run_on_both(hosts, tmp_path, far_shell, sys.executable, "rank.py", "--show", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == tokens.SUMS
    token = (tmp_path / "token0").read_text()
    assert len(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))) == 32


def test_s3_nobody_between_learns_the_token_or_stands_in_for_the_seed(hosts, seed, tmp_path):  # noqa: F811
    heard = tmp_path / "heard"
    between = start_python(hosts[1], RELAY, str(heard))
    try:
        first_line(between)
        ranks = [start_python(hosts[1], RANK_AT, str(rank), "2", "10.78.0.2:7200", str(seed.token)) for rank in range(2)]
        assert all(said(rank).startswith("in\n") for rank in ranks)
    finally:
        stop(between)
    bytes_, token = heard.read_bytes(), seed.token.read_text().strip()
    assert len(bytes_) > 2000
    secret = base64.b64decode(token)
    for part in (token.encode(), secret, secret.hex().encode(), secret[:12], b"world", b"BEGIN", b"PRIVATE"):
        assert part not in bytes_, part
    # A seed with another token in the seed's place.
    other = make_token(tmp_path / "other.token")
    deceived = start_python(hosts[1], RANK_AT, "0", "2", SEED, str(other))
    text = said(deceived)
    assert text.startswith("DeniedError"), text


def test_s4_wrong_tokens_and_silent_strangers_stop_no_formation(hosts, seed, tmp_path):  # noqa: F811
    silent = start_python(hosts[1], """
import socket, time
held = []
for _ in range(80):
    held.append(socket.create_connection(("10.78.0.1", 7100), timeout=5))
print("ready", flush=True)
time.sleep(60)
""")
    try:
        first_line(silent)
        wrong = [open_rank(hosts[1], 1, 2, make_token(tmp_path / f"{i}.token"), join=5) for i in range(3)]
        began = time.monotonic()
        right = [open_rank(hosts[which], which, 2, seed.token) for which in range(2)]
        assert all(said(rank).startswith("in\n") for rank in right)
        assert time.monotonic() - began < 20 * SCALE
        assert all(said(rank).startswith("DeniedError") for rank in wrong)
        assert seed.poll() is None
    finally:
        stop(silent)


def test_s5_an_admitted_rank_cannot_be_another(hosts, seed):  # noqa: F811
    tokens.test_a_rank_that_claims_anothers_number_is_refused(hosts, seed)


TLS_CLIENT = """
import socket, ssl, sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
if len(sys.argv) > 1:
    context.load_cert_chain(sys.argv[1] + "/tls.crt", sys.argv[1] + "/tls.key")
try:
    with socket.create_connection(("10.78.0.1", 7000), timeout=10) as made, context.wrap_socket(made) as talk:
        talk.sendall(b"HWSR" + bytes(300))
        print("in clear:", talk.recv(100))
except (OSError, ssl.SSLError) as error:
    print("refused:", type(error).__name__)
"""


def test_s6_a_foreign_client_of_tls_is_told_nothing(hosts, tmp_path):  # noqa: F811
    """Without a certificate, with one of another authority; the owner has a card that only its peers have."""
    for step in (("init", "example.org"), ("issue", "stranger", "--out", str(tmp_path / "id"))):
        subprocess.run([tokens.HAWSER, "ca", *step, "--folder", str(tmp_path / "ca")], check=True, capture_output=True)
    owner = owner_on(hosts[0], tmp_path)
    try:
        first_line(owner)
        for more in ((), (str(tmp_path / "id"),)):
            text = said(start_python(hosts[1], TLS_CLIENT, *more))
            assert text.startswith("refused:") or text == "in clear: b''\n", text
        assert owner.poll() is None
    finally:
        stop(owner)


LENGTHS = r"""
import socket, struct, time

held = []
for size in (1018, 65535, 4096, 1018) * 50:
    made = socket.create_connection(("10.78.0.1", 7000), timeout=5)
    made.sendall(b"HWSR" + struct.pack("<H", size) + struct.pack("<Q", 2**62) * 4)
    held.append(made)
    made = socket.create_connection(("10.78.0.1", 7000), timeout=5)
    made.sendall(b"\x16\x03\x01\xff\xff\x01\xff\xff\xff\x03\x03")
    held.append(made)
print("ready", len(held), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("level", ["default", "none"])
def test_s7_a_length_that_a_stranger_says_takes_no_memory(hosts, tmp_path, level):  # noqa: F811
    owner = owner_on(hosts[0], tmp_path, HAWSER_SECURITY=level)
    sayer = None
    try:
        first_line(owner)
        before = resident(owner)
        sayer = start_python(hosts[1], LENGTHS)
        assert first_line(sayer)[1] == "400"
        most = 0
        for _ in range(20):
            most = max(most, resident(owner) - before)
            time.sleep(0.02)
        # 64 connections that have proven nothing, with 64 KiB each.
        assert most < 64 * (64 << 10) + (1 << 20), most
        assert owner.poll() is None
    finally:
        stop(owner, *([sayer] if sayer else []))


def test_s8_typed_calls_stay_within_their_buffers():
    a, b = hawser.World.local(2, timeout=30)
    memory = numpy.full(1024, 7, "uint8")
    small = memory[512:528]
    a.isend(numpy.zeros(64, "float32"), 1, 1)
    with pytest.raises(hawser.InvalidError, match="256 bytes"):
        b.recv(small, 0, 1, timeout=10)
    assert b.recv(numpy.empty(64, "float32"), 0, 1, timeout=10).bytes == 256
    out, x = memory[512:528].view("float32"), numpy.zeros(4, "float32")
    for call in (lambda w: w.all_gather(out, x), lambda w: w.reduce_scatter(out, x), lambda w: w.all_to_all(out, numpy.zeros(3, "float32")),
                 lambda w: w.all_reduce(x, out=memory[:8].view("float32")), lambda w: w.scatter(out, x, 0), lambda w: w.gather(out, x, 0)):
        with pytest.raises(hawser.InvalidError):
            call(a)
    assert (memory == 7).all()
    with pytest.raises((TypeError, hawser.InvalidError, ValueError)):
        b.recv(memory[512:528:2], 0, 1, timeout=0)
    for world in (a, b):
        world.close(10)


def test_s9_a_message_is_of_the_rank_whose_connection_brought_it():
    """There is no field in which a rank could name another one: what it says in its bytes changes nothing."""
    worlds = hawser.World.local(3, backends=["tcp"], timeout=30)
    for rank, world in enumerate(worlds):
        world.register("who", lambda source: source, with_source=True)
        world.isend(b"I am rank 0", (rank + 1) % 3, 5)
    for rank, world in enumerate(worlds):
        before = (rank - 1) % 3
        with pytest.raises(hawser.TimedOutError):
            world.recv(None, (rank + 1) % 3, 5, timeout=0.05)
        got = world.recv(None, None, 5, timeout=10)
        assert (got.source, got.data) == (before, b"I am rank 0")
        assert world.call((rank + 1) % 3, "who", timeout=10) == rank
    for world in worlds:
        world.close(10)


def test_c28_secrets_are_proven_and_never_sent_and_lengths_cost_nothing(hosts, tmp_path):  # noqa: F811
    """The whole of it between agents: a peer with the card comes in, what it says has neither secret nor key in clear, and what it
    said serves nobody again."""
    relay = RELAY.replace("7100", "7000")
    owner = owner_on(hosts[0], tmp_path)
    between = None
    try:
        ticket = first_line(owner)[1]
        heard = tmp_path / "heard"
        between = start_python(hosts[1], relay, str(heard))
        first_line(between)
        peer = """
import sys, hawser
agent = hawser.Agent("peer", backends={"tcp": {"connections": "1"}})
peer = agent.find_peer("owner@10.78.0.2:7200#" + sys.argv[1], timeout=10)
mine = agent.empty(4096, "uint8", name="mine")
agent.read(peer, peer.range("m", 0, 4096), mine).wait(10)
print("read", (mine == 7).all())
"""
        assert said(start_python(hosts[1], peer, ticket)).startswith("read True")
        bytes_ = heard.read_bytes()
        secret = base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4))
        for at in range(0, len(secret) - 12, 4):
            assert secret[at:at + 12] not in bytes_, at
        assert ticket.encode() not in bytes_ and b"\7" * 64 not in bytes_ and b"owner" not in bytes_
        again = f"""
import socket
made = socket.create_connection(("10.78.0.1", 7000), timeout=5)
made.sendall(open({str(heard)!r}, "rb").read()[:4096])
made.settimeout(3)
got = b""
try:
    while more := made.recv(4096):
        got += more
except OSError:
    pass
print(b"owner" in got, b"\\7" * 64 in got)
"""
        assert said(start_python(hosts[1], again)) == "False False\n"
        assert owner.poll() is None
    finally:
        stop(owner, *([between] if between else []))
