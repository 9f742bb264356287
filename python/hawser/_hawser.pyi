"""The extension module: what each class is for is said where it is bound; docs/python.md leads through it."""

import builtins
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from datetime import timedelta
from typing import Any, Self, TypeAlias
from weakref import WeakSet

from ._world import Batch, Call, ConfigValue, Received, Recovered, Recv, Send
from .errors import Error

Seconds: TypeAlias = float | timedelta | None
File: TypeAlias = str | bytes | os.PathLike[str] | int | Any  # A path, a descriptor, or what open() gives.
Data: TypeAlias = bytes | str | bytearray | memoryview
Memory: TypeAlias = Any  # The buffer protocol, or __dlpack__.
Blocks: TypeAlias = int | Sequence[tuple[int, ...]] | Any  # A block's size; ranges; an array of them.
Index: TypeAlias = Sequence[int] | Any | None  # A list or an array of integers.
Entry: TypeAlias = tuple[int, int, int, Error | None]  # Kind, cookie, bytes, error.
Local: TypeAlias = Table | Sequence[Table] | Range | Region | Sequence[Range] | Memory
Remote: TypeAlias = Table | Sequence[Table] | RemoteRange | Sequence[RemoteRange]

__version__: str
MESSAGE_MAX: int = 65536
_agents: WeakSet[Agent]  # Those of this process that were opened and are still there.

class Peer:
    """Another agent, known by its card."""

    @property
    def name(self) -> str: ...

    @property
    def incarnation(self) -> str: ...

    @property
    def state(self) -> str:
        """known, up, suspect or down"""

    @property
    def is_self(self) -> bool: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def region_names(self) -> list[str]: ...

    def region(self, which: str | int) -> RemoteRange:
        """All of a region, by name or by number."""

    def range(self, region: str | int, offset: int = 0, size: int | None = None) -> RemoteRange: ...

    def table(self, region: str, blocks: Blocks, timeout: Seconds = None) -> Table:
        """As Region.table, over a region of the peer; waits so long for the region where it is not there yet."""

    def await_regions(self, regions: Sequence[str], timeout: Seconds = None) -> None:
        """Waits until the peer has regions of all these names."""

    def import_table(self, data: Data) -> Table:
        """A table that Table.encode made at the peer."""

    def import_grant(self, data: Data) -> GrantedRegion:
        """The part of its memory that a grant by it gives."""

    def connect(self, timeout: Seconds = None) -> None:
        """Opens paths now and waits until one is up."""

    def reconnect(self) -> None:
        """Tries now what the agent would try after a pause. Does not wait."""

    def notify(self, data: Data) -> None:
        """Sends a notification that belongs to no transfer."""

    def send(self, channel: int, data: Data, timeout: Seconds = None) -> int:
        """
        Sends a message on a channel that the peer opened. Waits up to `timeout` (5 s) for the peer's greeting, for the channel to be open and for room; 0 does not wait. Then BusyError. Returns the message's number: on each channel 1, 2, 3 and so on, anew with each session.
        """

    def acknowledged(self) -> dict[int, int]:
        """
        By channel the number of the last message that the peer's agent is known to have taken, with all before it; 0: none. Also of a peer that is down. Taken is in the agent's inbox, not read by its program.
        """

    async def send_async(self, channel: int, data: Data, timeout: Seconds = None) -> int:
        """As `send`, without blocking the event loop."""

    def opened(self, channel: int) -> bool:
        """Whether the peer has told that the channel is open."""

    @property
    def agent(self) -> Agent: ...

class Region:
    """
    Registered memory of an agent. Has the buffer protocol: memoryview(region) views its bytes.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def address(self) -> int: ...

    @property
    def rights(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def writable(self) -> bool: ...

    @property
    def huge_pages(self) -> bool: ...

    @property
    def mappable(self) -> bool:
        """Whether peers of this host can map it: allocated memory, and what was adopted."""

    @property
    def why_not_mappable(self) -> str | None:
        """None for memory that is mappable."""

    def __len__(self) -> int: ...

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def range(self, offset: int = 0, size: int | None = None) -> Range:
        """A part of it, for plans."""

    def table(self, blocks: Blocks) -> Table:
        """
        A prepared list of ranges: blocks of that many bytes over the whole region, or an array or list of (offset, size) or (offset, size, stride, count).
        """

    @property
    def listed(self) -> bool:
        """Whether the agent's card tells of it."""

    def grant(self, offset: int = 0, size: int | None = None, *, rights: str = "read_write", expiry: Seconds,
              peer: Peer | None = None, single_use: bool = False) -> Grant:
        """
        The right to a part of it, as bytes for a peer. `expiry`: seconds, or None: until it is revoked or the region is closed. `peer`: the only one that may use it. `single_use`: for one transfer.
        """

    def close(self, timeout: Seconds = None) -> bool:
        """Refuses new uses, revokes its grants, and waits until nobody touches the memory any more."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

class Range:
    """A part of a region of this agent."""

    @property
    def region(self) -> Region: ...

    @property
    def offset(self) -> int: ...

    @property
    def size(self) -> int: ...

class RemoteRange:
    """A part of a region of a peer."""

    @property
    def region(self) -> str: ...

    @property
    def rights(self) -> str: ...

    @property
    def offset(self) -> int: ...

    @property
    def size(self) -> int: ...

class Grant:
    """The right to a part of a region, as its owner has it. Dropped, the grant goes on."""

    @property
    def data(self) -> bytes:
        """
        What the holder imports. Who has them may use the grant, unless it is for one peer: treat them as a password.
        """

    @property
    def ended(self) -> bool:
        """Nobody touches the memory by it any more."""

    def revoke(self, timeout: Seconds = None) -> bool:
        """Ends it and waits until nobody touches the memory by it any more."""

class GrantedRegion:
    """The part of a peer's memory that a grant gives."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def rights(self) -> str: ...

    @property
    def single_use(self) -> bool: ...

    @property
    def peer(self) -> Peer:
        """Its owner."""

    def __len__(self) -> int: ...

    def range(self, offset: int = 0, size: int | None = None) -> RemoteRange:
        """A part of it, for plans."""

    def table(self, blocks: Blocks) -> Table:
        """As Region.table, over what the grant gives."""

