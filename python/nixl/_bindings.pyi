import datetime
import enum
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, overload

Text: TypeAlias = str | bytes | bytearray
Indices: TypeAlias = Iterable[int] | Any  # A list, a range, ..., or a one-dimensional array of integers.


class nixl_mem_t(enum.IntEnum):
    DRAM_SEG = 0

    VRAM_SEG = 1

    BLK_SEG = 2

    OBJ_SEG = 3

    FILE_SEG = 4

DRAM_SEG: nixl_mem_t = nixl_mem_t.DRAM_SEG

VRAM_SEG: nixl_mem_t = nixl_mem_t.VRAM_SEG

BLK_SEG: nixl_mem_t = nixl_mem_t.BLK_SEG

OBJ_SEG: nixl_mem_t = nixl_mem_t.OBJ_SEG

FILE_SEG: nixl_mem_t = nixl_mem_t.FILE_SEG

class nixl_xfer_op_t(enum.IntEnum):
    NIXL_READ = 0

    NIXL_WRITE = 1

NIXL_READ: nixl_xfer_op_t = nixl_xfer_op_t.NIXL_READ

NIXL_WRITE: nixl_xfer_op_t = nixl_xfer_op_t.NIXL_WRITE

class nixl_status_t(enum.IntEnum):
    NIXL_IN_PROG = 1

    NIXL_SUCCESS = 0

    NIXL_ERR_NOT_POSTED = -1

    NIXL_ERR_INVALID_PARAM = -2

    NIXL_ERR_BACKEND = -3

    NIXL_ERR_NOT_FOUND = -4

    NIXL_ERR_MISMATCH = -5

    NIXL_ERR_NOT_ALLOWED = -6

    NIXL_ERR_REPOST_ACTIVE = -7

    NIXL_ERR_UNKNOWN = -8

    NIXL_ERR_NOT_SUPPORTED = -9

    NIXL_ERR_REMOTE_DISCONNECT = -10

    NIXL_ERR_CANCELED = -11

    NIXL_ERR_NO_TELEMETRY = -12

NIXL_IN_PROG: nixl_status_t = nixl_status_t.NIXL_IN_PROG

NIXL_SUCCESS: nixl_status_t = nixl_status_t.NIXL_SUCCESS

NIXL_ERR_NOT_POSTED: nixl_status_t = nixl_status_t.NIXL_ERR_NOT_POSTED

NIXL_ERR_INVALID_PARAM: nixl_status_t = nixl_status_t.NIXL_ERR_INVALID_PARAM

NIXL_ERR_BACKEND: nixl_status_t = nixl_status_t.NIXL_ERR_BACKEND

NIXL_ERR_NOT_FOUND: nixl_status_t = nixl_status_t.NIXL_ERR_NOT_FOUND

NIXL_ERR_MISMATCH: nixl_status_t = nixl_status_t.NIXL_ERR_MISMATCH

NIXL_ERR_NOT_ALLOWED: nixl_status_t = nixl_status_t.NIXL_ERR_NOT_ALLOWED

NIXL_ERR_REPOST_ACTIVE: nixl_status_t = nixl_status_t.NIXL_ERR_REPOST_ACTIVE

NIXL_ERR_UNKNOWN: nixl_status_t = nixl_status_t.NIXL_ERR_UNKNOWN

NIXL_ERR_NOT_SUPPORTED: nixl_status_t = nixl_status_t.NIXL_ERR_NOT_SUPPORTED

NIXL_ERR_REMOTE_DISCONNECT: nixl_status_t = nixl_status_t.NIXL_ERR_REMOTE_DISCONNECT

NIXL_ERR_CANCELED: nixl_status_t = nixl_status_t.NIXL_ERR_CANCELED

NIXL_ERR_NO_TELEMETRY: nixl_status_t = nixl_status_t.NIXL_ERR_NO_TELEMETRY

class nixl_cost_t(enum.IntEnum):
    NIXL_COST_ANALYTICAL_BACKEND = 0

NIXL_COST_ANALYTICAL_BACKEND: nixl_cost_t = nixl_cost_t.NIXL_COST_ANALYTICAL_BACKEND

class nixl_thread_sync_t(enum.IntEnum):
    NIXL_THREAD_SYNC_NONE = 0

    NIXL_THREAD_SYNC_STRICT = 1

    NIXL_THREAD_SYNC_RW = 2

NIXL_THREAD_SYNC_NONE: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_NONE

NIXL_THREAD_SYNC_STRICT: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT

NIXL_THREAD_SYNC_RW: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_RW

NIXL_THREAD_SYNC_DEFAULT: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_NONE

NIXL_INIT_AGENT: str = ""

DEFAULT_COMM_PORT: int = 8888

HAVE_UCX_GPU_DEVICE_API: bool = False

