"""Files beside fio, and `hawser cp` over loopback beside the slowest of what it is made of.

usage: file_bench.py [--folder DIR] [--rounds N] [--seconds S] [--only TEXT] [--cp-bytes N] [--json]

Run it on a quiet machine with fio installed:
    ./dev build && python3 bench/file_bench.py
Each row runs fio (io_uring, as many operations in flight as the backend's default) and Hawser by turns on the same file
and prints the medians and the median of the rounds' ratios. cp copies a file of --cp-bytes from a `hawser serve --dir`
of this host into the same folder; its parts are a raw socket stream, and fio's read and write of as many bytes.
"""

import argparse
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

DEPTH = 128
FILE_BYTES = 1 << 30
PATIENCE = 60  # Seconds, for what takes one.
ROWS = [(f"file.{order}.{way}.{label}.{cache}", way, block, order, cache)
        for label, block, order, cache in (("1m", 1 << 20, "sequential", "direct"), ("64k", 64 << 10, "random", "direct"),
                                           ("4k", 4 << 10, "random", "direct"), ("1m", 1 << 20, "sequential", "cached"))
        for way in ("read", "write")]


def fio_rate(path, way, size, block, order, cache, seconds):
    """GB/s; without `seconds` of one pass over the file."""
    name = {"sequential": "", "random": "rand"}[order] + way
    command = ["fio", "--name=bench", f"--filename={path}", f"--rw={name}", f"--bs={block}", f"--size={size}",
               f"--iodepth={DEPTH}", "--ioengine=io_uring", f"--direct={int(cache == 'direct')}", "--invalidate=0",
               "--output-format=json", *(["--time_based", f"--runtime={seconds}"] if seconds else [])]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    return json.loads(out[out.index("{"):])["jobs"][0][way]["bw_bytes"] / 1e9


def hawser_rate(program, path, way, size, block, order, cache, seconds):
    out = subprocess.run([program, path, way, str(size), str(block), order, cache, str(seconds)], check=True,
                         capture_output=True, text=True, timeout=600)
    return float(out.stdout)


def fill(path, size):
    """Of noise: devices and file systems may be clever about zeros."""
    block = secrets.token_bytes(1 << 20)
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def file_rows(options, folder):
    path = folder / "bench.file"
    fill(path, FILE_BYTES)
    for row, way, block, order, cache in ROWS:
        if options.only not in row:
            continue
        job = (way, FILE_BYTES, block, order, cache, options.seconds)
        pairs = [(fio_rate(path, *job), hawser_rate(options.programs / "file_bench", path, *job))
                 for _ in range(options.rounds)]
        yield row, pairs
    path.unlink()


def socket_rate(size):
    """A stream of `size` bytes between two threads over loopback; both spend their time in the kernel."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)

    def drain():
        stream, _ = listener.accept()
        stream.settimeout(PATIENCE)
        buffer = bytearray(1 << 20)
        while stream.recv_into(buffer):
            pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    data = bytes(1 << 20)
    begin = time.perf_counter()
    with socket.create_connection(listener.getsockname(), PATIENCE) as stream:
        for _ in range(size >> 20):
            stream.sendall(data)
    reader.join(PATIENCE)
    if reader.is_alive():
        sys.exit("file_bench: the reader of the raw socket does not end")
    listener.close()
    return size / (time.perf_counter() - begin) / 1e9


def cp_rate(program, address, source, copy, size):
    begin = time.perf_counter()
    subprocess.run([program, "cp", f"{address}:{source.name}", copy], check=True, capture_output=True, timeout=600)
    return size / (time.perf_counter() - begin) / 1e9


def address_of(server):
    """Where it listens, as its lines tell. They end when it does."""
    overdue = threading.Timer(PATIENCE, server.kill)
    overdue.start()
    try:
        for line in server.stdout:
            if found := re.search(r"127\.0\.0\.1:\d+", line):
                return found[0]
    finally:
        overdue.cancel()
    sys.exit("file_bench: hawser serve did not say where it listens")


def cp_rows(options, folder):
    if options.only not in "cp":
        return
    size, source, copy = options.cp_bytes, folder / "source", folder / "copy"
    fill(source, size)
    program = options.programs / "hawser"
    server = subprocess.Popen([program, "serve", "--dir", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                              text=True)
    try:
        address = address_of(server)
        parts = []
        pairs = []
        for _ in range(options.rounds):
            job = (size, 1 << 20, "sequential", "direct", None)
            part = {"socket": socket_rate(size), "read": fio_rate(source, "read", *job)}
            copy.unlink(missing_ok=True)
            rate = cp_rate(program, address, source, copy, size)
            copy.unlink()
            part["write"] = fio_rate(copy, "write", *job)  # Into a new file, as cp.
            parts.append(part)
            pairs.append((min(part.values()), rate))
        yield "cp", pairs
        for name in parts[0]:
            print(f"  cp's part {name}: {statistics.median(one[name] for one in parts):.3f} GB/s", file=sys.stderr)
    finally:
        server.terminate()
        server.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--folder", default="/var/tmp", help="on the device to measure")
    parser.add_argument("--programs", type=pathlib.Path, default=root / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each way in each round")
    parser.add_argument("--only", default="", help="rows whose names hold this")
    parser.add_argument("--cp-bytes", type=int, default=4 << 30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not shutil.which("fio"):
        sys.exit("file_bench: there is no fio here: apt-get install fio")
    for name in ("file_bench", "hawser"):
        if not (options.programs / name).exists():
            sys.exit(f"file_bench: {options.programs / name} is not there: ./dev build, or name --programs")
    found = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="hawser-bench-") as name:
        for rows in (file_rows, cp_rows):
            for row, pairs in rows(options, pathlib.Path(name)):
                base, ours = (statistics.median(values) for values in zip(*pairs))
                ratio = statistics.median(b / a for a, b in pairs)
                found.append({"row": row, "base": base, "hawser": ours, "ratio": ratio})
                if not options.json:
                    print(f"{row:32} {base:8.3f} {ours:8.3f} GB/s {ratio:6.2f}", flush=True)
    if options.json:
        json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
