"""README's example, and the first one of docs/python.md when the receiver starts second, as they stand there."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import SCALE, eventually

SOURCE = pathlib.Path(os.environ.get("HAWSER_TEST_SOURCE", pathlib.Path(__file__).parents[2]))


def examples(folder):
    """Both sides. The folder is another one, and the times are those of a busy machine."""
    text = (SOURCE / "docs" / "python.md").read_text()
    sides = re.findall(r"```python\n(.*?)```", text, re.S)[:2]
    assert 'Agent("prefill-0"' in sides[0] and 'Agent("decode-3"' in sides[1]
    patient = []
    for side in sides:
        assert "/run/hawser" in side
        side = side.replace("/run/hawser", str(folder))
        patient.append(side.replace("timeout=5", f"timeout={60 * SCALE}").replace("deadline=0.5", f"deadline={30 * SCALE}"))
    return patient


def test_the_readmes_example_prints_what_it_says():
    example = re.search(r"```python\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).group(1)
    said = re.search(r"print\(.*\) *# (.*)", example).group(1)
    example = example.replace(".wait(5)", f".wait({60 * SCALE})")
    ran = subprocess.run([sys.executable, "-c", example], stdout=subprocess.PIPE, text=True, timeout=90 * SCALE)
    assert ran.returncode == 0 and ran.stdout == said + "\n" == "b'done' 42\n"


@pytest.mark.parametrize("round", range(8))
def test_the_receiver_may_start_second(tmp_path, round):
    folder = tmp_path / "cards"
    sender, receiver = examples(folder)
    first = subprocess.Popen([sys.executable, "-c", sender])
    second = None
    try:
        eventually(lambda: folder.is_dir() and any("prefill-0" in name for name in os.listdir(folder)), 60)
        second = subprocess.Popen([sys.executable, "-u", "-c", receiver], stdout=subprocess.PIPE, text=True)
        assert first.wait(90 * SCALE) == 0
        assert second.stdout.readline() == "prefill-0 b'request-17'\n"
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.wait()