class Table:
    """A prepared, immutable list of ranges of one region, by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[int, int]:
        """(offset, size) of one range."""

    @property
    def is_remote(self) -> bool: ...

    def encode(self) -> bytes:
        """Its shape as bytes, for Peer.import_table at a peer."""

class Plan:
    """A validated, prepared transfer, submitted as often as wanted."""

    def submit(self, *, notify: Data | None = None, deadline: Seconds = None, priority: str = "bulk",
               queue: CompletionQueue | None = None, cookie: int = 0, label: int = 0,
               signal: tuple[RemoteRange, int] | None = None, after: Transfer | tuple[Range, int] | None = None,
               done: tuple[Range, int] | None = None, durable: bool = False) -> Transfer:
        """Starts one transfer.

        Nothing orders it with others in flight: `after` makes it wait for another transfer of this agent to end well
        (if that ends otherwise, this one is cancelled), or for a word of this agent to reach a number.
        """

    @staticmethod
    def join(plans: Iterable[Plan]) -> Plan:
        """One plan of several of one peer and operation, in their order: one transfer, one notification."""

    def run(self, *, deadline: Seconds = None) -> None:
        """Starts one transfer and waits until it is final; raises what it ended with. As `submit().wait()`, for less.

        `deadline`: the transfer's own, as in `submit`; None: the agent's default. Ctrl-C cancels it. Other threads run
        meanwhile; in a coroutine `await submit()` instead.
        """

    @property
    def operation(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def range_count(self) -> int: ...

    @property
    def piece_count(self) -> int: ...

class Transfer:
    """One submission in flight. Dropping it cancels it."""

    @property
    def done(self) -> bool:
        """Final? Only looks."""

    @property
    def status(self) -> str:
        """in_flight, ok, or the name of what went wrong."""

    @property
    def error(self) -> Error | None:
        """The exception that wait would raise, or None."""

    @property
    def bytes(self) -> int:
        """Moved so far."""

    @property
    def agent(self) -> Agent: ...

    @property
    def _ticket(self) -> int: ...

    def wait(self, timeout: Seconds = None) -> None:
        """
        Waits until it is final; raises what it ended with, or TimedOutError when the time is over before.
        """

    def cancel(self) -> None: ...

    def __await__(self) -> Generator[Any, None, None]: ...

class Request:
    """One operation of a world under way. Dropped, it goes on, and keeps its arrays; its error goes to the log `hawser`."""

    def done(self) -> bool:
        """Over? Only looks."""

    def wait(self, timeout: Seconds = None) -> Received | None:
        """
        What it got, if it is a receive. Raises what it ended with, or TimedOutError when the time is over before: it goes on.
        """

    def cancel(self) -> None:
        """It ends now. A collective ends on all ranks, and with it the world's others."""

    def _wait(self, timeout: Seconds = None) -> tuple[int, int, int, bytes] | None: ...

    def _look(self) -> bool: ...

    def __await__(self) -> Generator[Any, None, Received | None]: ...

class Compressor:
    """
    Packs the elements of one tensor for an all_reduce, and keeps what packing left out for the next one. Each rank makes
    one for each tensor, all in the same way.
    """

    @staticmethod
    def top_k(ratio: float, *, feedback: bool = True) -> Compressor:
        """The elements of the largest magnitude, that part of them."""

    @staticmethod
    def random_k(ratio: float, seed: int = 0, *, feedback: bool = True) -> Compressor:
        """That part of the elements, drawn by the seed, which is the same on all ranks."""

    @staticmethod
    def int8(*, feedback: bool = True) -> Compressor:
        """8 bits for each element, and a scale for each 256 of them."""

    @staticmethod
    def fp8(type: str = "e4m3", *, feedback: bool = True) -> Compressor:
        """The same with floating point."""

    @property
    def name(self) -> str: ...

    @property
    def residual(self) -> memoryview:
        """What was left out so far, as floats: numpy.asarray(c.residual)."""

    def _residual(self) -> bytes: ...

    def reset(self) -> None:
        """Forgets what was left out, and how many calls there were; all ranks at the same place."""

