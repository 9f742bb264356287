// The NIXL face: prepared lists, requests, their progress and telemetry.

#include <atomic>
#include <chrono>

#include "api/nixl/agent.h"

namespace hawser::nixl {
namespace {

std::uint64_t now_us() { return static_cast<std::uint64_t>(Clock::steady().now().ns()) / 1000; }

/// One request of a client. NIXL's rule: one thread at a time; the mutex makes breaking it harmless.
struct Request final : api::Object {
  static constexpr std::uint8_t kKind = 22;
  static constexpr std::string_view kName = "request";

  std::shared_ptr<AgentCore> core;
  Plan plan;
  Peer peer;
  std::uint64_t descs = 0;

  std::mutex mutex;  ///< Over what follows.
  std::optional<std::string> notif;
  std::optional<Transfer> transfer;
  bool waiting = false;  ///< Posted, but a bound was reached: submitted again when looked at.
  bool released = false;
  bool counted = false;  ///< The telemetry's duration is final.
  nixl_capi_xfer_telemetry_s times{};
};

/// Hands the request to the library. A bound that was reached is waited for, as NIXL's queues do.
nixl_capi_status_t submit(const char* call, Request& request) {
  SubmitOptions options;
  if (request.notif) options.notify = *request.notif;
  Result<Transfer> sent = request.plan.submit(options);
  request.waiting = !sent && sent.error().code() == Code::kBusy;
  if (request.waiting) return NIXL_CAPI_IN_PROG;
  if (!sent) {
    return refuse(call,
                  sent.error().code() == Code::kDisconnected ? NIXL_CAPI_ERROR_NOT_FOUND : NIXL_CAPI_ERROR_BACKEND,
                  sent.error().to_string());
  }
  request.transfer = std::move(*sent);
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t look(const char* call, Request& request) {
  request.core->poll();
  if (request.waiting) {
    const nixl_capi_status_t status = submit(call, request);
    if (status != NIXL_CAPI_SUCCESS) return status;
  }
  if (!request.transfer) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the request was not posted");
  if (!request.transfer->done()) return NIXL_CAPI_IN_PROG;
  if (!request.counted) {
    request.counted = true;
    request.times.xfer_duration_us = std::max(now_us() - request.times.start_time_us, request.times.post_duration_us);
  }
  const Status status = request.transfer->status();
  return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
}

nixl_capi_status_t give_request(const char* call, const std::shared_ptr<AgentCore>& core, nixl_capi_xfer_op_t op,
                                const Peer& peer, std::span<const LocalRange> local,
                                std::span<const RemoteRange> remote, nixl_capi_opt_args_t opt,
                                nixl_capi_xfer_req_t* out) {
  const int number = op;
  if (number != NIXL_CAPI_XFER_OP_READ && number != NIXL_CAPI_XFER_OP_WRITE) {
    return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "operation " + std::to_string(number) + " is unknown");
  }
  Result<Plan> plan = op == NIXL_CAPI_XFER_OP_WRITE ? core->agent().plan_write(peer, local, remote)
                                                    : core->agent().plan_read(peer, remote, local);
  if (!plan) return refuse(call, plan.error());
  auto request = std::make_unique<Request>();
  if (opt != nullptr) {
    NIXL_FIND(args, OptArgs, opt);
    if (args.has_notif) request->notif = args.notif;
  }
  request->core = core;
  request->peer = peer;
  request->descs = plan->piece_count();
  request->plan = std::move(*plan);
  return give(call, out, std::move(request));
}

template <typename Range>
nixl_capi_status_t pick(const char* call, const std::vector<Range>& all, const int* indices, std::size_t count,
                        std::vector<Range>* out) {
  out->reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || static_cast<std::size_t>(indices[i]) >= all.size()) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM,
                    "index " + std::to_string(indices[i]) + " is not in a list of " + std::to_string(all.size()));
    }
    out->push_back(all[static_cast<std::size_t>(indices[i])]);
  }
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t post(const char* call, Request& request, nixl_capi_opt_args_t opt) {
  const std::lock_guard lock(request.mutex);
  if (request.released) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the request was released");
  if (request.waiting || (request.transfer && !request.transfer->done())) {
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the request was posted and is not over yet");
  }
  if (!request.core->is_current(request.peer)) {
    return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND,
                  "agent '" + std::string(request.peer.name()) + "' is gone, or was loaded anew since");
  }
  if (opt != nullptr) {
    NIXL_FIND(args, OptArgs, opt);
    request.notif.reset();
    if (args.has_notif) request.notif = args.notif;
  }
  request.times = {.start_time_us = now_us(), .total_bytes = request.plan.bytes(), .desc_count = request.descs};
  request.counted = false;
  const nixl_capi_status_t status = submit(call, request);
  request.times.post_duration_us = std::max<std::uint64_t>(now_us() - request.times.start_time_us, 1);
  return status == NIXL_CAPI_SUCCESS ? look(call, request) : status;
}

}  // namespace
}  // namespace hawser::nixl

using namespace hawser;
using namespace hawser::nixl;

nixl_capi_status_t nixl_capi_prep_xfer_dlist(nixl_capi_agent_t agent, const char* agent_name,
                                             nixl_capi_xfer_dlist_t descs, nixl_capi_xfer_dlist_handle_t* dlist_hndl,
                                             nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(agent_name);
    NIXL_FIND(list, XferDlist, descs);
    NIXL_NOT_NULL(dlist_hndl);
    Prepared prepared;
    const nixl_capi_status_t status = its.core->prepare(call, agent_name, list, &prepared);
    if (status != NIXL_CAPI_SUCCESS) return status;
    return give(call, dlist_hndl, std::make_unique<PreparedHandle>(its.core, std::move(prepared)));
  });
}

