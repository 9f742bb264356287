"""Grants and unlisted regions."""

import time

import numpy
import pytest

import hawser
from conftest import SCALE


@pytest.fixture(params=["shm", "tcp"])
def pair(request):
    settings = {"environment": False, "backends": [request.param, "loopback"]}
    with hawser.Agent("holder", **settings) as holder, hawser.Agent("owner", **settings) as owner:
        yield holder, owner, holder.add_peer(owner.card())


def test_a_grant_is_used_as_a_region(pair):
    holder, owner, peer = pair
    memory = numpy.zeros(64 * 1024, numpy.uint8)
    region = owner.add_region(memory, "hidden", listed=False)
    assert not region.listed
    assert "hidden" not in peer.region_names()
    grant = region.grant(4096, 4096, rights="write", expiry=None)
    granted = holder.import_grant(grant.data)
    assert (len(granted), granted.rights, granted.name, granted.peer) == (4096, "write", "hidden", peer)
    source = holder.add_region(numpy.full(4096, 7, numpy.uint8), listed=False)
    holder.plan_write(peer, source.range(), granted.range()).run()
    assert (memory[4096:8192] == 7).all() and not memory[:4096].any() and not memory[8192:].any()
    holder.plan_write(peer, source.table(1024), peer.import_grant(grant.data).table(1024)).run()
    with pytest.raises(hawser.DeniedError, match="no right to read"):
        holder.plan_read(peer, granted.range(), source.range())
    with pytest.raises(hawser.InvalidError, match="leave the grant"):
        granted.range(1, 4096)
    assert not grant.ended
    grant.revoke()
    assert grant.ended
    with pytest.raises(hawser.DeniedError, match="has ended"):
        holder.plan_write(peer, source.range(), granted.range()).run()


def test_grants_end_by_time_by_use_and_with_their_region(pair):
    holder, owner, peer = pair
    region = owner.allocate(8192, listed=False)
    source = holder.allocate(8192)

    def write(granted):
        holder.plan_write(peer, source.range(), granted.range()).run()

    def soon_ended(grant):
        deadline = time.monotonic() + 30 * SCALE
        while not grant.ended and time.monotonic() < deadline:
            owner.wait(0.01)
        return grant.ended

    brief = region.grant(rights="write", expiry=0.05)
    assert soon_ended(brief)
    with pytest.raises(hawser.DeniedError, match="has ended"):
        write(holder.import_grant(brief.data))
    once = region.grant(rights="write", expiry=60, single_use=True)
    granted = holder.import_grant(once.data)
    assert granted.single_use
    write(granted)
    with pytest.raises(hawser.DeniedError, match="is for one transfer"):
        write(granted)
    assert soon_ended(once)
    left = region.grant(rights="write", expiry=60)
    region.close()
    assert left.ended


def test_a_grant_for_a_peer(pair):
    holder, owner, peer = pair
    region = owner.allocate(4096)
    to_holder = owner.add_peer(holder.card())
    grant = region.grant(rights="read", expiry=60, peer=to_holder)
    target = holder.allocate(4096)
    holder.plan_read(peer, holder.import_grant(grant.data).range(), target.range()).run()
    other = region.grant(rights="read", expiry=60, peer=owner.self())
    with pytest.raises(hawser.DeniedError, match="for another agent than 'holder'"):
        holder.import_grant(other.data)


@pytest.mark.parametrize("arguments, what", [
    ({"offset": 1, "size": 4096}, "leave the region"),
    ({"size": 0}, "no bytes"),
    ({"expiry": 0}, "not positive"),
    ({"expiry": -1}, "negative"),
    ({"rights": "none"}, "right"),
    ({"rights": "all"}, "rights = 'all'"),
])
def test_wrong_grants_are_refused(pair, arguments, what):
    _, owner, _ = pair
    region = owner.allocate(4096)
    with pytest.raises(hawser.InvalidError, match=what):
        region.grant(**{"rights": "write", "expiry": 60, **arguments})


def test_wrong_bytes_are_refused(pair):
    holder, _, peer = pair
    with pytest.raises(hawser.CorruptError):
        holder.import_grant(b"no grant")
    with pytest.raises(hawser.CorruptError):
        peer.import_grant(b"")
