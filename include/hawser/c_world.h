#pragma once

// The C ABI of worlds: ranks that send messages, call one another and run collective operations. hawser/world.h says
// what each thing means, docs/worlds.md leads through it; the rules are those of hawser/c.h. Since HAWSER_C_ABI 7.
//
// Requests: each operation has a twin with an `i`, which returns at once and gives a hawser_request. Its buffers are
// the operation's until it has ended. Wait for it or poll it, then release it; releasing one that is under way cancels
// it and returns when nothing touches its buffers.
//
// Counts are in elements of `type`. A null array of counts means `count` elements for each rank.
//
// Threads: every function may be called from any thread. After a fork the child's handles answer HAWSER_INVALID.

#include <hawser/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
typedef struct hawser_world { uint64_t id; } hawser_world;
typedef struct hawser_request { uint64_t id; } hawser_request;
typedef struct hawser_answer { uint64_t id; } hawser_answer;
typedef struct hawser_compressor { uint64_t id; } hawser_compressor;
typedef struct hawser_pool { uint64_t id; } hawser_pool; /* Since HAWSER_C_ABI 15. */

#define HAWSER_ANY_SOURCE UINT32_MAX
#define HAWSER_NO_COLOR INT64_MIN
enum { HAWSER_F64 = 0, HAWSER_F32 = 1, HAWSER_F16 = 2, HAWSER_BF16 = 3, HAWSER_F8_E4M3 = 4, HAWSER_F8_E5M2 = 5,
       HAWSER_I8 = 6, HAWSER_I16 = 7, HAWSER_I32 = 8, HAWSER_I64 = 9, HAWSER_U8 = 10, HAWSER_U16 = 11, HAWSER_U32 = 12,
       HAWSER_U64 = 13, HAWSER_BOOL = 14 };
enum { HAWSER_SUM = 0, HAWSER_PROD = 1, HAWSER_MIN = 2, HAWSER_MAX = 3, HAWSER_AVG = 4, HAWSER_AND = 5, HAWSER_OR = 6,
       HAWSER_XOR = 7 };
enum { HAWSER_WORLD_UNDRIVEN = 1,        /* No thread: only calls of this rank that wait make progress. */
       HAWSER_WORLD_NO_ENVIRONMENT = 2,  /* HAWSER_ variables and the launcher's are not read. */
       HAWSER_WORLD_MAJORITY = 4,        /* hawser_world_shrink needs more than half of those not proven dead. */
       HAWSER_WORLD_AUTOMATIC = 8,       /* RecoveryPolicy::kAutomatic: see hawser_world_recovered. By majority, too, */
       HAWSER_WORLD_ANY_QUORUM = 16,     /* unless this is set. */
       HAWSER_WORLD_ABORT = 32           /* RecoveryPolicy::kAbort: a failure ends all operations of the world. */ };
enum { HAWSER_TOP_K = 1, HAWSER_RANDOM_K = 2, HAWSER_INT8 = 3, HAWSER_FP8_E4M3 = 4, HAWSER_FP8_E5M2 = 5 };
enum { HAWSER_COMPRESSOR_FORGETS = 1 /* What packing leaves out is lost, not added to the next call's elements. */ };
enum { HAWSER_MESSAGE_RECV = 1,     /* It is received. Else it is sent. */
       HAWSER_MESSAGE_ANY_TAG = 2,  /* A receive takes any tag. */
       HAWSER_MESSAGE_ANY_SIZE = 4  /* A receive makes room for it, and `data` is null: hawser_request_bytes. */ };
enum { HAWSER_POOL_TRAINING = 1, HAWSER_POOL_INFERENCE = 2 };
enum { HAWSER_POOL_REFUSES = 1 /* A message that finds no buffer gets none: its receive is HAWSER_BUSY. */ };
enum { HAWSER_HANDLER_INLINE = 1         /* Runs within the world's progress: it must not block or call the world. */ };
/* clang-format on */

