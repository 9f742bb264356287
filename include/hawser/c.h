#pragma once

// The C ABI: the whole agent for C11, C++ and every language that can call C. libhawser.so exports these functions.
// docs/c-api.md leads through it; the C++ headers beside this one say what each thing means.
//
// Rules
//   R1. Every function that can fail returns a code (0: good) whose number is hawser::Code's. The full text of this
//       thread's latest failure is in hawser_last_error; outputs are untouched then.
//   R2. Handles are numbers with a generation, not pointers: a null, released or wrong one answers HAWSER_INVALID.
//       Release each handle once. Releasing a transfer cancels it; releasing a region or an agent begins to close it.
//   R3. Structs with `size` begin with HAWSER_INIT(type). Zero means the default. They only grow at their end: a
//       library older than the caller's header refuses what it does not know (HAWSER_INVALID), but not zeros.
//   R4. What is passed in is copied or used during the call only, but for the memory of regions. What a hawser_buffer
//       holds is the caller's, who frees it by hawser_buffer_free.
//   R5. Times are nanoseconds from now. No call blocks beyond its timeout.
//
// Threads: every function may be called from any thread. Unless HAWSER_AGENT_POLLED is set, a thread of the library
// runs the agent. After a fork the child's handles answer HAWSER_INVALID; it opens its own.

#include <stddef.h>
#include <stdint.h>

#define HAWSER_C_ABI 1u /* Grows when something is added; nothing is taken away. */
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
enum { HAWSER_WRITE = 1, HAWSER_READ = 2 };
enum { HAWSER_PRIORITY_DEFAULT = 0, HAWSER_PRIORITY_CRITICAL = 1, HAWSER_PRIORITY_REALTIME = 2,
       HAWSER_PRIORITY_BULK = 3 };
enum { HAWSER_COMPLETION_TRANSFER = 1, HAWSER_COMPLETION_NOTIFICATION = 2, HAWSER_COMPLETION_MESSAGE = 3,
       HAWSER_COMPLETION_PEER = 4, HAWSER_COMPLETION_ROOM = 5 };
enum { HAWSER_PEER_KNOWN = 1, HAWSER_PEER_UP = 2, HAWSER_PEER_SUSPECT = 3, HAWSER_PEER_DOWN = 4 };
enum { HAWSER_EVENT_UP = 1, HAWSER_EVENT_SUSPECT = 2, HAWSER_EVENT_DOWN = 3, HAWSER_EVENT_CARD_CHANGED = 4 };
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
} hawser_agent_options;

typedef struct hawser_region_options {
  uint32_t size;
  uint32_t rights;  /* HAWSER_RIGHTS_*; default: read and write. */
  const char* name; /* Null: anonymous. */
  void* base;       /* hawser_agent_allocate: null. */
  uint64_t bytes;
  uint32_t device_kind, device_ordinal; /* 0: host. hawser_agent_allocate: 0. */
  uint32_t huge_pages;                  /* hawser_agent_allocate only. */
  uint32_t reserved;
} hawser_region_options;

typedef struct hawser_region_info {
  uint32_t size, index, rights, device_kind, device_ordinal, huge_pages;
  void* base; /* Null when it is a peer's. */
  uint64_t bytes;
  char name[HAWSER_C_NAME_MAX];
} hawser_region_info;

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
} hawser_submit_options;

typedef struct hawser_transfer_info {
  uint32_t size;
  int32_t code; /* The outcome once `done`. */
  uint32_t done, scope, state, reserved;
  uint64_t bytes; /* Moved so far. */
} hawser_transfer_info;

typedef struct hawser_completion {
  uint32_t size;
  uint32_t kind; /* HAWSER_COMPLETION_* */
  int32_t code;  /* Of a transfer; hawser_transfer_wait(transfer, 0) has the text. */
  uint32_t reserved;
  uint64_t cookie, bytes; /* For messages the cookie is the channel. */
} hawser_completion;

/* What came from a peer. Free it by hawser_news_clear, which makes it ready for the next call. */
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

