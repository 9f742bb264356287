// The NIXL face: prepared lists, requests, their progress and telemetry.

#include <time.h>

#include <span>

#include "api/nixl/call.h"
#include "api/nixl/objects.h"

namespace hawser::nixl {
namespace {

nixl_capi_status_t check_operation(const char* call, nixl_capi_xfer_op_t op) {
  const int number = op;
  if (number == NIXL_CAPI_XFER_OP_READ || number == NIXL_CAPI_XFER_OP_WRITE) return NIXL_CAPI_SUCCESS;
  return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "operation " + std::to_string(number) + " is unknown");
}

compat::XferOp operation_of(nixl_capi_xfer_op_t op) {
  return op == NIXL_CAPI_XFER_OP_WRITE ? compat::XferOp::kWrite : compat::XferOp::kRead;
}

template <typename Handle>
std::uint64_t number_of(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

nixl_capi_status_t give_request(const char* call, nixl_capi_agent_t agent, Result<compat::TransferRequest> made,
                                nixl_capi_xfer_req_t* out) {
  if (!made) return refuse(call, made.error());
  return give(call, out, std::make_unique<RequestHandle>(std::move(*made), number_of(agent)));
}

/// Which looks at finished requests are answered without asking their agent, which moves on when it is asked: a run of
/// them by a thread that looks at requests of one agent again and again. One that does other things between its looks
/// asks with each: the clock shows it.
class Spin {
 public:
  static constexpr std::uint32_t kRun = 31;

  /// True where `request` is known to be finished, and its agent need not be asked.
  bool takes(std::uint64_t agent, std::uint64_t request) {
    if (left_ == 0 || agent != agent_) return false;
    --left_;
    if (noted_.still(request, agent)) return true;
    if (!handles().has_noted<RequestHandle>(request, agent)) return false;
    noted_ = api::Noted(handles(), request, agent);
    return true;
  }
  /// The agent was asked, and had finished the request.
  void asked(std::uint64_t agent) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::int64_t tick = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    left_ = agent == agent_ && tick == tick_ ? kRun : 0;
    agent_ = agent;
    tick_ = tick;
  }

 private:
  std::uint64_t agent_ = 0;
  api::Noted noted_;
  std::int64_t tick_ = 0;
  std::uint32_t left_ = 0;
};

// Initial-exec: a look-up of the thread's block would cost as much as the rest. It is few bytes of the surplus that the
// loader keeps for libraries that are opened later.
[[gnu::tls_model("initial-exec")]] constinit thread_local Spin spin;

nixl_capi_status_t progress(const char* call, const Result<bool>& busy) {
  if (!busy) return refuse(call, busy.error());
  return *busy ? NIXL_CAPI_IN_PROG : NIXL_CAPI_SUCCESS;
}

}  // namespace
}  // namespace hawser::nixl

using namespace hawser;
using namespace hawser::nixl;

nixl_capi_status_t nixl_capi_prep_xfer_dlist(nixl_capi_agent_t agent, const char* agent_name,
                                             nixl_capi_xfer_dlist_t descs, nixl_capi_xfer_dlist_handle_t* dlist_hndl,
                                             nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(agent_name);
    NIXL_FIND(list, XferDlist, descs);
    NIXL_NOT_NULL(dlist_hndl);
    NIXL_OPTIONS(opt, opt_args);
    Result<compat::PreparedList> prepared = its.agent.prepare_xfer_dlist(agent_name, list.list, opt);
    if (!prepared) return refuse(call, prepared.error());
    return give(call, dlist_hndl, std::make_unique<PreparedHandle>(std::move(*prepared)));
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
    NIXL_OPTIONS(opt, opt_args);
    const nixl_capi_status_t status = check_operation(call, operation);
    if (status != NIXL_CAPI_SUCCESS) return status;
    return give_request(
        call, agent,
        its.agent.make_xfer_req(operation_of(operation), local.list, {local_indices, local_indices_count}, remote.list,
                                {remote_indices, remote_indices_count}, opt),
        req_hndl);
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
    NIXL_OPTIONS(opt, opt_args);
    const nixl_capi_status_t status = check_operation(call, operation);
    if (status != NIXL_CAPI_SUCCESS) return status;
    return give_request(call, agent,
                        its.agent.create_xfer_req(operation_of(operation), local.list, remote.list, remote_agent, opt),
                        req_hndl);
  });
}

