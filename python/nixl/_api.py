"""NIXL's agent for Python, on Hawser: the same names, values and quirks, over nixl._bindings.

Clients rely on parameter names, on errors that are raised by class and text, and on bad descriptors that give None.
"""

from __future__ import annotations

import atexit
import pickle
from enum import Enum
from typing import Any, Optional, Union

import numpy as np

from . import _bindings as nixlBind
from .logging import get_logger

logger = get_logger(__name__)

DEFAULT_COMM_PORT = nixlBind.DEFAULT_COMM_PORT

nixl_backend_handle = int

_DONE, _BUSY = "DONE", "PROC"
_STRIDED_COLUMNS = 5


def _is_torch_tensor(obj: object) -> bool:
    """Without importing torch, which clients may not have."""
    return type(obj).__module__.split(".")[0] == "torch" and hasattr(obj, "data_ptr")


class _Handle:
    """A number in the agent's tables. Released once; a second time is nothing."""

    __slots__ = ("_handle", "_agent", "_released", "__weakref__")

    def __init__(self, agent: nixlBind.nixlAgent, value: int) -> None:
        self._agent = agent
        self._handle = value
        self._released = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._handle:#x}, released={self._released})"

    def release(self) -> None:
        if self._released:
            return
        self._release()
        self._released = True

    def _release(self) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        try:
            self.release()
        except Exception:  # noqa: BLE001 - nobody is there to be told, and the agent ends it with itself
            pass


class nixl_prepped_dlist_handle(_Handle):
    __slots__ = ()

    def _release(self) -> None:
        self._agent.releasedDlistH(self._handle)


class nixl_xfer_handle(_Handle):
    __slots__ = ()

    def _release(self) -> None:
        self._agent.releaseXferReq(self._handle)


class nixl_thread_sync_t(Enum):
    NIXL_THREAD_SYNC_NONE = nixlBind.NIXL_THREAD_SYNC_NONE
    NIXL_THREAD_SYNC_STRICT = nixlBind.NIXL_THREAD_SYNC_STRICT
    NIXL_THREAD_SYNC_RW = nixlBind.NIXL_THREAD_SYNC_RW
    NIXL_THREAD_SYNC_DEFAULT = nixlBind.NIXL_THREAD_SYNC_DEFAULT


class nixl_agent_config:
    def __init__(self, enable_prog_thread: bool = True, enable_listen_thread: bool = False,
                 listen_port: int = DEFAULT_COMM_PORT, capture_telemetry: bool = False, num_threads: int = 0,
                 backends: list[str] = ["UCX"], sync_mode: Optional[nixl_thread_sync_t] = None) -> None:
        if sync_mode is not None and not isinstance(sync_mode, nixl_thread_sync_t):
            raise TypeError(f"sync_mode must be a nixl_thread_sync_t (got '{type(sync_mode).__name__}')")
        self.enable_pthread = enable_prog_thread
        self.enable_listen = enable_listen_thread
        self.port = listen_port
        self.capture_telemetry = capture_telemetry
        self.num_threads = num_threads
        self.backends = backends
        self.sync_mode = sync_mode


_THREADS_KEY = {"UCX": "num_threads", "OBJ": "num_threads", "LIBFABRIC": "num_threads", "GDS_MT": "thread_count",
                "UCCL": "num_cpus"}

Descs = Any  # What the methods below take for lists: tuples, arrays, tensors, or a list itself.


