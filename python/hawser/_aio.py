"""Hawser under asyncio: transfers and answers of directories that can be awaited, news as asynchronous iterators.

Each pair of agent and event loop has a completion queue whose descriptor the loop watches. Once it is there, all
transfers of the agent report to it, so nothing is polled. What does not report there (a transfer that was submitted
before, or to a queue of the program's own, or while another loop's was the newest) is looked at, first often, then
every few milliseconds. An etcd rings when
it has news. A folder is looked at: nobody rings when one changes. What blocks there as file systems do runs on a thread
of the loop's executor.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, AsyncIterator, Callable, Dict, Optional, Set, TypeVar, Union

from . import _hawser
from .errors import BusyError, TimedOutError

T = TypeVar("T")
_Awaited = Union[_hawser.Transfer, _hawser.AtomicOp]

_TICKET_SHIFT = 40  # A ticket is (queue's serial << shift) + a count; zero is none.
_serials = itertools.count(1)
_CAPACITY = 1 << 16
_TRANSFER = 1
_PAUSE_FIRST, _PAUSE_LAST = 50e-6, 2e-3
_SEND_PATIENCE = 5.0
_DIRECTORY_PAUSE_FIRST, _DIRECTORY_PAUSE_LAST = 0.5e-3, 20e-3
_DIRECTORY_PATIENCE = 10.0
_Asked = Union[_hawser._DirectoryRequest, _hawser.Watch]
_Seconds = Union[float, timedelta, None]


class _Link:
    """What one event loop hears of one agent."""

    def __init__(self, agent: _hawser.Agent, loop: asyncio.AbstractEventLoop) -> None:
        self.agent = weakref.ref(agent)
        self.loop = loop
        self.queue = agent.make_queue(_CAPACITY)
        self.ended: Dict[int, asyncio.Future] = {}
        self.listeners: Set[asyncio.Event] = set()
        self.fds = [self.queue.event_fd()]
        loop.add_reader(self.fds[0], self.drain)
        if not agent.driven:
            self.fds.append(agent.event_fd())
            loop.add_reader(self.fds[1], self.turn)
            self.turn()
        self.adopt(agent)

    def adopt(self, agent: _hawser.Agent) -> None:
        """From now on the agent's transfers report here. Tickets are never given twice."""
        self.serial = next(_serials)
        agent._set_loop_queue(self.queue, self.serial << _TICKET_SHIFT)

    def drain(self) -> None:
        while True:
            entries = self.queue.poll()
            for kind, cookie, _, _ in entries:
                if kind == _TRANSFER:
                    future = self.ended.pop(cookie, None)
                    if future is not None and not future.done():
                        future.set_result(None)
                else:
                    self.wake()
            if not entries:
                return

    def turn(self) -> None:
        """Without a driver the loop is who makes the agent's progress; one bounded round at a time."""
        agent = self.agent()
        if agent is None:
            return
        if agent.poll() > 0:
            self.loop.call_soon(self.turn)

    def wake(self) -> None:
        for event in self.listeners:
            event.set()

    def close(self) -> None:
        """On the loop's thread, or when it is closed, and nobody waits on it."""
        if self.loop.is_closed():
            return
        for fd in self.fds:
            self.loop.remove_reader(fd)
        for future in self.ended.values():  # Who waits looks for itself: nobody drains any more.
            if not future.done():
                future.set_result(None)
        self.wake()

    def end_of(self, transfer: _Awaited) -> Optional[asyncio.Future]:
        """Set when the transfer ends; None when it does not report here, as the next ones will."""
        ticket = transfer._ticket
        if ticket >> _TICKET_SHIFT != self.serial:
            if ticket != 0:
                self.adopt(transfer.agent)
            return None
        future = self.loop.create_future()
        self.ended[ticket] = future
        if transfer.done and not future.done():  # It ended before there was somebody to be told.
            self.ended.pop(ticket, None)
            future.set_result(None)
        return future


