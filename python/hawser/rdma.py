"""Remote buffers under the public names of `monarch.rdma`, over Hawser: `import hawser.rdma as rdma` in its place.

    buffer = RDMABuffer(tensor)                    # here; then pickle it to any process
    await buffer.read_into(mine)                   # there; or .get() without an event loop
    await buffer[64:128].write_from(part, notify=b"part 1 is there")
    await buffer.drop()                            # anywhere: nobody reaches the memory any more

Each process has one agent, opened at first use; bytes go the best way there is to the owner: RDMA, shared memory, tcp.
Everything starts when it is called. What calls return can be awaited in any asyncio loop, and has `get(timeout)`.
docs/rdma-python.md tells the rules and what differs from `monarch.rdma`.
"""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import socket
import sys
import threading
import warnings
import weakref
from typing import Any, AsyncIterator, List, Optional, Tuple

from . import Agent, Segment, _aio, _hawser, _rdma_environment
from ._rdma_wait import Operation
from .errors import Error, InvalidError, NotFoundError, UnsupportedError

__all__ = ["Operation", "RDMAAction", "RDMABuffer", "RDMAReadTransferWarning", "RDMATcpFallbackWarning",
           "RDMAWriteTransferWarning", "agent", "close", "configure", "get_rdma_backend", "is_ibverbs_available",
           "is_rdma_available", "notifications", "take_notification"]

_READ, _WRITE, _FETCH_ADD, _COMPARE_SWAP = 1, 2, 3, 4
_WORD = 8
_U64 = (1 << 64) - 1
_NAMES = {"verbs": "ibverbs"}


class RDMAReadTransferWarning(Warning):
    """Kept for programs that name it: reads are never worked around here, so it is not issued."""


class RDMAWriteTransferWarning(Warning):
    """Kept for programs that name it: writes are never worked around here, so it is not issued."""


class RDMATcpFallbackWarning(Warning):
    """Bytes go over tcp. Issued once in a process."""


def _switch(name: str, otherwise: bool) -> bool:
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return otherwise
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise InvalidError(f"{name}={text!r} is neither yes nor no")


_configured: Optional[List[str]] = None
_name: Optional[str] = None
_directory: Any = None


def configure(*, backends: Optional[List[str]] = None, name: Optional[str] = None, directory: Any = None) -> None:
    """Sets options of the agent that this process opens next. Call it before the first use, or after `close`. None
    takes the default again.

    backends: which to open, in order of preference ("tcp" alone: no shared memory); None: what HAWSER_BACKENDS says, or
    all that work. name: the agent's, which it must keep over restarts where others `renew` its buffers; None: one that
    no other process has. directory: where agents find each other by name, as hawser.Agent takes it."""
    global _configured, _name, _directory
    _configured = None if backends is None else list(backends)
    _name, _directory = name, directory


def _wanted_backends() -> Optional[List[str]]:
    """None: all that work here."""
    named = os.environ.get("HAWSER_BACKENDS", "").split(",") if _configured is None else _configured
    names = [each.strip().lower() for each in named if each.strip()]
    tcp = _switch("MONARCH_RDMA_ALLOW_TCP_FALLBACK", True)
    verbs = not _switch("MONARCH_RDMA_DISABLE_IBVERBS", False)
    if not names and tcp and verbs:
        return None
    if not names:
        names = ["verbs", "shm", "tcp"]
    names = [name for name in names if (tcp or name != "tcp") and (verbs or name != "verbs")]
    return names + [name for name in ("loopback",) if name not in names]