class BufferPool:
    """
    Keeps the buffers of receives that are given none; several worlds may share one. Its memory is bounded by its tiers.
    A message that finds no buffer gets ordinary memory.
    """

    @staticmethod
    def training() -> BufferPool:
        """256 buffers of 64 KiB, 32 of 8 MiB, 16 of 64 MiB and 4 of 256 MiB."""

    @staticmethod
    def inference() -> BufferPool:
        """256 buffers of 64 KiB, 16 of 8 MiB and 4 of 64 MiB."""

    @staticmethod
    def with_tiers(tiers: Iterable[tuple[int, int]], *, refuse: bool = False) -> BufferPool:
        """
        Tiers of one's own, as pairs of the bytes of a buffer and their number. With `refuse` a message that finds no
        buffer stays where it is, and its receive ends with BusyError.
        """

    def statistics(self) -> dict[str, Any]:
        """
        `tiers`, from the smallest, each with `bytes` of a buffer, `count`, and how many were `made`, are `used`, were
        used at once (`most_used`) and were `taken`; `bytes` of all that were made; `beyond`, how many messages found none.
        """

    def trim(self) -> None:
        """Frees the buffers that nobody uses."""

class World:
    """One rank of a number of ranks that send messages and run collective operations."""

    @staticmethod
    def local(size: int, *, name: str = "world", backends: Iterable[str] | None = None,
              timeout: Seconds = None, topology: str | Iterable[tuple[int, int]] = "full",
              quorum: str | None = None, recovery: str = "manual",
              cost_model: str | os.PathLike[str] | None = None, pool: BufferPool | None = None) -> list[World]:
        """
        All ranks in this process, by rank; each takes a thread, or the calls with an i. `topology` is "full",
        "regular:K", "hypercube", or a list of edges. `recovery`, `quorum`, `cost_model` and `pool`: as of `open`.
        """

    @staticmethod
    def open(seed: str | None = None, size: int | None = None, rank: int | None = None,
             token: str | bytes | None = None, store: Any = None, timeout: Seconds = 30, *,
             directory: Directory | str | None = None, token_file: str | None = None, name: str | None = None,
             backends: Iterable[str] | None = None, driven: bool = True,
             topology: str | Iterable[tuple[int, int]] | None = None, quorum: str | None = None,
             recovery: str = "manual", cost_model: str | os.PathLike[str] | None = None, agent: Agent | None = None,
             peers: Sequence[Peer | None] | None = None, pool: BufferPool | None = None) -> World:
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

    @staticmethod
    def _local(size: int, *, name: str = "world", backends: Iterable[str] | None = None,
               timeout: Seconds = None, topology: str = "full", quorum: str | None = None,
               recovery: str = "manual", cost_model: str | None = None,
               pool: BufferPool | None = None) -> list[World]: ...

    @staticmethod
    def _open(size: int | None, rank: int | None, directory: Directory | str | None = None, *, name: str | None,
              backends: Iterable[str] | None = None, driven: bool, timeout: Seconds = None,
              store: Any = None, seed: str | None = None, token_file: str | None = None,
              topology: str | None = None, quorum: str | None = None, recovery: str = "manual",
              cost_model: str | None = None, agent: Agent | None = None, peers: Sequence[Peer | None] | None = None,
              pool: BufferPool | None = None, torch_store: Callable[[], Any] | None = None) -> World: ...

    def config(self) -> list[ConfigValue]:
        """The options that the world has ended up with: each with its value, and where it came from. No secrets."""

    def _config(self) -> list[tuple[str, str, str]]: ...

    def memory(self) -> dict[str, int]:
        """
        Bytes that this rank holds for the world and its groups, by kind: boards, unreceived, receives, pool, calls,
        collectives, relays, flight recorder.
        """

    @property
    def cost_model(self) -> str:
        """By what the algorithms of collectives are chosen: 'built in', or which rank told it, and its values."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def is_sparse(self) -> bool:
        """Whether ranks that are no neighbours reach one another by others."""

    @property
    def host(self) -> int:
        """The number of this rank's host: from 0, in the order of the hosts' first ranks."""

    def host_of(self, rank: int) -> int:
        """The number of a rank's host."""

    @property
    def local_rank(self) -> int:
        """This rank's number among the ranks of its host, from 0."""

    @property
    def local_size(self) -> int:
        """How many ranks are on this rank's host."""

    def has_direct_peer(self, rank: int) -> bool:
        """Whether the rank is a neighbour in the world's topology."""

    @property
    def failed(self) -> list[int]:
        """Ranks that failed."""

    @property
    def id(self) -> int:
        """0 of the world that was opened; of a group a number of its own. Shrinking keeps it."""

    @property
    def epoch(self) -> int:
        """How often it was shrunk."""

    @property
    def old_rank(self) -> int:
        """Of a world that shrink made: what this rank was before."""

    @property
    def last_good(self) -> int:
        """
        Of a world that shrink made: in the one before, the last collective that ended well, as all before it did, on
        all ranks of this one.
        """

    @property
    def last_number(self) -> int:
        """The number of the last collective that this rank began here. The first is 1."""

    def acknowledge(self) -> list[int]:
        """Receives from any source work again, until another rank fails. Returns the ranks that had failed."""

    def agree(self, flag: bool = True, *, timeout: Seconds = None) -> bool:
        """
        The AND of all live ranks' flags, the same for each of them, whichever fail meanwhile; `failed` is the same
        for all of them afterwards, too. TimedOutError names the ranks that did not call it; the next call takes up the
        same agreement.
        """

    def shrink(self, without: Sequence[int] = (), *, timeout: Seconds = None) -> World:
        """
        A world of the ranks that have not failed, in the same order; all of them call it. This world stays revoked.
        Ranks in `without` count as failed.
        """

    def recovered(self, timeout: Seconds = None) -> Recovered:
        """
        The next world, where `recovery` is "automatic": waits for it, without limit unless a timeout is given (0 only
        looks: TimedOutError). A world gives one event, once. DeniedError: too few ranks are left; DisconnectedError:
        the others left this rank out.
        """

    def recoveries(self) -> AsyncIterator[Recovered]:
        """The events of this world and of those that follow it, as they come. Errors: those of `recovered`."""

    def failures(self) -> AsyncIterator[int]:
        """Ranks that failed, from the first one on, as this rank finds it."""

    def register(self, name: str | int, fn: Callable[..., Any], *, with_source: bool = False, pickled: bool = False) -> None:
        """
        Ranks of this world, this one too, may call `fn` by this name, or number, from now on. It runs on threads of the library,
        several at once. With `with_source` it is given the calling rank first. `pickled` takes in pickled values, which
        run the sender's code.
        """

    def call(self, dest: int, name: str | int, *args: Any, timeout: Seconds = None, pickled: bool = False) -> Any:
        """
        What the function that `dest` registered by this name returns for these arguments: None, numbers, str, bytes,
        lists, tuples, dicts, arrays; `pickled` allows all that pickle takes. RemoteError: it raised.
        """

    def icall(self, dest: int, name: str | int, *args: Any, timeout: Seconds = None, pickled: bool = False) -> Call:
        """The same without waiting."""

    def _register(self, name: str | int, fn: Callable[..., Any]) -> None: ...

    def _icall(self, dest: int, name: str | int, arguments: bytes, *, timeout: Seconds = None) -> Request: ...

    def _iagree(self, flag: bool, *, timeout: Seconds = None) -> Request: ...

    def _agreed(self, request: Request) -> bool: ...

    def _ishrink(self, without: Sequence[int], *, timeout: Seconds = None) -> Request: ...

    def _shrunk(self, request: Request) -> World: ...

    def _failures(self, known: int, timeout: Seconds = None) -> list[int]: ...

    def _take_recovered(self, timeout: Seconds = None) -> tuple[World, int, list[int]] | None: ...

    @property
    def _waiting(self) -> World: ...

    def _allocate(self, size: int) -> Any: ...

    def empty(self, shape: int | Iterable[int], dtype: Any = "uint8") -> Any:
        """
        A numpy array, zeroed, in memory that the ranks of this host map: they read it there in large collectives, where
        all ranks are on one host and the buffers of all of them lie in such memory.
        """

    def split(self, color: int | None, key: int = 0) -> World | None:
        """
        All ranks call it. Those of one color are a world, in the order of their keys, then of their ranks; without a
        color None.
        """

    def _split(self, color: int | None, key: int = 0) -> World | None: ...

    def duplicate(self) -> World:
        """These ranks once more, with messages and collectives of their own."""

    def group(self, ranks: Sequence[int]) -> World:
        """These ranks in this order; each of them calls it, and nobody else."""

    def root_rank(self, rank: int) -> int:
        """What a rank of this group is in the world that was opened."""

    def revoke(self) -> None:
        """Ends the world's collectives on all ranks."""

    def shutdown(self, timeout: Seconds = None) -> None:
        """Leaves once all ranks have called it."""

    def leave(self, timeout: Seconds = None) -> None:
        """
        Leaves without waiting for the others' calls, once they have what this rank sent. They do not take it for
        failed.
        """

    def _shutdown(self, timeout: Seconds = None) -> None: ...

    def _leave(self, timeout: Seconds = None) -> None: ...

    def close(self, timeout: Seconds = None) -> None:
        """Leaves at once. To the others this rank has failed."""

    def __enter__(self) -> World: ...

    def __exit__(self, kind: Any, _error: Any, _trace: Any) -> None: ...

    def recv(self, x: Any = None, source: int | None = None, tag: int | None = None, exact: bool = False, *,
             timeout: Seconds = None) -> Received:
        """
        A message from `source`, or from any rank, into `x`, or into bytes of its size. `x` may be a list of arrays, which
        are filled one behind the other.
        """

    def irecv(self, x: Any = None, source: int | None = None, tag: int | None = None, exact: bool = False, *,
              timeout: Seconds = None) -> Request: ...

    def batch(self, messages: Iterable[Send | Recv], *, exact: bool = False, priority: str = "bulk",
              timeout: Seconds = None) -> list[Received | None]:
        """
        Several messages in one step: hawser.Send(x, dest, tag) and hawser.Recv(x, source, tag). Waits for all. What each
        got, of a send None; raises what the first that failed ended with.
        """

    def ibatch(self, messages: Iterable[Send | Recv], *, exact: bool = False, priority: str = "bulk",
               timeout: Seconds = None) -> Batch:
        """The same without waiting. Each message has a request of its own: `batch[i]`."""

    def _ibatch(self, sends: Iterable[Any], receives: Iterable[Any], *, exact: bool = False, priority: str = "bulk",
                timeout: Seconds = None) -> list[Request]: ...

    def probe(self, source: int | None = None, tag: int | None = None, *, timeout: Seconds = None) -> Received | None:
        """The oldest message that fits, without receiving it; waits so long for one."""

    def _probe(self, source: int | None = None, tag: int | None = None, *,
               timeout: Seconds = None) -> tuple[int, int, int, bytes] | None: ...

    def all_gather(self, out: Any, x: Any, *, timeout: Seconds = None) -> None:
        """The ranks' `x`, one behind the other, come to all in `out`."""

    def iall_gather(self, out: Any, x: Any, *, timeout: Seconds = None) -> Request: ...

    def all_gatherv(self, out: Any, x: Any, counts: Sequence[int], *, timeout: Seconds = None) -> None: ...

    def iall_gatherv(self, out: Any, x: Any, counts: Sequence[int], *, timeout: Seconds = None) -> Request: ...

    def reduce_scatter(self, out: Any, x: Any, op: str = "sum", *, reproducible: bool = False, timeout:
                       Seconds = None) -> None:
        """Of the ranks' `x`, combined, each rank gets its share in `out`."""

    def ireduce_scatter(self, out: Any, x: Any, op: str = "sum", *, reproducible: bool = False, timeout:
                        Seconds = None) -> Request: ...

    def reduce_scatterv(self, out: Any, x: Any, counts: Sequence[int], op: str = "sum", *, reproducible:
                        bool = False, timeout: Seconds = None) -> None: ...

    def ireduce_scatterv(self, out: Any, x: Any, counts: Sequence[int], op: str = "sum", *, reproducible:
                         bool = False, timeout: Seconds = None) -> Request: ...

    def gather(self, out: Any, x: Any, root: int = 0, *, timeout: Seconds = None) -> None:
        """The ranks' `x`, one behind the other, come to the root in `out`."""

    def igather(self, out: Any, x: Any, root: int = 0, *, timeout: Seconds = None) -> Request: ...

    def gatherv(self, out: Any, x: Any, counts: Sequence[int], root: int = 0, *, timeout: Seconds = None) -> None: ...

    def igatherv(self, out: Any, x: Any, counts: Sequence[int], root: int = 0, *, timeout: Seconds = None) -> Request: ...

    def scatter(self, out: Any, x: Any, root: int = 0, *, timeout: Seconds = None) -> None:
        """The root's `x` is shared out: each rank gets its share in `out`."""

    def iscatter(self, out: Any, x: Any, root: int = 0, *, timeout: Seconds = None) -> Request: ...

    def scatterv(self, out: Any, x: Any, counts: Sequence[int], root: int = 0, *, timeout: Seconds = None) -> None: ...

    def iscatterv(self, out: Any, x: Any, counts: Sequence[int], root: int = 0, *, timeout: Seconds = None) -> Request: ...

    def all_to_all(self, out: Any, x: Any, *, timeout: Seconds = None) -> None:
        """Each rank's `x` is shared out to all; what comes lies in `out` by rank."""

    def iall_to_all(self, out: Any, x: Any, *, timeout: Seconds = None) -> Request: ...

    def all_to_allv(self, out: Any, x: Any, out_counts: Sequence[int], in_counts: Sequence[int], *,
                    timeout: Seconds = None) -> None: ...

    def iall_to_allv(self, out: Any, x: Any, out_counts: Sequence[int], in_counts: Sequence[int], *,
                     timeout: Seconds = None) -> Request: ...

    def scan(self, x: Any, op: str = "sum", *, timeout: Seconds = None) -> None:
        """`x` becomes the combination of the ranks up to this one."""

    def iscan(self, x: Any, op: str = "sum", *, timeout: Seconds = None) -> Request: ...

    def exclusive_scan(self, x: Any, op: str = "sum", *, timeout: Seconds = None) -> None:
        """`x` becomes the combination of the ranks before this one; rank 0 keeps its own."""

    def iexclusive_scan(self, x: Any, op: str = "sum", *, timeout: Seconds = None) -> Request: ...

    def send(self, x: Any, dest: int, tag: int = 0, *, priority: str = "bulk", timeout: Seconds = None) -> None:
        """
        Ends when `x` may be used again: small ones are copied. `x` may be a list of arrays: one message of all of them. `priority` is the message's class: "critical", "realtime" or "bulk". Messages of one source, tag and class keep their order; those of a more urgent class may overtake others.
        """

    def isend(self, x: Any, dest: int, tag: int = 0, *, priority: str = "bulk", timeout: Seconds = None) -> Request: ...

    def barrier(self, *, timeout: Seconds = None) -> None:
        """Ends when all ranks have called it."""

    def ibarrier(self, *, timeout: Seconds = None) -> Request: ...

    def all_reduce(self, x: Any, op: str = "sum", out: Any = None, *, reproducible: bool = False,
                   compress: Compressor | None = None, timeout: Seconds = None) -> None:
        """`x` of all ranks, combined, in `out`, or in `x`."""

    def iall_reduce(self, x: Any, op: str = "sum", out: Any = None, *, reproducible: bool = False,
                    compress: Compressor | None = None, timeout: Seconds = None) -> Request: ...

    def all_reduce_bucketed(self, x: Sequence[Any], op: str = "sum", bucket: int = ..., *, reproducible: bool = False,
                            timeout: Seconds = None) -> None:
        """
        Each array of all ranks, combined, in its place: those of one type that follow one another go together, in
        collectives of up to `bucket` bytes.
        """

    def iall_reduce_bucketed(self, x: Sequence[Any], op: str = "sum", bucket: int = ..., *, reproducible: bool = False,
                             timeout: Seconds = None) -> list[Request]: ...

    def reduce(self, x: Any, root: int = 0, op: str = "sum", *, timeout: Seconds = None) -> None:
        """The same at the root alone."""

    def ireduce(self, x: Any, root: int = 0, op: str = "sum", *, timeout: Seconds = None) -> Request: ...

    def broadcast(self, x: Any, root: int = 0, *, timeout: Seconds = None) -> None:
        """The root's `x` comes to all."""

    def ibroadcast(self, x: Any, root: int = 0, *, timeout: Seconds = None) -> Request: ...

    def _iall_gather(self, out: Any, x: Any, counts: Sequence[int] | None = None, *, timeout: Seconds =
                     None) -> Request: ...

    def _ireduce_scatter(self, out: Any, x: Any, op: str = "sum", counts: Sequence[int] | None = None, *,
                         reproducible: bool = False, timeout: Seconds = None) -> Request: ...

    def _igather(self, out: Any, x: Any, root: int = 0, counts: Sequence[int] | None = None, *, timeout:
                 Seconds = None) -> Request: ...

    def _iscatter(self, out: Any, x: Any, root: int = 0, counts: Sequence[int] | None = None, *, timeout:
                  Seconds = None) -> Request: ...

    def _iall_to_all(self, out: Any, x: Any, out_counts: Sequence[int] | None = None, in_counts:
                     Sequence[int] | None = None, *, timeout: Seconds = None) -> Request: ...

    def _iscan(self, x: Any, op: str = "sum", exclusive: bool = False, *, timeout: Seconds = None) -> Request: ...

