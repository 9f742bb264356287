"""vLLM's push: the decode side tells the prefill side by a notification where its blocks go; that writes layer by layer
as it computes them, and its last layer's notification says that the request is there."""

import json
import uuid

import numpy
from nixl._api import nixl_agent, nixl_agent_config

from nixl_sides import receive, run, wait_until

LAYERS, BLOCKS, BLOCK_BYTES = 6, 64, 16384


def make_side():
    agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(backends=[]))
    agent.create_backend("UCX", {"num_threads": "4", "ucx_error_handling_mode": "peer"})
    caches = [numpy.zeros((BLOCKS, BLOCK_BYTES), numpy.uint8) for _ in range(LAYERS)]
    agent.register_memory([(cache.ctypes.data, cache.nbytes, 0, "") for cache in caches], "DRAM", backends=["UCX"])
    return agent, caches


def descs_of(addresses):
    return [(address + block * BLOCK_BYTES, BLOCK_BYTES, 0) for address in addresses for block in range(BLOCKS)]


def prefill(pipe):
    agent, caches = make_side()
    pipe.send(agent.get_agent_metadata())
    name = agent.add_remote_agent(receive(pipe)).decode()
    orders = []

    def step():
        orders.extend(message for messages in agent.get_new_notifs().values() for message in messages
                      if message.startswith(b"PUSH_REG:"))
        return orders

    wait_until(step)
    order = json.loads(orders[0].removeprefix(b"PUSH_REG:"))
    ours = agent.prep_xfer_dlist("", descs_of([cache.ctypes.data for cache in caches]), "DRAM")
    theirs = agent.prep_xfer_dlist(name, descs_of(order["addresses"]), "DRAM")
    handles = []
    for layer, cache in enumerate(caches):
        cache[:] = layer + 1  # The layer is computed.
        blocks = [layer * BLOCKS + block for block in order["blocks"]]
        last = layer == LAYERS - 1
        handles.append(agent.make_prepped_xfer("WRITE", ours, blocks, theirs, blocks,
                                               notif_msg=b"%s:done" % order["request"].encode() if last else b""))
        wait_until(lambda: all(agent.check_xfer_state(handle) == "DONE" for handle in handles[:-1]))
        agent.transfer(handles[-1])
    wait_until(lambda: agent.check_xfer_state(handles[-1]) == "DONE")
    for handle in handles:
        handle.release()
    assert receive(pipe) == "seen"


def decode(pipe):
    agent, caches = make_side()
    name = agent.add_remote_agent(receive(pipe))
    pipe.send(agent.get_agent_metadata())
    order = {"request": "request-7", "addresses": [cache.ctypes.data for cache in caches],
             "blocks": [1, 2, 3, 40, 63]}
    agent.send_notif(name, b"PUSH_REG:" + json.dumps(order).encode())
    wait_until(lambda: agent.check_remote_xfer_done(name.decode(), b"request-7:"))
    for layer, cache in enumerate(caches):
        assert (cache[order["blocks"]] == layer + 1).all() and (cache[0] == 0).all(), layer
    pipe.send("seen")


if __name__ == "__main__":
    run(prefill, decode)
