#!/usr/bin/env python3
"""Another user of this host at `hawser serve`: it copies nothing out and plants nothing, and nor does it as a server.

usage: trespass_test.py PROGRAM serve|cp_to_a_stranger
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from cli_test import PROGRAM, Serve, run, same_file

OTHER = 1234
DENIED = 16


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def as_other(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], user=OTHER, group=OTHER, extra_groups=[], capture_output=True, text=True,
                          errors="replace", timeout=60, **options)


def need_another_user():
    if os.geteuid() != 0:
        skip("only root can run a process of another user")
    try:
        if as_other("--version").returncode != 0:
            skip("another user cannot run the program where it is built")
    except PermissionError:
        skip("another user may not enter the folder of the program")


def folders(folder):
    """What is served, root's own, and a folder of the other user's, both behind a folder that both may enter."""
    os.chmod(folder, 0o755)
    served, theirs = pathlib.Path(folder) / "served", pathlib.Path(folder) / "theirs"
    served.mkdir(mode=0o700)
    theirs.mkdir(mode=0o777)
    os.chown(theirs, OTHER, OTHER)
    (served / "secret").write_text("root's alone")
    (theirs / "planted").write_text("not root's")
    return served, theirs


def refused(done):
    text = done.stdout + done.stderr
    assert done.returncode != 0, text
    assert "another user" in text, text
    return text


def test_serve():
    """Neither a file, nor memory, nor what there is at all; the owner's own user is served beside it."""
    with tempfile.TemporaryDirectory() as folder:
        served, theirs = folders(folder)
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served), "--listen", "127.0.0.1:0")
        target = server.ready["target"]
        refused(as_other("cp", f"{target}:secret", str(theirs / "secret")))
        assert not (theirs / "secret").exists()
        refused(as_other("cp", str(theirs / "planted"), f"{target}:planted"))
        assert not (served / "planted").exists()
        said = refused(as_other("ping", target))
        assert "secret" not in said and "1MiB" not in said, said
        run("cp", f"{target}:secret", str(pathlib.Path(folder) / "copy"))
        same_file(served / "secret", pathlib.Path(folder) / "copy")
        run("ping", target, "--count", "1")
        server.end()


def test_cp_to_a_stranger():
    """A server of another user gets nothing of who takes it for a peer."""
    with tempfile.TemporaryDirectory() as folder:
        served, theirs = folders(folder)
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(theirs), "--listen", "127.0.0.1:0", user=OTHER)
        target = server.ready["target"]
        done = subprocess.run([PROGRAM, "cp", str(served / "secret"), f"{target}:secret"], capture_output=True, text=True,
                              timeout=60)
        refused(done)
        assert not (theirs / "secret").exists()
        server.end()


if __name__ == "__main__":
    need_another_user()
    globals()["test_" + sys.argv[2]]()
