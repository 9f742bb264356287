"""Agents over QUIC behind a proxy that does to datagrams what networks do, and worse. See udp_proxy.py."""

import numpy
import pytest

import hawser
from quic_test import PATIENCE, WHY_NOT, noise, ports_of_this_process
from udp_proxy import UdpProxy

from conftest import SCALE

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
SIZE = 1 << 20
WEATHERS = {
    "lost": {"lost": 0.05},
    "doubled": {"doubled": 0.2},
    "late": {"late": 0.2},
    "changed": {"changed": 0.05},
    "cut": {"cut": 0.05},
    "all": {"lost": 0.02, "doubled": 0.05, "late": 0.1, "changed": 0.02, "cut": 0.02, "latency": 0.0005},
}


@pytest.fixture
def target():
    """An agent and its port."""
    before = set(ports_of_this_process())
    with hawser.Agent("target", backends=["quic"]) as agent:
        agent.port = (set(ports_of_this_process()) - before).pop()
        yield agent


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("weather", WEATHERS)
def test_transfers_arrive_as_they_were(target, weather, seed):
    """Writes, reads, notifications and messages in order."""
    theirs = target.empty(SIZE, numpy.uint8, name="m")
    with UdpProxy(target.port, seed, **WEATHERS[weather]) as proxy, hawser.Agent("source", backends=["quic"]) as source:
        peer = source.find_peer(f"target@127.0.0.1:{proxy.port}#{target.ticket}", timeout=20 * SCALE)
        own, got = source.empty(SIZE, numpy.uint8, name="own"), source.empty(SIZE, numpy.uint8, name="got")
        for number in range(5):
            own[:] = noise(SIZE, 10 * seed + number)
            source.write(peer, own, peer.range("m", 0, SIZE), notify=str(number).encode()).wait(PATIENCE)
            assert (theirs == own).all()
            source.read(peer, peer.range("m", 0, SIZE), got).wait(PATIENCE)
            assert (got == own).all()
            while (told := target.take_notification()) is None:
                target.wait(1)
            assert told.data == str(number).encode()
        assert proxy.passed > 100
        assert all(proxy.done[what] > 0 for what, chance in proxy.chances.items() if chance > 0), proxy.done


@pytest.mark.parametrize("lost", [0.5, 1.0])
def test_where_too_little_arrives_each_transfer_is_whole_or_a_typed_error(target, lost):
    """Once the session stands, half of all datagrams are lost, or all: each transfer arrives whole, or ends with an error that
    says what failed; and once the weather is good again the same peer can be reached. Where the proxy lets nothing through
    the agent goes round it, by the address that the peer itself has told."""
    theirs = target.empty(SIZE, numpy.uint8, name="m")
    settings = {"peer_timeout": "1s", "heartbeat": "100ms"}
    with UdpProxy(target.port, 7) as proxy, hawser.Agent("source", backends=["quic"], settings=settings) as source:
        peer = source.find_peer(f"target@127.0.0.1:{proxy.port}#{target.ticket}", timeout=20 * SCALE)
        own = source.empty(SIZE, numpy.uint8, name="own")
        own[:] = 1
        source.write(peer, own, peer.range("m", 0, SIZE)).wait(PATIENCE)
        proxy.chances["lost"] = lost
        outcomes = []
        for number in range(2, 5):
            own[:] = number
            try:
                source.write(peer, own, peer.range("m", 0, SIZE)).wait(4 * SCALE)
                assert (theirs == number).all()
                outcomes.append("good")
            except (hawser.TimedOutError, hawser.DisconnectedError):
                outcomes.append("error")
        assert lost < 1 or outcomes[-1] == "good", outcomes
        proxy.chances["lost"] = 0.0
        own[:] = 9
        again = source.find_peer(f"target@127.0.0.1:{proxy.port}#{target.ticket}", timeout=20 * SCALE)
        source.write(again, own, again.range("m", 0, SIZE)).wait(PATIENCE)
        assert (theirs == 9).all()
