"""Hawser under asyncio: transfers that can be awaited, news as asynchronous iterators.

Each pair of agent and event loop has a completion queue whose descriptor the loop watches. Once it is there, all
transfers of the agent report to it, so nothing is polled. What does not report there (a transfer that was submitted
before, or to a queue of the program's own) is looked at, first often, then every few milliseconds.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from typing import Any, AsyncIterator, Callable, Dict, Optional, Set, TypeVar, Union

from . import _hawser

T = TypeVar("T")
_Awaited = Union[_hawser.Transfer, _hawser.AtomicOp]

_TICKET_SHIFT = 40  # A ticket is (queue's serial << shift) + a count; zero is none.
_serials = itertools.count(1)
_CAPACITY = 1 << 16
_TRANSFER = 1
_PAUSE_FIRST, _PAUSE_LAST = 50e-6, 2e-3


class _Link:
    """What one event loop hears of one agent."""

    def __init__(self, agent: _hawser.Agent, loop: asyncio.AbstractEventLoop) -> None:
        self.agent = weakref.ref(agent)
        self.loop = loop
        self.serial = next(_serials)
        self.queue = agent.make_queue(_CAPACITY)
        self.ended: Dict[int, asyncio.Future] = {}
        self.listeners: Set[asyncio.Event] = set()
        self.fds = [self.queue.event_fd()]
        loop.add_reader(self.fds[0], self.drain)
        if not agent.driven:
            self.fds.append(agent.event_fd())
            loop.add_reader(self.fds[1], self.turn)
            self.turn()
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
        if not self.loop.is_closed():
            for fd in self.fds:
                self.loop.remove_reader(fd)
        self.wake()

    def end_of(self, transfer: _Awaited) -> Optional[asyncio.Future]:
        """Set when the transfer ends; None when it does not report here."""
        ticket = transfer._ticket
        if ticket >> _TICKET_SHIFT != self.serial:
            return None
        future = self.loop.create_future()
        self.ended[ticket] = future
        if transfer.done and not future.done():  # It ended before there was somebody to be told.
            self.ended.pop(ticket, None)
            future.set_result(None)
        return future


_links: "weakref.WeakKeyDictionary[Any, _Link]" = weakref.WeakKeyDictionary()


def link_of(agent: _hawser.Agent) -> _Link:
    """The running loop's link to `agent`, made when there is none; one of a loop that is closed is replaced."""
    loop = asyncio.get_running_loop()
    link = _links.get(agent)
    if link is None or link.loop is not loop:
        if link is not None:
            link.close()
        link = _links[agent] = _Link(agent, loop)
        weakref.finalize(agent, _close_soon, link).atexit = False
    return link


def _close_soon(link: _Link) -> None:
    if not link.loop.is_closed():
        link.loop.call_soon_threadsafe(link.close)


def close_link(agent: _hawser.Agent) -> None:
    """The agent is closed: those who listen to it are told, on their own thread."""
    link = _links.pop(agent, None)
    if link is not None:
        _close_soon(link)


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
    if error is not None:
        raise error


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
