"""The backend verbs beside perftest, on two Soft-RoCE devices joined by a cable.

usage: verbs_bench.py [--hawser PROGRAM] [--rounds N] [--bytes SIZE] [--json]

Needs the devices rxe0 (10.77.0.1) and rxe1 (10.77.0.2) and perftest (ib_write_bw, ib_read_bw, ib_write_lat); from a
checkout, in the virtual machine that has both devices:
    ./dev build && tools/rdma-vm/rdma-vm run --timeout 900 -- python3 bench/verbs_bench.py
Each round runs perftest, Hawser and perftest again; Hawser's figures are those of the rows verbs.write, verbs.read and
verbs.put_lat8 of `hawser bench`. perftest moves --bytes (a power of two, 4 KiB to 64 MiB) in messages of 1 MiB at most, at
least 16 MiB in all. Both latencies are half of a round trip of 8 bytes that the other side sees in its memory. A round in
which perftest's two runs differ by more than 20 % is left out and counted, for bandwidth and for latency apart. Each round
is told on stderr as it ends, so a run that is cut short still has its figures.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

PATIENCE = 120  # Seconds, for what takes a few.
MESSAGE, LEAST = 1 << 20, 16 << 20
UNSTEADY = 0.2
FIGURES = {"write": "GB/s", "read": "GB/s", "latency": "us"}
SERVER = "10.77.0.2"


def perftest(tool, *arguments):
    """Standard output of the client; the server is on rxe1."""
    options = ["-F", "-x", "1", *arguments]
    server = subprocess.Popen([tool, "-d", "rxe1", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            time.sleep(0.1)
            done = subprocess.run([tool, "-d", "rxe0", *options, SERVER], capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode == 0:
                return done.stdout
        sys.exit(f"{tool} failed: {done.stderr.strip() or done.stdout.strip()}")
    finally:
        server.kill()
        server.wait()


def last_numbers(text):
    return [float(number) for number in re.findall(r"[\d.]+", text.strip().splitlines()[-2])]


def perftest_gb_per_s(tool, size):
    message = min(size, MESSAGE)
    count = max(size, LEAST) // message
    # bytes, iterations, peak MiB/s, average MiB/s, message rate
    return last_numbers(perftest(tool, "-s", str(message), "-n", str(count)))[3] * (1 << 20) / 1e9


def perftest_latency_us():
    # bytes, iterations, min, max, typical, average, ...
    return last_numbers(perftest("ib_write_lat", "-s", "8", "-n", "300"))[4]


def rows_of_perftest(size):
    return {"write": perftest_gb_per_s("ib_write_bw", size), "read": perftest_gb_per_s("ib_read_bw", size),
            "latency": perftest_latency_us()}


def rows_of_hawser(program, size):
    suffix = f"{size >> 20}m" if size >= 1 << 20 else f"{size >> 10}k"
    ids = {"write": f"verbs.write.{suffix}", "read": f"verbs.read.{suffix}", "latency": "verbs.put_lat8"}
    said = subprocess.run([program, "bench", "--row", ",".join(ids.values()), "--rounds", "3", "--json"],
                          capture_output=True, text=True, timeout=PATIENCE)
    if said.returncode != 0:
        sys.exit(f"hawser bench failed: {said.stderr.strip() or said.stdout.strip()}")
    rows = {row["id"]: row for row in json.loads(said.stdout)["rows"]}
    return {"write": rows[ids["write"]]["value"], "read": rows[ids["read"]]["value"],
            "latency": rows[ids["latency"]]["value"] / 1e3}


def tell_round(number, before, ours, after):
    figures = (f"{key} {ours[key]:.3f} ({before[key]:.3f}, {after[key]:.3f})" for key in FIGURES)
    print(f"round {number}, Hawser (perftest before, after): {'; '.join(figures)}", file=sys.stderr, flush=True)


def measure(program, rounds, size):
    """Per figure: the rounds that count, ours and theirs, and how many do not."""
    kept, left_out = {key: [] for key in FIGURES}, {key: 0 for key in FIGURES}
    for number in range(1, rounds + 1):
        before = rows_of_perftest(size)
        ours = rows_of_hawser(program, size)
        after = rows_of_perftest(size)
        tell_round(number, before, ours, after)
        for key in FIGURES:
            if abs(before[key] - after[key]) > UNSTEADY * max(before[key], after[key]):
                left_out[key] += 1
            else:
                kept[key].append((ours[key], (before[key] + after[key]) / 2))
    return kept, left_out


def report(kept, left_out):
    table = {}
    for key, unit in FIGURES.items():
        row = table[key] = {"unit": unit, "rounds": len(kept[key]), "left_out": left_out[key]}
        if not kept[key]:
            continue
        ratios = [ours / theirs for ours, theirs in kept[key]]
        row.update(hawser=statistics.median(ours for ours, _ in kept[key]),
                   perftest=statistics.median(theirs for _, theirs in kept[key]), ratio=statistics.median(ratios),
                   ratio_min=min(ratios), ratio_max=max(ratios))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--hawser", default=str(root / "build/release/bin/hawser"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for tool in (options.hawser, "ib_write_bw", "ib_read_bw", "ib_write_lat"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is missing: ./dev build makes hawser, the Debian package perftest brings the others")
    for device in ("rxe0", "rxe1"):
        if not pathlib.Path("/sys/class/infiniband", device).exists():
            sys.exit(f"there is no device {device}: run this in tools/rdma-vm")
    table = report(*measure(options.hawser, options.rounds, options.bytes))
    if options.json:
        print(json.dumps(table))
        return
    for key, row in table.items():
        counts = f"{row['rounds']} rounds, {row['left_out']} left out"
        if row["rounds"] == 0:
            print(f"{key:8} perftest itself varied by more than {UNSTEADY:.0%}: nothing can be said ({counts})")
            continue
        print(f"{key:8} {row['hawser']:9.3f} {row['unit']:5} perftest {row['perftest']:9.3f}   "
              f"ratio {row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f}); {counts}")


if __name__ == "__main__":
    main()
