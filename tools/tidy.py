#!/usr/bin/env python3
"""Checks what no compiler checks: layering, banned calls, files that belong to no target, links to nothing.

usage: tools/tidy.py [--root FOLDER]

Prints one line per fault, `file:line: rule: what and what to do`, and exits with 1 when there is any.
It also prints the longest files, functions and classes. No length is a fault: a limit is met by slicing a class over
files, which helps nobody. A reader decides what should be taken apart.
A single line is excused by a comment on it or on the line above:  // tidy: allow(<rule>) <reason>
"""

import argparse
import collections
import pathlib
import re
import sys
from typing import Iterator, NamedTuple

# The order of the layers. Code includes its own layer and those with a smaller number. backend/<name> stands above
# backend, below plan and directory; verbs above the others, because tcp's sockets carry its control.
LAYERS = {
    "base": 0,
    "reduce": 1,
    "schedule": 1,
    "metrics": 1,
    "tls": 1,
    "wire": 1,
    "identity": 2,
    "proto": 2,
    "backend": 3,
    "fileio": 4,
    "backend/stream": 5,
    "backend/places": 5,
    "backend/*": 6,
    "backend/verbs": 7,
    "plan": 7,
    "directory": 7,
    "agent": 8,
    "sim": 9,
    "config": 9,
    "runtime": 9,
    "worldsim": 10,
    "quicsim": 10,
    "compat": 10,
    "rdma": 10,
    "api": 11,
    "cli": 12,
}
BACKEND_ROOMS = ("adopted", "plugin")  # Folders of the layer backend itself: no backend/<name>.
# The headers of a backend/<name> that others may include: what makes it, and what the command line shows of its devices.
SHARED_BACKENDS = ("backend/stream", "backend/places")  # What several backends stand on.
INSIDERS = {"quicsim": "backend/quic"}  # A simulator of one backend looks behind its door.
BACKEND_DOORS = ("factory.h", "device_survey.h", "raw_loop.h")

# The headers of the agent that layers above it include. Tests may look behind them.
AGENT_DOORS = ("inner.h", "inner_plans.h", "inner_peers.h", "inner_regions.h", "inner_identity.h", "inner_simulator.h", "service.h", "describe.h", "open.h",
               "region.h", "peer_names.h", "fork_guard.h")

LINE_LIMIT = 120
LONGEST_SHOWN = 5  # Of files, of functions and of classes.

CODE_FOLDERS = ("include", "src", "test", "bench", "examples")
SOURCE_SUFFIXES = (".cc", ".c")
SUFFIXES = SOURCE_SUFFIXES + (".h",)


class Ban(NamedTuple):
    rule: str
    pattern: re.Pattern
    advice: str
    allowed: tuple  # path prefixes where the call is fine


CALL = r"(?<![\w.>])(?:(?:std)?::)?"
BANS = (
    Ban("sleep", re.compile(r"\b(?:sleep_for|sleep_until)\s*\(|" + CALL + r"(?:sleep|usleep|nanosleep)\s*\("),
        "wait for the event with a deadline; only tests of real processes may sleep", ("test/",)),
    Ban("strcpy", re.compile(CALL + r"(?:strcpy|strcat|sprintf|vsprintf|gets)\s*\("),
        "it has no bound; use std::string, std::span or snprintf", ()),
    Ban("rand", re.compile(CALL + r"(?:rand|srand|random|srandom)\s*\("),
        "use the generator of base/, so that a seed reproduces the run", ()),
    Ban("cout", re.compile(r"\bstd::(?:cout|cerr|clog)\b"),
        "a library does not print; use the log", ("src/cli/", "test/", "bench/", "examples/")),
    Ban("getenv", re.compile(CALL + r"(?:getenv|secure_getenv)\s*\("),
        "the environment is read at the edge only, in src/config", ("src/config/", "src/api/nixl/", "src/cli/", "test/", "bench/", "examples/")),
    Ban("assert", re.compile(r"(?<![\w.>])assert\s*\("),
        "use the checks of base/, which also hold in a release build", ()),
    Ban("format", re.compile(r"(?<![\w.>:])(?<!\(\()format\s*\("),
        "name its namespace: with a newer library std::format is found, too", ("src/base/format.",)),
)

