"""Metrics over HTTP: in a form that Prometheus's own parser takes, and as docs/metrics.md and the dashboard say."""

import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import python_command

DOCS = pathlib.Path(os.environ["TEST_SOURCE"]) / "docs"


def page_at(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.read().decode()


def samples_of(page):
    """{(name, labels): value}; the parser refuses what is no metric."""
    samples = {}
    for family in text_string_to_metric_families(page):
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, "a series is told once"
            samples[key] = sample.value
    return samples


def value(samples, name, **labels):
    return samples[name, frozenset(labels.items())]


AGENTS = """
import sys, hawser
one, two = (hawser.Agent(name, backends=["shm"], settings={"metrics": "127.0.0.1:0", "log": "info"}) for name in ("one", "two"))
ours, theirs = one.empty(65536, "uint8", name="memory"), two.empty(65536, "uint8", name="memory")
peer = one.add_peer(two.card())
for _ in range(3):
    one.plan_write(peer, ours[:1000], peer.range("memory", 0, 1000)).submit(notify=b"x").wait(20)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def served():
    """The page of a process with two agents, of which one has written to the other."""
    child = subprocess.Popen(python_command(AGENTS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "ready"
    told = (re.search(r"http://(\S+)/metrics", line) for line in iter(child.stderr.readline, ""))
    address = next(found[1] for found in told if found)
    try:
        yield address
    finally:
        child.communicate("", timeout=60)


def test_the_page_tells_what_happened(served):
    samples = samples_of(page_at(served))
    assert value(samples, "hawser_agent_bytes_total", agent="one", operation="write") == 3000
    assert value(samples, "hawser_peer_transfers_total", agent="one", peer="two", operation="write") == 3
    assert value(samples, "hawser_agent_notifications_total", agent="two", direction="in") == 3
    assert value(samples, "hawser_paths_up", agent="one", peer="two", backend="shm") == 1
    assert value(samples, "hawser_agent_transfer_seconds_bucket", agent="one", le="+Inf") >= 1
    assert value(samples, "hawser_agent_regions", agent="two") == 1


def test_documents_and_dashboard_name_what_there_is(served):
    page = page_at(served)
    there = set(re.findall(r"^# TYPE (\S+)", page, re.M))
    documented = set(re.findall(r"`(hawser_[a-z_]+)`", (DOCS / "metrics.md").read_text()))
    devices = {name for name in documented if name.startswith("hawser_device_")}
    assert documented - devices == there, "a device's need one"
    drawn = set(re.findall(r"hawser_[a-z_]+", json.dumps(json.loads((DOCS / "hawser-dashboard.json").read_text())["panels"])))
    assert {re.sub(r"_bucket$", "", name) for name in drawn} <= documented
    alerts = set(re.findall(r"hawser_[a-z_]+", re.search(r"## What to alert on(.*?)\n## ", (DOCS / "metrics.md").read_text(), re.S)[1]))
    assert {re.sub(r"_bucket$", "", name) for name in alerts} <= documented


def test_other_pages_are_not_there(served):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{served}/", timeout=10)


NIXL = """
import re, sys
from nixl._api import nixl_agent, nixl_agent_config
import numpy
a, b = (nixl_agent(name, nixl_agent_config(backends=["UCX"])) for name in ("a", "b"))
ours, theirs = numpy.full(4096, 7, "uint8"), numpy.zeros(4096, "uint8")
for agent, memory in ((a, ours), (b, theirs)):
    agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "m")], "DRAM")
a.add_remote_agent(b.get_agent_metadata())
local, remote = ([(memory.ctypes.data, 1000, 0)] for memory in (ours, theirs))
handle = a.initialize_xfer("WRITE", a.get_xfer_descs(local, "DRAM"), a.get_xfer_descs(remote, "DRAM"), "b", b"done")
state = a.transfer(handle)
while state == "PROC":
    state = a.check_xfer_state(handle)
assert state == "DONE", state
print("ready", flush=True)
sys.stdin.read()
"""


def test_nixls_exporter_has_nixls_names():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = dict(os.environ, NIXL_TELEMETRY_ENABLE="y", NIXL_TELEMETRY_EXPORTER="prometheus",
                       NIXL_TELEMETRY_PROMETHEUS_PORT=str(port), NIXL_TELEMETRY_PROMETHEUS_LOCAL="y")
    child = subprocess.Popen(python_command(NIXL), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert any(line.strip() == "ready" for line in iter(child.stdout.readline, ""))  # NIXL's logger writes there, too.
        samples = samples_of(page_at(f"127.0.0.1:{port}"))
    finally:
        child.communicate("", timeout=60)
    named = {(name, dict(labels)["agent_name"]): number for (name, labels), number in samples.items() if "le" not in dict(labels)}
    assert named["agent_tx_bytes_total", "a"] == 1000 and named["agent_tx_bytes_total", "b"] == 0
    assert named["agent_tx_requests_num_total", "a"] == 1 and named["agent_xfer_time_us_count", "a"] == 1
    assert named["agent_memory_registered_total", "b"] == 4096
