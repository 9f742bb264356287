// The handles of the compat layer.

#include <hawser/compat/agent.h>

#include <numeric>
#include <ostream>

#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/core.h"
#include "compat/environment.h"
#include "compat/prepared.h"
#include "compat/request.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

Status empty_handle(std::string_view call) {
  return refusal(NixlCode::kInvalidParam, call, "the handle is empty: it was never opened, or was moved from");
}

/// The request, if it is one of this agent's.
Status check_request(std::string_view call, const Agent& agent, const TransferRequest& request) {
  if (!core_of(agent) || core_of(request) == nullptr) return empty_handle(call);
  if (core_of(request)->core == core_of(agent)) return {};
  return refusal(NixlCode::kInvalidParam, call, "the request is another agent's");
}

}  // namespace

RegistrationHandle::RegistrationHandle(std::shared_ptr<AgentCore> core, RegDescList list, OptArgs opt)
    : core_(std::move(core)), list_(std::move(list)), opt_(std::move(opt)) {}

RegistrationHandle::RegistrationHandle(RegistrationHandle&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)), list_(std::move(other.list_)), opt_(std::move(other.opt_)) {}

RegistrationHandle& RegistrationHandle::operator=(RegistrationHandle&& other) noexcept {
  if (this == &other) return *this;
  (void)deregister();
  core_ = std::exchange(other.core_, nullptr);
  list_ = std::move(other.list_);
  opt_ = std::move(other.opt_);
  return *this;
}

RegistrationHandle::~RegistrationHandle() {
  if (!core_) return;
  const std::shared_ptr<AgentCore> core = core_;
  if (const Status status = deregister(); !status.ok()) {
    HAWSER_LOG(core->log(), kWarn, "a registration handle goes: {}", status.to_string());
  }
}

Status RegistrationHandle::deregister() {
  const std::shared_ptr<AgentCore> core = std::exchange(core_, nullptr);
  return core ? core->deregister_memory(list_, &opt_) : Status();
}

void RegistrationHandle::detach() { core_.reset(); }

std::uint64_t PreparedList::size() const { return core_ ? core_->rows.count() : 0; }
bool PreparedList::is_local() const { return core_ && !core_->peer; }
std::string_view PreparedList::agent_name() const {
  return core_ && core_->peer ? core_->peer->name() : std::string_view();
}

TransferRequest::TransferRequest(std::unique_ptr<RequestCore> core) : core_(std::move(core)) {}
TransferRequest::TransferRequest() = default;
TransferRequest::TransferRequest(TransferRequest&&) noexcept = default;

TransferRequest& TransferRequest::operator=(TransferRequest&& other) noexcept {
  if (this == &other) return *this;
  const TransferRequest old(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

TransferRequest::~TransferRequest() {
  if (!core_ || core_->released.load(std::memory_order_acquire)) return;
  if (const Status status = core_->release(); !status.ok()) {
    HAWSER_LOG(core_->core->log(), kWarn, "a request goes in flight: {}", status.to_string());
  }
}

bool TransferRequest::is_released() const { return core_ == nullptr || core_->is_released(); }
Status TransferRequest::release() { return core_ ? core_->release() : Status(); }
void TransferRequest::mirror_finished(std::atomic<std::uint64_t>* word, std::uint64_t tag) {
  if (core_) core_->mirror_finished(word, tag);
}

Result<Agent> Agent::open(std::string_view name, const AgentConfig& config) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<AgentCore> core, AgentCore::open(name, config));
  return Agent(std::move(core));
}

Status Agent::close() { return core_ ? core_->close() : empty_handle("close"); }

std::string_view Agent::name() const { return core_ ? std::string_view(core_->name()) : std::string_view(); }

std::vector<std::string> Agent::get_available_plugins() const {
  std::vector<std::string> names;
  for (const Plugin& one : plugins()) names.emplace_back(one.name);
  return names;
}

