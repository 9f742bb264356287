"""Data-parallel training of a small model, one rank a process: `hawser run -n 4 python examples/world_training.py`.

Each rank has rows of its own. It computes the gradient of its rows, all ranks average the gradients, and each takes the
same step, so the models stay equal to the bit. Rank 0 chooses the first weights and tells the others.
"""

import numpy

import hawser

FEATURES, ROWS, STEPS, RATE = 8, 512, 200, 0.3


def main():
    with hawser.World.open() as world:
        truth = numpy.arange(FEATURES, dtype=numpy.float64)
        random = numpy.random.default_rng(world.rank)
        rows = random.standard_normal((ROWS, FEATURES))
        wanted = rows @ truth
        weights = random.standard_normal(FEATURES)
        world.broadcast(weights, root=0)
        for _ in range(STEPS):
            gradient = rows.T @ (rows @ weights - wanted) / ROWS
            world.all_reduce(gradient, "avg")
            weights -= RATE * gradient
        all_weights = numpy.empty((world.size, FEATURES))
        world.all_gather(all_weights, weights)
        assert (all_weights == all_weights[0]).all(), "the models differ"
        if world.rank == 0:
            print("largest error", numpy.abs(weights - truth).max())
        assert numpy.abs(weights - truth).max() < 1e-6


if __name__ == "__main__":
    main()
