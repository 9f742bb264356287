#!/usr/bin/env python3
"""Runs a program beside a real etcd of its own, on free ports and in a temporary folder.

usage: with_etcd.py COMMAND...      the word ENDPOINT in it becomes host:port
"""

import base64
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 60.0
SKIPPED = "etcd is not installed (Debian package etcd-server)"


def program():
    """Its path, or None."""
    return shutil.which("etcd", path="/usr/bin:/usr/local/bin")


def _free_port(number):
    """Below those that the kernel gives to outgoing connections. Another may take it before etcd does."""
    for step in range(12000):
        port = 20000 + (os.getpid() * 7919 + number * 104729 + step) % 12000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")


def _end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def erase(endpoint, key):
    """By its JSON gateway: what another than the publisher may do."""
    body = json.dumps({"key": base64.b64encode(key.encode()).decode()}).encode()
    with urllib.request.urlopen(f"http://{endpoint}/v3/kv/deleterange", body, timeout=PATIENCE) as answer:
        assert int(json.load(answer).get("deleted", 0)) == 1, f"there is no {key}"


class Etcd:
    """A member that is alone in its cluster."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="hawser-etcd-")
        self.process = None
        self.endpoint = ""

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE
        for number in range(1000):
            self._start(number)
            while time.monotonic() < deadline and self.process.poll() is None:
                if self._serves():
                    return self
                time.sleep(0.02)
            self._stop()
            if time.monotonic() >= deadline:
                break
        raise RuntimeError("etcd does not serve: " + self._log_tail())

    def __exit__(self, *_):
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, number):
        self.endpoint = f"127.0.0.1:{_free_port(2 * number)}"
        peer = f"http://127.0.0.1:{_free_port(2 * number + 1)}"
        shutil.rmtree(os.path.join(self.folder, "data"), ignore_errors=True)
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [program(), "--name=one", f"--data-dir={self.folder}/data", f"--listen-client-urls=http://{self.endpoint}",
                 f"--advertise-client-urls=http://{self.endpoint}", f"--listen-peer-urls={peer}",
                 f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=one={peer}", "--logger=zap",
                 "--log-level=warn"], stdout=log, stderr=log, preexec_fn=_end_with_parent)

    def _serves(self):
        try:
            with urllib.request.urlopen(f"http://{self.endpoint}/health", timeout=2) as answer:
                return json.load(answer).get("health") in (True, "true")
        except (OSError, ValueError, urllib.error.URLError):
            return False

    def _stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _log_tail(self):
        with open(os.path.join(self.folder, "log"), "rb") as log:
            return log.read()[-2000:].decode(errors="replace")


def main(command):
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    if program() is None:
        print(f"SKIPPED: {SKIPPED}")
        return 77
    with Etcd() as etcd:
        return subprocess.run([etcd.endpoint if word == "ENDPOINT" else word for word in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