/* Zeros: what the launcher's environment says (`hawser run`, mpirun, torchrun, srun). */
typedef struct hawser_world_options {
  uint32_t size, flags;         /* `size` is the struct's; flags HAWSER_WORLD_*. */
  uint32_t ranks, rank;         /* How many, and which; `ranks` 0: the launcher's. */
  const char* name;             /* Separates worlds that share a directory. Null: "world". */
  hawser_directory directory;   /* Where the ranks find one another; 0: as `settings` and the environment say. */
  const hawser_param* settings; /* Options of the rank's agent by name (docs/config.md). */
  size_t setting_count;
  int64_t join_timeout_ns;  /* 0: 30 s. */
  int64_t timeout_ns;       /* Of operations that are given none. 0: 30 min. */
  const char* seed;         /* The address of a seed where the ranks find one another. Null: HAWSER_SEED, if set. */
  const char* topology;     /* "full", "regular:4", "hypercube", "edges:0-1,1-2". Null: HAWSER_TOPOLOGY, if set and the
                              ranks are processes; else full. */
  const char* token_file;   /* A file with a secret that the seed has, too; `seed` needs no ticket then. Null:
                              HAWSER_TOKEN_FILE, if set, where the seed is the environment's. */
  const char* cost_model;   /* A file of `hawser bench coll --tune`; one rank that has it tells the others. Null: the
                              option cost_model of `settings` and the environment. "": none. Since HAWSER_C_ABI 10. */
  hawser_agent agent;       /* An agent of the caller's, in which the rank is a guest: World::open with an agent. 0: the
                               world has an agent of its own. Neither `settings` nor the configuration count with it.
                               Since HAWSER_C_ABI 15, as all that follows. */
  const hawser_peer* peers; /* With `agent`: by rank, who the ranks are. At `rank` there may be 0. */
  size_t peer_count;        /* 0: the ranks find one another. */
  hawser_pool pool;         /* Of receives without a buffer; 0: none. */
} hawser_world_options;

typedef struct hawser_world_info {
  uint32_t size, rank, ranks, failed; /* `failed`: how many ranks have failed. */
  uint32_t old_rank, root_rank;       /* This rank, in the world that shrink, or split and group, made this one of. */
  uint64_t epoch;                     /* How often it was shrunk. */
  uint64_t last_good, last_number;    /* World::last_good and last_number. */
  uint32_t host, local_rank;          /* This rank's: World::host and local_rank. Since HAWSER_C_ABI 8. */
  uint32_t local_size, reserved;
  uint64_t id; /* World::id: 0 of the world that was opened. Since HAWSER_C_ABI 14. */
} hawser_world_info;

typedef struct hawser_received {
  uint32_t size, source;
  uint64_t tag, bytes;
} hawser_received;

/* A message of a batch. Since HAWSER_C_ABI 15. */
typedef struct hawser_message {
  uint32_t flags; /* HAWSER_MESSAGE_*. */
  uint32_t rank;  /* To which it is sent, or from which it is received: one, or HAWSER_ANY_SOURCE. */
  uint64_t tag;
  void* data; /* Written by receives only. */
  size_t size;
  /* What hawser_world_batch says of it: its end, and of a receive that ended well what it got. */
  int32_t code;
  uint32_t source;
  uint64_t source_tag, bytes;
} hawser_message;

/* Buffers of one size. Since HAWSER_C_ABI 15. */
typedef struct hawser_pool_tier {
  uint64_t bytes; /* Of one. */
  uint32_t count;
  uint32_t made, used, most_used; /* Of hawser_pool_statistics. */
  uint64_t taken;                 /* The same. */
} hawser_pool_tier;

typedef struct hawser_pool_options {
  uint32_t size, profile; /* HAWSER_POOL_TRAINING or HAWSER_POOL_INFERENCE; 0: `tiers`. */
  uint32_t flags;         /* HAWSER_POOL_REFUSES: of `tiers` only. */
  uint32_t reserved;      /* 0 */
  const hawser_pool_tier* tiers;
  size_t tier_count;
} hawser_pool_options;

/* A part of a message. It is written by receives only. */
typedef struct hawser_part {
  void* data;
  size_t size;
} hawser_part;

/* A combination of two elements that the caller defines: Reducer in hawser/collective.h says what it must do.
   Since HAWSER_C_ABI 14. */
