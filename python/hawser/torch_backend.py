"""torch.distributed on worlds: `init_process_group("hawser")`, for tensors of the CPU.

torch finds this module by the entry point `torch.distributed.backends`, so nothing has to be imported. The default group
opens a world, whose ranks find one another in torch's store; other groups are groups of that world, over the same agent.
Where the default group has another backend, each group on hawser opens a world of its own.
Written for the interface of torch 2.15 (torch/_C/_distributed_c10d.pyi).
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from . import World
from ._torch_futures import future_of
from .errors import Error, TimedOutError

_OPS = ((dist.ReduceOp.SUM, "sum"), (dist.ReduceOp.AVG, "avg"), (dist.ReduceOp.PRODUCT, "prod"),
        (dist.ReduceOp.MIN, "min"), (dist.ReduceOp.MAX, "max"), (dist.ReduceOp.BAND, "and"),
        (dist.ReduceOp.BOR, "or"), (dist.ReduceOp.BXOR, "xor"))
_MONITORED = 1 << 48  # Tags of monitored barriers; torch's own are smaller.
_root: Optional[World] = None  # Of the default group.


# What torch and Gloo mean by reductions of truth values: each ends as true or false.
_OPS_OF_BOOL = {"sum": "or", "max": "or", "prod": "and", "min": "and"}


def _op_of(op: Any, dtype: Optional[torch.dtype] = None) -> str:
    for each, name in _OPS:
        if op == each:
            return _OPS_OF_BOOL.get(name, name) if dtype == torch.bool else name
    raise ValueError(f"hawser has no reduction {op}; sum, avg, product, min, max, band, bor and bxor are there")


def _seconds(options: Any, otherwise: timedelta) -> float:
    given = getattr(options, "timeout", None)
    return (given if given is not None and given > timedelta(0) else otherwise).total_seconds()


class _Plain:
    """Options as torch's process groups also take them: a root, an operation and a timeout, each by itself."""

    def __init__(self) -> None:
        self.rootRank, self.reduceOp, self.timeout = 0, dist.ReduceOp.SUM, timedelta(0)


def _options(*given: Any, **named: Any) -> Any:
    """torch's options, where they were given, or what the plain arguments say: in their order, or by name."""
    plain = _Plain()
    for value in [*given, *named.values()]:
        if value is None:
            continue
        if isinstance(value, timedelta):
            plain.timeout = value
        elif isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
            plain.reduceOp = value
        elif isinstance(value, int):
            plain.rootRank = value
        else:
            return value
    return plain


