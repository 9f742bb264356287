"""torch.distributed on worlds, by real processes. Where torch is missing this is skipped; `./dev actors` has it."""

import datetime
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

import pytest

import hawser

torch = pytest.importorskip("torch", reason="no torch here: ./dev actors runs this test")
dist = torch.distributed


def check_collectives(rank, size):
    def full(value, *shape, dtype=torch.float32):
        return torch.full(shape or (3,), value, dtype=dtype)

    total = size * (size - 1) // 2
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.complex64):
        x = full(rank, 5, dtype=dtype)
        dist.all_reduce(x)
        assert torch.equal(x, full(total, 5, dtype=dtype)), dtype
    for op, right in ((dist.ReduceOp.MAX, size - 1), (dist.ReduceOp.MIN, 0), (dist.ReduceOp.AVG, total / size)):
        x = full(float(rank))
        dist.all_reduce(x, op)
        assert torch.allclose(x, full(float(right)))
    turned = torch.arange(12.0).reshape(3, 4).t()[::2] + rank  # Not contiguous.
    dist.all_reduce(turned)
    assert torch.equal(turned, size * torch.arange(12.0).reshape(3, 4).t()[::2] + total)
    x = full(rank)
    dist.broadcast(x, size - 1)
    assert torch.equal(x, full(size - 1))
    x = full(rank + 1.0)
    dist.reduce(x, 0)
    assert rank != 0 or torch.equal(x, full(float(total + size)))
    out = [torch.zeros(2, 2) for _ in range(size)]
    dist.all_gather(out, full(rank, 2, 2))
    assert all(torch.equal(each, full(r, 2, 2)) for r, each in enumerate(out))
    out = torch.zeros(2 * size)
    dist.all_gather_into_tensor(out, full(rank, 2))
    assert out.tolist() == [i // 2 for i in range(2 * size)]
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * size))
    assert out.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
    out = torch.zeros(2)
    dist.reduce_scatter(out, [full(float(r), 2) for r in range(size)])
    assert out.tolist() == [size * rank] * 2
    gathered = [torch.zeros(2) for _ in range(size)] if rank == 0 else None
    dist.gather(full(rank, 2), gathered, 0)
    assert rank != 0 or [each[0].item() for each in gathered] == list(range(size))
    out = torch.zeros(2)
    dist.scatter(out, [full(r, 2) for r in range(size)] if rank == size - 1 else None, size - 1)
    assert torch.equal(out, full(rank, 2))
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.arange(float(size)) + 10 * rank)
    assert out.tolist() == [rank + 10 * r for r in range(size)]
    rows = torch.full((size * (rank + 1), 2), float(rank))
    out = torch.zeros(size * (size + 1) // 2, 2)
    dist.all_to_all_single(out, rows, [r + 1 for r in range(size)], [rank + 1] * size)
    assert out[:, 0].tolist() == [float(r) for r in range(size) for _ in range(r + 1)]
    out = [torch.zeros(1 + (r + rank) % 2) for r in range(size)]
    dist.all_to_all(out, [full(10 * rank + r, 1 + (r + rank) % 2) for r in range(size)])
    assert [each[0].item() for each in out] == [10 * r + rank for r in range(size)]


def check_messages(rank, size):
    if rank == 0:
        dist.send(torch.tensor([5, 6]), 1, tag=3)
        work = dist.isend(torch.arange(200_000), 1)
        work.wait()
    if rank == 1:
        x = torch.zeros(2, dtype=torch.int64)
        assert dist.recv(x, tag=3) == 0 and x.tolist() == [5, 6]
        x = torch.zeros(200_000, dtype=torch.int64)
        dist.irecv(x, 0).wait()
        assert torch.equal(x, torch.arange(200_000))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]


