"""Collectives of ranks on two hosts, of two each: network namespaces with a cable between them. Each repetition goes by each
of the algorithms in turn. Needs root, `ip` and `unshare`.

    python bench/two_hosts_coll.py build/dev --algorithms "boards in hosts,two levels" --sizes 8,4096
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "python"))
from two_hosts import HOSTS, lay_cable, namespaces  # noqa: E402

# Stands for ssh, and keeps the variables that the benchmark reads.
SHELL = """#!/bin/sh
host=$1; shift
cd / && exec env -i PATH="$PATH" COLL_ALGORITHMS="$COLL_ALGORITHMS" COLL_MAPPED="$COLL_MAPPED" \\
  ip netns exec "$host" unshare -m sh -c "mount -t tmpfs run /run; $*"
"""

# Stands for ssh to MPICH's mpiexec, which knows hosts by their addresses.
MPI_SHELL = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
test "$host" = 10.78.0.2 && name={there} || name={here}
exec ip netns exec $name unshare -m sh -c "mount -t tmpfs shm /dev/shm; $*"
"""


def run_mpich(folder, environment, mpich, here, there, asked):
    """The same by MPICH, over the same cable."""
    program, shell = folder / "mpi_coll", folder / "mpi_ssh"
    subprocess.run([mpich / "bin" / "mpicc", "-O2", "-I", ROOT / "bench/coll", ROOT / "bench/coll/mpi_coll.c", "-o", program],
                   check=True)
    shell.write_text(MPI_SHELL.format(here=HOSTS[0], there=HOSTS[1]))
    shell.chmod(0o755)
    return subprocess.run(
        ["ip", "netns", "exec", HOSTS[0], mpich / "bin" / "mpiexec", "-launcher", "ssh", "-launcher-exec", shell, "-iface",
         "cable", "-n", str(int(here) + int(there)), "-hosts", f"10.78.0.1:{here},10.78.0.2:{there}", program, "MPICH", asked.scale,
         asked.ops, asked.sizes], stdout=subprocess.PIPE, text=True, cwd=folder, env=environment | {"FI_TCP_IFACE": "cable"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a folder of build/")
    parser.add_argument("--algorithms", default="boards in hosts,two levels")
    parser.add_argument("--ops", default="barrier,all_reduce,broadcast")
    parser.add_argument("--sizes", default="8,4096")
    parser.add_argument("--scale", default="1", help="of the number of repetitions")
    parser.add_argument("--ranks", default="2", help="on each host: 2, or 3,1")
    parser.add_argument("--mapped", action="store_true", help="buffers in memory that the ranks of a host map")
    parser.add_argument("--mpich", type=pathlib.Path, help="measures MPICH, too: the folder of a virtual environment with it")
    asked = parser.parse_args()
    here, there = (asked.ranks + "," + asked.ranks).split(",")[:2]
    programs = ROOT / asked.build / "bin"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}
    environment["COLL_ALGORITHMS"] = asked.algorithms
    if asked.mapped:
        environment["COLL_MAPPED"] = "1"
    with tempfile.TemporaryDirectory() as folder, namespaces(HOSTS):
        lay_cable("cable", HOSTS[0], "10.78.0.1/24", HOSTS[1], "10.78.0.2/24")
        shell = pathlib.Path(folder) / "ssh"
        shell.write_text(SHELL)
        shell.chmod(0o755)
        done = subprocess.run(
            ["ip", "netns", "exec", HOSTS[0], programs / "hawser", "run", "--ssh", shell, "--address", "10.78.0.1",
             "--hosts", f"localhost:{here},{HOSTS[1]}:{there}", programs / "hawser_coll", "x", asked.scale,
             asked.ops, asked.sizes], stdout=subprocess.PIPE, text=True, cwd=folder, env=environment)
        lines = done.stdout.splitlines()
        if asked.mpich:
            lines += run_mpich(pathlib.Path(folder), environment, asked.mpich, here, there, asked).stdout.splitlines()
    print(f"{'algorithm':<18}{'operation':<16}{'bytes':>10}{'p50, us':>12}{'p99, us':>12}{'of':>8}")
    for line in lines:
        row = json.loads(line[line.index("{"):])
        print(f"{row['who']:<18}{row['op']:<16}{row['bytes']:>10}{row['p50']:>12.1f}{row['p99']:>12.1f}{row['n']:>8}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
