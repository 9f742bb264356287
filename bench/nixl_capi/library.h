#pragma once

// Library: one libnixl_capi.so, opened at run time as clients of NIXL open it.
//
// Thread rule: immutable once open. Lifetime: never closed; the libraries start threads and destructors of their own.

#include <stdexcept>
#include <string>

#include "api/nixl/nixl_capi.h"

namespace nixl_bench {

/// What went wrong, in words: a call with its status, a wait that took too long, a process that died.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

#define NIXL_BENCH_FUNCTIONS(X) \
  X(create_configured_agent)    \
  X(destroy_agent)              \
  X(get_local_md)               \
  X(load_remote_md)             \
  X(invalidate_remote_md)       \
  X(get_plugin_params)          \
  X(destroy_mem_list)           \
  X(destroy_params)             \
  X(create_backend)             \
  X(destroy_backend)            \
  X(create_opt_args)            \
  X(destroy_opt_args)           \
  X(opt_args_set_notif_msg)     \
  X(opt_args_set_has_notif)     \
  X(register_mem)               \
  X(deregister_mem)             \
  X(prep_xfer_dlist)            \
  X(release_xfer_dlist_handle)  \
  X(make_xfer_req)              \
  X(create_xfer_req)            \
  X(post_xfer_req)              \
  X(get_xfer_status)            \
  X(release_xfer_req)           \
  X(destroy_xfer_req)           \
  X(create_xfer_dlist)          \
  X(destroy_xfer_dlist)         \
  X(xfer_dlist_add_desc)        \
  X(create_reg_dlist)           \
  X(destroy_reg_dlist)          \
  X(reg_dlist_add_desc)         \
  X(create_notif_map)           \
  X(destroy_notif_map)          \
  X(get_notifs)                 \
  X(gen_notif)                  \
  X(notif_map_size)             \
  X(notif_map_get_agent_at)     \
  X(notif_map_get_notifs_size)  \
  X(notif_map_get_notif)        \
  X(notif_map_clear)

/// Its functions by their names without "nixl_capi_".
struct Library {
  /// Failure, naming the file, when it does not load or lacks one of the functions.
  static Library open(const std::string& path);

#define NIXL_BENCH_MEMBER(name) decltype(&::nixl_capi_##name) name = nullptr;
  NIXL_BENCH_FUNCTIONS(NIXL_BENCH_MEMBER)
#undef NIXL_BENCH_MEMBER
};

/// Failure unless `status` is "success".
void need(int status, const char* call);

}  // namespace nixl_bench

#define NIXL_BENCH_NEED(call) ::nixl_bench::need(static_cast<int>(call), #call)