class AtomicOp:
    """One atomic operation in flight. Dropping it cancels it."""

    @property
    def done(self) -> bool:
        """Final? Only looks."""

    @property
    def status(self) -> str:
        """in_flight, ok, or the name of what went wrong."""

    @property
    def error(self) -> Error | None:
        """The exception that wait would raise, or None."""

    @property
    def found(self) -> int:
        """What the word held before, once it ended well; else 0."""

    @property
    def agent(self) -> Agent: ...

    @property
    def _ticket(self) -> int: ...

    def wait(self, timeout: Seconds = None) -> int:
        """
        What the word held before. Raises what it ended with, or TimedOutError when the time is over before.
        """

    def cancel(self) -> None:
        """It ends now; whether it was done is not known then."""

    def __await__(self) -> Generator[Any, None, int]: ...

class CompletionQueue:
    """Where finished transfers and other news are reported."""

    def poll(self) -> list[Entry]:
        """Entries (kind, cookie, bytes, error) without waiting."""

    def wait(self, timeout: Seconds = None) -> list[Entry]: ...

    def event_fd(self) -> int: ...

    @property
    def capacity(self) -> int: ...

class Notification:
    """Short bytes from a peer, once, after its transfer's bytes."""

    @property
    def peer(self) -> Peer: ...

    @property
    def data(self) -> bytes: ...

    @property
    def text(self) -> str: ...

