"""What worlds are in Python beyond the extension module: blocking calls, results with names, `with` and `await`."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import os
import threading
import time
import weakref
from typing import (Any, AsyncIterator, Callable, Generator, Iterator, NamedTuple, Optional, Sequence, TypeVar,
                    Union)

from . import _codec, _hawser, _lookout, _torchrun
from .errors import Error, InvalidError, RemoteError, TimedOutError

ANY = None  # Any source, any tag.
T = TypeVar("T")


_worlds: weakref.WeakSet[_hawser.World] = weakref.WeakSet()


class Received(NamedTuple):
    """What a receive got."""

    source: int
    tag: int
    bytes: int
    data: Any  # The array that was given; without one the bytes themselves. None of a probe.


async def _finished(request: _hawser.Request, result: Callable[[], T]) -> T:
    await _lookout.finished(request)
    return result()


def _ended_by_ctrl_c(call: Callable[[], T]) -> T:
    """
    For a call of the library that waits for other ranks and cannot be ended from outside: where this thread takes Ctrl-C
    another one makes it. After Ctrl-C that one goes on until the call ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    done = threading.Event()
    made: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            made.append(call())
        except BaseException as error:  # It is raised where the call was made.
            raised.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="hawser-call", daemon=True).start()
    except RuntimeError:  # The interpreter ends, and starts none.
        return call()
    done.wait()
    if raised:
        error = raised.pop()
        try:
            raise error
        finally:
            del error  # It refers to this frame.
    return made.pop()


class Call:
    """A call of a function of another rank, under way. Dropped, it goes on."""

    def __init__(self, request: _hawser.Request, rank: int, function: Union[str, int], pickled: bool) -> None:
        self._request, self._rank, self._function, self._pickled = request, rank, function, pickled

    def wait(self, timeout: Any = None) -> Any:
        """
        What the function returned. Raises RemoteError if it raised, else what the call ended with, or TimedOutError when
        the time is over before: it goes on.
        """
        got: Any = self._request._wait(timeout)
        has_raised, value = _codec.decode(got, self._pickled)
        if has_raised:
            raise RemoteError(*value, self._rank, str(self._function))
        return value

    def done(self) -> bool:
        """Over? Only looks."""
        return self._request.done()

    def cancel(self) -> None:
        """It ends now. The function is not stopped where it runs."""
        self._request.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return _finished(self._request, self.wait).__await__()


class Send(NamedTuple):
    """A message of a batch, which this rank sends: one array, or a buffer."""

    x: Any
    dest: int
    tag: int = 0


class Recv(NamedTuple):
    """A message of a batch, which this rank receives; without an array it gets bytes."""

    x: Any = None
    source: Optional[int] = ANY
    tag: Optional[int] = ANY


class ConfigValue(NamedTuple):
    """One option in force, and where it came from."""

    name: str
    value: str
    origin: str


class Batch:
    """Several messages under way, each with a request and an end of its own. Dropped, they go on."""

    def __init__(self, messages: Sequence[Union[Send, Recv]], requests: Sequence[_hawser.Request]) -> None:
        self._messages, self._requests = tuple(messages), tuple(requests)

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> _hawser.Request:
        """The request of one message, in the order in which they were given."""
        return self._requests[index]

    def __iter__(self) -> Iterator[_hawser.Request]:
        return iter(self._requests)

    def done(self) -> bool:
        """Have all ended? Only looks."""
        return all([request.done() for request in self._requests])

    def wait(self, timeout: Any = None) -> list[Optional[Received]]:
        """
        What each got: of a send None. Waits for all, and raises what the first that failed ended with; `batch[i].wait()`
        tells of each. TimedOutError when the time is over before: they go on.
        """
        deadline = None if timeout is None else time.monotonic() + _seconds(timeout)
        got: list[Optional[Received]] = []
        first: Optional[Error] = None
        for number, request in enumerate(self._requests, 1):
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                got.append(self._named(number, request.wait(left)))
            except Error as error:
                if not request.done():
                    raise  # It goes on, and so may others.
                if first is None:
                    first = error
                    if hasattr(error, "add_note"):  # Since Python 3.11.
                        error.add_note(f"message {number} of {len(self._requests)}")
        if first is not None:
            raise first
        return got

    def _named(self, number: int, got: Optional[Received]) -> Optional[Received]:
        x = self._messages[number - 1].x
        return got if got is None or x is None else got._replace(data=x)

    def cancel(self) -> None:
        """Those that have not ended end now."""
        for request in self._requests:
            request.cancel()

    def __await__(self) -> Generator[Any, None, list[Optional[Received]]]:
        return self._finished().__await__()

    async def _finished(self) -> list[Optional[Received]]:
        for request in self._requests:
            await _lookout.finished(request)
        return self.wait()