def _torch_segments() -> List[Segment]:
    """PyTorch's expandable segments: each is registered whole, and tensors in it share its key."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [Segment(one["address"], one["total_size"], one["device"]) for one in torch.cuda.memory_snapshot()
            if one.get("is_expandable")]


class _Engine:
    """The agent of this process, and its rdma backend."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        name = _name or f"rdma-{socket.gethostname()[:64]}-{self.pid}-{secrets.token_hex(4)}"
        wanted = _wanted_backends()
        settings = _rdma_environment.settings(wanted)
        if wanted is not None:
            settings["mode"] = "lenient"
        try:
            # Its backend's thread drives it, and says so.
            self.agent = Agent(name, backends=wanted, directory=_directory, settings=settings, driver=False,
                               segments=_torch_segments)
        except Error as error:
            raise RuntimeError(f"hawser.rdma: no backend could be opened: {error}") from error
        self.open = {each["name"] for each in self.agent.backends() if each["open"]}
        if not self.open & {"verbs", "shm", "tcp"} and not self.open - {"loopback", "file"}:
            why = "; ".join(f"{each['name']}: {each['cause']}" for each in self.agent.backends() if not each["open"])
            self.agent.close()
            raise RuntimeError("hawser.rdma: no backend leads to other processes. Allow tcp by "
                               f"MONARCH_RDMA_ALLOW_TCP_FALLBACK=1, or mend the others ({why})")
        self.backend = _hawser.RdmaBackend(self.agent)
        self.ids = itertools.count(1)
        self.warned = False

    def close(self, timeout: Any = 5.0) -> None:
        self.backend.close()
        self.agent.close(timeout)


_lock = threading.Lock()
_engine: Optional[_Engine] = None
_left_behind: List[Any] = []  # Those of a fork's parent: nothing of theirs may be touched here, not even dropped.


def _current() -> _Engine:
    global _engine
    engine = _engine
    if engine is not None and engine.pid == os.getpid() and not engine.agent.closed:
        return engine
    with _lock:
        if _engine is not None and _engine.pid != os.getpid():
            _left_behind.append((_engine, dict(_registered)))
            _registered.clear()
            _engine = None
        if _engine is None or _engine.agent.closed:
            _registered.clear()
            _engine = _Engine()
        return _engine


def _after_fork() -> None:
    global _lock, _name
    _lock = threading.Lock()  # Whoever held it does not exist here.
    _name = None  # It is the parent's.


os.register_at_fork(after_in_child=_after_fork)


def agent() -> Agent:
    """This process's agent, opened now if it was not: its counters, its settings, its peers."""
    return _current().agent


def close(timeout: Any = 5.0) -> None:
    """Takes back all buffers of this process and closes its agent; the next use opens another one."""
    global _engine
    with _lock:
        engine, _engine = _engine, None
    if engine is not None and engine.pid == os.getpid():
        _registered.clear()
        if not engine.agent.closed:
            engine.close(timeout)


def _leave() -> None:
    try:
        close(1.0)
    except Error:
        pass  # There is nobody left to tell.


atexit.register(_leave)


# Memory. Registrations are kept as long as the object that was given lives, so that using it again costs a look-up.

_registered: dict = {}  # id(object) -> (weak reference, address, size, whether writable, engine, RdmaMemory)


class _Memory:
    """Where an object's bytes are, and what keeps them there."""

    __slots__ = ("address", "size", "writable", "keep", "gpu")

    def __init__(self, data: Any) -> None:
        self.gpu: Optional[int] = None
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(data, torch.Tensor):
            self._of_tensor(data)
            return
        try:
            view = memoryview(data)
        except TypeError:
            raise InvalidError(f"{type(data).__name__} is no memory: give a tensor, or what has the buffer protocol "
                               "(memoryview, bytearray, numpy)") from None
        if not view.c_contiguous:
            raise InvalidError("the memory is not C-contiguous: give a contiguous part or a copy")
        if "O" in "".join(view.format.split(":")[::2]):  # Names of fields stand between colons.
            raise InvalidError("the memory holds Python objects, which cannot be moved: give an array of numbers")
        self.address, self.size, self.writable = _hawser.address_of(view), view.nbytes, not view.readonly
        self.keep = view

    def _of_tensor(self, tensor: Any) -> None:
        if not tensor.is_contiguous():
            raise InvalidError("the tensor is not contiguous: give tensor.contiguous()")
        if tensor.is_conj() or tensor.is_neg():
            raise InvalidError("the tensor's bytes are not its numbers yet: give tensor.resolve_conj().resolve_neg()")
        if tensor.device.type == "cuda":
            self.gpu = tensor.device.index or 0
        elif tensor.device.type != "cpu":
            raise UnsupportedError(f"the tensor is on {tensor.device}: no backend serves its memory; "
                                   "copy it to the host first")
        self.address, self.size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        self.writable, self.keep = True, tensor.untyped_storage()

    def registered(self, engine: "_Engine", owner: Any) -> Any:
        return engine.backend.memory_at(self.address, self.size, owner, self.writable, self.gpu)


