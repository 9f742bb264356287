"""The NIXL transports of torch 2.15 and of Ray 2.60 on this `nixl`, in programs that are otherwise unchanged.

Skipped where the packages are not installed: torch==2.15.0, ray==2.60.0 with numpy.
"""

import pytest

from rdma_actors_test import have, run

# Two processes: one lends tensors and takes some back all the time, the other writes and reads. The transport loads the
# same partial metadata at each submit, beside handles that are under way.
TORCH = """
    import multiprocessing, random
    import torch
    from torch.distributed._transport.nixl import NIXLTransport
    from torch.distributed._transport.nixl._memory import NIXLRemoteBuffer

    SLOTS, ROUNDS, SIZE = 8, 10_000, 16 * 1024

    def owner(pipe):
        transport = NIXLTransport("cpu")
        pipe.send(transport.bind())
        transport.connect(pipe.recv())
        tensors = [torch.zeros(SIZE, dtype=torch.uint8) for _ in range(SLOTS)]
        lent = [transport.register_memory(tensor) for tensor in tensors]
        pipe.send([memory.to_remote_buffer().serialize() for memory in lent])
        for slot, want in iter(pipe.recv, None):
            # What was written is there; then the memory goes, and other memory comes in its place.
            assert int(tensors[slot][0]) == want and int(tensors[slot][-1]) == want, (slot, want)
            transport.unregister_memory(lent[slot])
            tensors[slot] = torch.full((SIZE,), 255 - want, dtype=torch.uint8)
            lent[slot] = transport.register_memory(tensors[slot])
            pipe.send(lent[slot].to_remote_buffer().serialize())
        transport.close()

    def main():
        random.seed(1)
        pipe, other = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=owner, args=(other,))
        process.start()
        transport = NIXLTransport("cpu")
        transport.connect(pipe.recv())
        pipe.send(transport.bind())
        remotes = [NIXLRemoteBuffer.deserialize(each) for each in pipe.recv()]
        mine = torch.zeros(SIZE, dtype=torch.uint8)
        back = torch.zeros(SIZE, dtype=torch.uint8)
        source, target = transport.register_memory(mine), transport.register_memory(back)
        renewed = 0
        for number in range(ROUNDS):
            slot, value = random.randrange(SLOTS), number % 251
            mine.fill_(value)
            transport.write(source.to_view(), remotes[slot])
            transport.read(target.to_mutable_view(), remotes[slot])
            assert int(back[0]) == value and int(back[-1]) == value and bool((back == value).all()), number
            if number % 10 == 0:
                stale = remotes[slot]
                pipe.send((slot, value))
                remotes[slot] = NIXLRemoteBuffer.deserialize(pipe.recv())
                renewed += 1
                transport.read(target.to_mutable_view(), remotes[slot])
                assert bool((back == 255 - value).all()), number
                if number % 1000 == 0 and stale.address != remotes[slot].address:
                    try:
                        transport.read(target.to_mutable_view(), stale, timeout=10)
                        raise SystemExit(f"read memory that was unregistered, in round {number}")
                    except Exception as error:
                        assert "timed out" not in str(error), error
        pipe.send(None)
        transport.close()
        process.join(20)
        assert process.exitcode == 0, process.exitcode
        print("all good", ROUNDS, "writes,", renewed, "renewed")

    if __name__ == "__main__":
        main()
"""

RAY = """
    import ray, torch

    @ray.remote(enable_tensor_transport=True)
    class Owner:
        @ray.method(tensor_transport="nixl")
        def make(self, number):
            return {"whole": torch.full((50_000,), float(number)), "part": torch.arange(64) + number}

    @ray.remote(enable_tensor_transport=True)
    class User:
        def total(self, what, number):
            assert bool((what["whole"] == float(number)).all()), number
            assert what["part"].tolist() == list(range(number, number + 64)), number
            return True

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=True)
    owners, user = [Owner.remote() for _ in range(2)], User.remote()
    for number in range(100):
        made = owners[number % 2].make.remote(number)
        assert ray.get(user.total.remote(made, number))
    ray.shutdown()
    print("all good")
"""


@pytest.mark.skipif(bool(have("torch", "numpy")), reason="torch is not installed")
def test_torch_transport():
    pytest.importorskip("torch.distributed._transport.nixl", reason="this torch has no NIXL transport")
    print(run(TORCH))


@pytest.mark.skipif(bool(have("ray", "torch", "numpy")), reason="ray or torch is not installed")
def test_ray_transport():
    run(RAY)