nixl_capi_status_t nixl_capi_release_xfer_dlist_handle(nixl_capi_agent_t agent,
                                                       nixl_capi_xfer_dlist_handle_t dlist_handle) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    return destroy<PreparedHandle>(call, dlist_handle);
  });
}

nixl_capi_status_t nixl_capi_make_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                           nixl_capi_xfer_dlist_handle_t local_descs, const int* local_indices,
                                           size_t local_indices_count, nixl_capi_xfer_dlist_handle_t remote_descs,
                                           const int* remote_indices, size_t remote_indices_count,
                                           nixl_capi_xfer_req_t* req_hndl, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(local, PreparedHandle, local_descs);
    NIXL_FIND(remote, PreparedHandle, remote_descs);
    NIXL_NOT_NULL(local_indices);
    NIXL_NOT_NULL(remote_indices);
    NIXL_NOT_NULL(req_hndl);
    if (local.list.peer || !remote.list.peer || local.core != its.core || remote.core != its.core) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the lists must be one local and one remote, of this agent");
    }
    if (local_indices_count != remote_indices_count || local_indices_count == 0) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM,
                    "both index arrays must have the same number of entries, not 0");
    }
    if (!its.core->is_current(*remote.list.peer)) {
      return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "the remote list is of an agent that is gone or was loaded anew");
    }
    std::vector<LocalRange> ours;
    std::vector<RemoteRange> theirs;
    nixl_capi_status_t status = pick(call, local.list.local, local_indices, local_indices_count, &ours);
    if (status != NIXL_CAPI_SUCCESS) return status;
    status = pick(call, remote.list.remote, remote_indices, remote_indices_count, &theirs);
    if (status != NIXL_CAPI_SUCCESS) return status;
    return give_request(call, its.core, operation, *remote.list.peer, ours, theirs, opt_args, req_hndl);
  });
}

nixl_capi_status_t nixl_capi_create_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                             nixl_capi_xfer_dlist_t local_descs, nixl_capi_xfer_dlist_t remote_descs,
                                             const char* remote_agent, nixl_capi_xfer_req_t* req_hndl,
                                             nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(local, XferDlist, local_descs);
    NIXL_FIND(remote, XferDlist, remote_descs);
    NIXL_NOT_NULL(remote_agent);
    NIXL_NOT_NULL(req_hndl);
    Prepared ours, theirs;
    nixl_capi_status_t status = its.core->prepare(call, {}, local, &ours);
    if (status != NIXL_CAPI_SUCCESS) return status;
    if (*remote_agent == '\0') return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "the remote agent has no name");
    status = its.core->prepare(call, remote_agent, remote, &theirs);
    if (status != NIXL_CAPI_SUCCESS) return status;
    return give_request(call, its.core, operation, *theirs.peer, ours.local, theirs.remote, opt_args, req_hndl);
  });
}

nixl_capi_status_t nixl_capi_post_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                           nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req_hndl);
    return post(call, request, opt_args);
  });
}

nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req_hndl);
    const std::lock_guard lock(request.mutex);
    if (request.released) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the request was released");
    return look(call, request);
  });
}

nixl_capi_status_t nixl_capi_estimate_xfer_cost(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_opt_args_t, int64_t* duration_us, int64_t* err_margin_us,
                                                nixl_capi_cost_t* method) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req_hndl);
    NIXL_NOT_NULL(duration_us);
    NIXL_NOT_NULL(err_margin_us);
    NIXL_NOT_NULL(method);
    *duration_us = 0;
    *err_margin_us = 0;
    *method = NIXL_CAPI_COST_ANALYTICAL_BACKEND;
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, "not supported: costs are not estimated here");
  });
}

nixl_capi_status_t nixl_capi_query_xfer_backend(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_backend_t* backend) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req_hndl);
    NIXL_NOT_NULL(backend);
    auto made = std::make_unique<BackendHandle>();
    made->name = kUcx;
    made->agent = its.core.get();
    return give(call, backend, std::move(made));
  });
}

nixl_capi_status_t nixl_capi_get_xfer_telemetry(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_xfer_telemetry_t telemetry) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req_hndl);
    NIXL_NOT_NULL(telemetry);
    if (!its.core->telemetry()) return NIXL_CAPI_ERROR_NO_TELEMETRY;
    const std::lock_guard lock(request.mutex);
    if (request.released) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the request was released");
    const nixl_capi_status_t status = look(call, request);
    if (status == NIXL_CAPI_SUCCESS) *telemetry = request.times;
    return status;
  });
}

nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, Request, req);
    const std::lock_guard lock(request.mutex);
    if (request.released) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the request was released before");
    if (request.transfer) {
      // After this nothing touches the memory any more: clients reuse it at once.
      constexpr Duration kPatience = std::chrono::seconds(2);
      request.transfer->cancel();
      const Status status = request.transfer->wait(kPatience);
      if (!request.transfer->done())
        return refuse(call, NIXL_CAPI_ERROR_BACKEND, "still in flight: " + status.to_string());
    }
    request.released = true;
    request.waiting = false;
    request.transfer.reset();
    request.plan = Plan();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t req) {
  return run(__func__, [&](const char* call) {
    {
      NIXL_FIND(request, Request, req);
      const std::lock_guard lock(request.mutex);
      if (!request.released) {
        return refuse(call, NIXL_CAPI_ERROR_INVALID_STATE, "the request must be released first");
      }
    }
    return destroy<Request>(call, req);
  });
}