def check_work_and_groups(rank, size):
    x = torch.full((4,), float(rank))
    work = dist.all_reduce(x, async_op=True)
    work.get_future().wait()
    assert work.is_completed() and x[0] == size * (size - 1) / 2
    group = dist.new_group([0, 1])
    if rank < 2:
        y = torch.ones(2)
        dist.all_reduce(y, group=group)
        assert y.tolist() == [2, 2]
        dist.destroy_process_group(group)
    dist.barrier()


def check_split_groups(rank, size):
    """As on Gloo: by ranks of the parent, in their order, and again of what was made."""
    turned = dist.split_group(split_ranks=[list(range(size))[::-1]], group_desc="turned")
    assert (dist.get_rank(turned), turned.size(), turned.group_desc) == (size - 1 - rank, size, "turned")
    x = torch.tensor([float(rank)])
    dist.broadcast(x, size - 1, group=turned)
    assert x.item() == size - 1
    assert dist.get_process_group_ranks(turned) == list(range(size))[::-1]
    first = dist.split_group(turned, [[0], list(range(1, size))])
    mine = [rank] if rank == size - 1 else list(range(size - 1))[::-1]
    assert dist.get_process_group_ranks(first) == mine
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x, group=first)
    assert x.item() == sum(each + 1 for each in mine)
    nobody = dist.split_group(split_ranks=[[0]])
    assert (nobody is dist.GroupMember.NON_GROUP_MEMBER) == (rank != 0)
    for group in [first, turned] + ([nobody] if rank == 0 else []):
        dist.destroy_process_group(group)
    dist.barrier()


def check_what_torchs_own_tests_found(rank, size):
    # Its lists are by rank, and there by tensor.
    outputs = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
    dist.all_gather_coalesced(outputs, [torch.full((2,), float(rank)), torch.full((3,), 10.0 + rank)])
    assert all(a.tolist() == [r] * 2 and b.tolist() == [10.0 + r] * 3 for r, (a, b) in enumerate(outputs))
    after, before = torch.full((1,), float(rank)), torch.zeros(1)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, after, (rank + 1) % size),
                                        dist.P2POp(dist.irecv, before, (rank - 1) % size)]):
        work.wait()
    assert before.item() == (rank - 1) % size
    sparse = torch.sparse_coo_tensor([[rank, size]], [1.0, 2.0], (size + 1,))
    dist.all_reduce(sparse)
    assert sparse.to_dense().tolist() == [1.0] * size + [2.0 * size]
    empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 2), (3, 2))
    dist.all_reduce(empty)
    assert empty.to_dense().tolist() == [[0.0, 0.0]] * 3
    with pytest.raises(ValueError, match="sparse tensors by sum"):
        dist.all_reduce(torch.ones(2, 2).to_sparse(), dist.ReduceOp.MAX)
    group = dist.group.WORLD
    second = datetime.timedelta(seconds=1)
    group.monitored_barrier(20 * second)
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match=f"Rank {size - 1} failed to pass monitoredBarrier"):
            group.monitored_barrier(second)
    elif rank < size - 1:
        with pytest.raises(dist.DistBackendError, match=f"Rank {rank} successfully reached monitoredBarrier"):
            group.monitored_barrier(second)
    dist.barrier()  # It is usable still.


def check_futures_that_wait_for_futures(rank, size):
    def once_more(_):
        return dist.all_reduce(torch.ones(4), async_op=True).get_future().wait()[0]

    def after(_):
        return dist.all_reduce(torch.ones(3), async_op=True).get_future().then(once_more).wait()

    assert dist.all_reduce(torch.ones(2), async_op=True).get_future().then(after).wait().tolist() == [size] * 4