nixl_capi_status_t nixl_capi_post_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                           nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req_hndl);
    NIXL_OPTIONS(opt, opt_args);
    return progress(call, its.agent.post_xfer_req(request.request, opt));
  });
}

nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl) {
  if (spin.takes(number_of(agent), number_of(req_hndl))) return NIXL_CAPI_SUCCESS;
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req_hndl);
    const Result<bool> busy = its.agent.in_progress(request.request);
    if (busy && !*busy) spin.asked(number_of(agent));
    return progress(call, busy);
  });
}

nixl_capi_status_t nixl_capi_estimate_xfer_cost(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_opt_args_t opt_args, int64_t* duration_us,
                                                int64_t* err_margin_us, nixl_capi_cost_t* method) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req_hndl);
    NIXL_NOT_NULL(duration_us);
    NIXL_NOT_NULL(err_margin_us);
    NIXL_NOT_NULL(method);
    NIXL_OPTIONS(opt, opt_args);
    *duration_us = 0;  // The original writes them whatever the outcome.
    *err_margin_us = 0;
    *method = NIXL_CAPI_COST_ANALYTICAL_BACKEND;
    const Result<compat::CostEstimate> cost = its.agent.estimate_xfer_cost(request.request, opt);
    if (!cost) return refuse(call, cost.error());
    *duration_us = std::chrono::duration_cast<std::chrono::microseconds>(cost->duration).count();
    *err_margin_us = std::chrono::duration_cast<std::chrono::microseconds>(cost->margin).count();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_query_xfer_backend(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_backend_t* backend) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req_hndl);
    NIXL_NOT_NULL(backend);
    Result<compat::Backend> which = its.agent.query_xfer_backend(request.request);
    if (!which) return refuse(call, which.error());
    return give(call, backend, std::make_unique<BackendHandle>(std::move(*which)));
  });
}

nixl_capi_status_t nixl_capi_get_xfer_telemetry(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req_hndl,
                                                nixl_capi_xfer_telemetry_t telemetry) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req_hndl);
    NIXL_NOT_NULL(telemetry);
    const auto times = its.agent.get_xfer_telemetry(request.request);
    if (!times) {
      const nixl_capi_status_t code = fold(times.error());
      // An agent without telemetry is asked all the same, each time.
      return code == NIXL_CAPI_ERROR_NO_TELEMETRY ? code : refuse(call, times.error());
    }
    if (!*times) return NIXL_CAPI_IN_PROG;
    *telemetry = {.start_time_us = (*times)->start_time_us,
                  .post_duration_us = (*times)->post_duration_us,
                  .xfer_duration_us = (*times)->xfer_duration_us,
                  .total_bytes = (*times)->total_bytes,
                  .desc_count = (*times)->desc_count};
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t req) {
  return run(__func__, [&](const char* call) {
    NIXL_NAMES(AgentHandle, agent);
    NIXL_FIND(request, RequestHandle, req);
    if (request.request.is_released()) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the request was released before");
    }
    return answer(call, request.request.release());
  });
}

nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t req) {
  return run(__func__, [&](const char* call) {
    bool is_early = false;
    const Status status = handles().release_unless<RequestHandle>(call, number_of(req), [&](RequestHandle& its) {
      is_early = !its.request.is_released();
      return is_early ? Status(Code::kInvalid, "the request must be released first") : Status();
    });
    if (is_early) return refuse(call, NIXL_CAPI_ERROR_INVALID_STATE, status.message());
    return answer(call, status);
  });
}
