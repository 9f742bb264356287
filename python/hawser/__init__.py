"""Hawser moves bytes between the memories of a cluster.

    import hawser, numpy

    with hawser.Agent("prefill-0", directory=hawser.file_directory("/run/hawser")) as agent:
        pages = agent.empty((1024, 4096), numpy.uint8, name="kv")
        decode = agent.find_peer("decode-3", regions=["kv"])
        plan = agent.plan_write(decode, agent.range_of(pages).region.table(4096), decode.table("kv", 4096),
                                source_blocks, target_blocks)
        plan.submit(notify=b"request-17").wait()     # or: await plan.submit(...)

An agent is driven by a thread of the library unless it is opened with `driver=False`; then `poll` and `wait` make its
progress. Every call that may take long gives up Python's global lock. Errors are exceptions with fields: see `Error`.
"""

from __future__ import annotations

import atexit as _atexit
import json as _json
import math as _math
import weakref as _weakref
from typing import Any, NamedTuple, Optional, Sequence, Union

from . import _aio, _hawser, _text, _world
from ._hawser import (MESSAGE_MAX, Agent, AtomicOp, BufferPool, CompletionQueue, Compressor, Directory, DirectoryEntry, DirectoryEvent, Driver,
                      FileInfo, Grant, GrantedRegion, Message, Notification, Peer, PeerEvent, Plan, Range, Region, RemoteRange, Request,
                      Table, Transfer, Watch, World, __version__, etcd_directory, file_directory, inproc_directory, query_file)
from ._world import Batch, Call, ConfigValue, Received, Recovered, Recv, Send
from .errors import (BusyError, CancelledError, Code, CorruptError, DeniedError, DisconnectedError, Error, FailedError,
                     InvalidError, NotFoundError, RemoteError, TimedOutError, UnsupportedError)

__all__ = ["ANY", "Agent", "AtomicOp", "Batch", "BufferPool", "BusyError", "Call", "CancelledError", "Code", "CompletionQueue", "Compressor", "ConfigValue", "CorruptError",
           "DeniedError",
           "Directory", "DirectoryEntry", "DirectoryEvent", "DisconnectedError", "Driver", "Error", "FailedError",
           "FileInfo", "Grant", "GrantedRegion", "InvalidError", "MESSAGE_MAX", "Message", "NotFoundError", "Notification", "Peer", "PeerEvent",
           "Plan", "Range", "Received", "Recovered", "Recv", "Region", "RemoteError", "RemoteRange", "Request", "Segment", "Send", "Table", "TimedOutError", "Transfer",
           "UnsupportedError", "Watch", "World", "__version__", "empty", "etcd_directory", "file_directory", "inproc_directory", "query_file", "torch_empty"]

ANY = _world.ANY
Shape = Union[int, Sequence[int]]


class Segment(NamedTuple):
    """A run of a GPU's memory that an allocator mapped piece by piece; for `Agent(segments=...)`."""

    address: int
    size: int  # Bytes that are mapped now, without a gap. It may grow at its end.
    gpu: int = 0
    generation: int = 0  # Another number once any of it was mapped anew; 0: the allocator cannot tell.


def _only_agent(agent: Optional[Agent]) -> Agent:
    if agent is not None:
        return agent
    open_ones = [one for one in list(_agents) if not one.closed]
    if len(open_ones) != 1:
        raise InvalidError(f"empty: this process has {len(open_ones)} open agents, so `agent` must be given")
    return open_ones[0]


def _counts(shape: Shape) -> tuple:
    counts = (shape,) if isinstance(shape, int) else tuple(int(count) for count in shape)
    if any(count < 0 for count in counts):
        raise InvalidError(f"empty: the shape {counts} has a negative count")
    return counts


def empty(shape: Shape, dtype: Any = "uint8", *, agent: Optional[Agent] = None, name: str = "",
          rights: str = "read_write", huge_pages: str = "auto") -> Any:
    """A numpy array, zeroed, in memory that the agent allocates and registers: peers of this host map it.

    `agent` may be left out where the process has one open agent. `agent.range_of(array)` finds its place in its region.
    """
    import numpy

    counts, kind = _counts(shape), numpy.dtype(dtype)
    if kind.hasobject:
        raise InvalidError(f"empty: dtype {kind} holds Python objects, which cannot be moved")
    size = _math.prod(counts) * kind.itemsize
    region = _only_agent(agent).allocate(max(size, 1), name=name, rights=rights, huge_pages=huge_pages)
    return numpy.frombuffer(region, dtype=numpy.uint8, count=size).view(kind).reshape(counts)