class Message:
    """Bytes from a peer, in order per channel."""

    @property
    def peer(self) -> Peer: ...

    @property
    def channel(self) -> int: ...

    @property
    def data(self) -> bytes: ...

class PeerEvent:
    """What happened to a peer: up, suspect, down or card_changed; or to this agent: displaced."""

    @property
    def kind(self) -> str: ...

    @property
    def peer(self) -> Peer: ...

    @property
    def cause(self) -> Error | None: ...

    @property
    def acknowledged(self) -> dict[int, int]:
        """
        Of `down`: by channel the number of the last message that the peer's agent is known to have taken, with all before it; 0: none. Later ones may be lost.
        """

class FileInfo:
    """What stands under a path or behind a descriptor."""

    @property
    def exists(self) -> bool: ...

    @property
    def size(self) -> int: ...

    @property
    def mode(self) -> int:
        """As in os.stat: kind and permissions."""

    @property
    def mtime_ns(self) -> int:
        """Since 1970."""

def query_file(file: File) -> FileInfo:
    """
    Of a path, a descriptor or an open file. One that is not there is an answer: `exists` is False.
    """

class DirectoryEntry:
    """A key with its value."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> bytes: ...

    @property
    def version(self) -> int:
        """Of one key it only grows."""

class DirectoryEvent:
    """What a watch tells."""

    @property
    def kind(self) -> str:
        """all: what is there, in place of what was told before; changed; erased."""

    @property
    def entries(self) -> list[DirectoryEntry]: ...

class Watch:
    """Tells what is under a prefix, then what changes there."""

    def wait(self, timeout: Seconds = None) -> DirectoryEvent | None:
        """The next event, or None when the time is over before."""

    def cancel(self) -> None:
        """Nothing more is told."""

    async def wait_async(self, timeout: Seconds = None) -> DirectoryEvent | None: ...

    def _listen(self) -> _DirectoryNews | None: ...
    def _look(self) -> DirectoryEvent | None: ...

    @property
    def _cancelled(self) -> bool: ...

    @property
    def _runs_itself(self) -> bool: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> DirectoryEvent: ...

    def __iter__(self) -> Self: ...

    def __next__(self) -> DirectoryEvent: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

class Directory:
    """Where agents publish their cards and find peers; small values under keys."""

    @property
    def kind(self) -> str: ...

    def put(self, key: str, value: Data, *, lease: Seconds = None, create_only: bool = False,
            if_version: int | None = None, tied: bool = False, timeout: Seconds = None) -> int:
        """Gives the new version."""

    def get(self, key: str, timeout: Seconds = None) -> DirectoryEntry:
        """NotFoundError when it is not there."""

    def list(self, prefix: str = "", timeout: Seconds = None) -> builtins.list[DirectoryEntry]:
        """All under a prefix, by key."""

    def erase(self, key: str, if_version: int | None = None, timeout: Seconds = None) -> bool:
        """Whether it was there. BusyError when it is there in another version than if_version."""

    def watch(self, prefix: str = "") -> Watch:
        """The keys that are there, then the changes."""

    def warnings(self) -> builtins.list[str]:
        """What was found broken and passed over."""

    async def put_async(self, key: str, value: Data, *, lease: Seconds = None, create_only: bool = False,
                        if_version: int | None = None, tied: bool = False, timeout: Seconds = None) -> int: ...

    async def get_async(self, key: str, timeout: Seconds = None) -> DirectoryEntry: ...

    async def list_async(self, prefix: str = "", timeout: Seconds = None) -> builtins.list[DirectoryEntry]: ...

    async def erase_async(self, key: str, if_version: int | None = None, timeout: Seconds = None) -> bool: ...

    def _ask_put(self, key: str, value: Data, lease: Seconds, create_only: bool, if_version: int | None,
                 tied: bool) -> _DirectoryRequest: ...

    def _ask_get(self, key: str) -> _DirectoryRequest: ...

    def _ask_list(self, prefix: str) -> _DirectoryRequest: ...

    def _ask_erase(self, key: str, if_version: int | None) -> _DirectoryRequest: ...

class _DirectoryNews:
    @property
    def fd(self) -> int: ...


class _DirectoryRequest:
    """One request in flight. Dropping it cancels it."""

    def _listen(self) -> _DirectoryNews | None: ...
    def _look(self) -> DirectoryEvent | None: ...

    def _cancel(self) -> None: ...

    @property
    def _runs_itself(self) -> bool: ...

def inproc_directory(name: str = "default") -> Directory:
    """Agents of this process find each other by it."""

def file_directory(path: str | bytes | os.PathLike[str]) -> Directory:
    """A folder shared by processes of one host or of a shared file system."""

def etcd_directory(endpoints: str | Iterable[str] | None = None, *, prefix: str = "", user: str = "",
                   password: str = "", ca: str = "", cert: str = "", key: str = "", identity: str = "",
                   lease: Seconds = None, timeout: Seconds = None) -> Directory:
    """An etcd, by the client addresses of its members: a list, or a text with commas."""

class Driver:
    """Threads that run several agents, until the last of them is gone."""

    def __init__(self, threads: int = 1, spin: Seconds = None) -> None: ...

class Agent:
    """
    One named endpoint: it owns regions, backends and what it knows of its peers.
    """

    def __init__(self, name: str | None = None, *, backends: str | Iterable[str] | dict[str, Any] | None = None,
                 directory: Directory | str | None = None, settings: dict[str, Any] | None = None, config_file: str | os.PathLike[str] = "",
                 environment: bool = True, driver: bool | Driver = True, spin: Seconds = None,
                 segments: Callable[[], Iterable[Sequence[int]]] | None = None) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def incarnation(self) -> str: ...

    @property
    def driven(self) -> bool: ...

    @property
    def closed(self) -> bool: ...

    def close(self, timeout: Seconds = None) -> None:
        """Ends all transfers, tells peers, closes regions and backends."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def add_region(self, memory: Memory, name: str = "", rights: str | None = None, *,
                   listed: bool = True) -> Region:
        """
        Registers memory: anything with the buffer protocol (numpy, bytearray, mmap) or with DLPack (torch).
        """

    def allocate(self, size: int, name: str = "", rights: str = "read_write", huge_pages: str = "auto", *,
                 listed: bool = True) -> Region:
        """Memory that peers of this host map: transfers are one copy."""

    def add_file(self, file: File, name: str = "", *, size: int = 0, rights: str = "read_write", create: bool = False,
                 direct: str = "auto", listed: bool = True) -> Region:
        """
        A file as a region, by path, descriptor or open file: the far side of plans with self(), and of peers.
        """

    def import_grant(self, data: Data) -> GrantedRegion:
        """The part of a peer's memory that a grant gives, by whichever known peer made it."""

    def range_of(self, memory: Memory) -> Range:
        """The part of a region that an array or tensor lies in."""

    def backends(self) -> list[dict[str, Any]]: ...

    def add_backend(self, name: str, params: dict[str, Any] = {}) -> None: ...

    def has_backend(self, name: str) -> bool: ...

    def require_backend(self, name: str) -> None: ...

    def _counters_json(self) -> str: ...

    def card(self, since: int | None = None, regions: Iterable[Region] | None = None) -> bytes:
        """
        All that peers must know, as bytes; what changed since a revision; or some regions only.
        """

    @property
    def card_revision(self) -> int: ...

    @property
    def ticket(self) -> str:
        """
        The text that a peer writes behind this agent's address to find it on another host: name@host:port#TICKET. Its holder may connect, as with the card: treat it as a password. Empty with security none.
        """

    def add_peer(self, card: Data) -> Peer:
        """
        Learns of a peer, or updates it. What changes of a full card later comes by itself while a session is up.
        """

    def find_peer(self, name: str, timeout: Seconds = None, *, regions: Sequence[str] = ()) -> Peer:
        """By name in the directory, or name@host:port. Waits, too, until the peer has these regions."""

    def peers(self) -> list[Peer]: ...

    def invalidate(self, peer: Peer) -> None:
        """Forgets a peer: transfers to it end, its plans fail."""

    def end(self, label: int) -> int:
        """Cancels all transfers with this label; gives how many there were."""

    def self(self) -> Peer: ...

    def plan_write(self, peer: Peer, source: Local, target: Remote, source_index: Index = None,
                   target_index: Index = None) -> Plan:
        """
        From this agent's memory to the peer's: tables with their blocks' numbers, lists of tables (the same blocks of
        each pair of them), ranges, or lists of ranges.
        """

    def plan_read(self, peer: Peer, source: Remote, target: Local, source_index: Index = None,
                  target_index: Index = None) -> Plan:
        """From the peer's memory to this agent's."""

    def fetch_add(self, word: RemoteRange, add: int, *, deadline: Seconds = None, queue: CompletionQueue | None = None,
                  cookie: int = 0) -> AtomicOp:
        """Adds to 8 bytes of a peer, once, and finds what they held."""

    def compare_swap(self, word: RemoteRange, expected: int, desired: int, *, deadline: Seconds = None,
                     queue: CompletionQueue | None = None, cookie: int = 0) -> AtomicOp:
        """Stores `desired` in 8 bytes of a peer where they hold `expected`, and finds what they held."""

    def explain(self, plan: Plan) -> str:
        """
        Which paths a plan takes, what it should cost, and why each other path was refused.
        """

    def take_notification(self) -> Notification | None:
        """The oldest notification, or None."""

    def take_notifications(self, limit: int = 1024) -> list[Notification]: ...

    def take_event(self) -> PeerEvent | None:
        """The oldest news of a peer, or None."""

    def open_channel(self, channel: int, credit: int = 64, priority: str = "realtime") -> None:
        """
        Lets peers send on a channel (16 or above). Messages of a more urgent class (critical, realtime, bulk) do not
        wait for those of others.
        """

    def take_message(self, channel: int) -> Message | None:
        """The oldest message of a channel, or None."""

    def read_signal(self, word: Range) -> int: ...

    def wait_signal(self, word: Range, at_least: int, timeout: Seconds = None) -> None: ...

    def poll(self) -> int: ...

    def wait(self, timeout: Seconds = None) -> bool:
        """Makes progress until something happened. True: it did."""

    def event_fd(self) -> int: ...

    def make_queue(self, capacity: int = 4096) -> CompletionQueue: ...

    def empty(self, shape: int | Iterable[int], dtype: Any = "uint8", *, name: str = "", rights: str = "read_write",
              huge_pages: str = "auto") -> Any: ...

    def torch_empty(self, shape: int | Iterable[int], dtype: Any = None, *, name: str = "", rights: str = "read_write",
                    huge_pages: str = "auto") -> Any: ...

    def counters(self) -> dict[str, Any]: ...

    def write(self, peer: Peer, source: Local, target: Remote, **options: Any) -> Transfer: ...

    def read(self, peer: Peer, source: Remote, target: Local, **options: Any) -> Transfer: ...

    def notifications(self) -> AsyncIterator[Notification]: ...

    def messages(self, channel: int) -> AsyncIterator[Message]: ...

    def events(self) -> AsyncIterator[PeerEvent]: ...

    def _set_loop_queue(self, queue: CompletionQueue | None, first_ticket: int) -> None: ...

