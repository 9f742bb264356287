"""The backend verbs beside perftest, on two Soft-RoCE devices joined by a cable.

usage: verbs_bench.py [--hawser PROGRAM] [--rounds N] [--bytes SIZE] [--json]

Needs the devices rxe0 (10.77.0.1) and rxe1 (10.77.0.2) and perftest (ib_write_bw, ib_read_bw, ib_write_lat); from a
checkout, in the virtual machine that has both devices:
    ./dev build && tools/rdma-vm/rdma-vm run --timeout 900 -- python3 bench/verbs_bench.py
Each round runs perftest, Hawser and perftest again: `hawser ping` to a `hawser serve`, each with one of the devices.
Bandwidth is that of --bytes (64 MiB) in one transfer; perftest moves as many in messages of 1 MiB. A round in which
perftest's two runs differ by more than 20 % is left out and counted.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PATIENCE = 120  # Seconds, for what takes a few.
MESSAGE = 1 << 20
UNSTEADY = 0.2
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
    # bytes, iterations, peak MiB/s, average MiB/s, message rate
    return last_numbers(perftest(tool, "-s", str(MESSAGE), "-n", str(max(5, size // MESSAGE))))[3] * (1 << 20) / 1e9


def perftest_latency_us():
    # bytes, iterations, min, max, typical, average, ...
    return last_numbers(perftest("ib_write_lat", "-s", "8", "-n", "300"))[4]


def rows_of_perftest(size):
    return {"write": perftest_gb_per_s("ib_write_bw", size), "read": perftest_gb_per_s("ib_read_bw", size),
            "latency": perftest_latency_us()}


def rows_of_hawser(program, cards, size):
    said = subprocess.run([program, "ping", "store", "--directory", cards, "--backend", "verbs", "--size", str(size),
                           "--count", "300", "--timeout", "30s", "--json"], capture_output=True, text=True,
                          timeout=PATIENCE, env=dict(os.environ, HAWSER_BACKEND_VERBS_DEVICES="rxe0"))
    if said.returncode != 0:
        sys.exit(f"hawser ping failed: {said.stderr.strip() or said.stdout.strip()}")
    found = json.loads(said.stdout)
    return {"write": found["bulk"]["write_gb_per_s"], "read": found["bulk"]["read_gb_per_s"],
            "latency": found["small_write_ns"]["p50"] / 1e3}


def measure(program, rounds, size):
    kept, left_out = [], 0
    with tempfile.TemporaryDirectory() as cards:
        server = subprocess.Popen([program, "serve", "--name", "store", "--directory", cards, "--backend", "verbs", "--size",
                                   str(size), "--interval", "0"], stdout=subprocess.DEVNULL,
                                  env=dict(os.environ, HAWSER_BACKEND_VERBS_DEVICES="rxe1"))
        try:
            for _ in range(rounds):
                before = rows_of_perftest(size)
                ours = rows_of_hawser(program, cards, size)
                after = rows_of_perftest(size)
                if any(abs(before[key] - after[key]) > UNSTEADY * max(before[key], after[key]) for key in ("write", "read")):
                    left_out += 1
                    continue
                theirs = {key: (before[key] + after[key]) / 2 for key in before}
                kept.append({key: (ours[key], theirs[key]) for key in ours})
        finally:
            server.terminate()
            server.wait(timeout=PATIENCE)
    return kept, left_out


def report(kept, left_out):
    table = {}
    for key, unit in (("write", "GB/s"), ("read", "GB/s"), ("latency", "us")):
        ratios = [ours / theirs for ours, theirs in (row[key] for row in kept)]
        table[key] = {"unit": unit, "hawser": statistics.median(row[key][0] for row in kept),
                      "perftest": statistics.median(row[key][1] for row in kept), "ratio": statistics.median(ratios),
                      "ratio_min": min(ratios), "ratio_max": max(ratios)}
    return {"rounds": len(kept), "left_out": left_out, "rows": table}


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
    kept, left_out = measure(options.hawser, options.rounds, options.bytes)
    if not kept:
        sys.exit(f"perftest itself varied by more than {UNSTEADY:.0%} in all {left_out} rounds: nothing can be said")
    found = report(kept, left_out)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['rounds']} rounds, {found['left_out']} left out")
    for key, row in found["rows"].items():
        print(f"{key:8} {row['hawser']:9.3f} {row['unit']:5} perftest {row['perftest']:9.3f}   "
              f"ratio {row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})")


if __name__ == "__main__":
    main()