Result<PluginParams> Agent::get_plugin_params(std::string_view name) const {
  const Plugin* const plugin = find_plugin(name);
  if (plugin == nullptr) {
    return refusal(NixlCode::kNotFound, "get_plugin_params",
                   base::format("there is no plugin '{}'; {}", name, known_plugins()));
  }
  return PluginParams{.mems = {plugin->mems.begin(), plugin->mems.end()}, .params = default_params(*plugin)};
}

Result<Backend> Agent::create_backend(std::string_view plugin, const Params& params) {
  return core_ ? core_->create_backend(plugin, params) : Result<Backend>(empty_handle("create_backend"));
}

std::optional<Backend> Agent::get_backend(std::string_view name) const {
  const Plugin* const plugin = find_plugin(name);
  if (!core_ || plugin == nullptr || !core_->need_home("get_backend").ok()) return std::nullopt;
  for (const CreatedBackend& one : core_->backends()) {
    if (one.plugin == plugin) return Backend(std::string(plugin->name), core_.get());
  }
  return std::nullopt;
}

std::vector<std::string> Agent::backend_names() const {
  std::vector<std::string> names;
  if (!core_ || !core_->need_home("backend_names").ok()) return names;
  for (const CreatedBackend& one : core_->backends()) names.emplace_back(one.plugin->name);
  return names;
}

Result<PluginParams> Agent::get_backend_params(const Backend& backend) const {
  constexpr std::string_view kCall = "get_backend_params";
  if (!core_) return empty_handle(kCall);
  HAWSER_TRY(core_->need_home(kCall));
  for (const CreatedBackend& one : core_->backends()) {
    if (backend.agent() != core_.get() || one.plugin->name != backend.name()) continue;
    return PluginParams{.mems = {one.plugin->mems.begin(), one.plugin->mems.end()}, .params = one.params};
  }
  return refusal(NixlCode::kInvalidParam, kCall,
                 base::format("'{}' is no backend of agent '{}'", backend.name(), core_->name()));
}

Result<RegistrationHandle> Agent::register_memory(const RegDescList& list, const OptArgs* opt) {
  if (!core_) return empty_handle("register_mem");
  HAWSER_TRY(core_->register_memory(list, opt));
  return RegistrationHandle(core_, list, opt == nullptr ? OptArgs() : *opt);
}

Status Agent::deregister_memory(const RegDescList& list, const OptArgs* opt) {
  return core_ ? core_->deregister_memory(list, opt) : empty_handle("deregister_mem");
}

Result<QueryResponses> Agent::query_mem(const RegDescList& list, const OptArgs* opt) const {
  return core_ ? core_->query_mem(list, opt) : Result<QueryResponses>(empty_handle("query_mem"));
}

Result<std::string> Agent::get_local_md() const {
  constexpr std::string_view kCall = "get_local_md";
  return core_ ? core_->metadata(kCall, nullptr, nullptr) : Result<std::string>(empty_handle(kCall));
}

Result<std::string> Agent::get_local_partial_md(const RegDescList& list, const OptArgs* opt) const {
  constexpr std::string_view kCall = "get_local_partial_md";
  return core_ ? core_->metadata(kCall, &list, opt) : Result<std::string>(empty_handle(kCall));
}

Result<std::string> Agent::load_remote_md(std::string_view bytes) {
  return core_ ? core_->load(bytes) : Result<std::string>(empty_handle("load_remote_md"));
}

bool Agent::check_remote_metadata(std::string_view name, const XferDescList* list) const {
  return core_ && core_->check(name, list);
}

Status Agent::prep_mem_view(MemType type, std::span<const ViewDesc> list) const {
  constexpr std::string_view kCall = "prep_mem_view";
  if (!core_) return empty_handle(kCall);
  bool has_any = false;
  for (const ViewDesc& desc : list) {
    if (desc.agent.empty() || desc.agent == "NULL_AGENT") continue;
    has_any = true;
    XferDescList one(type);
    one.add(desc.addr, desc.len, desc.dev);
    if (core_->check(desc.agent, &one)) continue;
    return refusal(NixlCode::kNotFound, kCall,
                   base::format("descriptor {}: agent '{}' is not known, or has no such memory registered",
                                &desc - list.data(), desc.agent));
  }
  if (!has_any) return refusal(NixlCode::kNotFound, kCall, "no descriptor names an agent");
  return refusal(NixlCode::kNotSupported, kCall, "memory views need a backend of a GPU, and there is none");
}

