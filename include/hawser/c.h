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

#include <hawser/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

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
/* Cancels all transfers with this label, which is not 0. `count` may be null; it gets how many there were. */
HAWSER_C_API int hawser_agent_end_label(hawser_agent agent, uint64_t label, size_t* count);
HAWSER_C_API int hawser_agent_release(hawser_agent agent); /* Closes, if that was not done, with a short timeout. */
HAWSER_C_API int hawser_agent_self(hawser_agent agent, hawser_peer* out);
HAWSER_C_API int hawser_agent_add_backend(hawser_agent agent, const char* name, const hawser_param* params, size_t n);
HAWSER_C_API int hawser_agent_require_backend(hawser_agent agent, const char* name); /* 0, or why it is not open. */
HAWSER_C_API int hawser_agent_backends(hawser_agent agent, hawser_buffer* json);
HAWSER_C_API int hawser_agent_counters(hawser_agent agent, hawser_buffer* json);
HAWSER_C_API int hawser_agent_explain(hawser_agent agent, hawser_plan plan, hawser_buffer* text);

/* Drivers, for hawser_agent_options.driver. The threads go with the last agent, once the handle is released. */
HAWSER_C_API int hawser_driver_open(const hawser_driver_options* options, hawser_driver* out);
HAWSER_C_API int hawser_driver_release(hawser_driver driver);

/* Progress and news. Taking never waits and is good when nothing is there. */
HAWSER_C_API int hawser_agent_poll(hawser_agent agent, size_t* work); /* One bounded round; `work` may be null. */
HAWSER_C_API int hawser_agent_wait(hawser_agent agent, int64_t timeout_ns, int* happened);
HAWSER_C_API int hawser_agent_event_fd(hawser_agent agent, int* fd); /* The agent's; readable when something is. */
HAWSER_C_API int hawser_agent_take_notification(hawser_agent agent, hawser_news* out);
HAWSER_C_API int hawser_agent_take_event(hawser_agent agent, hawser_news* out);
HAWSER_C_API int hawser_agent_open_channel(hawser_agent agent, uint32_t channel, uint32_t credit); /* 0: 64. */
/* In this class (HAWSER_PRIORITY_*): docs/c-api.md. Since HAWSER_C_ABI 11. */
HAWSER_C_API int hawser_agent_open_channel_in_class(hawser_agent agent, uint32_t channel, uint32_t credit,
                                                    uint32_t priority);
HAWSER_C_API int hawser_agent_take_message(hawser_agent agent, uint32_t channel, hawser_news* out);

/* Memory. */
HAWSER_C_API int hawser_agent_add_region(hawser_agent agent, const hawser_region_options* options, hawser_region* out);
HAWSER_C_API int hawser_agent_allocate(hawser_agent agent, const hawser_region_options* options, hawser_region* out);
/* A file as a region: the far side of its plans with hawser_agent_self, and of peers by tcp (docs/files.md). */
HAWSER_C_API int hawser_agent_add_file(hawser_agent agent, const hawser_file_options* options, hawser_region* out);
HAWSER_C_API int hawser_query_file(const char* path, hawser_file_info* out); /* Not there: good, `exists` is 0. */
HAWSER_C_API int hawser_query_descriptor(int descriptor, hawser_file_info* out);
/* For hawser_agent_options.segments, while that runs: `into` is what it was given. Since HAWSER_C_ABI 4. */
HAWSER_C_API int hawser_segments_add(hawser_segments into, const hawser_segment* segment);
HAWSER_C_API int hawser_region_info_get(hawser_region region, hawser_region_info* out);
/* 0: peers of this host can map it (allocated, or adopted: docs/config.md). Else the last error says why not. */
HAWSER_C_API int hawser_region_mappable(hawser_region region);
HAWSER_C_API int hawser_region_close(hawser_region region, int64_t timeout_ns); /* Only 0: nobody touches the memory. */
HAWSER_C_API int hawser_region_release(hawser_region region);
/* The right to a part of a region, as bytes; hawser/grant.h says what grants promise. Since HAWSER_C_ABI 8. */
HAWSER_C_API int hawser_region_grant(hawser_region region, const hawser_grant_options* options, hawser_grant* out);
HAWSER_C_API int hawser_grant_bytes(hawser_grant grant, hawser_buffer* bytes); /* At most 16 KiB. */
HAWSER_C_API int hawser_grant_ended(hawser_grant grant, int* ended);
HAWSER_C_API int hawser_grant_revoke(hawser_grant grant, int64_t timeout_ns); /* Only 0: nobody uses it any more. */
HAWSER_C_API int hawser_grant_release(hawser_grant grant);                    /* The grant goes on. */
HAWSER_C_API int hawser_read_signal(hawser_agent agent, const hawser_local_range* word, uint64_t* value);
HAWSER_C_API int hawser_wait_signal(hawser_agent agent, const hawser_local_range* word, uint64_t at_least,
                                    int64_t timeout_ns);

