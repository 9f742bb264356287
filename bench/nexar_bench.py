#!/usr/bin/env python3
"""Times ranks of Hawser over quic beside ranks of nexar 0.2.0, which is QUIC and TLS as well, by turns in one run.

    cargo build --release --manifest-path bench/nexar/Cargo.toml --target-dir build/nexar    # fetches crates; 2 minutes
    python bench/nexar_bench.py --build build/release --ranks 2

Each rank is a process on this host. Hawser has the level `encrypt` and the backend quic alone. nexar goes as it is by default,
with its bulk on a socket with TLS beside QUIC (`nexar`), and with QUIC alone (`nexar_quic`). Every program does what
bench/coll/plan.h says; `stream` is what bench/rank_stream_bench.cc does: messages from rank 0 to rank 1, four under way, time for
each. `open` is the time until World::open, or nexar's bootstrap, returns: all ranks have shaken hands then.

A time is that from when the first rank begins until the last one has ended: after its barrier nexar's ranks begin apart, and what
the last one waits for is there already. A figure is the median over the rounds of p50 and p99 in microseconds; `ratio` is the better nexar's p50 over
Hawser's: above 1 Hawser is ahead. A program of nexar that does not end in --patience seconds is killed, and counts as hung.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
from pathlib import Path

OPS = "open,barrier,pingpong,all_reduce,broadcast"
SIZES = "8,4096,65536,1048576,16777216"
STREAMS = "262144,1048576,16777216"


def rows_of(text: str) -> list[dict]:
    return [json.loads(line[line.index("{"):]) for line in text.splitlines() if '"who"' in line]


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout


def hawser(asked: argparse.Namespace) -> list[dict]:
    environment = {"HAWSER_BACKENDS": "quic", "HAWSER_SECURITY": "encrypt", "COLL_SPAN": "1", **({"COLL_DRIVEN": "1"} if asked.driven else {})}
    command = [str(asked.build / "bin/hawser"), "run", "-n", str(asked.ranks), "--"]
    rows = rows_of(run([*command, str(asked.build / "bin/hawser_coll"), "hawser", str(asked.scale), asked.ops, asked.sizes],
                       environment))
    if asked.ranks != 2 or not asked.streams:
        return rows
    said = run([*command, str(asked.build / "bin/rank_stream_bench"), "3", *asked.streams.split(",")], environment)
    for size, rate, slow in re.findall(r"(\d+) bytes: ([\d.]+) GB/s \(([\d.]+) to", said):
        rows.append({"who": "hawser", "op": "stream", "bytes": int(size), "p50": int(size) / float(rate) / 1e3,
                     "p99": int(size) / float(slow) / 1e3, "wrong": 0})
    return rows


def nexar(asked: argparse.Namespace, name: str, environment: dict[str, str]) -> list[dict]:
    rows = []
    works = [(asked.ops, asked.sizes)]
    if asked.ranks == 2 and asked.streams:
        works.append(("stream", asked.streams))
    for ops, sizes in works:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            seed = f"127.0.0.1:{free.getsockname()[1]}"
        ranks = [subprocess.Popen([asked.nexar, name, str(rank), str(asked.ranks), seed, str(asked.scale), ops, sizes], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment})
                 for rank in range(asked.ranks)]
        try:
            said, errors = ranks[0].communicate(timeout=asked.patience)
            status = [rank.wait(60) for rank in ranks]
            if any(status):
                print(f"{name}, {asked.ranks} ranks, {ops}: exit {status}: {errors.strip()[-500:]}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            for rank in ranks:
                rank.kill()
            said = ranks[0].communicate()[0]
            print(f"{name}, {asked.ranks} ranks, {ops}: did not end in {asked.patience} s, and was killed", file=sys.stderr)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        rows += rows_of(said)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--nexar", type=Path, default=Path("build/nexar/release/nexar-bench"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--driven", action="store_true", help="Hawser by its thread")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=0.2, help="of the number of repetitions")
    parser.add_argument("--patience", type=float, default=300, help="seconds for a run of nexar's")
    parser.add_argument("--ops", default=OPS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--streams", default=STREAMS)
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    asked = parser.parse_args()
    ways = {"hawser": lambda: hawser(asked),
            "nexar": lambda: nexar(asked, "nexar", {}),
            "nexar_quic": lambda: nexar(asked, "nexar_quic", {"NEXAR_ENABLE_TCP_BULK_SIDECAR": "false"})}
    rows: dict[tuple, dict[str, list]] = {}
    for number in range(asked.rounds):
        for way in list(ways) if number % 2 == 0 else list(ways)[::-1]:
            for row in ways[way]():
                rows.setdefault((row["op"], row["bytes"]), {}).setdefault(way, []).append(row)
    report(rows, list(ways), asked)


def report(rows: dict, ways: list[str], asked: argparse.Namespace) -> None:
    found = []
    for (op, size), by_way in rows.items():
        us = {way: {key: round(statistics.median(row[key] for row in got), 1) for key in ("p50", "p99")}
              for way, got in by_way.items()}
        theirs = [us[way]["p50"] for way in us if way != "hawser"]
        ratio = round(min(theirs) / us["hawser"]["p50"], 2) if theirs and "hawser" in us else None
        wrong = {way: sum(row["wrong"] for row in got) for way, got in by_way.items() if any(row["wrong"] for row in got)}
        found.append({"ranks": asked.ranks, "op": op, "bytes": size, "us": us, "ratio": ratio, "wrong": wrong})
    if asked.json:
        for row in found:
            print(json.dumps(row))
        return
    print(f"{asked.ranks} ranks, p50 / p99 in us")
    print(f"{'':12}{'bytes':>10}" + "".join(f"{way:>24}" for way in ways) + f"{'ratio':>8}")
    for row in found:
        cells = "".join(f"{row['us'][way]['p50']:>12.1f} /{row['us'][way]['p99']:>10.1f}" if way in row["us"] else f"{'-':>24}"
                        for way in ways)
        wrong = "".join(f"  {way}: {count:g} elements are wrong" for way, count in row["wrong"].items())
        print(f"{row['op']:12}{row['bytes']:>10}{cells}{row['ratio'] or '':>8}{wrong}")


if __name__ == "__main__":
    main()