def torch_empty(shape: Shape, dtype: Any = None, *, agent: Optional[Agent] = None, name: str = "",
                rights: str = "read_write", huge_pages: str = "auto") -> Any:
    """As `empty`, a torch tensor (of the default dtype unless one is given)."""
    import torch

    counts = _counts(shape)
    kind = torch.get_default_dtype() if dtype is None else dtype
    size = _math.prod(counts) * torch.empty(0, dtype=kind).element_size()
    region = _only_agent(agent).allocate(max(size, 1), name=name, rights=rights, huge_pages=huge_pages)
    return torch.frombuffer(region, dtype=torch.uint8, count=max(size, 1))[:size].view(kind).reshape(counts)


def _agent_empty(self: Agent, shape: Shape, dtype: Any = "uint8", *, name: str = "", rights: str = "read_write",
                 huge_pages: str = "auto") -> Any:
    """See `hawser.empty`."""
    return empty(shape, dtype, agent=self, name=name, rights=rights, huge_pages=huge_pages)


def _agent_torch_empty(self: Agent, shape: Shape, dtype: Any = None, *, name: str = "", rights: str = "read_write",
                       huge_pages: str = "auto") -> Any:
    """See `hawser.torch_empty`."""
    return torch_empty(shape, dtype, agent=self, name=name, rights=rights, huge_pages=huge_pages)


def _world_empty(self: World, shape: Shape, dtype: Any = "uint8") -> Any:
    """A numpy array, zeroed, in memory that the ranks of this host map: they read it there in large collectives.

    All ranks are on one host then, and the buffers of all of them lie in such memory.
    """
    import numpy

    counts, kind = _counts(shape), numpy.dtype(dtype)
    if kind.hasobject:
        raise InvalidError(f"World.empty: dtype {kind} holds Python objects, which cannot be moved")
    size = _math.prod(counts) * kind.itemsize
    return self._allocate(max(size, 1))[:size].view(kind).reshape(counts)


def _agent_counters(self: Agent) -> dict:
    """What the agent counted so far."""
    return _json.loads(self._counters_json())


def _check_peer(call: str, peer: Any) -> None:
    if not isinstance(peer, Peer):
        raise InvalidError(f"{call}(peer, source, target): peer must be a Peer, and is {type(peer).__name__}")


def _agent_write(self: Agent, peer: Peer, source: Any, target: Any, **options: Any) -> Transfer:
    """A plan and its submission in one; for what is done once."""
    _check_peer("write", peer)
    return self.plan_write(peer, source, target).submit(**options)


def _agent_read(self: Agent, peer: Peer, source: Any, target: Any, **options: Any) -> Transfer:
    """A plan and its submission in one; for what is done once."""
    _check_peer("read", peer)
    return self.plan_read(peer, source, target).submit(**options)


_agents: "_weakref.WeakSet[Agent]" = _hawser._agents  # Of this process; each is put there when it is opened.
Agent.empty = _agent_empty  # type: ignore[attr-defined]
Agent.torch_empty = _agent_torch_empty  # type: ignore[attr-defined]
World.empty = _world_empty  # type: ignore[attr-defined]
Agent.counters = _agent_counters  # type: ignore[attr-defined]
Agent.write = _agent_write  # type: ignore[attr-defined]
Agent.read = _agent_read  # type: ignore[attr-defined]
Agent.notifications = _aio.notifications  # type: ignore[attr-defined]
Agent.messages = _aio.messages  # type: ignore[attr-defined]
Agent.events = _aio.events  # type: ignore[attr-defined]
Peer.send_async = _aio.send  # type: ignore[attr-defined]
Transfer.__await__ = lambda self: _aio.finished(self).__await__()  # type: ignore[attr-defined]
Directory.put_async = _aio.put_async  # type: ignore[attr-defined]
Directory.get_async = _aio.get_async  # type: ignore[attr-defined]
Directory.list_async = _aio.list_async  # type: ignore[attr-defined]
Directory.erase_async = _aio.erase_async  # type: ignore[attr-defined]
Watch.wait_async = _aio.wait_async  # type: ignore[attr-defined]
Watch.__aiter__ = lambda self: self  # type: ignore[attr-defined]
Watch.__anext__ = lambda self: _aio.next_of(self)  # type: ignore[attr-defined]
AtomicOp.__await__ = lambda self: _aio.found(self).__await__()  # type: ignore[attr-defined]
_world.attach()
for _kind, _told in _text.TOLD.items():
    _kind.__repr__ = _told  # type: ignore[method-assign]


def _leave() -> None:
    """Calls that run without Python's lock end first, then agents are closed, so that peers are told."""
    _hawser._wait_at_exit()
    _world.leave()
    for agent in list(_agents):
        if not agent.closed:
            try:
                agent.close(1.0)
            except Error:
                pass  # There is nobody left to tell, and a fork's agents are its parent's.


_atexit.register(_leave)
