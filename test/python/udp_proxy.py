"""A proxy for datagrams on 127.0.0.1 that loses, doubles, delays, exchanges, changes and cuts them, by a seed. A thread of its
own moves them; `with UdpProxy(port, seed, lost=0.01) as proxy` leads from `proxy.port` to `port`."""

import heapq
import random
import select
import socket
import threading
import time

MOST = 65536


class UdpProxy:
    def __init__(self, port, seed, lost=0.0, doubled=0.0, changed=0.0, cut=0.0, late=0.0, lateness=0.004, latency=0.0):
        self.chances = {"lost": lost, "doubled": doubled, "changed": changed, "cut": cut, "late": late}
        self.done = dict.fromkeys(self.chances, 0)  # How often each happened.
        self.passed = 0
        self._latency, self._lateness, self._dice = latency, lateness, random.Random(seed)
        self._behind = ("127.0.0.1", port)
        self._front = self._socket()
        self._front.bind(("127.0.0.1", 0))
        self.port = self._front.getsockname()[1]
        self._ends = {}  # By who asked: the socket that stands for it.
        self._waiting, self._number = [], 0  # What is on its way, by when it arrives.
        self._is_over = False
        self._thread = threading.Thread(target=self._work)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        self._thread.join()
        for each in (self._front, *self._ends.values()):
            each.close()

    @staticmethod
    def _socket():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            made.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        made.setblocking(False)
        return made

    def _happens(self, what):
        happens = self._dice.random() < self.chances[what]
        self.done[what] += happens
        return happens

    def _post(self, said, send):
        self.passed += 1
        if self._happens("lost"):
            return
        if self._happens("changed"):
            said = bytearray(said)
            said[self._dice.randrange(len(said))] ^= 1 << self._dice.randrange(8)
        if self._happens("cut"):
            said = said[:self._dice.randrange(1, len(said) + 1)]
        for _ in range(2 if self._happens("doubled") else 1):
            at = time.monotonic() + self._latency
            if self._happens("late"):
                at += self._dice.random() * self._lateness
            self._number += 1
            heapq.heappush(self._waiting, (at, self._number, bytes(said), send))

    def _read(self, its, send_of):
        for _ in range(64):
            try:
                said, who = its.recvfrom(MOST)
            except (BlockingIOError, ConnectionError):
                return
            self._post(said, send_of(who))

    def _end_of(self, who):
        if who not in self._ends:
            self._ends[who] = self._socket()
            self._ends[who].connect(self._behind)
        return self._ends[who].send

    def _work(self):
        while not self._is_over:
            soon = self._waiting[0][0] - time.monotonic() if self._waiting else 0.05
            by_socket = {each: who for who, each in self._ends.items()}
            ready, _, _ = select.select([self._front, *by_socket], [], [], min(max(soon, 0), 0.05))
            for its in ready:
                if its is self._front:
                    self._read(its, self._end_of)
                else:
                    self._read(its, lambda _, to=by_socket[its]: lambda said: self._front.sendto(said, to))
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, said, send = heapq.heappop(self._waiting)
                try:
                    send(said)
                except OSError:
                    pass  # Lost: a full buffer, or nobody there any more.
