"""vLLM's pull: the decode side reads a request's blocks from the prefill side, all layers at once, and tells it by a
notification that the blocks may be freed. Tables of regions x blocks are prepared once per peer."""

import uuid

import numpy
from nixl._api import nixl_agent, nixl_agent_config

from nixl_sides import receive, run, wait_until

LAYERS, BLOCKS, BLOCK_BYTES = 4, 256, 8192


def make_side():
    agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(num_threads=4, capture_telemetry=True))
    caches = [numpy.zeros((BLOCKS, BLOCK_BYTES), numpy.uint8) for _ in range(LAYERS)]
    regions = [(cache.ctypes.data, cache.nbytes, 0, "") for cache in caches]
    agent.register_memory(agent.get_reg_descs(regions, "DRAM"), backends=["UCX"])
    return agent, caches, regions


def rows_of(regions):
    """One row of (address, length, device, stride, count) per layer: all of its blocks."""
    return numpy.array([(address, BLOCK_BYTES, device, BLOCK_BYTES, BLOCKS) for address, _, device, _ in regions],
                       dtype=numpy.uint64)


def descriptor_ids(blocks):
    """The blocks of all layers, as numbers in the prepared table."""
    return (numpy.arange(LAYERS)[:, None] * BLOCKS + numpy.asarray(blocks)[None, :]).ravel().astype(numpy.int32)


def prefill(pipe):
    agent, caches, regions = make_side()
    for layer, cache in enumerate(caches):
        cache[:] = (numpy.arange(BLOCKS)[:, None] + 17 * layer) % 251
    pipe.send((agent.get_agent_metadata(), regions))
    finished = set()

    def step():
        for messages in agent.get_new_notifs().values():
            finished.update(message.decode("utf-8").rsplit(":", 1)[0] for message in messages)
        return {"request-0", "request-1"} <= finished

    wait_until(step)
    pipe.send("freed")


def decode(pipe):
    agent, caches, regions = make_side()
    metadata, their_regions = receive(pipe)
    prefill_name = agent.add_remote_agent(metadata)
    ours = agent.prep_xfer_dlist("NIXL_INIT_AGENT", rows_of(regions), mem_type="DRAM")
    theirs = agent.prep_xfer_dlist(prefill_name, rows_of(their_regions), mem_type="DRAM")
    plan = {"request-0": (range(0, 40), range(100, 140)), "request-1": ([3, 9, 200, 77], [0, 1, 2, 3])}
    handles = {}
    for request, (remote_blocks, local_blocks) in plan.items():
        handles[request] = agent.make_prepped_xfer("READ", ours, descriptor_ids(local_blocks), theirs,
                                                   descriptor_ids(remote_blocks), notif_msg=f"{request}:1".encode())
        agent.transfer(handles[request])
    wait_until(lambda: all(agent.check_xfer_state(handle) == "DONE" for handle in handles.values()))
    for request, (remote_blocks, local_blocks) in plan.items():
        telemetry = agent.get_xfer_telemetry(handles[request])
        assert telemetry.totalBytes == LAYERS * len(local_blocks) * BLOCK_BYTES
        agent.release_xfer_handle(handles[request])
        for layer, cache in enumerate(caches):
            wanted = (numpy.asarray(remote_blocks) + 17 * layer) % 251
            assert (cache[list(local_blocks)] == wanted[:, None]).all(), (request, layer)
    assert receive(pipe) == "freed"
    agent.release_dlist_handle(ours)
    agent.release_dlist_handle(theirs)
    agent.remove_remote_agent(prefill_name)


if __name__ == "__main__":
    run(prefill, decode)
