#!/usr/bin/env python3
"""Tests of tools/performance_page.py: the tables are those of the figures, and what is missing is said."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "performance_page.py"
PAGE = "before\n<!-- table: rows a.x -->\nold\n<!-- end -->\nbetween\n<!-- table: ucx shm -->\n<!-- end -->\nafter\n"


def row(name, **more):
    return {"id": name, "what": "w", "unit": "GB/s", "state": "run", "target": {"kind": "ratio_min", "bound": 0.9},
            "value": 12.345, "ceiling": 10, "ratio": 1.234, "met": True, "p50_ns": 1500, "p99_ns": 2_500_000} | more


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name, "page.md")
        self.figures = pathlib.Path(folder.name, "figures.json")

    def run_tool(self, rows, *options, page=PAGE):
        self.page.write_text(page, encoding="utf-8")
        self.figures.write_text(json.dumps({"rows": rows}), encoding="utf-8")
        done = subprocess.run([sys.executable, TOOL, *options, self.figures, self.page], capture_output=True, text=True, timeout=30)
        return done, self.page.read_text(encoding="utf-8")

    ROWS = [row("a.x"), row("ucx.shm.put.4k"), row("ucx.shm.put.1m", ratio=0.5), row("ucx.shm.tag.1m", ratio=2)]

    def test_fills_the_tables(self):
        done, page = self.run_tool(self.ROWS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("| `a.x` | w | 12.3 GB/s | 10 GB/s | 1.23 | ≥ 0.9 × | 1.5 µs | 2.5 ms |", page)
        self.assertIn("| operation | 4 KiB | 1 MiB |", page)
        self.assertIn("| put | 1.23 | 0.50 |", page)
        self.assertIn("| tag |  | 2.00 |", page)
        self.assertNotIn("old", page)
        for text in ("before\n", "between\n", "after\n"):
            self.assertIn(text, page)

    def test_check(self):
        done, page = self.run_tool(self.ROWS, "--check")
        self.assertEqual((done.returncode, page), (1, PAGE))
        _, filled = self.run_tool(self.ROWS)
        done, page = self.run_tool(self.ROWS, "--check", page=filled)
        self.assertEqual((done.returncode, page), (0, filled))

    def test_a_missed_target_is_said(self):
        _, page = self.run_tool([row("a.x", met=False), *self.ROWS[1:]])
        self.assertIn("≥ 0.9 ×, missed", page)

    def test_what_the_figures_lack(self):
        skipped = {"state": "skipped", "error": {"message": "no device"}}
        for rows, said in (([row("b"), *self.ROWS[1:]], "no row a.x"), ([row("a.x", **skipped), *self.ROWS[1:]], "no device"),
                           ([row("a.x", disturbed=True), *self.ROWS[1:]], "disturbed"), (self.ROWS[:1], "UCX_PERFTEST"),
                           ([*self.ROWS[:3], row("ucx.shm.tag.1m", disturbed=True)], "disturbed")):
            done, page = self.run_tool(rows)
            self.assertEqual((done.returncode, page), (1, PAGE))
            self.assertIn(said, done.stderr)

    def test_a_page_without_tables(self):
        done, _ = self.run_tool(self.ROWS, "--check", page="nothing\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no table", done.stderr)


if __name__ == "__main__":
    unittest.main()
