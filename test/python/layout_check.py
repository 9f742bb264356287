"""Lays a build out as its wheels would be, without building again, and checks what is there.

Each wheel is made by its own build backend, but for what CMake builds: that is installed over it from the build, by the
components that its pyproject.toml names.

usage: layout_check.py SOURCE BUILD
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile

# With the tags of a real wheel, and the wheel without its binaries.
MAKE = """
import pathlib, sys
import scikit_build_core.build as build
out = pathlib.Path(sys.argv[1])
(out / "tags").mkdir()
build.prepare_metadata_for_build_wheel(str(out / "tags"))
build.build_wheel(str(out), {"wheel.cmake": "false", "wheel.py-api": "", "wheel.platlib": "true"})
"""


def run(*command, cwd="/"):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def lay_out(project, build, root):
    """One wheel's files in `root`; gives the tags that it would have."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        run(sys.executable, "-c", MAKE, out, cwd=project)
        [wheel] = out.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(root)
        [tags] = out.glob("tags/*.dist-info/WHEEL")
        tags = re.findall(r"^Tag: (\S+)$", tags.read_text(), re.MULTILINE)
    with open(project / "pyproject.toml", "rb") as file:
        components = tomllib.load(file)["tool"]["scikit-build"]["install"]["components"]
    for component in components:
        run("cmake", "--install", build, "--component", component, "--prefix", root)
    return tags


def check_metadata(root, name, least):
    [metadata] = root.glob("*.dist-info")
    fields = dict(line.split(": ", 1) for line in (metadata / "METADATA").read_text().split("\n\n")[0].splitlines())
    assert fields["Name"] == name and "Requires-Python" in fields, fields
    assert tuple(int(part) for part in fields["Version"].split(".")[:2]) >= least, fields["Version"]


def check_tags(tags):
    # From Python 3.12 on there is one wheel for all, on the stable interface.
    wanted = "cp312-abi3-" if sys.version_info >= (3, 12) else f"cp{sys.version_info[0]}{sys.version_info[1]}-cp"
    assert tags and all(tag.startswith(wanted) for tag in tags), tags


def check_libraries(root, wanted):
    libraries = {path.name: path for path in root.rglob("*.so*")}
    assert all(any(name.startswith(one) for name in libraries) for one in wanted), (sorted(libraries), wanted)
    for name, path in libraries.items():
        dynamic = run("readelf", "-d", path).stdout
        paths = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic)
        assert all(one.startswith("$ORIGIN") for entry in paths for one in entry.split(":")), (name, paths)
        needs_it = "libhawser.so" in dynamic and not name.startswith("libhawser")
        assert paths or not needs_it, f"{name} cannot find libhawser.so"


def check(project, build, name, least, module, libraries):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        check_tags(lay_out(project, build, root))
        check_metadata(root, name, least)
        check_libraries(root, libraries)
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "wheel_check.py"), module], cwd="/",
                              env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        print(f"{name}: {done.stdout.strip()}")


def main(source, build):
    for module in ("scikit_build_core", "numpy"):
        if importlib.util.find_spec(module) is None:
            print(f"SKIPPED: no {module} in the virtual environment")
            return 77
    source, build = pathlib.Path(source).resolve(), pathlib.Path(build).resolve()
    check(source, build, "hawser", (0, 1), "hawser", ["_hawser.", "libhawser.so."])
    check(source / "python" / "nixl_wheel", build, "nixl-hawser", (1, 5), "nixl",
          ["_bindings.", "libhawser.so.", "libnixl_capi.so.", "libnixl_capi.so"])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