def check_futures_that_wait_for_what_is_behind_them(rank, size):
    """A callback is held until others are behind it, and then waits for those."""
    def future(n=1):
        return dist.all_reduce(torch.ones(n), async_op=True).get_future()

    def sums(futures):
        return [each.wait()[0].sum().item() for each in futures]

    order = []
    for wait in (lambda mine, behind: sums(behind),
                 lambda mine, behind: [x[0].sum().item() for x in torch.futures.wait_all(behind)],
                 lambda mine, behind: [each.then(lambda done: done.value()[0].sum().item()).wait() for each in behind],
                 lambda mine, behind: sums([*behind, future(5)])[:2]):
        gate, behind = threading.Event(), []

        def held(done, wait=wait, gate=gate, behind=behind):
            assert gate.wait(30)
            order.append(0)
            return wait(done, behind)

        first = future().then(held)
        behind += [future(2), future(3)]
        for i, each in enumerate(behind):
            each.add_done_callback(lambda _, i=i: order.append(i + 1))
        last = future().then(lambda _: order.append(3))
        gate.set()
        assert first.wait() == [2.0 * size, 3.0 * size]
        last.wait()
        assert order == [0, 1, 2, 3], "as on all ranks"
        order.clear()
    threads = [each.name for each in threading.enumerate() if each.name in ("hawser-futures", "hawser-callbacks")]
    assert sorted(threads) == ["hawser-callbacks", "hawser-futures"]
    chain = [future()]
    for _ in range(100):
        chain.append(chain[-1].then(lambda done: future().wait()))
    assert chain[-1].wait()[0].item() == size

    def fails(_):
        raise KeyError("it")

    failed = future().then(fails)
    with pytest.raises(KeyError):
        failed.wait()
    assert failed.then(lambda done: "on").wait() == "on"
    # Nobody sends what the first one is for until the second one is here.
    x, other = torch.zeros(1), (rank + 1) % size
    late = dist.irecv(x, (rank - 1) % size).get_future()
    assert sums([future(4)]) == [4.0 * size]
    dist.send(torch.full((1,), float(rank)), other)
    assert late.wait()[0].item() == (rank - 1) % size


def check_checkpoints(rank, size):
    import torch.distributed.checkpoint as checkpoint

    assert dist.group.WORLD._device_types == [torch.device("cpu")]
    group = dist.new_group()  # A rank has left out a barrier of the whole one.
    dist.monitored_barrier(group, datetime.timedelta(seconds=30))
    dist.destroy_process_group(group)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    state = {"x": torch.arange(5.0), "n": 3}
    checkpoint.async_save(state, checkpoint_id=folder[0] + "/a").result(60)
    checkpoint.save(state, checkpoint_id=folder[0] + "/b")
    for name in "ab":
        state = {"x": torch.zeros(5), "n": 0}
        checkpoint.load(state, checkpoint_id=f"{folder[0]}/{name}")
        assert state["x"].tolist() == [0, 1, 2, 3, 4] and state["n"] == 3
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


def check_misuse(rank, size):
    """What would give wrong data is refused before anything is sent."""
    def whole(*shape):
        return torch.zeros(*shape, dtype=torch.int32)

    two = torch.ones(2)
    group = dist.group.WORLD
    with pytest.raises(ValueError, match=f"list of {size - 1} tensors was given, for {size} ranks"):
        dist.all_gather([torch.zeros(2)] * (size - 1), two)
    with pytest.raises(ValueError, match="holds 3 elements, not 2"):
        dist.all_gather([torch.zeros(3)] * size, two)
    with pytest.raises(ValueError, match="different types, torch.float32 and torch.int32"):
        dist.all_gather_into_tensor(whole(2 * size), two)
    with pytest.raises(ValueError, match="different types, torch.float32 and torch.int32"):
        group.alltoall_base(whole(size), torch.ones(size), [], []).wait()
    with pytest.raises(ValueError, match="different types, torch.float32 and torch.int32"):
        group.alltoall([whole(1)] * size, [torch.ones(1)] * size).wait()
    with pytest.raises(ValueError, match=f"list of {size + 1} tensors was given, for {size} ranks"):
        dist.reduce_scatter(torch.zeros(2), [two] * (size + 1))
    with pytest.raises(ValueError, match="different types, torch.float32 and torch.int32"):
        group.reduce_scatter([torch.zeros(2)], [[two] * (size - 1) + [whole(2)]]).wait()
    x = torch.ones(1)
    dist.all_reduce(x)  # The ranks are together still.
    assert x.item() == size


