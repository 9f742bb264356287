"""torch's own tests of torch.distributed, run on Hawser where they say Gloo: those that need no GPU.

usage: torch_c10d.py [--ranks N] [--backend NAME] [TEST...]

Each test runs in a process of its own, and its ranks are forked from that, so torch is loaded once. Exit status: 0 where
no test failed. `--backend gloo` runs the same tests on Gloo, to see what it skips.

What is patched: a group that asks for gloo is made by the backend, and its name is told as gloo. The profiler's events
of Gloo's C++ are not expected.
"""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

PATIENCE = 120  # Seconds for one test.
SKIPPED = 77
# Tests of Gloo itself.
NOT_HERE = {"test_ddp_logging_data_cpu": "compares the backend's name with gloo"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="3")
    parser.add_argument("--backend", default="hawser")
    parser.add_argument("tests", nargs="*")
    return parser.parse_args()


def redirect(module, function, name):
    """Calls of `function` that name gloo name another backend."""
    original = getattr(module, function)

    def swap(value):
        return name if isinstance(value, str) and value.lower() == "gloo" else value

    def call(*args, **kwargs):
        return original(*[swap(each) for each in args], **{key: swap(value) for key, value in kwargs.items()})

    return call


def patch(name):
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d

    import hawser.torch_backend

    hawser.torch_backend.register()
    for function in ("init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration"):
        call = redirect(c10d, function, name)
        setattr(c10d, function, call)
        setattr(dist, function, call)
    told = c10d.get_backend
    c10d.get_backend = dist.get_backend = lambda group=None: "gloo" if told(group) == name else told(group)


def suite():
    import torch.multiprocessing
    from torch.testing._internal.distributed import distributed_test

    distributed_test.PROFILING_SUPPORTED_BACKENDS.clear()
    distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.clear()

    class OnHawser(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return OnHawser


def run_one(case, name, log):
    """In a process of its own. Its exit status: 0, SKIPPED or 1."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        with open(log, "wb") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite([case(name)]))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGALRM


def main():
    options = parse()
    folder = tempfile.mkdtemp(prefix="hawser-c10d-")
    os.environ.update(BACKEND="gloo", WORLD_SIZE=options.ranks, TEMP_DIR=folder)
    if options.backend != "gloo":
        patch(options.backend)
    case = suite()
    names = options.tests or [name for name in sorted(dir(case)) if name.startswith("test_") and not re.search("cuda|nccl|gpu", name.lower())]
    counts = {"passed": 0, "skipped": 0, "failed": 0, "not here": 0}
    for name in names:
        if options.backend != "gloo" and name in NOT_HERE:
            counts["not here"] += 1
            print(f"not here: {name}: {NOT_HERE[name]}", flush=True)
            continue
        log = os.path.join(folder, name)
        status = run_one(case, name, log)
        outcome = "passed" if status == 0 else "skipped" if status == SKIPPED else "failed"
        counts[outcome] += 1
        if outcome == "skipped":
            with open(log, errors="replace") as text:
                reason = re.search(r"skipped (.*)", text.read())
            print(f"skipped: {name}: {reason.group(1) if reason else ''}", flush=True)
        elif outcome == "failed":
            print(f"failed: {name}: {'no end' if status < 0 else status}, see {log}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if not counts["failed"]:
        shutil.rmtree(folder)
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
