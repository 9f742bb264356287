#!/usr/bin/env python3
"""Whoever opens libnixl_capi.so where something is missing or wrong is told so by the loader; nothing aborts.

usage: nixl_loader_test.py LIBNIXL_CAPI LIBHAWSER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Opens it as NIXL's clients do, at once and for themselves, and asks whether it is a stub.
OPEN = """
import ctypes, os, sys
try:
    library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
except OSError as error:
    sys.exit(f"refused: {error}")
library.nixl_capi_is_stub.restype = ctypes.c_bool
print("stub" if library.nixl_capi_is_stub() else "works")
"""


def opened(library, folder):
    """What came of it, in a process of its own: (exit status, its words)."""
    environment = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    environment["LD_LIBRARY_PATH"] = str(folder)
    done = subprocess.run([sys.executable, "-c", OPEN, library], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def another_library():
    """Any one that is not libhawser: the one with libm's symbols."""
    look = "import ctypes; ctypes.CDLL('libm.so.6'); print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in maps.splitlines() if "/libm" in line)


def main(arguments):
    nixl, hawser = (pathlib.Path(word) for word in arguments)
    bare, beside = "libnixl_capi.so", "libhawser.so.0"
    faults = []

    def expect(what, got, status, *words):
        if got[0] != status or not all(word in got[1] for word in words):
            faults.append(f"{what}: {got}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expect("an empty folder", opened(bare, folder), 1, "refused", bare)
        shutil.copy(nixl, folder / bare)
        expect("without libhawser", opened(bare, folder), 1, "refused", beside)
        shutil.copy(another_library(), folder / beside)
        expect("another library as libhawser", opened(bare, folder), 1, "refused", "undefined symbol")
        (folder / beside).unlink()
        shutil.copy(hawser, folder / beside)
        expect("both", opened(bare, folder), 0, "works")
        (folder / bare).write_bytes(b"this is no library\n" * 100)
        expect("a file of text", opened(bare, folder), 1, "refused", "invalid ELF header")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
