#pragma once

// The C ABI of out-of-tree backends, number 0: what src/backend/backend.h is for those within. A plug-in is a shared
// object libhawser_backend_<name>.so that exports hawser_plugin_v0; it may come from any compiler and needs nothing of
// Hawser but this header, which is C11 and C++. docs/writing-a-backend.md leads through it; examples/plugin is one.
//
// ABI 0 matches exactly: a plug-in is built against the plugin.h of the Hawser that loads it. Numbers of codes, kinds
// and the like are those of the C++ enums.
//
// Rules of the border
//   R1. No exception, no C++ type and no foreign free crosses. Each side frees what it made, by its own functions.
//   R2. What is passed in is valid during the call, unless a longer time is stated. Text that is passed out goes into
//       a sink during the call, or into a buffer of the caller.
//   R3. A call that can fail returns a code and, when that is not HAWSER_PLUGIN_OK, fills the caller's `reason` (zeroed
//       before) and leaves the other outputs alone.
//   R4. Handles are pointers of their maker and never null. The host never looks into them.
//   R5. A plug-in stays loaded until the process ends. It keeps no global state that needs an orderly end.
//   R6. The host checks counts, handles and numbers. Where a plug-in breaks the contract, its paths get no more calls
//       but release_path; its transfers end with kFailed, naming the plug-in.
//
// Threads. The calls of one port, its paths and their bindings come one at a time, in an order that the lane's lock
// makes visible; they never block. Calls of a backend may come from any thread, several at once. Calls of the host
// table may be made from any thread, also for another agent of this process, as long as that agent's backend is open.

#include <stddef.h>
#include <stdint.h>

#define HAWSER_PLUGIN_ABI 0u
#define HAWSER_PLUGIN_SYMBOL "hawser_plugin_v0"
#define HAWSER_PLUGIN_MESSAGE_MAX (65u * 1024u) /* Bytes of one message, head and body together. */
#define HAWSER_PLUGIN_ADDRESS_MAX 4096u         /* Bytes of an address, and of a region's extra. */

#if defined(__GNUC__)
#define HAWSER_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define HAWSER_PLUGIN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hawser_plugin_agent hawser_plugin_agent;     /* The host's: an agent that opened this backend. */
typedef struct hawser_plugin_backend hawser_plugin_backend; /* The plug-in's, like all that follow. */
typedef struct hawser_plugin_port hawser_plugin_port;
typedef struct hawser_plugin_path hawser_plugin_path;
typedef struct hawser_plugin_binding hawser_plugin_binding;

/* clang-format off */
enum { /* Codes: see <hawser/status.h> for what each asks of the caller. */
  HAWSER_PLUGIN_OK = 0, HAWSER_PLUGIN_INVALID = 1, HAWSER_PLUGIN_NOT_FOUND = 2, HAWSER_PLUGIN_UNSUPPORTED = 3,
  HAWSER_PLUGIN_BUSY = 4, HAWSER_PLUGIN_DISCONNECTED = 5, HAWSER_PLUGIN_TIMED_OUT = 6, HAWSER_PLUGIN_CANCELLED = 7,
  HAWSER_PLUGIN_CORRUPT = 8, HAWSER_PLUGIN_DENIED = 9, HAWSER_PLUGIN_FAILED = 10
};
enum { HAWSER_PLUGIN_SCOPE_REQUEST = 0, HAWSER_PLUGIN_SCOPE_PATH = 1, HAWSER_PLUGIN_SCOPE_PEER = 2,
       HAWSER_PLUGIN_SCOPE_AGENT = 3 };
enum { HAWSER_PLUGIN_BUFFER_UNKNOWN = 0, HAWSER_PLUGIN_BUFFER_UNTOUCHED = 1, HAWSER_PLUGIN_BUFFER_PARTLY_WRITTEN = 2,
       HAWSER_PLUGIN_BUFFER_COMPLETE = 3 };
enum { HAWSER_PLUGIN_RIGHT_NONE = 0, HAWSER_PLUGIN_RIGHT_READ = 1, HAWSER_PLUGIN_RIGHT_WRITE = 2 }; /* Bits. */
enum { HAWSER_PLUGIN_WRITE = 1, HAWSER_PLUGIN_READ = 2 };
enum { HAWSER_PLUGIN_CRITICAL = 0, HAWSER_PLUGIN_REALTIME = 1, HAWSER_PLUGIN_BULK = 2 };
enum { HAWSER_PLUGIN_CONNECTING = 1, HAWSER_PLUGIN_UP = 2, HAWSER_PLUGIN_DOWN = 3 };
enum { HAWSER_PLUGIN_LOG_TRACE = 0, HAWSER_PLUGIN_LOG_DEBUG = 1, HAWSER_PLUGIN_LOG_INFO = 2,
       HAWSER_PLUGIN_LOG_WARN = 3, HAWSER_PLUGIN_LOG_ERROR = 4 };