class RdmaMemory:
    """Registered memory of this process, for operations."""

    @property
    def size(self) -> int: ...

    @property
    def writable(self) -> bool: ...

class RdmaBuffer:
    """The handle of a buffer, or of a part of one."""

    @property
    def id(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def owner(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def incarnation(self) -> str: ...

    @property
    def contexts(self) -> list[str]: ...

    def slice(self, offset: int, size: int) -> RdmaBuffer: ...
    def encode(self) -> bytes: ...

    @staticmethod
    def decode(bytes: Data) -> RdmaBuffer: ...

class RdmaBell:
    """Where ended batches are told, for an event loop."""

    def __new__(cls) -> RdmaBell: ...

    @property
    def fd(self) -> int: ...

    def take(self) -> list[int]: ...

class RdmaBatch:
    """Operations under way. Dropping it leaves them running."""

    @property
    def done(self) -> bool: ...

    @property
    def error(self) -> Error | None: ...

    @property
    def outcomes(self) -> list[tuple[Error | None, int, int]]:
        """(error or None, bytes, what an atomic found) of each."""

    def wait(self, timeout: Seconds = None) -> bool: ...
    def cancel(self) -> None: ...
    def tell(self, bell: RdmaBell, cookie: int) -> bool: ...

class RdmaBackend:
    """Remote buffers of one agent."""

    def __new__(cls, agent: Agent) -> RdmaBackend: ...
    def memory_at(
        self, address: int, size: int, owner: Any, writable: bool, gpu: int | None = None
    ) -> RdmaMemory: ...
    def request_buffer(
        self, id: int, memory: RdmaMemory, rights: str = "read_write", name: str = ""
    ) -> RdmaBuffer: ...
    def renew(self, buffer: RdmaBuffer, timeout: Seconds = None) -> RdmaBuffer: ...
    def explain(self, buffer: RdmaBuffer, memory: RdmaMemory | None = None) -> str: ...
    def is_local(self, buffer: RdmaBuffer) -> bool: ...

    @property
    def buffer_count(self) -> int: ...

    def submit(self, ops: list[tuple[Any, ...]], timeout: Seconds = None) -> RdmaBatch: ...
    def release(self, buffer: RdmaBuffer, timeout: Seconds = None) -> RdmaBatch: ...
    def transport_of(self, buffer: RdmaBuffer) -> tuple[str, str]: ...
    def close(self) -> None: ...

def address_of(memory: Any) -> int:
    """Where a contiguous buffer's bytes are."""

def _wait_at_exit() -> None: ...
