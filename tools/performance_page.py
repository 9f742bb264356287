#!/usr/bin/env python3
"""Writes the tables of docs/performance.md from what `hawser bench --json` printed.

usage: performance_page.py [--check] [FIGURES [PAGE]]

FIGURES is docs/figures.json, PAGE docs/performance.md unless given. A table stands between two lines of the page:

    <!-- table: rows ID ID... -->     one line for each row of the bench: value, ceiling, ratio, target
    <!-- table: ucx BACKEND -->       ratios to UCX, a column for each size
    <!-- end -->

--check writes nothing, and fails where the page does not have the tables of the figures.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(?P<head><!-- table: (?P<kind>rows|ucx) (?P<words>[^>]*?) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL)
SIGNS = {"ratio_min": "≥", "ratio_max": "≤", "value_max": "≤", "value_below": "<"}


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(nanoseconds) -> str:
    for limit, scale, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if nanoseconds and nanoseconds < limit:
            return f"{number(nanoseconds / scale)} {unit}"
    return f"{number(nanoseconds / 1e9)} s" if nanoseconds else ""


def target(row: dict) -> str:
    kind, bound = row["target"]["kind"], row["target"]["bound"]
    if kind not in SIGNS:
        return ""
    return f"{SIGNS[kind]} {bound:g}" + (" ×" if kind.startswith("ratio") else f" {row['unit']}")


def line(cells) -> str:
    return "| " + " | ".join(cells) + " |\n"


def rows_table(rows: dict, ids: list) -> str:
    text = line(["row", "what", "value", "ceiling", "ratio", "asked", "p50", "p99"]) + "|---|---|---|---|---|---|---|---|\n"
    for name in ids:
        row = rows[name]
        if row["state"] != "run":
            sys.exit(f"the row {name} was not run: {row['error']['message']}")
        if row.get("disturbed"):
            sys.exit(f"the row {name} was disturbed by other processes: measure on a quiet machine")
        ceiling = f"{number(row['ceiling'])} {row['unit']}" if "ceiling" in row else ""
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        text += line([f"`{name}`", row["what"], f"{number(row['value'])} {row['unit']}", ceiling, ratio,
                      target(row) + ("" if row.get("met", True) else ", missed"),
                      duration(row.get("p50_ns")), duration(row.get("p99_ns"))])
    return text


def ucx_table(rows: dict, backend: str) -> str:
    found, sizes = {}, []
    for name, row in rows.items():
        match = re.fullmatch(rf"ucx\.{re.escape(backend)}\.(\w+)\.(\d+[km]?)", name)
        if match and row.get("disturbed"):
            sys.exit(f"the row {name} was disturbed by other processes: measure on a quiet machine")
        if match and row["state"] == "run":
            found.setdefault(match[1], {})[match[2]] = f"{row['ratio']:.2f}"
            sizes += [match[2]] if match[2] not in sizes else []
    if not found:
        sys.exit(f"the figures have no row ucx.{backend}.*: UCX_PERFTEST was not set")
    text = line(["operation", *(size.replace("k", " KiB").replace("m", " MiB") for size in sizes)]) + "|---" * (len(sizes) + 1) + "|\n"
    return text + "".join(line([kind, *(ratios.get(size, "") for size in sizes)]) for kind, ratios in found.items())


def filled(page: str, figures: dict) -> str:
    rows = {row["id"]: row for row in figures["rows"]}

    def table(match):
        words = match["words"].split()
        unknown = [word for word in words if match["kind"] == "rows" and word not in rows]
        if unknown:
            sys.exit(f"the figures have no row {unknown[0]}")
        body = rows_table(rows, words) if match["kind"] == "rows" else "".join(ucx_table(rows, word) for word in words)
        return match["head"] + "\n" + body + "\n" + match["end"]

    return TABLE.sub(table, page)


def main(arguments: list) -> int:
    check = arguments[:1] == ["--check"]
    paths = [pathlib.Path(word) for word in arguments[check:]]
    if len(paths) > 2 or any(str(path).startswith("-") for path in paths):
        print(__doc__, file=sys.stderr)
        return 2
    figures, page = [*paths, *(ROOT / "docs/figures.json", ROOT / "docs/performance.md")[len(paths):]]
    before = page.read_text(encoding="utf-8")
    after = filled(before, json.loads(figures.read_text(encoding="utf-8")))
    if not TABLE.search(before):
        print(f"{page} has no table to fill", file=sys.stderr)
        return 1
    if not check:
        page.write_text(after, encoding="utf-8")
    elif after != before:
        print(f"the tables of {page} are not those of {figures}: run tools/performance_page.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
