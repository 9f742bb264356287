"""Identities by an authority, between two hosts, by the command `hawser ca` and its files alone. See two_hosts.py."""

import json
import os
import subprocess
import sys
import time

import pytest

from two_hosts import hosts, start, start_python  # noqa: F401 (a fixture)

from conftest import SCALE, eventually

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "etcd"))
import with_etcd  # noqa: E402

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
ADDRESS = "store@10.78.0.1:7000"
PATIENCE = 60 * SCALE

# Writes again and again, and tells of the first error.
WRITER = """
import os, sys, time
import hawser

address, marks = sys.argv[1:]
agent = hawser.Agent("reader")
own = agent.empty(1 << 20, "uint8", name="own")
try:
    peer = agent.find_peer(address, timeout=10)
    peer.connect(timeout=10)
    far = peer.region("memory")
    count = 0
    while not os.path.exists(f"{marks}/end"):
        agent.write(peer, own, far).wait(10)
        count += 1
        if count == 1:
            print(agent.explain(agent.plan_write(peer, own, far)).replace("\\n", " "), flush=True)
            open(f"{marks}/began", "w").close()
        time.sleep(0.02)
    print("wrote", count)
except hawser.Error as error:
    print("error", type(error).__name__, str(error).replace("\\n", " "))
"""