def check_what_gloo_does_too(rank, size):
    """Found by running one script on both backends."""
    mine = torch.tensor([rank == 0, rank < 2, False])
    for op, right in ((dist.ReduceOp.SUM, [True, True, False]), (dist.ReduceOp.MAX, [True, True, False]),
                      (dist.ReduceOp.PRODUCT, [False, size == 2, False]), (dist.ReduceOp.MIN, [False, size == 2, False])):
        x = mine.clone()
        dist.all_reduce(x, op)
        assert x.tolist() == right, op
    x = mine.clone()
    dist.reduce(x, 0, dist.ReduceOp.MAX)
    assert rank != 0 or x.tolist() == [True, True, False]

    def one():  # torch calls it contiguous, whatever its stride.
        return torch.empty(9, dtype=torch.int64)[::3][:1].fill_(rank)

    x = one()
    dist.broadcast(x, 1)
    assert x.item() == 1
    gathered = [one() for _ in range(size)]
    dist.all_gather(gathered, one())
    assert [each.item() for each in gathered] == list(range(size))
    x = torch.sparse_coo_tensor([[0, rank]], [1.0, 1.0], (size,))
    dist.all_reduce(x)
    assert x.to_dense().tolist() == [size + 1.0] + [1.0] * (size - 1)
    x = torch._neg_view(torch.full((2,), 1.0 + rank))  # Reads as negative, and its memory is not.
    dist.all_reduce(x)
    assert x.tolist() == [-size * (size + 1) / 2] * 2
    x = torch.full((1,), float(rank)).expand(4) if rank == 0 else torch.ones(4)
    dist.broadcast(x, 0)  # Nothing is written at the root.
    assert x.tolist() == [0] * 4


def check_plain_arguments(rank, size):
    """A process group takes a tensor, a root, an operation and a timeout, too, where torch.distributed gives options."""
    group, soon = dist.group.WORLD, datetime.timedelta(seconds=30)
    x = torch.full((2,), float(rank))
    group.broadcast(x, 1).wait()
    assert x.tolist() == [1, 1]
    group.allreduce(x, dist.ReduceOp.SUM, soon).wait()
    assert x.tolist() == [size, size]
    group.allreduce([x], dist.ReduceOp.MAX).wait()
    group.reduce(x, root=0, op=dist.ReduceOp.MAX).wait()
    out = [torch.zeros(2) for _ in range(size)]
    group.allgather(out, torch.full((2,), float(rank)), timeout=soon).wait()
    assert [each[0].item() for each in out] == list(range(size))
    group.gather(out if rank == 0 else [], x, 0).wait()
    assert rank != 0 or all(each[0].item() == size for each in out)
    group.scatter(x, [torch.full((2,), float(r)) for r in range(size)] if rank == 0 else [], 0).wait()
    assert x.tolist() == [rank, rank]
    group.reduce_scatter(x, [torch.ones(2)] * size).wait()
    assert x.tolist() == [size, size]
    group.alltoall(out, [x] * size, soon).wait()
    group.barrier(soon).wait()
    group.barrier(timeout=soon).wait()


def check_ends_of_works(rank, size):
    """A work that is completed has its result, and says how it ended, whether or not anybody has waited for it."""
    x = torch.zeros(6, 4)[:, ::2]
    x += rank
    work = dist.all_reduce(x, async_op=True)
    until = time.monotonic() + 60
    while not work.is_completed() and time.monotonic() < until:
        time.sleep(0.001)
    assert x.tolist() == [[size * (size - 1) / 2] * 2] * 6 and work.is_success() and work.exception() is None
    late = dist.group.WORLD.recv([torch.zeros(1)], (rank + 1) % size, 77)
    late._requests[0].cancel()
    while not late.is_completed() and time.monotonic() < until:
        time.sleep(0.001)
    assert not late.is_success() and isinstance(late.exception(), dist.DistBackendError)
    with pytest.raises(dist.DistBackendError, match="tag"):
        dist.group.WORLD.send([torch.zeros(1)], (rank + 1) % size, -1)
    dist.barrier()


