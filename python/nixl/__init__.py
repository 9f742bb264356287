"""NIXL's Python package, on Hawser. docs/nixl.md says what differs from the original."""

from ._api import (DEFAULT_COMM_PORT, nixl_agent, nixl_agent_config, nixl_backend_handle, nixl_prepped_dlist_handle,
                   nixl_thread_sync_t, nixl_xfer_handle)

__all__ = ["DEFAULT_COMM_PORT", "nixl_agent", "nixl_agent_config", "nixl_backend_handle", "nixl_prepped_dlist_handle",
           "nixl_thread_sync_t", "nixl_xfer_handle"]