def ca(tmp_path, *arguments):
    done = subprocess.run([HAWSER, "ca", *arguments, "--folder", str(tmp_path / "ca"), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def identities(tmp_path):
    """A function that makes the folder of an identity."""
    ca(tmp_path, "init", "example.org")

    def issue(name, *arguments, out=None):
        out = out or tmp_path / f"id-{name.replace('/', '-')}"
        ca(tmp_path, "issue", name, "--out", str(out), *arguments)
        return str(out)

    return issue


@pytest.fixture
def store(hosts, identities):  # noqa: F811
    """A server on the first host, with an identity, that looks at its files all the time."""
    folder = identities("store")
    process = start(hosts[0], HAWSER, "serve", "--name", "store", "--listen", "10.78.0.1:7000", "--json", "--size", "1MiB",
                    HAWSER_IDENTITY=folder, HAWSER_IDENTITY_LOOK="100ms", HAWSER_LOG="info")
    assert json.loads(process.stdout.readline())["event"] == "ready"
    process.folder = folder
    yield process
    process.kill()
    process.wait()


def log_of(server):
    """What it has logged, once it is over: a signal to end would reach only the program that made its namespaces."""
    server.kill()
    return server.communicate(timeout=PATIENCE)[1]


def ping(host, address=ADDRESS, **environment):
    process = start(host, HAWSER, "ping", address, "--json", "-c", "3", "--timeout", "5s", **environment)
    out, err = process.communicate(timeout=PATIENCE)
    assert out, err
    return process.returncode, json.loads(out)


def test_the_documented_commands_need_neither_card_nor_ticket(hosts, store, identities):  # noqa: F811
    code, said = ping(hosts[1], HAWSER_IDENTITY=identities("reader"))
    assert code == 0, said
    log = log_of(store)
    assert "has proven to be spiffe://example.org/reader until" in log, log
    assert [path["backend"] for path in said["paths"]] == ["tcp"]


def test_others_are_turned_away_and_the_log_says_who(hosts, store, identities, tmp_path):  # noqa: F811
    code, said = ping(hosts[1])
    assert code != 0 and "ticket" in json.dumps(said["error"]), said

    other = tmp_path / "other"
    subprocess.run([HAWSER, "ca", "init", "example.org", "--folder", str(other)], check=True, capture_output=True)
    subprocess.run([HAWSER, "ca", "issue", "reader", "--folder", str(other), "--out", str(tmp_path / "evil")], check=True,
                   capture_output=True)
    code, said = ping(hosts[1], HAWSER_IDENTITY=str(tmp_path / "evil"))
    assert code != 0 and "no authority that is trusted here" in json.dumps(said["error"]), said

    # A key that others of its host may read is not used.
    stolen = identities("thief")
    os.chmod(f"{stolen}/tls.key", 0o644)
    code, said = ping(hosts[1], HAWSER_IDENTITY=stolen)
    assert code != 0 and "chmod 600" in json.dumps(said["error"]), said

    log = log_of(store)
    assert "turned reader/ping" in log, log  # By the name that it claimed; it did not like the server's certificate.


# 300 connections: silent ones, half a TLS record each, and TLS that goes through and shows nothing.
STRANGERS = """
import socket, ssl, sys, time
kept = []
for i in range(300):
    connection = socket.create_connection(("10.78.0.1", 7000), timeout=10)
    if i % 3 == 1:
        connection.sendall(bytes([22, 3, 1, 2, 0, 1, 0]))
    if i % 3 == 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection.setblocking(False)
        wrapped = context.wrap_socket(connection, do_handshake_on_connect=False)
        try:
            wrapped.do_handshake()
        except (OSError, ssl.SSLError):
            pass
        connection = wrapped
    kept.append(connection)
print("connected", flush=True)
sys.stdin.readline()
"""


def test_strangers_take_no_place_from_those_with_an_identity(hosts, store, identities):  # noqa: F811
    folder = identities("reader")
    strangers = start_python(hosts[1], STRANGERS)
    assert strangers.stdout.readline() == "connected\n", strangers.communicate()
    try:
        for _ in range(3):
            code, said = ping(hosts[1], HAWSER_IDENTITY=folder)
            assert code == 0, said
    finally:
        strangers.kill()
        strangers.wait()


def test_a_renewed_certificate_keeps_the_session_and_a_revoked_one_ends_it(hosts, store, identities, tmp_path):  # noqa: F811
    folder = identities("reader", "--ttl", "4s")
    writer = start_python(hosts[1], WRITER, ADDRESS, str(tmp_path), HAWSER_IDENTITY=folder, HAWSER_IDENTITY_LOOK="100ms",
                          PYTHONPATH=os.environ["PYTHONPATH"])
    eventually(lambda: (tmp_path / "began").exists() or writer.poll() is not None)
    ended_at = time.monotonic() + 5
    identities("reader", out=folder)
    while time.monotonic() < ended_at:
        assert writer.poll() is None, writer.communicate()
        time.sleep(0.1)
    ca(tmp_path, "revoke", "reader", "--out", store.folder)
    out, err = writer.communicate(timeout=PATIENCE)
    assert "spiffe://example.org/store" in out.splitlines()[0], out
    last = out.splitlines()[-1]
    assert last.startswith("error"), (out, err)
    log = log_of(store)
    assert "renewed its certificate" in log and "revoked" in log, log


@pytest.fixture
def etcd(hosts, identities):  # noqa: F811
    """On the first host, by TLS, for those with an identity, by the commands of docs/directory.md."""
    if with_etcd.program() is None:
        pytest.skip(with_etcd.SKIPPED)
    folder = identities("etcd", "--san", "localhost")
    process = start(hosts[0], with_etcd.program(), "--client-cert-auth", "--trusted-ca-file", f"{folder}/ca.crt", "--cert-file",
                    f"{folder}/tls.crt", "--key-file", f"{folder}/tls.key", "--listen-client-urls", "https://127.0.0.1:2379",
                    "--advertise-client-urls", "https://localhost:2379", "--data-dir", "/run/etcd", "--log-level", "error")
    yield "etcds://localhost:2379"
    process.kill()
    process.wait()


LOOK = 2  # Seconds; the default is 10, and a revoked peer's session ends within 60 s then.


def test_a_revocation_reaches_agents_by_etcd_and_ends_the_session(hosts, etcd, identities, tmp_path):  # noqa: F811
    """No file is copied. The peer that was not revoked goes on."""
    admin = {"HAWSER_IDENTITY": identities("admin"), "PATH": os.environ["PATH"]}
    command = ["ip", "netns", "exec", hosts[0], HAWSER, "ca", "--folder", str(tmp_path / "ca"), "--directory", etcd]

    def publish(*words):
        return subprocess.run([*command, *words], capture_output=True, text=True, env=admin, timeout=PATIENCE)

    eventually(lambda: publish("publish").returncode == 0)
    store = start(hosts[0], HAWSER, "serve", "--name", "store", "--listen", "10.78.0.1:7000", "--json", "--size", "1MiB",
                  HAWSER_IDENTITY=identities("store"), HAWSER_IDENTITY_LOOK=f"{LOOK}s", HAWSER_DIRECTORY=etcd, HAWSER_LOG="info")
    writers = []
    try:
        assert json.loads(store.stdout.readline())["event"] == "ready"
        for name in ("reader", "other"):
            marks = tmp_path / f"marks-{name}"
            marks.mkdir()
            writers.append(start_python(hosts[1], WRITER.replace('"reader"', f'"{name}"'), ADDRESS, str(marks),
                                        HAWSER_IDENTITY=identities(name), PYTHONPATH=os.environ["PYTHONPATH"]))
            eventually(lambda: (marks / "began").exists() or writers[-1].poll() is not None)
        revoked_at = time.monotonic()
        done = publish("revoke", "reader")
        assert done.returncode == 0, done.stderr
        out, err = writers[0].communicate(timeout=PATIENCE)
        assert time.monotonic() - revoked_at < 60 * LOOK / 10 * SCALE
        assert out.splitlines()[-1].startswith("error"), (out, err)
        assert writers[1].poll() is None, writers[1].communicate()
        (tmp_path / "marks-other" / "end").touch()
        out, err = writers[1].communicate(timeout=PATIENCE)
        assert out.splitlines()[-1].startswith("wrote"), (out, err)
        log = log_of(store)
        assert "of revoked certificates counts now" in log and "its authority has revoked it" in log, log
    finally:
        for process in (store, *writers):
            process.kill()
            process.wait()


def test_a_certificate_that_nobody_renews_ends_the_session(hosts, store, identities, tmp_path):  # noqa: F811
    folder = identities("reader", "--ttl", "4s")
    writer = start_python(hosts[1], WRITER, ADDRESS, str(tmp_path), HAWSER_IDENTITY=folder, HAWSER_IDENTITY_LOOK="100ms",
                          PYTHONPATH=os.environ["PYTHONPATH"])
    out, err = writer.communicate(timeout=PATIENCE)
    assert (tmp_path / "began").exists(), (out, err)
    assert out.splitlines()[-1].startswith("error"), (out, err)
    assert "expired" in log_of(store)


def test_ranks_form_a_world(hosts, identities, tmp_path):  # noqa: F811
    code = """
import hawser
with hawser.World.open() as world:
    world.barrier()
    print(world.rank, "done")
"""
    folder = identities("trainer", "--san", "world.*")
    ranks = [start(host, sys.executable, "-c", code, HAWSER_WORLD_RANK=str(rank), HAWSER_WORLD_LOCAL_RANK="0",
                   HAWSER_WORLD_SIZE="2", HAWSER_DIRECTORY=f"file:{tmp_path}/cards", HAWSER_IDENTITY=folder,
                   PYTHONPATH=os.environ["PYTHONPATH"]) for rank, host in enumerate(hosts)]
    for rank, process in enumerate(ranks):
        out, err = process.communicate(timeout=PATIENCE)
        assert out.splitlines()[-1:] == [f"{rank} done"], (out, err)


# NIXL's two-process example: the initiator fetches the target's metadata from its listen thread.
NIXL_CLIENT = """
import ctypes, os, sys, time
from nixl._api import nixl_agent, nixl_agent_config

role, folder = sys.argv[1:]
memory = (ctypes.c_char * 65536)()
address = ctypes.addressof(memory)
agent = nixl_agent(role, nixl_agent_config(enable_listen_thread=True, listen_port=5555, backends=["UCX"]))
agent.register_memory([(address, len(memory), 0, "")], "DRAM")
if role == "decode":
    with open(f"{folder}/part", "w") as place:
        place.write(str(address))
    os.rename(f"{folder}/part", f"{folder}/place")
    while not agent.check_remote_metadata("prefill") and not os.path.exists(f"{folder}/over"):
        time.sleep(0.02)
    while not (told := agent.get_new_notifs()) and not os.path.exists(f"{folder}/over"):
        time.sleep(0.001)
    print(told, set(bytes(memory)))
else:
    while not os.path.exists(f"{folder}/place"):
        time.sleep(0.02)
    there = int(open(f"{folder}/place").read())
    agent.fetch_remote_metadata("decode", "10.78.0.1", 5555)
    agent.send_local_metadata("10.78.0.1", 5555)
    until = time.monotonic() + 10
    while not agent.check_remote_metadata("decode") and time.monotonic() < until:
        time.sleep(0.02)
    if agent.check_remote_metadata("decode"):
        memory[:] = b"k" * len(memory)
        request = agent.initialize_xfer("WRITE", agent.get_xfer_descs([(address, len(memory), 0)], "DRAM"),
                                        agent.get_xfer_descs([(there, len(memory), 0)], "DRAM"), "decode", b"written")
        state = agent.transfer(request)
        while state == "PROC":
            state = agent.check_xfer_state(request)
        print(state)
    else:
        print("nothing was fetched")
        open(f"{folder}/over", "w").close()
"""


def run_nixl(hosts, tmp_path, folders):  # noqa: F811
    """What the target and the initiator said, each on its output and in its log."""
    clients = [start_python(host, NIXL_CLIENT, role, str(tmp_path), HAWSER_IDENTITY=folder, PYTHONPATH=os.environ["PYTHONPATH"])
               for host, role, folder in zip(hosts, ("decode", "prefill"), folders)]
    return [client.communicate(timeout=PATIENCE) for client in reversed(clients)][::-1]


def test_clients_of_nixl_fetch_metadata_by_address(hosts, identities, tmp_path):  # noqa: F811
    target, initiator = run_nixl(hosts, tmp_path, (identities("decode"), identities("prefill")))
    assert initiator[0].splitlines()[-1:] == ["DONE"], (target, initiator)
    assert target[0].splitlines()[-1:] == ["{'prefill': [b'written']} {107}"], (target, initiator)


def test_a_client_of_nixl_with_another_authority_gets_no_metadata(hosts, identities, tmp_path):  # noqa: F811
    folder = identities("decode")
    (tmp_path / "ca").rename(tmp_path / "first")
    ca(tmp_path, "init", "example.org")
    target, initiator = run_nixl(hosts, tmp_path, (folder, identities("prefill")))
    assert initiator[0].splitlines()[-1:] == ["nothing was fetched"], (target, initiator)
    assert "10.78.0.2" in target[1] and "was refused" in target[1], target
    assert "refused" in initiator[1], initiator
