#!/usr/bin/env python3
"""Two pods of one node: the same kernel, and network, mount, process and IPC namespaces of their own.

usage: pods_test.py REAL_PEER

Not reachable is not dead: a peer that lives stays known, and the error names the reason of each backend and what to set
on which side. Needs root, `ip` and `unshare`; skipped without them.
"""

import os
import shutil
import subprocess
import sys
import time

PROGRAM = sys.argv[1]
PREFIX = f"hwpod{os.getpid()}"
HERE, THERE = "10.77.0.1", "10.77.0.2"
SUSPECT, DOWN = "2", "3"  # PeerEvent::Kind
PATTERN = (7).to_bytes(1, "little").hex() * 64

# Copies all frames of the cable until its input ends, and tells whether a pattern was among the bytes.
LISTENER = """
import select, socket, sys
pattern = bytes.fromhex(sys.argv[1])
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
cable.bind(("cable", 0))
print("listening", flush=True)
frames, found = 0, "absent"
while True:
    ready, _, _ = select.select([cable, sys.stdin], [], [])
    if cable in ready:
        frames += 1
        found = "found" if pattern in cable.recv(65536) else found
    elif sys.stdin in ready:
        break
print(frames, found, flush=True)
"""


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Pods:
    """Two network namespaces with a cable between them."""

    def __enter__(self):
        if os.geteuid() != 0:
            skip("needs root for namespaces")
        if not shutil.which("ip") or not shutil.which("unshare"):
            skip("needs the programs ip and unshare")
        self.names = [f"{PREFIX}a", f"{PREFIX}b"]
        try:
            for name in self.names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("link", "add", "cable", "netns", self.names[0], "type", "veth", "peer", "name", "cable", "netns",
               self.names[1])
            for name, address in zip(self.names, (HERE, THERE)):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
                ip("-n", name, "link", "set", "cable", "up")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            skip(f"no network namespaces here: {error.stderr.strip()}")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Peer:
    """A real_peer in a pod: what it is told by a line it answers by a line."""

    def __init__(self, pod, options):
        # Folders of its own: those of another pod's sockets are not there.
        script = 'for at in /run /dev/shm /tmp; do mount -t tmpfs pod $at; done; exec "$0"'
        program = os.open(PROGRAM, os.O_RDONLY)  # It may lie below /tmp.
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", pod, "unshare", "-p", "-i", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c",
             script, f"/proc/self/fd/{program}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, pass_fds=[program])
        os.close(program)
        self.ask(f"open {options} driven=1 heartbeat_ms=200 timeout_ms=8000")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline()
        assert answer.startswith("ok"), f"{line!r} was answered {answer!r}"
        return answer[3:].strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def events(self):
        kinds = []
        while (event := self.ask("event")) != "none":
            kinds.append(event.split()[0])
        return kinds


def meet(pods, here_options, there_options):
    here, there = Peer(pods.names[0], f"here {here_options}"), Peer(pods.names[1], f"there {there_options}")
    here.ask("region source 4096 foreign")
    there.ask("region target 4096 foreign")
    here.ask("put source 7")
    name = here.ask("know " + there.ask("card"))
    here.ask(f"plan write source {name} target 4096")
    return here, there


def write(here):
    here.ask("submit deadline_ms=20000")
    return here.ask("wait 25000")


def expect_unreachable(pods, what, here_options, there_options, needed, not_needed=()):
    here, there = meet(pods, here_options, there_options)
    for _ in range(2):
        began = time.monotonic()
        status = write(here)
        assert status.startswith("unsupported"), f"{what}: {status}"
        for part in ("shm: there is no socket", "tcp: ", *needed):
            assert part in status, f"{what}: {part!r} is not in: {status}"
        for part in ("gone", "given up", *not_needed):
            assert part not in status, f"{what}: {part!r} is in: {status}"
        assert time.monotonic() - began < 5, f"{what}: took {time.monotonic() - began:.1f} s"
    assert DOWN not in here.events(), f"{what}: a peer that lives was reported as down"
    here.kill()
    there.kill()


def expect_good(pods, here_options, there_options):
    here, there = meet(pods, here_options, there_options)
    status = write(here)
    assert status == "ok", status
    assert there.ask("see target 7") == "yes"
    here.kill()
    there.kill()


def expect_nothing_in_clear(pods):
    """Who listens on the cable sees the bytes of a write where both say security=none, and nowhere else."""
    for options, is_clear in (("security=none ", True), ("", False), ("security=encrypt ", False)):
        listener = subprocess.Popen(["ip", "netns", "exec", pods.names[0], sys.executable, "-c", LISTENER, PATTERN],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert listener.stdout.readline() == "listening\n"
        expect_good(pods, f"{options}listen={HERE}", f"{options}listen={THERE}")
        listener.stdin.close()
        frames, found = listener.stdout.readline().split()
        listener.wait()
        assert int(frames) > 10, f"{options!r}: only {frames} frames were seen"
        assert (found == "found") == is_clear, f"{options!r}: the bytes were {found} among {frames} frames"
        print(f"{options.strip() or 'default'}: {frames} frames, the bytes were {found}")


def expect_refusals_to_be_believed_slowly(pods):
    """A refused connection from another network namespace proves nothing at once; three heartbeats of them do."""
    here, there = meet(pods, f"security=none listen={HERE}", f"security=none listen={THERE}")
    there.kill()
    began = time.monotonic()
    status = write(here)
    took = time.monotonic() - began
    kinds = here.events()
    assert status.startswith("disconnected") and "refused connections for three heartbeats" in status, status
    assert 0.6 <= took < 4, f"dead after {took:.2f} s of refusals, heartbeats are 0.2 s"
    assert kinds.index(SUSPECT) < kinds.index(DOWN), kinds
    print(f"dead after {took:.2f} s of refusals")
    here.kill()


def main():
    advice = ("HAWSER_LISTEN", "mount the folder")
    with Pods() as pods:
        expect_unreachable(pods, "nothing set", "", "", advice, ("HAWSER_SECURITY",))
        expect_unreachable(pods, "security at both", "security=none", "security=none", advice)
        expect_good(pods, "", f"listen={THERE}")
        expect_nothing_in_clear(pods)
        expect_refusals_to_be_believed_slowly(pods)
    print("ok")


main()
