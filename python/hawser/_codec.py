"""Python values as bytes, for remote calls: None, bool, int, float, str, bytes, list, tuple, dict, numpy arrays.

An encoding of our own and not pickle, which runs code of the sender's. Each value is a letter and what follows it; sizes
and counts are 64 bits, little-endian:

  N  T  F                    None, True, False
  i int64                    an int that fits;  I size, two's complement: a larger one
  f float64    s size, UTF-8    b size, bytes
  l count, values            a list;  t: a tuple
  d count, keys and values   a dict
  a dtype (as str), count, int64 each: the shape, then the elements in C order;  n: a scalar of numpy
  p size, pickle             only where both sides asked for it
"""

from __future__ import annotations

import pickle
import struct
from typing import Any

from .errors import InvalidError

DEPTH_MAX = 100
_SIZE = struct.Struct("<Q")
_INT = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_KINDS = "biufcSU"  # Of numpy's types: those without references to objects.


def _invalid(text: str, advice: str = "") -> InvalidError:
    return InvalidError(text + (f"; {advice}" if advice else ""))


def _numpy() -> Any:
    import numpy

    return numpy


def _is_array(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "numpy" and hasattr(value, "dtype")


class _Writer:
    def __init__(self, pickled: bool) -> None:
        self.parts: list[bytes | memoryview] = []
        self.pickled = pickled

    def sized(self, letter: bytes, data: bytes) -> None:
        self.parts += [letter, _SIZE.pack(len(data)), data]

    def number(self, value: int) -> None:
        if -(2**63) <= value < 2**63:
            self.parts += [b"i", _INT.pack(value)]
        else:
            self.sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))

    def array(self, value: Any) -> None:
        if isinstance(value, _numpy().ma.MaskedArray):
            raise _invalid("call: a masked array cannot be sent", "send its data and its mask")
        array = _numpy().ascontiguousarray(value)
        if array.dtype.kind not in _KINDS:
            raise _invalid(f"call: an array of {array.dtype} cannot be sent")
        self.sized(b"a" if isinstance(value, _numpy().ndarray) else b"n", array.dtype.str.encode())
        shape = value.shape  # ascontiguousarray makes one dimension of none.
        self.parts.append(_SIZE.pack(len(shape)) + b"".join(_SIZE.pack(size) for size in shape))
        self.parts.append(array.tobytes())

    def put(self, value: Any, depth: int = 0) -> None:
        if depth > DEPTH_MAX:
            raise _invalid(f"call: values are nested deeper than {DEPTH_MAX}")
        if value is None or value is True or value is False:
            self.parts.append({None: b"N", True: b"T", False: b"F"}[value])
        elif type(value) is int:
            self.number(value)
        elif type(value) is float:
            self.parts += [b"f", _FLOAT.pack(value)]
        elif type(value) is str:
            self.sized(b"s", value.encode("utf-8", "surrogatepass"))
        elif type(value) in (bytes, bytearray, memoryview):
            self.sized(b"b", bytes(value))
        elif type(value) in (list, tuple):
            self.parts += [b"l" if type(value) is list else b"t", _SIZE.pack(len(value))]
            for each in value:
                self.put(each, depth + 1)
        elif type(value) is dict:
            self.parts += [b"d", _SIZE.pack(len(value))]
            for key, each in value.items():
                self.put(key, depth + 1)
                self.put(each, depth + 1)
        elif _is_array(value):
            self.array(value)
        elif type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
            self.array(value.detach().cpu().numpy())
        elif self.pickled:
            self.sized(b"p", pickle.dumps(value))
        else:
            raise _invalid(f"call: an object of type {type(value).__name__} cannot be sent",
                           "send None, numbers, str, bytes, lists, tuples, dicts and arrays, or ask for pickled=True "
                           "where you trust the other ranks with your code")


class _Reader:
    def __init__(self, data: bytes, pickled: bool) -> None:
        self.data = memoryview(data)
        self.at = 0
        self.pickled = pickled

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise _invalid("call: a value is cut off")
        self.at += size
        return self.data[self.at - size:self.at]

    def size(self) -> int:
        return int(_SIZE.unpack(self.take(8))[0])

    def sized(self) -> memoryview:
        return self.take(self.size())

    def count(self) -> int:
        """Each of so many takes a byte at least."""
        count = self.size()
        if count > len(self.data) - self.at:
            raise _invalid("call: a value is cut off")
        return count

    def array(self) -> Any:
        numpy = _numpy()
        text = str(self.sized(), "ascii")
        dtype = numpy.dtype(text)
        if dtype.kind not in _KINDS or dtype.str != text:
            raise _invalid(f"call: an array of {text!r} cannot be received")
        dimensions = self.size()
        if dimensions > 32:
            raise _invalid("call: an array of more than 32 dimensions cannot be received")
        shape = tuple(self.size() for _ in range(dimensions))
        elements = 1
        for size in shape:
            elements *= size
        return numpy.frombuffer(self.take(elements * dtype.itemsize), dtype).reshape(shape).copy()

    def get(self, depth: int = 0) -> Any:
        if depth > DEPTH_MAX:
            raise _invalid(f"call: values are nested deeper than {DEPTH_MAX}")
        letter = bytes(self.take(1))
        if letter in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[letter]
        if letter == b"i":
            return _INT.unpack(self.take(8))[0]
        if letter == b"I":
            return int.from_bytes(self.sized(), "little", signed=True)
        if letter == b"f":
            return _FLOAT.unpack(self.take(8))[0]
        if letter == b"s":
            return str(self.sized(), "utf-8", "surrogatepass")
        if letter == b"b":
            return bytes(self.sized())
        if letter in b"lt":
            values = [self.get(depth + 1) for _ in range(self.count())]
            return values if letter == b"l" else tuple(values)
        if letter == b"d":
            return {self.get(depth + 1): self.get(depth + 1) for _ in range(self.count())}
        if letter in b"an":
            return self.array() if letter == b"a" else self.array()[()]
        if letter == b"p" and self.pickled:
            return pickle.loads(self.sized())
        raise _invalid("call: a pickled value came, which nobody here asked for" if letter == b"p" else
                       "call: a value of an unknown kind came")


def encode(value: Any, pickled: bool = False) -> bytes:
    writer = _Writer(pickled)
    writer.put(value)
    return b"".join(writer.parts)


def decode(data: bytes, pickled: bool = False) -> Any:
    """Of any bytes: the value, or InvalidError."""
    reader = _Reader(data, pickled)
    try:
        value = reader.get()
    except (ValueError, TypeError, OverflowError, MemoryError) as error:  # What a malformed one makes numpy and str say.
        raise _invalid(f"call: a value is malformed: {error}") from None
    if reader.at != len(reader.data):
        raise _invalid("call: there is more than the value")
    return value
