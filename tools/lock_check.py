#!/usr/bin/env python3
"""Has clang check the lock annotations of the agent: which thread may touch what, and under which lock.

usage: tools/lock_check.py BUILD_FOLDER

It reads the sources of src/agent without building them, so that it costs a few seconds where only GCC builds. The
presets asan and tsan check the whole tree. First it has clang look at code that breaks the rule: a check that does not
find that finds nothing. Exits with 1 for a fault, with 77 (skipped) where there is no clang++.
"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
AT_ONCE = 40  # Sources read as one: headers are read once for them.

BROKEN = """
#include "agent/lane_access.h"
namespace hawser::agent {
int lanes_own HAWSER_GUARDED_BY(in_lane) = 0;
int outside() { return lanes_own; }
}  // namespace hawser::agent
"""


def check(clang: str, build: pathlib.Path, code: str) -> subprocess.CompletedProcess:
    command = [clang, "-x", "c++", "-std=c++20", "-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety",
               f"-I{ROOT}/src", f"-I{ROOT}/include", f"-I{build}/include", "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=False)


def sources() -> list:
    found = sorted((ROOT / "src/agent").rglob("*.cc"))
    return [path.relative_to(ROOT / "src").as_posix() for path in found if not path.name.endswith("_test.cc")]


def main(arguments: list) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    clang = shutil.which("clang++")
    if clang is None:
        print("lock_check: skipped, there is no clang++ (./dev install-deps)")
        return 77
    build = pathlib.Path(arguments[0]).resolve()
    broken = check(clang, build, BROKEN)
    if broken.returncode == 0 or "requires holding lane 'in_lane'" not in broken.stderr:
        print("lock_check: clang does not find a word of the lane's that is read without its lock:\n" + broken.stderr)
        return 1
    alone = {"agent/driver.cc", "agent/library_backends.cc"}  # hawser_compile_alone
    together = [path for path in sources() if path not in alone]
    batches = [together[at:at + AT_ONCE] for at in range(0, len(together), AT_ONCE)] + [[path] for path in sorted(alone)]
    faults = 0
    for batch in batches:
        looked = check(clang, build, "".join(f'#include "{path}"\n' for path in batch))
        faults += looked.returncode != 0
        print(looked.stderr, end="")
    print(f"lock_check: {sum(map(len, batches))} files, {'faults in ' + str(faults) + ' batches' if faults else 'no fault'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
