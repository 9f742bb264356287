"""Whether installed packages work, away from the repository, each in a process of its own.

usage: wheel_check.py [NAME...]      of hawser, nixl; without a name both
"""

import importlib
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


# Clients open it by the name without a number; with a number it must be the same library, not a second one.
OPEN_C_LIBRARY = """
import ctypes
names = "libnixl_capi.so.0", "libnixl_capi.so"
is_stub = [ctypes.CDLL(name).nixl_capi_is_stub for name in names]
assert not is_stub[1]()
assert len({ctypes.cast(one, ctypes.c_void_p).value for one in is_stub}) == 1
"""


def check_hawser(hawser):
    with hawser.Agent("one") as one, hawser.Agent("two") as two:
        ours, theirs = one.empty(4096, "uint8"), two.empty(4096, "uint8", name="memory")
        ours[:] = 7
        peer = one.add_peer(two.card())
        one.write(peer, ours, peer.region("memory")).wait(20)
        assert (theirs == 7).all()
        with tempfile.NamedTemporaryFile() as file:
            region = one.add_file(file, "file")
            one.write(one.self(), ours, one.self().range("file", 0, 4096), durable=True).wait(20)
            assert pathlib.Path(file.name).read_bytes() == bytes(ours)
            region.close()
    folder = pathlib.Path(hawser.__file__).parent
    check_command(hawser.__version__)
    check_quic(hawser, folder)
    check_kernels()
    check_c_client(folder, hawser.__version__)


# By the flags that the package's pkg-config file gives, and by its CMake package where CMake is.
C_PROGRAM = """
#include <hawser/c.h>
#include <stdio.h>
int main(void) { puts(hawser_version()); return 0; }
"""


def check_c_client(folder, version):
    if shutil.which("cc") is None or shutil.which("pkg-config") is None:
        print("no C compiler or no pkg-config here: C programs are not tried")
        return
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hawser"], env=environment, check=True, capture_output=True,
                           text=True).stdout.split()
    with tempfile.TemporaryDirectory() as work:
        program = pathlib.Path(work, "client")
        program.with_suffix(".c").write_text(C_PROGRAM)
        subprocess.run(["cc", program.with_suffix(".c"), "-o", program, *flags], check=True)
        assert subprocess.run([program], check=True, capture_output=True, text=True).stdout == version + "\n"
        if shutil.which("cmake") is None:
            return
        pathlib.Path(work, "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(client LANGUAGES C)\nfind_package(hawser REQUIRED)\n"
            "add_executable(client client.c)\ntarget_link_libraries(client hawser::hawser)\n")
        for words in (["-S", work, "-B", f"{work}/build", f"-DCMAKE_PREFIX_PATH={folder}"], ["--build", f"{work}/build"]):
            subprocess.run(["cmake", *words], check=True, capture_output=True)
        assert subprocess.run([f"{work}/build/client"], check=True, capture_output=True, text=True).stdout == version + "\n"


def check_command(version):
    for command in ([sys.executable, "-m", "hawser"], [str(pathlib.Path(sys.executable).parent / "hawser")]):
        if command[0] != sys.executable and not os.path.exists(command[0]):
            continue  # Laid out, not installed.
        done = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
        assert done.stdout == f"hawser {version}\n", done


# Bytes over QUIC, by the ngtcp2 that the package brings along, or by the system's. Both need the system's GnuTLS.
def check_quic(hawser, folder):
    if not list((folder / "lib").glob("libngtcp2.so.*")):
        print("this package has no ngtcp2: QUIC is not tried")
        return
    try:
        one = hawser.Agent("one", backends=["quic"])
    except hawser.UnsupportedError as error:
        assert "libgnutls" in str(error) and "needs GnuTLS 3.7.2" in str(error), error
        print("there is no GnuTLS of 3.7.2 or later here: QUIC is not tried")
        return
    with one, hawser.Agent("two", backends=["quic"]) as two:
        ours, theirs = one.empty(1 << 20, "uint8"), two.empty(1 << 20, "uint8", name="memory")
        ours[:] = 7
        peer = one.add_peer(two.card())
        one.write(peer, ours, peer.region("memory")).wait(20)
        assert (theirs == 7).all()
    maps = pathlib.Path("/proc/self/maps").read_text()
    print(f"QUIC works by {re.search(r'/[^ ]*libngtcp2[.]so[^ ]*$', maps, re.MULTILINE).group()}")


# A compiler's library that answers "no" for every instruction set would make a wheel that copies slowly and else works.
def check_kernels():
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    if flags is None or "avx2" not in flags.group(1).split():
        print("this processor has no AVX2: the choice of instructions is not tried")
        return
    done = subprocess.run([sys.executable, "-m", "hawser", "bench", "--quick", "--row", "table.bytes1m"], check=True,
                          capture_output=True, text=True)
    assert re.search(r"copies by avx(2|512)\b", done.stdout), done.stdout


def check_nixl(nixl):
    # Not packages_distributions: that of Python 3.10 wants a top_level.txt.
    [version] = {one.version for one in importlib.metadata.distributions()
                 if any(file.parts[0] == "nixl" for file in one.files or [])}
    assert tuple(int(part) for part in version.split(".")[:2]) >= (1, 5), version
    api = importlib.import_module("nixl._api")
    agent = api.nixl_agent("wheel")
    assert "UCX" in agent.get_plugin_list()
    folder = pathlib.Path(nixl.__file__).parent / "lib"
    subprocess.run([sys.executable, "-c", OPEN_C_LIBRARY], env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, check=True)


CHECKS = {"hawser": (check_hawser, "_hawser"), "nixl": (check_nixl, "_bindings")}


def loaded_libraries():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return {line.split(maxsplit=5)[5].strip() for line in maps if "libhawser" in line}


def run(name):
    check, extension = CHECKS[name]
    module = importlib.import_module(name)
    folder = pathlib.Path(module.__file__).parent
    assert (folder / "py.typed").exists() and (folder / f"{extension}.pyi").exists(), sorted(folder.iterdir())
    check(module)
    # The package's own library, not one of the machine or of the build.
    assert {str(pathlib.Path(path).parent) for path in loaded_libraries()} == {str(folder / "lib")}, loaded_libraries()
    print(f"{name} works from {folder}")


def main(names):
    if len(names) == 1:
        run(names[0])
        return 0
    return max(subprocess.run([sys.executable, __file__, name], check=False).returncode for name in names or CHECKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
