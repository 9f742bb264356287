#!/usr/bin/env python3
"""Sums up a ctest run: what failed, what was skipped and why, and one closing line.

usage: tools/test_summary.py JUNIT_XML [RESULTS_FOLDER]

JUNIT_XML is from `ctest --output-junit`. RESULTS_FOLDER holds GoogleTest's own reports, <ctest name>.xml; where there is
one, its cases are counted instead of the one ctest entry. A test without such a report that prints `SKIPPED: reason`
has that counted as a skip. Exit status: 1 when anything failed or nothing ran.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

SKIPPED = re.compile(r"^.*?\bSKIPPED: *(.+?) *$", re.MULTILINE)
TELLING = re.compile(r"^.*(?:Sanitizer|runtime error|libFuzzer|\bSIG[A-Z]{3,}|terminate called|what\(\):|FATAL).*$",
                     re.MULTILINE)
WHY_LINES = 12  # of one failure


class Summary(NamedTuple):
    passed: int
    failed: list  # (name, why: lines that may be empty)
    skipped: list  # (name, reason)


def skip_reason(message: str) -> str:
    """GoogleTest puts `file:line` before the reason, on a line of its own."""
    lines = [line.strip() for line in message.strip().splitlines()]
    while lines and re.fullmatch(r"\S+:\d+|Skipped|", lines[0]):
        lines.pop(0)
    return " ".join(lines) or "no reason given"


def first_lines(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(lines[:WHY_LINES])


def end_of(output: str) -> str:
    """Of a program that did not report a failure itself: where it was, what a sanitizer or the runtime said, its end."""
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    ended = set(re.findall(r"^\[ *(?:OK|FAILED|SKIPPED) *\] ([^\s,]+)", output, re.MULTILINE))
    told = [f"it was in {name}" for name in begun[-1:] if name not in ended]
    told += [line.strip() for line in TELLING.findall(output)[:4]]
    last = [line.rstrip() for line in output.strip().splitlines()[-(WHY_LINES - len(told)) :]]
    return "\n".join(told + [line for line in last if line.strip() not in told])


def read_cases(report: pathlib.Path):
    """(passed, failed, skipped) of a GoogleTest report, or None when it has none."""
    if not report.is_file():
        return None
    try:
        root = ElementTree.parse(report).getroot()
    except ElementTree.ParseError:
        return None
    passed, failed, skipped = 0, [], []
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skip = case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            failed.append((name, first_lines(failure.get("message") or failure.text or "")))
        elif skip is not None:
            skipped.append((name, skip_reason(skip.get("message") or skip.text or "")))
        elif case.get("status") == "run":
            passed += 1
    return passed, failed, skipped


def summarize(junit: pathlib.Path, results) -> Summary:
    passed, failed, skipped = 0, [], []
    for test in ElementTree.parse(junit).getroot().iter("testcase"):
        name, status = test.get("name"), test.get("status")
        if status == "disabled":
            continue
        output = test.findtext("system-out") or ""
        bad = status == "fail" or test.find("failure") is not None
        cases = read_cases(results / f"{name}.xml") if results else None
        if cases:
            passed += cases[0]
            failed += [(f"{name}: {case}", why) for case, why in cases[1]]
            skipped += [(f"{name}: {case}", reason) for case, reason in cases[2]]
            if bad and not cases[1]:
                failed.append((f"{name}: failed outside of a test case", end_of(output)))
            continue
        reasons = [(name, reason) for reason in SKIPPED.findall(output)]
        if bad:
            failed.append((name, end_of(output)))
        elif status == "run":
            passed += 1
            skipped += reasons
        else:  # notrun: exit status 77, or no executable
            why = test.find("skipped")
            message = why.get("message") if why is not None else ""
            if reasons or "SKIP" in (message or "").upper():
                skipped += reasons or [(name, "no reason given")]
            else:
                failed.append((f"{name}: could not be run ({message or 'no executable'})", ""))
    return Summary(passed, failed, skipped)


def report(summary: Summary) -> str:
    lines = []
    if summary.skipped:
        lines.append("Skipped, by reason:")
        reasons = collections.Counter(reason for _, reason in summary.skipped)
        lines += [f"  {count:4} x {reason}" for reason, count in reasons.most_common()]
    if summary.failed:
        lines.append("Failed:")
        for name, why in summary.failed:
            lines.append(f"  {name}")
            lines += [f"    | {line}" for line in why.splitlines()]
    lines.append(f"{summary.passed} passed, {len(summary.failed)} failed, {len(summary.skipped)} skipped")
    return "\n".join(lines)


def main(arguments: list) -> int:
    if len(arguments) not in (1, 2) or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    junit = pathlib.Path(arguments[0])
    if not junit.is_file():
        print(f"test_summary: no report {junit}: ctest did not finish", file=sys.stderr)
        return 1
    summary = summarize(junit, pathlib.Path(arguments[1]) if len(arguments) == 2 else None)
    print(report(summary))
    if summary.passed + len(summary.skipped) + len(summary.failed) == 0:
        print("test_summary: no test ran", file=sys.stderr)
        return 1
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