/* Peers. Cards are bytes to be carried to the peer by any means. */
HAWSER_C_API int hawser_agent_card(hawser_agent agent, hawser_buffer* card);
HAWSER_C_API int hawser_agent_partial_card(hawser_agent agent, const uint32_t* regions, size_t n, hawser_buffer* card);
HAWSER_C_API int hawser_agent_card_delta(hawser_agent agent, uint64_t since_revision, hawser_buffer* card);
HAWSER_C_API int hawser_agent_card_revision(hawser_agent agent, uint64_t* revision);
/* The text that a peer writes behind this agent's address to find it on another host: "name@host:port#TICKET". Its
   holder may connect, as with the card: treat it as a password. Empty with security `none`. Since HAWSER_C_ABI 6. */
HAWSER_C_API int hawser_agent_ticket(hawser_agent agent, hawser_buffer* ticket);
HAWSER_C_API int hawser_agent_add_peer(hawser_agent agent, const void* card, size_t size, hawser_peer* out);
HAWSER_C_API int hawser_agent_find_peer(hawser_agent agent, const char* name, int64_t timeout_ns, hawser_peer* out);
/* As hawser_agent_find_peer, and waits until the peer has regions of all these names. Since HAWSER_C_ABI 5. */
HAWSER_C_API int hawser_agent_find_peer_regions(hawser_agent agent, const char* name, const char* const* regions,
                                                size_t count, int64_t timeout_ns, hawser_peer* out);
/* Up to `capacity` handles; `count` is how many there are. */
HAWSER_C_API int hawser_agent_peers(hawser_agent agent, hawser_peer* out, size_t capacity, size_t* count);
HAWSER_C_API int hawser_agent_invalidate(hawser_agent agent, hawser_peer peer);
HAWSER_C_API int hawser_peer_info_get(hawser_peer peer, hawser_peer_info* out);
HAWSER_C_API int hawser_peer_regions(hawser_peer peer, hawser_buffer* json); /* An array of names; "#3" is nameless. */
HAWSER_C_API int hawser_peer_region(hawser_peer peer, const char* name, hawser_region_info* out);
HAWSER_C_API int hawser_peer_region_at(hawser_peer peer, uint32_t index, hawser_region_info* out);
/* Waits until the peer has regions of all these names. Since HAWSER_C_ABI 5. */
HAWSER_C_API int hawser_peer_await_regions(hawser_peer peer, const char* const* regions, size_t count,
                                           int64_t timeout_ns);
HAWSER_C_API int hawser_peer_connect(hawser_peer peer, int64_t timeout_ns);
HAWSER_C_API int hawser_peer_reconnect(
    hawser_peer peer); /* Tries now what it would try after a pause. Does not wait. */
HAWSER_C_API int hawser_peer_notify(hawser_peer peer, const void* data, size_t size);
HAWSER_C_API int hawser_peer_send(hawser_peer peer, uint32_t channel, const void* data, size_t size);
/* Waits up to `timeout_ns` for the peer's greeting, for its channel to be open and for room; then HAWSER_BUSY.
   Since HAWSER_C_ABI 5. */
HAWSER_C_API int hawser_peer_send_within(hawser_peer peer, uint32_t channel, const void* data, size_t size,
                                         int64_t timeout_ns);