def _seconds(timeout: Any) -> float:
    return float(timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout)


def _ibatch(self: _hawser.World, messages: Sequence[Union[Send, Recv]], *, exact: bool = False, priority: str = "bulk",
            timeout: Any = None) -> Batch:
    given = list(messages)
    for each in given:
        if not isinstance(each, (Send, Recv)):
            raise TypeError(f"batch: a message is a hawser.Send or hawser.Recv, not {type(each).__name__}")
    sends = [each for each in given if isinstance(each, Send)]
    receives = [each for each in given if isinstance(each, Recv)]
    if any(each.dest is None for each in sends):
        raise InvalidError("batch: a send has no dest")
    made = self._ibatch(sends, receives, exact=exact, priority=priority, timeout=timeout)
    sent, received = iter(made[:len(sends)]), iter(made[len(sends):])
    return Batch(given, [next(sent if isinstance(each, Send) else received) for each in given])


def _batch(self: _hawser.World, messages: Sequence[Union[Send, Recv]], *, exact: bool = False, priority: str = "bulk",
           timeout: Any = None) -> list[Optional[Received]]:
    return _ibatch(self, messages, exact=exact, priority=priority, timeout=timeout).wait()


def _config(self: _hawser.World) -> list[ConfigValue]:
    return [ConfigValue(*each) for each in self._config()]


def _icall(self: _hawser.World, dest: int, name: Union[str, int], *args: Any, timeout: Any = None, pickled: bool = False) -> Call:
    return Call(self._icall(dest, name, _codec.encode(args, pickled), timeout=timeout), dest, name, pickled)


def _call(self: _hawser.World, dest: int, name: Union[str, int], *args: Any, timeout: Any = None, pickled: bool = False) -> Any:
    return _icall(self, dest, name, *args, timeout=timeout, pickled=pickled).wait()


def _register(self: _hawser.World, name: Union[str, int], fn: Any, *, with_source: bool = False, pickled: bool = False) -> None:
    if not callable(fn):
        raise InvalidError(f"register: an object of type {type(fn).__name__} cannot be called")

    def answer(source: int, arguments: bytes) -> bytes:
        try:
            args = _codec.decode(arguments, pickled)
            value = fn(source, *args) if with_source else fn(*args)
            return _codec.encode((False, value), pickled)
        except BaseException as error:  # Whatever it is, the caller waits for it.
            return _codec.encode((True, (type(error).__name__, str(error)[:4096])))

    self._register(name, answer)


def _wait(self: _hawser.Request, timeout: Any = None) -> Optional[Received]:
    """
    What it got, if it is a receive. Raises what it ended with, or TimedOutError when the time is over before: it goes on.
    """
    got: Any = self._wait(timeout)
    return None if got is None else Received(*got)


def _await(self: _hawser.Request) -> Generator[Any, None, Optional[Received]]:
    return _finished(self, self.wait).__await__()


def _recv(self: _hawser.World, x: Any = None, source: Optional[int] = ANY, tag: Optional[int] = ANY,
          exact: bool = False, *, timeout: Any = None) -> Received:
    got = self.irecv(x, source, tag, exact, timeout=timeout).wait()
    return got if x is None else got._replace(data=x)


def _probe(self: _hawser.World, source: Optional[int] = ANY, tag: Optional[int] = ANY, *,
           timeout: Any = None) -> Optional[Received]:
    found = self._probe(source, tag, timeout=timeout)
    return None if found is None else Received(*found)._replace(data=None)


def _send(self: _hawser.World, x: Any, dest: int, tag: int = 0, *, priority: str = "bulk",
          timeout: Any = None) -> None:
    self.isend(x, dest, tag, priority=priority, timeout=timeout).wait()


def _barrier(self: _hawser.World, *, timeout: Any = None) -> None:
    self._waiting.ibarrier(timeout=timeout).wait()


def _all_reduce(self: _hawser.World, x: Any, op: str = "sum", out: Any = None, *, reproducible: bool = False,
                compress: Optional[_hawser.Compressor] = None, timeout: Any = None) -> None:
    self._waiting.iall_reduce(x, op, out, reproducible=reproducible, compress=compress, timeout=timeout).wait()