#define HAWSER_REDUCER_COMMUTES 1u /* The order of ranks does not matter. */

typedef struct hawser_reducer {
  uint32_t size, flags; /* HAWSER_REDUCER_*. */
  /* out[i] = first[i] op second[i]. */
  void (*combine)(void* context, void* out, const void* first, const void* second, size_t count);
  void* context;          /* Lives until the operation has ended. */
  const char* name;       /* The same on all ranks. Null: "". */
  uint64_t element_bytes; /* 0: those of the type. */
} hawser_reducer;

typedef struct hawser_operation_options {
  uint32_t size;
  uint32_t flag;      /* A receive: refuses a shorter message (exact). A reduction: gives equal bits in each run. */
  int64_t timeout_ns; /* 0: the world's. */
  hawser_compressor compressor;  /* Of an all_reduce: packs its elements. 0: none. */
  uint32_t priority, reserved;   /* Of a send: HAWSER_PRIORITY_*; default: bulk. Since HAWSER_C_ABI 13. */
  const hawser_reducer* reducer; /* Of what combines: in the place of its `op`. Null: none. Since HAWSER_C_ABI 14. */
} hawser_operation_options;

/* See hawser/compress.h. */
typedef struct hawser_compressor_options {
  uint32_t size, kind; /* HAWSER_TOP_K and so on. */
  uint32_t flags;      /* HAWSER_COMPRESSOR_*. */
  uint32_t reserved;   /* 0 */
  double ratio;        /* Of HAWSER_TOP_K and HAWSER_RANDOM_K: how much of the elements is sent; above 0, up to 1. */
  uint64_t seed;       /* Of HAWSER_RANDOM_K: the same on all ranks. */
} hawser_compressor_options;

/* Worlds. */
/* `ranks` ranks in this process: fills `out` with as many handles, by rank. */
HAWSER_C_API int hawser_world_local(uint32_t ranks, const hawser_world_options* options, hawser_world* out);
HAWSER_C_API int hawser_world_open(const hawser_world_options* options, hawser_world* out);
HAWSER_C_API int hawser_world_info_get(hawser_world world, hawser_world_info* out);
HAWSER_C_API int hawser_world_peer(hawser_world world, uint32_t rank, hawser_peer* out);
/* World::is_sparse. */
HAWSER_C_API int hawser_world_is_sparse(hawser_world world, int* sparse);
/* World::has_direct_peer. */
HAWSER_C_API int hawser_world_has_direct_peer(hawser_world world, uint32_t rank, int* direct);
/* World::host. HAWSER_INVALID: there is no such rank. Since HAWSER_C_ABI 8. */
HAWSER_C_API int hawser_world_host(hawser_world world, uint32_t rank, uint32_t* host);
/* World::cost_model, a text. Since HAWSER_C_ABI 10. */
HAWSER_C_API int hawser_world_cost_model(hawser_world world, hawser_buffer* text);
/* World::config, a text: a line for each option, its name, value and origin with tabs between them. Since
   HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_world_config(hawser_world world, hawser_buffer* text);
/* World::memory, of one kind. Null: of all. HAWSER_NOT_FOUND: there is no such kind. Since HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_world_memory(hawser_world world, const char* kind, uint64_t* bytes);
/* Memory of `bytes` that the ranks of this host map: large collectives of one host read it where it lies. Its address
   is the `base` that hawser_region_info_get tells. Since HAWSER_C_ABI 9. */
HAWSER_C_API int hawser_world_allocate(hawser_world world, uint64_t bytes, hawser_region* out);
HAWSER_C_API int hawser_world_shutdown(hawser_world world, int64_t timeout_ns); /* Once all ranks have called it. */
HAWSER_C_API int hawser_world_leave(hawser_world world, int64_t timeout_ns);    /* Without waiting for them. */
HAWSER_C_API int hawser_world_close(hawser_world world, int64_t timeout_ns);    /* To the others it has failed. */
HAWSER_C_API int hawser_world_release(hawser_world world);                      /* Closes, if that was not done. */

