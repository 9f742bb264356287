#!/usr/bin/env python3
"""Two hosts, as two network namespaces with a cable between them, and addresses of theirs that lead elsewhere or nowhere.

usage: addresses_test.py PROGRAM twins|by_address|swallowed|interfaces

Each host has a docker0 of one address, made before the cable's interface, as on hosts that run Docker.
"""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
HOSTS = [f"hw{os.getpid()}a", f"hw{os.getpid()}b"]
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("HAWSER_")}, "HAWSER_BACKENDS": "tcp"}
PING = ["--security", "none", "--size", "1MiB", "-c", "3", "--timeout", "10s"]


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def in_host(host, *words):
    return ["ip", "netns", "exec", HOSTS[host], *words]


@contextlib.contextmanager
def two_hosts():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        skip("network namespaces need root and the program ip")
    try:
        for number, host in enumerate(HOSTS):
            try:
                ip("netns", "add", host)
                ip("-n", host, "link", "add", "docker0", "type", "bridge")
            except subprocess.CalledProcessError as error:
                skip(f"no network namespace or bridge may be made here: {error.stderr.decode().strip()}")
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "addr", "add", "172.17.0.1/16", "dev", "docker0")
            ip("-n", host, "link", "set", "docker0", "up")
        ip("link", "add", "cable", "netns", HOSTS[0], "type", "veth", "peer", "name", "cable", "netns", HOSTS[1])
        for number, host in enumerate(HOSTS):
            ip("-n", host, "addr", "add", f"10.50.0.{number + 1}/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], capture_output=True)


@contextlib.contextmanager
def serve(host, name, *more, listen="0.0.0.0:7000", env=None):
    words = [PROGRAM, "serve", "--json", "--name", name, "--size", "1MiB", "--security", "none", "--listen", listen, *more]
    process = subprocess.Popen(in_host(host, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**ENVIRONMENT, **(env or {})})
    try:
        if not select.select([process.stdout], [], [], 30)[0]:
            sys.exit("serve said nothing in 30 s")
        line = process.stdout.readline()
        if not line:
            sys.exit(f"serve ended: {process.communicate()}")
        process.ready = json.loads(line)
        yield process
    finally:
        process.terminate()
        process.errors = process.communicate(timeout=20)[1]


def ping(host, target, *more, expect=0, env=None):
    begun = time.monotonic()
    done = subprocess.run(in_host(host, PROGRAM, "ping", "--json", target, *PING, *more), capture_output=True, text=True,
                          timeout=60, env={**ENVIRONMENT, **(env or {})})
    took = time.monotonic() - begun
    is_expected = done.returncode == expect if expect is not None else done.returncode != 0
    assert is_expected, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout), done.stderr, took


def address_of(server):
    return next(backend["address"] for backend in server.ready["backends"] if backend["name"] == "tcp")


def check(report, log, took, name):
    assert report["peer"] == name and report["lost"] == 0, report
    assert "gone" not in log and "restarted" not in log, log
    print(f"pinged {name} in {took:.2f} s; {[line for line in report['explain'].splitlines() if 'tcp: ' in line]}")


def test_twins():
    """An agent of the other name listens at the same port of the same docker0 address of one's own host."""
    with two_hosts(), tempfile.TemporaryDirectory() as folder:
        with serve(0, "store1", "--directory", folder) as server, serve(1, "store2", "--directory", folder):
            assert "10.50.0.1:7000" in address_of(server), server.ready
            report, log, took = ping(1, "store1", "--directory", folder)
            check(report, log, took, "store1")
            assert "127.0.0.1:7000 (loopback of another host)" in report["explain"], report["explain"]
            # A peer whose only common address is that of both docker0 is not taken for another one.
            ip("-n", HOSTS[1], "link", "set", "cable", "down")
            wrong, log, took = ping(1, "store1", "--directory", folder, expect=None)
            text = json.dumps(wrong["error"])
            assert "another agent answers there, 'store2'" in text and "restarted" not in text, text


def test_by_address():
    with two_hosts(), serve(0, "store1"), serve(1, "store2"):
        check(*ping(1, "store1@10.50.0.1:7000"), "store1")
        check(*ping(0, "store2@10.50.0.2:7000"), "store2")


def test_swallowed():
    """Three networks of the peer into which packets vanish come before the one that carries."""
    with two_hosts(), tempfile.TemporaryDirectory() as folder:
        for k in (1, 2, 3):
            # Veth, not bridges: nothing tells that they are of no use.
            ip("-n", HOSTS[0], "link", "add", f"v{k}", "type", "veth", "peer", "name", f"w{k}")
            ip("-n", HOSTS[0], "addr", "add", f"10.6{k}.0.1/24", "dev", f"v{k}")
            ip("-n", HOSTS[0], "link", "set", f"v{k}", "up")
            # Host 2 is in those networks, too, as it thinks; there its packets go to nobody.
            ip("-n", HOSTS[1], "link", "add", f"v{k}", "type", "veth", "peer", "name", f"w{k}")
            ip("-n", HOSTS[1], "addr", "add", f"10.6{k}.0.2/24", "dev", f"v{k}")
            ip("-n", HOSTS[1], "link", "set", f"v{k}", "up")
            ip("-n", HOSTS[1], "link", "set", f"w{k}", "up")
            ip("-n", HOSTS[1], "neigh", "add", f"10.6{k}.0.1", "lladdr", f"02:00:00:00:00:0{k}", "dev", f"v{k}")
        names = ",".join(["v1", "v2", "v3", "cable"])
        with serve(0, "store1", "--directory", folder, listen=f"{names}:7000") as server:
            assert address_of(server).endswith("10.50.0.1:7000"), server.ready
            report, log, took = ping(1, "store1", "--directory", folder)
            check(report, log, took, "store1")
            waited = re.search(r"10\.63\.0\.1:7000 \(no answer within (\d+) ms\)", report["explain"])
            assert waited and int(waited[1]) < 2000, report["explain"]  # One after the other they cost 3.75 s.


def test_interfaces():
    with two_hosts(), tempfile.TemporaryDirectory() as folder:
        for listen in ("cable:7000", "10.0.0.0/8:7000", "^::/0,^docker0,^lo:7000", "0.0.0.0,^docker0,^127.0.0.0/8:7000"):
            with serve(0, "store1", "--directory", folder, listen=listen) as server:
                assert address_of(server) == "10.50.0.1:7000", (listen, server.ready)
                check(*ping(1, "store1", "--directory", folder), "store1")
        # As a variable, logged with what was left out.
        words = in_host(0, PROGRAM, "serve", "--name", "store1", "--size", "1MiB", "--for", "100ms")
        env = {**ENVIRONMENT, "HAWSER_LISTEN": "0.0.0.0,^docker0:7000", "HAWSER_SECURITY": "none", "HAWSER_LOG": "info"}
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, env=env)
        assert re.search(r"listens at 10.50.0.1:7000, 127.0.0.1:7000; .*left out: 172.17.0.1 \(docker0: \^docker0\)",
                         done.stderr), done.stderr
        env["HAWSER_LISTEN"] = "eth7:7000"
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, env=env)
        assert done.returncode == 11 and "eth7" in done.stderr and "docker0 172.17.0.1/16" in done.stderr, done.stderr


globals()[f"test_{sys.argv[2]}"]()
print("ok")
