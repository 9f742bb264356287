"""Futures of torch's for works that nobody waits for, completed by two threads however many there are.

One thread completes futures, the other one calls what `then` and `add_done_callback` were given: in the order of
`get_future`, one after the other, so that all ranks begin the collectives of their callbacks in one order. A callback may
wait for futures: those of works are completed beside it, and what `then` makes is made by who waits, where that is a callback.
What torch itself hangs on a future (`torch.futures.collect_all`) is called by the thread that completes it.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any, Callable, List, Optional, Tuple

import torch

_log = logging.getLogger("hawser")
_lock = threading.Lock()  # Of all futures' lists; held for moments.


class Future(torch.futures.Future):  # type: ignore[type-arg]
    """Of a work, or what `then` made of another future."""

    def __init__(self, work: Any = None, parent: "Optional[Future]" = None) -> None:
        super().__init__()
        self._work, self._parent = work, parent
        self._callbacks: List[Tuple[Callable[[Any], Any], Optional[Future]]] = []
        self._is_called = False  # Its callbacks were: another one is called at once.
        self._is_told = False

    def wait(self) -> Any:
        self._advance()
        return super().wait()

    def then(self, callback: Callable[[Any], Any]) -> "Future":
        child = Future(parent=self)
        self._add(callback, child)
        return child

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._add(callback, None)

    def complete(self) -> None:
        """Waits for the work, whoever does it first, and tells how that ended."""
        try:
            self._work.wait()
            self._tell(self._work.outputs, None)
        except Exception as error:  # It belongs to whoever looks at the future.
            self._tell(None, error)

    def call(self) -> None:
        """Its callbacks, once it is complete. By the thread that calls them."""
        try:
            super().wait()
        except Exception:
            pass  # They look themselves.
        self._call_all()

    def _tell(self, value: Any, error: Optional[Exception]) -> None:
        with _lock:
            is_told, self._is_told = self._is_told, True
        if is_told:
            return
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)  # type: ignore[arg-type]

    def _add(self, callback: Callable[[Any], Any], child: "Optional[Future]") -> None:
        with _lock:
            is_called = self._is_called
            if not is_called:
                self._callbacks.append((callback, child))
        if is_called:
            self._call(callback, child)

    def _call_all(self) -> None:
        while True:
            with _lock:
                self._is_called = not self._callbacks
                if self._is_called:
                    return
                callback, child = self._callbacks.pop(0)
            self._call(callback, child)

    def _call(self, callback: Callable[[Any], Any], child: "Optional[Future]") -> None:
        value, error = None, None
        try:
            value = callback(self)
        except Exception as raised:
            error = raised
        except BaseException as raised:  # Ctrl-C, say, where it is called at once.
            if child is not None:
                child._tell(None, RuntimeError(repr(raised)))
            raise
        if child is not None:
            child._tell(value, error)
            child._call_all()
        elif error is not None:
            _log.error("a callback of a future raised %r", error)

    def _advance(self) -> None:
        """As far as this thread may bring it without waiting for another callback."""
        if self._parent is None:
            self.complete()
            return
        self._parent._advance()
        if _Threads.calls_here() and not self.done():
            self._parent.call()


class _Threads:
    """They live as long as the process."""

    _here = threading.local()
    _one: "Optional[_Threads]" = None

    def __init__(self) -> None:
        self._to_complete: "queue.SimpleQueue[Future]" = queue.SimpleQueue()
        self._to_call: "queue.SimpleQueue[Future]" = queue.SimpleQueue()
        threading.Thread(target=self._complete, name="hawser-futures", daemon=True).start()
        threading.Thread(target=self._call, name="hawser-callbacks", daemon=True).start()

    @classmethod
    def calls_here(cls) -> bool:
        """In a callback."""
        return getattr(cls._here, "calls", False)

    @classmethod
    def add(cls, future: Future) -> None:
        with _lock:
            cls._one = cls._one or cls()
            cls._one._to_complete.put(future)
            cls._one._to_call.put(future)

    def _complete(self) -> None:
        while True:
            self._to_complete.get().complete()

    def _call(self) -> None:
        self._here.calls = True
        while True:
            future = self._to_call.get()
            try:
                future.call()
            except BaseException as error:  # Of a callback: it ends nobody else's.
                _log.error("a callback of a future raised %r", error)


def future_of(work: Any) -> Future:
    """Of a work: it has `wait()`, which any thread may call, and `outputs`."""
    future = Future(work)
    _Threads.add(future)
    return future
