"""SGLang's disaggregation: the prefill side writes pages of the KV pool, prepared on both sides as strided rows, and one
small "aux" buffer by descriptors of its own; a failed peer is told from a slow one by the class of the error."""

import uuid

import numpy
from nixl._api import nixl_agent, nixl_agent_config, nixl_thread_sync_t

from nixl_sides import receive, run, wait_until

POOLS, PAGES, PAGE_BYTES, AUX_BYTES = 8, 128, 4096, 512


def make_side():
    config = nixl_agent_config(backends=[], num_threads=8, sync_mode=nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT)
    agent = nixl_agent(str(uuid.uuid4()), config)
    agent.create_backend("UCX", {})
    assert "UCX" in agent.get_plugin_list()
    pools = [numpy.zeros((PAGES, PAGE_BYTES), numpy.uint8) for _ in range(POOLS)]
    aux = numpy.zeros(AUX_BYTES, numpy.uint8)
    agent.register_memory([(pool.ctypes.data, pool.nbytes, 0, "") for pool in pools], "DRAM")
    agent.register_memory([(aux.ctypes.data, aux.nbytes, 0, "")], "DRAM")
    return agent, pools, aux


def strided(addresses):
    return numpy.array([(address, PAGE_BYTES, 0, PAGE_BYTES, PAGES) for address in addresses], numpy.uint64)


def prefill(pipe):
    agent, pools, aux = make_side()
    metadata, pool_addresses, aux_address, pages = receive(pipe)
    peer = agent.add_remote_agent(metadata).decode()
    assert agent.check_remote_metadata(peer)
    for pool in pools:
        pool[:] = numpy.random.default_rng(pool.ctypes.data % 1000).integers(0, 256, pool.shape, numpy.uint8)
    aux[:] = 42
    ours = agent.prep_xfer_dlist("", strided([pool.ctypes.data for pool in pools]), "DRAM")
    theirs = agent.prep_xfer_dlist(peer, strided(pool_addresses), "DRAM")
    numbers = (numpy.arange(POOLS)[:, None] * PAGES + numpy.array(pages)[None, :]).ravel()
    kv = agent.make_prepped_xfer("WRITE", ours, numbers, theirs, numbers)
    source = agent.get_xfer_descs([(aux.ctypes.data, AUX_BYTES, 0)], "DRAM")
    target = agent.get_xfer_descs(numpy.vstack([[aux_address, AUX_BYTES, 0]]).astype(numpy.uint64), "DRAM")
    small = agent.initialize_xfer("WRITE", source, target, peer, b"")
    for handle in (kv, small):
        assert agent.transfer(handle) != "ERR"
    wait_until(lambda: all(agent.check_xfer_state(handle) == "DONE" for handle in (kv, small)))
    for handle in (kv, small):
        agent.release_xfer_handle(handle)
    pipe.send([pool[pages].tobytes() for pool in pools])
    # The decode side ends; what was prepared for it is of no use any more, and no later call hangs.
    wait_until(lambda: not agent.check_remote_metadata(peer))
    try:
        agent.transfer(agent.make_prepped_xfer("WRITE", ours, numbers, theirs, numbers))
    except Exception as error:  # noqa: BLE001 - clients look at the class's name
        assert type(error).__name__ in ("nixlRemoteDisconnectError", "nixlNotFoundError"), error
    else:
        raise AssertionError("a transfer to a peer that is gone was accepted")
    agent.remove_remote_agent(peer)
    pipe.send("gone")


def decode(pipe):
    agent, pools, aux = make_side()
    pages = [5, 6, 7, 90, 127]
    pipe.send((agent.get_agent_metadata(), [pool.ctypes.data for pool in pools], aux.ctypes.data, pages))
    for number, wanted in enumerate(receive(pipe)):
        assert pools[number][pages].tobytes() == wanted and not pools[number][0].any()
    assert (aux == 42).all()
    del agent  # Its peers are told.
    assert receive(pipe) == "gone"


if __name__ == "__main__":
    run(prefill, decode)
