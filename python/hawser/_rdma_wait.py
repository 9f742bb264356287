"""What calls of hawser.rdma return: awaitable in any running asyncio loop, and with `get` outside of one.

Each event loop has a bell of its own, whose descriptor it watches; several loops of one process do not meet.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from typing import Any, Dict, Generator, List, Optional, Type

from . import _hawser
from .errors import Error, TimedOutError

_PAUSE_FIRST, _PAUSE_LAST = 50e-6, 2e-3
# What is short ends sooner than an event loop can be woken: a loop that waits for nothing else of ours waits in place so
# long, and moves the agent on meanwhile. After it did so in vain, the next few are not tried.
_LINGER = 300e-6
_VAIN_PAUSE = 8


class _Link:
    """What one event loop waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.bell = _hawser.RdmaBell()
        self.waiting: Dict[int, asyncio.Future] = {}
        self.cookies = itertools.count(1)
        self.without_linger = 0
        loop.add_reader(self.bell.fd, self.drain)

    def linger(self, batch: _hawser.RdmaBatch) -> bool:
        """Whether it ended in place."""
        if self.waiting:
            return False
        if self.without_linger > 0:
            self.without_linger -= 1
            return False
        ended = batch.wait(_LINGER)
        if not ended:
            self.without_linger = _VAIN_PAUSE
        return ended

    def drain(self) -> None:
        for cookie in self.bell.take():
            future = self.waiting.pop(cookie, None)
            if future is not None and not future.done():
                future.set_result(None)


_links: "weakref.WeakKeyDictionary[Any, Optional[_Link]]" = weakref.WeakKeyDictionary()


def _link_of(loop: asyncio.AbstractEventLoop) -> Optional[_Link]:
    """None: the loop watches no descriptors."""
    if loop not in _links:
        try:
            _links[loop] = _Link(loop)
        except NotImplementedError:
            _links[loop] = None
    return _links[loop]


async def _ended(batch: _hawser.RdmaBatch) -> None:
    loop = asyncio.get_running_loop()
    link = _link_of(loop)
    if link is None:
        pause = _PAUSE_FIRST
        while not batch.done:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_LAST)
        return
    if link.linger(batch):
        return
    cookie, future = next(link.cookies), loop.create_future()
    link.waiting[cookie] = future
    if not batch.tell(link.bell, cookie):
        del link.waiting[cookie]
        return
    try:
        await future
    finally:
        link.waiting.pop(cookie, None)


class Operation:
    """Something under way. It began when it was made, and goes on when this is dropped."""

    __slots__ = ("_batch", "_found", "_forgiven", "__weakref__")

    def __init__(self, batch: Optional[_hawser.RdmaBatch], *, found: bool = False,
                 forgiven: Optional[Type[Error]] = None) -> None:
        self._batch = batch
        self._found = found
        self._forgiven = forgiven

    def _result(self) -> Any:
        if self._batch is None:
            return None
        error = self._batch.error
        if error is not None and not (self._forgiven is not None and isinstance(error, self._forgiven)):
            raise error
        return self._batch.outcomes[0][2] if self._found else None

    def done(self) -> bool:
        return self._batch is None or self._batch.done

    def get(self, timeout: Any = None) -> Any:
        """Waits, then gives the result or raises what went wrong. TimedOutError, a TimeoutError, when `timeout` seconds are
        over first; it goes on then."""
        if self._batch is not None and not self._batch.wait(timeout):
            raise TimedOutError(f"get: not ended within {timeout} s; it goes on")
        return self._result()

    result = get

    def exception(self, timeout: Any = None) -> Optional[BaseException]:
        """Waits, then gives what `get` would raise, or None."""
        if self._batch is not None and not self._batch.wait(timeout):
            raise TimedOutError(f"exception: not ended within {timeout} s; it goes on")
        try:
            self._result()
        except Error as error:
            return error
        return None

    def cancel(self) -> None:
        """Asks for its end; it has ended, as cancelled or otherwise, once `done`. A drop goes on."""
        if self._batch is not None:
            self._batch.cancel()

    @property
    def outcomes(self) -> List[tuple]:
        """(error or None, bytes, what an atomic found) of each operation, in the order given."""
        return [] if self._batch is None else self._batch.outcomes

    def as_asyncio(self) -> "asyncio.Future[Any]":
        """As a task of the running loop."""
        return asyncio.ensure_future(self._wait())

    async def _wait(self) -> Any:
        if not self.done():
            try:
                await _ended(self._batch)
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self._result()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._wait().__await__()
