"""What somebody new to the package tries first: short forms, looking at objects, and mistakes that must be told well."""

import pathlib
import subprocess

import numpy
import pytest

import hawser
from conftest import eventually, python_command


def test_the_only_agent_need_not_be_named():
    with hawser.Agent("only") as agent:
        array = hawser.empty((2, 8), "float32", name="array")
        assert agent.range_of(array).region.name == "array"
        with hawser.Agent("second"):
            with pytest.raises(hawser.InvalidError, match="2 open agents"):
                hawser.empty(4)
        assert hawser.empty(4).size == 4
    with pytest.raises(hawser.InvalidError, match="0 open agents"):
        hawser.empty(4)


def test_agents_are_closed_when_the_interpreter_ends():
    code = """
import ctypes, sys, hawser
agent = hawser.Agent("child")
peer = agent.add_peer(bytes.fromhex(sys.argv[1]))
peer.connect(20)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(agent))       # As whatever keeps it beyond the end of all modules.
"""
    with hawser.Agent("watches") as agent:
        subprocess.run([*python_command(code), agent.card().hex()], check=True, timeout=60)
        kinds = {}
        eventually(lambda: kinds.update((event.kind, event) for event in [agent.take_event()] if event) or
                   "down" in kinds)
        assert "goodbye" in str(kinds["down"].cause)


def test_objects_tell_what_they_are(pair, tmp_path):
    one, two = pair
    region = one.range_of(one.array).region
    table = region.table(4096)
    plan = one.plan_write(one.peer, table, one.peer.table("memory", 4096), [1, 2], [3, 4])
    transfer = plan.submit(notify=b"x" * 100)
    transfer.wait(20)
    assert repr(one) == "<hawser.Agent 'one'>" and repr(one.peer) == "<hawser.Peer 'two', up>"
    assert repr(region) == "<hawser.Region 'memory' of 65536 bytes, read_write>"
    assert repr(region.range(8, 16)) == "<hawser.Range of 16 bytes at 8 of 'memory'>"
    assert repr(one.peer.range("memory", 8, 16)) == "<hawser.RemoteRange of 16 bytes at 8 of 'memory'>"
    assert repr(table) == "<hawser.Table of 16 ranges>"
    assert repr(one.peer.table("memory", 64)) == "<hawser.Table of 1024 ranges of a peer>"
    assert repr(plan) == "<hawser.Plan: write of 8192 bytes in 2 ranges>"
    assert repr(transfer) == "<hawser.Transfer ok, 8192 bytes>"
    note = eventually(two.take_notification)
    assert repr(note).startswith("<hawser.Notification b'xxx") and repr(note).endswith("... from 'one'>")
    two.open_channel(20, 4)
    eventually(lambda: _sends(one.peer, 20, b"words"))
    assert repr(eventually(lambda: two.take_message(20))) == "<hawser.Message b'words' from 'one' on channel 20>"
    assert repr(eventually(one.take_event)) == "<hawser.PeerEvent: 'two' up>"
    operation = one.fetch_add(one.peer.range("memory", 0, 8), 1)
    operation.wait(20)
    assert repr(operation) == "<hawser.AtomicOp ok>"
    directory = hawser.file_directory(str(tmp_path / "cards"))
    directory.put("key", b"value")
    assert repr(directory) == "<hawser.Directory: file>"
    assert repr(directory.get("key")) == "<hawser.DirectoryEntry 'key': b'value'>"
    (tmp_path / "file").write_bytes(b"12345")
    assert repr(hawser.query_file(tmp_path / "file")) == "<hawser.FileInfo: 5 bytes>"
    assert repr(hawser.query_file(tmp_path / "none")) == "<hawser.FileInfo: not there>"
    two.close()
    assert repr(two) == "<hawser.Agent 'two', closed>"


def _sends(peer, channel, data):
    try:
        peer.send(channel, data)
    except hawser.BusyError:  # The peer has not heard yet that it may.
        return False
    return True


def test_a_directory_may_be_named_by_a_text(tmp_path):
    with hawser.Agent("one", directory=f"file:{tmp_path}/cards") as one, \
            hawser.Agent("two", directory=hawser.file_directory(f"{tmp_path}/cards")):
        assert one.find_peer("two", timeout=20).name == "two"
    with pytest.raises(hawser.InvalidError, match="file:/path"):
        hawser.Agent("three", directory=str(tmp_path))
    with pytest.raises(hawser.InvalidError, match="file_directory"):
        hawser.Agent("three", directory=5)


def test_folders_and_files_may_be_paths(tmp_path):
    (tmp_path / "odd\udcff").mkdir()
    for folder in (tmp_path / "cards", str(tmp_path / "text"), tmp_path / "odd\udcff" / "inner"):
        directory = hawser.file_directory(folder)
        directory.put("key", b"value")
        assert directory.get("key").value == b"value" and pathlib.Path(folder).is_dir()
    config = tmp_path / "hawser.toml"
    config.write_text('name = "from-a-file"\n')
    with hawser.Agent(config_file=config) as agent:
        assert agent.name == "from-a-file"
    with pytest.raises(hawser.InvalidError, match="file_directory"):
        hawser.file_directory(5)


@pytest.mark.parametrize("make", [lambda: numpy.array([object(), object()]),
                                  lambda: numpy.zeros(4, [("number", "i8"), ("thing", "O")])])
def test_arrays_of_objects_are_no_memory_to_move(pair, make):
    one, _ = pair
    with pytest.raises(hawser.InvalidError, match="Python objects"):
        one.add_region(make(), "objects")


def test_a_part_that_is_not_contiguous_is_told_by_the_call_that_was_given_it(pair):
    one, _ = pair
    square = one.array.reshape(256, 256)
    with pytest.raises(hawser.InvalidError, match="^invalid: add_region: .*not contiguous"):
        one.add_region(numpy.zeros((8, 8))[:, ::2], "part")
    with pytest.raises(hawser.InvalidError, match="^invalid: range_of: .*not contiguous"):
        one.range_of(square[:, :8])
    with pytest.raises(hawser.InvalidError, match="^invalid: range_of: .*not contiguous"):
        one.write(one.peer, square[:, 0], one.peer.range("memory", 0, 256))


def test_a_peer_whose_card_is_older_than_its_regions(pair):
    one, _ = pair
    with hawser.Agent("late") as late:
        known = one.add_peer(late.card())
        with late.allocate(4096, "memory"):
            with pytest.raises(hawser.NotFoundError, match="card .*region"):
                known.region("memory")
            assert one.add_peer(late.card()).region("memory").size == 4096


@pytest.mark.parametrize("package", ["hawser", "nixl._bindings"])
def test_a_subinterpreter_is_refused_and_changes_nothing_for_the_main_one(package):
    words = ["subinterpreter", "once per process"]  # The second is numpy's, which nixl imports first.
    code = f"""
import hawser, {package}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
agent = hawser.Agent("main", environment=False)
inner = interpreters.create()
refused = "try:\\n import {package}\\nexcept ImportError as why: assert any(one in str(why) for one in {words}), why\\n"
refused += "else: raise SystemExit('it was imported')"
assert interpreters.run_string(inner, refused) is None
assert len(agent.card()) > 0 and not agent.closed
with hawser.Agent("after", environment=False) as after:
    assert after.name == "after"
"""
    ended = subprocess.run(python_command(code), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
