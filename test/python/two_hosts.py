"""Two hosts for tests: network, mount and process-id namespaces of their own, and a cable between them. Needs root, `ip` and
`unshare`. The addresses are 10.78.0.1 and 10.78.0.2."""

import contextlib
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


def lay_cable(name, one, one_address, other, other_address):
    """A cable of that name between two hosts, with an address at each end."""
    ip("link", "add", name, "netns", one, "type", "veth", "peer", "name", name, "netns", other)
    for host, address in ((one, one_address), (other, other_address)):
        ip("-n", host, "addr", "add", address, "dev", name)
        ip("-n", host, "link", "set", name, "up")


@contextlib.contextmanager
def namespaces(names):
    """Network namespaces without cables, while the block runs. The test is skipped where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces")
    if not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs the programs ip and unshare")
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def hosts():
    with namespaces(HOSTS):
        lay_cable("cable", HOSTS[0], "10.78.0.1/24", HOSTS[1], "10.78.0.2/24")
        yield HOSTS


def start(host, *inner, stdin=subprocess.PIPE, **environment):
    """A program on a host, with none of this process's variables of Hawser."""
    command = ["ip", "netns", "exec", host, "unshare", "-p", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c", ENTER,
               "sh", *inner]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=kept | environment)


def start_python(host, code, *arguments, **environment):
    return start(host, sys.executable, "-c", code, *arguments, **environment)