def _local(engine: _Engine, data: Any) -> Tuple[Any, Any]:
    """Registered memory for an operation, and what to keep alive meanwhile."""
    memory = _Memory(data)
    key = id(data)
    known = _registered.get(key)
    is_as = (memory.address, memory.size, memory.writable, engine)
    if known is not None and known[0]() is data and known[1:5] == is_as:
        return known[5], memory.keep
    try:
        reference = weakref.ref(data, lambda gone: _forget(key, gone))
    except TypeError:  # Such as bytearray: registered for this use alone.
        return memory.registered(engine, memory.keep), memory.keep
    # Without an owner: the entry goes before the object's memory does, and operations keep that themselves.
    made = memory.registered(engine, None)
    _registered[key] = (reference, *is_as, made)
    return made, memory.keep


def _forget(key: int, gone: Any) -> None:
    known = _registered.get(key)
    if known is not None and known[0] is gone:
        del _registered[key]


def _seconds(timeout: Any) -> float:
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else float(timeout)
    if seconds < 0:
        raise OverflowError(f"the timeout {timeout} is negative")
    return seconds


def _word(value: int) -> int:
    """As 64 bits, of numbers with a sign and without."""
    if not -(1 << 63) <= value <= _U64:
        raise InvalidError(f"{value if abs(value) <= 1 << 80 else 'the value'} does not fit into 64 bits")
    return value & _U64


