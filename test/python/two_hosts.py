"""Two hosts for tests: network, mount and process-id namespaces of their own, and a cable between them. Needs root, `ip` and
`unshare`. The addresses are 10.78.0.1 and 10.78.0.2."""

import os
import shutil
import subprocess
import sys

import pytest

PREFIX = f"hwtwo{os.getpid()}"
HOSTS = (f"{PREFIX}a", f"{PREFIX}b")
# Folders of its own: those of the other host's sockets are not there.
ENTER = "mount -t tmpfs run /run; mount -t tmpfs shm /dev/shm; mkdir -p /tmp/hawser-0; " \
        "mount -t tmpfs -o mode=0700 own /tmp/hawser-0; exec \"$@\""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces")
    if not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs the programs ip and unshare")
    try:
        for name in HOSTS:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "cable", "netns", HOSTS[0], "type", "veth", "peer", "name", "cable", "netns", HOSTS[1])
        for name, address in zip(HOSTS, ("10.78.0.1/24", "10.78.0.2/24")):
            ip("-n", name, "addr", "add", address, "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        yield HOSTS
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
    finally:
        for name in HOSTS:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(host, *inner, **environment):
    """A program on a host, with none of this process's variables of Hawser."""
    command = ["ip", "netns", "exec", host, "unshare", "-p", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c", ENTER,
               "sh", *inner]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept | environment)


def start_python(host, code, *arguments, **environment):
    return start(host, sys.executable, "-c", code, *arguments, **environment)