class nixl_agent:
    def __init__(self, agent_name: str, nixl_conf: Optional[nixl_agent_config] = None,
                 instantiate_all: bool = False) -> None:
        if not agent_name:
            raise ValueError("Agent needs a non-empty name")
        if nixl_conf is not None and instantiate_all:
            logger.warning("instantiate_all changes nothing beside a config, which says which backends to create")
            instantiate_all = False
        conf = nixl_conf if nixl_conf is not None else nixl_agent_config()
        sync = conf.sync_mode
        if sync is None:
            sync = (nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT if conf.enable_listen
                    else nixl_thread_sync_t.NIXL_THREAD_SYNC_NONE)
        self.name = agent_name
        self.notifs: dict[str, list[bytes]] = {}
        self.backends: dict[str, nixl_backend_handle] = {}
        self.backend_mems: dict[str, list[str]] = {}
        self.backend_options: dict[str, dict[str, str]] = {}
        self.plugin_mem_types: dict[str, list[str]] = {}
        self.plugin_b_options: dict[str, dict[str, str]] = {}
        self.nixl_mems = {"DRAM": nixlBind.DRAM_SEG, "VRAM": nixlBind.VRAM_SEG, "FILE": nixlBind.FILE_SEG,
                          "BLOCK": nixlBind.BLK_SEG, "OBJ": nixlBind.OBJ_SEG, "cpu": nixlBind.DRAM_SEG,
                          "cuda": nixlBind.VRAM_SEG}
        self.nixl_ops = {"WRITE": nixlBind.NIXL_WRITE, "READ": nixlBind.NIXL_READ}
        self.agent = nixlBind.nixlAgent(agent_name, nixlBind.nixlAgentConfig(
            conf.enable_pthread, conf.enable_listen, conf.port, sync.value, 1, 0, 100000, conf.capture_telemetry))
        self.plugin_list = self.agent.getAvailPlugins()
        if not self.plugin_list:
            raise RuntimeError("No plugins available for NIXL, cannot start transfers!")
        self._create_wanted(conf, self.plugin_list if instantiate_all else conf.backends)
        logger.info("Initialized NIXL agent: %s", agent_name)

    def _create_wanted(self, conf: nixl_agent_config, wanted: list[str]) -> None:
        for name in wanted:
            name = self._plugin_name(name)
            if name not in self.plugin_list:
                logger.warning("Skipping backend %s: there is no such plugin, only %s", name, self.plugin_list)
                continue
            params = {}
            if conf.num_threads > 0 and name in _THREADS_KEY:
                params[_THREADS_KEY[name]] = str(conf.num_threads)
            self.create_backend(name, params)

    # Plugins and backends. Their names may be in either case, as everywhere in Hawser; keys have the plugin's own.

    def _plugin_name(self, name: str) -> str:
        return next((known for known in self.plugin_list if known.upper() == str(name).upper()), name)

    def _load_plugin_params(self, plugin: str) -> None:
        if plugin in self.plugin_b_options or plugin not in self.plugin_list:
            return
        self.plugin_b_options[plugin], self.plugin_mem_types[plugin] = self.agent.getPluginParams(plugin)

    def get_plugin_list(self) -> list[str]:
        return self.plugin_list

    def get_plugin_mem_types(self, backend: str) -> list[str]:
        backend = self._plugin_name(backend)
        self._load_plugin_params(backend)
        if backend not in self.plugin_mem_types:
            logger.warning("Plugin %s is not available to get its supported mem types", backend)
        return self.plugin_mem_types.get(backend, [])

    def get_plugin_params(self, backend: str) -> dict[str, str]:
        backend = self._plugin_name(backend)
        self._load_plugin_params(backend)
        if backend not in self.plugin_b_options:
            logger.warning("Plugin %s is not available to get its parameters", backend)
        return self.plugin_b_options.get(backend, {})

    def get_backend_mem_types(self, backend: str) -> list[str]:
        backend = self._plugin_name(backend)
        if backend not in self.backend_mems:
            logger.warning("Backend %s is not instantiated to get its supported mem types", backend)
        return self.backend_mems.get(backend, [])

    def get_backend_params(self, backend: str) -> dict[str, str]:
        backend = self._plugin_name(backend)
        if backend not in self.backend_options:
            logger.warning("Backend %s is not instantiated to get its parameters", backend)
        return self.backend_options.get(backend, {})

    def create_backend(self, backend: str, initParams: dict[str, str] = {}) -> None:
        backend = self._plugin_name(backend)
        handle = self.agent.createBackend(backend, initParams)
        self.backends[backend] = handle
        self.backend_options[backend], self.backend_mems[backend] = self.agent.getBackendParams(handle)
        logger.info("Backend %s was instantiated", backend)

    def _handles(self, backends: Optional[list[str]]) -> list[nixl_backend_handle]:
        if not backends:
            return []
        return [self._backend(name, KeyError) for name in backends]

    def _backend(self, name: str, error: type[Exception]) -> nixl_backend_handle:
        """Clients know one that is not there by KeyError, but where they query memory."""
        name = self._plugin_name(name)
        if name not in self.backends:
            raise error(f"Backend {name} is not instantiated; there are {sorted(self.backends)}")
        return self.backends[name]

    # Memory.

    def register_memory(self, reg_list: Descs, mem_type: Optional[str] = None,
                        backends: list[str] = []) -> nixlBind.nixlRegDList:
        descs = self.get_reg_descs(reg_list, mem_type)
        self.agent.registerMem(descs, self._handles(backends))
        return descs

    def deregister_memory(self, dereg_list: nixlBind.nixlRegDList, backends: list[str] = []) -> None:
        self.agent.deregisterMem(dereg_list, self._handles(backends))

    def query_memory(self, reg_list: Descs, backend: str,
                     mem_type: Optional[str] = None) -> list[Optional[dict[str, str]]]:
        handle = self._backend(backend, ValueError)
        return self.agent.queryMem(self.get_reg_descs(reg_list, mem_type), handle)

    def make_connection(self, remote_agent: str, backends: list[str] = []) -> None:
        self.agent.makeConnection(remote_agent, self._handles(backends))

    # Transfers.

    def prep_xfer_dlist(self, agent_name: str, xfer_list: Descs, mem_type: Optional[str] = None,
                        backends: list[str] = []) -> nixl_prepped_dlist_handle:
        handles = self._handles(backends)
        if isinstance(xfer_list, np.ndarray) and xfer_list.ndim == 2 and xfer_list.shape[1] == _STRIDED_COLUMNS:
            if mem_type is None:
                raise ValueError("Please specify a mem type for strided descriptors")
            handle = self.agent.prepXferDlist(agent_name, self.nixl_mems[mem_type], xfer_list, handles)
        else:
            handle = self.agent.prepXferDlist(agent_name, self.get_xfer_descs(xfer_list, mem_type), handles)
        return nixl_prepped_dlist_handle(self.agent, handle)

    def estimate_xfer_cost(self, req_handle: nixl_xfer_handle) -> tuple[int, int, str]:
        duration, margin, method = self.agent.estimateXferCost(req_handle._handle)
        known = method == int(nixlBind.NIXL_COST_ANALYTICAL_BACKEND)
        return duration, margin, "ANALYTICAL_BACKEND" if known else "UNKNOWN"

    def make_prepped_xfer(self, operation: str, local_xfer_side: nixl_prepped_dlist_handle,
                          local_indices: Union[list[int], np.ndarray], remote_xfer_side: nixl_prepped_dlist_handle,
                          remote_indices: Union[list[int], np.ndarray], notif_msg: bytes = b"",
                          backends: list[str] = [], skip_desc_merge: bool = False) -> nixl_xfer_handle:
        handle = self.agent.makeXferReq(self.nixl_ops[operation], local_xfer_side._handle, local_indices,
                                        remote_xfer_side._handle, remote_indices, notif_msg, self._handles(backends),
                                        skip_desc_merge)
        return nixl_xfer_handle(self.agent, handle)

    def initialize_xfer(self, operation: str, local_descs: nixlBind.nixlXferDList,
                        remote_descs: nixlBind.nixlXferDList, remote_agent: str, notif_msg: bytes = b"",
                        backends: list[str] = []) -> nixl_xfer_handle:
        handle = self.agent.createXferReq(self.nixl_ops[operation], local_descs, remote_descs, remote_agent, notif_msg,
                                          self._handles(backends))
        return nixl_xfer_handle(self.agent, handle)

    def transfer(self, handle: nixl_xfer_handle, notif_msg: bytes = b"") -> str:
        return _DONE if self.agent.postXferReq(handle._handle, notif_msg) == nixlBind.NIXL_SUCCESS else _BUSY

    def check_xfer_state(self, handle: nixl_xfer_handle) -> str:
        return _BUSY if self.agent._isXferBusy(handle._handle) else _DONE

    def get_xfer_telemetry(self, handle: nixl_xfer_handle) -> nixlBind.nixlXferTelemetry:
        return self.agent.getXferTelemetry(handle._handle)

    def query_xfer_backend(self, handle: nixl_xfer_handle) -> str:
        backend = self.agent.queryXferBackend(handle._handle)
        return next(name for name, its in self.backends.items() if its == backend)

    def release_xfer_handle(self, handle: nixl_xfer_handle) -> None:
        handle.release()

    def release_dlist_handle(self, handle: nixl_prepped_dlist_handle) -> None:
        handle.release()

    def prep_mem_view(self, dlist: Union[nixlBind.nixlXferDList, nixlBind.nixlRemoteDList], *,
                      backends: Optional[list[str]] = None) -> int:
        return self.agent.prepMemView(dlist, self._handles(backends))

    def release_mem_view(self, mvh: int) -> None:
        self.agent.releaseMemView(mvh)

    # Notifications.

    def get_new_notifs(self, backends: list[str] = []) -> dict[str, list[bytes]]:
        return self.agent.getNotifs({}, self._handles(backends) if backends else None)

    def update_notifs(self, backends: list[str] = []) -> dict[str, list[bytes]]:
        self.notifs = self.agent.getNotifs(self.notifs, self._handles(backends))
        return self.notifs

    def check_remote_xfer_done(self, remote_agent_name: str, lookup_tag: bytes, backends: list[str] = [],
                               tag_is_prefix: bool = True) -> bool:
        messages = self.update_notifs(backends).get(_text(remote_agent_name), [])
        for number, message in enumerate(messages):
            if message.startswith(lookup_tag) if tag_is_prefix else lookup_tag in message:
                del messages[number]
                return True
        return False

    def send_notif(self, remote_agent_name: str, notif_msg: bytes, backend: Optional[str] = None) -> None:
        self.agent.genNotif(remote_agent_name, notif_msg, self._handles([backend] if backend else None))

    # Metadata.

    def get_agent_metadata(self) -> bytes:
        return self.agent.getLocalMD()

    def get_partial_agent_metadata(self, descs: nixlBind.nixlRegDList, inc_conn_info: bool = False,
                                   backends: list[str] = []) -> bytes:
        return self.agent.getLocalPartialMD(descs, inc_conn_info, self._handles(backends))

    def add_remote_agent(self, metadata: bytes) -> bytes:
        """The agent's name. As bytes, which clients decode."""
        return self.agent.loadRemoteMD(metadata)

    def remove_remote_agent(self, agent: str) -> None:
        self.agent.invalidateRemoteMD(agent)  # Clients remove what may be gone already.

    def send_local_metadata(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> None:
        self.agent.sendLocalMD(ip_addr, port)

    def send_partial_agent_metadata(self, descs: nixlBind.nixlRegDList, inc_conn_info: bool = False,
                                    backends: list[str] = [], ip_addr: str = "", port: int = DEFAULT_COMM_PORT,
                                    label: str = "") -> None:
        self.agent.sendLocalPartialMD(descs, inc_conn_info, self._handles(backends), ip_addr, port, label)

    def fetch_remote_metadata(self, remote_agent: str, ip_addr: str = "", port: int = DEFAULT_COMM_PORT,
                              label: str = "") -> None:
        self.agent.fetchRemoteMD(remote_agent, ip_addr, port, label)

    def invalidate_local_metadata(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> None:
        self.agent.invalidateLocalMD(ip_addr, port)

    def check_remote_metadata(self, agent: str, descs: Optional[nixlBind.nixlXferDList] = None) -> bool:
        wanted = descs if descs is not None else nixlBind.nixlXferDList(nixlBind.DRAM_SEG)
        return self.agent.checkRemoteMD(agent, wanted) == nixlBind.NIXL_SUCCESS

    # Lists. What makes no list is logged, and gives None.

    @staticmethod
    def _tensor_mem_type(tensor: Any) -> str:
        return "cuda" if str(tensor.device).startswith("cuda") else "cpu"

    def _tensor_rows(self, tensors: list[Any]) -> Optional[list[tuple[int, int, int]]]:
        rows = []
        for tensor in tensors:
            if not _is_torch_tensor(tensor) or self._tensor_mem_type(tensor) != self._tensor_mem_type(tensors[0]):
                logger.error("A list of tensors must hold tensors of one kind of device only")
                return None
            if not tensor.is_contiguous():
                logger.error("Please use contiguous tensors, not one with strides %s", tuple(tensor.stride()))
                return None
            device = tensor.get_device()
            rows.append((tensor.data_ptr(), tensor.numel() * tensor.element_size(), max(device, 0)))
        return rows

    def _list_of(self, kind: Any, other: Any, columns: int, descs: Descs, mem_type: Optional[str]) -> Any:
        if isinstance(descs, kind):
            return descs
        if isinstance(descs, other):
            logger.error("A %s was given where a %s is needed", type(descs).__name__, kind.__name__)
            return None
        if _is_torch_tensor(descs):
            descs = [descs]
        if isinstance(descs, (list, tuple)) and len(descs) > 0 and _is_torch_tensor(descs[0]):
            rows = self._tensor_rows(list(descs))
            if rows is None:
                return None
            mem = self.nixl_mems[mem_type or self._tensor_mem_type(descs[0])]
            return kind(mem, rows if columns == 3 else [(*row, "") for row in rows])
        if isinstance(descs, np.ndarray):
            return self._list_of_array(kind, descs, mem_type)
        if not isinstance(descs, list):
            logger.error("No list of descriptors, array or tensor: %s", type(descs).__name__)
            return None
        return self._list_of_tuples(kind, columns, descs, mem_type)

    def _list_of_array(self, kind: Any, descs: np.ndarray, mem_type: Optional[str]) -> Any:
        if mem_type is None:
            logger.error("Please specify a mem type if not using Tensors")
            return None
        if descs.ndim != 2 or descs.shape[1] != 3:
            logger.error("A descriptor array must have the shape Nx3, not %s", descs.shape)
            return None
        return kind(self.nixl_mems[mem_type], descs)

    def _list_of_tuples(self, kind: Any, columns: int, descs: list, mem_type: Optional[str]) -> Any:
        if mem_type is None:
            logger.error("Please specify a mem type if not using Tensors")
            return None
        if descs and (not isinstance(descs[0], tuple) or len(descs[0]) != columns):
            logger.error("A list of %d-tuples is needed", columns)
            return None
        return kind(self.nixl_mems[mem_type], descs)

    def get_xfer_descs(self, descs: Descs, mem_type: Optional[str] = None) -> nixlBind.nixlXferDList:
        return self._list_of(nixlBind.nixlXferDList, nixlBind.nixlRegDList, 3, descs, mem_type)

    def get_reg_descs(self, descs: Descs, mem_type: Optional[str] = None) -> nixlBind.nixlRegDList:
        return self._list_of(nixlBind.nixlRegDList, nixlBind.nixlXferDList, 4, descs, mem_type)

    def get_remote_descs(self, descs: Union[nixlBind.nixlRemoteDList, list[tuple]],
                         mem_type: Optional[str] = None) -> nixlBind.nixlRemoteDList:
        if isinstance(descs, nixlBind.nixlRemoteDList):
            return descs
        return self._list_of_tuples(nixlBind.nixlRemoteDList, 4, descs, mem_type)

    def get_serialized_descs(self, descs: Union[nixlBind.nixlXferDList, nixlBind.nixlRegDList]) -> bytes:
        return pickle.dumps(descs)

    def deserialize_descs(self, serialized_descs: bytes) -> Any:
        return pickle.loads(serialized_descs)


def _text(name: Union[str, bytes, bytearray]) -> str:
    return name if isinstance(name, str) else name.decode()


# Calls that run without Python's lock end before the interpreter does. Agents end with the process, which peers notice.
atexit.register(nixlBind._wait_at_exit)
