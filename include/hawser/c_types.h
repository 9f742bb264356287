#pragma once

// The numbers, handles and structs of the C ABI; hawser/c.h includes it and has the functions and the rules.
//
// Thread rule: values.

#include <stddef.h>
#include <stdint.h>

#define HAWSER_C_ABI 15u /* Grows when something is added; nothing is taken away. */
#define HAWSER_FOREVER INT64_MAX
#define HAWSER_MESSAGE_MAX 65536u
#define HAWSER_CHANNEL_MIN 16u /* Of messages. */
#define HAWSER_C_NAME_MAX 256  /* Bytes of a name, its final zero included. */

#if defined(__GNUC__)
#define HAWSER_C_API __attribute__((visibility("default")))
#else
#define HAWSER_C_API
#endif

#ifdef __cplusplus
#define HAWSER_INIT(type)                           \
  ([] {                                             \
    type made{};                                    \
    made.size = static_cast<uint32_t>(sizeof made); \
    return made;                                    \
  }())
extern "C" {
#else
#define HAWSER_INIT(type) \
  { .size = (uint32_t)sizeof(type) }
#endif

/* clang-format off */
enum { HAWSER_OK = 0, HAWSER_INVALID = 1, HAWSER_NOT_FOUND = 2, HAWSER_UNSUPPORTED = 3, HAWSER_BUSY = 4,
       HAWSER_DISCONNECTED = 5, HAWSER_TIMED_OUT = 6, HAWSER_CANCELLED = 7, HAWSER_CORRUPT = 8, HAWSER_DENIED = 9,
       HAWSER_FAILED = 10 };
enum { HAWSER_SCOPE_REQUEST = 0, HAWSER_SCOPE_PATH = 1, HAWSER_SCOPE_PEER = 2, HAWSER_SCOPE_AGENT = 3 };
enum { HAWSER_STATE_UNKNOWN = 0, HAWSER_STATE_UNTOUCHED = 1, HAWSER_STATE_PARTLY_WRITTEN = 2,
       HAWSER_STATE_COMPLETE = 3 };
enum { HAWSER_DEVICE_HOST = 1, HAWSER_DEVICE_CUDA = 2, HAWSER_DEVICE_FILE = 3, HAWSER_DEVICE_OBJECT = 4,
       HAWSER_DEVICE_BLOCK = 5 };
enum { HAWSER_RIGHTS_DEFAULT = 0, HAWSER_RIGHTS_READ = 1, HAWSER_RIGHTS_WRITE = 2, HAWSER_RIGHTS_READ_WRITE = 3,
       HAWSER_RIGHTS_NONE = 4 };
enum { HAWSER_HUGE_PAGES_AUTO = 0, HAWSER_HUGE_PAGES_OFF = 1, HAWSER_HUGE_PAGES_REQUIRE = 2 };
enum { HAWSER_DIRECT_AUTO = 0, HAWSER_DIRECT_OFF = 1, HAWSER_DIRECT_REQUIRE = 2 };
enum { HAWSER_FILE_CREATE = 1,           /* Make the file of `path` if there is none. */
       HAWSER_FILE_DESCRIPTOR = 2        /* `descriptor` names the file; `path` is null. */ };
enum { HAWSER_WRITE = 1, HAWSER_READ = 2 };
enum { HAWSER_PRIORITY_DEFAULT = 0, HAWSER_PRIORITY_CRITICAL = 1, HAWSER_PRIORITY_REALTIME = 2,
       HAWSER_PRIORITY_BULK = 3 };
enum { HAWSER_COMPLETION_TRANSFER = 1, HAWSER_COMPLETION_NOTIFICATION = 2, HAWSER_COMPLETION_MESSAGE = 3,
       HAWSER_COMPLETION_PEER = 4, HAWSER_COMPLETION_ROOM = 5 };
enum { HAWSER_PEER_KNOWN = 1, HAWSER_PEER_UP = 2, HAWSER_PEER_SUSPECT = 3, HAWSER_PEER_DOWN = 4 };
enum {
  HAWSER_EVENT_UP = 1,
  HAWSER_EVENT_SUSPECT = 2,
  HAWSER_EVENT_DOWN = 3,
  HAWSER_EVENT_CARD_CHANGED = 4,
  HAWSER_EVENT_DISPLACED = 5 /* Since HAWSER_C_ABI 5. A newer agent of this agent's name has the directory's key. */
};
enum { HAWSER_PUT_CREATE_ONLY = 1,       /* HAWSER_BUSY when the key is there already. */
       HAWSER_PUT_IF_VERSION = 2,        /* HAWSER_BUSY when its version is not `if_version`; 0: it is not there. */
       HAWSER_PUT_TIED = 4               /* The value stands for who put it: see PutOptions::tied in directory.h. */ };
enum { HAWSER_DIRECTORY_ANSWER = 1, HAWSER_DIRECTORY_CHANGED = 2, HAWSER_DIRECTORY_ERASED = 3 };
enum { HAWSER_AGENT_POLLED = 1,          /* No thread: hawser_agent_poll and the waiting calls make progress. */
       HAWSER_AGENT_LOOP = 2,            /* With POLLED: that happens all the time; peers may expect heartbeats. */
       HAWSER_AGENT_NO_ENVIRONMENT = 4   /* HAWSER_ variables are not read. */ };

typedef struct hawser_agent { uint64_t id; } hawser_agent;
typedef struct hawser_region { uint64_t id; } hawser_region;
typedef struct hawser_peer { uint64_t id; } hawser_peer;
typedef struct hawser_table { uint64_t id; } hawser_table;
typedef struct hawser_plan { uint64_t id; } hawser_plan;
typedef struct hawser_transfer { uint64_t id; } hawser_transfer;
typedef struct hawser_queue { uint64_t id; } hawser_queue;
typedef struct hawser_directory { uint64_t id; } hawser_directory;
typedef struct hawser_driver { uint64_t id; } hawser_driver;
typedef struct hawser_atomic { uint64_t id; } hawser_atomic;
typedef struct hawser_segments { uint64_t id; } hawser_segments;
typedef struct hawser_grant { uint64_t id; } hawser_grant;
typedef struct hawser_granted { uint64_t id; } hawser_granted;
/* clang-format on */

/* Structs without `size` never change. */
typedef struct hawser_buffer {
  char* data; /* A zero follows the last byte. */
  size_t size;
} hawser_buffer;

typedef struct hawser_param {
  const char *key, *value;
} hawser_param;

typedef struct hawser_strided_range { /* `count` blocks of `size` bytes, their starts `stride` apart. */
  uint64_t offset, size, stride, count;
} hawser_strided_range;

typedef struct hawser_local_range {
  hawser_region region;
  uint64_t offset, size;
} hawser_local_range;

typedef struct hawser_remote_range {
  uint32_t region; /* Its number in the peer's card: see hawser_peer_region. */
  uint32_t reserved;
  uint64_t offset, size;
} hawser_remote_range;

typedef struct hawser_error {
  uint32_t size;
  int32_t code;
  uint32_t scope, state; /* HAWSER_SCOPE_*; HAWSER_STATE_* of the target's bytes. */
  uint64_t bytes_done;
  int64_t elapsed_ns;
  /* Never null; valid until this thread's next failing call. `text` is all of it, causes included. */
  const char *text, *message, *peer, *device, *advice;
} hawser_error;

/* A run of device memory that an allocator mapped piece by piece: MemorySegment in memory.h. */
typedef struct hawser_segment {
  uint32_t size;
  uint32_t device_kind, device_ordinal; /* 0: HAWSER_DEVICE_CUDA. */
  uint32_t reserved;
  void* base;
  uint64_t bytes;      /* Mapped now, without a gap. The mapping may grow at its end. */
  uint64_t generation; /* Another number once any of it was mapped anew; 0: the allocator cannot tell. */
} hawser_segment;

typedef struct hawser_agent_options {
  uint32_t size;
  uint32_t flags;   /* HAWSER_AGENT_* */
  const char* name; /* 1 to 255 bytes; null: the setting `name`. */
  /* Any option of docs/config.md by name ("backends", "deadline", "directory", "backend.tcp.lanes"), in its text form.
     They win over the environment and the file that HAWSER_CONFIG names. Unknown ones are refused. */
  const hawser_param* settings;
  size_t setting_count;
  int64_t spin_ns;                                         /* How long the agent's thread polls before it sleeps. */
  void (*log)(void* context, int level, const char* line); /* 0 trace to 4 error; null: stderr. From any thread. */
  void* log_context;
  const char* config_file;    /* Null: the one that HAWSER_CONFIG names, or none. */
  hawser_directory directory; /* 0: the one of the settings, if any. */
  hawser_driver driver;       /* 0: a thread of the agent's own. */
  /* Since HAWSER_C_ABI 4. Tells all segments that there are now by hawser_segments_add(into, ...) and returns 0;
     another code leaves those that were told before. Asked when memory of a device is registered that no known segment
     covers, by the thread that registers it (in hawser_agent_add_region or hawser_agent_add_backend). It must not call
     the agent. It and its context stay until the agent is released and no call of it runs. Null: no segments. */
  int (*segments)(void* context, hawser_segments into);
  void* segments_context;
} hawser_agent_options;

typedef struct hawser_driver_options { /* Threads that run several agents. */
  uint32_t size, threads;              /* 0: one. */
  int64_t spin_ns;
} hawser_driver_options;

typedef struct hawser_region_options {
  uint32_t size;
  uint32_t rights;  /* HAWSER_RIGHTS_*; default: read and write. */
  const char* name; /* Null: anonymous. */
  void* base;       /* hawser_agent_allocate: null. */
  uint64_t bytes;
  uint32_t device_kind, device_ordinal; /* 0: host. hawser_agent_allocate: 0. */
  uint32_t huge_pages;                  /* hawser_agent_allocate only. */
  uint32_t reserved;
  uint32_t unlisted, reserved_too; /* 1: the card does not list it (docs/grants.md). Since HAWSER_C_ABI 8. */
} hawser_region_options;

/* What a grant gives: hawser/grant.h. Since HAWSER_C_ABI 8. */
typedef struct hawser_grant_options {
  uint32_t size;
  uint32_t rights;        /* HAWSER_RIGHTS_READ, _WRITE or _READ_WRITE, within the region's. 0: read and write. */
  uint64_t offset, bytes; /* The part of the region. */
  int64_t expiry_ns;      /* On the owner's clock, from now on; positive. HAWSER_FOREVER: until it is revoked. */
  hawser_peer peer;       /* The only one that may use it; 0: whoever has the bytes. */
  uint32_t single_use;    /* 1: for one transfer. */
  uint32_t reserved;
} hawser_grant_options;

typedef struct hawser_region_info {
  uint32_t size, index, rights, device_kind, device_ordinal, huge_pages;
  void* base; /* Null when it is a peer's. */
  uint64_t bytes;
  char name[HAWSER_C_NAME_MAX];
} hawser_region_info;

typedef struct hawser_file_options {
  uint32_t size;
  uint32_t flags;   /* HAWSER_FILE_* */
  const char* name; /* Null: anonymous. */
  const char* path;
  int32_t descriptor; /* Duplicated. */
  uint32_t rights;    /* HAWSER_RIGHTS_*; a path is opened for these, a descriptor must allow them. */
  uint64_t bytes;     /* That may be touched; 0: as far as a file can reach. */
  uint32_t direct;    /* HAWSER_DIRECT_*: past the page cache. */
  uint32_t reserved;
  uint32_t unlisted, reserved_too; /* See hawser_region_options. Since HAWSER_C_ABI 8. */
} hawser_file_options;

typedef struct hawser_file_info {
  uint32_t size, exists; /* Not there: all else is 0. */
  uint64_t bytes;
  uint32_t mode, reserved; /* As in stat: kind and permissions. */
  int64_t mtime_ns;        /* Since 1970. */
} hawser_file_info;

typedef struct hawser_peer_info {
  uint32_t size;
  uint32_t state, is_self, reserved; /* HAWSER_PEER_* */
  uint8_t incarnation[16];
  char name[HAWSER_C_NAME_MAX];
} hawser_peer_info;

typedef struct hawser_plan_info {
  uint32_t size, operation;
  uint64_t bytes, range_count, piece_count;
} hawser_plan_info;

typedef struct hawser_submit_options {
  uint32_t size, priority;
  const void* notify; /* Null: none. Not null and of no bytes: an empty one, which is delivered too. */
  size_t notify_size;
  int64_t deadline_ns; /* 0: the agent's. */
  hawser_queue queue;  /* 0: only the transfer tells. */
  uint64_t cookie;     /* Comes back in the completion. */
  uint64_t label;
  const hawser_remote_range* signal; /* 8 bytes there that `signal_add` is added to once the bytes are visible. */
  uint64_t signal_add;
  const hawser_local_range* after; /* Post only once this word is at least `after_value`. */
  uint64_t after_value;
  const hawser_local_range* done; /* Set this word to `done_value` when the transfer ended well. */
  uint64_t done_value;
  uint32_t durable, reserved;     /* A write into files ends only once its bytes are on the device. */
  hawser_transfer after_transfer; /* 0, or the one that must have ended well before. Since HAWSER_C_ABI 7. */
} hawser_submit_options;

typedef struct hawser_transfer_info {
  uint32_t size;
  int32_t code; /* The outcome once `done`. */
  uint32_t done, scope, state, reserved;
  uint64_t bytes; /* Moved so far. */
} hawser_transfer_info;

typedef struct hawser_atomic_options {
  uint32_t size, reserved;
  int64_t deadline_ns; /* 0: the agent's. */
  hawser_queue queue;  /* Reports it as a transfer of 8 bytes. 0: only the handle tells. */
  uint64_t cookie;     /* Comes back in the completion. */
} hawser_atomic_options;

typedef struct hawser_atomic_info {
  uint32_t size;
  int32_t code; /* The outcome once `done`; of a failure `state` says whether the word may have changed. */
  uint32_t done, scope, state, reserved;
  uint64_t found; /* The word's former value, once it ended well. */
} hawser_atomic_info;

typedef struct hawser_completion {
  uint32_t size;
  uint32_t kind; /* HAWSER_COMPLETION_* */
  int32_t code;  /* Of a transfer or an atomic; waiting for it with timeout 0 has the text. */
  uint32_t reserved;
  uint64_t cookie, bytes; /* For messages the cookie is the channel. */
} hawser_completion;

/* An item that came from a peer. Free it by hawser_news_clear, which makes it ready for the next call. */
typedef struct hawser_news {
  uint32_t size;
  uint32_t present;   /* 0: there was nothing; all else is zero then. */
  hawser_peer peer;   /* A handle of the caller's. */
  hawser_buffer data; /* The notification or message; for a peer event why (may be empty). */
  uint32_t channel;   /* Of a message. */
  uint32_t kind;      /* HAWSER_EVENT_* of a peer event. */
  int32_t code;       /* Of a peer event: its cause. */
  uint32_t reserved;
} hawser_news;

/* How far a peer's agent has taken what was sent on a channel: hawser/peer.h. Since HAWSER_C_ABI 12. */
typedef struct hawser_acknowledged {
  uint32_t channel, reserved;
  uint64_t number; /* All messages up to this number were taken; of later ones nothing is known. 0: none. */
} hawser_acknowledged;

typedef struct hawser_etcd_options { /* Null texts and zeros: the defaults of docs/directory.md. */
  uint32_t size, reserved;
  const char* endpoints; /* Client addresses with commas between them: "10.0.0.1:2379,10.0.0.2:2379". */
  const char *prefix, *user, *password;
  const char *ca, *cert, *key;  /* PEM files. */
  int64_t lease_ns, timeout_ns; /* Of values that are tied, whole seconds; of one request, with all its tries. */
  const char* identity;         /* A folder that gives what is null of ca, cert and key. */
} hawser_etcd_options;

typedef struct hawser_put_options {
  uint32_t size, flags; /* HAWSER_PUT_* */
  uint64_t if_version;
  int64_t lease_ns; /* 0: stays until erased. Putting again renews it. */
} hawser_put_options;

typedef struct hawser_directory_entry { /* A zero follows each text. */
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
  uint64_t version;
} hawser_directory_entry;

/* An answer or a change. Free it by hawser_directory_event_clear, which makes it ready for the next call. */
typedef struct hawser_directory_event {
  uint32_t size;
  uint32_t present; /* 0: there was nothing in time; all else is zero then. */
  uint32_t kind;    /* HAWSER_DIRECTORY_* */
  int32_t code;     /* Of the request: HAWSER_NOT_FOUND when it got no such key, HAWSER_BUSY when it may not put. */
  const hawser_directory_entry* entries;
  size_t count;
  const char* text; /* Why `code` is not 0; empty otherwise. */
} hawser_directory_event;

#ifdef __cplusplus
}
#endif
