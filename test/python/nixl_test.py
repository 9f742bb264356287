"""The package nixl: what its clients rely on, and what the original gets wrong."""

import contextlib
import ctypes
import datetime
import gc
import inspect
import logging
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
from collections import deque

import numpy
import pytest

import nixl
from nixl import _api, _bindings, _utils
from nixl._api import nixl_agent, nixl_agent_config
from nixl.logging import get_logger
from conftest import eventually, python_command

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SIZE = 65536


class Side:
    """An agent with 64 KiB of its own, registered."""

    def __init__(self, name, **config):
        self.agent = nixl_agent(name, nixl_agent_config(**config))
        self.array = numpy.zeros(SIZE, numpy.uint8)
        self.address = self.array.ctypes.data
        self.registered = self.agent.register_memory([(self.address, SIZE, 0, "")], "DRAM")

    def rows(self, *offsets, size=1024):
        return [(self.address + offset, size, 0) for offset in offsets]

    def all_blocks(self, size=1024):
        return numpy.array([[self.address, size, 0, size, SIZE // size]], numpy.uint64)


@pytest.fixture(params=[True, False], ids=["progress_thread", "polled"])
def sides(request):
    one = Side("one", capture_telemetry=True, enable_prog_thread=request.param)
    two = Side("two")
    one.agent.add_remote_agent(two.agent.get_agent_metadata())
    two.agent.add_remote_agent(one.agent.get_agent_metadata())
    return one, two


def finish(agent, handle):
    eventually(lambda: agent.check_xfer_state(handle) == "DONE")


@contextlib.contextmanager
def raises(name):
    """By the class's name and its text, as clients look at them."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removeprefix("nixl").removesuffix("Error")).upper()
    with pytest.raises(getattr(_bindings, name)) as caught:
        yield caught
    assert str(caught.value) == f"NIXL_ERR_{words}" and caught.value.details


def test_names_and_values():
    assert nixl.nixl_agent is nixl_agent and _api.nixlBind is _bindings and _api.DEFAULT_COMM_PORT == 8888
    assert [int(getattr(_bindings, f"{name}_SEG")) for name in ("DRAM", "VRAM", "BLK", "OBJ", "FILE")] == [0, 1, 2, 3, 4]
    assert (int(_bindings.NIXL_READ), int(_bindings.NIXL_WRITE)) == (0, 1)
    assert (int(_bindings.NIXL_IN_PROG), int(_bindings.NIXL_SUCCESS), int(_bindings.NIXL_ERR_BACKEND)) == (1, 0, -3)
    assert str(_bindings.DRAM_SEG) == "nixl_mem_t.DRAM_SEG" and _bindings.DRAM_SEG.name == "DRAM_SEG"
    assert _bindings.NIXL_INIT_AGENT == "" and not _bindings.HAVE_UCX_GPU_DEVICE_API
    errors = [name for name in vars(_bindings) if name.endswith("Error")]
    assert len(errors) == 12
    assert all(getattr(_bindings, name).__mro__[1] is Exception for name in errors)
    config = _bindings.nixlAgentConfig(True, False, 0, _bindings.NIXL_THREAD_SYNC_RW, 1, 5, 100000, True)
    assert (config.useProgThread, config.syncMode, config.pthrDelay) == (True, _bindings.NIXL_THREAD_SYNC_RW, 5)
    assert config.captureTelemetry and config.etcdWatchTimeout == datetime.timedelta(seconds=5)
    for count in range(9):
        arguments = (True, False, 0, _bindings.NIXL_THREAD_SYNC_NONE, 1, 0, 100000, True)[:count]
        _bindings.nixlAgentConfig(*arguments)
    assert [_bindings.nixlAgentConfig(*(True, True, 7)[:count]).listenPort for count in range(4)] == [8888] * 3 + [7]
    with pytest.raises(TypeError):
        _bindings.nixlAgentConfig(*range(9))
    with pytest.raises(TypeError):
        nixl_agent_config(sync_mode=1)


def test_parameter_names():
    for method, names in {
            "make_prepped_xfer": "operation local_xfer_side local_indices remote_xfer_side remote_indices notif_msg "
                                 "backends skip_desc_merge",
            "initialize_xfer": "operation local_descs remote_descs remote_agent notif_msg backends",
            "register_memory": "reg_list mem_type backends", "prep_xfer_dlist": "agent_name xfer_list mem_type backends",
            "transfer": "handle notif_msg", "send_notif": "remote_agent_name notif_msg backend",
            "check_remote_xfer_done": "remote_agent_name lookup_tag backends tag_is_prefix",
            "fetch_remote_metadata": "remote_agent ip_addr port label", "create_backend": "backend initParams",
            "query_memory": "reg_list backend mem_type", "get_xfer_descs": "descs mem_type",
            "__init__": "agent_name nixl_conf instantiate_all"}.items():
        assert list(inspect.signature(getattr(nixl_agent, method)).parameters)[1:] == names.split(), method
    assert list(inspect.signature(nixl_agent_config).parameters) == [
        "enable_prog_thread", "enable_listen_thread", "listen_port", "capture_telemetry", "num_threads", "backends",
        "sync_mode"]


def test_lists():
    for kind, rows in ((_bindings.nixlXferDList, [(1, 2, 3), (4, 5, 6)]),
                       (_bindings.nixlRegDList, [(1, 2, 3, b"rw:/file"), (4, 5, 6, b"a\0b")])):
        made = kind(_bindings.FILE_SEG, rows)
        assert made.getType() == _bindings.FILE_SEG and made.descCount() == len(made) == 2 and not made.isEmpty()
        assert list(made) == rows and made[-1] == rows[1] and made.index(rows[1]) == 1
        again = pickle.loads(pickle.dumps(made))
        assert again == made and again is not made and list(again) == rows
        for index in (2, -3, 10**9):
            with pytest.raises(IndexError):
                made[index]
            with pytest.raises(IndexError):
                made.remDesc(index)
        made[0] = rows[1]
        made.addDesc(rows[0])
        made.append(rows[0])
        made.remDesc(0)
        assert list(made) == [rows[1], rows[0], rows[0]] and made != again and made != 5
        with raises("nixlNotFoundError"):
            made.index((9, 9, 9) + rows[0][3:])
        for bad in (rows[0][:2], 5, ("x",) * len(rows[0]), (-1,) + rows[0][1:], (2**64,) + rows[0][1:], None):
            with pytest.raises((TypeError, ValueError, OverflowError)):
                made.addDesc(bad)
        with pytest.raises(TypeError):
            hash(made)
        made.clear()
        assert made.isEmpty() and list(made) == [] and len(kind(_bindings.DRAM_SEG)) == len(kind(_bindings.DRAM_SEG, [])) == 0
        assert len(kind(_bindings.DRAM_SEG, 3)) == 3
        for state in (b"", b"x" * 40, again.__getstate__()[:-1]):
            with pytest.raises(ValueError):
                kind.__new__(kind).__setstate__(state)
    assert list(_bindings.nixlRegDList(_bindings.DRAM_SEG, [(1, 2, 3, "x")]).trim()) == [(1, 2, 3)]
    remote = _bindings.nixlRemoteDList(_bindings.DRAM_SEG, [(1, 2, 3, "peer")])
    assert remote[0] == (1, 2, 3, "peer") and len(remote) == 1 and remote.getType() == _bindings.DRAM_SEG


def test_lists_from_arrays():
    rows = numpy.arange(30, dtype=numpy.uint64).reshape(10, 3)
    for kind in (_bindings.nixlXferDList, _bindings.nixlRegDList):
        for array in (rows, rows.astype(numpy.int64), rows[2:5]):
            assert [entry[:3] for entry in kind(_bindings.DRAM_SEG, array)] == [tuple(row) for row in array.tolist()]
        for bad in (rows.T, rows[:, ::-1], rows[::2], rows[0], rows.astype(numpy.int32), rows.astype(float),
                    rows[:, :2].copy(), rows.reshape(5, 6), rows.astype(">u8"), numpy.empty((2, 3), object)):
            with pytest.raises(ValueError):
                kind(_bindings.DRAM_SEG, bad)


def test_descriptors_that_make_no_list(caplog):
    agent = nixl_agent("lists")
    get_logger("nixl").propagate = True
    for bad in ("text", None, 5, [(1, 2)], [(1, 2, 3, 4)], numpy.zeros((2, 4), numpy.uint64), [1, 2],
                _bindings.nixlRegDList(_bindings.DRAM_SEG)):
        caplog.clear()
        assert agent.get_xfer_descs(bad, "DRAM") is None
        assert any(record.levelno == logging.ERROR for record in caplog.records), bad
    assert agent.get_xfer_descs([(1, 2, 3)]) is None and agent.get_reg_descs([(1, 2, 3)], "DRAM") is None
    get_logger("nixl").propagate = False
    with pytest.raises(KeyError):
        agent.get_xfer_descs([(1, 2, 3)], "RAM")
    assert len(agent.get_xfer_descs([], "DRAM")) == 0 and len(agent.get_reg_descs([], "cpu")) == 0
    assert agent.get_xfer_descs([(1, 2, 3)], "cuda").getType() == _bindings.VRAM_SEG
    made = agent.get_xfer_descs([(1, 2, 3)], "DRAM")
    assert agent.get_xfer_descs(made) is made and agent.deserialize_descs(agent.get_serialized_descs(made)) == made
    with pytest.raises(TypeError):
        agent.register_memory([(1, 2, 3)], "DRAM")
    with pytest.raises(TypeError):
        agent.prep_xfer_dlist("", None)


def test_torch_tensors(sides):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    one, _ = sides
    tensor = torch.zeros(4, 256)
    assert one.agent.get_xfer_descs(tensor)[0] == (tensor.data_ptr(), 4096, 0)
    assert len(one.agent.get_reg_descs([tensor, tensor])) == 2 and one.agent.get_xfer_descs(tensor.T) is None
    one.agent.deregister_memory(one.agent.register_memory(tensor))
    rows = one.agent.get_xfer_descs(list(tensor.to(torch.bfloat16)))
    assert len(rows) == 4 and rows[1] == (rows[0][0] + 512, 512, 0)
    assert one.agent.get_xfer_descs([tensor, tensor.T]) is None and one.agent.get_reg_descs([tensor, 5]) is None


def test_plugins_and_backends():
    agent = nixl_agent("backends", nixl_agent_config(backends=[]))
    assert agent.backends == {} and "UCX" in agent.get_plugin_list() and agent.notifs == {}
    assert agent.get_plugin_mem_types("UCX")[:1] == ["DRAM_SEG"] and agent.get_plugin_params("NOTHING") == {}
    assert set(agent.get_plugin_params("UCX")) >= {"num_workers", "ucx_error_handling_mode"}
    agent.create_backend("UCX", {"num_threads": "4", "engine_config": "TLS=^rc_gda", "no_such_key": "1"})
    assert isinstance(agent.backends["UCX"], int) and "DRAM_SEG" in agent.get_backend_mem_types("UCX")
    with raises("nixlInvalidParamError"):
        agent.create_backend("UCX")
    with raises("nixlNotFoundError") as caught:
        agent.create_backend("PIGEON")
    assert "PIGEON" in caught.value.details
    with pytest.raises(KeyError):
        agent.register_memory([(1, 2, 0, "")], "DRAM", backends=["POSIX"])
    with pytest.raises(ValueError):
        agent.query_memory([], "POSIX", "FILE")
    with pytest.raises(ValueError):
        nixl_agent("")
    assert nixl_agent("partly", nixl_agent_config(backends=["UCX", "NOTHING"])).backends.keys() == {"UCX"}
    for bad in (5, None, "name\udcff"):
        with pytest.raises((TypeError, ValueError)):
            nixl_agent(bad)


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
def test_prepared_transfers(sides, operation):
    one, two = sides
    one.array[:], two.array[:] = 1, 2
    ours = one.agent.prep_xfer_dlist("NIXL_INIT_AGENT", one.all_blocks(), "DRAM")
    theirs = one.agent.prep_xfer_dlist(b"two", two.all_blocks().astype(numpy.int64), mem_type="DRAM")
    handle = one.agent.make_prepped_xfer(operation, ours, numpy.array([0, 1, 9], numpy.int32), theirs,
                                         numpy.array([5, 6, 63]), notif_msg=b"a\0message", skip_desc_merge=True)
    with raises("nixlNotPostedError"):
        one.agent.check_xfer_state(handle)
    assert one.agent.transfer(handle) in ("DONE", "PROC")
    finish(one.agent, handle)
    assert one.agent.check_xfer_state(handle) == "DONE" and one.agent.query_xfer_backend(handle) == "UCX"
    source, target, blocks = (two, one, [0, 1, 9]) if operation == "READ" else (one, two, [5, 6, 63])
    value = 2 if operation == "READ" else 1
    filled = numpy.flatnonzero((target.array.reshape(64, 1024) == value).all(axis=1)).tolist()
    assert filled == blocks and (source.array == value).all()
    assert eventually(two.agent.get_new_notifs) == {"one": [b"a\0message"]} and two.agent.get_new_notifs() == {}
    telemetry = one.agent.get_xfer_telemetry(handle)
    assert isinstance(telemetry, _bindings.nixlXferTelemetry) and telemetry.totalBytes == 3072
    assert 0 < telemetry.postDuration <= telemetry.xferDuration and telemetry.startTime > 0 and telemetry.descCount >= 1
    assert one.agent.estimate_xfer_cost(handle)[2] in ("ANALYTICAL_BACKEND", "UNKNOWN")
    one.agent.transfer(handle, b"again")  # Posted again, with another message that stays.
    finish(one.agent, handle)
    one.agent.transfer(handle)
    finish(one.agent, handle)
    got = []
    eventually(lambda: got.extend(two.agent.get_new_notifs().get("one", [])) or len(got) == 2)
    assert got == [b"again", b"again"]
    one.agent.release_xfer_handle(handle)
    handle.release()
    for call in (one.agent.check_xfer_state, one.agent.transfer, one.agent.get_xfer_telemetry):
        with raises("nixlInvalidParamError"):
            call(handle)
    one.agent.release_dlist_handle(ours)
    with raises("nixlInvalidParamError"):
        one.agent.make_prepped_xfer(operation, ours, [0], theirs, [0])


def test_one_shot_transfers(sides):
    one, two = sides
    one.array[:8] = 7
    handle = one.agent.initialize_xfer(operation="WRITE", local_descs=one.agent.get_xfer_descs(one.rows(0, size=8), "DRAM"),
                                       remote_descs=one.agent.get_xfer_descs(two.rows(100, size=8), "DRAM"),
                                       remote_agent="two", notif_msg=b"")
    one.agent.transfer(handle)
    finish(one.agent, handle)
    assert two.array[100:108].tolist() == [7] * 8 and two.agent.get_new_notifs() == {}
    with raises("nixlNotFoundError"):
        one.agent.initialize_xfer("READ", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                  one.agent.get_xfer_descs(two.rows(0), "DRAM"), "nobody")
    with raises("nixlInvalidParamError"):
        one.agent.initialize_xfer("READ", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                  one.agent.get_xfer_descs(two.rows(0, 1024), "DRAM"), "two")
    to_itself = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0, size=8), "DRAM"),
                                          one.agent.get_xfer_descs(one.rows(4096, size=8), "DRAM"), "one")
    one.agent.transfer(to_itself)
    finish(one.agent, to_itself)
    assert one.array[4096:4104].tolist() == [7] * 8


def test_wrong_transfers(sides):
    one, two = sides
    agent = one.agent
    ours, theirs = agent.prep_xfer_dlist("", one.rows(0, 1024), "DRAM"), agent.prep_xfer_dlist("two", two.rows(0, 1024), "DRAM")
    with pytest.raises(KeyError):
        agent.make_prepped_xfer("MOVE", ours, [0], theirs, [0])
    for index in ([], [2], (ctypes.c_int * 1)(2), [-1], [2**31], [2**70], numpy.array([2**40]), numpy.array([2**31], numpy.uint32), numpy.arange(0)):
        with raises("nixlInvalidParamError"):
            agent.make_prepped_xfer("READ", ours, index, theirs, index)
    with raises("nixlInvalidParamError"):
        agent.make_prepped_xfer("READ", ours, [0, 1], theirs, [0])
    with raises("nixlInvalidParamError"):
        agent.make_prepped_xfer("READ", ours, range(1, 3), theirs, range(1, 3))
    with raises("nixlInvalidParamError"):
        agent.make_prepped_xfer("READ", theirs, [0], ours, [0])
    for index in (numpy.zeros((1, 1), int), numpy.zeros(1), numpy.array(5), "text", 5, object(), numpy.array([None])):
        with pytest.raises(ValueError):
            agent.make_prepped_xfer("READ", ours, index, theirs, [0])
    for index in ([0.5], ["x"], [None]):
        with pytest.raises(TypeError):
            agent.make_prepped_xfer("READ", ours, index, theirs, [0])
    for handle in (None, 5, "text"):
        with pytest.raises(AttributeError):
            agent.make_prepped_xfer("READ", handle, [0], theirs, [0])
        with pytest.raises(AttributeError):
            agent.transfer(handle)
    with raises("nixlNotFoundError"):
        agent.prep_xfer_dlist("nobody", two.rows(0), "DRAM")
    with raises("nixlNotFoundError"):
        agent.prep_xfer_dlist("", [(1, 2, 0)], "DRAM")
    with pytest.raises(ValueError):
        agent.prep_xfer_dlist("", one.all_blocks())
    for bad in (one.all_blocks().astype(numpy.float64), one.all_blocks().astype(numpy.uint32),
                numpy.repeat(one.all_blocks(), 4, axis=0)[::2]):
        with pytest.raises(ValueError):
            agent.prep_xfer_dlist("", bad, "DRAM")
    for rows in ([0, 0, 0, 0, 0], [2**64 - 1] * 5, [one.address, 1024, 0, 2**63, 3], [one.address, 1024, 0, 1024, 10**9]):
        with pytest.raises((_bindings.nixlNotFoundError, _bindings.nixlInvalidParamError)):
            agent.prep_xfer_dlist("", numpy.array([rows], numpy.uint64), "DRAM")
    with pytest.raises(UnicodeError):
        agent.make_prepped_xfer("READ", ours, [0], theirs, [0], notif_msg="\udcff")
    with pytest.raises(TypeError):
        agent.make_prepped_xfer("READ", ours, [0], theirs, [0], notif_msg=5)
    with raises("nixlNotSupportedError"):
        agent.prep_mem_view(agent.get_xfer_descs(one.rows(0), "DRAM"))
    raw = agent.agent
    for call in (lambda: raw.getXferStatus(0), lambda: raw.postXferReq(2**63), lambda: raw.releaseXferReq(ours._handle),
                 lambda: raw.releasedDlistH(1), lambda: raw.getBackendParams(77), lambda: raw.queryXferBackend(1),
                 lambda: raw.registerMem(one.registered, [12345]), lambda: raw.makeXferReq(_bindings.NIXL_READ, 1, [0], 2, [0])):
        with raises("nixlInvalidParamError"):
            call()


def test_notifications(sides):
    one, two = sides
    one.agent.send_notif("two", "text")
    one.agent.send_notif(b"two", b"", backend="UCX")  # An empty one arrives.
    one.agent.send_notif("two", b"tag:1")
    # Whoever has no thread must be called to move on.
    eventually(lambda: one.agent.get_new_notifs() or len(two.agent.update_notifs().get("one", [])) == 3)
    assert two.agent.notifs == {"one": [b"text", b"", b"tag:1"]}
    assert two.agent.check_remote_xfer_done("one", b"tag:") and not two.agent.check_remote_xfer_done("one", b"tag:")
    assert two.agent.check_remote_xfer_done(b"one", b"ex", tag_is_prefix=False)
    assert two.agent.check_remote_xfer_done("one", b"") and not two.agent.check_remote_xfer_done("one", b"")
    two.agent.notifs["one"].append(b"left")
    with pytest.raises(TypeError):
        two.agent.check_remote_xfer_done("one", "left")  # A tag is bytes.
    with raises("nixlNotFoundError"):
        one.agent.send_notif("nobody", b"x")


def test_bytearrays_are_bytes(sides):
    """What is received into is a bytearray, and clients hand it on as it is."""
    one, two = sides
    metadata = bytearray(two.agent.get_agent_metadata())
    assert one.agent.add_remote_agent(metadata) == b"two" and one.agent.check_remote_metadata(bytearray(b"two"))
    one.agent.send_notif("two", bytearray(b"alone"))
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                       one.agent.get_xfer_descs(two.rows(0), "DRAM"), bytearray(b"two"), bytearray(b"made"))
    one.agent.transfer(handle)
    finish(one.agent, handle)
    one.agent.transfer(handle, bytearray(b"posted"))
    finish(one.agent, handle)
    eventually(lambda: one.agent.get_new_notifs() or len(two.agent.update_notifs().get("one", [])) == 3)
    assert sorted(two.agent.notifs["one"]) == [b"alone", b"made", b"posted"]
    assert one.agent.get_reg_descs([(1, 2, 3, bytearray(b"meta"))], "DRAM")[0] == (1, 2, 3, b"meta")
    with pytest.raises(TypeError):
        one.agent.send_notif("two", memoryview(b"no more than NIXL"))


def test_indices_are_whatever_gives_numbers(sides):
    one, two = sides
    ours, theirs = (one.agent.prep_xfer_dlist(name, side.all_blocks(), "DRAM") for name, side in (("", one), ("two", two)))
    one.array[:] = 5
    for source, target in [(range(3), range(1, 4)), (deque([1]), {2: 0}.keys()), ((n for n in [2, 3]), {0, 1})]:
        two.array[:] = 0
        count = len(target)
        handle = one.agent.make_prepped_xfer("WRITE", ours, source, theirs, target)
        one.agent.transfer(handle)
        finish(one.agent, handle)
        assert int((two.array == 5).sum()) == count * 1024


def test_long_notifications(sides):
    """Of any length up to 8 MiB, alone and after the data."""
    one, two = sides
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                       one.agent.get_xfer_descs(two.rows(0), "DRAM"), "two")
    for length in (64 * 1024 + 1, 1 << 20, 8 << 20):
        text = bytes(range(251)) * (length // 251 + 1)
        text = text[:length]
        one.agent.send_notif("two", text)
        # Whoever has no thread must be called to move on.
        assert eventually(lambda: one.agent.get_new_notifs() or two.agent.get_new_notifs()) == {"one": [text]}
        assert one.agent.transfer(handle, text) != "ERR"
        finish(one.agent, handle)
        assert eventually(lambda: one.agent.get_new_notifs() or two.agent.get_new_notifs()) == {"one": [text]}
    with raises("nixlNotSupportedError"):
        one.agent.send_notif("two", b"x" * ((8 << 20) + 1))
    one.agent.release_xfer_handle(handle)


def test_metadata(sides):
    one, two = sides
    name = one.agent.add_remote_agent(two.agent.get_agent_metadata())
    assert name == b"two" and one.agent.check_remote_metadata("two") and one.agent.check_remote_metadata(b"two")
    assert one.agent.check_remote_metadata("two", one.agent.get_xfer_descs(two.rows(0), "DRAM"))
    assert not one.agent.check_remote_metadata("two", one.agent.get_xfer_descs([(5, 5, 0)], "DRAM"))
    assert not one.agent.check_remote_metadata("nobody")
    one.agent.make_connection("two")
    more = numpy.zeros(4096, numpy.uint8)
    registered = two.agent.register_memory([(more.ctypes.data, 4096, 0, b"meta")], "DRAM")
    partial = two.agent.get_partial_agent_metadata(registered, inc_conn_info=True)
    assert one.agent.add_remote_agent(partial) == b"two"
    stale = one.agent.prep_xfer_dlist("two", [(more.ctypes.data, 4096, 0)], "DRAM")
    two.agent.deregister_memory(registered)
    with raises("nixlNotFoundError"):
        two.agent.deregister_memory(registered)
    one.agent.remove_remote_agent("two")
    one.agent.remove_remote_agent("two")
    assert not one.agent.check_remote_metadata("two")
    with raises("nixlNotFoundError"):
        one.agent.send_notif("two", b"x")
    assert one.agent.add_remote_agent(two.agent.get_agent_metadata()) == b"two"
    ours = one.agent.prep_xfer_dlist("", one.rows(0, size=4096), "DRAM")
    with pytest.raises((_bindings.nixlNotFoundError, _bindings.nixlRemoteDisconnectError)):
        one.agent.transfer(one.agent.make_prepped_xfer("READ", ours, [0], stale, [0]))
    for bad in (b"", b"garbage", two.agent.get_agent_metadata()[:-3], b"\0" * 5000):
        with raises("nixlMismatchError"):
            one.agent.add_remote_agent(bad)
    with raises("nixlInvalidParamError"):
        one.agent.add_remote_agent(one.agent.get_agent_metadata())
    with pytest.raises(TypeError):
        one.agent.add_remote_agent(5)


def test_a_restarted_peer_is_loaded_again():
    one, two = Side("one"), Side("two")
    one.agent.add_remote_agent(two.agent.get_agent_metadata())
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                       one.agent.get_xfer_descs(two.rows(0), "DRAM"), "two")
    one.agent.transfer(handle)
    finish(one.agent, handle)
    del two
    gc.collect()
    eventually(lambda: not one.agent.check_remote_metadata("two"))
    again = Side("two")
    assert one.agent.add_remote_agent(again.agent.get_agent_metadata()) == b"two"
    with pytest.raises((_bindings.nixlNotFoundError, _bindings.nixlRemoteDisconnectError)):
        one.agent.transfer(handle)  # It was made for the former one.


def test_telemetry_is_asked_for():
    off = Side("off")
    handle = off.agent.initialize_xfer("WRITE", off.agent.get_xfer_descs(off.rows(0), "DRAM"),
                                       off.agent.get_xfer_descs(off.rows(2048), "DRAM"), "off")
    off.agent.transfer(handle)
    finish(off.agent, handle)
    with raises("nixlNoTelemetryError"):
        off.agent.get_xfer_telemetry(handle)


def test_a_released_request_touches_nothing():
    one, two = Side("one"), Side("two")
    size = 64 << 20
    source, target = numpy.full(size, 1, numpy.uint8), numpy.zeros(size, numpy.uint8)
    two.agent.register_memory([(target.ctypes.data, size, 0, "")], "DRAM")
    one.agent.register_memory([(source.ctypes.data, size, 0, "")], "DRAM")
    one.agent.add_remote_agent(two.agent.get_agent_metadata())
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs([(source.ctypes.data, size, 0)], "DRAM"),
                                       one.agent.get_xfer_descs([(target.ctypes.data, size, 0)], "DRAM"), "two")
    one.agent.transfer(handle)
    one.agent.release_xfer_handle(handle)
    target[:] = 9
    for _ in range(20):
        assert (target[::4096] == 9).all()


def test_handles_outlive_their_agent():
    one = Side("one")
    ours, theirs = one.agent.prep_xfer_dlist("", one.rows(0), "DRAM"), one.agent.prep_xfer_dlist("one", one.rows(4096), "DRAM")
    handle = one.agent.make_prepped_xfer("WRITE", ours, [0], theirs, [0])
    del one
    gc.collect()
    handle.release()
    assert "released=True" in repr(handle) and "released=False" in repr(ours)
    ours.release()


def test_two_agents_of_one_name():
    first, second = Side("same"), Side("same")
    assert first.agent.get_agent_metadata() != second.agent.get_agent_metadata()


def test_threads(sides):
    one, two = sides
    ours = one.agent.prep_xfer_dlist("", one.all_blocks(), "DRAM")
    theirs = one.agent.prep_xfer_dlist("two", two.all_blocks(), "DRAM")
    failures = []

    def move(number):
        try:
            for turn in range(50):
                handle = one.agent.make_prepped_xfer("WRITE", ours, [number], theirs, [turn], b"x")
                one.agent.transfer(handle)
                finish(one.agent, handle)
                handle.release()
        except Exception as error:  # noqa: BLE001 - told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=move, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    got = []
    eventually(lambda: failures or got.extend(two.agent.get_new_notifs().get("one", [])) or len(got) == 200, 60)
    for thread in threads:
        thread.join()
    assert not failures and len(got) == 200


def test_files(tmp_path):
    agent = nixl_agent("files", nixl_agent_config(backends=["POSIX"]))
    memory = numpy.arange(65536, dtype=numpy.uint8)
    agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "DRAM")
    path = tmp_path / "data"
    with open(path, "wb+") as file:
        device = file.fileno()
        agent.register_memory([(0, 0, device, "")], "FILE")
        ours = agent.get_xfer_descs([(memory.ctypes.data, 1024, 0)], "DRAM")
        written = agent.initialize_xfer("WRITE", ours, agent.get_xfer_descs([(4096, 1024, device)], "FILE"), "files")
        agent.transfer(written)
        finish(agent, written)
        assert agent.query_xfer_backend(written) == "POSIX"
        assert path.read_bytes()[4096:] == memory[:1024].tobytes()
        beyond = agent.initialize_xfer("READ", ours, agent.get_xfer_descs([(4112, 1024, device)], "FILE"), "files")
        with raises("nixlBackendError") as caught:
            agent.transfer(beyond)
            finish(agent, beyond)
        assert "ends at or before byte 5120" in caught.value.details
        agent.release_xfer_handle(written)
        agent.release_xfer_handle(beyond)
    found = agent.query_memory([(0, 0, 0, str(path)), (0, 0, 0, str(path) + "?")], "POSIX", "FILE")
    assert found[0]["size"] == "5120" and found[1] is None
    with raises("nixlBackendError"):
        agent.register_memory([(0, 0, 7, f"ro:{tmp_path}/absent")], "FILE")


def test_raw_memory():
    first, second = _utils.malloc_passthru(5000), _utils.malloc_passthru(5000)
    assert first % 4096 == 0
    _utils.ba_buf(first, 5000)
    _utils.ba_buf(second, 4999)
    _utils.verify_transfer(first, second, 4999)
    import ctypes
    ctypes.memset(second + 10, 0, 1)
    with pytest.raises(AssertionError):
        _utils.verify_transfer(first, second, 4999)
    for address in (first, second):
        _utils.free_passthru(address)
    with pytest.raises(ValueError):
        _utils.malloc_passthru(0)


def test_logging_goes_to_stdout():
    code = "from nixl.logging import get_logger; get_logger('mine').info('seen'); get_logger('mine').debug('not seen')"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NIXL_")}
    out = subprocess.run(python_command(code), capture_output=True, text=True, timeout=60, env=clean)
    assert "NIXL INFO" in out.stdout and "seen" in out.stdout and "not seen" not in out.stdout
    out = subprocess.run(python_command(code), capture_output=True, text=True, timeout=60,
                         env={**clean, "NIXL_LOG_LEVEL": "ERROR"})
    assert out.stdout == ""


@pytest.mark.parametrize("end", ["", "import os; agent.agent; raise SystemExit(0)", "del agent"])
def test_processes_end_well(end):
    code = f"""
import threading, numpy
from nixl._api import nixl_agent
agent = nixl_agent("ends")
array = numpy.zeros(4096, numpy.uint8)
agent.register_memory([(array.ctypes.data, 4096, 0, "")], "DRAM")
def poll(agent):
    while True:
        agent.get_new_notifs()
        agent.check_remote_metadata("nobody")
threading.Thread(target=poll, args=(agent,), daemon=True).start()
{end}
"""
    done = subprocess.run(python_command(code), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert not re.search("Traceback|terminate|Fatal|nanobind", done.stderr), done.stderr


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("nixl_*.py") if path.name != "nixl_sides.py"))
def test_use_patterns(example):
    done = subprocess.run([sys.executable, str(EXAMPLES / example)], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0 and "both sides agree" in done.stdout, (done.stdout[-2000:], done.stderr[-4000:])
