"""Lays a build out as its wheels would be, without building again, and checks what is there.

The folder gets what the wheels are made of: the components that scikit-build-core installs, the packages' files, the
metadata that it makes of pyproject.toml.

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

METADATA = "import scikit_build_core.build as build, sys; build.prepare_metadata_for_build_wheel(sys.argv[1])"
PACKAGE = {".py", ".pyi", ".typed"}


def run(*command, cwd="/", **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=cwd, **options)


def lay_out(project, build, root):
    """One wheel's files in `root`, by its pyproject.toml."""
    with open(project / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)["tool"]["scikit-build"]
    for component in settings["install"]["components"]:
        run("cmake", "--install", build, "--component", component, "--prefix", root)
    for package in settings["wheel"]["packages"]:
        source = (project / package).resolve()
        for file in source.iterdir():
            if file.suffix in PACKAGE:
                (root / source.name / file.name).write_bytes(file.read_bytes())
    run(sys.executable, "-c", METADATA, root, cwd=project)
    [metadata] = root.glob("*.dist-info")
    files = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return metadata


def check_metadata(metadata, name, least):
    text = (metadata / "METADATA").read_text()
    fields = dict(line.split(": ", 1) for line in text.split("\n\n")[0].splitlines())
    assert fields["Name"] == name and "Requires-Python" in fields, fields
    assert tuple(int(part) for part in fields["Version"].split(".")[:2]) >= least, fields["Version"]
    tags = re.findall(r"^Tag: (\S+)$", (metadata / "WHEEL").read_text(), re.MULTILINE)
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
        assert "libhawser.so" not in dynamic or paths or name.startswith("libhawser"), f"{name} cannot find libhawser.so"


def check(project, build, name, least, module, libraries):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        check_metadata(lay_out(project, build, root), name, least)
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
    source = pathlib.Path(source)
    check(source, build, "hawser", (0, 1), "hawser", ["_hawser.", "libhawser.so."])
    check(source / "python" / "nixl_wheel", build, "nixl-hawser", (1, 5), "nixl",
          ["_bindings.", "libhawser.so.", "libnixl_capi.so."])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