/* Requests. */
HAWSER_C_API int hawser_request_done(hawser_request request, int* done); /* Only looks. */
/* The outcome; HAWSER_TIMED_OUT while it is under way, which it stays then. */
HAWSER_C_API int hawser_request_wait(hawser_request request, int64_t timeout_ns);
HAWSER_C_API int hawser_request_received(hawser_request request, hawser_received* out); /* Of a receive that is done. */
/* The bytes that a receive without a buffer, or a call, got. They live as long as the request. */
HAWSER_C_API int hawser_request_bytes(hawser_request request, const void** data, size_t* size);
HAWSER_C_API int hawser_request_cancel(hawser_request request);
HAWSER_C_API int hawser_request_release(hawser_request request);
/* Waits for all. HAWSER_TIMED_OUT: some go on. Else the end of the first that failed. Since HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_requests_wait(const hawser_request* requests, size_t count, int64_t timeout_ns);

/* Messages. `options` and `out` may be null. */
HAWSER_C_API int hawser_world_send(hawser_world world, const void* data, size_t size, uint32_t dest, uint64_t tag,
                                   const hawser_operation_options* options);
HAWSER_C_API int hawser_world_isend(hawser_world world, const void* data, size_t size, uint32_t dest, uint64_t tag,
                                    const hawser_operation_options* options, hawser_request* request);
/* From a rank or HAWSER_ANY_SOURCE; `tag` null: any. */
HAWSER_C_API int hawser_world_recv(hawser_world world, void* into, size_t size, uint32_t source, const uint64_t* tag,
                                   const hawser_operation_options* options, hawser_received* out);
/* `into` null: into bytes of the message's size, see hawser_request_bytes. */
HAWSER_C_API int hawser_world_irecv(hawser_world world, void* into, size_t size, uint32_t source, const uint64_t* tag,
                                    const hawser_operation_options* options, hawser_request* request);
/* The oldest message that fits, without receiving it. `present` is 0 where none came in time. */
HAWSER_C_API int hawser_world_probe(hawser_world world, uint32_t source, const uint64_t* tag, int64_t timeout_ns,
                                    int* present, hawser_received* out);

/* One message of `count` parts, one behind the other, at most 65,536; the other side may divide it otherwise. */
HAWSER_C_API int hawser_world_sendv(hawser_world world, const hawser_part* parts, size_t count, uint32_t dest,
                                    uint64_t tag, const hawser_operation_options* options);
