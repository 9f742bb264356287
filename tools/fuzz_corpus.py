#!/usr/bin/env python3
"""What fuzzing found, as text: test/fuzz/found/NAME.hex holds one input a line, in hexadecimal.

usage: fuzz_corpus.py run [--seconds N] [NAME...]   fuzzes each target of build/asan (default: all) for N seconds (60)
                                                    and writes down the inputs that together cover what it reached
       fuzz_corpus.py unpack FILE FOLDER            a file for each line, for libFuzzer
       fuzz_corpus.py pack FOLDER FILE              the reverse; equal inputs are kept once

`run` needs `cmake --preset asan` and its targets fuzz_NAME. It ends with `N passed, N failed, N skipped`; an input that
broke a target lies in build/asan as fuzz_NAME_crash-* or -timeout-*, and belongs into test/fuzz/corpus/NAME.
"""

import argparse
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD = SOURCE / "build/asan"
FOUND = SOURCE / "test/fuzz/found"
PATIENCE = 600
"""Seconds that a target may take beside the time that it is given: for the inputs that are there, and to choose."""
LENGTH_MAX = 1024
"""Bytes of an input that is kept: longer ones would make the files large, and seldom reach more."""


def unpack(file, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(file.read_text().split("\n")[:-1], 1):
        try:
            data = bytes.fromhex(line)
        except ValueError:
            raise SystemExit(f"{file}:{number}: this is no hexadecimal input: {line[:40]!r}") from None
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(folder, file):
    inputs = {path.read_bytes() for path in folder.iterdir() if path.is_file()}
    lines = [data.hex() + "\n" for data in sorted(inputs, key=lambda data: (len(data), data))]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))
    return len(lines)


def targets():
    return sorted(path.name.removeprefix("fuzz_") for path in (BUILD / "bin").glob("fuzz_*"))


def ends_well(words, out, patience):
    """Whether it ended with 0 within so many seconds."""
    try:
        return subprocess.run(words, stdout=out, stderr=out, check=False, timeout=patience).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"fuzz_corpus: {words[0].name} did not end within {patience} s", file=sys.stderr)
        return False


def fuzz(name, seconds):
    """Whether all went well. What was found counts either way."""
    program = BUILD / f"bin/fuzz_{name}"
    corpus = [BUILD / f"corpus/{name}", SOURCE / f"test/fuzz/corpus/{name}"]
    corpus[0].mkdir(parents=True, exist_ok=True)
    bounds = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]
    log = BUILD / f"fuzz_{name}.log"
    with log.open("w") as out:
        words = [program, "-error_exitcode=1", *bounds, f"-artifact_prefix={BUILD}/fuzz_{name}_", *corpus]
        is_good = ends_well(words, out, seconds + PATIENCE)
    with tempfile.TemporaryDirectory() as least:
        words = [program, "-set_cover_merge=1", f"-max_len={LENGTH_MAX}", least, *corpus]
        is_chosen = ends_well(words, subprocess.DEVNULL, PATIENCE)
        kept = pack(pathlib.Path(least), FOUND / f"{name}.hex") if is_chosen else "no"  # The old ones stay.
    runs = next((line for line in reversed(log.read_text().splitlines()) if line.startswith("Done ")), "")
    print(f"{name}: {runs or 'FAILED, see ' + str(log)}; {kept} inputs kept", flush=True)
    return is_good and is_chosen


def run(names, seconds):
    names = names or targets()
    missing = [name for name in names if name not in targets()]
    if missing or not names:
        raise SystemExit(f"fuzz_corpus: build the preset asan first: there is no {', '.join(missing) or 'target'} in {BUILD}")
    good = sum(fuzz(name, seconds) for name in names)
    print(f"{good} passed, {len(names) - good} failed, 0 skipped")
    return 0 if good == len(names) else 1


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    long = commands.add_parser("run")
    long.add_argument("--seconds", type=int, default=60)
    long.add_argument("names", nargs="*")
    for name, words_of_it in {"unpack": ("file", "folder"), "pack": ("folder", "file")}.items():
        its = commands.add_parser(name)
        for word in words_of_it:
            its.add_argument(word, type=pathlib.Path)
    asked = parser.parse_args(words)
    if asked.command == "run":
        return run(asked.names, asked.seconds)
    if asked.command == "unpack":
        shutil.rmtree(asked.folder / "unpacked", ignore_errors=True)
        unpack(asked.file, asked.folder / "unpacked")
    else:
        pack(asked.folder, asked.file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
