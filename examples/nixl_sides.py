"""Two processes with a pipe between them, for the examples beside this: what engines carry over sockets of their own."""

import multiprocessing
import sys
import time

SECONDS = 60


def wait_until(what):
    """Polls, as engines do once per step."""
    deadline = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.0002)


def receive(pipe):
    if not pipe.poll(SECONDS):
        raise TimeoutError("the other process says nothing")
    return pipe.recv()


def run(first, second):
    """Runs `first(pipe)` in a process of its own and `second(pipe)` here; ends with a status that says how both fared."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=first, args=(there,), daemon=True)
    process.start()
    there.close()
    second(here)
    process.join(SECONDS)
    if process.exitcode != 0:
        sys.exit(f"the other process ended with {process.exitcode}")
    print("done: both sides agree")
