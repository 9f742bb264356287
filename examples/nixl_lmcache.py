"""LMCache's channel: one big buffer on each side, cut into pages; the lists travel pickled beside the metadata, and either
side reads and writes pages by their numbers."""

import uuid

import numpy
from nixl._api import nixl_agent, nixl_agent_config, nixl_prepped_dlist_handle, nixl_xfer_handle

from nixl_sides import receive, run, wait_until

PAGES, PAGE_BYTES = 512, 4096


def make_side():
    agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(backends=["UCX"]))
    buffer = numpy.zeros((PAGES, PAGE_BYTES), numpy.uint8)
    registered = agent.get_reg_descs([(buffer.ctypes.data, buffer.nbytes, 0, "")], mem_type="cpu")
    agent.register_memory(registered)
    pages = agent.get_xfer_descs([(buffer.ctypes.data + page * PAGE_BYTES, PAGE_BYTES, 0) for page in range(PAGES)],
                                 mem_type="cpu")
    own: nixl_prepped_dlist_handle = agent.prep_xfer_dlist("", pages, mem_type="cpu")
    return agent, buffer, registered, pages, own


def move(agent, operation, own, own_pages, other, other_pages):
    handle: nixl_xfer_handle = agent.make_prepped_xfer(operation, own, own_pages, other, other_pages)
    state = agent.transfer(handle)

    def step():
        nonlocal state
        state = agent.check_xfer_state(handle)
        return state != "PROC"

    wait_until(step)
    agent.release_xfer_handle(handle)
    return state


def storage(pipe):
    agent, buffer, registered, pages, _ = make_side()
    buffer[:] = (numpy.arange(PAGES) % 200)[:, None]
    pipe.send((agent.get_agent_metadata(), agent.get_serialized_descs(pages)))
    assert receive(pipe) == "written"
    assert (buffer[100:110] == 222).all() and (buffer[110] == 110).all()
    agent.deregister_memory(registered)
    pipe.send("checked")


def engine(pipe):
    agent, buffer, registered, _, own = make_side()
    metadata, serialized = receive(pipe)
    name = agent.add_remote_agent(metadata)
    remote_pages = agent.deserialize_descs(serialized)
    assert len(remote_pages) == PAGES and remote_pages[0][1:] == (PAGE_BYTES, 0)
    remote = agent.prep_xfer_dlist(name, remote_pages, mem_type="cpu")
    assert move(agent, "READ", own, [7, 8, 300], remote, [1, 2, 3]) == "DONE"
    assert buffer[[7, 8, 300], 0].tolist() == [1, 2, 3]
    buffer[:10] = 222
    assert move(agent, "WRITE", own, list(range(10)), remote, list(range(100, 110))) == "DONE"
    pipe.send("written")
    assert receive(pipe) == "checked"
    agent.release_dlist_handle(remote)
    agent.remove_remote_agent(name.decode())
    agent.deregister_memory(registered)


if __name__ == "__main__":
    run(storage, engine)
