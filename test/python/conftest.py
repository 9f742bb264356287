"""What the tests of the Python packages share."""

import os
import sys
import time

import pytest

SCALE = float(os.environ.get("TEST_TIMEOUT_SCALE", "1"))


def eventually(what, seconds=20.0):
    """Waits until `what()` is true, and gives that."""
    deadline = time.monotonic() + seconds * SCALE
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.001)


@pytest.fixture
def pair():
    """Two agents of this process that know each other, each with 64 KiB under the name "memory"."""
    import hawser

    with hawser.Agent("one") as one, hawser.Agent("two") as two:
        ours = one.empty(65536, "uint8", name="memory")
        theirs = two.empty(65536, "uint8", name="memory")
        one.peer, two.peer = one.add_peer(two.card()), two.add_peer(one.card())
        one.array, two.array = ours, theirs
        yield one, two
        del one.peer, two.peer, one.array, two.array


def python_command(code):
    return [sys.executable, "-c", code]
