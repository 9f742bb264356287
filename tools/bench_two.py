#!/usr/bin/env python3
"""Compares two builds of `hawser` on this machine, in one run: their benches alternate, so that both meet the same noise.

usage: tools/bench_two.py [--rounds N] [--row ROWS] BEFORE AFTER

BEFORE and AFTER are programs (build/release/bin/hawser). Each round runs `hawser bench --rounds 1 --json --row ROWS` of
one and then of the other; in every second round the other comes first. Each run starts a new copy of its program, which
lies in the same folder: where a file lies in memory moves a row of some hundred nanoseconds by up to 8 %, so one file for
all rounds would compare places and not builds. Prints for each row the median of either, and the
median and the quartiles of the ratios AFTER / BEFORE of single rounds. A ratio whose quartiles have 1 between them is noise.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROWS = ("shm.small.write8,shm.plan1000x8,shm.notify_rtt,shm.write.64k,shm.write.1m,shm.read.64m,shm.scatter.write.1000x4k,"
        "shm.foreign.write.1m,tcp.notify_rtt,tcp.write.1m.c2,tcp.write.64m.c2,tcp.scatter.write.1000x4k,"
        "mixed.rtt_under_bulk.tcp,submit.100k,card.load100k,open.agent,first.write.tcp")
ROUND_SECONDS_MAX = 600


def measure(program: str, rows: str) -> dict:
    """Rows by id: (value, unit). A row that was not measured is left out."""
    with fresh_copy(program) as copy:
        run = run_bench(copy, rows)
    if not run.stdout:
        sys.exit(f"bench_two: {program} bench printed nothing and ended with {run.returncode}")
    found = json.loads(run.stdout)["rows"]
    return {row["id"]: (row["value"], row["unit"]) for row in found if row.get("value")}


@contextlib.contextmanager
def fresh_copy(program: str):
    """Beside the program, so that it finds its libraries, too."""
    handle, path = tempfile.mkstemp(prefix="bench_two.", dir=os.path.dirname(os.path.abspath(program)))
    os.close(handle)
    try:
        shutil.copy(program, path)
        yield path
    finally:
        os.unlink(path)


def run_bench(program: str, rows: str) -> subprocess.CompletedProcess:
    return subprocess.run([program, "bench", "--rounds", "1", "--json", "--row", rows], stdout=subprocess.PIPE,
                          timeout=ROUND_SECONDS_MAX, check=False)


def compare(before: list, after: list) -> list:
    """One line for each row that every round has: id, unit, medians, the ratios' median and quartiles."""
    lines = []
    for row, (_, unit) in before[0].items():
        if not all(row in each for each in before + after):
            continue
        old = [each[row][0] for each in before]
        new = [each[row][0] for each in after]
        ratios = [b / a for a, b in zip(old, new)]
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        lines.append((row, unit, statistics.median(old), statistics.median(new), statistics.median(ratios), low, high))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--row", default=ROWS, help="as for `hawser bench`")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    before, after = [], []
    for number in range(options.rounds):
        sides = [(options.before, before), (options.after, after)]
        for program, into in sides if number % 2 == 0 else reversed(sides):
            into.append(measure(program, options.row))
    print("| row | unit | before | after | after ÷ before | quartiles |\n|---|---|---|---|---|---|")
    for row, unit, old, new, ratio, low, high in compare(before, after):
        print(f"| `{row}` | {unit} | {old:.4g} | {new:.4g} | {ratio:.2f} | {low:.2f} to {high:.2f} |")


if __name__ == "__main__":
    main()