def trained(rank):
    """Sums of the parameters after some steps of data-parallel training."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 10)).pow(2).mean().backward()
        optimizer.step()
    return [parameter.double().sum().item() for parameter in model.parameters()]


def sharded(rank, size):
    """Parameters after training with sharded ones (FSDP2) on a mesh, saved and loaded midway."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("shard",))

    def made():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(10, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
        fully_shard(model, mesh=mesh)
        return model, torch.optim.AdamW(model.parameters(), lr=0.05)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.randn(8, 10)).pow(2).mean().backward()
        optimizer.step()

    torch.manual_seed(rank)
    model, optimizer = made()
    step(model, optimizer)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    checkpoint.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=folder[0])
    model, optimizer = made()
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state}
    checkpoint.load(state, checkpoint_id=folder[0])
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    torch.manual_seed(100 + rank)
    step(model, optimizer)
    whole = [parameter.full_tensor().double().sum().item() for parameter in model.parameters()]
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])
    return whole


def joined(rank):
    """Sums of parameters where ranks have different numbers of batches, and gradients are views of buckets."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 5), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    with model.join():
        for _ in range(2 + rank):
            optimizer.zero_grad()
            model(torch.randn(8, 10)).pow(2).mean().backward()
            optimizer.step()
    return [parameter.double().sum().item() for parameter in model.parameters()]


def rank_of(rank, size, backend, path, results):
    try:
        if backend == "hawser":
            from hawser import torch_backend

            torch_backend.register()  # What torch does itself where the wheel is installed.
        dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=60))
        if backend == "hawser":
            check_collectives(rank, size)
            check_messages(rank, size)
            check_work_and_groups(rank, size)
            check_split_groups(rank, size)
            check_what_torchs_own_tests_found(rank, size)
            check_futures_that_wait_for_futures(rank, size)
            check_futures_that_wait_for_what_is_behind_them(rank, size)
            check_checkpoints(rank, size)
            check_misuse(rank, size)
            check_what_gloo_does_too(rank, size)
            check_plain_arguments(rank, size)
            check_ends_of_works(rank, size)
        sums = trained(rank) + sharded(rank, size) + joined(rank)
        dist.destroy_process_group()
        results.put((rank, sums))
    except BaseException as error:
        results.put((rank, repr(error)))
        raise


def run(size, backend, path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_of, args=(rank, size, backend, str(path), results)) for rank in range(size)]
    for process in processes:
        process.start()
    told = dict(results.get(timeout=150) for _ in range(size))
    for process in processes:
        process.join(60)
    assert not any(isinstance(what, str) for what in told.values()), told
    return [told[rank] for rank in range(size)]


@pytest.mark.parametrize("size", [2, 3])
def test_groups_of_torch_work_and_train_as_on_gloo(tmp_path, size):
    ours = run(size, "hawser", tmp_path / "ours")
    theirs = run(size, "gloo", tmp_path / "theirs")
    assert all(each == ours[0] for each in ours)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)


def enters_again(rank, port, results):
    """One store for all rounds, as torchrun keeps one."""
    from hawser import torch_backend

    torch_backend.register()
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    told = []
    for _ in range(4):
        dist.init_process_group("hawser", store=store, rank=rank, world_size=3, timeout=datetime.timedelta(seconds=20))
        x = torch.tensor([10.0**rank])
        dist.all_reduce(x)
        told.append(x.item())
        dist.destroy_process_group()
    store.add("done", 1)
    while rank == 0 and store.add("done", 0) < 3:
        pass
    results.put((rank, told))


def waits_in_vain(rank, port, results):
    """Rank 1 does not come; rank 2 only serves the store."""
    from hawser import torch_backend
    torch_backend.register()
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="did not come: 1"):
            dist.init_process_group("hawser", store=store, rank=0, world_size=2, timeout=datetime.timedelta(seconds=4))
    results.put((rank, "good"))


def lives_beside_gloo(rank, port, results):
    """Groups on hawser, where the default group is not: their ranks are torch's."""
    from hawser import torch_backend

    torch_backend.register()
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=3, timeout=datetime.timedelta(seconds=20))
    told = {}
    groups = [(members, dist.new_group(members, backend="hawser")) for members in ((1, 2), (0, 1), (0, 1, 2))]
    for members, group in groups:
        if rank in members:
            x = torch.tensor([10.0**rank])
            dist.all_reduce(x, group=group)
            told[members] = x.item()
            dist.destroy_process_group(group)
    dist.barrier()
    dist.destroy_process_group()
    results.put((rank, told))


