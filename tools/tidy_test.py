#!/usr/bin/env python3
"""Tests of tools/tidy.py: each rule finds its fault, and nothing else."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy


def rules(files, cmake=None):
    names = " ".join(f"${{PROJECT_SOURCE_DIR}}/{path}" for path in files if not path.endswith(".h"))
    return [fault.rule for fault in tidy.check_tree(files, cmake or {"CMakeLists.txt": names})]


def header(text):
    return "#pragma once\n" + text


def body(lines):
    return "void f() {\n" + "  g();\n" * (lines - 2) + "}\n"


class Includes(unittest.TestCase):
    def test_downward_is_fine(self):
        self.assertEqual(rules({"src/wire/a.cc": '#include "base/bytes.h"\n#include "wire/a.h"\n'}), [])

    def test_upward(self):
        self.assertEqual(rules({"src/base/a.cc": '#include "wire/a.h"\n'}), ["upward-include"])

    def test_siblings(self):
        self.assertEqual(rules({"src/plan/a.cc": '#include "directory/a.h"\n'}), ["upward-include"])
        self.assertEqual(rules({"src/backend/tcp/a.cc": '#include "backend/shm/port.h"\n'}), ["upward-include"])

    def test_backend_may_use_contract_and_stream(self):
        text = '#include "backend/backend.h"\n#include "backend/stream/port.h"\n#include "backend/tcp/path.h"\n'
        self.assertEqual(rules({"src/backend/tcp/a.cc": text}), [])

    def test_contract_must_not_know_backends(self):
        self.assertEqual(rules({"src/backend/a.cc": '#include "backend/tcp/factory.h"\n'}), ["upward-include"])

    def test_a_room_of_the_layer_backend_is_no_backend(self):
        self.assertEqual(rules({"src/backend/a.h": '#pragma once\n#include "backend/adopted/adoption.h"\n'}), [])
        self.assertEqual(rules({"src/agent/a.cc": '#include "backend/plugin/plugin.h"\n'}), [])
        self.assertEqual(rules({"src/backend/plugin/a.cc": '#include "backend/tcp/factory.h"\n'}), ["upward-include"])

    def test_agent_sees_factories_only(self):
        self.assertEqual(rules({"src/agent/a.cc": '#include "backend/tcp/factory.h"\n'}), [])
        self.assertEqual(rules({"src/agent/a.cc": '#include "backend/tcp/path.h"\n'}), ["backend-include"])
        self.assertEqual(rules({"src/agent/a.cc": '#include "backend/stream/port.h"\n'}), ["backend-include"])
        self.assertEqual(rules({"src/agent/a.cc": '#include "backend/places/locator.h"\n'}), ["backend-include"])
        self.assertEqual(rules({"src/backend/tcp/a.cc": '#include "backend/places/locator.h"\n'}), [])
        self.assertEqual(rules({"src/quicsim/a.cc": '#include "backend/quic/connection.h"\n'}), [])
        self.assertEqual(rules({"src/quicsim/a.cc": '#include "backend/tcp/path.h"\n'}), ["backend-include"])
        for above in ("runtime", "compat", "rdma", "sim", "worldsim", "api/python", "cli"):
            self.assertEqual(rules({f"src/{above}/a.cc": '#include "agent/core.h"\n'}), ["inner-door"])
            self.assertEqual(rules({f"src/{above}/a.cc": '#include "agent/inner_plans.h"\n'}), [])
        self.assertEqual(rules({"src/runtime/a.cc": '#include "agent/inner.h"\n'}), [])
        self.assertEqual(rules({"src/runtime/a_test.cc": '#include "agent/session.h"\n'}), [])
        self.assertEqual(rules({"src/runtime/test_a.h": '#pragma once\n#include "agent/session.h"\n'}), [])
        self.assertEqual(rules({"src/runtime/a_test.h": '#pragma once\n#include "agent/session.h"\n'}), ["inner-door"])

    def test_in_comment_is_no_include(self):
        self.assertEqual(rules({"src/base/a.cc": '// #include "wire/a.h"\n/*\n#include "wire/a.h"\n*/\n'}), [])

    def test_public_header(self):
        good = header("#include <cstdint>\n\n#include <hawser/status.h>\n")
        self.assertEqual(rules({"include/hawser/a.h": good}), [])
        self.assertEqual(rules({"include/hawser/a.h": header("#include <sys/uio.h>\n")}), ["public-include"])
        self.assertEqual(rules({"include/hawser/a.h": header('#include "base/a.h"\n')}), ["public-include"])

    def test_unknown_layer(self):
        self.assertEqual(rules({"src/helpers/a.cc": ""}), ["unknown-layer"])

    def test_line_is_named(self):
        fault = tidy.check_tree({"src/base/a.cc": '\n\n#include "wire/a.h"\n'}, {"c": "/src/base/a.cc"})[0]
        self.assertTrue(str(fault).startswith("src/base/a.cc:3: upward-include: "), fault)


class Banned(unittest.TestCase):
    def one(self, line, path="src/base/a.cc"):
        return rules({path: line + "\n"})

    def test_calls(self):
        self.assertEqual(self.one("std::this_thread::sleep_for(1ms);"), ["sleep"])
        self.assertEqual(self.one("::usleep(1);"), ["sleep"])
        self.assertEqual(self.one("std::strcpy(a, b);"), ["strcpy"])
        self.assertEqual(self.one("int x = rand();"), ["rand"])
        self.assertEqual(self.one("std::cout << 1;"), ["cout"])
        self.assertEqual(self.one("assert(x);"), ["assert"])
        self.assertEqual(self.one('return format("{}", x);'), ["format"])
        self.assertEqual(self.one('getenv("A");'), ["getenv"])

    def test_look_alikes(self):
        for line in ("static_assert(x);", "snprintf(a, 1, b);", "rng.rand();", "strand(1);", "// assert(x)",
                     'log("sleep(1)");', "my_assert(x);", 'base::format("{}", x);', "clock.sleep(1);"):
            self.assertEqual(self.one(line), [], line)

    def test_places(self):
        self.assertEqual(self.one("usleep(1);", "test/real/a.cc"), [])
        self.assertEqual(self.one("std::cout << 1;", "src/cli/a.cc"), [])
        self.assertEqual(self.one('getenv("A");', "src/config/a.cc"), [])

    def test_excuse_needs_a_reason(self):
        self.assertEqual(self.one("usleep(1);  // tidy: allow(sleep) the device needs a pause"), [])
        self.assertEqual(self.one("// tidy: allow(sleep) the device needs a pause\nusleep(1);"), [])
        self.assertEqual(self.one("usleep(1);  // tidy: allow(sleep)"), ["sleep"])
        self.assertEqual(self.one("usleep(1);  // tidy: allow(rand) the device needs a pause"), ["sleep"])


class Lengths(unittest.TestCase):
    def test_no_length_is_a_fault(self):
        self.assertEqual(rules({"src/base/a.cc": body(2000)}), [])
        self.assertEqual(rules({"include/hawser/a.h": header("\n" * 2000)}), [])

    def test_the_longest_are_told(self):
        files = {f"src/base/{name}.cc": body(10 + at) for at, name in enumerate("abcdefg")}
        told = tidy.longest(files)
        self.assertEqual(told["files"][0], (16, "src/base/g.cc"))
        self.assertEqual(len(told["files"]), tidy.LONGEST_SHOWN)
        self.assertEqual(told["functions"][0], (16, "f (src/base/g.cc:1)"))

    def test_a_class_counts_with_its_functions_in_all_files(self):
        files = {
            "src/agent/a.h": header("class HAWSER_CAPABILITY(\"x\") A final : public B {\n  void f();\n};\nclass Later;\n"),
            "src/agent/a.cc": "void A::f() {\n  g();\n}\n",
            "src/agent/a_more.cc": "void A::h() {\n  g();\n  g();\n}\n",
            "src/wire/a.h": header("struct A {\n};\n"),
        }
        self.assertEqual(tidy.longest(files)["classes"], [(10, "A (src/agent)"), (2, "A (src/wire)")])

    def test_lines(self):
        self.assertEqual(rules({"src/base/a.cc": "x" * tidy.LINE_LIMIT + "\n"}), [])
        self.assertEqual(rules({"src/base/a.cc": "x" * (tidy.LINE_LIMIT + 1) + "\n"}), ["line-length"])
        self.assertEqual(rules({"src/base/a.cc": "x \n"}), ["trailing-space"])


class Functions(unittest.TestCase):
    def found(self, text):
        return [(f.name, f.line, f.length) for f in tidy.functions(text)]

    def test_shapes(self):
        text = """namespace a::b {
class C : public D {
 public:
  C(int x) : x_(x), y_{1} {
    if (x) { g(); }
  }
  bool operator==(const C& o) const { return x_ == o.x_; }
  template <class T>
  void put(T t) {
    for (;;) {
    }
  }
 private:
  int x_ = 0;
  int y_{0};
};
enum class E { kA, kB };
constexpr int kTable[] = {
  1, 2,
};
struct S { int a; };
Result<int> C::find(std::string_view name,
                    int n) const noexcept {
  auto f = [&](int v) { return v; };
  return f(1);
}
}
TEST(Suite, Name) {
}
"""
        self.assertEqual(self.found(text), [
            ("C", 4, 3), ("operator==", 7, 1), ("put", 8, 5), ("C::find", 22, 5), ("Suite.Name", 28, 2)])

    def test_conditional_branches_count_once(self):
        text = "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\nvoid h() {\n}\n"
        self.assertEqual(self.found(text), [("f", 2, 5), ("h", 7, 2)])

    def test_braces_in_text(self):
        text = 'void f() {\n  a("{{{");  // {\n  b(R"x({")x");\n  c(\'{\');\n  d(1\'000);\n}\nvoid g() {}\n'
        self.assertEqual(self.found(text), [("f", 1, 6), ("g", 7, 1)])


class Tree(unittest.TestCase):
    def test_no_target(self):
        files = {"src/base/a.cc": "", "src/base/b.cc": "", "test/real/c.cc": ""}
        cmake = {"src/base/CMakeLists.txt": "hawser_layer(base SOURCES a.cc # b.cc\n)",
                 "test/CMakeLists.txt": "x(SOURCES real/c.cc)"}
        faults = tidy.check_tree(files, cmake)
        self.assertEqual([(f.path, f.rule) for f in faults], [("src/base/b.cc", "no-target")])

    def test_pragma_once(self):
        self.assertEqual(rules({"src/base/a.h": "int x;\n"}), ["pragma-once"])

    def test_shadowed_type(self):
        door = {"include/hawser/memory.h": header("struct Device {\n};\nclass Agent;\n")}
        own = "namespace {\nstruct Device {\n};\nclass Agent {\n};\nstruct DeviceList {\n};\n}\n"
        self.assertEqual(rules({**door, "src/agent/a_test.cc": own}), ["shadowed-type"])
        self.assertEqual(rules({**door, "bench/a.cc": own}), [])

    def test_versioned_namespace(self):
        door = {"include/hawser/compat/a.h": header(
            "HAWSER_NAMESPACE_BEGIN\nnamespace compat {\n}  // namespace compat\nHAWSER_NAMESPACE_END\n")}
        opens = "namespace hawser::compat {\n}\n"
        for way in ("<hawser/compat/a.h>", '"compat/b.h"', '"near.h"'):
            middle = {"src/compat/b.h": header("#include <hawser/compat/a.h>\n"),
                      "test/compat/near.h": header("#include <hawser/compat/a.h>\n")}
            self.assertEqual(rules({**door, **middle, "test/compat/c.cc": f"#include {way}\n{opens}"}), [])
        self.assertEqual(rules({**door, "src/compat/c.cc": f"#include <string>\n{opens}"}), ["namespace"])
        self.assertEqual(rules({**door, "src/agent/c.cc": "namespace hawser::agent {\n}\n"}), [])


class Unity(unittest.TestCase):
    LIST = "hawser_layer(base SOURCES a.cc b.cc TESTS a_test.cc b_test.cc)"

    def rules(self, first, second, names=("a", "b"), more=""):
        space = "namespace hawser::base {\nnamespace {\n"
        files = {f"src/base/{name}.cc": space + text for name, text in zip(names, (first, second))}
        return rules(files, {"src/base/CMakeLists.txt": more + self.LIST})

    def test_the_same_name_twice(self):
        for first in ("constexpr int kMax = 1;\n", "const char* const kMax = nullptr;\n", "struct kMax {\n"):
            self.assertEqual(self.rules(first, "constexpr std::size_t kMax = 2;\n"), ["unity-name"], first)
        self.assertEqual(self.rules("struct Rule {\n", "enum class Rule : int {\n"), ["unity-name"])

    def test_what_does_not_clash(self):
        self.assertEqual(self.rules("constexpr int kMax = 1;\n", "constexpr int kMin = kMax;\n"), [])
        self.assertEqual(self.rules("constexpr int kMax = 1;\n", "  constexpr int kMax = 2;\n"), [], "a local one")
        self.assertEqual(self.rules("struct Rule;\n", "struct Rule {\n"), [], "a declaration")
        self.assertEqual(self.rules("constexpr int kMax = 1;\n", "constexpr int kMax = 1;\n", ("a", "b_test")), [])
        self.assertEqual(self.rules("constexpr int kMax = 1;\n", "constexpr int kMax = 1;\n",
                                    more="hawser_compile_alone(b.cc)\n"), [])


class Documents(unittest.TestCase):
    def rules(self, documents, files=None, others=()):
        known = {*documents, *(files or {}), *others}
        return [(f.path, f.line, f.rule) for f in tidy.check_documents(files or {}, {}, documents, known.__contains__)]

    def test_links(self):
        good = {"docs/a.md": "see [b](b.md), [top](../README.md), [out](https://example.org/x.md)\n", "docs/b.md": "",
                "README.md": "[a](docs/a.md)\n"}
        self.assertEqual(self.rules(good), [])
        self.assertEqual(self.rules({"docs/a.md": "one\n[b](b.md)\n"}), [("docs/a.md", 2, "dead-link")])

    def test_anchors(self):
        self.assertEqual(self.rules({"docs/a.md": "# The `x`, at work\n[x](#the-x-at-work)\n"}), [])
        self.assertEqual(self.rules({"docs/a.md": "[x](b.md#there)\n", "docs/b.md": "```\n# There\n```\n"}),
                         [("docs/a.md", 1, "dead-link")])

    def test_code_has_no_links(self):
        self.assertEqual(self.rules({"docs/a.md": "`v[0](x.md)`\n```\n[](int x)\n```\n"}), [])

    def test_named_files(self):
        text = {"docs/a.md": "`wire/a.h`, `real/a_test.cc`, `hawser/a.h` and `a.h`\n"}
        others = ("src/wire/a.h", "test/real/a_test.cc", "include/hawser/a.h")
        self.assertEqual(self.rules(text, others=others), [])
        self.assertEqual(self.rules(text, others=others[1:]), [("docs/a.md", 1, "dead-name")])

    def test_labels(self):
        def faults(page):
            cmake = {"test/CMakeLists.txt": "x(LABEL unit)  # or LABEL other\nx(\n  LABEL real)\n"}
            return [(f.line, f.rule) for f in tidy.check_documents({}, cmake, {tidy.LABELS_PAGE: page}, lambda _: True)]

        self.assertEqual(faults("## Labels\n| unit | a |\n| real | b |\n## More\n"), [])
        self.assertEqual(faults("## Labels\n| unit | a |\n## More\n| real | b |\n"), [(3, "label")])

    def test_documents_named_in_code(self):
        files = {"src/wire/a.h": "// see docs/a.md.\n// https://example.org/docs/z.md\n"}
        self.assertEqual(self.rules({}, files), [("src/wire/a.h", 1, "dead-name")])
        self.assertEqual(self.rules({"docs/a.md": ""}, files), [])


if __name__ == "__main__":
    unittest.main()
