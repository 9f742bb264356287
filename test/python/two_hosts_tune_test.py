"""A cost model of two hosts: `hawser bench coll --tune --hosts`, and a file that is on one host alone. See two_hosts.py."""

import json
import os
import subprocess
import sys

import pytest

from two_hosts import hosts  # noqa: F401 (a fixture)

from conftest import SCALE

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
PATIENCE = 120 * SCALE
FAR = {"far_message_ns", "far_byte_ns"}

# Stands for ssh: see two_tokens_test.py.
SHELL = """#!/bin/sh
host=$1; shift
cd / && exec env -i PATH="$PATH" ip netns exec "$host" unshare -m sh -c "mount -t tmpfs run /run; $*"
"""

RANK = """
import os
import hawser

with hawser.World.open(timeout=60) as world:
    print(os.environ.get("HAWSER_COST_MODEL", "none"), "|", world.cost_model)
"""


def call(hosts, tmp_path, *words, **environment):  # noqa: F811
    """`hawser` on the first host, with ranks there and on the other."""
    shell = tmp_path / "ssh"
    shell.write_text(SHELL)
    shell.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    command = ["ip", "netns", "exec", hosts[0], HAWSER, *words[:words.index("--hosts")], "--ssh", str(shell), "--address",
               "10.78.0.1", *words[words.index("--hosts"):]]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE, env=kept | environment)


@pytest.mark.parametrize("ranks", [1, 2])
def test_messages_between_hosts_are_measured(hosts, tmp_path, ranks):  # noqa: F811
    costs = tmp_path / "costs.toml"
    for rounds in ("3", "9"):  # What a disturbed machine gives may make no sense; then that is said.
        done = call(hosts, tmp_path, "bench", "coll", "--tune", "--json", "--rounds", rounds, "--output", str(costs),
                    "--hosts", f"localhost:{ranks},{hosts[1]}:{ranks}")
        if done.returncode == 0:
            break
        assert done.returncode == 11 and "while the machine is quiet" in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert report["hosts"] == 2 and report["ranks"] == 2 * ranks, report
    tune = report["tune"]
    assert tune["has_between_hosts"] and tune["has_within_host"] == (ranks > 1), tune
    assert FAR <= set(tune["costs"]) and ("message_ns" in tune["costs"]) == (ranks > 1), tune
    assert all(row["far"] for row in report["rows"]) == (ranks == 1), report["rows"]
    assert tune["misfit"]["tuned"] < tune["misfit"]["built_in"], tune
    assert ("[between_hosts]" in costs.read_text()) and ("No [within_host]" in costs.read_text()) == (ranks == 1)


def test_a_file_of_one_host_is_enough(hosts, tmp_path):  # noqa: F811
    (tmp_path / "rank.py").write_text(f"import sys\nsys.path[:0] = {sys.path!r}\n" + RANK)
    (tmp_path / "costs.toml").write_text('schema = "hawser.cost_model/1"\n[between_hosts]\nfar_message_ns = 31000.5\n'
                                         "far_byte_ns = 0.5\n")
    path = str(tmp_path / "costs.toml")
    done = call(hosts, tmp_path, "run", "--hosts", f"localhost:1,{hosts[1]}:1", sys.executable, "rank.py",
                HAWSER_COST_MODEL=path)
    assert done.returncode == 0, done.stderr
    near, far = sorted(done.stdout.splitlines())
    assert near.startswith(f"[0] {path} | told by rank 0: ") and "far_message_ns = 31000.5" in near, near
    assert far.startswith("[1] none | told by rank 0: ") and "far_message_ns = 31000.5" in far, far
