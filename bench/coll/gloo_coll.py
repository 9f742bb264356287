"""Gloo, as torch.distributed has it: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, then WHO SCALE OPS SIZES."""

import numpy
import python_plan
import torch
import torch.distributed as dist


class Gloo:
    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def barrier(self) -> None:
        dist.barrier()

    def most(self, values: numpy.ndarray) -> None:
        dist.all_reduce(torch.from_numpy(values), op=dist.ReduceOp.MAX)

    def calls_on(self, x: numpy.ndarray, out: numpy.ndarray) -> dict:
        own, all_of_them = torch.from_numpy(x), torch.from_numpy(out)
        each = len(own) // self.size
        return {
            "barrier": dist.barrier,
            "all_reduce": lambda: dist.all_reduce(own),
            "broadcast": lambda: dist.broadcast(own, 0),
            "all_gather": lambda: dist.all_gather_into_tensor(all_of_them, own),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(all_of_them[:each], own),
            "all_to_all": lambda: dist.all_to_all_single(all_of_them[:len(own)], own),
            "pingpong": lambda: self.pingpong(own),
        }

    def pingpong(self, own: torch.Tensor) -> None:
        if self.rank == 0:
            dist.send(own, 1)
            dist.recv(own, 1)
        elif self.rank == 1:
            dist.recv(own, 0)
            dist.send(own, 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    python_plan.main(Gloo())
    dist.destroy_process_group()