_Links = Dict[asyncio.AbstractEventLoop, _Link]
_links: "weakref.WeakKeyDictionary[Any, _Links]" = weakref.WeakKeyDictionary()
_links_lock = threading.RLock()  # Over making them, in whichever thread a loop runs.


def link_of(agent: _hawser.Agent) -> _Link:
    """The running loop's link to `agent`, made when there is none. Those of loops that are closed go then."""
    loop = asyncio.get_running_loop()
    links = _links.get(agent)
    link = links.get(loop) if links is not None else None
    if link is not None:
        return link
    with _links_lock:
        links = _links.get(agent)
        if links is None:
            links = _links[agent] = {}
            weakref.finalize(agent, _close_all, links).atexit = False
        for other in [one for one in list(links) if one.is_closed()]:
            links.pop(other).close()
        link = links[loop] = _Link(agent, loop)
    return link


def _close_all(links: _Links) -> None:
    for loop, link in list(links.items()):
        links.pop(loop, None)
        try:
            loop.call_soon_threadsafe(link.close)
        except RuntimeError:  # It is closed.
            link.close()


def close_link(agent: _hawser.Agent) -> None:
    """The agent is closed: those who listen to it are told, each on its own thread."""
    _close_all(_links.pop(agent, {}))


async def _look(transfer: _Awaited, agent: _hawser.Agent) -> None:
    pause = 0.0
    while not transfer.done:
        if not agent.driven:
            agent.poll()
        await asyncio.sleep(pause)
        pause = min(max(2 * pause, _PAUSE_FIRST), _PAUSE_LAST)


async def finished(transfer: _Awaited) -> None:
    """Until `transfer` is final. A cancelled wait cancels the transfer. Raises what it ended with."""
    if not transfer.done:
        agent = transfer.agent
        link = link_of(agent)
        try:
            future = link.end_of(transfer)
            if future is not None:
                await future
            if not transfer.done:
                await _look(transfer, agent)
        except asyncio.CancelledError:
            transfer.cancel()
            raise
    error = transfer.error
    if error is None:
        return
    try:
        raise error
    finally:
        del error  # It refers to this frame, and so to the link.


async def found(op: _hawser.AtomicOp) -> int:
    """The same for an atomic operation; what the word held before."""
    await finished(op)
    return op.found


async def _news(agent: _hawser.Agent, take: Callable[[], Optional[T]]) -> AsyncIterator[T]:
    if agent.closed:
        return
    link = link_of(agent)
    event = asyncio.Event()
    link.listeners.add(event)
    try:
        while not agent.closed:
            one = take()
            if one is not None:
                yield one
                continue
            event.clear()
            one = take()  # What came between.
            if one is not None:
                yield one
                continue
            await event.wait()
    finally:
        link.listeners.discard(event)


def notifications(agent: _hawser.Agent) -> AsyncIterator[_hawser.Notification]:
    """Notifications as they come, until the agent is closed."""
    return _news(agent, agent.take_notification)


def messages(agent: _hawser.Agent, channel: int) -> AsyncIterator[_hawser.Message]:
    """Messages of one channel, which must be open, until the agent is closed."""
    return _news(agent, lambda: agent.take_message(channel))


def events(agent: _hawser.Agent) -> AsyncIterator[_hawser.PeerEvent]:
    """What happens to peers, until the agent is closed."""
    return _news(agent, agent.take_event)


def _end_of(timeout: _Seconds, otherwise: float) -> float:
    """When the monotonic clock has gone on by `timeout`."""
    if timeout is None:
        timeout = otherwise
    return time.monotonic() + (timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout))


async def send(peer: _hawser.Peer, channel: int, data: _hawser.Data, timeout: _Seconds = None) -> int:
    """As `Peer.send`, without blocking the event loop."""
    agent = peer.agent
    end = _end_of(timeout, _SEND_PATIENCE)
    pause = 0.0
    while True:
        try:
            return peer.send(channel, data, 0)
        except BusyError:
            if time.monotonic() >= end:
                raise
        if not agent.driven:
            agent.poll()
        await asyncio.sleep(min(pause, max(end - time.monotonic(), 0.0)))
        pause = min(max(2 * pause, _PAUSE_FIRST), _PAUSE_LAST)