def _all_reduce_bucketed(self: _hawser.World, x: Sequence[Any], op: str = "sum", bucket: int = 25 << 20, *,
                         reproducible: bool = False, timeout: Any = None) -> None:
    first: Optional[BaseException] = None
    for request in self.iall_reduce_bucketed(x, op, bucket, reproducible=reproducible, timeout=timeout):
        try:
            request.wait()
        except Error as error:
            first = first or error
    if first is not None:
        raise first


def _reduce(self: _hawser.World, x: Any, root: int = 0, op: str = "sum", *, timeout: Any = None) -> None:
    self._waiting.ireduce(x, root, op, timeout=timeout).wait()


def _broadcast(self: _hawser.World, x: Any, root: int = 0, *, timeout: Any = None) -> None:
    self._waiting.ibroadcast(x, root, timeout=timeout).wait()


def _blocking(begin: Any) -> Any:
    @functools.wraps(begin)
    def call(self: _hawser.World, *args: Any, **named: Any) -> None:
        begin(self._waiting, *args, **named).wait()

    return call


# The calls of the extension module that take counts are given them under names of their own.
def _iall_gather(self: _hawser.World, out: Any, x: Any, *, timeout: Any = None) -> _hawser.Request:
    return self._iall_gather(out, x, timeout=timeout)


def _iall_gatherv(self: _hawser.World, out: Any, x: Any, counts: Sequence[int], *,
                  timeout: Any = None) -> _hawser.Request:
    return self._iall_gather(out, x, counts, timeout=timeout)


def _ireduce_scatter(self: _hawser.World, out: Any, x: Any, op: str = "sum", *, reproducible: bool = False,
                     timeout: Any = None) -> _hawser.Request:
    return self._ireduce_scatter(out, x, op, reproducible=reproducible, timeout=timeout)


def _ireduce_scatterv(self: _hawser.World, out: Any, x: Any, counts: Sequence[int], op: str = "sum", *,
                      reproducible: bool = False, timeout: Any = None) -> _hawser.Request:
    return self._ireduce_scatter(out, x, op, counts, reproducible=reproducible, timeout=timeout)


def _igather(self: _hawser.World, out: Any, x: Any, root: int = 0, *, timeout: Any = None) -> _hawser.Request:
    return self._igather(out, x, root, timeout=timeout)


def _igatherv(self: _hawser.World, out: Any, x: Any, counts: Sequence[int], root: int = 0, *,
              timeout: Any = None) -> _hawser.Request:
    return self._igather(out, x, root, counts, timeout=timeout)


def _iscatter(self: _hawser.World, out: Any, x: Any, root: int = 0, *, timeout: Any = None) -> _hawser.Request:
    return self._iscatter(out, x, root, timeout=timeout)


def _iscatterv(self: _hawser.World, out: Any, x: Any, counts: Sequence[int], root: int = 0, *,
               timeout: Any = None) -> _hawser.Request:
    return self._iscatter(out, x, root, counts, timeout=timeout)


def _iall_to_all(self: _hawser.World, out: Any, x: Any, *, timeout: Any = None) -> _hawser.Request:
    return self._iall_to_all(out, x, timeout=timeout)


def _iall_to_allv(self: _hawser.World, out: Any, x: Any, out_counts: Sequence[int], in_counts: Sequence[int], *,
                  timeout: Any = None) -> _hawser.Request:
    return self._iall_to_all(out, x, out_counts, in_counts, timeout=timeout)


def _iscan(self: _hawser.World, x: Any, op: str = "sum", *, timeout: Any = None) -> _hawser.Request:
    return self._iscan(x, op, timeout=timeout)


def _iexclusive_scan(self: _hawser.World, x: Any, op: str = "sum", *, timeout: Any = None) -> _hawser.Request:
    return self._iscan(x, op, True, timeout=timeout)


def _topology_text(topology: Any) -> str:
    """A text, or a list of edges."""
    if isinstance(topology, str):
        return topology
    return "edges:" + ",".join(f"{int(a)}-{int(b)}" for a, b in topology)


def _local(size: int, *, name: str = "world", backends: Any = None, timeout: Any = None,
           topology: Any = "full", quorum: Optional[str] = None, recovery: str = "manual",
           cost_model: Any = None, pool: Optional[_hawser.BufferPool] = None) -> list[_hawser.World]:
    """
    All ranks in this process, by rank; each takes a thread, or the calls with an i. `topology` is "full", "regular:K",
    "hypercube", or a list of edges. `recovery`, `quorum`, `cost_model` and `pool`: as of `open`.
    """
    made = _hawser.World._local(size, name=name, backends=backends, timeout=timeout,
                                topology=_topology_text(topology), quorum=quorum, recovery=recovery,
                                cost_model=None if cost_model is None else os.fspath(cost_model), pool=pool)
    _worlds.update(made)
    return made


