"""The package nixl: metadata that travels by itself, and the calls that few clients make."""

import os
import socket
import subprocess

import numpy
import pytest

from nixl import _bindings
from nixl._api import nixl_agent, nixl_agent_config
from conftest import eventually, python_command
from nixl_test import Side, finish, raises


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def listening():
    """Two agents that listen for metadata, and where."""
    ports = free_port(), free_port()
    return [Side(name, enable_listen_thread=True, listen_port=port) for name, port in zip(("one", "two"), ports)], ports


def knows(side, name, descs=None):
    return eventually(lambda: side.agent.check_remote_metadata(name, descs))


def knows_no_more(side, name):
    return eventually(lambda: not side.agent.check_remote_metadata(name))


def write(one, two_rows, name="two"):
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                       one.agent.get_xfer_descs(two_rows, "DRAM"), name)
    one.agent.transfer(handle)
    finish(one.agent, handle)


def test_metadata_is_sent_and_fetched_by_address(listening):
    (one, two), (_, port) = listening
    one.agent.send_local_metadata("127.0.0.1", port)
    knows(two, "one")
    one.agent.fetch_remote_metadata("two", "127.0.0.1", port)
    knows(one, "two", one.agent.get_xfer_descs(two.rows(0), "DRAM"))
    one.array[:4] = 7
    write(one, two.rows(2048))
    assert (two.array[2048:2052] == 7).all() and not two.array[:2048].any()
    one.agent.invalidate_local_metadata("127.0.0.1", port)
    knows_no_more(two, "one")
    with pytest.raises((_bindings.nixlNotFoundError, ValueError)):
        one.agent.fetch_remote_metadata("two", "127.0.0.1", 70000)


def test_partial_metadata_is_sent_by_address(listening):
    (one, two), (port, _) = listening
    more = numpy.zeros(4096, numpy.uint8)
    registered = two.agent.register_memory([(more.ctypes.data, 4096, 0, "")], "DRAM")
    two.agent.send_partial_agent_metadata(registered, True, ["UCX"], "127.0.0.1", port)
    its = one.agent.get_xfer_descs([(more.ctypes.data, 1024, 0)], "DRAM")
    knows(one, "two", its)
    assert not one.agent.check_remote_metadata("two", one.agent.get_xfer_descs(two.rows(0), "DRAM")), "it was not sent"
    one.array[:1024] = 5
    write(one, [(more.ctypes.data, 1024, 0)])
    assert (more[:1024] == 5).all()


def test_who_does_not_listen_is_not_reached():
    one = Side("one")
    port = free_port()
    one.agent.fetch_remote_metadata("two", "127.0.0.1", port)  # Answers later, or never.
    assert not one.agent.check_remote_metadata("two")


def test_remote_lists_and_memory_views(sides_of_one):
    agent = sides_of_one.agent
    rows = [(1, 2, 3, "two"), (4, 5, 6, "three")]
    made = agent.get_remote_descs(rows, "DRAM")
    assert isinstance(made, _bindings.nixlRemoteDList) and list(made) == rows and agent.get_remote_descs(made) is made
    assert agent.get_remote_descs(rows) is None and agent.get_remote_descs([(1, 2, 3)], "DRAM") is None
    with raises("nixlNotFoundError"):
        agent.prep_mem_view(made)  # These agents are not known,
    with raises("nixlNotFoundError"):
        agent.prep_mem_view(agent.get_xfer_descs([(1, 2, 3)], "DRAM"))  # this is not registered,
    for nobody in ("", "NULL_AGENT"):
        with raises("nixlNotFoundError"):
            agent.prep_mem_view(agent.get_remote_descs([(1, 2, 3, nobody)], "DRAM"))  # and this is nobody's.
    with raises("nixlNotSupportedError"):
        agent.prep_mem_view(sides_of_one.registered.trim())
    with raises("nixlNotSupportedError"):
        agent.release_mem_view(1)


@pytest.fixture
def sides_of_one():
    return Side("one")


def test_backends_are_named_in_either_case(caplog):
    side = Side("either", backends=["ucx"])
    assert list(side.agent.backends) == ["UCX"] and "Skipping" not in caplog.text
    assert side.agent.get_backend_mem_types("ucx") == side.agent.get_backend_mem_types("UCX") != []
    assert side.agent.get_plugin_params("Ucx") == side.agent.get_plugin_params("UCX") != {}
    side.agent.create_backend("posix")
    assert list(side.agent.backends) == ["UCX", "POSIX"]
    side.agent.deregister_memory(side.registered, ["ucx"])
    with pytest.raises(KeyError, match="not instantiated"):
        side.agent.get_new_notifs(backends=["obj"])


def test_all_plugins_are_instantiated():
    assert nixl_agent("none", nixl_agent_config(backends=[]), instantiate_all=True).backends == {}  # The config counts.
    agent = nixl_agent("all", instantiate_all=True)
    assert set(agent.backends) == set(agent.get_plugin_list()) >= {"UCX", "POSIX"}
    assert all(agent.get_backend_mem_types(name) for name in agent.backends)


def test_notifications_of_a_backend(sides_of_one):
    two = Side("two")
    one = sides_of_one
    one.agent.add_remote_agent(two.agent.get_agent_metadata())
    two.agent.add_remote_agent(one.agent.get_agent_metadata())
    one.agent.send_notif("two", b"hello", "UCX")
    assert eventually(lambda: two.agent.get_new_notifs(backends=["UCX"])) == {"one": [b"hello"]}
    assert two.agent.get_new_notifs(["UCX"]) == {} and two.agent.update_notifs(["UCX"]) == {}
    with pytest.raises(KeyError):
        two.agent.get_new_notifs(["POSIX"])


TELEMETRY = """
from nixl_test import Side, finish
import sys
one = Side("one", capture_telemetry=sys.argv[1] == "asked")
handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                   one.agent.get_xfer_descs(one.rows(2048), "DRAM"), "one")
one.agent.transfer(handle)
finish(one.agent, handle)
try:
    times = one.agent.get_xfer_telemetry(handle)
    print("TIMES", times.totalBytes, times.descCount)
except Exception as error:
    print("TIMES", error)
"""


@pytest.mark.parametrize("variable, asked, found", [("yes", "no", "1024 1"), ("no", "asked", "NIXL_ERR_NO_TELEMETRY"),
                                                    (None, "asked", "1024 1"), (None, "no", "NIXL_ERR_NO_TELEMETRY")])
def test_telemetry_by_variable(variable, asked, found):
    """An explicit word there wins."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ["PYTHONPATH"]])}
    environment.pop("NIXL_TELEMETRY_ENABLE", None)
    if variable:
        environment["NIXL_TELEMETRY_ENABLE"] = variable
    done = subprocess.run(python_command(TELEMETRY) + [asked], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert next(line for line in done.stdout.splitlines() if line.startswith("TIMES")) == f"TIMES {found}"


def test_handles_that_nobody_released_go_with_their_agent():
    """Also those whose release failed: the agent has them in its own table, and needs no list of them."""
    one = Side("one")
    handle = one.agent.initialize_xfer("WRITE", one.agent.get_xfer_descs(one.rows(0), "DRAM"),
                                       one.agent.get_xfer_descs(one.rows(2048), "DRAM"), "one")
    number = handle._handle
    handle._released = True  # As if its finalizer had failed.
    del handle
    with raises("nixlNotPostedError"):
        one.agent.agent.getXferStatus(number)
    del one
