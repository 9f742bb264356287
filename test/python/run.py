"""Runs pytest for ctest: each case is counted, in the form of GoogleTest's report, which tools/test_summary.py reads.

usage: run.py REPORT FILE...
"""

import importlib.util
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def main(report, *files):
    for module in ("pytest", "numpy"):
        if importlib.util.find_spec(module) is None:
            print(f"SKIPPED: no {module} in the virtual environment")
            return 77
    # The library warns of HAWSER_ variables that it does not know, and programs that tests start inherit them.
    os.environ["TEST_TIMEOUT_SCALE"] = os.environ.pop("HAWSER_TIMEOUT_SCALE", "1")
    for name in ("HAWSER_TEST_SOURCE", "HAWSER_TEST_BUILD"):
        os.environ[name.removeprefix("HAWSER_")] = os.environ.pop(name)
    import pytest

    report = pathlib.Path(report)
    report.parent.mkdir(parents=True, exist_ok=True)
    status = pytest.main(["-q", "-p", "no:cacheprovider", f"--rootdir={pathlib.Path(__file__).parent}",
                          f"--junitxml={report}", *files])
    tree = ElementTree.parse(report)
    for case in tree.iter("testcase"):
        case.set("status", "run")
        if case.find("error") is not None:
            ElementTree.SubElement(case, "failure")
    tree.write(report)
    # A file that is skipped as a whole collects no test: pytest then exits as if there had been none at all.
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and tree.find(".//testcase/skipped") is not None:
        return 0
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
