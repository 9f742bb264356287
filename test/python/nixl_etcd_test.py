"""The package nixl beside a real etcd: metadata by NIXL_ETCD_ENDPOINTS; an etcd that is killed, comes back, comes back
empty; publishers that die."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pytest

from conftest import eventually, python_command
from nixl_calls_test import knows, knows_no_more, write
from nixl_test import Side, raises

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "etcd"))
import with_etcd  # noqa: E402

pytestmark = pytest.mark.skipif(with_etcd.program() is None, reason=with_etcd.SKIPPED)


@pytest.fixture
def etcd(monkeypatch):
    with with_etcd.Etcd() as server:
        monkeypatch.setenv("NIXL_ETCD_ENDPOINTS", f"http://{server.endpoint}")
        monkeypatch.setenv("HAWSER_ETCD_LEASE", "2s")
        yield server


def kill(etcd):
    etcd.process.kill()
    etcd.process.wait()


def start(etcd):
    """Again, at the same address and with what lies in its folder."""
    etcd.process = subprocess.Popen(etcd.process.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def writes(one, two, value):
    one.array[:1024] = value
    write(one, two.rows(4096), two.agent.name)
    assert (two.array[4096:5120] == value).all()


def meet(one, two):
    two.agent.send_local_metadata()
    one.agent.fetch_remote_metadata(two.agent.name)
    knows(one, two.agent.name, one.agent.get_xfer_descs(two.rows(4096), "DRAM"))


def at_once(call, *args, **words):
    """NIXL's callers do not wait for etcd."""
    began = time.monotonic()
    call(*args, **words)
    assert time.monotonic() - began < 1


def test_without_an_etcd_it_is_said(monkeypatch):
    monkeypatch.delenv("NIXL_ETCD_ENDPOINTS", raising=False)
    one = Side("one")
    for call in (one.agent.send_local_metadata, one.agent.invalidate_local_metadata,
                 lambda: one.agent.fetch_remote_metadata("two")):
        with raises("nixlInvalidParamError") as caught:
            call()
        assert "NIXL_ETCD_ENDPOINTS" in caught.value.details


def test_sent_fetched_and_invalidated(etcd):
    one, two = Side("one"), Side("two")
    # In either order: a fetch waits a while for the key.
    one.agent.fetch_remote_metadata("two")
    two.agent.send_local_metadata()
    knows(one, "two", one.agent.get_xfer_descs(two.rows(4096), "DRAM"))
    writes(one, two, 3)
    # What is registered later is followed, once it is sent.
    more = numpy.zeros(4096, numpy.uint8)
    two.agent.register_memory([(more.ctypes.data, 4096, 0, "")], "DRAM")
    its = one.agent.get_xfer_descs([(more.ctypes.data, 1024, 0)], "DRAM")
    assert not one.agent.check_remote_metadata("two", its)
    two.agent.send_local_metadata()
    knows(one, "two", its)
    write(one, [(more.ctypes.data, 1024, 0)])
    assert (more[:1024] == 3).all()
    two.agent.invalidate_local_metadata()
    knows_no_more(one, "two")
    with raises("nixlNotFoundError"):
        one.agent.send_notif("two", b"gone")
    # It is followed on.
    two.agent.send_local_metadata()
    knows(one, "two")
    writes(one, two, 4)
    one.agent.remove_remote_agent("two")
    two.agent.send_local_metadata()
    time.sleep(0.3)
    assert not one.agent.check_remote_metadata("two"), "who was removed is not followed any more"


def test_parts_have_labels_and_namespaces_are_apart(etcd, monkeypatch):
    one, two = Side("one"), Side("two")
    more = numpy.zeros(4096, numpy.uint8)
    registered = two.agent.register_memory([(more.ctypes.data, 4096, 0, "")], "DRAM")
    with raises("nixlInvalidParamError"):
        two.agent.send_partial_agent_metadata(registered, True, ["UCX"])
    two.agent.send_partial_agent_metadata(registered, True, ["UCX"], label="more")
    one.agent.fetch_remote_metadata("two", label="more")
    knows(one, "two", one.agent.get_xfer_descs([(more.ctypes.data, 1024, 0)], "DRAM"))
    assert not one.agent.check_remote_metadata("two", one.agent.get_xfer_descs(two.rows(0), "DRAM")), "it was not sent"
    monkeypatch.setenv("NIXL_ETCD_NAMESPACE", "/elsewhere/")
    other = Side("other")
    two.agent.send_local_metadata()
    other.agent.fetch_remote_metadata("two")
    one.agent.fetch_remote_metadata("two")
    knows(one, "two", one.agent.get_xfer_descs(two.rows(0), "DRAM"))
    assert not other.agent.check_remote_metadata("two")


