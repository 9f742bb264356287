"""Where ranks meet that torchrun has started: at its own store, which all of them reach."""

from __future__ import annotations

import datetime
import os
from typing import Any


def store(timeout: Any) -> Any:
    """
    A view of torchrun's store for this run and this restart, or None without torch or without an address. torchrun
    serves the store itself, or rank 0 does, where TORCHELASTIC_USE_AGENT_STORE says that nobody else does.
    """
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
    if not host or not port.isdigit():
        return None
    try:
        from torch.distributed import PrefixStore, TCPStore
    except ImportError:
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    is_served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "False") == "True"
    patience = timeout if isinstance(timeout, datetime.timedelta) else datetime.timedelta(
        seconds=30 if timeout is None else timeout)
    made = TCPStore(host, int(port), size, is_master=rank == 0 and not is_served, timeout=patience,
                    wait_for_workers=False, multi_tenant=True)
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"hawser/{run}/{restart}", made)