HAWSER_C_API int hawser_world_isendv(hawser_world world, const hawser_part* parts, size_t count, uint32_t dest,
                                     uint64_t tag, const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_recvv(hawser_world world, const hawser_part* parts, size_t count, uint32_t source,
                                    const uint64_t* tag, const hawser_operation_options* options, hawser_received* out);
HAWSER_C_API int hawser_world_irecvv(hawser_world world, const hawser_part* parts, size_t count, uint32_t source,
                                     const uint64_t* tag, const hawser_operation_options* options,
                                     hawser_request* request);

/* Several messages in one step, receives first: World::batch. The first waits for all, writes the end of each, and
   returns the first that is not HAWSER_OK. The second gives a request for each, in their order, and writes nothing.
   Since HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_world_batch(hawser_world world, hawser_message* messages, size_t count,
                                    const hawser_operation_options* options);
HAWSER_C_API int hawser_world_ibatch(hawser_world world, const hawser_message* messages, size_t count,
                                     const hawser_operation_options* options, hawser_request* requests);

/* Pools of buffers: hawser/buffer_pool.h. Since HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_pool_open(const hawser_pool_options* options, hawser_pool* out);
/* Up to `capacity` tiers are written, from the smallest; `count` is how many there are. `bytes` of all buffers that
   were made, and `beyond`, how many messages found none, may be null. */
HAWSER_C_API int hawser_pool_statistics(hawser_pool pool, hawser_pool_tier* tiers, size_t capacity, size_t* count,
                                        uint64_t* bytes, uint64_t* beyond);
HAWSER_C_API int hawser_pool_trim(hawser_pool pool);
HAWSER_C_API int hawser_pool_release(hawser_pool pool); /* Its buffers live as long as worlds and requests use them. */

/* Calls. A handler returns 0, or what hawser_answer_fail gave; it runs on threads of the library, several at once. */
typedef int (*hawser_handler)(void* context, uint32_t source, const void* arguments, size_t size, hawser_answer answer);
HAWSER_C_API int hawser_world_register(hawser_world world, const char* name, hawser_handler handler, void* context,
                                       uint32_t flags);
/* By a number in the place of a name. Since HAWSER_C_ABI 15. */
HAWSER_C_API int hawser_world_register_number(hawser_world world, uint64_t number, hawser_handler handler,
                                              void* context, uint32_t flags);
HAWSER_C_API int hawser_world_call_number(hawser_world world, uint32_t dest, uint64_t number, const void* arguments,
                                          size_t size, const hawser_operation_options* options, hawser_buffer* answer);
HAWSER_C_API int hawser_world_icall_number(hawser_world world, uint32_t dest, uint64_t number, const void* arguments,
                                           size_t size, const hawser_operation_options* options,
                                           hawser_request* request);
/* While the handler runs. The last one counts; without it the answer is empty. Copied. */
HAWSER_C_API int hawser_answer_set(hawser_answer answer, const void* data, size_t size);
HAWSER_C_API int hawser_answer_fail(hawser_answer answer, int code, const char* text); /* Returns `code`. */
/* The answer is a buffer of the caller's: hawser_buffer_free. */
HAWSER_C_API int hawser_world_call(hawser_world world, uint32_t dest, const char* name, const void* arguments,
                                   size_t size, const hawser_operation_options* options, hawser_buffer* answer);
HAWSER_C_API int hawser_world_icall(hawser_world world, uint32_t dest, const char* name, const void* arguments,
                                    size_t size, const hawser_operation_options* options, hawser_request* request);

/* Collectives. `options` may be null. */
HAWSER_C_API int hawser_world_barrier(hawser_world world, const hawser_operation_options* options);
HAWSER_C_API int hawser_world_broadcast(hawser_world world, void* data, size_t count, int type, uint32_t root,
                                        const hawser_operation_options* options);
HAWSER_C_API int hawser_world_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                     uint32_t root, const hawser_operation_options* options);
HAWSER_C_API int hawser_world_all_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                         const hawser_operation_options* options);
HAWSER_C_API int hawser_world_all_gather(hawser_world world, const void* in, void* out, size_t count,
                                         const uint64_t* counts, int type, const hawser_operation_options* options);
HAWSER_C_API int hawser_world_reduce_scatter(hawser_world world, const void* in, void* out, size_t count,
                                             const uint64_t* counts, int type, int op,
                                             const hawser_operation_options* options);
HAWSER_C_API int hawser_world_gather(hawser_world world, const void* in, void* out, size_t count,
                                     const uint64_t* counts, int type, uint32_t root,
                                     const hawser_operation_options* options);
HAWSER_C_API int hawser_world_scatter(hawser_world world, const void* in, void* out, size_t count,
                                      const uint64_t* counts, int type, uint32_t root,
                                      const hawser_operation_options* options);
HAWSER_C_API int hawser_world_all_to_all(hawser_world world, const void* in, void* out, size_t count,
                                         const uint64_t* out_counts, const uint64_t* in_counts, int type,
                                         const hawser_operation_options* options);
HAWSER_C_API int hawser_world_scan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                   const hawser_operation_options* options);
HAWSER_C_API int hawser_world_exclusive_scan(hawser_world world, const void* in, void* out, size_t count, int type,
                                             int op, const hawser_operation_options* options);

HAWSER_C_API int hawser_world_ibarrier(hawser_world world, const hawser_operation_options* options,
                                       hawser_request* request);