# What a public header may include beside <hawser/...>: the standard's headers.
STANDARD_HEADERS = frozenset(
    """algorithm any array atomic barrier bit bitset charconv chrono cmath compare complex concepts condition_variable
    coroutine cstddef cstdint cstdio cstdlib cstring deque exception filesystem format forward_list functional future
    initializer_list iosfwd istream iterator latch limits list locale map memory memory_resource mutex new numbers
    numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
    source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread
    tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    stddef.h stdint.h stdbool.h""".split())


class Fault(NamedTuple):
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


class Function(NamedTuple):
    name: str
    line: int
    length: int


TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|\bR"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)


def strip(text: str, keep_strings: bool = False) -> str:
    """The code without comments and, unless kept, without what strings hold; line numbers stay."""

    def blank(match):
        token = match.group(0)
        lines = "\n" * token.count("\n")
        if token.startswith("/"):
            return " " + lines
        return token if keep_strings else '""' + lines

    return TOKENS.sub(blank, text)


def without_directives(code: str) -> str:
    """Blanks preprocessor lines and every branch but the first of an #if, so that braces balance."""
    out = []
    skipping = []  # per open #if: whether its current branch is blanked
    continued = False
    for line in code.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line) if not continued else None
        is_directive = continued or directive is not None
        if directive:
            word = directive.group(1)
            if word.startswith("if"):
                skipping.append(False)
            elif word in ("else", "elif") and skipping:
                skipping[-1] = True
            elif word == "endif" and skipping:
                skipping.pop()
        continued = is_directive and line.endswith("\\")
        out.append("" if is_directive or any(skipping) else line)
    return "\n".join(out)


SCOPE_WORDS = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
CONTROL = re.compile(r"\b(?:if|for|while|switch|catch|do|else|try|return)\b")


# `C(int x) : x_(x), y_` before the brace of y_{1}: the body is still to come.
MEMBER_INITIALISER = re.compile(r"\).*(?:,|(?<!:):(?!:))\s*[\w:]+(?:<[^{}()]*>)?\s*$", re.DOTALL)


def head_kind(head: str) -> str:
    """What an opening brace after `head` begins: 'scope' (looked into), 'function', or 'other' (a value)."""
    head = re.sub(r"\b(class|struct)\s+[A-Z][A-Z0-9_]+\s*\([^()]*\)", r"\1", head)  # an annotation, no parameters
    if MEMBER_INITIALISER.search(head):
        return "other"
    # Template arguments and attributes may hold the word `class`.
    head = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\S)", " ", head)
    head = re.sub(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)", " ", head).strip()
    if re.match(r"(?:inline\s+)?namespace\b|extern\s*\"\"$", head):
        return "scope"
    signature = head.split("(")[0]
    if "(" in head and "=" not in re.sub(r"operator\s*\S+", "operator", signature):
        return "other" if CONTROL.match(head) else "function"
    if SCOPE_WORDS.search(head) and "=" not in head:
        return "scope"
    return "other"


def function_name(head: str) -> str:
    macro = re.match(r"\s*(TEST|TEST_F|TEST_P|TYPED_TEST)\s*\(\s*(\w+)\s*,\s*(\w+)", head)
    if macro:
        return f"{macro.group(2)}.{macro.group(3)}"
    head = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\S)", " ", head)
    match = re.search(r"((?:[\w~]+(?:<[^()]*>)?::)*(?:operator\s*(?:\(\)|[^\s(]+)|~?\w+))\s*\(", head)
    return re.sub(r"\s+", " ", match.group(1)) if match else "?"


def functions(text: str) -> Iterator[Function]:
    """Every function body outside of other functions, with the lines from its name to its closing brace."""
    code = without_directives(strip(text))
    stack = []  # (kind, name, line and offset where the head begins)
    head_start = 0
    line = 1
    for i, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = code[head_start:i]
            inside = any(entry[0] != "scope" for entry in stack)
            kind = "other" if inside else head_kind(head)
            name = function_name(head) if kind == "function" else ""
            stack.append((kind, name, line - head.lstrip().count("\n"), head_start))
            head_start = i + 1
        elif char == "}" and stack:
            kind, name, start, begin = stack.pop()
            if kind == "function":
                yield Function(name, start, line - start + 1)
            # After a value the head goes on: `int x{1}, y`, or a constructor's body.
            head_start = begin if kind == "other" else i + 1
        elif char == ";" or (char == ":" and re.search(r"\b(?:public|private|protected)\s*$", code[head_start:i])):
            head_start = i + 1


