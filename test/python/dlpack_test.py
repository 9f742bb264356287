"""Memory by DLPack, from an exporter written by hand: what torch would show of a tensor, and what it should not."""

import ctypes
import gc

import numpy
import pytest

import hawser

CPU, CUDA, CUDA_HOST, OPENCL = 1, 2, 3, 4
FLOAT, INT, UINT = 2, 0, 1


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class Kind(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("kind", Kind),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
make_capsule = ctypes.pythonapi.PyCapsule_New
make_capsule.restype, make_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
is_named = ctypes.pythonapi.PyCapsule_IsValid
is_named.restype, is_named.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
DROPPED = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
NAME = b"dltensor"


class Exporter:
    """Shows `memory` as it is told to; counts what was handed out and given back."""

    def __init__(self, memory, shape, strides=None, device=CPU, code=FLOAT, bits=32, offset=0):
        self.memory, self.device, self.lent, self.returned = memory, device, 0, 0
        count = len(shape)
        self.shape = (ctypes.c_int64 * count)(*shape)
        self.strides = (ctypes.c_int64 * count)(*strides) if strides is not None else None
        self.deleter, self.dropped = DELETER(self.give_back), DROPPED(self.drop)
        self.managed = Managed(
            Tensor(memory.ctypes.data, Device(device, 0), count, Kind(code, bits, 1), self.shape, self.strides, offset),
            None, self.deleter)

    def give_back(self, managed):
        self.returned += 1

    def drop(self, capsule):
        if is_named(capsule, NAME):  # Nobody took it out.
            self.returned += 1

    def __dlpack__(self, **options):
        self.lent += 1
        return make_capsule(ctypes.addressof(self.managed), NAME, ctypes.cast(self.dropped, ctypes.c_void_p))

    def __dlpack_device__(self):
        return self.device, 0


@pytest.mark.parametrize("device", [CPU, CUDA_HOST])
def test_memory_is_lent_and_given_back(pair, device):
    one, two = pair
    memory = numpy.zeros(512, numpy.float32)
    tensor = Exporter(memory, (16, 32), device=device)
    region = one.add_region(tensor, "tensor")
    assert (region.address, region.size, region.writable) == (memory.ctypes.data, 2048, True)
    two.array[:4] = [0, 0, 128, 63]
    one.read(one.peer, one.peer.range("memory", 0, 4), region.range(4, 4)).wait(20)
    assert memory[:3].tolist() == [0, 1, 0]
    assert tensor.lent > tensor.returned, "it is in use"
    region.close()
    del region
    gc.collect()
    assert tensor.lent == tensor.returned > 0


def test_part_of_a_tensor_is_where_it_is(pair):
    one, _ = pair
    memory = numpy.zeros(512, numpy.float32)
    region = one.add_region(Exporter(memory, (4, 8), strides=(8, 1), offset=64), "part")
    assert (region.address, region.size) == (memory.ctypes.data + 64, 128)


@pytest.mark.parametrize("shape, strides", [((16, 16), (32, 1)), ((16, 32), (1, 16)), ((8,), (2,)), ((8,), (-1,))])
def test_memory_with_holes_is_refused(pair, shape, strides):
    one, _ = pair
    memory = numpy.zeros(512, numpy.float32)
    tensor = Exporter(memory, shape, strides)
    with pytest.raises(hawser.InvalidError, match="not contiguous"):
        one.add_region(tensor, "holes")
    gc.collect()
    assert tensor.lent == tensor.returned


def test_memory_of_another_device_is_refused(pair):
    one, _ = pair
    memory = numpy.zeros(512, numpy.float32)
    foreign = Exporter(memory, (512,), device=OPENCL)
    with pytest.raises(hawser.UnsupportedError, match="device type 4"):
        one.add_region(foreign, "foreign")
    on_gpu = Exporter(memory, (512,), device=CUDA)
    with pytest.raises(hawser.Error):  # No backend here reaches a GPU.
        one.add_region(on_gpu, "gpu")
    source, target = one.range_of(one.array).region.table(1024), one.peer.table("memory", 1024)
    indices = Exporter(numpy.arange(4, dtype=numpy.int32), (4,), device=CUDA, code=INT)
    with pytest.raises(hawser.InvalidError, match="host memory"):
        one.plan_write(one.peer, source, target, indices, indices)
    gc.collect()
    for one in (foreign, on_gpu, indices):
        assert one.lent == one.returned


@pytest.mark.parametrize("code, bits, kind", [(INT, 64, numpy.int64), (UINT, 32, numpy.uint32), (INT, 16, numpy.int16)])
def test_indices_by_dlpack(pair, code, bits, kind):
    one, _ = pair
    source, target = one.range_of(one.array).region.table(1024), one.peer.table("memory", 1024)
    numbers = numpy.arange(16, dtype=kind)
    indices = Exporter(numbers, (8,), strides=(2,), code=code, bits=bits)
    assert one.plan_write(one.peer, source, target, indices, indices).range_count == 8
    gc.collect()
    assert indices.lent == indices.returned == 2
    with pytest.raises(hawser.InvalidError):
        one.plan_write(one.peer, source, target, Exporter(numbers, (4, 4), code=code, bits=bits), indices)


def test_what_lies_about_itself_is_refused(pair):
    one, _ = pair

    class NoCapsule:
        def __dlpack__(self, **options):
            return b"dltensor"

        def __dlpack_device__(self):
            return CPU, 0

    class Raises(NoCapsule):
        def __dlpack__(self, **options):
            raise RuntimeError("no")

    for bad in (NoCapsule(), Raises()):
        with pytest.raises(hawser.InvalidError):
            one.add_region(bad, "bad")
