"""What this machine does at best with the bytes of bench/rdma_bench.py: between the same two processes, without a library.

Memory: one call of process_vm_readv or process_vm_writev, what the kernel offers for memory that nobody shares.
Sockets: loopback TCP, one connection or two with a thread each; a read asks and receives into place, a write ends with
the other side's word that it has all.
"""

import concurrent.futures
import ctypes
import os
import socket
import struct
import threading
import time

COMMAND = struct.Struct("<cQQ")  # b"r" or b"w", offset, size
BUFFER = 4 << 20
PATIENCE = 60


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def attach(operation, pid, theirs, ours, size):
    """One copy between `ours` here and `theirs` in process `pid`, by the kernel. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    call = libc.process_vm_readv if operation == "read" else libc.process_vm_writev
    done = 0
    while done < size:
        here, there = IoVec(ours + done, size - done), IoVec(theirs + done, size - done)
        moved = call(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if moved <= 0:
            raise OSError(ctypes.get_errno(), f"{call.__name__}: {os.strerror(ctypes.get_errno())}")
        done += moved


def prepare(connection):
    connection.settimeout(PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive(connection, view):
    got = 0
    while got < len(view):
        some = connection.recv_into(view[got:], min(len(view) - got, BUFFER))
        if some == 0:
            raise ConnectionError("the other process ended")
        got += some


def serve(connection, memory):
    command = memoryview(bytearray(COMMAND.size))
    try:
        while True:
            receive(connection, command)
            operation, offset, size = COMMAND.unpack(command)
            part = memory[offset:offset + size]
            if operation == b"r":
                connection.sendall(part)
            else:
                receive(connection, part)
                connection.sendall(b"!")
    except OSError:
        pass  # The bench is over.


def listen(memory):
    """Serves `memory` (a writable memoryview of bytes) from threads of this process. The port."""
    door = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection = prepare(door.accept()[0])
            threading.Thread(target=serve, args=(connection, memory), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return door.getsockname()[1]


class Sockets:
    """`count` connections to a port of listen()."""

    def __init__(self, port, count):
        self.connections = [prepare(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        self.threads = concurrent.futures.ThreadPoolExecutor(count)

    def run(self, operation, memory):
        """One read or write of all of `memory`, in equal parts."""
        step = -(-len(memory) // len(self.connections))
        parts = [(connection, begin, memory[begin:begin + step])
                 for connection, begin in zip(self.connections, range(0, len(memory), step))]
        if len(parts) == 1:
            self.move(operation, *parts[0])
        else:
            list(self.threads.map(lambda part: self.move(operation, *part), parts))

    @staticmethod
    def move(operation, connection, begin, part):
        connection.sendall(COMMAND.pack(operation[:1].encode(), begin, len(part)))
        if operation == "read":
            receive(connection, part)
        else:
            connection.sendall(part)
            receive(connection, memoryview(bytearray(1)))


class Ceiling:
    """`lent`: process, address and listen()'s port of memory as large as `memory`. By sockets, or by attaching."""

    def __init__(self, lent, memory, by_sockets):
        self.pid, self.address, port = lent
        self.memory = memory
        self.sockets = [Sockets(port, count) for count in (1, 2)] if by_sockets else []

    def seconds(self, operation, times):
        """The median of so many reads or writes, in the best way."""
        ours = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        ways = [lambda: attach(operation, self.pid, self.address, ours, len(self.memory))]
        if self.sockets:
            ways = [lambda one=one: one.run(operation, self.memory) for one in self.sockets]
        return min(seconds_of(way, times) for way in ways)


def seconds_of(work, times):
    """The median of so many calls."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)[len(seconds) // 2]