enum { /* Traits.flags */
  HAWSER_PLUGIN_SAME_HOST_ONLY = 1, HAWSER_PLUGIN_SELF_ONLY = 2,
  HAWSER_PLUGIN_DIRECT = 4,            /* The initiator copies by itself: what is done is visible at the target. */
  HAWSER_PLUGIN_CARRIES_ARRIVALS = 8,  /* Covered chunks yield an arrival at the target. */
  HAWSER_PLUGIN_LOSSLESS = 16 /* A message is lost only with the peer. Agents acknowledge messages all the same. */
};
enum { HAWSER_PLUGIN_DEVICE_HOST = 1 };       /* Other kinds: hawser::DeviceKind. */
enum {
  HAWSER_PLUGIN_SECURITY_DEFAULT = 0,
  HAWSER_PLUGIN_SECURITY_NONE = 1,
  HAWSER_PLUGIN_SECURITY_AUTHENTICATE = 2,
  HAWSER_PLUGIN_SECURITY_ENCRYPT = 3
};

typedef struct { const char* data; size_t size; } hawser_plugin_text; /* Not ended by a zero; may hold any bytes. */
typedef struct { uint64_t hi, lo; } hawser_plugin_id;                 /* All zero means none. */
/* clang-format on */

/* Why something did not end well. Both texts end with a zero; advice may be empty. */
typedef struct {
  uint32_t scope, buffer;
  char message[384]; /* Who, what, which value. */
  char advice[128];  /* One line: how to mend it. */
} hawser_plugin_reason;

/* Takes text from the plug-in while the call lasts. One `put` is a part of a text or one item of a list, as stated. */
typedef struct {
  void* to;
  void (*put)(void* to, const char* data, size_t size);
} hawser_plugin_sink;

typedef struct {
  hawser_plugin_text name; /* 1 to 255 bytes without control characters. */
  hawser_plugin_id incarnation;
  uint8_t public_key[32];
  uint32_t driven;
  uint16_t version_min, version_max;
} hawser_plugin_identity;

/* The host fills in its defaults before it asks; set what is different. Estimates are for the planner. */
typedef struct {
  uint32_t flags;
  uint32_t chunk_pieces_max;
  uint64_t chunk_bytes_max;
  uint64_t inline_bytes_max; /* Transfers up to this size are worth doing inside submit. */
  int64_t quiesce_max_ns;    /* From cancel to quiet, at most. */
  double latency_ns, bytes_per_ns, piece_ns;
} hawser_plugin_traits;

/* Memory of this agent that peers may reach. `memory_fd` is the memory file that begins with it, or -1. */
typedef struct {
  uint32_t index, generation;
  hawser_plugin_id key;
  void* base;
  uint64_t size;
  uint32_t rights;
  uint32_t device_kind, device_ordinal;
  int32_t memory_fd;
  hawser_plugin_text name;
} hawser_plugin_region;

/* A region of a peer, as its card tells it. `extra` is what add_region gave there. */
typedef struct {
  uint32_t index, generation;
  hawser_plugin_id key;
  uint64_t size;
  uint32_t rights;
  uint32_t device_kind, device_ordinal;
  hawser_plugin_text extra;
} hawser_plugin_remote_region;

typedef struct {
  void* local;           /* For a write it is only read. */
  uint64_t remote, size; /* Offset in the remote region; bytes. */
} hawser_plugin_piece;

/* A chunk of work for a path. The pieces and the binding stay valid until the chunk's end. */
typedef struct {
  uint32_t op, priority, covered;
  uint32_t index;    /* Within its transfer; the same when it is sent again. */
  uint64_t transfer; /* Unique within the initiator's incarnation. */
  uint64_t cookie;   /* Comes back in the event of its end, once. */
  hawser_plugin_binding* target;
  const hawser_plugin_piece* pieces;
  size_t piece_count;
  uint64_t bytes; /* Sum of the pieces' sizes. */
} hawser_plugin_chunk;

/* Of the chunks given, the first `taken` are accepted; the first `done` of those have ended well and get no event. */
typedef struct {
  uint32_t taken, done;
} hawser_plugin_submitted;

