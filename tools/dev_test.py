#!/usr/bin/env python3
"""Tests of what ./dev takes: asked for help, or given what it does not know, it does no work."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEV = pathlib.Path(__file__).resolve().parent.parent / "dev"
COMMANDS = ("demo", "bench", "test", "build", "wheel", "deb", "release", "actors", "docs", "fmt", "tidy", "install-deps")


class Arguments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copy(DEV, self.root / "dev")  # Alone: whatever it starts finds nothing to work on.

    def run_dev(self, *arguments):
        before = sorted(os.listdir(self.root))
        done = subprocess.run([self.root / "dev", *arguments], capture_output=True, text=True, timeout=30,
                              env=os.environ | {"HAWSER_NO_INSTALL": "1"}, stdin=subprocess.DEVNULL)
        self.assertEqual(sorted(os.listdir(self.root)), before, "it made something")
        return done

    def test_help_of_each_command(self):
        whole = self.run_dev("--help").stdout.splitlines()
        for command in COMMANDS:
            for asked in ("--help", "-h"):
                with self.subTest(command=command, asked=asked):
                    done = self.run_dev(command, asked)
                    lines = done.stdout.splitlines()
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertTrue(lines[0].startswith("usage: ./dev"), lines)
                    self.assertTrue(lines[1].startswith(f"  {command} "), lines)
                    others = [line for line in lines for other in COMMANDS
                              if other != command and line.startswith(f"  {other} ")]
                    self.assertEqual(others, [])
                    self.assertLessEqual(set(lines), set(whole))

    def test_what_it_does_not_know(self):
        for arguments in (["test", "--fast"], ["test", "-R"], ["test", "--preset"], ["test", "--preset", "no"],
                          ["test", "--full", "-R", "x"], ["test", "-R", "x", "--full"], ["test", "unit"],
                          ["build", "--fast"], ["build", "no"], ["build", "dev", "asan"],
                          ["fmt", "--fast"], ["tidy", "--fast"], ["wheel", "--fast"], ["deb", "--fast"],
                          ["release", "1", "2"], ["actors", "--fast"], ["docs", "--fast"], ["install-deps", "--fast"]):
            with self.subTest(arguments=arguments):
                done = self.run_dev(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(done.stderr.startswith("dev: "), done.stderr)
                self.assertIn(f"\nusage: ./dev COMMAND [ARGUMENTS]\n  {arguments[0]} ", done.stderr)

    def test_a_release_is_of_the_trees_version(self):
        (self.root / "CMakeLists.txt").write_text("project(hawser VERSION 1.2.3 LANGUAGES C)\n")
        done = self.run_dev("release", "99.0.0")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("not 99.0.0", done.stderr)

    def test_a_wheel_needs_a_python_with_headers(self):
        old = self.root / "old"
        old.write_text("#!/bin/sh\necho 'is Python 3.9, and wheels are for 3.10 and later'; exit 1\n")
        mute = self.root / "mute"
        mute.write_text("#!/bin/sh\nexit 0\n")
        (self.root / "empty").mkdir()
        for program in (old, mute):
            program.chmod(0o755)
        for python, why in ((old, "is Python 3.9, and wheels are for 3.10 and later"), (mute, "is no Python that runs"),
                            (self.root / "empty", "is no Python that runs"), ("no-such", "is no Python that runs")):
            with self.subTest(python=python):
                done = self.run_dev("wheel", python)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertEqual(done.stderr, f"dev: no wheel by '{python}': it {why}\n")

    def functions_of_dev(self, names, call, **environment):
        """What `call` prints in a shell with these functions of ./dev."""
        sed = "".join(f"/^{name}() {{/,/^}}/p;" for name in names) + "/^wheel_pythons=/p;/^say()/p;/^die()/p"
        shell = f"set -eu; . <(sed -n '{sed}' ./dev); {call}"
        return subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=30, cwd=self.root,
                              env=os.environ | environment)

    def test_pythons_of_pyenv_and_uv_are_found_once_each(self):
        places = {"pyenv": "versions/3.14.1", "uv": "cpython-3.14.2-linux-x86_64-gnu", "other": "versions/3.15.0"}
        for name, place in places.items():
            folder = self.root / name / place / "bin"
            folder.mkdir(parents=True)
            series = "3.15" if name == "other" else "3.14"
            (folder / "python3").write_text(f"#!/bin/sh\necho {series} cp312 {name}\n")
            (folder / "python3").chmod(0o755)
        names = ("python_at", "about_python", "pythons_here")
        for pyenv, wanted in (("pyenv", ["3.14 cp312 pyenv"]), ("none", ["3.14 cp312 uv"]),
                              ("other", ["3.14 cp312 uv", "3.15 cp312 other"])):
            with self.subTest(pyenv=pyenv):
                done = self.functions_of_dev(names, "pythons_here", PATH="/usr/bin:/bin", PYENV_ROOT=str(self.root / pyenv),
                                             UV_PYTHON_INSTALL_DIR=str(self.root / "uv"))
                lines = [line for line in done.stdout.splitlines() if not line.split()[2].startswith("/usr/bin")]
                self.assertEqual((done.returncode, lines), (0, wanted), done.stderr)

    def test_missing_wheels_are_named_and_end_a_release(self):
        names = ("tell_missing_wheels",)
        done = self.functions_of_dev(names, "tell_missing_wheels cp310 cp311 cp312")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.functions_of_dev(names, "tell_missing_wheels cp311")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([line.split(":")[1] for line in done.stderr.splitlines()],
                         [" no wheel for Python 3.10", " no wheel for Python 3.12 or later"])
        done = self.functions_of_dev(names, "every_wheel=1; tell_missing_wheels cp310 cp312; echo goes on")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no wheel for Python 3.11:", done.stderr)
        self.assertIn("a release has all wheels", done.stderr)

    def test_no_command(self):
        self.assertEqual((self.run_dev().returncode, self.run_dev("no").returncode), (2, 2))


if __name__ == "__main__":
    unittest.main()