_TOKEN_MAX = 4096  # Bytes, as the library has it.


@contextlib.contextmanager
def _token_place(token: Union[str, bytes]) -> Iterator[str]:
    """A descriptor from which the library reads the token, as it reads files: none of its options holds a secret."""
    if not isinstance(token, (str, bytes)):
        raise TypeError(f"World.open: token is a str or bytes, not {type(token).__name__}")
    text = token.encode() if isinstance(token, str) else token
    if len(text) > _TOKEN_MAX:
        raise InvalidError(f"World.open: the token is {len(text)} bytes long; {_TOKEN_MAX} are the most")
    reads, writes = os.pipe()
    try:
        os.write(writes, text)  # As short as it is, it fits.
        os.close(writes)
        yield f"fd:{reads}"
    finally:
        os.close(reads)


def _open(seed: Optional[str] = None, size: Optional[int] = None, rank: Optional[int] = None,
          token: Union[str, bytes, None] = None, store: Any = None, timeout: Any = 30, *,
          directory: Any = None, token_file: Optional[str] = None, name: Optional[str] = None, backends: Any = None,
          driven: bool = True, topology: Any = None, quorum: Optional[str] = None, recovery: str = "manual",
          cost_model: Any = None, agent: Optional[_hawser.Agent] = None,
          peers: Optional[Sequence[Optional[_hawser.Peer]]] = None,
          pool: Optional[_hawser.BufferPool] = None) -> _hawser.World:
    """
    One rank of several processes. They find one another by one of three: `seed`, the address of a seed; `store`, a
    torch.distributed.Store or what has its set, wait and get; `directory`, a directory or its text. Returns when all
    are ready. A value that the caller leaves out is read from the
    environment of `hawser run` (HAWSER_SEED, HAWSER_DIRECTORY ...), mpirun, torchrun or srun. Under torchrun, where
    nothing says where they meet, they do so at its store; without torch at a seed of rank 0, at the port behind
    MASTER_PORT. With `token`, a secret
    that the seed has, too, or with its file `token_file` (HAWSER_TOKEN_FILE), the seed's address needs no ticket.
    `driven=False`: only calls of this rank that wait make progress, without a thread of the library; for as many ranks
    as cores. `topology` is "full", "regular:K", "hypercube", or a list of edges, the same on all ranks
    (HAWSER_TOPOLOGY, where nothing is given). With `quorum` "majority" only more than half of the ranks that are not
    proven dead may shrink the world. `recovery`, the same on all ranks, is what happens by itself once a rank has
    failed: "manual", nothing; "automatic", the world is shrunk, by majority unless `quorum` is "none", and `recovered`
    gives the next one; "abort", all operations of the world end. `cost_model` (HAWSER_COST_MODEL) is a file of
    `hawser bench coll --tune`, by which the algorithms of collectives are chosen; the ranks tell one another, so one
    that has it is enough. With `agent` the world has no agent of its own: that one may be in several worlds, each with
    a name that none of its worlds had before, and closing the world leaves it open. With `peers`, too, these are the
    ranks, by rank, and nothing is looked up: at this rank's place there may be None. `pool` gives buffers to receives
    without one.
    """
    if seed is not None and not isinstance(seed, str):
        raise TypeError(f"World.open: seed is the text 'HOST:PORT', not {type(seed).__name__}; "
                        "give size, rank and directory by name")
    if token is not None and token_file is not None:
        raise InvalidError("World.open: give one of token and token_file")

    def made_with(place: Optional[str]) -> _hawser.World:
        return _hawser.World._open(
            size, rank, directory, name=name, backends=backends, driven=driven, timeout=timeout, store=store,
            seed=seed, token_file=place, topology=None if topology is None else _topology_text(topology),
            quorum=quorum, recovery=recovery, cost_model=None if cost_model is None else os.fspath(cost_model),
            agent=agent, peers=None if peers is None else list(peers), pool=pool,
            torch_store=lambda: _torchrun.store(timeout))

    def make() -> _hawser.World:  # After Ctrl-C it goes on, and needs its descriptor.
        if token is None:
            return made_with(token_file)
        with _token_place(token) as place:
            return made_with(place)

    made = _ended_by_ctrl_c(make)
    _worlds.add(made)
    return made