enum { /* Kinds of events, and the fields that each sets beside `path`. The host zeroes the others. */
       HAWSER_PLUGIN_CHUNK_DONE = 1, /* cookie, code, reason */
       HAWSER_PLUGIN_MESSAGE = 2,    /* bytes */
       HAWSER_PLUGIN_ARRIVAL = 3,    /* transfer, chunk: a covered chunk of the peer is visible here */
       HAWSER_PLUGIN_PATH_UP = 4,  /* peer, session, inbound. An inbound path is new to the host, which releases it. */
       HAWSER_PLUGIN_PATH_DOWN = 5 /* code, reason. All its chunks have ended before, by events of their own. */
};
typedef struct {
  uint32_t kind, code, inbound, chunk;
  hawser_plugin_path* path;
  uint64_t cookie, transfer;
  hawser_plugin_id session; /* Random; names this path at both ends. */
  /* These three stay valid until the port's next turn or poll; `reason` may be null. */
  hawser_plugin_text bytes;
  const hawser_plugin_identity* peer;
  const hawser_plugin_reason* reason;
} hawser_plugin_event;

typedef struct {
  hawser_plugin_text peer;      /* Name, for errors; checked against who answers when not empty. */
  hawser_plugin_id incarnation; /* Expected; none: whoever answers. */
  hawser_plugin_text address;   /* The peer's `address`. */
  hawser_plugin_id supersedes;  /* Nothing of that session lands at the peer any more once this path is up. */
  int64_t deadline_ns;          /* By then the path is up or down. */
} hawser_plugin_path_target;

typedef struct {
  uint64_t copy_bytes, kernel_copy_bytes;
} hawser_plugin_budget; /* Of one turn. */
typedef struct {
  uint64_t bytes_out, bytes_in, chunks, messages_out, messages_in, epochs;
} hawser_plugin_counters;
typedef struct {
  hawser_plugin_text key, value;
} hawser_plugin_param; /* Keys in lower case. */

/* The arguments of open. `identity` stays valid while the backend is open. */
typedef struct {
  const hawser_plugin_identity* identity;
  const hawser_plugin_param* params;
  size_t param_count;
  uint64_t seed; /* For a generator of its own, so that runs can be repeated. Not for keys. */
  int64_t heartbeat_ns;
  uint32_t security;
} hawser_plugin_context;

/* The host's functions for a plug-in. Valid until the process ends. */
typedef struct {
  size_t size; /* Of this table. */
  uint32_t abi;
  const char* version; /* Of the library, for people. */
  /* For an access by a peer: checks key and rights; DENIED tells no more than that. The memory is there while the
     region is open, and until region_quiet said yes after that. */
  uint32_t (*region_find)(hawser_plugin_agent* agent, uint32_t index, uint32_t generation, hawser_plugin_id key,
                          uint32_t rights, hawser_plugin_region* out, hawser_plugin_reason* reason);
  /* To be asked again at the start of each turn that touches the memory. */
  int (*region_is_open)(hawser_plugin_agent* agent, uint32_t index, uint32_t generation);
  void (*random)(void* out, size_t size);        /* From the system's generator: for keys and tokens. */
  int64_t (*now_ns)(hawser_plugin_agent* agent); /* The agent's clock; turns get `now` instead. */
  int (*log_enabled)(hawser_plugin_agent* agent, uint32_t level);
  void (*log)(hawser_plugin_agent* agent, uint32_t level, const char* data, size_t size); /* Not once per transfer. */
} hawser_plugin_host;

typedef struct {
  size_t size; /* Of this table. */
  /* Afterwards `agent` is good for calls to the host until `close` returns. */
  uint32_t (*open)(hawser_plugin_agent* agent, const hawser_plugin_context* context, hawser_plugin_backend** out,
                   hawser_plugin_reason* reason);
  void (*close)(hawser_plugin_backend* backend);                             /* Its port is closed before. */
  void (*traits)(hawser_plugin_backend* backend, hawser_plugin_traits* out); /* Each call gives equal traits. */
  /* For the card: what a peer's backend of this name needs to open a path. Put in parts. */
  void (*address)(hawser_plugin_backend* backend, const hawser_plugin_sink* out);
  void (*readable_address)(hawser_plugin_backend* backend, const hawser_plugin_sink* out);
  /* OK where a path to a peer with this address can work at all, else UNSUPPORTED and why not. */
  uint32_t (*reachable)(hawser_plugin_backend* backend, hawser_plugin_text address, hawser_plugin_reason* reason);
  /* For each region, also for those older than the backend. `extra` is for its card entry, put in parts. */
  uint32_t (*add_region)(hawser_plugin_backend* backend, const hawser_plugin_region* region,
                         const hawser_plugin_sink* extra, hawser_plugin_reason* reason);
  void (*remove_region)(hawser_plugin_backend* backend, const hawser_plugin_region* region);
  uint32_t (*open_port)(hawser_plugin_backend* backend, hawser_plugin_port** out, hawser_plugin_reason* reason);
  /* In force, defaults included: key, value, key, value, each one put. */
  void (*params)(hawser_plugin_backend* backend, const hawser_plugin_sink* out);
  void (*warnings)(hawser_plugin_backend* backend, const hawser_plugin_sink* out); /* One put each: unknown keys. */
  /* In the child after fork: closes descriptors without telling peers. System calls only; no other call follows. */
  void (*disown_after_fork)(hawser_plugin_backend* backend);
} hawser_plugin_backend_api;