/* General. */
HAWSER_C_API const char* hawser_version(void);
HAWSER_C_API uint32_t hawser_c_abi(void);            /* HAWSER_C_ABI of the library. */
HAWSER_C_API const char* hawser_code_name(int code); /* "disconnected"; of an unknown number "unknown". */
/* Fills `out`, unless null, and returns the code of this thread's latest failure; 0: none so far. */
HAWSER_C_API int hawser_last_error(hawser_error* out);
HAWSER_C_API void hawser_buffer_free(hawser_buffer* buffer); /* Null and empty ones are fine; it is empty afterwards. */
HAWSER_C_API void hawser_news_clear(hawser_news* news);

/* Agents. `options` may be null if the environment gives a name. */
HAWSER_C_API int hawser_agent_open(const hawser_agent_options* options, hawser_agent* out);
/* Ends all transfers, tells peers, closes regions. Only 0 means that nothing touches any registered memory any more. */
HAWSER_C_API int hawser_agent_close(hawser_agent agent, int64_t timeout_ns);
HAWSER_C_API int hawser_agent_release(hawser_agent agent); /* Closes, if that was not done, with a short timeout. */
HAWSER_C_API int hawser_agent_self(hawser_agent agent, hawser_peer* out);
HAWSER_C_API int hawser_agent_add_backend(hawser_agent agent, const char* name, const hawser_param* params, size_t n);
HAWSER_C_API int hawser_agent_require_backend(hawser_agent agent, const char* name); /* 0, or why it is not open. */
HAWSER_C_API int hawser_agent_backends(hawser_agent agent, hawser_buffer* json);
HAWSER_C_API int hawser_agent_counters(hawser_agent agent, hawser_buffer* json);
HAWSER_C_API int hawser_agent_explain(hawser_agent agent, hawser_plan plan, hawser_buffer* text);

/* Progress and news. Taking never waits and is good when nothing is there. */
HAWSER_C_API int hawser_agent_poll(hawser_agent agent, size_t* work); /* One bounded round; `work` may be null. */
HAWSER_C_API int hawser_agent_wait(hawser_agent agent, int64_t timeout_ns, int* happened);
HAWSER_C_API int hawser_agent_event_fd(hawser_agent agent, int* fd); /* The agent's; readable when something is. */
HAWSER_C_API int hawser_agent_take_notification(hawser_agent agent, hawser_news* out);
HAWSER_C_API int hawser_agent_take_event(hawser_agent agent, hawser_news* out);
HAWSER_C_API int hawser_agent_open_channel(hawser_agent agent, uint32_t channel, uint32_t credit); /* 0: 64. */
HAWSER_C_API int hawser_agent_take_message(hawser_agent agent, uint32_t channel, hawser_news* out);

/* Memory. */
HAWSER_C_API int hawser_agent_add_region(hawser_agent agent, const hawser_region_options* options, hawser_region* out);
HAWSER_C_API int hawser_agent_allocate(hawser_agent agent, const hawser_region_options* options, hawser_region* out);
HAWSER_C_API int hawser_region_info_get(hawser_region region, hawser_region_info* out);
HAWSER_C_API int hawser_region_close(hawser_region region, int64_t timeout_ns); /* Only 0: nobody touches the memory. */
HAWSER_C_API int hawser_region_release(hawser_region region);
HAWSER_C_API int hawser_read_signal(hawser_agent agent, const hawser_local_range* word, uint64_t* value);
HAWSER_C_API int hawser_wait_signal(hawser_agent agent, const hawser_local_range* word, uint64_t at_least,
                                    int64_t timeout_ns);

/* Peers. Cards are bytes to be carried to the peer by any means. */
HAWSER_C_API int hawser_agent_card(hawser_agent agent, hawser_buffer* card);
HAWSER_C_API int hawser_agent_partial_card(hawser_agent agent, const uint32_t* regions, size_t n, hawser_buffer* card);
HAWSER_C_API int hawser_agent_card_delta(hawser_agent agent, uint64_t since_revision, hawser_buffer* card);
HAWSER_C_API int hawser_agent_card_revision(hawser_agent agent, uint64_t* revision);
HAWSER_C_API int hawser_agent_add_peer(hawser_agent agent, const void* card, size_t size, hawser_peer* out);
HAWSER_C_API int hawser_agent_find_peer(hawser_agent agent, const char* name, int64_t timeout_ns, hawser_peer* out);
/* Up to `capacity` handles; `count` is how many there are. */
HAWSER_C_API int hawser_agent_peers(hawser_agent agent, hawser_peer* out, size_t capacity, size_t* count);
HAWSER_C_API int hawser_agent_invalidate(hawser_agent agent, hawser_peer peer);
HAWSER_C_API int hawser_peer_info_get(hawser_peer peer, hawser_peer_info* out);
HAWSER_C_API int hawser_peer_regions(hawser_peer peer, hawser_buffer* json); /* An array of names; "#3" is nameless. */
HAWSER_C_API int hawser_peer_region(hawser_peer peer, const char* name, hawser_region_info* out);
HAWSER_C_API int hawser_peer_connect(hawser_peer peer, int64_t timeout_ns);
HAWSER_C_API int hawser_peer_notify(hawser_peer peer, const void* data, size_t size);
HAWSER_C_API int hawser_peer_send(hawser_peer peer, uint32_t channel, const void* data, size_t size);
HAWSER_C_API int hawser_peer_release(hawser_peer peer);

