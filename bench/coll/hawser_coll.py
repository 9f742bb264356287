"""Hawser's collectives from Python, as hawser_coll.cc has them: `hawser run -n 2 -- python hawser_coll.py WHO SCALE OPS SIZES`."""

import numpy
import python_plan

from hawser import World


class Hawser:
    def __init__(self, world: World) -> None:
        self.world, self.rank, self.size = world, world.rank, world.size

    def barrier(self) -> None:
        self.world.barrier()

    def most(self, values: numpy.ndarray) -> None:
        self.world.all_reduce(values, "max")

    def calls_on(self, x: numpy.ndarray, out: numpy.ndarray) -> dict:
        world, count = self.world, len(x)
        return {
            "barrier": world.barrier,
            "all_reduce": lambda: world.all_reduce(x),
            "broadcast": lambda: world.broadcast(x),
            "all_gather": lambda: world.all_gather(out, x),
            "reduce_scatter": lambda: world.reduce_scatter(out[:count // self.size], x),
            "all_to_all": lambda: world.all_to_all(out[:count], x),
            "pingpong": lambda: self.pingpong(x),
        }

    def pingpong(self, x: numpy.ndarray) -> None:
        if self.rank == 0:
            self.world.send(x, 1)
            self.world.recv(x, 1)
        elif self.rank == 1:
            self.world.recv(x, 0)
            self.world.send(x, 0)


if __name__ == "__main__":
    with World.open() as opened:
        python_plan.main(Hawser(opened))