Status Agent::invalidate_remote_md(std::string_view name) {
  return core_ ? core_->forget(name) : empty_handle("invalidate_remote_md");
}

Status Agent::invalidate_all_remotes() {
  if (!core_) return empty_handle("invalidate_all_remotes");
  HAWSER_TRY(core_->need_home("invalidate_all_remotes"));
  Status answer;
  for (const std::string& name : core_->remote_names()) {
    const Status status = core_->forget(name);
    // One that went by itself meanwhile is forgotten, too.
    if (!status.ok() && code_of(status) != NixlCode::kNotFound && answer.ok()) answer = status;
  }
  return answer;
}

Status Agent::make_connection(std::string_view name, const OptArgs* opt) {
  if (!core_) return empty_handle("make_connection");
  HAWSER_TRY(core_->need_remote("make_connection", opt));
  return core_->connect(name);
}

Status Agent::send_local_md(const OptArgs* opt) {
  constexpr std::string_view kCall = "send_local_md";
  if (!core_) return empty_handle(kCall);
  HAWSER_TRY_ASSIGN(const auto exchange, core_->exchange(kCall));
  HAWSER_TRY_ASSIGN(std::string blob, core_->metadata(kCall, nullptr, nullptr));
  return exchange->send(kCall, std::move(blob), false, opt);
}

Status Agent::send_local_partial_md(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "send_local_partial_md";
  if (!core_) return empty_handle(kCall);
  HAWSER_TRY_ASSIGN(const auto exchange, core_->exchange(kCall));
  HAWSER_TRY_ASSIGN(std::string blob, core_->metadata(kCall, &list, opt));
  return exchange->send(kCall, std::move(blob), true, opt);
}

Status Agent::fetch_remote_md(std::string_view name, const OptArgs* opt) {
  constexpr std::string_view kCall = "fetch_remote_md";
  if (!core_) return empty_handle(kCall);
  HAWSER_TRY_ASSIGN(const auto exchange, core_->exchange(kCall));
  return exchange->fetch(kCall, name, opt);
}

Status Agent::invalidate_local_md(const OptArgs* opt) {
  constexpr std::string_view kCall = "invalidate_local_md";
  if (!core_) return empty_handle(kCall);
  HAWSER_TRY_ASSIGN(const auto exchange, core_->exchange(kCall));
  return exchange->invalidate(kCall, opt);
}

Result<PreparedList> Agent::prepare_xfer_dlist(std::string_view name, const XferDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "prep_xfer_dlist";
  if (!core_) return empty_handle(kCall);
  return core_->prepare(kCall, name, list.type(), list.span(), opt, core_);
}

Result<PreparedList> Agent::prepare_xfer_dlist(std::string_view name, MemType type, std::span<const StridedDesc> rows,
                                               const OptArgs* opt) {
  constexpr std::string_view kCall = "prep_xfer_dlist";
  if (!core_) return empty_handle(kCall);
  return core_->prepare(kCall, name, type, rows, opt, core_);
}

Result<TransferRequest> Agent::make_xfer_req(XferOp op, const PreparedList& local,
                                             std::span<const std::int32_t> local_index, const PreparedList& remote,
                                             std::span<const std::int32_t> remote_index, const OptArgs* opt) {
  constexpr std::string_view kCall = "make_xfer_req";
  if (!core_ || !core_of(local) || !core_of(remote)) return empty_handle(kCall);
  if (!local.is_local() || remote.is_local() || core_of(local)->core != core_ || core_of(remote)->core != core_) {
    return refusal(NixlCode::kInvalidParam, kCall, "the lists must be one local and one remote, of this agent");
  }
  HAWSER_TRY(core_->current(kCall, *core_of(remote)->peer));
  HAWSER_TRY_ASSIGN(auto request,
                    make_request(kCall, op, *core_of(local), local_index, *core_of(remote), remote_index, opt));
  return TransferRequest(std::move(request));
}

