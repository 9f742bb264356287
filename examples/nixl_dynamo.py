"""Dynamo's connector: one-shot descriptors per operation, all arguments by keyword, the peer's metadata added for each
operation and removed with the last one, completion told to the other side by a notification that it looks for by hand."""

import uuid

import numpy
from nixl._api import nixl_agent

from nixl_sides import receive, run, wait_until

BYTES = 1 << 20


class Descriptor:
    """Registered memory that goes with its owner."""

    def __init__(self, agent, array):
        self.agent, self.array = agent, array
        self.registered = agent.register_memory([(array.ctypes.data, array.nbytes, 0, "")], "DRAM")
        self.rows = [(array.ctypes.data, array.nbytes, 0)]

    def __del__(self):
        self.agent.deregister_memory(self.registered)


def move(agent, operation, local, remote_rows, metadata, notification):
    name = agent.add_remote_agent(metadata)
    local_descs = agent.get_xfer_descs(local.rows, mem_type="DRAM")
    remote_descs = agent.get_xfer_descs(remote_rows, mem_type="DRAM")
    handle = agent.initialize_xfer(operation=operation, local_descs=local_descs, remote_descs=remote_descs,
                                   remote_agent=name, notif_msg=notification)
    agent.transfer(handle, notification)
    wait_until(lambda: agent.check_xfer_state(handle) == "DONE")
    agent.release_xfer_handle(handle)
    return name


def worker(pipe):
    agent = nixl_agent(f"worker-{uuid.uuid4()}")
    readable = Descriptor(agent, numpy.full(BYTES, 3, numpy.uint8))
    writable = Descriptor(agent, numpy.zeros(BYTES, numpy.uint8))
    pipe.send((agent.get_agent_metadata(), readable.rows, writable.rows))
    for key in (b"read-key", b"write-key"):
        def arrived():
            for messages in agent.update_notifs().values():
                if key in messages:
                    messages.remove(key)
                    return True
            return False

        wait_until(arrived)
    assert (writable.array == 9).all()
    pipe.send("both arrived")


def client(pipe):
    agent = nixl_agent(f"client-{uuid.uuid4()}")
    metadata, readable, writable = receive(pipe)
    target = Descriptor(agent, numpy.zeros(BYTES, numpy.uint8))
    move(agent, "READ", target, readable, metadata, b"read-key")
    assert (target.array == 3).all()
    source = Descriptor(agent, numpy.full(BYTES, 9, numpy.uint8))
    name = move(agent, "WRITE", source, writable, metadata, b"write-key")
    assert receive(pipe) == "both arrived"
    agent.remove_remote_agent(name)
    assert not agent.check_remote_metadata(name)


if __name__ == "__main__":
    run(worker, client)
