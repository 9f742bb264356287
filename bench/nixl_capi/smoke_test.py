#!/usr/bin/env python3
"""nixl_capi_bench, run for a moment: all rows give figures and verified bytes, and what goes wrong is told.

usage: smoke_test.py BENCH LIBNIXL_CAPI LIBHAWSER ROWS
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60


def bench_command(program, *arguments):
    return [program, "--arena", "32M", "--seconds", "0.005", "--repeat", "1", *arguments]


def check(condition, text):
    if not condition:
        sys.exit(f"smoke_test: {text}")


def check_rows(program, library, rows):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run(
            bench_command(program, "--lib", f"one={library}", "--lib", f"other={library}", "--env",
                          "one:NIXL_LOG_LEVEL=WARN", "--rows", rows, "--json", str(report)),
            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        check(done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}")
        figures = json.loads(report.read_text())["rows"]
    listed = subprocess.run([program, "--list", "--rows", rows], capture_output=True, text=True, check=True)
    check([row["id"] for row in figures] == listed.stdout.split(), "the report has other rows than --list")
    for row in figures:
        check(f"| `{row['id']}` |" in done.stdout, f"{row['id']} is not in the table")
        for name in ("one", "other"):
            one = row["libraries"][name]
            check(one["value"] > 0 and one["p99"] >= one["p50"] > 0, f"{row['id']}: {one}")
        check(row["libraries"]["one"]["verdict"] in ("ahead", "level", "behind"), f"{row['id']}: no verdict")


def check_refusals(program, library, hawser):
    for path, text in ((hawser, "has no function nixl_capi_"), ("/nowhere/libnixl_capi.so", "cannot open")):
        done = subprocess.run(bench_command(program, "--lib", f"bad={path}", "--rows", r"shm\.write\.8"),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        said = re.search(r"bad, row shm\.write\.8: .*" + re.escape(text), done.stderr)
        check(done.returncode == 1 and said, f"{path}: status {done.returncode}\n{done.stderr}")
    for rows, status, text in (("no_such_row", 2, "no row matches"), ("shm.write.1000x64k", 1, "do not fit")):
        done = subprocess.run(bench_command(program, "--lib", f"own={library}", "--rows", rows),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        check(done.returncode == status and text in done.stderr, f"{rows}: {done.returncode} {done.stderr}")


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return sorted(found)


def check_death(program, library, which):
    """A worker that dies is an error that names library, row and process."""
    bench = subprocess.Popen(
        [program, "--arena", "32M", "--seconds", "30", "--repeat", "1", "--no-ceilings", "--lib", f"own={library}",
         "--rows", r"shm\.write\.8"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        bench.stderr.readline()  # The first round begins.
        end = time.monotonic() + PATIENCE_S
        workers = []
        while len(workers) < 2 and time.monotonic() < end:
            workers = children_of(bench.pid)
        check(len(workers) == 2, f"workers: {workers}")
        os.kill(workers[which], signal.SIGKILL)
        said = bench.communicate(timeout=PATIENCE_S)[1]
    finally:
        bench.kill()
        bench.wait()
    name = ("target", "initiator")[which]
    check(re.search(rf"own, row shm\.write\.8: the {name} process: .*it died by signal 9", said), f"{name}: {said}")
    check(bench.returncode == 1, f"status {bench.returncode}")


def main():
    program, library, hawser, rows = sys.argv[1:]
    check_rows(program, library, rows)
    check_refusals(program, library, hawser)
    for which in (0, 1):
        check_death(program, library, which)
    print("ok")


if __name__ == "__main__":
    main()
