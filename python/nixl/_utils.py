"""Raw memory for tests and examples: addresses are numbers, and nobody checks them."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
_libc.free.argtypes = (ctypes.c_void_p,)
_libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

_ALIGNMENT = 4096


def malloc_passthru(size: int) -> int:
    """The address of `size` bytes, on a page of their own."""
    if size <= 0:
        raise ValueError(f"malloc_passthru: size {size} is not positive")
    address = _libc.aligned_alloc(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
    if not address:
        raise MemoryError(f"malloc_passthru: no {size} bytes")
    return address


def free_passthru(address: int) -> None:
    _libc.free(address)


def ba_buf(address: int, size: int) -> None:
    """Fills the memory with 0xba."""
    ctypes.memset(address, 0xBA, size)


def verify_transfer(first: int, second: int, size: int) -> None:
    """Raises AssertionError when the two differ."""
    if _libc.memcmp(first, second, size) != 0:
        raise AssertionError(f"{size} bytes at {first:#x} and {second:#x} differ")
