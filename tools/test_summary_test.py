#!/usr/bin/env python3
"""Tests of tools/test_summary.py, on reports as ctest and GoogleTest write them."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_summary


def case(name, status, inner=""):
    return f'<testcase name="{name}" classname="{name}" time="1" status="{status}">{inner}</testcase>'


class Summaries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def summarize(self, *cases, **reports):
        junit = self.root / "junit.xml"
        junit.write_text('<?xml version="1.0"?><testsuite name="x">' + "".join(cases) + "</testsuite>")
        for name, text in reports.items():
            (self.root / f"{name}.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
        return test_summary.summarize(junit, self.root)

    def test_plain(self):
        got = self.summarize(case("a", "run"), case("b", "fail", '<failure message=""/>'), case("c", "disabled"))
        self.assertEqual(got, (1, [("b", "")], []))

    def test_exit_status_77(self):
        inner = '<skipped message="SKIP_RETURN_CODE=77"/><system-out>SKIPPED: no qemu\n</system-out>'
        self.assertEqual(self.summarize(case("a", "notrun", inner)), (0, [], [("a", "no qemu")]))

    def test_not_built_is_a_failure(self):
        got = self.summarize(case("a", "notrun", '<skipped message="Unable to find executable"/>'))
        self.assertEqual((got.passed, len(got.failed), got.skipped), (0, 1, []))

    def test_cases_of_googletest(self):
        report = (case("one", "run") + case("two", "run", '<failure message="x"/>') +
                  case("three", "run", '<skipped message="a_test.cc:4&#x0A;no hugepages&#x0A;"/>') +
                  case("off", "notrun"))
        got = self.summarize(case("unit", "fail"), unit=report)
        self.assertEqual(got, (1, [("unit: two.two", "x")], [("unit: three.three", "no hugepages")]))

    def test_crash_after_the_last_case(self):
        got = self.summarize(case("unit", "fail"), unit=case("one", "run"))
        self.assertEqual((got.passed, len(got.failed)), (1, 1))

    def test_a_failure_says_why(self):
        report = case("two", "run", '<failure message="a_test.cc:4&#x0A;Expected 1&#x0A;"/>')
        text = test_summary.report(self.summarize(case("unit", "fail"), unit=report))
        self.assertEqual(text.splitlines()[:4], ["Failed:", "  unit: two.two", "    | a_test.cc:4", "    | Expected 1"])

    def test_a_crash_says_where_and_how(self):
        output = ("[ RUN      ] A.one\n[       OK ] A.one (3 ms)\n[ RUN      ] A.two\n"
                  "WARNING: ThreadSanitizer: data race (pid=1)\n" + "  #0 f\n" * 100)
        got = self.summarize(case("unit", "fail", f"<failure/><system-out>{output}</system-out>"))
        name, why = got.failed[0]
        self.assertEqual((name, why.splitlines()[:2]),
                         ("unit", ["it was in A.two", "WARNING: ThreadSanitizer: data race (pid=1)"]))
        self.assertEqual(len(why.splitlines()), test_summary.WHY_LINES)

    def test_closing_line(self):
        text = test_summary.report(test_summary.Summary(3, [], [("a", "no net"), ("b", "no net")]))
        self.assertEqual(text.splitlines(), ["Skipped, by reason:", "     2 x no net", "3 passed, 0 failed, 2 skipped"])

    def test_nothing_ran_is_an_error(self):
        junit = self.root / "junit.xml"
        junit.write_text("<testsuite></testsuite>")
        self.assertEqual(test_summary.main([str(junit)]), 1)


if __name__ == "__main__":
    unittest.main()