def layer_of(path: str):
    """The layer of a file under src/ and its rank, or None: ('backend/tcp', 5)."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 3:
        return None
    layer = parts[1]
    if layer == "backend" and len(parts) > 3 and parts[2] not in BACKEND_ROOMS:
        layer = f"backend/{parts[2]}"
    rank = LAYERS.get(layer, LAYERS["backend/*"] if layer.startswith("backend/") else None)
    return layer, rank


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def check_includes(path: str, text: str) -> Iterator[Fault]:
    own = layer_of(path)
    code = strip(text, keep_strings=True)
    for match in INCLUDE.finditer(code):
        line = code.count("\n", 0, match.start(1)) + 1
        target = match.group(2)
        if path.startswith("include/"):
            if match.group(1) == '"' or not (target.startswith("hawser/") or target in STANDARD_HEADERS):
                yield Fault(path, line, "public-include",
                            f"{target}: the door includes standard and <hawser/...> headers only")
            continue
        other = layer_of(f"src/{target}") if match.group(1) == '"' else None
        if own is None or other is None or own[1] is None or other[1] is None or own[0] == other[0]:
            continue
        door = other[0].startswith("backend/") and target.rpartition("/")[2] in BACKEND_DOORS
        if other[1] >= own[1]:
            yield Fault(path, line, "upward-include",
                        f"{own[0]} must not include {target}: {other[0]} is not below it; move the code or invert it")
        elif other[0].startswith("backend/") and other[0] not in SHARED_BACKENDS and not door and INSIDERS.get(own[0]) != other[0]:
            yield Fault(path, line, "backend-include",
                        f"{target}: only {other[0]}/{BACKEND_DOORS[0]} may be included from outside of it")
        elif (path.startswith("src/") and other[0] == "agent" and target.rpartition("/")[2] not in AGENT_DOORS
              and not re.search(r"(_test\.cc|/test_\w+\.h)$", path)):
            yield Fault(path, line, "inner-door",
                        f"{target}: {own[0]} sees the agent by agent/{AGENT_DOORS[0]} and its leaves only")
        elif other[0] in SHARED_BACKENDS and not own[0].startswith("backend/"):
            yield Fault(path, line, "backend-include", f"{target}: {other[0]} is for backends only")


def check_layer_known(path: str) -> Iterator[Fault]:
    own = layer_of(path)
    if path.startswith("src/") and (own is None or own[1] is None):
        yield Fault(path, 1, "unknown-layer", "every file under src/ lies in a layer; the table is in tools/tidy.py")


def check_banned(path: str, text: str) -> Iterator[Fault]:
    raw = text.split("\n")
    for number, line in enumerate(strip(text).split("\n"), 1):
        for ban in BANS:
            if path.startswith(ban.allowed) or not ban.pattern.search(line):
                continue
            excuse = re.compile(rf"//.*\btidy: allow\({ban.rule}\)\s+\S")
            if excuse.search(raw[number - 1]) or (number > 1 and excuse.search(raw[number - 2])):
                continue
            found = ban.pattern.search(line).group(0).strip(" (:")
            yield Fault(path, number, ban.rule, f"{found} is banned here: {ban.advice}")


def check_lines(path: str, text: str) -> Iterator[Fault]:
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LINE_LIMIT:
            yield Fault(path, number, "line-length", f"{len(line)} columns, the limit is {LINE_LIMIT}")
        if line != line.rstrip():
            yield Fault(path, number, "trailing-space", "remove it")


def check_header(path: str, text: str) -> Iterator[Fault]:
    if path.endswith(".h") and not re.search(r"^\s*#\s*pragma\s+once\b", strip(text), re.MULTILINE):
        yield Fault(path, 1, "pragma-once", "a header needs #pragma once")


TYPE = re.compile(r"^(?:struct|class|union|enum(?:\s+class)?)\s+(?P<name>\w+)\b[^;{]*\{", re.MULTILINE)


def check_shadows(files: dict) -> Iterator[Fault]:
    """A source's own type with the name of a public one: in a unity build the headers included after it see the wrong
    type, and so lay out their structs otherwise than the rest of the program does."""
    public = {match.group("name"): path for path, text in files.items() if path.startswith("include/")
              for match in TYPE.finditer(strip(text))}
    for path, text in files.items():
        if not path.startswith(("src/", "test/")) or not path.endswith(".cc"):
            continue  # Programs of one file each: nothing is included after their types.
        code = strip(text)
        for match in TYPE.finditer(code):
            if match.group("name") in public:
                yield Fault(path, code.count("\n", 0, match.start()) + 1, "shadowed-type",
                            f"{match.group('name')} is a type of {public[match.group('name')]}: choose another name")


INNER_NAMESPACE = re.compile(r"^namespace hawser::(\w+)", re.MULTILINE)
VERSIONED_NAMESPACE = re.compile(r"^HAWSER_NAMESPACE_BEGIN\b(.*?)^HAWSER_NAMESPACE_END\b", re.MULTILINE | re.DOTALL)


def includes_of(path: str, files: dict, known: dict) -> set:
    """The files of this tree that it includes, also by way of others."""
    if path not in known:
        known[path] = set()
        for match in INCLUDE.finditer(strip(files[path], keep_strings=True)):
            for folder in ("include", "src", path.rpartition("/")[0]):
                target = f"{folder}/{match.group(2)}"
                if target in files:
                    known[path] |= {target} | includes_of(target, files, known)
    return known[path]


def check_namespaces(files: dict) -> Iterator[Fault]:
    """Public headers open some namespaces inside of the versioned one. A file that opens such a namespace before it has
    seen one of these headers opens another namespace of that name, and other files do not find what it defines there."""
    doors = collections.defaultdict(set)
    for path, text in files.items():
        if path.endswith(".h"):
            for versioned in VERSIONED_NAMESPACE.findall(strip(text)):
                for name in re.findall(r"^namespace (\w+) \{", versioned, re.MULTILINE):
                    doors[name].add(path)
    known = {}
    for path, text in files.items():
        if not path.startswith(("src/", "test/")):
            continue
        match = INNER_NAMESPACE.search(strip(text))
        if match and match.group(1) in doors and not doors[match.group(1)] & includes_of(path, files, known):
            yield Fault(path, strip(text).count("\n", 0, match.start()) + 1, "namespace",
                        f"hawser::{match.group(1)} is a versioned namespace: include {min(doors[match.group(1)])} first")


CLASS = re.compile(r"^[ ]*(?:class|struct)\s+(?:[A-Z][A-Z0-9_]*(?:\(.*?\))?\s+)?(?P<name>\w+)[^;{}()]*\{", re.MULTILINE)


def class_bodies(text: str) -> Iterator[Function]:
    """Every class, also within another one, with the lines from its name to its closing brace."""
    code = without_directives(strip(text))
    for match in CLASS.finditer(code):
        depth = 0
        for i in range(match.end() - 1, len(code)):
            depth += {"{": 1, "}": -1}.get(code[i], 0)
            if depth == 0:
                line = code.count("\n", 0, match.start("name")) + 1
                yield Function(match.group("name"), line, code.count("\n", match.start("name"), i) + 1)
                break


def longest(files: dict) -> dict:
    """By kind: (lines, what and where) of the longest. A class counts with its functions, whatever files they are in."""
    found = {"files": [], "functions": [], "classes": []}
    classes = collections.Counter()
    for path, text in files.items():
        if path.startswith("third_party/") or not path.startswith(("src/", "include/", "bench/", "examples/", "test/")):
            continue
        found["files"].append((text.count("\n"), path))
        layer = (layer_of(path) or (path.split("/")[0],))[0]
        for body in class_bodies(text):
            classes[layer, body.name] += body.length
        for function in functions(text):
            found["functions"].append((function.length, f"{function.name} ({path}:{function.line})"))
            owner = function.name.split("::")[-2] if "::" in function.name else ""
            if owner:
                classes[layer, owner] += function.length
    found["classes"] = [(length, f"{name} (src/{layer})") for (layer, name), length in classes.items()]
    return {kind: sorted(each, reverse=True)[:LONGEST_SHOWN] for kind, each in found.items()}


def check_targets(files: dict, cmake: dict) -> Iterator[Fault]:
    """Every source must be named by a CMake file, relative to its folder or to the repository."""
    named = set()
    for path, text in cmake.items():
        folder = pathlib.PurePosixPath(path).parent
        text = re.sub(r"#[^\n]*", "", text)
        for token in re.findall(r"[\w./+${}-]+\.(?:cc|c)\b", text):
            token = re.sub(r"\$\{(?:PROJECT|CMAKE)_SOURCE_DIR\}/", "/", token)
            token = re.sub(r"\$\{CMAKE_CURRENT_(?:SOURCE|LIST)_DIR\}/", "", token)
            full = token[1:] if token.startswith("/") else str(folder / token)
            parts = []
            for part in full.split("/"):
                if part == ".." and parts:
                    parts.pop()
                elif part not in (".", ""):
                    parts.append(part)
            named.add("/".join(parts))
    for path in files:
        if path.endswith(SOURCE_SUFFIXES) and path not in named:
            yield Fault(path, 1, "no-target", "no CMakeLists.txt names this file, so nothing compiles it")


# What stands at the left edge of a source file has no namespace of its own, whatever brackets are around it.
UNITY_CONSTANT = re.compile(r"^(?:inline )?(?:constexpr|const) [^=({\n]*?\b(?P<name>k[A-Z]\w*)\b", re.MULTILINE)
UNITY_TYPE = re.compile(r"^(?:struct|class|enum class) (?P<name>\w+)[^;{]*\{", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace (hawser[\w:]*)", re.MULTILINE)


def unity_names(text: str) -> Iterator[tuple]:
    """(name, line) of the constants and types that a source file defines outside of any type and function."""
    for pattern in (UNITY_CONSTANT, UNITY_TYPE):
        for match in pattern.finditer(text):
            yield match.group("name"), text.count("\n", 0, match.start()) + 1


def check_unity(files: dict, cmake: dict) -> Iterator[Fault]:
    """Files that a unity build may compile as one must not define the same name twice."""
    for list_path, list_text in cmake.items():
        if not list_path.startswith("src/"):
            continue
        alone = set(" ".join(re.findall(r"hawser_compile_alone\(([^)]*)\)", list_text)).split())
        seen = {}
        for name in sorted(set(re.findall(r"[\w/]+\.cc", list_text)) - alone):
            path = f"{list_path.rsplit('/', 1)[0]}/{name}"
            code = strip(files.get(path, ""))
            space = NAMESPACE.search(code)
            for word, line in unity_names(code):
                key = (name.endswith("_test.cc"), space and space.group(1), word)
                if seen.setdefault(key, path) != path:
                    yield Fault(path, line, "unity-name", f"{word} is in {seen[key]} too: one of them needs another name")


# What documents and comments name: a link, a path in backquotes, a document. URLs have a scheme and are not looked at.
LINK = re.compile(r"\]\((?P<path>[^()\s#:]*)(?:#(?P<anchor>[^()\s]*))?\)")
NAMED_FILE = re.compile(r"`(?P<path>[\w.-]+(?:/[\w.-]+)+\.(?:h|cc|c|py|md|txt|cmake))`")
NAMED_DOCUMENT = re.compile(r"(?<![\w./:-])(?P<path>(?:[\w.-]+/)+[\w-]+\.md)\b")
FENCED = re.compile(r"^```.*?^```|^~~~.*?^~~~", re.MULTILINE | re.DOTALL)
# Folders below which a named file may lie; documents say `wire/hello.h` and `real/death_test.cc`.
NAMED_BELOW = ("", "src", "include", "test")


def joined(folder: str, path: str) -> str:
    """The path from the repository's root, without `.` and `..`."""
    parts = []
    for part in f"{folder}/{path}".split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def anchors(text: str) -> set:
    """The names by which a document's headings are linked."""
    headings = re.findall(r"^#+ +(.*?) *#*$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(path: str, text: str, documents: dict, exists) -> Iterator[Fault]:
    """A document's links lead to files of the repository and to headings that are there."""
    folder = path.rpartition("/")[0]
    blank = FENCED.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    blank = re.sub(r"`[^`\n]*`", "``", blank)
    for match in LINK.finditer(blank):
        target = joined(folder, match.group("path")) if match.group("path") else path
        anchor = match.group("anchor")
        line = blank.count("\n", 0, match.start()) + 1
        if not exists(target):
            yield Fault(path, line, "dead-link", f"{match.group('path')} is not in the repository")
        elif anchor and anchor not in anchors(documents.get(target, "")):
            yield Fault(path, line, "dead-link", f"{target} has no heading #{anchor}")


def check_names(path: str, text: str, exists) -> Iterator[Fault]:
    """Files that documents name, and documents that anything names."""
    folder = path.rpartition("/")[0]
    patterns = (NAMED_FILE, NAMED_DOCUMENT) if path.endswith(".md") else (NAMED_DOCUMENT,)
    for number, line in enumerate(text.split("\n"), 1):
        named = {match.group("path") for pattern in patterns for match in pattern.finditer(line)}
        for name in sorted(named):
            if not any(exists(joined(below, name)) for below in (*NAMED_BELOW, folder)):
                yield Fault(path, number, "dead-name", f"{name} is not in the repository")


def read_documents(root: pathlib.Path) -> dict:
    paths = list(root.glob("*.md"))
    for folder in (*CODE_FOLDERS, "docs", "tools", "python"):
        paths += (root / folder).rglob("*.md")
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


LABELS_PAGE = "docs/testing.md"


def check_labels(cmake: dict, documents: dict) -> Iterator[Fault]:
    """Each label of a test has its row in the table of the page on tests."""
    if LABELS_PAGE not in documents:
        return
    table = re.search(r"^## Labels$(.*?)(?:^## |\Z)", documents[LABELS_PAGE], re.MULTILINE | re.DOTALL)
    rows = set(re.findall(r"^\| (\w+) \|", table.group(1), re.MULTILINE)) if table else set()
    for path, text in cmake.items():
        for number, line in enumerate(text.split("\n"), 1):
            for label in re.findall(r"\bLABEL (\w+)", re.sub(r"#.*", "", line)):
                if label not in rows:
                    yield Fault(path, number, "label", f"{label} has no row in the table of labels of {LABELS_PAGE}")


def check_documents(files: dict, cmake: dict, documents: dict, exists) -> list:
    faults = list(check_labels(cmake, documents))
    for path, text in documents.items():
        faults += check_links(path, text, documents, exists)
    for path, text in {**files, **documents}.items():
        faults += check_names(path, text, exists)
    return sorted(faults)


def read_tree(root: pathlib.Path) -> tuple:
    files, cmake = {}, {}
    for folder in CODE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if not path.is_file():
                continue
            if path.suffix in SUFFIXES:
                files[name] = path.read_text(encoding="utf-8", errors="replace")
            elif path.name == "CMakeLists.txt":
                cmake[name] = path.read_text(encoding="utf-8")
    for path in [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]:
        if path.is_file():
            cmake[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return files, cmake


def check_tree(files: dict, cmake: dict) -> list:
    faults = []
    for path, text in files.items():
        for check in (check_includes, check_banned, check_lines, check_header):
            faults += check(path, text)
        faults += check_layer_known(path)
    faults += check_shadows(files)
    faults += check_namespaces(files)
    faults += check_targets(files, cmake)
    faults += check_unity(files, cmake)
    return sorted(faults)


def main(arguments: list) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args(arguments)
    files, cmake = read_tree(options.root)
    faults = check_tree(files, cmake)
    faults += check_documents(files, cmake, read_documents(options.root), lambda path: (options.root / path).exists())
    for fault in faults:
        print(fault)
    for kind, each in longest(files).items():
        print(f"tidy: longest {kind}: " + ", ".join(f"{length} {what}" for length, what in each))
    print(f"tidy: {len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
