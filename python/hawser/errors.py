"""What goes wrong, as exceptions with fields. Each class says what the caller should do next."""

from __future__ import annotations

import enum
from typing import Any, Optional

__all__ = ["BusyError", "CancelledError", "Code", "CorruptError", "DeniedError", "DisconnectedError", "Error",
           "FailedError", "InvalidError", "NotFoundError", "RemoteError", "TimedOutError", "UnsupportedError"]


class Code(enum.IntEnum):
    """The numbers are those of the C ABI and of the command line's exit codes."""

    INVALID = 1
    NOT_FOUND = 2
    UNSUPPORTED = 3
    BUSY = 4
    DISCONNECTED = 5
    TIMED_OUT = 6
    CANCELLED = 7
    CORRUPT = 8
    DENIED = 9
    FAILED = 10


class Error(Exception):
    """Anything that Hawser refuses or that went wrong. `str` is the whole text, causes and advice included."""

    code: Code = Code.FAILED

    def __init__(self, text: str = "", *, message: str = "", scope: str = "request", buffer: str = "unknown",
                 peer: str = "", device: str = "", bytes: int = 0, elapsed: float = 0.0, advice: str = "") -> None:
        super().__init__(text)
        self.message = message or text  #: Who, what and which value.
        self.scope = scope  #: How much broke: request, path, peer or agent.
        self.buffer = buffer  #: What became of the target's bytes: unknown, untouched, partly written, complete.
        self.peer = peer  #: Empty when no peer is involved.
        self.device = device  #: Empty when no device is involved.
        self.bytes = bytes  #: Moved before it ended.
        self.elapsed = elapsed  #: Seconds.
        self.advice = advice  #: How to mend it; may be empty.

    def __reduce__(self) -> Any:
        return (_again, (type(self), self.args, self.__dict__))


def _again(kind: type, args: tuple, fields: dict) -> Error:
    error = kind(*args)
    error.__dict__.update(fields)
    return error


class InvalidError(Error, ValueError):
    """Fix the call."""

    code = Code.INVALID


class NotFoundError(Error, LookupError):
    """No such peer, region or backend."""

    code = Code.NOT_FOUND


class UnsupportedError(Error):
    """Choose another way."""

    code = Code.UNSUPPORTED


class BusyError(Error):
    """A bound was reached: back off and retry. The message names the bound."""

    code = Code.BUSY


class DisconnectedError(Error, ConnectionError):
    """Reconnect or plan again, then retry."""

    code = Code.DISCONNECTED


class TimedOutError(Error, TimeoutError):
    """The effect is unknown; see `buffer`."""

    code = Code.TIMED_OUT


class CancelledError(Error):
    """The caller asked for it."""

    code = Code.CANCELLED


class CorruptError(Error):
    """Drop the peer and report."""

    code = Code.CORRUPT


class DeniedError(Error, PermissionError):
    """No right."""

    code = Code.DENIED


class FailedError(Error):
    """Report it."""

    code = Code.FAILED


class RemoteError(FailedError):
    """A function that another rank ran for a call raised this."""

    def __init__(self, type_name: str = "", text: str = "", rank: int = -1, function: str = "", **fields: Any) -> None:
        super().__init__(f"'{function}' of rank {rank} raised {type_name}: {text}", **fields)
        self.type = type_name  #: The exception's class, by name.
        self.text = text  #: What it said.
        self.rank = rank
        self.function = function

    def __reduce__(self) -> Any:
        return (_again_remote, (self.type, self.text, self.rank, self.function, self.__dict__))


def _again_remote(type_name: str, text: str, rank: int, function: str, fields: dict) -> RemoteError:
    error = RemoteError(type_name, text, rank, function)
    error.__dict__.update(fields)
    return error


_CLASSES = {int(kind.code): kind for kind in (InvalidError, NotFoundError, UnsupportedError, BusyError,
                                              DisconnectedError, TimedOutError, CancelledError, CorruptError,
                                              DeniedError, FailedError)}


def _from_status(code: int, message: str, scope: str, buffer: str, peer: str, device: str, bytes_done: int,
                 elapsed: float, advice: str, text: str, cause: Optional[Error]) -> Error:
    error = _CLASSES.get(code, FailedError)(text, message=message, scope=scope, buffer=buffer, peer=peer,
                                            device=device, bytes=bytes_done, elapsed=elapsed, advice=advice)
    if cause is not None:
        error.__cause__ = cause
    return error
