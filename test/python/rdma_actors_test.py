"""hawser.rdma inside real actors of Monarch and of Ray, in programs that are otherwise unchanged.

Skipped where the packages are not installed: torchmonarch==0.7.0 with cloudpickle==3.1.1 and torch, ray with numpy.
"""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

from conftest import SCALE

LIMIT = 180 * SCALE


def have(*modules):
    return [name for name in modules if importlib.util.find_spec(name) is None]


def run(program, **environment):
    """As a program of its own: both frameworks start processes and threads that are not for pytest's."""
    environment = {**os.environ, "MONARCH_RDMA_ALLOW_TCP_FALLBACK": "1", "RAY_DEDUP_LOGS": "0", **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
                          timeout=LIMIT, env=environment)
    assert done.returncode == 0 and "all good" in done.stdout, done.stdout[-4000:] + done.stderr[-6000:]
    return done.stdout


MONARCH = """
    import asyncio, torch
    from monarch.actor import Actor, endpoint, this_host
    {rdma}

    class Owner(Actor):
        def __init__(self):
            self.data = torch.arange(1 << 18, dtype=torch.float32)
            self.buffer = RDMABuffer(self.data.view(torch.uint8).flatten())

        @endpoint
        async def lend(self) -> RDMABuffer:
            return self.buffer

        @endpoint
        async def total(self) -> float:
            return float(self.data.sum())

    class User(Actor):
        @endpoint
        async def double(self, buffer: RDMABuffer) -> float:
            mine = torch.zeros(1 << 18, dtype=torch.float32)
            flat = mine.view(torch.uint8).flatten()
            await buffer.read_into(flat, timeout=30)
            mine *= 2
            action = RDMAAction().write_remote(buffer, flat)
            await action.submit(timeout=30)
            return float(mine.sum())

        @endpoint
        async def drop(self, buffer: RDMABuffer) -> bool:
            await buffer.drop()
            try:
                await buffer.read_into(torch.zeros(1 << 20, dtype=torch.uint8), timeout=5)
            except Exception:
                return True
            return False

    def main():
        owners = this_host().spawn_procs(per_host={{"gpus": 1}})
        users = this_host().spawn_procs(per_host={{"gpus": 1}})
        owner, user = owners.spawn("owner", Owner), users.spawn("user", User)
        buffer = owner.lend.call_one().get()
        assert buffer.size() == 1 << 20
        before = owner.total.call_one().get()
        after = user.double.call_one(buffer).get()
        assert abs(owner.total.call_one().get() - 2 * before) < 1e-3 * before and abs(after - 2 * before) < 1e-3 * before
        # Of the client's own memory, read from its thread without a loop.
        mine = torch.zeros(1 << 20, dtype=torch.uint8)
        buffer.read_into(mine).get(timeout=30)
        assert mine.any()
        assert user.drop.call_one(buffer).get()
        print("all good", get_rdma_backend(), flush=True)

    if __name__ == "__main__":
        main()
        import os
        os._exit(0)
"""


@pytest.mark.parametrize("rdma", ["hawser.rdma", "monarch.rdma"])
def test_monarch_actors(rdma):
    """With monarch.rdma itself too, but for the drop, after which reads may still work there: the program is valid."""
    missing = have("monarch", "torch", "cloudpickle")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = MONARCH.format(rdma=f"from {rdma} import RDMAAction, RDMABuffer, get_rdma_backend")
    if rdma == "monarch.rdma":
        program = program.replace("assert user.drop.call_one(buffer).get()", "user.drop.call_one(buffer).get()")
    run(program)


RAY = """
    import numpy, ray
    from hawser.rdma import RDMABuffer, notifications, take_notification

    @ray.remote
    class Owner:
        def __init__(self):
            self.data = numpy.arange(1 << 18, dtype=numpy.float32)
            self.buffer = RDMABuffer(self.data)

        def lend(self):
            return self.buffer

        def total(self):
            return float(self.data.sum())

        def told(self):
            note = take_notification()
            return note and note.data

    @ray.remote
    class User:
        async def double(self, buffer):
            mine = numpy.zeros(1 << 18, numpy.float32)
            await buffer.read_into(mine, timeout=30)
            mine *= 2
            await buffer.write_from(mine, timeout=30, notify=b"doubled")
            return float(mine.sum())

        async def drop(self, buffer):
            await buffer.drop()
            try:
                await buffer.read_into(numpy.zeros(1 << 20, numpy.uint8), timeout=5)
            except Exception:
                return True
            return False

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    owner, user = Owner.remote(), User.remote()
    buffer = ray.get(owner.lend.remote())
    before = ray.get(owner.total.remote())
    after = ray.get(user.double.remote(buffer))
    assert after == ray.get(owner.total.remote()) and abs(after - 2 * before) < 1e-3 * before
    assert ray.get(owner.told.remote()) == b"doubled"
    mine = numpy.zeros(1 << 18, numpy.float32)
    buffer.read_into(mine).get(30)
    assert float(mine.sum()) == after
    assert ray.get(user.drop.remote(buffer))
    print("all good", flush=True)
"""


def test_ray_actors():
    missing = have("ray", "numpy")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    run(RAY)
