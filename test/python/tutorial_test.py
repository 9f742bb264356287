"""docs/tutorial.md: every program in it, as it stands there but for its folder and its address."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from conftest import SCALE

SOURCE = pathlib.Path(os.environ.get("TEST_SOURCE", pathlib.Path(__file__).parents[2]))


@pytest.fixture
def programs(tmp_path):
    """In the order of the page: two of one host, two of two hosts, the sender of the failure."""
    text = (SOURCE / "docs" / "tutorial.md").read_text()
    found = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(found) == 5
    return [one.replace("/tmp/hawser-tutorial", str(tmp_path)).replace("deadline=5", f"deadline={30 * SCALE}")
            .replace("timeout=10", f"timeout={60 * SCALE}") for one in found]


def start(program, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    return subprocess.Popen([sys.executable, "-u", "-c", program, *arguments], stdout=subprocess.PIPE, text=True,
                            env=environment)


def said(process):
    try:
        out, _ = process.communicate(timeout=120 * SCALE)
        return process.returncode, out
    finally:
        process.kill()


def test_two_processes_of_one_host(programs):
    receiver = start(programs[0])
    assert receiver.stdout.readline() == "waiting\n"
    code, out = said(start(programs[1]))
    assert code == 0 and out.startswith("write to receiver: 1 MiB")
    assert said(receiver) == (0, "sender b'here it is' [7, 7, 7, 7, 7]\n")


def test_two_hosts(programs):
    """The address is of this host, so that the connection is in clear, and shared memory goes before it."""
    receiver = start(programs[2].replace('"10.0.0.5:7000"', '"127.0.0.1:7000-7999"').replace(
        '"receiver@10.0.0.5:7000#"',
        '"receiver@" + next(one["address"] for one in agent.backends() if one["name"] == "tcp") + "#"'))
    address = receiver.stdout.readline().strip()
    assert re.fullmatch(r"receiver@127\.0\.0\.1:7\d\d\d#[\w-]{64}", address)
    code, out = said(start(programs[3], address))
    assert code == 0 and "tcp" in out
    assert said(receiver) == (0, "sender b'here it is' [7, 7, 7, 7, 7]\n")


def test_a_failure(programs):
    receiver = start(programs[0])
    assert receiver.stdout.readline() == "waiting\n"
    sender = start(programs[4].replace("        while True:", "        print('goes on')\n        while True:"))
    assert sender.stdout.readline() == "goes on\n"
    receiver.send_signal(signal.SIGKILL)
    receiver.wait()
    code, out = said(sender)
    assert code == 0 and out.startswith("DisconnectedError receiver - disconnected: ")