/* As hawser_peer_send_within (timeout_ns 0: does not wait), and gives the message's number: on each channel of each
   peer 1, 2, 3 and so on, anew with each session. Since HAWSER_C_ABI 12. */
HAWSER_C_API int hawser_peer_send_numbered(hawser_peer peer, uint32_t channel, const void* data, size_t size,
                                           int64_t timeout_ns, uint64_t* number);
/* The last message on the channel that the peer's agent is known to have taken, with all before it; 0: none. For a peer
   that is down (the handle that HAWSER_EVENT_DOWN brought) what was known in the end. "Taken" is in the agent's inbox,
   not read by its program. Since HAWSER_C_ABI 12. */
HAWSER_C_API int hawser_peer_acknowledged(hawser_peer peer, uint32_t channel, uint64_t* number);
/* Of each channel on which anything was sent in this session. `count` gets how many. Since HAWSER_C_ABI 12. */
HAWSER_C_API int hawser_peer_acknowledged_all(hawser_peer peer, hawser_acknowledged* out, size_t capacity,
                                              size_t* count);
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
/* Grants that peers made, for plans by their tables. The first takes those of any peer that the agent knows. Since
   HAWSER_C_ABI 8. */
HAWSER_C_API int hawser_agent_import_grant(hawser_agent agent, const void* bytes, size_t size, hawser_granted* out);
HAWSER_C_API int hawser_peer_import_grant(hawser_peer peer, const void* bytes, size_t size, hawser_granted* out);
HAWSER_C_API int hawser_granted_info_get(hawser_granted granted, hawser_region_info* out);
HAWSER_C_API int hawser_granted_peer(hawser_granted granted, hawser_peer* out); /* The owner. */
HAWSER_C_API int hawser_granted_blocks(hawser_granted granted, uint64_t block_bytes, hawser_table* out);
HAWSER_C_API int hawser_granted_table(hawser_granted granted, const hawser_strided_range* ranges, size_t count,
                                      hawser_table* out);
HAWSER_C_API int hawser_granted_release(hawser_granted granted);

/* Plans and transfers. `operation` is HAWSER_WRITE (local to remote) or HAWSER_READ. Entries are paired in order. */
HAWSER_C_API int hawser_plan_tables(hawser_agent agent, int operation, hawser_peer peer, hawser_table local,
                                    const uint32_t* local_index, hawser_table remote, const uint32_t* remote_index,
                                    size_t count, hawser_plan* out);
HAWSER_C_API int hawser_plan_ranges(hawser_agent agent, int operation, hawser_peer peer,
                                    const hawser_local_range* local, const hawser_remote_range* remote, size_t count,
                                    hawser_plan* out);
HAWSER_C_API int hawser_plan_info_get(hawser_plan plan, hawser_plan_info* out);
HAWSER_C_API int hawser_plan_submit(hawser_plan plan, const hawser_submit_options* options, hawser_transfer* out);
/* One plan of `count` plans of one peer and operation, in their order: one transfer, one notification. The plans stay
   the caller's. Since HAWSER_C_ABI 7. */
HAWSER_C_API int hawser_plan_join(const hawser_plan* plans, size_t count, hawser_plan* out);
HAWSER_C_API int hawser_plan_release(hawser_plan plan);
HAWSER_C_API int hawser_transfer_info_get(hawser_transfer transfer, hawser_transfer_info* out); /* Only looks. */
/* The outcome; HAWSER_TIMED_OUT while hawser_transfer_info.done is 0: not final yet, the transfer goes on. */
HAWSER_C_API int hawser_transfer_wait(hawser_transfer transfer, int64_t timeout_ns);
HAWSER_C_API int hawser_transfer_cancel(hawser_transfer transfer); /* Asks; waiting tells when it is final. */
HAWSER_C_API int hawser_transfer_release(hawser_transfer transfer);

/* Atomic operations on 8 bytes, aligned to 8, of a region of the peer that may be read and written: hawser/atomic.h
   says what they promise. `options` may be null. Since HAWSER_C_ABI 3. */