class nixlAgentConfig:
    """As NIXL's; all that is not about threads or telemetry changes nothing."""

    def __init__(self, useProgThread: bool = False, useListenThread: bool = False, port: int = 8888, syncMode: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_NONE, numWorkers: int = 1, pthrDelay: int = 0, lthrDelay: int = 100000, captureTelemetry: bool = False) -> None: ...

    @property
    def useProgThread(self) -> bool: ...

    @useProgThread.setter
    def useProgThread(self, arg: bool, /) -> None: ...

    @property
    def useListenThread(self) -> bool: ...

    @useListenThread.setter
    def useListenThread(self, arg: bool, /) -> None: ...

    @property
    def listenPort(self) -> int: ...

    @listenPort.setter
    def listenPort(self, arg: int, /) -> None: ...

    @property
    def syncMode(self) -> nixl_thread_sync_t: ...

    @syncMode.setter
    def syncMode(self, arg: nixl_thread_sync_t, /) -> None: ...

    @property
    def captureTelemetry(self) -> bool: ...

    @captureTelemetry.setter
    def captureTelemetry(self, arg: bool, /) -> None: ...

    @property
    def pthrDelay(self) -> int: ...

    @pthrDelay.setter
    def pthrDelay(self, arg: int, /) -> None: ...

    @property
    def lthrDelay(self) -> int: ...

    @lthrDelay.setter
    def lthrDelay(self, arg: int, /) -> None: ...

    @property
    def etcdWatchTimeout(self) -> datetime.timedelta: ...

    @etcdWatchTimeout.setter
    def etcdWatchTimeout(self, arg: datetime.timedelta, /) -> None: ...

class nixlNotPostedError(Exception):
    details: str

class nixlInvalidParamError(Exception):
    details: str

class nixlBackendError(Exception):
    details: str

class nixlNotFoundError(Exception):
    details: str

class nixlMismatchError(Exception):
    details: str

class nixlNotAllowedError(Exception):
    details: str

class nixlRepostActiveError(Exception):
    details: str

class nixlUnknownError(Exception):
    details: str

class nixlNotSupportedError(Exception):
    details: str

class nixlRemoteDisconnectError(Exception):
    details: str

class nixlCancelledError(Exception):
    details: str

class nixlNoTelemetryError(Exception):
    details: str

class nixlXferDList:
    """Memory by (address, length, device), for transfers."""

    def __init__(self, type: nixl_mem_t, descs: Any = None) -> None: ...

    def getType(self) -> nixl_mem_t: ...

    def descCount(self) -> int: ...

    def isEmpty(self) -> bool: ...

    def __len__(self) -> int: ...

    def __bool__(self) -> bool:
        """As NIXL's: a list is true, also when it is empty."""

    def __eq__(self, arg: object, /) -> bool: ...

    def __getitem__(self, arg: int, /) -> tuple[Any, ...]: ...

    def __setitem__(self, arg0: int, arg1: object, /) -> None: ...

    def addDesc(self, desc: tuple[Any, ...]) -> None: ...

    def append(self, desc: tuple[Any, ...]) -> None: ...

    def index(self, desc: tuple[Any, ...]) -> int: ...

    def remDesc(self, index: int) -> None: ...

    def clear(self) -> None: ...

    def print(self) -> None: ...

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, arg: bytes, /) -> None: ...

    __hash__: None = None

class nixlRegDList:
    """
    Memory by (address, length, device, meta information), for registration.
    """

    def __init__(self, type: nixl_mem_t, descs: Any = None) -> None: ...

    def getType(self) -> nixl_mem_t: ...

    def descCount(self) -> int: ...

    def isEmpty(self) -> bool: ...

    def __len__(self) -> int: ...

    def __bool__(self) -> bool:
        """As NIXL's: a list is true, also when it is empty."""

    def __eq__(self, arg: object, /) -> bool: ...

    def __getitem__(self, arg: int, /) -> tuple[Any, ...]: ...

    def __setitem__(self, arg0: int, arg1: object, /) -> None: ...

    def addDesc(self, desc: tuple[Any, ...]) -> None: ...

    def append(self, desc: tuple[Any, ...]) -> None: ...

    def index(self, desc: tuple[Any, ...]) -> int: ...

    def remDesc(self, index: int) -> None: ...

    def clear(self) -> None: ...

    def print(self) -> None: ...

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, arg: bytes, /) -> None: ...

    __hash__: None = None

    def trim(self) -> nixlXferDList: ...

