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

    def test_no_command(self):
        self.assertEqual((self.run_dev().returncode, self.run_dev("no").returncode), (2, 2))


if __name__ == "__main__":
    unittest.main()
