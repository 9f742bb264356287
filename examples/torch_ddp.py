"""Data-parallel training by torch's DDP on Hawser: `torchrun --nproc-per-node 4 examples/torch_ddp.py`.

Nothing of Hawser is imported: torch finds the backend by its name. Each rank has batches of its own. DDP sums the
gradients of all ranks while the backward pass still runs, so the models stay equal to the bit.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES, ROWS, STEPS = 16, 64, 100


def target(rows):
    return torch.sin(rows).sum(dim=1, keepdim=True)


def main():
    dist.init_process_group(os.environ.get("BACKEND", "hawser"))
    torch.manual_seed(0)  # The same first weights on all ranks; DDP also tells those of rank 0 to the others.
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(FEATURES, 64), torch.nn.Tanh(),
                                                        torch.nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(1 + dist.get_rank())
    losses = []
    for _ in range(STEPS):
        rows = torch.randn(ROWS, FEATURES, generator=batches)
        loss = torch.nn.functional.mse_loss(model(rows), target(rows))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = torch.cat([each.detach().reshape(-1) for each in model.parameters()])
    all_weights = [torch.empty_like(weights) for _ in range(dist.get_world_size())]
    dist.all_gather(all_weights, weights)
    assert all(torch.equal(each, weights) for each in all_weights), "the models differ"
    assert losses[-1] < losses[0] / 2, losses
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, weights {weights.double().sum().item():.12f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