def _split(self: _hawser.World, color: Optional[int], key: int = 0) -> Optional[_hawser.World]:
    return _ended_by_ctrl_c(lambda: self._split(color, key))


def _shutdown(self: _hawser.World, timeout: Any = None) -> None:
    _ended_by_ctrl_c(lambda: self._shutdown(timeout))


def _leave(self: _hawser.World, timeout: Any = None) -> None:
    _ended_by_ctrl_c(lambda: self._leave(timeout))


def _agree(self: _hawser.World, flag: bool = True, *, timeout: Any = None) -> bool:
    request = self._iagree(flag, timeout=timeout)
    request.wait()
    return self._agreed(request)


def _shrink(self: _hawser.World, without: Sequence[int] = (), *, timeout: Any = None) -> _hawser.World:
    request = self._ishrink(list(without), timeout=timeout)
    request.wait()
    made = self._shrunk(request)
    _worlds.add(made)
    return made


# Seconds: between two looks for an event, and of a look, in which a world without a driver makes progress.
_RECOVERY_LOOK, _RECOVERY_TURN = 0.02, 0.001


# Seconds: between two looks for failures, and of a look.
_FAILURE_LOOK, _FAILURE_TURN = 0.02, 1e-6


class Recovered(NamedTuple):
    """The runtime has shrunk a world after a failure."""

    world: _hawser.World  # The next one. The world before stays revoked.
    old_rank: int  # What this rank was in the world before.
    failed: list[int]  # The ranks of the world before that are not in the next one.


def _recovered(self: _hawser.World, timeout: Any = None) -> Recovered:
    event = self._take_recovered(timeout)
    if event is None:
        raise TimedOutError("World.recovered: there is no event yet")
    made = Recovered(*event)
    _worlds.add(made.world)
    return made


async def _recoveries(self: _hawser.World) -> AsyncIterator[Recovered]:
    world = self
    while True:
        # An event is given once. A thread that took it could not give it back to a task that is cancelled meanwhile.
        event = world._take_recovered(_RECOVERY_TURN)
        if event is None:
            await asyncio.sleep(_RECOVERY_LOOK)
        else:
            made = Recovered(*event)
            _worlds.add(made.world)
            world = made.world
            yield made


async def _failures(self: _hawser.World) -> AsyncIterator[int]:
    known = 0
    while True:
        found = self._failures(known, _FAILURE_TURN)
        if not found:
            await asyncio.sleep(_FAILURE_LOOK)
        for rank in found:
            known += 1
            yield rank


def leave() -> None:
    """At the interpreter's end: the others are told that this rank is gone."""
    for world in list(_worlds):
        try:
            world.close(1.0)
        except Error:
            pass  # There is nobody left to tell, and a fork's worlds are its parent's.


def _exit(self: _hawser.World, kind: Any, _error: Any, _trace: Any) -> None:
    """Leaves with all others after a good end; else at once."""
    if kind is None:
        self.shutdown()
        return
    try:
        self.close()
    except Error:
        pass  # The first error is the one to be seen.


def attach() -> None:
    """Gives the extension module's classes all that is here."""
    request: Any = _hawser.Request
    world: Any = _hawser.World
    world.local, world.open = staticmethod(_local), staticmethod(_open)
    request.wait, request.__await__ = _wait, _await
    world.recv, world.probe = _recv, _probe
    world.__enter__, world.__exit__ = lambda self: self, _exit
    world.send, world.barrier, world.all_reduce = _send, _barrier, _all_reduce
    world.all_reduce_bucketed = _all_reduce_bucketed
    compressor: Any = _hawser.Compressor
    compressor.residual = property(lambda self: memoryview(self._residual()).cast("f"),
                                   doc="What was left out so far, as floats: numpy.asarray(c.residual).")
    world.reduce, world.broadcast = _reduce, _broadcast
    world.register, world.call, world.icall = _register, _call, _icall
    world.ibatch, world.batch, world.config = _ibatch, _batch, _config
    world.split, world.shutdown, world.leave = _split, _shutdown, _leave
    world.agree, world.shrink, world.failures = _agree, _shrink, _failures
    world.recovered, world.recoveries = _recovered, _recoveries
    for name, begin in list(globals().items()):
        if name.startswith("_i") and name not in ("_icall", "_ibatch"):
            setattr(world, name[1:], begin)
            setattr(world, name[2:], _blocking(begin))