class nixlRemoteDList:
    """Descriptors of several agents, for memory views."""

    def __init__(self, type: nixl_mem_t, descs: Any = None) -> None: ...

    def getType(self) -> nixl_mem_t: ...

    def descCount(self) -> int: ...

    def isEmpty(self) -> bool: ...

    def __len__(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __getitem__(self, arg: int, /) -> tuple[Any, ...]: ...

    def __setitem__(self, arg0: int, arg1: object, /) -> None: ...

    def addDesc(self, desc: tuple[Any, ...]) -> None: ...

    def append(self, desc: tuple[Any, ...]) -> None: ...

    def remDesc(self, index: int) -> None: ...

    def clear(self) -> None: ...

    def print(self) -> None: ...

    __hash__: None = None

class nixlXferTelemetry:
    def __init__(self) -> None: ...

    @property
    def startTime(self) -> int: ...

    @startTime.setter
    def startTime(self, arg: int, /) -> None: ...

    @property
    def postDuration(self) -> int: ...

    @postDuration.setter
    def postDuration(self, arg: int, /) -> None: ...

    @property
    def xferDuration(self) -> int: ...

    @xferDuration.setter
    def xferDuration(self, arg: int, /) -> None: ...

    @property
    def totalBytes(self) -> int: ...

    @totalBytes.setter
    def totalBytes(self, arg: int, /) -> None: ...

    @property
    def descCount(self) -> int: ...

    @descCount.setter
    def descCount(self, arg: int, /) -> None: ...

class nixlAgent:
    """An agent, as NIXL's; nixl._api wraps it."""

    def __init__(self, name: object, config: nixlAgentConfig) -> None: ...

    def getAvailPlugins(self) -> list[str]: ...

    def getPluginParams(self, type: object) -> tuple[Any, ...]:
        """(parameters, memory types)"""

    def getBackendParams(self, backend: int) -> tuple[Any, ...]:
        """(parameters, memory types)"""

    def createBackend(self, type: object, params: dict) -> int: ...

    def registerMem(self, descs: nixlRegDList, backends: Sequence[int] | None = None) -> nixl_status_t: ...

    def deregisterMem(self, descs: nixlRegDList, backends: Sequence[int] | None = None) -> nixl_status_t: ...

    def queryMem(self, descs: nixlRegDList, backend: int) -> list[str]: ...

    def makeConnection(self, remote_agent: Text, backends: Sequence[int] | None = None) -> nixl_status_t: ...

    @overload
    def prepXferDlist(self, agent_name: Text, descs: nixlXferDList, backend: Sequence[int] | None = None) -> int: ...

    @overload
    def prepXferDlist(self, agent_name: Text, mem_type: nixl_mem_t, descs: Any, backend: Sequence[int] | None = None) -> int: ...

    @overload
    def prepXferDlist(self, descs: nixlXferDList, backend: Sequence[int] | None = None) -> int: ...

    def makeXferReq(self, operation: nixl_xfer_op_t, local_side: int, local_indices: Indices, remote_side: int, remote_indices: Indices, notif_msg: Text = "", backend: Sequence[int] | None = None, skip_desc_merg: bool = False) -> int: ...

    def createXferReq(self, operation: nixl_xfer_op_t, local_descs: nixlXferDList, remote_descs: nixlXferDList, remote_agent: Text, notif_msg: Text = "", backend: Sequence[int] | None = None) -> int: ...

    def postXferReq(self, reqh: int, notif_msg: Text = "") -> nixl_status_t: ...

    def getXferStatus(self, reqh: int) -> nixl_status_t: ...

    def _isXferBusy(self, reqh: int) -> bool:
        """getXferStatus as a yes or no, which is what pollers want."""

    def getXferTelemetry(self, reqh: int) -> nixlXferTelemetry: ...

    def estimateXferCost(self, req_handle: int) -> tuple[Any, ...]:
        """(microseconds, margin, method)"""

    def queryXferBackend(self, reqh: int) -> int: ...

    def releaseXferReq(self, reqh: int) -> nixl_status_t: ...

    def releasedDlistH(self, handle: int) -> nixl_status_t: ...

    def getNotifs(self, notif_map: dict[str, list[bytes]], backends: Sequence[int] | None = None) -> dict[str, list[bytes]]: ...

    def genNotif(self, remote_agent: Text, msg: Text, backends: Sequence[int] | None = None) -> nixl_status_t: ...

    def prepMemView(self, dlist: nixlXferDList | nixlRemoteDList, backends: Sequence[int] | None = None) -> int: ...

    def releaseMemView(self, *args, **kwargs) -> None: ...

    def getLocalMD(self) -> bytes: ...

    def getLocalPartialMD(self, descs: nixlRegDList, inc_conn_info: bool = False, backends: Sequence[int] | None = None) -> bytes: ...

    def loadRemoteMD(self, metadata: Text) -> bytes:
        """The name of the agent that made it, as bytes."""

    def invalidateRemoteMD(self, remote_agent: Text) -> nixl_status_t: ...

    def checkRemoteMD(self, remote_agent: Text, descs: nixlXferDList) -> nixl_status_t: ...

    def sendLocalMD(self, ip_addr: str = "", port: int = 0) -> None: ...

    def sendLocalPartialMD(self, descs: nixlRegDList, inc_conn_info: bool = False, backends: Sequence[int] | None = None, ip_addr: str = "", port: int = 0, label: str = "") -> None: ...

    def fetchRemoteMD(self, remote_agent: Text, ip_addr: str = "", port: int = 0, label: str = "") -> None: ...

    def invalidateLocalMD(self, ip_addr: str = "", port: int = 0) -> None: ...

def _wait_at_exit() -> None: ...
