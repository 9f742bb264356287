"""`hawser demo --host` between two hosts, encrypted, by its documented command. See two_hosts.py."""

import json
import os
import subprocess

import pytest

from two_hosts import hosts  # noqa: F401 (a fixture)

from conftest import SCALE
from quic_test import WHY_NOT

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
SMALL = ["--layers", "4", "--kv-heads", "2", "--head-dim", "64", "--requests", "6", "--prompt-tokens", "32-256",
         "--memory", "64MiB", "--passes", "1"]
PATIENCE = 60 * SCALE


@pytest.fixture
def way(tmp_path):
    """What stands for ssh: it takes a host and a line for the shell there."""
    script = tmp_path / "way"
    script.write_text('#!/bin/sh\nexec ip netns exec "$1" sh -c "$2"\n')
    script.chmod(0o755)
    return str(script)


def demo(hosts, *more, expect=0, **variables):  # noqa: F811
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    done = subprocess.run(["ip", "netns", "exec", hosts[0], HAWSER, "demo", "--json", "--host", hosts[1], *SMALL, *more],
                          capture_output=True, text=True, timeout=PATIENCE, env=kept | variables)
    assert done.returncode == expect, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("backend", ["tcp", pytest.param("quic", marks=pytest.mark.skipif(WHY_NOT is not None,
                                                                                        reason=WHY_NOT or ""))])
def test_a_cache_moves_to_another_host_encrypted(hosts, way, backend):  # noqa: F811
    told = demo(hosts, "--ssh", way, "--backend", backend, HAWSER_SECURITY="encrypt")
    run, = told["runs"]
    assert run["backend"] == backend and run["verified"]["good"] == run["verified"]["of"] > 0, run
    assert "TLS1.3" in run["explain"] and "10.78.0.2" in run["explain"], run["explain"]


def test_without_a_variable_it_is_tcp_by_tls(hosts, way):  # noqa: F811
    run, = demo(hosts, "--ssh", way)["runs"]
    assert run["backend"] == "tcp" and "TLS1.3" in run["explain"], run


def test_a_way_that_leads_nowhere_is_named(hosts, tmp_path):  # noqa: F811
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("#!/bin/sh\nexit 7\n")
    nowhere.chmod(0o755)
    run, = demo(hosts, "--ssh", str(nowhere), expect=15)["runs"]
    assert "exit code 7" in json.dumps(run), run
    told = demo(hosts, "--ssh", "", expect=11)
    assert "--ssh" in told["error"]["message"], told
