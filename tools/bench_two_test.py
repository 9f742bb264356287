"""Tests of tools/bench_two.py."""

import pathlib
import stat
import sys
import tempfile
import unittest

import bench_two


class Compare(unittest.TestCase):
    def test_ratios_are_of_single_rounds(self):
        before = [{"a": (10.0, "ns")}, {"a": (20.0, "ns")}, {"a": (30.0, "ns")}]
        after = [{"a": (20.0, "ns")}, {"a": (20.0, "ns")}, {"a": (15.0, "ns")}]
        (line,) = bench_two.compare(before, after)
        self.assertEqual(line[:5], ("a", "ns", 20.0, 20.0, 1.0))
        self.assertLessEqual(line[5], 1.0)
        self.assertGreaterEqual(line[6], 1.0)

    def test_a_row_that_one_round_lacks_is_left_out(self):
        self.assertEqual(bench_two.compare([{"a": (1.0, "ns")}], [{"b": (1.0, "ns")}]), [])

    def test_one_round_is_its_own_quartiles(self):
        (line,) = bench_two.compare([{"a": (2.0, "ns")}], [{"a": (1.0, "ns")}])
        self.assertEqual(line[4:], (0.5, 0.5, 0.5))


class Measure(unittest.TestCase):
    def program(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "hawser"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_rows_without_a_value_are_left_out(self):
        program = self.program("""echo '{"rows": [{"id": "a", "value": 2, "unit": "ns"}, {"id": "b", "unit": "ns"}]}'""")
        self.assertEqual(bench_two.measure(program, "a,b"), {"a": (2, "ns")})

    def test_a_program_that_prints_nothing_ends_it(self):
        with self.assertRaisesRegex(SystemExit, "ended with 3"):
            bench_two.measure(self.program("exit 3"), "a")


if __name__ == "__main__":
    sys.exit(unittest.main())
