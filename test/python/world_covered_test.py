"""Worlds over tcp at the levels `encrypt` and `authenticate`, and over quic: what other files try over shm and tcp, in a selection
that suits CI, and all of it with TEST_FULL=1. The ways come by the environment, as users set them."""

import os
import subprocess
import sys

import numpy
import pytest

import hawser

import nexar_list_test as nexar_list
import nexar_sparse_test as nexar_sparse
import world_agent_test as world_agents
import world_test as worlds_test

from conftest import SCALE

FULL = os.environ.get("TEST_FULL") == "1"
WAYS = {"tcp_encrypt": ("tcp", "encrypt"), "tcp_authenticate": ("tcp", "authenticate"), "quic": ("quic", "encrypt")}
OURS = None  # As the transport of a test of nexar's list: what the environment says.


def is_quic_here():
    try:
        with hawser.Agent("probe", backends=["quic"]):
            return True
    except hawser.Error:
        return False


@pytest.fixture(params=WAYS, autouse=True)
def way(request, monkeypatch):
    backend, level = WAYS[request.param]
    if backend == "quic" and not is_quic_here():
        pytest.skip("quic is not here")
    monkeypatch.setenv("HAWSER_BACKENDS", backend)
    monkeypatch.setenv("HAWSER_SECURITY", level)
    return request.param


def full(*values):
    """Values that only the longer version takes."""
    return values if FULL else ()


def test_a_worlds_settings_are_those_of_the_way(way):
    world, _ = hawser.World.local(2)
    backend, level = WAYS[way]
    told = {name: value for name, value, _ in world.config()}
    assert (told["backends"], told["security"]) == (backend, level)


MARK = "what nobody on this host may read "

# Copies what goes over loopback in a network namespace of its own, where nobody else sends.
RANKS = """
import socket, sys, threading
import hawser

mark = sys.argv[1].encode() * 2000
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
cable.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
cable.bind(("lo", 0))
cable.settimeout(0.3)
worlds = hawser.World.local(2)
got = []
reader = threading.Thread(target=lambda: got.append(worlds[1].recv(source=0).data))
reader.start()
worlds[0].send(mark, 1)
reader.join()
assert got == [mark]
frames, found = 0, False
try:
    while True:
        found = mark[:len(mark) // 500] in cable.recv(1 << 17) or found
        frames += 1
except TimeoutError:
    print(frames, found)
"""


def listen_beside_ranks(**environment):
    """What a listener on loopback saw of a message between two ranks: frames, and whether there was text in clear."""
    command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-c", RANKS, MARK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * SCALE, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    frames, found = done.stdout.split()
    return int(frames), found == "True"


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_nobody_reads_what_ranks_say_on_this_host(way):
    frames, is_clear = listen_beside_ranks()
    assert frames > 5
    # At `authenticate` the kernel vouches for both ends of loopback, so tcp is in clear there.
    assert is_clear == (way == "tcp_authenticate")


def test_messages():
    worlds_test.test_messages()


@pytest.mark.parametrize("priority", ["critical", "realtime", "bulk"])
def test_messages_of_each_class(priority):
    worlds_test.test_a_message_has_a_class(priority)


def test_messages_of_several_parts():
    nexar_list.test_c13_messages_of_several_parts(OURS)


def test_messages_in_any_order_of_tags():
    nexar_list.test_c11_messages_of_one_tag_keep_their_order_whatever_their_size(OURS)
    nexar_list.test_c11_receives_in_any_order_of_tags_and_sizes_that_do_not_fit(OURS)


@pytest.mark.parametrize("size", range(1, 9))
def test_collectives_of_1_to_8_ranks(size):
    worlds = hawser.World.local(size)
    worlds_test.on_all(worlds, worlds_test.check_collectives if size > 1 else lambda world: world.barrier())
    if size == 1:
        x = numpy.arange(5.0)
        worlds[0].all_reduce(x)
        worlds[0].broadcast(x)
        assert list(x) == [0, 1, 2, 3, 4]
    worlds_test.on_all(worlds, lambda world: world.shutdown(10))


@pytest.mark.parametrize("size", [2, *full(3, 5, 8)])
def test_all_reduces_of_all_types(size):
    nexar_list.test_c01_all_reduce_of_all_types_is_right_and_the_same_on_all_ranks(OURS, size)


@pytest.mark.parametrize("sizes", [(3, 2_500_000), *full((2, (64 << 20) // 4 + 1), (4, 3_000_001))])
def test_large_all_reduces(sizes):
    nexar_list.test_c02_large_sizes_that_no_segment_divides(OURS, *sizes)


def test_sizes_beside_each_border():
    nexar_list.test_c02_sizes_beside_each_border(OURS, 2)


def test_many_collectives_in_flight():
    nexar_list.test_c14_many_collectives_in_flight_with_delays(OURS)


def test_groups():
    worlds_test.test_groups()


def test_groups_of_all_kinds():
    nexar_list.test_c18_splits_of_all_kinds_work_beside_their_parent(OURS)


def test_calls():
    worlds_test.test_calls()


def test_calls_large_and_many():
    nexar_list.test_c20_calls_of_all_sizes_many_at_once_and_their_errors(OURS)


def test_batches():
    world_agents.test_batches()


def test_sparse_worlds():
    nexar_sparse.test_c25_calls_and_groups("regular:2", 5)


def test_a_send_that_its_deadline_cut_harms_nothing():
    nexar_list.test_c31_a_bulk_send_that_its_deadline_cut_harms_no_later_call(OURS)


def test_a_rank_that_leaves_is_told_and_the_others_shrink():
    worlds_test.test_failures_are_told_and_acknowledged()


def test_a_death_behind_sends_that_are_blocked():
    nexar_list.test_c36_a_death_is_seen_while_sends_to_another_are_blocked()


def test_ranks_that_are_killed_and_worlds_that_shrink(tmp_path):
    worlds_test.test_ranks_that_live_go_on_in_smaller_worlds(tmp_path, True)


if FULL:
    @pytest.mark.parametrize("driven", [True, False])
    @pytest.mark.parametrize("die", [False, True])
    def test_processes(tmp_path, die, driven):
        worlds_test.test_processes(tmp_path, die, driven)

    def test_ranks_that_poll_are_killed(tmp_path):
        worlds_test.test_ranks_that_live_go_on_in_smaller_worlds(tmp_path, False)

    def test_a_rank_that_is_stopped(tmp_path):
        nexar_list.test_c21_c33_a_rank_that_is_stopped_has_failed_and_hears_of_it_when_it_runs_again(tmp_path, OURS)

    def test_a_world_recovers_by_itself(tmp_path):
        worlds_test.test_a_world_recovers_by_itself(tmp_path)