class _Bell:
    """Lets a coroutine sleep until a directory rings, where it does."""

    def __init__(self, asked: _Asked) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asked._listen()
        self.rung = asyncio.Event()
        if self.news is not None:
            self.loop.add_reader(self.news.fd, self.ring)

    def ring(self) -> None:
        os.eventfd_read(self.news.fd)
        self.rung.set()

    async def sleep(self, pause: float, longest: float) -> None:
        """Until it rang since the last sleep, at most `longest`; `pause` where it never rings."""
        if self.news is None:
            await asyncio.sleep(min(pause, longest))
            return
        timer = self.loop.call_later(longest, self.rung.set) if longest != float("inf") else None
        try:
            await self.rung.wait()
        finally:
            if timer is not None:
                timer.cancel()
        self.rung.clear()

    def close(self) -> None:
        if self.news is not None:
            self.loop.remove_reader(self.news.fd)


async def _event_of(asked: _Asked, end: float,
                    is_over: Callable[[], bool] = lambda: False) -> Optional[_hawser.DirectoryEvent]:
    """The next one; None when the time or `is_over` came before. Looks once in any case."""
    loop = asyncio.get_running_loop()
    pause = _DIRECTORY_PAUSE_FIRST
    bell = _Bell(asked)  # Before the first look, so that nothing comes between.
    try:
        while not is_over():
            event = asked._look() if asked._runs_itself else await loop.run_in_executor(None, asked._look)
            left = end - time.monotonic()
            if event is not None or left <= 0:
                return event
            await bell.sleep(pause, left)
            pause = min(2 * pause, _DIRECTORY_PAUSE_LAST)
        return None
    finally:
        bell.close()


async def _answer(call: str, asked: _hawser._DirectoryRequest, timeout: _Seconds) -> "list[_hawser.DirectoryEntry]":
    """A wait that is cancelled, or too long, cancels the request."""
    try:
        event = await _event_of(asked, _end_of(timeout, _DIRECTORY_PATIENCE))
    finally:
        asked._cancel()
    if event is None:
        raise TimedOutError(f"{call}: the directory did not answer in time")
    return event.entries


async def put_async(self: _hawser.Directory, key: str, value: Any, *, lease: _Seconds = None, create_only: bool = False,
                    if_version: Optional[int] = None, tied: bool = False, timeout: _Seconds = None) -> int:
    """`put`, awaited. When the wait is cancelled the value may have been put."""
    entries = await _answer("put", self._ask_put(key, value, lease, create_only, if_version, tied), timeout)
    return entries[0].version if entries else 0


async def get_async(self: _hawser.Directory, key: str, timeout: _Seconds = None) -> _hawser.DirectoryEntry:
    """`get`, awaited."""
    return (await _answer("get", self._ask_get(key), timeout))[0]


async def list_async(self: _hawser.Directory, prefix: str = "",
                     timeout: _Seconds = None) -> "list[_hawser.DirectoryEntry]":
    """`list`, awaited."""
    return await _answer("list", self._ask_list(prefix), timeout)


async def erase_async(
    self: _hawser.Directory, key: str, if_version: Optional[int] = None, timeout: _Seconds = None
) -> bool:
    """`erase`, awaited. When the wait is cancelled the key may be gone."""
    return bool(await _answer("erase", self._ask_erase(key, if_version), timeout))


async def wait_async(self: _hawser.Watch, timeout: _Seconds = None) -> Optional[_hawser.DirectoryEvent]:
    """The next event; None when the time is over before, or the watch was cancelled. A wait that is cancelled leaves
    the watch as it is."""
    return await _event_of(self, _end_of(timeout, float("inf")), lambda: self._cancelled)


async def next_of(watch: _hawser.Watch) -> _hawser.DirectoryEvent:
    """For `async for`, which ends when the watch is cancelled."""
    event = await wait_async(watch)
    if event is None:
        raise StopAsyncIteration
    return event
