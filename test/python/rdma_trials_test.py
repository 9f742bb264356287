"""What trials of hawser.rdma found: each test is named after its fault."""

import ctypes
import os
import signal
import time

import pytest

import hawser
import hawser.rdma as rdma
from conftest import SCALE
from rdma_test import LONG, Far, _kept, far, make, pattern, read  # noqa: F401: far is a fixture

pytestmark = pytest.mark.filterwarnings("ignore::hawser.rdma.RDMATcpFallbackWarning")


def hold_the_lock(seconds):
    """In the other process: Python runs nothing else meanwhile, as in a long call of some extension."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return True


def test_trials_a_stopped_owner_is_noticed_by_its_heartbeats(far):
    if far.backend != "tcp":
        pytest.skip("over shared memory the owner's process need not run")
    buffer = far(make, 4096)
    assert read(buffer, 4096) == pattern(4096)
    os.kill(far.process.pid, signal.SIGSTOP)
    os.waitpid(far.process.pid, os.WUNTRACED)
    try:
        begin = time.monotonic()
        with pytest.raises(ConnectionError) as caught:
            buffer.read_into(bytearray(4096), timeout=60 * SCALE).get()
        assert time.monotonic() - begin < 20 * SCALE, "it was told with the operation's own time only"
        assert "ways to" in str(caught.value) and "tcp" in str(caught.value)
    finally:
        os.kill(far.process.pid, signal.SIGCONT)


def test_trials_an_owner_whose_python_lock_is_held_goes_on_answering(far):
    if far.backend != "tcp":
        pytest.skip("over shared memory the owner's process need not run")
    kept = far(make, 4096, 1, "kept")
    let_go = [far(make, 4096, 2, f"let go {i}") for i in range(3)]
    assert read(kept, 4096) == pattern(4096, 1)
    held = 3 * SCALE
    far.start(hold_the_lock, held)
    begin, longest = time.monotonic(), 0.0
    drops = [each.drop(timeout=LONG) for each in let_go]  # Its agent lets go of their memory, which is Python's.
    while time.monotonic() - begin < 0.8 * held:
        before = time.monotonic()
        assert read(kept, 4096) == pattern(4096, 1)
        longest = max(longest, time.monotonic() - before)
    assert longest < held / 3
    assert far.result()
    for each in drops:
        each.get()


def _dropped_bytes_are_free(name):
    """In the other process, which otherwise runs nothing of Python: a drop that came from elsewhere freed the memory."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            _kept[name].append(1)
            return True
        except BufferError:
            time.sleep(0.01)
    return False


def test_trials_what_a_drop_frees_is_free_soon(far):
    buffer = far(make, 4096, 0, "resized")
    buffer.drop().get()
    assert far(_dropped_bytes_are_free, "resized")


def test_trials_a_buffer_of_allocated_memory_is_mapped(far):
    """Also where no process may attach to another, as between containers of one host."""
    if far.backend == "tcp":
        pytest.skip("it is about shared memory")
    apart = {"HAWSER_BACKENDS": "shm", "HAWSER_BACKEND_SHM_ATTACH": "false"}
    rdma.close()
    os.environ.update(apart)
    other = Far(**apart)
    try:
        region = rdma.agent().allocate(1 << 20)
        view = memoryview(region)
        view[4096:8192] = pattern(4096, 3)
        lent = rdma.RDMABuffer(view[4096:8192])
        assert other(read, lent, 4096) == pattern(4096, 3)
    finally:
        other.close()
        for name in apart:
            del os.environ[name]
        rdma.close()


def _explained(buffer):
    return buffer.explain(bytearray(4096))


def test_trials_explain_tells_every_way(far):
    buffer = far(make, 4096)
    assert read(buffer, 4096) == pattern(4096)
    text = buffer.explain(bytearray(4096))
    assert "read from" in text and f"{far.backend}: open at both ends" in text, text
    # Each backend that was asked for here, and none that nobody asked for.
    for other in {"shm", "tcp", "verbs"} - {far.backend}:
        assert (f"\n  {other}: " in text) == (far.backend == "shm"), text
    assert "this process's own" in far(_explained, buffer)


def _configured(name, folder):
    rdma.close()
    rdma.configure(name=name, directory=hawser.file_directory(folder))
    return rdma.agent().name


def _lent(size, seed, name):
    _kept[name] = bytearray(pattern(size, seed))
    return rdma.RDMABuffer(_kept[name], name=name)


def test_trials_a_handle_is_renewed_after_its_owners_restart(far, tmp_path):
    folder = str(tmp_path)
    _configured("user", folder)
    try:
        assert far(_configured, "owner", folder) == "owner"
        buffer = far(_lent, 4096, 1, "weights")
        assert buffer.name == "weights" and read(buffer, 4096) == pattern(4096, 1)
        part = buffer[1024:2048]
        os.kill(far.process.pid, signal.SIGKILL)
        far.process.join()
        with pytest.raises(hawser.Error):
            read(buffer, 4096)
        with pytest.raises(TimeoutError):
            buffer.renew(timeout=0.2)
        again = Far(**({"HAWSER_BACKENDS": "tcp"} if far.backend == "tcp" else {}))
        try:
            again(_configured, "owner", folder)
            again(_lent, 4096, 2, "weights")
            assert read(buffer.renew(timeout=LONG), 4096) == pattern(4096, 2)
            assert read(part.renew(timeout=LONG), 1024) == pattern(4096, 2)[1024:2048]
        finally:
            again.close()
    finally:
        rdma.close()
        rdma.configure()


def test_trials_a_nameless_handle_is_not_renewed(far):
    with pytest.raises(ValueError, match="has no name"):
        far(make, 64).renew(timeout=LONG)


def test_trials_objects_of_python_are_not_lent():
    """Who wrote to them from afar would write pointers."""
    numpy = pytest.importorskip("numpy")
    for odd in (numpy.array([None, 1]), numpy.zeros(2, dtype=[("a", "i4"), ("b", object)])):
        with pytest.raises(hawser.InvalidError, match="Python objects"):
            rdma.RDMABuffer(odd)
    named = numpy.zeros(2, dtype=[("O", "i4"), ("b", "f4")])
    buffer = rdma.RDMABuffer(named)
    into = bytearray(named.nbytes)
    buffer.read_into(into, timeout=LONG).get()
    with pytest.raises(hawser.InvalidError, match="Python objects"):
        buffer.read_into(numpy.array([None, 1]), timeout=LONG).get()
    buffer.drop(timeout=LONG).get()


def test_trials_a_tensor_that_is_conjugated_or_negated_in_name_only_is_not_lent():
    """Its bytes are other numbers than it shows."""
    torch = pytest.importorskip("torch")
    for odd in (torch.tensor([1 + 2j]).conj(), torch._neg_view(torch.ones(2))):
        with pytest.raises(hawser.InvalidError, match="resolve_conj"):
            rdma.RDMABuffer(odd)