/* Tables: prepared lists of ranges of one region, addressed by index. */
HAWSER_C_API int hawser_region_blocks(hawser_region region, uint64_t block_bytes, hawser_table* out);
HAWSER_C_API int hawser_region_table(hawser_region region, const hawser_strided_range* ranges, size_t count,
                                     hawser_table* out);
HAWSER_C_API int hawser_peer_blocks(hawser_peer peer, const char* region, uint64_t block_bytes, hawser_table* out);
HAWSER_C_API int hawser_peer_table(hawser_peer peer, const char* region, const hawser_strided_range* ranges,
                                   size_t count, hawser_table* out);
HAWSER_C_API int hawser_table_count(hawser_table table, uint64_t* count);
HAWSER_C_API int hawser_table_at(hawser_table table, uint64_t index, hawser_strided_range* out);
HAWSER_C_API int hawser_table_encode(hawser_table table, hawser_buffer* bytes);
HAWSER_C_API int hawser_peer_import_table(hawser_peer peer, const void* bytes, size_t size, hawser_table* out);
HAWSER_C_API int hawser_table_release(hawser_table table);

/* Plans and transfers. `operation` is HAWSER_WRITE (local to remote) or HAWSER_READ. Entries are paired in order. */
HAWSER_C_API int hawser_plan_tables(hawser_agent agent, int operation, hawser_peer peer, hawser_table local,
                                    const uint32_t* local_index, hawser_table remote, const uint32_t* remote_index,
                                    size_t count, hawser_plan* out);
HAWSER_C_API int hawser_plan_ranges(hawser_agent agent, int operation, hawser_peer peer,
                                    const hawser_local_range* local, const hawser_remote_range* remote, size_t count,
                                    hawser_plan* out);
HAWSER_C_API int hawser_plan_info_get(hawser_plan plan, hawser_plan_info* out);
HAWSER_C_API int hawser_plan_submit(hawser_plan plan, const hawser_submit_options* options, hawser_transfer* out);
HAWSER_C_API int hawser_plan_release(hawser_plan plan);
HAWSER_C_API int hawser_transfer_info_get(hawser_transfer transfer, hawser_transfer_info* out); /* Only looks. */
/* The outcome; HAWSER_TIMED_OUT while hawser_transfer_info.done is 0: not final yet, the transfer goes on. */
HAWSER_C_API int hawser_transfer_wait(hawser_transfer transfer, int64_t timeout_ns);
HAWSER_C_API int hawser_transfer_cancel(hawser_transfer transfer); /* Asks; waiting tells when it is final. */
HAWSER_C_API int hawser_transfer_release(hawser_transfer transfer);

/* Completion queues. `entry_size` is sizeof(hawser_completion). */
HAWSER_C_API int hawser_queue_open(hawser_agent agent, size_t capacity, hawser_queue* out); /* 0: 4096 entries. */
HAWSER_C_API int hawser_queue_poll(hawser_queue queue, hawser_completion* out, size_t entry_size, size_t capacity,
                                   size_t* taken);
HAWSER_C_API int hawser_queue_wait(hawser_queue queue, int64_t timeout_ns, hawser_completion* out, size_t entry_size,
                                   size_t capacity, size_t* taken);
HAWSER_C_API int hawser_queue_event_fd(hawser_queue queue, int* fd); /* The queue's; readable while it has entries. */
HAWSER_C_API int hawser_queue_release(hawser_queue queue);

#ifdef __cplusplus
}
#endif