HAWSER_C_API int hawser_atomic_fetch_add(hawser_agent agent, hawser_peer peer, const hawser_remote_range* word,
                                         uint64_t add, const hawser_atomic_options* options, hawser_atomic* out);
/* Stores `desired` where the word holds `expected`; that it did is told by hawser_atomic_info.found == expected. */
HAWSER_C_API int hawser_atomic_compare_swap(hawser_agent agent, hawser_peer peer, const hawser_remote_range* word,
                                            uint64_t expected, uint64_t desired, const hawser_atomic_options* options,
                                            hawser_atomic* out);
HAWSER_C_API int hawser_atomic_info_get(hawser_atomic atomic, hawser_atomic_info* out); /* Only looks. */
/* As hawser_transfer_wait. */
HAWSER_C_API int hawser_atomic_wait(hawser_atomic atomic, int64_t timeout_ns);
HAWSER_C_API int hawser_atomic_cancel(hawser_atomic atomic);  /* It ends now; it may have been done. */
HAWSER_C_API int hawser_atomic_release(hawser_atomic atomic); /* Cancels it, unless it ended. */

/* Completion queues. `entry_size` is sizeof(hawser_completion). */
HAWSER_C_API int hawser_queue_open(hawser_agent agent, size_t capacity, hawser_queue* out); /* 0: 4096 entries. */
HAWSER_C_API int hawser_queue_poll(hawser_queue queue, hawser_completion* out, size_t entry_size, size_t capacity,
                                   size_t* taken);
HAWSER_C_API int hawser_queue_wait(hawser_queue queue, int64_t timeout_ns, hawser_completion* out, size_t entry_size,
                                   size_t capacity, size_t* taken);
HAWSER_C_API int hawser_queue_event_fd(hawser_queue queue, int* fd); /* The queue's; readable while it has entries. */
HAWSER_C_API int hawser_queue_capacity(hawser_queue queue, size_t* capacity);
HAWSER_C_API int hawser_queue_release(hawser_queue queue);

/* Directories: small values under keys, cards first (docs/directory.md). Requests give a ticket; waiting for it gives
   the answer, and of a watch all changes, until it is cancelled. Releasing one that an agent uses only forgets it. */
HAWSER_C_API int hawser_directory_inproc(const char* name, hawser_directory* out); /* Null: "default". */
HAWSER_C_API int hawser_directory_folder(const char* path, hawser_directory* out);
HAWSER_C_API int hawser_directory_etcd(const hawser_etcd_options* options, hawser_directory* out);
HAWSER_C_API int hawser_directory_put(hawser_directory directory, const char* key, const void* value, size_t size,
                                      const hawser_put_options* options, uint64_t* ticket); /* `options` may be null. */
HAWSER_C_API int hawser_directory_erase(hawser_directory directory, const char* key, uint64_t* ticket);
/* Only while the key has that version: HAWSER_BUSY is in the event when it has another. Since HAWSER_C_ABI 5. */
HAWSER_C_API int hawser_directory_erase_if(hawser_directory directory, const char* key, uint64_t version,
                                           uint64_t* ticket);
HAWSER_C_API int hawser_directory_get(hawser_directory directory, const char* key, uint64_t* ticket);
HAWSER_C_API int hawser_directory_list(hawser_directory directory, const char* prefix, uint64_t* ticket);
HAWSER_C_API int hawser_directory_watch(hawser_directory directory, const char* prefix, uint64_t* ticket);
/* Good, too, when nothing came in time; what went wrong with the request is in the event. */
HAWSER_C_API int hawser_directory_wait(hawser_directory directory, uint64_t ticket, int64_t timeout_ns,
                                       hawser_directory_event* out);
HAWSER_C_API int hawser_directory_cancel(hawser_directory directory, uint64_t ticket);
HAWSER_C_API int hawser_directory_warnings(hawser_directory directory, hawser_buffer* json); /* An array of texts. */
HAWSER_C_API int hawser_directory_release(hawser_directory directory);
HAWSER_C_API void hawser_directory_event_clear(hawser_directory_event* event);

#ifdef __cplusplus
}
#endif