def test_with_a_labels_key_goes_what_it_brought(etcd):
    one, two = Side("one"), Side("two")
    parts = {label: numpy.zeros(4096, numpy.uint8) for label in ("first", "second")}
    for label, array in parts.items():
        registered = two.agent.register_memory([(array.ctypes.data, 4096, 0, "")], "DRAM")
        two.agent.send_partial_agent_metadata(registered, True, ["UCX"], label=label)
        one.agent.fetch_remote_metadata("two", label=label)

    def its(label):
        return one.agent.get_xfer_descs([(parts[label].ctypes.data, 1024, 0)], "DRAM")

    def without(label):
        with_etcd.erase(etcd.endpoint, f"/nixl/agents/two/{label}")
        eventually(lambda: not one.agent.check_remote_metadata("two", its(label)))

    for label in parts:
        knows(one, "two", its(label))
    without("first")
    assert one.agent.check_remote_metadata("two", its("second"))
    one.array[:1024] = 5
    write(one, [(parts["second"].ctypes.data, 1024, 0)])
    assert (parts["second"][:1024] == 5).all()
    without("second")
    assert not one.agent.check_remote_metadata("two"), "nothing of it is left"


@pytest.mark.parametrize("comes_back", ["with_what_it_knew", "empty"])
def test_an_etcd_that_is_killed(etcd, comes_back):
    one, two = Side("one"), Side("two")
    meet(one, two)
    kill(etcd)
    # What is known stays known, and works, however long nobody can be asked: longer than a lease and the second that a
    # key may be away.
    until = time.monotonic() + 4
    for value in range(10, 200):
        writes(one, two, value)
        assert one.agent.check_remote_metadata("two")
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    three = Side("three")
    at_once(three.agent.send_local_metadata)
    at_once(one.agent.fetch_remote_metadata, "three")
    assert not one.agent.check_remote_metadata("three")
    if comes_back == "empty":
        shutil.rmtree(os.path.join(etcd.folder, "data"))
    start(etcd)
    # Who published is published again, and who asked meanwhile can ask again.
    three.agent.send_local_metadata()
    one.agent.fetch_remote_metadata("three")
    knows(one, "three")
    writes(one, three, 201)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert one.agent.check_remote_metadata("two"), "it was there all the time"
        time.sleep(0.05)
    writes(one, two, 202)
    two.agent.invalidate_local_metadata()
    knows_no_more(one, "two")
    assert one.agent.check_remote_metadata("three")


def test_an_etcd_that_hangs_holds_nobody_up(etcd):
    one, two = Side("one"), Side("two")
    meet(one, two)
    etcd.process.send_signal(signal.SIGSTOP)
    try:
        at_once(two.agent.send_local_metadata)
        at_once(one.agent.fetch_remote_metadata, "nobody")
        at_once(two.agent.invalidate_local_metadata)
        writes(one, two, 9)
        began = time.monotonic()
        del two
        assert time.monotonic() - began < 5, "an agent that goes takes its keys along, within a bound"
    finally:
        etcd.process.send_signal(signal.SIGCONT)


PUBLISHER = """
import sys, numpy
from nixl._api import nixl_agent, nixl_agent_config
agent = nixl_agent("worker", nixl_agent_config(enable_prog_thread=True))
array = numpy.zeros(65536, numpy.uint8)
agent.register_memory([(array.ctypes.data, 65536, 0, "")], "DRAM")
agent.send_local_metadata()
print(array.ctypes.data, flush=True)
for line in sys.stdin:
    print(int(array[:1024].sum()), flush=True)
"""


class Publisher:
    """Another process."""

    def __init__(self):
        self.process = subprocess.Popen(python_command(PUBLISHER), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1, env={**os.environ, "NIXL_LOG_LEVEL": "WARN"})
        self.address = int(self.process.stdout.readline())

    def sum(self):
        self.process.stdin.write("sum\n")
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_a_process_that_dies_and_its_successor(etcd):
    one = Side("one")
    for value in (1, 2):  # The second is loaded without being asked for.
        with Publisher() as worker:
            if value == 1:
                one.agent.fetch_remote_metadata("worker")
            its = [(worker.address, 1024, 0)]
            knows(one, "worker", one.agent.get_xfer_descs(its, "DRAM"))
            one.array[:1024] = value
            write(one, its, "worker")
            assert worker.sum() == 1024 * value
        knows_no_more(one, "worker")  # By its socket at once, and its key goes with its lease.
