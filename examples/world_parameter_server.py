"""A parameter server by remote calls, one rank a process: `hawser run -n 4 python examples/world_parameter_server.py`.

Rank 0 keeps the weights. Each other rank pulls them, computes a gradient of rows of its own, and pushes it, as often as
it likes: no rank waits for another one. While rank 0 waits at the end, threads of Hawser serve the calls.
"""

import threading

import numpy

import hawser

FEATURES, ROWS, PUSHES, RATE = 8, 256, 300, 0.05
TRUTH = numpy.arange(FEATURES, dtype=numpy.float64)


class Server:
    """Several calls may run at the same time."""

    def __init__(self):
        self.weights = numpy.zeros(FEATURES)
        self.pushes = 0
        self.lock = threading.Lock()

    def pull(self):
        with self.lock:
            return self.weights.copy()

    def push(self, gradient):
        with self.lock:
            self.weights -= RATE * gradient
            self.pushes += 1


def work(world):
    random = numpy.random.default_rng(world.rank)
    rows = random.standard_normal((ROWS, FEATURES))
    wanted = rows @ TRUTH
    for _ in range(PUSHES):
        weights = world.call(0, "pull", timeout=10)
        gradient = rows.T @ (rows @ weights - wanted) / ROWS
        world.call(0, "push", gradient, timeout=10)


def main():
    with hawser.World.open() as world:
        server = Server()
        if world.rank == 0:
            world.register("pull", server.pull)
            world.register("push", server.push)
        world.barrier()  # Before it there is nobody to call.
        if world.rank > 0:
            work(world)
        world.barrier()
        if world.rank == 0:
            error = numpy.abs(server.weights - TRUTH).max()
            print(f"{server.pushes} pushes, largest error {error:.2e}")
            assert server.pushes == PUSHES * (world.size - 1)
            assert world.size == 1 or error < 1e-3


if __name__ == "__main__":
    main()
