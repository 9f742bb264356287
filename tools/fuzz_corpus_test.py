"""Tests of tools/fuzz_corpus.py."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import fuzz_corpus


class Corpus(unittest.TestCase):
    def setUp(self):
        its = tempfile.TemporaryDirectory()
        self.addCleanup(its.cleanup)
        self.folder = pathlib.Path(its.name)

    def test_inputs_are_lines_the_shortest_first_and_once(self):
        inputs = self.folder / "inputs"
        inputs.mkdir()
        for name, data in {"a": b"\x00\xff\n", "b": b"z", "c": b"", "d": b"z"}.items():
            (inputs / name).write_bytes(data)
        self.assertEqual(fuzz_corpus.pack(inputs, self.folder / "new/x.hex"), 3)
        self.assertEqual((self.folder / "new/x.hex").read_text(), "\n7a\n00ff0a\n")

    def test_what_was_packed_comes_back(self):
        file = self.folder / "x.hex"
        file.write_text("\n7a\n00ff0a\n")
        fuzz_corpus.main(["unpack", str(file), str(self.folder / "out")])
        found = {path.read_bytes() for path in (self.folder / "out/unpacked").iterdir()}
        self.assertEqual(found, {b"", b"z", b"\x00\xff\n"})
        file.write_text("7a\n")
        fuzz_corpus.main(["unpack", str(file), str(self.folder / "out")])
        self.assertEqual(len(list((self.folder / "out/unpacked").iterdir())), 1, "what is no line any more goes")

    def test_what_is_no_input_is_named(self):
        file = self.folder / "x.hex"
        file.write_text("7a\nzz\n")
        with self.assertRaisesRegex(SystemExit, "x.hex:2"):
            fuzz_corpus.unpack(file, self.folder / "out")


class Targets(unittest.TestCase):
    def test_one_that_does_not_end_is_given_up(self):
        program = pathlib.Path(sys.executable)
        for text, patience, well in (("pass", 60, True), ("raise SystemExit(1)", 60, False), ("while True: pass", 0.2, False)):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(fuzz_corpus.ends_well([program, "-c", text], subprocess.DEVNULL, patience), well)


if __name__ == "__main__":
    unittest.main()
