"""tools/manpages.py: pages that roff takes, with all that the help says."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import manpages  # noqa: E402

HELP = """Do a thing, and
say so
Usage: hawser thing [OPTIONS] name

Positionals:
  name TEXT REQUIRED          The name

Options:
  -h,--help                   Print this help message and exit
  --a-long-option-that-fills-its-column TEXT
                              Its text stands below

Examples:
  hawser thing '.dots' \\\\n
.not a request
Exit codes: 0 good, 20 failed.
A note - with a dash.
"""


class Pages(unittest.TestCase):
    def setUp(self):
        self.page = manpages.page("hawser-thing", "hawser 1", "2026-01-01", HELP, ["hawser"])

    def test_all_parts_are_there(self):
        for part in (".SH NAME\nhawser\\-thing \\- Do a thing, and say so\n", ".SH ARGUMENTS\n.TP\n\\fBname TEXT REQUIRED\\fR\nThe name\n",
                     "\\fB\\-\\-a\\-long\\-option\\-that\\-fills\\-its\\-column TEXT\\fR\nIts text stands below\n",
                     ".SH EXIT STATUS\n0 good, 20 failed.\n", ".SH NOTES\nA note \\- with a dash.\n", ".SH SEE ALSO\n.BR hawser (1)\n"):
            self.assertIn(part, self.page)

    def test_no_text_is_a_request(self):
        self.assertIn("hawser thing '.dots' \\e\\en\n", self.page)
        self.assertNotIn("\n.not", self.page)

    def test_commands_below_others_have_pages(self):
        helps = {(): "Top\n\nSubcommands:\n  bench                       Text\n  run  Text\n",
                 ("bench",): "Bench\n\nSubcommands:\n  coll                        Long text that\n                              goes on\n",
                 ("bench", "coll"): "Coll\n", ("run",): "Run\n"}
        self.assertEqual(manpages.helps_of(lambda *command: helps[command]), helps)

    def test_roff_takes_it(self):
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(self.page)
            file.flush()
            done = subprocess.run(["groff", "-man", "-ww", "-z", file.name], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
