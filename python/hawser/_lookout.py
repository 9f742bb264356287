"""What tasks of an event loop await of worlds: one timer of each loop looks at all of it.

A request tells nobody that it has ended, and a thread that waited for it could not be cancelled. So the loop looks, at
each of its turns at first, and then less and less often: for a tenth of the time at most, however many are awaited.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from typing import Any, Dict, Optional, Protocol

# Seconds since something ended: so long the loop looks at each turn. Then come pauses.
_EAGER, _PAUSE_FIRST, _PAUSE_LAST = 200e-6, 50e-6, 2e-3
_SHARE = 0.1  # Of the loop's time.


class Looked(Protocol):
    def _look(self) -> bool: ...


class _Lookout:
    """Confined to its loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)  # It is a value under that key.
        self._awaited: Dict[asyncio.Future[None], Looked] = {}
        self._eager_until = self._pause = 0.0
        self._next: Optional[asyncio.Handle] = None  # The next look.

    def end_of(self, request: Looked) -> "asyncio.Future[None]":
        """Set when the request is over. Cancelled, it leaves the request as it is."""
        loop = self._loop()
        assert loop is not None  # It runs this.
        future = loop.create_future()
        self._awaited[future] = request
        self._eager_until = time.monotonic() + _EAGER
        if self._next is None or self._pause > 0:
            if self._next is not None:
                self._next.cancel()
            self._pause = 0.0
            self._next = loop.call_soon(self._look)
        return future

    def _look(self) -> None:
        self._next = None
        begun = time.monotonic()
        is_news = False
        for future, request in list(self._awaited.items()):
            if future.done():  # Cancelled.
                del self._awaited[future]
                continue
            try:
                if not request._look():
                    continue
                future.set_result(None)
            except Exception as error:
                future.set_exception(error)
            del self._awaited[future]
            is_news = True
        loop = self._loop()
        if not self._awaited or loop is None:
            return
        now = time.monotonic()
        if is_news:
            self._eager_until = now + _EAGER
        self._pause = 0.0 if now < self._eager_until else min(max(2 * self._pause, _PAUSE_FIRST), _PAUSE_LAST)
        others = (now - begun) * (1 / _SHARE - 1) if self._pause > 0 else 0.0
        self._next = loop.call_later(max(self._pause, others), self._look)


_lookouts: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lookout]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()  # Loops run in threads of their own.


async def finished(request: Any) -> None:
    """Returns when the request is over. A task that is cancelled meanwhile leaves it as it is."""
    if request._look():
        return
    loop = asyncio.get_running_loop()
    with _lock:
        lookout = _lookouts.get(loop)
        if lookout is None:
            lookout = _lookouts[loop] = _Lookout(loop)
    await lookout.end_of(request)
