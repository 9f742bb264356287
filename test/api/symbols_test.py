#!/usr/bin/env python3
"""What a shared library exports, and as what it is known.

usage: symbols_test.py hawser LIBRARY HEADERS SONAME   HEADERS: with commas between them
       symbols_test.py nixl LIBRARY LIST SONAME      LIST: what the original exports, one name a line
       symbols_test.py client LIBRARY LIST COUNT     LIST: the COUNT names that a client looks up, one a line
"""

import re
import subprocess
import sys


def exported(library: str) -> set:
    out = subprocess.run(["nm", "-D", "--defined-only", "-f", "posix", library], check=True, capture_output=True, text=True)
    return {line.split()[0].split("@")[0] for line in out.stdout.splitlines()}


def soname(library: str) -> str:
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    found = re.search(r"\(SONAME\).*\[(.*)\]", out.stdout)
    return found.group(1) if found else ""


def needed(library: str) -> list:
    """Libraries of hardware vendors and of frameworks are opened at run time, where they are: none is linked."""
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", out.stdout)
    faults = [f"{library} needs {name}" for name in names if re.search(r"ibverbs|rdmacm|efa|mlx|cuda|torch|uc[pst]\.", name)]
    return faults if names else [f"{library} seems to need no library at all"]


def same(what: str, got: set, wanted: set) -> list:
    faults = [f"{what}: {name} is not exported" for name in sorted(wanted - got)]
    return faults + [f"{what}: {name} should not be exported" for name in sorted(got - wanted)]


def check_hawser(library: str, headers: str, name: str) -> list:
    declared: set = set()
    for header in headers.split(","):
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"^HAWSER_C_API[^;(]*?\b(hawser_\w+)\(", file.read(), re.MULTILINE))
    symbols = exported(library)
    c_symbols = {symbol for symbol in symbols if not symbol.startswith("_Z")}
    faults = same("C ABI", c_symbols, declared)
    if len(declared) < 140:
        faults.append(f"only {len(declared)} functions were found in {headers}")
    # The C++ door: everything of namespace hawser::v0, and nothing else.
    door = re.compile(r"_Z(?:T[VIS])?N?[KVRO]*(?:6hawser2v0|N6hawser2v0|NK6hawser2v0)|_ZT[VISH]+N?6hawser2v0")
    faults += [f"C++: {symbol} should not be exported" for symbol in sorted(symbols - c_symbols) if not door.match(symbol)]
    if soname(library) != name:
        faults.append(f"SONAME is {soname(library)!r}, not {name!r}")
    return faults + needed(library)


def check_nixl(library: str, names: str, name: str) -> list:
    with open(names, encoding="utf-8") as file:
        wanted = set(file.read().split())
    faults = same("NIXL", exported(library), wanted | {"nixl_capi_mem_free"})
    if len(wanted) != 104:
        faults.append(f"{names} holds {len(wanted)} names, not 104")
    if soname(library) != name:
        faults.append(f"SONAME is {soname(library)!r}, not {name!r}")
    return faults + needed(library)


def check_client(library: str, names: str, count: str) -> list:
    """A client built for an older library finds all that it looks up."""
    with open(names, encoding="utf-8") as file:
        wanted = set(file.read().split())
    faults = [f"client: {name} is not exported" for name in sorted(wanted - exported(library))]
    return faults + ([f"{names} holds {len(wanted)} names, not {count}"] if len(wanted) != int(count) else [])


def main(arguments: list) -> int:
    checks = {"hawser": check_hawser, "nixl": check_nixl, "client": check_client}
    if len(arguments) != 4 or arguments[0] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    faults = checks[arguments[0]](*arguments[1:])
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
