#!/usr/bin/env python3
"""The NIXL face beside an etcd: one that serves, one that is away at the start, one that breaks and comes back.

usage: nixl_etcd_test.py PROGRAM serves|away|breaks

PROGRAM is nixl_cases.
"""

import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "etcd"))
import with_etcd  # noqa: E402

PATIENCE = 150


def run(program, *words):
    return subprocess.run([program, *words], check=False, timeout=PATIENCE).returncode


def serves(program):
    with with_etcd.Etcd() as etcd:
        return run(program, "etcd", etcd.endpoint)


def away(program):
    with with_etcd.Etcd() as etcd:
        endpoint = etcd.endpoint
    return run(program, "etcd_away", endpoint)


class Dialogue:
    """The program asks for a state of the world by a line; it is told when it is so."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def awaits(self, word):
        line = self.process.stdout.readline()
        assert line == f"{word}?\n", f"it said {line!r}, not {word!r}; status {self.process.poll()}"

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def breaks(program):
    with with_etcd.Etcd() as etcd, Dialogue(program, "etcd_breaks", etcd.endpoint) as talk:
        talk.awaits("killed")
        etcd.process.kill()
        etcd.process.wait()
        talk.tell("killed")
        talk.awaits("back")
        etcd.process = subprocess.Popen(etcd.process.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        talk.tell("back")
        talk.awaits("gone")
        etcd.process.send_signal(signal.SIGSTOP)  # The worst kind of gone: connections stay, and nobody answers.
        talk.tell("gone")
        status = talk.process.wait(PATIENCE)
        etcd.process.send_signal(signal.SIGCONT)
        return status


def main(arguments):
    cases = {"serves": serves, "away": away, "breaks": breaks}
    if len(arguments) != 2 or arguments[1] not in cases:
        print(__doc__, file=sys.stderr)
        return 2
    if with_etcd.program() is None:
        print(f"SKIPPED: {with_etcd.SKIPPED}")
        return 77
    return cases[arguments[1]](arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