class RDMABuffer:
    """Memory of this process that others may read and write, or a handle of another's. Pickle it to send it on.

    It stays reachable, and its memory alive, until somebody drops it or its process ends.
    """

    __slots__ = ("_buffer", "_looked", "__weakref__")

    def __init__(self, data: Any, *, name: str = "") -> None:
        """`data`: a contiguous tensor of the host or, where verbs reaches it, of a CUDA device; or anything with a
        C-contiguous buffer. Never a copy. `name`: by which holders `renew` it after this process's restart."""
        memory = _Memory(data)
        if memory.size == 0:
            raise InvalidError("RDMABuffer: the memory has no bytes")
        engine = _current()
        made = memory.registered(engine, memory.keep)
        rights = "read_write" if memory.writable else "read"
        self._buffer = engine.backend.request_buffer(next(engine.ids), made, rights, name)
        self._looked = True

    @classmethod
    def _of(cls, buffer: Any) -> "RDMABuffer":
        made = cls.__new__(cls)
        made._buffer = buffer
        made._looked = False
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> "RDMABuffer":
        """From what `to_bytes` gave, in any process."""
        return cls._of(_hawser.RdmaBuffer.decode(data))

    def to_bytes(self) -> bytes:
        """All that another process needs."""
        return self._buffer.encode()

    def __reduce__(self) -> Any:
        return (_from_bytes, (self._buffer.encode(),))

    def __repr__(self) -> str:
        return f"<RDMABuffer {self._buffer.id} of {self._buffer.owner}: {self._buffer.size} bytes>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RDMABuffer) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash((self._buffer.id, self._buffer.incarnation, self._buffer.offset, self._buffer.size))

    def size(self) -> int:
        """Bytes."""
        return self._buffer.size

    @property
    def backend(self) -> str:
        """By what its bytes go from here: ibverbs, shm, tcp, or self in its own process."""
        name = _current().backend.transport_of(self._buffer)[0]
        return _NAMES.get(name, name)

    @property
    def owner(self) -> str:
        """The agent that it belongs to: name/incarnation."""
        return f"{self._buffer.owner}/{self._buffer.incarnation}"

    @property
    def name(self) -> str:
        """By which it was lent, or ""."""
        return self._buffer.name

    def explain(self, data: Any = None) -> str:
        """For people: what its bytes go by from here, what `data` would cost, and why they go by nothing else."""
        engine = _current()
        return engine.backend.explain(self._buffer, None if data is None else _local(engine, data)[0])

    def renew(self, *, timeout: Any = 60) -> "RDMABuffer":
        """After its owner's restart: the buffer that the owner's agent of now lends by this name, and of that the same
        part. Both processes are in one directory and the owner's agent has a name (`configure`). Waits for an owner that
        is not there yet. This handle is the new one, which is returned. Blocks: `asyncio.to_thread(buffer.renew)`."""
        self._buffer = _current().backend.renew(self._buffer, _seconds(timeout))
        return self

    @property
    def contexts(self) -> List[str]:
        """Ways to it that its handle tells of."""
        return self._buffer.contexts

    @property
    def is_local(self) -> bool:
        """Whether it is of this process, and not dropped."""
        return _current().backend.is_local(self._buffer)

    def slice(self, offset: int, size: int) -> "RDMABuffer":
        """A part, as a buffer; `drop` of a part drops the whole."""
        return RDMABuffer._of(self._buffer.slice(offset, size))

    def __getitem__(self, part: Any) -> "RDMABuffer":
        if not isinstance(part, slice):
            raise TypeError("give a range of bytes: buffer[begin:end]")
        begin, end, step = part.indices(self._buffer.size)
        if step != 1:
            raise InvalidError("a part of a buffer has no step")
        return self.slice(begin, max(end - begin, 0))

    def _run(self, kind: int, data: Any, timeout: Any, notify: Any) -> Operation:
        seconds = _seconds(timeout)
        engine = _current()
        memory, keep = _local(engine, data)
        self._look(engine)
        return Operation(engine.backend.submit([(kind, memory, self._buffer, 0, 0, notify, keep)], seconds))

    def _look(self, engine: _Engine) -> None:
        """Once for each handle: is it tcp?"""
        if self._looked or engine.warned:
            return
        self._looked = True
        try:
            is_tcp = engine.backend.transport_of(self._buffer)[0] == "tcp"
        except Error:
            return  # The operation tells it.
        if is_tcp:
            engine.warned = True
            warnings.warn("RDMA is not to be had to this buffer's owner: bytes go over tcp. `hawser doctor` tells why",
                          RDMATcpFallbackWarning, stacklevel=4)

    def read_into(self, dst: Any, *, timeout: Any = 60, notify: Optional[bytes] = None) -> Operation:
        """Copies the buffer into `dst`, which must be at least as large; what is beyond stays as it is."""
        return self._run(_READ, dst, timeout, notify)

    def write_from(self, src: Any, *, timeout: Any = 60, notify: Optional[bytes] = None) -> Operation:
        """Copies `src` to the buffer's begin. `notify` is told to the owner once, after the bytes."""
        return self._run(_WRITE, src, timeout, notify)

    def _atomic(self, kind: int, offset: int, value: int, expected: int, timeout: Any) -> Operation:
        word = self._buffer.slice(offset, _WORD)
        ops = [(kind, None, word, value, expected, None, None)]
        return Operation(_current().backend.submit(ops, _seconds(timeout)), found=True)

    def fetch_add(self, add: int, *, offset: int = 0, timeout: Any = 60) -> Operation:
        """Adds to the 64-bit word at `offset`, modulo 2^64; gives what was there. The owner's process does it."""
        return self._atomic(_FETCH_ADD, offset, add & _U64, 0, timeout)

    def compare_and_swap(self, compare: int, swap: int, *, offset: int = 0, timeout: Any = 60) -> Operation:
        """Puts `swap` into the word if it is `compare`; gives what was there."""
        return self._atomic(_COMPARE_SWAP, offset, _word(swap), _word(compare), timeout)

    def drop(self, *, timeout: Any = 60) -> Operation:
        """Takes the buffer away from everybody, from any holder, awaited or not. Good, too, when that was done before."""
        batch = _current().backend.release(self._buffer, _seconds(timeout))
        return Operation(batch, forgiven=NotFoundError)