Result<TransferRequest> Agent::create_xfer_req(XferOp op, const XferDescList& local, const XferDescList& remote,
                                               std::string_view name, const OptArgs* opt) {
  constexpr std::string_view kCall = "create_xfer_req";
  if (!core_) return empty_handle(kCall);
  if (name.empty()) return refusal(NixlCode::kNotFound, kCall, "the remote agent has no name");
  if (std::optional<JoinedLists> joined = core_->join_lists(local, name, remote, opt)) {
    HAWSER_TRY_ASSIGN(auto request, make_request(kCall, op, core_, *std::move(joined), opt));
    return TransferRequest(std::move(request));
  }
  PreparedPair pair(core_);
  HAWSER_TRY(core_->prepare_pair(kCall, local, name, remote, opt, pair));
  if (local.size() != remote.size()) {
    return refusal(NixlCode::kInvalidParam, kCall,
                   base::format("{} local and {} remote descriptors", local.size(), remote.size()));
  }
  std::vector<std::int32_t> index(local.size());
  std::iota(index.begin(), index.end(), 0);
  HAWSER_TRY_ASSIGN(auto request, make_request(kCall, op, pair.local, index, pair.remote, index, opt));
  return TransferRequest(std::move(request));
}

Result<CostEstimate> Agent::estimate_xfer_cost(const TransferRequest& request, const OptArgs*) const {
  HAWSER_TRY(check_request("estimate_xfer_cost", *this, request));
  return core_of(request)->estimate();
}

Result<bool> Agent::post_xfer_req(TransferRequest& request, const OptArgs* opt) {
  HAWSER_TRY(check_request("post_xfer_req", *this, request));
  return core_of(request)->post(opt);
}

Result<bool> Agent::in_progress(TransferRequest& request) {
  HAWSER_TRY(check_request("get_xfer_status", *this, request));
  return core_of(request)->look();
}

std::optional<bool> Agent::in_progress_at_once(const TransferRequest& request) const {
  if (!check_request("get_xfer_status", *this, request).ok()) return std::nullopt;
  return core_of(request)->look_at_once();
}

Result<XferStatus> Agent::get_xfer_status(TransferRequest& request) {
  HAWSER_TRY_ASSIGN(const bool busy, in_progress(request));
  return busy ? XferStatus::kInProgress : XferStatus::kSuccess;
}

Result<std::optional<XferTelemetry>> Agent::get_xfer_telemetry(TransferRequest& request) {
  HAWSER_TRY(check_request("get_xfer_telemetry", *this, request));
  return core_of(request)->telemetry();
}

Result<Backend> Agent::query_xfer_backend(const TransferRequest& request) const {
  HAWSER_TRY(check_request("query_xfer_backend", *this, request));
  return core_of(request)->backend;
}

Status Agent::get_notifications(NotificationMap& into, const OptArgs* opt) {
  if (!core_) return empty_handle("get_notifs");
  HAWSER_TRY(core_->need_remote("get_notifs", opt));
  return core_->take_notifications(into);
}

bool Agent::may_have_notifications() const { return !core_ || core_->may_have_notifications(); }

Status Agent::send_notification(std::string_view name, std::string_view bytes, const OptArgs* opt) {
  if (!core_) return empty_handle("gen_notif");
  HAWSER_TRY(core_->need_remote("gen_notif", opt));
  return core_->notify(name, bytes);
}

std::vector<PluginNote> plugin_notes(const ConfigSources::Texts& environment) {
  std::vector<PluginNote> notes;
  for (const Plugin& one : plugins()) {
    notes.push_back({.name = std::string(one.name), .answer = std::string(one.answer)});
    if (one.name != "UCX") continue;
    notes.back().refusal = check_ucx_mode(environment);
    if (!notes.back().refusal.ok()) notes.back().answer = "nobody: " + notes.back().refusal.to_string();
  }
  return notes;
}

std::string to_string(const Agent& agent) { return core_of(agent) ? core_of(agent)->describe() : "no agent"; }

std::ostream& operator<<(std::ostream& out, const Agent& agent) { return out << to_string(agent); }

}  // namespace compat
HAWSER_NAMESPACE_END