typedef struct {
  size_t size;                             /* Of this table. */
  void (*close)(hawser_plugin_port* port); /* Frees it and its paths; nothing touches any memory afterwards. */
  /* Starts connecting: one PATH_UP or PATH_DOWN will follow. The host ends it by release_path. */
  uint32_t (*open_path)(hawser_plugin_port* port, const hawser_plugin_path_target* target, int64_t now_ns,
                        hawser_plugin_path** out, hawser_plugin_reason* reason);
  /* The handle dies. Afterwards the path touches no local memory and yields no event, whatever had not ended. */
  void (*release_path)(hawser_plugin_port* port, hawser_plugin_path* path);
  /* Moves bytes within the budget. Returns how much was done; 0: nothing to do now. */
  size_t (*turn)(hawser_plugin_port* port, int64_t now_ns, const hawser_plugin_budget* budget);
  size_t (*poll)(hawser_plugin_port* port, hawser_plugin_event* out, size_t capacity); /* Returns how many. */
  int64_t (*next_deadline)(hawser_plugin_port* port); /* When `turn` must run anyway; INT64_MAX: never. */
  int (*wait_fd)(hawser_plugin_port* port); /* Readable when there is work, once prepare_sleep said yes; -1: none. */
  int (*prepare_sleep)(hawser_plugin_port* port); /* Arms doorbells. 0: there is work, do not sleep. */
  /* Nothing of this port touches the closed region any more; else 0, and who holds it into `holder`. */
  int (*region_quiet)(hawser_plugin_port* port, uint32_t index, uint32_t generation, const hawser_plugin_sink* holder);
  void (*begin_close)(hawser_plugin_port* port, int64_t now_ns); /* Stops listening, tells peers. */
  int (*idle)(hawser_plugin_port* port);                         /* After begin_close: all is told. */
} hawser_plugin_port_api;

typedef struct {
  size_t size; /* Of this table. */
  uint32_t (*state)(hawser_plugin_path* path);
  /* Called once per (index, generation) until `unbind`, after which the handle is dead. */
  uint32_t (*bind)(hawser_plugin_path* path, const hawser_plugin_remote_region* region, hawser_plugin_binding** out,
                   hawser_plugin_reason* reason);
  void (*unbind)(hawser_plugin_path* path, uint32_t index, uint32_t generation);
  /* Taking fewer than given is back-pressure. After a chunk's end its local memory is not touched any more. */
  hawser_plugin_submitted (*submit)(hawser_plugin_path* path, const hawser_plugin_chunk* chunks, size_t count,
                                    int64_t now_ns);
  /* Sends head and body as one message, in order. 0: no room now. */
  int (*send)(hawser_plugin_path* path, uint32_t priority, hawser_plugin_text head, hawser_plugin_text body);
  void (*cancel)(hawser_plugin_path* path, uint64_t transfer); /* Ends its chunks soon; events tell when. */
  void (*counters)(hawser_plugin_path* path, hawser_plugin_counters* out);
  void (*describe)(hawser_plugin_path* path, const hawser_plugin_sink* out); /* One line for people, in parts. */
} hawser_plugin_path_api;

/* A plug-in's description. All that it points to stays valid until the process ends. */
typedef struct {
  size_t size; /* In: the room there is. Out: of this table. */
  uint32_t abi;
  int32_t default_rank;    /* Opened when no backends are named; higher goes first (shm 90, tcp 10); 0: only by name. */
  hawser_plugin_text name; /* That of its file: lower case letters, digits and underscores. */
  const hawser_plugin_backend_api* backend;
  const hawser_plugin_port_api* port;
  const hawser_plugin_path_api* path;
} hawser_plugin_table;

/* The only symbol. Fills `out` when host->abi is HAWSER_PLUGIN_ABI and out->size has room, else returns UNSUPPORTED.
   May be called several times; does nothing that can fail or that needs undoing: that is for `open`. */
HAWSER_PLUGIN_EXPORT uint32_t hawser_plugin_v0(const hawser_plugin_host* host, hawser_plugin_table* out);

#ifdef __cplusplus
}
#endif
