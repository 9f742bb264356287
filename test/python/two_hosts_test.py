"""Two hosts, with no variable of security set, and somebody who listens on the cable between them. See two_hosts.py."""

import subprocess
import sys

import pytest

from two_hosts import hosts, start_python  # noqa: F401 (a fixture)

from conftest import SCALE

SECRET = "what nobody else may read "

NIXL_CLIENT = """
import ctypes, os, sys, time
from nixl._api import nixl_agent, nixl_agent_config

role, folder, secret = sys.argv[1:]
other = {"prefill": "decode", "decode": "prefill"}[role]
secret = secret.encode() * 4096
memory = (ctypes.c_char * len(secret))()
address = ctypes.addressof(memory)
agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
agent.register_memory([(address, len(secret), 0, "")], "DRAM")
with open(f"{folder}/{role}.part", "wb") as card:
    card.write(agent.get_agent_metadata() + b"|" + str(address).encode())
os.rename(f"{folder}/{role}.part", f"{folder}/{role}")
while not os.path.exists(f"{folder}/{other}"):
    time.sleep(0.02)
metadata, _, there = open(f"{folder}/{other}", "rb").read().rpartition(b"|")
if role == "prefill":
    name = agent.add_remote_agent(metadata)
    memory[:] = secret
    request = agent.initialize_xfer("WRITE", agent.get_xfer_descs([(address, len(secret), 0)], "DRAM"),
                                    agent.get_xfer_descs([(int(there), len(secret), 0)], "DRAM"), name, b"written")
    state = agent.transfer(request)
    while state == "PROC":
        state = agent.check_xfer_state(request)
    print(state)
    while not os.path.exists(f"{folder}/over"):
        time.sleep(0.02)
else:
    while not (notifications := agent.get_new_notifs()):
        time.sleep(0.001)
    print(notifications, memory[:] == secret)
    open(f"{folder}/over", "w").close()
"""

RANK = """
import os, sys
import numpy, hawser

with hawser.World.open() as world:
    secret = sys.argv[3].encode() * 4096
    sent = numpy.frombuffer(secret, dtype=numpy.uint8) if world.rank == 0 else numpy.zeros(len(secret), numpy.uint8)
    got = sent.copy()
    world.broadcast(got, root=0)
    print(world.rank, bytes(got) == secret)
"""

# Copies all frames of the cable until its input ends, and tells whether a text was among the bytes.
LISTENER = """
import select, socket, sys
text = sys.argv[1].encode()
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
cable.bind(("cable", 0))
print("listening", flush=True)
frames, found = 0, False
while True:
    ready, _, _ = select.select([cable, sys.stdin], [], [])
    if cable in ready:
        frames += 1
        found = text in cable.recv(1 << 17) or found
    elif sys.stdin in ready:
        break
print(frames, found, flush=True)
"""


def run_both(hosts, starts, text=SECRET * 4):
    """What each of two processes printed, once both ended well, and what the listener saw: frames, and whether `text` was there.
    `starts`: what starts it on a host."""
    listener = subprocess.Popen(["ip", "netns", "exec", hosts[0], sys.executable, "-c", LISTENER, text],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert listener.stdout.readline() == "listening\n"
    processes = [begin(host) for host, begin in zip(hosts, starts)]
    try:
        said = []
        for process in processes:
            out, err = process.communicate(timeout=60 * SCALE)
            assert process.returncode == 0, f"{process.args[-4:]}: {out}\n{err}"
            said.append(out.splitlines()[-1])
        listener.stdin.close()
        frames, found = listener.stdout.readline().split()
        return said, int(frames), found == "True"
    finally:
        for process in (*processes, listener):
            process.kill()
            process.wait()


@pytest.mark.parametrize("security", [None, "none"])
def test_clients_of_nixl_are_encrypted_with_no_variable_set(hosts, tmp_path, security):
    environment = {} if security is None else {"HAWSER_SECURITY": security}
    starts = [lambda host, role=role: start_python(host, NIXL_CLIENT, role, str(tmp_path), SECRET, **environment)
              for role in ("prefill", "decode")]
    said, frames, is_clear = run_both(hosts, starts)
    assert said == ["DONE", "{'prefill': [b'written']} True"]
    assert frames > 5 and is_clear == (security == "none")


def test_ranks_of_two_hosts_form_a_world_encrypted(hosts, tmp_path):
    variables = {"HAWSER_WORLD_LOCAL_RANK": "0", "HAWSER_WORLD_SIZE": "2", "HAWSER_DIRECTORY": f"file:{tmp_path}"}
    starts = [lambda host, rank=rank: start_python(host, RANK, "rank", str(tmp_path), SECRET, HAWSER_WORLD_RANK=str(rank),
                                                   **variables) for rank in range(2)]
    said, frames, is_clear = run_both(hosts, starts)
    assert said == ["0 True", "1 True"]
    assert frames > 5 and not is_clear