def _listed(tensors: Any) -> Any:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _raises_of_torch(call: Callable[..., Any]) -> Callable[..., Any]:
    """What Hawser refuses before anything is begun is the same error as what fails later."""

    @functools.wraps(call)
    def checked(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except Error as error:
            raise dist.DistBackendError(str(error)) from error

    return checked


class _Work(dist._Work):  # type: ignore[misc, name-defined]
    """Requests, what is to be done once they are over, and the tensors that come out."""

    def __init__(self, requests: Sequence[Any], outputs: Any, finish: Optional[Callable[[], None]] = None) -> None:
        super().__init__()
        self._requests, self.outputs, self._finish = list(requests), outputs, finish
        self._lock, self._future_lock = threading.Lock(), threading.Lock()
        self._source: Optional[int] = None
        self._future: Any = None
        self._error: Optional[BaseException] = None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        patience = timeout.total_seconds() if timeout > timedelta(0) else None
        try:
            for request in self._requests:
                got = request.wait(patience)
                self._source = self._source if got is None else got.source
            with self._lock:
                finish, self._finish = self._finish, None
                if finish is not None:
                    finish()
        except Error as error:
            words = "the timeout has passed: " if isinstance(error, TimedOutError) else ""
            raised = dist.DistBackendError(f"{words}{error}")
            if self._is_over():
                self._error = raised
            raise raised from error
        return True

    def _is_over(self) -> bool:
        return all(request.done() for request in self._requests)

    def is_completed(self) -> bool:
        """Once it is, the tensors hold what came, and `is_success` and `exception` tell how it ended."""
        if not self._is_over():
            return False
        if self._error is None:
            try:
                self.wait()
            except dist.DistBackendError:
                pass  # Kept.
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        self.is_completed()
        return self._error

    def result(self) -> Any:
        return self.outputs

    def source_rank(self) -> int:
        return -1 if self._source is None else self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        with self._future_lock:
            self._future = self._future or future_of(self)
        return self._future


class _Flat:
    """A tensor as the elements that Hawser moves: contiguous, without gradient; copied back where that needed a copy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise ValueError(f"hawser moves dense tensors of the CPU, not {tensor.layout} of {tensor.device}")
        plain = tensor.detach()
        if plain.is_neg() and not plain.is_complex():  # In name only: its memory holds other values.
            self._whole, self.data, self.is_copy = plain, plain.resolve_neg().contiguous(), True
            return
        self._whole = torch.view_as_real(plain) if plain.is_complex() else plain
        self.data = self._whole.contiguous()
        self.is_copy = self.data.data_ptr() != self._whole.data_ptr()

    def give_back(self) -> None:
        if self.is_copy:
            self._whole.copy_(self.data)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """For what only moves: types that Hawser does not know, too."""
    flat = tensor.reshape(-1)
    if flat.stride(0) != 1:  # Of one element: torch calls any stride contiguous, and would not view it as bytes.
        flat = flat.as_strided(flat.shape, (1,))
    return flat.view(torch.uint8)


def _check_types(call: str, tensors: Sequence[torch.Tensor]) -> None:
    """Bytes go as they are: other types would be read out of them."""
    kinds = sorted({str(tensor.dtype) for tensor in tensors})
    if len(kinds) > 1:
        raise ValueError(f"hawser: {call}: the tensors are of different types, {' and '.join(kinds)}")


def _check_list(call: str, tensors: Sequence[torch.Tensor], size: int, like: Optional[torch.Tensor] = None) -> None:
    """One tensor for each rank, and where `like` is given, each of its type and size."""
    if len(tensors) != size:
        raise ValueError(f"hawser: {call}: a list of {len(tensors)} tensors was given, for {size} ranks")
    _check_types(call, [*tensors, *([] if like is None else [like])])
    odd = [tensor.numel() for tensor in tensors if like is not None and tensor.numel() != like.numel()]
    if like is not None and odd:
        raise ValueError(f"hawser: {call}: a tensor of the list holds {odd[0]} elements, not {like.numel()}")


class _Unrecorded(list):  # type: ignore[type-arg]
    """
    The devices of a group that torch is making. Its flight recorder records groups that say they have some, and fails on
    one that is made in Python; `split_group` looks for the CPU among them.
    """

    def __bool__(self) -> bool:
        return False


class HawserGroup(dist.ProcessGroup):
    """One group of torch's on one world."""

    def __init__(self, world: World, timeout: timedelta, owns_world: bool) -> None:
        super().__init__(world.rank, world.size)
        self.world, self._timeout, self._owns_world = world, timeout, owns_world
        self._group_name = self._group_desc = ""
        self._monitored = 0  # Barriers of that kind so far.

    def getBackendName(self) -> str:
        return "hawser"

    def name(self) -> str:
        return "hawser"

    # torch keeps a group's names in backends, which a group that is none of its own does not have.
    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_desc = text

    def getGroupDesc(self) -> str:
        return self._group_desc

    # torch asks by this what a group can move, and so whether async_save and monitored_barrier may use it.
    @property
    def _device_types(self) -> list[torch.device]:
        is_made = self in dist.distributed_c10d._world.pg_map
        return [torch.device("cpu")] if is_made else _Unrecorded([torch.device("cpu")])

    # torch asks a group for its backend of a device: this one is its own.
    def _get_backend(self, device: torch.device) -> "HawserGroup":
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"hawser moves tensors of the CPU, not of {device}")
        return self

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def supports_splitting(self) -> bool:
        return True

    def split_group(self, ranks: Sequence[int], timeout: Optional[timedelta] = None, opts: Any = None,
                    group_name: Optional[str] = None, group_desc: Optional[str] = None,
                    device_types: Any = None) -> Optional["HawserGroup"]:
        """These ranks of this group, in this order. None: this rank is none of them."""
        if self.rank() not in ranks:
            return None
        made = HawserGroup(self.world.group(list(ranks)), timeout or self._timeout, False)
        made.setGroupName(group_name or "")
        made.setGroupDesc(group_desc or f"{self._group_desc}:split")
        return made

    # ---- Collectives.

    def _all(self, tensors: Sequence[torch.Tensor], begin: Callable[[torch.Tensor], Any], changes: bool = True) -> _Work:
        flats = [_Flat(tensor) for tensor in tensors]
        requests = [begin(flat.data) for flat in flats]

        def finish() -> None:
            for flat in flats:
                flat.give_back()

        return _Work(requests, list(tensors), finish if changes else None)

    @_raises_of_torch
    def allreduce(self, tensors: Any, *args: Any, **named: Any) -> _Work:
        tensors, opts = _listed(tensors), _options(*args, **named)
        op, timeout = _op_of(opts.reduceOp, tensors[0].dtype), _seconds(opts, self._timeout)
        if tensors[0].is_sparse:
            return self._sum_sparse(tensors, op, timeout)
        return self._all(tensors, lambda x: self.world.iall_reduce(x, op, timeout=timeout))

    allreduce_coalesced = allreduce

    def _sum_sparse(self, tensors: Any, op: str, timeout: float) -> _Work:
        """All elements of all ranks, then their sum; waits for it."""
        if op != "sum":
            raise ValueError(f"hawser reduces sparse tensors by sum, not by {op}")
        for tensor in tensors:
            if tensor.device.type != "cpu":
                raise ValueError(f"hawser moves tensors of the CPU, not of {tensor.device}")
            own = tensor.detach().coalesce()
            indices, values = own.indices().t().contiguous(), own.values().contiguous()
            counts = torch.empty(self.size(), dtype=torch.int64)
            self.world.iall_gather(counts, torch.tensor([len(values)]), timeout=timeout).wait()
            all_indices = self._gather_rows(indices, counts, timeout)
            whole = torch.sparse_coo_tensor(all_indices.t(), self._gather_rows(values, counts, timeout), own.shape)
            with torch.no_grad():
                tensor.copy_(whole.coalesce())
        return _Work([], list(tensors))

    def _gather_rows(self, rows: torch.Tensor, counts: torch.Tensor, timeout: float) -> torch.Tensor:
        whole = rows.new_empty((int(counts.sum()), *rows.shape[1:]))
        row_bytes = rows.element_size() * math.prod(rows.shape[1:])
        self.world.iall_gatherv(_bytes(whole), _bytes(rows), [int(count) * row_bytes for count in counts],
                                timeout=timeout).wait()
        return whole

    @_raises_of_torch
    def broadcast(self, tensors: Any, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        root, timeout = opts.rootRank, _seconds(opts, self._timeout)
        return self._all(_listed(tensors), lambda x: self.world.ibroadcast(_bytes(x), root, timeout=timeout),
                         root != self.rank())

    @_raises_of_torch
    def reduce(self, tensors: Any, *args: Any, **named: Any) -> _Work:
        tensors, opts = _listed(tensors), _options(*args, **named)
        op, timeout = _op_of(opts.reduceOp, tensors[0].dtype), _seconds(opts, self._timeout)
        return self._all(tensors, lambda x: self.world.ireduce(x, opts.rootRank, op, timeout=timeout))

    @_raises_of_torch
    def barrier(self, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        return _Work([self.world.ibarrier(timeout=_seconds(opts, self._timeout))], [])

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        """
        Rank 0 hears of each rank, then tells all. A rank that is late is named, and the group stays usable: these are
        messages, not a collective.
        """
        patience = timeout.total_seconds()
        until = time.monotonic() + patience
        note = torch.zeros(1, dtype=torch.uint8)
        tag = _MONITORED | self._monitored
        self._monitored += 1

        def left() -> float:
            return max(until - time.monotonic(), 1e-3)

        if self.rank() != 0:
            try:
                self.world.isend(note, 0, tag, priority="realtime", timeout=left()).wait()
                self.world.irecv(note, 0, tag, timeout=left() + patience).wait()
            except Error as error:
                raise dist.DistBackendError(f"Rank {self.rank()} successfully reached monitoredBarrier, but received errors while "
                                            f"waiting for send/recv from rank 0: {error}") from error
            return
        if patience <= 0:
            raise dist.DistBackendError(f"Rank 0 timed out in monitoredBarrier after {patience * 1e3:.0f} ms")
        late: list[int] = []
        why: Optional[Error] = None  # Of the first that is late: it may have failed.
        for rank in range(1, self.size()):
            try:
                self.world.irecv(note, rank, tag, timeout=left()).wait()
            except Error as error:
                late.append(rank)
                why = why or error
                if not wait_all_ranks:
                    break
        if late:
            who = f"Rank{'' if len(late) == 1 else 's'} {', '.join(map(str, late))}"
            raise dist.DistBackendError(f"{who} failed to pass monitoredBarrier in {patience * 1e3:.0f} ms: {why}") from why
        for rank in range(1, self.size()):
            self.world.isend(note, rank, tag, priority="realtime", timeout=patience).wait()

    @_raises_of_torch
    def allgather(self, outputs: Any, inputs: Any, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        requests, spread = [], []
        for tensors, tensor in zip(outputs, inputs):
            _check_list("all_gather", tensors, self.size(), tensor)
        for tensors, tensor in zip(outputs, inputs):
            flat = _Flat(tensor)
            gathered = flat.data.new_empty((self.size(), *flat.data.shape))
            requests.append(self.world.iall_gather(_bytes(gathered), _bytes(flat.data),
                                                   timeout=_seconds(opts, self._timeout)))
            spread += list(zip(tensors, gathered))
        return _Work(requests, outputs, lambda: _copy_all(spread))

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> _Work:
        """`outputs` is by rank, and there by input; those of `allgather` are the other way round."""
        by_input = [[of_rank[i] for of_rank in outputs] for i in range(len(inputs))]
        return self.allgather(by_input, inputs, opts)

    @_raises_of_torch
    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> _Work:
        _check_types("all_gather", [output, tensor])
        to, timeout = _Flat(output), _seconds(opts, self._timeout)
        request = self.world.iall_gather(_bytes(to.data), _bytes(_Flat(tensor).data), timeout=timeout)
        return _Work([request], output, to.give_back)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> _Work:
        return _together([self.all_gather_single(to, x, opts) for to, x in zip(outputs, inputs)], outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(self, outputs: Any, inputs: Any, *args: Any, **named: Any) -> _Work:
        opts, works = _options(*args, **named), []
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        for output, tensors in zip(outputs, inputs):
            _check_list("reduce_scatter", tensors, self.size())
            whole = torch.cat([_Flat(tensor).data.reshape(-1) for tensor in tensors])
            works.append(self._reduce_scatter(output, whole, [_Flat(tensor).data.numel() for tensor in tensors], opts))
        return _together(works, outputs)

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> _Work:
        flat = _Flat(tensor).data.reshape(-1)
        return self._reduce_scatter(output, flat, [flat.numel() // self.size()] * self.size(), opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> _Work:
        return _together([self.reduce_scatter_single(to, x, opts) for to, x in zip(outputs, inputs)], outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @_raises_of_torch
    def _reduce_scatter(self, output: Any, whole: torch.Tensor, counts: list[int], opts: Any) -> _Work:
        to, op = _Flat(output), _op_of(opts.reduceOp if opts is not None else dist.ReduceOp.SUM, output.dtype)
        request = self.world.ireduce_scatterv(to.data.reshape(-1), whole, counts, op,
                                              timeout=_seconds(opts, self._timeout))
        return _Work([request], output, to.give_back)

    @_raises_of_torch
    def gather(self, outputs: Any, inputs: Any, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        flat, timeout = _Flat(inputs[0]), _seconds(opts, self._timeout)
        is_root = opts.rootRank == self.rank()
        if is_root:
            _check_list("gather", outputs[0], self.size(), inputs[0])
        gathered = flat.data.new_empty((self.size(), *flat.data.shape)) if is_root else None
        request = self.world.igather(None if gathered is None else _bytes(gathered), _bytes(flat.data), opts.rootRank,
                                     timeout=timeout)
        return _Work([request], outputs, None if gathered is None else lambda: _copy_all(zip(outputs[0], gathered)))

    @_raises_of_torch
    def scatter(self, outputs: Any, inputs: Any, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        to, timeout = _Flat(outputs[0]), _seconds(opts, self._timeout)
        if opts.rootRank == self.rank():
            _check_list("scatter", inputs[0], self.size(), outputs[0])
        whole = torch.stack([_Flat(tensor).data for tensor in inputs[0]]) if opts.rootRank == self.rank() else None
        request = self.world.iscatter(_bytes(to.data), None if whole is None else _bytes(whole), opts.rootRank,
                                      timeout=timeout)
        return _Work([request], outputs, to.give_back)

    @_raises_of_torch
    def alltoall(self, outputs: Any, inputs: Any, *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        for tensors in (outputs, inputs):
            _check_list("all_to_all", tensors, self.size())
        _check_types("all_to_all", [*outputs, *inputs])
        parts = [_bytes(_Flat(tensor).data) for tensor in inputs]
        wanted = [tensor.numel() * tensor.element_size() for tensor in outputs]
        whole, received = torch.cat(parts), torch.empty(sum(wanted), dtype=torch.uint8)
        request = self.world.iall_to_allv(received, whole, wanted, [part.numel() for part in parts],
                                          timeout=_seconds(opts, self._timeout))

        def spread() -> None:
            for tensor, part in zip(outputs, received.split(wanted)):
                tensor.detach().copy_(part.view(tensor.dtype).reshape(tensor.shape))

        return _Work([request], outputs, spread)

    @_raises_of_torch
    def all_to_all_single(self, output: Any, tensor: Any, output_splits: Any = None, input_splits: Any = None,
                          *args: Any, **named: Any) -> _Work:
        opts = _options(*args, **named)
        _check_types("all_to_all", [output, tensor])
        to, x = _Flat(output), _Flat(tensor)
        come, go = self._splits(to.data, output_splits), self._splits(x.data, input_splits)
        request = self.world.iall_to_allv(_bytes(to.data), _bytes(x.data), come, go,
                                          timeout=_seconds(opts, self._timeout))
        return _Work([request], output, to.give_back)

    alltoall_base = all_to_all_single

    def _splits(self, data: torch.Tensor, splits: Any) -> list[int]:
        """In bytes, of rows of the first dimension."""
        rows = data.shape[0] if data.dim() else 1
        row = data.numel() * data.element_size() // max(rows, 1)
        if not splits:
            if rows % self.size():
                raise ValueError(f"{rows} rows are no multiple of {self.size()} ranks: give splits")
            splits = [rows // self.size()] * self.size()
        return [int(rows_of) * row for rows_of in splits]

    # ---- Messages.

    @_raises_of_torch
    def send(self, tensors: Any, rank: int, tag: int = 0) -> _Work:
        return _Work([self.world.isend(_bytes(_Flat(tensors[0]).data), rank, tag, priority="realtime",
                                       timeout=self._timeout.total_seconds())], tensors)

    @_raises_of_torch
    def recv(self, tensors: Any, rank: Optional[int], tag: int = 0) -> _Work:
        to = _Flat(tensors[0])
        request = self.world.irecv(_bytes(to.data), rank, tag, timeout=self._timeout.total_seconds())
        return _Work([request], tensors, to.give_back)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> _Work:
        return self.recv(tensors, None, tag)

    # ---- Ends.

    def abort(self) -> None:
        """Ends what is under way, on all ranks."""
        self.world.revoke()

    @_raises_of_torch
    def shutdown(self) -> None:
        global _root
        if _root is self.world:
            _root = None
        if self._owns_world:
            self.world.leave(self._timeout.total_seconds())  # The others may be in the last collective still.
        else:
            self.world.close()


def _copy_all(pairs: Any) -> None:
    for to, data in pairs:
        whole = torch.view_as_real(to.detach()) if to.is_complex() else to.detach()
        whole.copy_(data.reshape(whole.shape))


def _together(works: Sequence[_Work], outputs: Any) -> _Work:
    def finish() -> None:
        for work in works:
            work.wait()

    return _Work([request for work in works for request in work._requests], outputs, finish)


def _run_of(store: Any, rank: int) -> str:
    """
    What rank 0 drew for this group. A store may have served groups before: a rank that enters the n-th time looks for
    the n-th draw.
    """
    key = f"hawser/run/{store.add(f'hawser/entered/{rank}', 1)}"
    if rank == 0:
        store.set(key, os.urandom(8).hex())
    return str(store.get(key).decode())


@_raises_of_torch
def _create(options: Any, _backend_options: Any) -> HawserGroup:
    """
    Ranks of a group are numbers in torch's default group, of which torch lists none. So other groups are made from the
    world of the default group, or have worlds of their own where that one is not on hawser.
    """
    global _root
    ranks = list(options.global_ranks_in_group)
    if _root is not None and ranks:
        return HawserGroup(_root.group(ranks), options.timeout, False)
    run = _run_of(options.store, options.group_rank)
    world = World.open(size=options.group_size, rank=options.group_rank, store=options.store, name=f"torch.{run}",
                       timeout=min(options.timeout, timedelta(minutes=10)))
    if not ranks:
        _root = world
    return HawserGroup(world, options.timeout, True)


def register() -> None:
    """Called by torch when a group of this backend is made first."""
    dist.Backend.register_backend("hawser", _create, extended_api=True, devices=["cpu"])
