"""Worlds of ranks that have nothing in common but a token, on two hosts, by documented commands alone. See two_hosts.py."""

import base64
import os
import re
import subprocess
import sys

import pytest

from two_hosts import hosts, start, start_python  # noqa: F401 (hosts is a fixture)

from conftest import SCALE, eventually

HAWSER = os.path.join(os.environ["TEST_BUILD"], "bin", "hawser")
PATIENCE = 60 * SCALE
SEED = "10.78.0.1:7100"

# Stands for ssh: the host's name is its namespace. As ssh does, one line goes to a shell there.
SHELL = """#!/bin/sh
host=$1; shift
echo "$host $*" >> "$(dirname "$0")/called"
cd / && exec env -i PATH="$PATH" ip netns exec "$host" unshare -m sh -c "mount -t tmpfs run /run; $*"
"""

RANK = """
import os, sys
import hawser, numpy

with hawser.World.open(timeout=60) as world:
    x = numpy.full(1000, world.rank + 1.0)
    world.all_reduce(x)
    print("sum", x[0], "of", world.size, "on", world.host_of(world.rank))
    if "--show" in sys.argv:
        for name in ("cmdline", "environ"):
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as listing, open(f"{sys.argv[2]}/seen", "ab") as seen:
                        seen.write(listing.read())
                except OSError:
                    pass
        with open(os.environ["HAWSER_TOKEN_FILE"]) as token, open(f"{sys.argv[2]}/token{world.rank}", "w") as copy:
            copy.write(token.read())
    world.barrier()
"""


@pytest.fixture
def far_shell(tmp_path):
    shell = tmp_path / "ssh"
    shell.write_text(SHELL)
    shell.chmod(0o755)
    return shell


def make_token(path):
    path.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    path.chmod(0o600)
    return path


def run_on_both(hosts, tmp_path, far_shell, *arguments, **environment):  # noqa: F811
    """`hawser run` on the first host, with one rank there and one on the other."""
    (tmp_path / "rank.py").write_text(f"import sys\nsys.path[:0] = {sys.path!r}\n" + RANK)
    # Its own /proc stays, as on a real host: the far shell enters the other namespace from here.
    command = ["ip", "netns", "exec", hosts[0], HAWSER, "run", "--ssh", str(far_shell), "--hosts", f"localhost:1,{hosts[1]}:1",
               "--address", "10.78.0.1", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE, env=kept | environment)


SUMS = [f"[{rank}] sum 3.0 of 2 on {rank}" for rank in range(2)]


def test_a_run_makes_its_own_token_and_shows_it_to_nobody(hosts, tmp_path, far_shell):  # noqa: F811
    done = run_on_both(hosts, tmp_path, far_shell, sys.executable, "rank.py", "--show", str(tmp_path), HAWSER_LOG="debug")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == SUMS
    tokens = {(tmp_path / f"token{rank}").read_text() for rank in range(2)}
    assert len(tokens) == 1
    token = tokens.pop()
    assert len(token) == 43
    seen = (tmp_path / "seen").read_bytes()
    assert b"HAWSER_SEED=seed@10.78.0.1:" in seen and b"run-rank" in seen, "the listings were read"
    assert not re.search(rb"HAWSER_SEED=[^\0]*#", seen), "a ticket is in an environment"
    for text in (seen, done.stderr.encode(), done.stdout.encode(), (tmp_path / "called").read_bytes()):
        assert token.encode() not in text
    again = run_on_both(hosts, tmp_path, far_shell, sys.executable, "rank.py", "--show", str(tmp_path))
    assert again.returncode == 0 and (tmp_path / "token0").read_text() != token, "each run has its own"


def test_a_run_takes_a_token_that_is_given(hosts, tmp_path, far_shell):  # noqa: F811
    token = make_token(tmp_path / "job.token")
    done = run_on_both(hosts, tmp_path, far_shell, "--token-file", str(token), sys.executable, "rank.py", "--show", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "token1").read_text() == token.read_text().strip()
    token.chmod(0o640)
    assert "chmod 600" in run_on_both(hosts, tmp_path, far_shell, "--token-file", str(token), "true").stderr
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    short = run_on_both(hosts, tmp_path, far_shell, "--token-file", str(token), "true")
    assert short.returncode == 11 and "16 characters; it needs 22" in short.stderr
    both = run_on_both(hosts, tmp_path, far_shell, "--token-file", str(token), "--directory", str(tmp_path), "true")
    assert both.returncode == 11 and "--token-file" in both.stderr


def test_at_the_level_none_there_is_no_token(hosts, tmp_path, far_shell):  # noqa: F811
    done = run_on_both(hosts, tmp_path, far_shell, sys.executable, "rank.py", HAWSER_SECURITY="none")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == SUMS
    token = make_token(tmp_path / "job.token")
    asked = run_on_both(hosts, tmp_path, far_shell, "--token-file", str(token), "true", HAWSER_SECURITY="none")
    assert asked.returncode == 11 and "nobody proves anything" in asked.stderr


