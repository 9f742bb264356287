#!/usr/bin/env python3
"""Round trips of 8 bytes between two ranks, alone and beside large messages that rank 0 sends to rank 1.

    hawser run -n 2 -- python bench/beside_bulk.py [--messages 30] [--priority critical] [--bytes N --at-once N]

The round trips have the class of --priority, the large messages have class bulk, which is the default of both.
Large messages have 64 MiB, or --bytes: up to 64 KiB they are sent without asking the receiver.
Prints microseconds of round trips (p50, p90, p99), and the rate of the large messages with and without them. Two of
the large messages, or --at-once, are under way at any time.
"""

import argparse
import time

import numpy as np

import hawser

BULK, PING, PONG = 9, 1, 2


class Bulk:
    """Keeps some large messages under way until `count` went."""

    def __init__(self, world, count, size, at_once):
        self.world, self.left = world, count
        self.buffers = [np.ones(size, np.uint8) for _ in range(at_once)]
        self.under_way = {}

    def begin(self, place):
        x = self.buffers[place]
        self.left -= 1
        sends = self.world.rank == 0
        self.under_way[place] = self.world.isend(x, 1, tag=BULK) if sends else self.world.irecv(x, source=0, tag=BULK)

    def go_on(self):
        for place, handle in list(self.under_way.items()):
            if handle.done():
                handle.wait(1)
                del self.under_way[place]
        for place in range(len(self.buffers)):
            if self.left > 0 and place not in self.under_way:
                self.begin(place)

    def is_over(self):
        return self.left == 0 and not self.under_way

    def run(self):
        while not self.is_over():
            self.go_on()


def round_trips(world, is_over, between=lambda: None, **options):
    """Seconds of each, sorted. Rank 0 says in each ping whether it is the last."""
    word, times = np.zeros(8, np.uint8), []
    while word[0] == 0:
        between()
        if world.rank == 0:
            word[0] = is_over(len(times))
            begin = time.perf_counter()
            world.send(word, 1, tag=PING, **options)
            world.recv(word, source=1, tag=PONG)
            times.append(time.perf_counter() - begin)
        else:
            world.recv(word, source=0, tag=PING)
            world.send(word, 0, tag=PONG, **options)
    return sorted(times)


def show(world, what, times):
    if world.rank == 0:
        p50, p90, p99 = (times[int(len(times) * part)] * 1e6 for part in (0.5, 0.9, 0.99))
        print(f"{what}: {len(times)} round trips, p50 {p50:.0f} us, p90 {p90:.0f} us, p99 {p99:.0f} us", flush=True)


def rate(world, what, size, begin):
    if world.rank == 0:
        print(f"{what}: {size / (time.perf_counter() - begin) / 1e9:.2f} GB/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=30, help="large messages in each part")
    parser.add_argument("--priority", help="class of the round trips: critical, realtime or bulk")
    parser.add_argument("--bytes", type=int, default=64 << 20, help="of a large message")
    parser.add_argument("--at-once", type=int, default=2, help="large messages under way at any time")
    given = parser.parse_args()
    large, size = (given.messages, given.bytes, given.at_once), given.messages * given.bytes
    options = {"priority": given.priority} if given.priority else {}
    world = hawser.World.open(timeout=60)
    round_trips(world, lambda done: done >= 50, **options)
    show(world, "alone", round_trips(world, lambda done: done >= 2000, **options))
    bulk, begin = Bulk(world, *large), time.perf_counter()
    show(world, "beside bulk", round_trips(world, lambda _: bulk.is_over(), bulk.go_on, **options))
    bulk.run()
    rate(world, "bulk beside them", size, begin)
    world.barrier()
    bulk, begin = Bulk(world, *large), time.perf_counter()
    bulk.run()
    world.barrier()
    rate(world, "bulk alone", size, begin)
    world.shutdown(30)


if __name__ == "__main__":
    main()
