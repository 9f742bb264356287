"""Monarch's keys for its RDMA, as parameters of this process's agent. Hawser's own variables win over them."""

from __future__ import annotations

import os
import re
import warnings
from typing import Callable, Dict, Optional, Tuple

from .errors import InvalidError

_PREFIX = "MONARCH_RDMA_"


def _near(text: str) -> str:
    found = re.fullmatch(r"(cpu|gpu|nic):(.+)", text)
    if found is None:
        raise InvalidError(f"{_PREFIX}IBVERBS_TARGET={text!r} is none of cpu:N, gpu:N, nic:NAME")
    return f"cuda:{found[2]}" if found[1] == "gpu" else text


def _count(key: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise InvalidError(f"{_PREFIX}{key}={text!r} is no whole number of at least 1")
    return int(text)


def _pairs(text: str) -> str:
    return str(_count("QPS_PER_PEER", text))


def _duration(text: str) -> str:
    """Monarch writes them with a unit; a bare number is seconds."""
    return text + "s" if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text.replace(" ", "")


def _connections(text: str) -> Optional[str]:
    count = _count("TCP_FALLBACK_PARALLELISM", text)
    return None if count == 1 else str(count + 1)  # One more carries what is small. 1 is Monarch's default, not a wish.


# Key, backend, its parameter, and the value as that takes it.
_HONOURED: Tuple[Tuple[str, str, str, Callable[[str], Optional[str]]], ...] = (
    ("IBVERBS_TARGET", "verbs", "near", _near),
    ("PEER_DEVICE_AFFINITY", "verbs", "rails", str),
    ("QPS_PER_PEER", "verbs", "pairs", _pairs),
    ("QP_INIT_TIMEOUT", "verbs", "connect_timeout", _duration),
    ("TCP_FALLBACK_PARALLELISM", "tcp", "connections", _connections),
)

# Keys that have nothing to set here, and why.
_IDLE = {
    "MAX_CHUNK_SIZE_MB": "each path cuts as it moves fastest",
    "CQ_BUSY_POLL_WINDOW": "who waits spins briefly, then sleeps",
    "QPS_PER_CQ": "queue pairs share completion queues as far as their entries reach",
    "RUNTIME_WORKER_THREADS": "one thread serves a process",
    "MAX_NICS_PER_BUFFER": "all rails that are equally good are used",
    "RUN_ISOLATED": "it is for Monarch's own tests",
    "MR_LRU_CACHE_SIZE": "memory is registered once and kept while it is in use",
}
_told = set()


def _value(key: str) -> str:
    return os.environ.get(_PREFIX + key, "").strip()


def settings(wanted: Optional[list]) -> Dict[str, str]:
    """What the environment asks of the backends in `wanted` (None: all), as `Agent(settings=...)` takes it.

    Raises InvalidError for a value that cannot be read. Warns once of each key that has nothing to set.
    """
    for key, why in _IDLE.items():
        if _value(key) and key not in _told:
            _told.add(key)
            warnings.warn(f"{_PREFIX}{key} changes nothing in hawser.rdma: {why}", RuntimeWarning, stacklevel=5)
    asked = {}
    if os.environ.get("MONARCH_DEBUG_RDMA", "").strip() not in ("", "0") and "HAWSER_LOG" not in os.environ:
        asked["log"] = "debug"
    for key, backend, parameter, read in _HONOURED:
        text = _value(key)
        own = f"HAWSER_BACKEND_{backend}_{parameter}".upper()
        if not text or own in os.environ or (wanted is not None and backend not in wanted):
            continue
        value = read(text)
        if value is not None:
            asked[f"backend.{backend}.{parameter}"] = value
    return asked