def run_three(what):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=what, args=(rank, port, results)) for rank in range(3)]
    for process in processes:
        process.start()
    try:
        return dict(results.get(timeout=60) for _ in range(3))
    finally:
        for process in processes:
            process.kill()
            process.join()


def test_a_group_that_was_destroyed_is_made_again_in_the_same_store():
    told = run_three(enters_again)
    assert told == {rank: [111.0] * 4 for rank in range(3)}


@pytest.mark.parametrize("lazy", [torch._neg_view(torch.ones(2)), torch.ones(2, dtype=torch.complex64).conj()])
def test_tensors_whose_memory_holds_other_values_are_refused(lazy):
    a, _ = hawser.World.local(2)
    for call in (lambda: a.isend(lazy, dest=1), lambda: a.iall_reduce(lazy), lambda: a.irecv(lazy, source=1)):
        with pytest.raises(hawser.InvalidError, match="in name only"):
            call()
    with hawser.Agent("lazy") as agent, pytest.raises(hawser.InvalidError, match="in name only"):
        agent.add_region(lazy, "r")


def test_ranks_that_do_not_come_are_an_error_of_torch():
    run_three(waits_in_vain)


def test_groups_beside_a_default_group_of_another_backend():
    told = run_three(lives_beside_gloo)
    right = {(1, 2): 110.0, (0, 1): 11.0, (0, 1, 2): 111.0}
    assert told == {rank: {members: sum for members, sum in right.items() if rank in members} for rank in range(3)}


def dies(rank, path, results):
    from hawser import torch_backend

    torch_backend.register()
    dist.init_process_group("hawser", init_method=f"file://{path}", rank=rank, world_size=3,
                            timeout=datetime.timedelta(seconds=60))
    dist.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            dist.all_reduce(torch.ones(1000))
    except dist.DistBackendError as error:
        results.put((rank, str(error)))


def test_a_rank_that_is_killed_is_named(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=dies, args=(rank, str(tmp_path / "store"), results)) for rank in range(3)]
    for process in processes:
        process.start()
    told = dict(results.get(timeout=60) for _ in range(2))
    for process in processes:
        process.join(60)
    assert all("rank 2" in text for text in told.values()), told


def test_the_example_of_ddp_ends_with_the_weights_of_gloo(tmp_path):
    """By torchrun and the entry point of an installed package, as users start it."""
    source = os.environ.get("TEST_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")
    with open(os.path.join(source, "pyproject.toml"), "rb") as file:
        points = tomllib.load(file)["project"]["entry-points"]["torch.distributed.backends"]
    package = tmp_path / "hawser-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: hawser\nVersion: 0\n")
    (package / "entry_points.txt").write_text(
        "[torch.distributed.backends]\n" + "".join(f"{name} = {place}\n" for name, place in points.items()))
    path = os.pathsep.join([str(tmp_path), *sys.path])

    def trained_by(backend):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                   os.path.join(source, "examples", "torch_ddp.py")]
        environment = {**os.environ, "BACKEND": backend, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    told = trained_by("hawser")
    assert "loss" in told and told == trained_by("gloo")