def test_a_run_has_the_identity_of_its_ranks(hosts, tmp_path, far_shell):  # noqa: F811
    authority = ["--folder", str(tmp_path / "ca")]
    subprocess.run([HAWSER, "ca", "init", "example.org", *authority], check=True, capture_output=True)
    subprocess.run([HAWSER, "ca", "issue", "job", "--san", "world.*", "--out", str(tmp_path / "job"), *authority], check=True,
                   capture_output=True)
    done = run_on_both(hosts, tmp_path, far_shell, sys.executable, "rank.py", HAWSER_IDENTITY=str(tmp_path / "job"))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == SUMS


def test_without_gnutls_the_package_is_named(hosts, tmp_path, far_shell):  # noqa: F811
    """On the host of the seed, and on that of a rank alone."""
    hidden = "for each in $(ldconfig -p | sed -n 's/.*libgnutls.so.30.*=> //p'); do mount --bind /dev/null $each; done; "
    without = tmp_path / "without"
    without.write_text(f"#!/bin/sh\n{hidden}exec {HAWSER} \"$@\"\n")
    without.chmod(0o755)
    far = run_on_both(hosts, tmp_path, far_shell, "--remote-hawser", str(without), sys.executable, "rank.py")
    assert far.returncode != 0 and "libgnutls30" in far.stderr, far.stderr
    assert "does not have the token" not in far.stderr, "it was not asked"
    command = ["ip", "netns", "exec", hosts[0], "unshare", "-m", str(without), "run", "--ssh", str(far_shell), "--hosts", hosts[1],
               "-n", "1", "true"]
    near = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert near.returncode != 0 and "libgnutls30" in near.stderr, near.stderr


# ---- The seed by itself, and those who should not be there.

OPEN = """
import sys
import hawser

try:
    world = hawser.World.open(size=int(sys.argv[2]), rank=int(sys.argv[1]), seed=sys.argv[3], token_file=sys.argv[4] or None,
                              timeout=float(sys.argv[5]))
    world.barrier()
    print("in", flush=True)
    world.shutdown()
except hawser.Error as error:
    print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


@pytest.fixture
def seed(hosts, tmp_path):  # noqa: F811
    token = make_token(tmp_path / "job.token")
    process = start(hosts[0], HAWSER, "seed", "--listen", SEED, "--token-file", str(token))
    assert process.stdout.readline() == f"for each rank: HAWSER_SEED=seed@{SEED} HAWSER_TOKEN_FILE={token}\n"
    process.token = token
    yield process
    process.kill()
    process.wait()


def open_rank(host, rank, size, token, join=30):
    return start_python(host, OPEN, str(rank), str(size), SEED, str(token), str(join))


def said(process):
    out, err = process.communicate(timeout=PATIENCE)
    return out + err


def test_a_stranger_learns_and_changes_nothing(hosts, seed, tmp_path):  # noqa: F811
    """No token, another token, and noise, between the first rank and the second: the world forms."""
    other = make_token(tmp_path / "other.token")
    first = open_rank(hosts[0], 0, 2, seed.token)
    strangers = [open_rank(hosts[1], 1, 2, other, join=5), open_rank(hosts[1], 1, 2, "", join=5)]
    noise = start_python(hosts[1], NOISE)
    wrong, none = [said(process) for process in strangers]
    assert wrong.startswith("DeniedError") and "does not have the token of this rank" in wrong, wrong
    assert "cannot be reached" in none, none
    assert said(noise) == "100\n"
    second = open_rank(hosts[1], 1, 2, seed.token)
    assert said(first).startswith("in\n") and said(second).startswith("in\n")
    assert seed.poll() is None


NOISE = """
import os, socket, time

sent = 0
for size in (0, 1, 16, 4096, 65536):
    for _ in range(20):
        try:
            with socket.create_connection(("10.78.0.1", 7100), timeout=2) as cable:
                cable.sendall(os.urandom(size))
        except OSError:  # The seed may have closed before all of it was sent.
            pass
        sent += 1
print(sent)
"""


def test_a_rank_that_claims_anothers_number_is_refused(hosts, seed):  # noqa: F811
    """Of two that say they are rank 1 one is it, and the other is told who has it. The world forms."""
    claimants = [open_rank(hosts[which], 1, 2, seed.token) for which in (1, 0)]
    eventually(lambda: any(process.poll() is not None for process in claimants), 60)
    claimants.sort(key=lambda process: process.poll() is None)
    text = said(claimants[0])
    assert text.startswith("DeniedError"), text
    assert re.search(r"rank 1 of world 'world' is 'seed-client-\S+' here; 'seed-client-\S+' cannot be it, too", text), text
    zero = open_rank(hosts[0], 0, 2, seed.token)
    assert said(zero).startswith("in\n") and said(claimants[1]).startswith("in\n")
