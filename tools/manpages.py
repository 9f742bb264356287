#!/usr/bin/env python3
"""Manual pages from what the command line says of itself.

usage: tools/manpages.py PROGRAM FOLDER [--date YYYY-MM-DD]

Writes FOLDER/hawser.1 and one page for each command, hawser-<command>.1, from `PROGRAM --help` and `PROGRAM <command> --help`;
hawser-<command>-<command>.1 for a command below another.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
from typing import Callable


def escape(text: str) -> str:
    """For roff: a backslash and a dash are themselves, and no line begins a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def sections_of(text: str) -> dict[str, list[str]]:
    """{title: lines}: a title is a line that ends in ':' and begins in the first column. The lines before the first are "".

    "Usage: ..." and "Exit codes: ..." have their text in the title's line; with the latter the paragraphs begin.
    """
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in text.splitlines():
        inline = re.match(r"(Usage|Exit codes): *(.*)", line)
        if inline:
            title = inline[1]
            sections[title] = [inline[2]]
        elif title != "Exit codes" and re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
            title = line[:-1]
            sections[title] = []
        else:
            sections[title].append(line)
    return sections


def definitions(lines: list[str]) -> list[str]:
    """Rows "  NAME   text", the text going on in the rows below it."""
    out: list[str] = []
    for line in filter(str.strip, lines):
        row = re.match(r"  (\S.*?)(?:  +(.*))?$", line)
        if not line.startswith(" "):
            out += [".PP", escape(line)]
        elif row and not line.startswith("     "):
            out += [".TP", f"\\fB{escape(row[1])}\\fR"] + ([escape(row[2])] if row[2] else [])
        else:
            out.append(escape(line.strip()))
    return out


def page(name: str, version: str, date: str, text: str, more: list[str]) -> str:
    sections = sections_of(text)
    what = " ".join(line.strip() for line in sections.pop("") if line.strip())
    out = [f'.TH "{name.upper()}" "1" "{date}" "{version}" "User Commands"', ".SH NAME",
           f"{escape(name)} \\- {escape(what.rstrip('.'))}", ".SH SYNOPSIS", f"\\fB{escape(sections.pop('Usage')[0])}\\fR"]
    examples = sections.pop("Examples", [])
    codes = sections.pop("Exit codes", [])
    for title, lines in sections.items():
        heading = {"Positionals": "ARGUMENTS", "Subcommands": "COMMANDS"}.get(title, title.upper())
        out += [f".SH {heading}", *definitions(lines)]
    if any(line.strip() for line in examples):
        out += [".SH EXAMPLES", ".nf", *(escape(line[2:]) for line in examples if line.strip()), ".fi"]
    if codes:
        # The paragraph of the codes ends with "20 failed."; notes follow it.
        whole = " ".join(line.strip() for line in codes if line.strip())
        status, dot, notes = whole.partition("failed.")
        out += [".SH EXIT STATUS", escape(status + dot)]
        if notes.strip():
            out += [".SH NOTES", escape(notes.strip())]
    if more:
        out += [".SH SEE ALSO", ",\n".join(f".BR {escape(other)} (1)" for other in more).replace(",\n", ",\n")]
    return "\n".join(out) + "\n"


def help_of(program: str, *command: str) -> str:
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout


def helps_of(ask: Callable[..., str], *command: str) -> dict[tuple[str, ...], str]:
    """The help of the command and of all below it, by their words."""
    text = ask(*command)
    found = {command: text}
    for line in sections_of(text).get("Subcommands", []):
        if below := re.match(r"  (\S+)", line):
            found |= helps_of(ask, *command, below[1])
    return found


def write_pages(program: str, folder: pathlib.Path, date: str) -> list[str]:
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    pages = helps_of(lambda *command: help_of(program, *command))
    folder.mkdir(parents=True, exist_ok=True)
    names = ["-".join(("hawser", *command)) for command in pages]
    for name, (command, text) in zip(names, pages.items()):
        others = [other for other in names if other != name] if not command else ["-".join(("hawser", *command[:-1]))]
        (folder / f"{name}.1").write_text(page(name, version, date, text, others))
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--date", help="of the pages (default: that of SOURCE_DATE_EPOCH, or today)")
    given = parser.parse_args()
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()
    print(f"{len(write_pages(given.program, given.folder, given.date or when.strftime('%Y-%m-%d')))} pages in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