def _from_bytes(data: bytes) -> RDMABuffer:
    return RDMABuffer.from_bytes(data)


class RDMAAction:
    """Operations that are submitted together, in no order, as often as wanted."""

    def __init__(self) -> None:
        self._ops: List[tuple] = []
        self._running: Optional[Operation] = None

    def _add(self, kind: int, data: Any, buffer: RDMABuffer, value: int = 0, expected: int = 0) -> "RDMAAction":
        if self._running is not None and not self._running.done():
            raise RuntimeError("RDMAAction: it is running; wait for it before it is changed")
        if not isinstance(buffer, RDMABuffer):
            raise InvalidError(f"RDMAAction: {type(buffer).__name__} is no RDMABuffer")
        memory = _Memory(data)
        handle = buffer._buffer.slice(0, _WORD) if kind in (_FETCH_ADD, _COMPARE_SWAP) else buffer._buffer
        if kind == _WRITE and memory.size > handle.size or kind != _WRITE and memory.size < handle.size:
            raise InvalidError(f"RDMAAction: local memory of {memory.size} bytes does not fit a buffer of {handle.size}")
        self._ops.append((kind, data, handle, value, expected, buffer))
        return self

    def read_remote(self, dst: Any, src: RDMABuffer) -> "RDMAAction":
        """The buffer into local memory."""
        return self._add(_READ, dst, src)

    def write_remote(self, dst: RDMABuffer, src: Any) -> "RDMAAction":
        """Local memory to the buffer."""
        return self._add(_WRITE, src, dst)

    def fetch_add(self, src: RDMABuffer, dst: Any, add: int) -> "RDMAAction":
        """Adds to the buffer's first 64-bit word; what was there goes into the 8 bytes of `dst`."""
        return self._add(_FETCH_ADD, dst, src, add & _U64)

    def compare_and_swap(self, src: RDMABuffer, dst: Any, compare: int, swap: int) -> "RDMAAction":
        """Puts `swap` there if the word is `compare`; what was there goes into the 8 bytes of `dst`."""
        return self._add(_COMPARE_SWAP, dst, src, _word(swap), _word(compare))

    def submit(self, *, timeout: Any = 60) -> Operation:
        """Runs all. `outcomes` of what it returns tells of each; one failure fails the whole."""
        seconds = _seconds(timeout)
        if self._running is not None and not self._running.done():
            raise RuntimeError("RDMAAction: it is running; wait for it before it is submitted again")
        if not self._ops:
            return Operation(None)
        engine = _current()
        ops = []
        for kind, data, handle, value, expected, buffer in self._ops:
            memory, keep = _local(engine, data)
            buffer._look(engine)
            ops.append((kind, memory, handle, value, expected, None, keep))
        self._running = Operation(engine.backend.submit(ops, seconds))
        return self._running


def is_ibverbs_available() -> bool:
    """Whether this process's agent has the backend verbs open."""
    return not _switch("MONARCH_RDMA_DISABLE_IBVERBS", False) and "verbs" in _current().open


def is_rdma_available() -> bool:
    """Deprecated: is_ibverbs_available."""
    warnings.warn("is_rdma_available is deprecated: use is_ibverbs_available", DeprecationWarning, stacklevel=2)
    return is_ibverbs_available()


def get_rdma_backend() -> str:
    """ibverbs where that is open, else tcp, or none where that is not allowed. `RDMABuffer.backend` tells what is used."""
    if is_ibverbs_available():
        return "ibverbs"
    return "tcp" if "tcp" in _current().open else "none"


def take_notification() -> Optional[_hawser.Notification]:
    """The oldest of what `notify` of others told this process, or None."""
    return _current().agent.take_notification()


def notifications() -> AsyncIterator[_hawser.Notification]:
    """What `notify` of others tells this process, as it comes."""
    return _aio.notifications(_current().agent)