HAWSER_C_API int hawser_world_ibroadcast(hawser_world world, void* data, size_t count, int type, uint32_t root,
                                         const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_ireduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                      uint32_t root, const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iall_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                          const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iall_gather(hawser_world world, const void* in, void* out, size_t count,
                                          const uint64_t* counts, int type, const hawser_operation_options* options,
                                          hawser_request* request);
HAWSER_C_API int hawser_world_ireduce_scatter(hawser_world world, const void* in, void* out, size_t count,
                                              const uint64_t* counts, int type, int op,
                                              const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_igather(hawser_world world, const void* in, void* out, size_t count,
                                      const uint64_t* counts, int type, uint32_t root,
                                      const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iscatter(hawser_world world, const void* in, void* out, size_t count,
                                       const uint64_t* counts, int type, uint32_t root,
                                       const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iall_to_all(hawser_world world, const void* in, void* out, size_t count,
                                          const uint64_t* out_counts, const uint64_t* in_counts, int type,
                                          const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iscan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                    const hawser_operation_options* options, hawser_request* request);
HAWSER_C_API int hawser_world_iexclusive_scan(hawser_world world, const void* in, void* out, size_t count, int type,
                                              int op, const hawser_operation_options* options, hawser_request* request);

/* In place, of `count` parts, which are elements of `type`: World::all_reduce_bucketed. `bucket_bytes` 0: 25 MiB. */
HAWSER_C_API int hawser_world_all_reduce_bucketed(hawser_world world, const hawser_part* parts, size_t count, int type,
                                                  int op, size_t bucket_bytes, const hawser_operation_options* options);
/* Gives a request for each bucket, `begun` of them. There is room for `capacity`; `count` is always enough. */
HAWSER_C_API int hawser_world_iall_reduce_bucketed(hawser_world world, const hawser_part* parts, size_t count, int type,
                                                   int op, size_t bucket_bytes, const hawser_operation_options* options,
                                                   hawser_request* requests, size_t capacity, size_t* begun);

/* Compressors: a rank's, each for one tensor. One that is released lives on in the collective that uses it. */
HAWSER_C_API int hawser_compressor_open(const hawser_compressor_options* options, hawser_compressor* out);
/* What was left out so far: up to `capacity` elements are written, `count` is how many there are. */
HAWSER_C_API int hawser_compressor_residual(hawser_compressor compressor, float* out, size_t capacity, size_t* count);
HAWSER_C_API int hawser_compressor_reset(hawser_compressor compressor); /* HAWSER_BUSY: a collective uses it. */
HAWSER_C_API int hawser_compressor_release(hawser_compressor compressor);

/* Groups. */
/* A rank with HAWSER_NO_COLOR gets the handle 0. */
HAWSER_C_API int hawser_world_split(hawser_world world, int64_t color, int64_t key, hawser_world* out);
HAWSER_C_API int hawser_world_duplicate(hawser_world world, hawser_world* out);
HAWSER_C_API int hawser_world_group(hawser_world world, const uint32_t* ranks, size_t count, hawser_world* out);

/* After a failure. Lists of ranks: up to `capacity` are written, `count` is how many there are. */
HAWSER_C_API int hawser_world_failed(hawser_world world, uint32_t* ranks, size_t capacity, size_t* count);
HAWSER_C_API int hawser_world_acknowledge(hawser_world world, uint32_t* ranks, size_t capacity, size_t* count);
/* Ranks that failed, in the order in which this rank found it, without the first `known`; waits for one. */
HAWSER_C_API int hawser_world_failures(hawser_world world, size_t known, int64_t timeout_ns, uint32_t* ranks,
                                       size_t capacity, size_t* count);
HAWSER_C_API int hawser_world_revoke(hawser_world world);
/* `timeout_ns` 0: the world's. A negative one is HAWSER_INVALID. */
HAWSER_C_API int hawser_world_agree(hawser_world world, int flag, int64_t timeout_ns, int* agreed);
HAWSER_C_API int hawser_world_shrink(hawser_world world, const uint32_t* without, size_t count, int64_t timeout_ns,
                                     hawser_world* out);
/* Of a world with HAWSER_WORLD_AUTOMATIC: waits for the world that the runtime makes after a failure (timeout 0 only
   looks), and gives it once. `ranks`: those of `world` that are not in it. Errors: World::recovered. */
HAWSER_C_API int hawser_world_recovered(hawser_world world, int64_t timeout_ns, hawser_world* out, uint32_t* ranks,
                                        size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif
