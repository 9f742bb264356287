#pragma once

// NIXL's agent on Hawser: what `nixl_sys::Agent` offers, operation for operation. docs/nixl.md says what differs.
//
//   auto agent = hawser::compat::Agent::open("worker");
//   auto ucx = agent->create_backend("UCX");
//   auto memory = agent->register_memory(list);            // deregisters when it goes out of scope
//   auto peer = agent->load_remote_md(bytes_from_the_peer);
//   auto request = agent->create_xfer_req(XferOp::kWrite, ours, theirs, *peer);
//   for (auto busy = agent->post_xfer_req(*request); busy && *busy; busy = agent->in_progress(*request)) {}
//
// Errors: a Status; `code_of` gives NIXL's code of it (status.h).
//
// Thread rule: thread-safe. A request belongs to one thread at a time. Lifetime: an Agent is a handle; copies share one
// agent and its backends, and the last of handles, registrations, prepared lists and requests ends it.

#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/backends.h>
#include <hawser/compat/descs.h>
#include <hawser/compat/status.h>
#include <hawser/config.h>
#include <hawser/export.h>
#include <hawser/log.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

struct Inside;
namespace compat {

class AgentCore;
struct PreparedCore;
struct RequestCore;

struct AgentConfig {
  bool progress_thread = true;  ///< Else the agent moves on when it is called only.
  bool listen_thread = false;   ///< Answers other agents that ask for metadata by address.
  std::uint16_t listen_port = 8888;
  bool capture_telemetry = false;  ///< A "no" in NIXL_TELEMETRY_ENABLE beats it, a "yes" turns it on.
  /// Instead of this process's environment.
  std::optional<ConfigSources::Texts> environment = {};
  LogSink log = {};  ///< Instead of stderr.
};

enum class XferOp : std::uint8_t { kRead = 0, kWrite = 1 };
enum class XferStatus : std::uint8_t { kSuccess = 0, kInProgress = 1 };
enum class CostMethod : std::uint8_t { kAnalyticalBackend = 0 };

struct XferTelemetry {
  std::uint64_t start_time_us = 0;  ///< Of the steady clock.
  std::uint64_t post_duration_us = 0, xfer_duration_us = 0, total_bytes = 0;
  std::uint64_t desc_count = 0;  ///< After merging neighbours.
};

struct CostEstimate {
  Duration duration = {}, margin = {};
  CostMethod method = CostMethod::kAnalyticalBackend;
};

/// A plugin's abilities and parameters: the defaults, or those in force.
struct PluginParams {
  std::vector<MemType> mems;
  Params params;
};

/// For people: what answers to one of NIXL's plugin names here.
struct PluginNote {
  std::string name, answer;
  Status refusal = {};  ///< Not good where the environment asks for what is not to be had; `answer` tells that, too.
};
HAWSER_API std::vector<PluginNote> plugin_notes(
    const ConfigSources::Texts& environment = ConfigSources::from_process().environment);

/// A backend of an agent. A value.
class Backend {
 public:
  Backend() = default;
  Backend(std::string name, const void* agent) : name_(std::move(name)), agent_(agent) {}
  /// Upper case, as in the list of plugins.
  const std::string& name() const { return name_; }
  /// Whose it is; compared only.
  const void* agent() const { return agent_; }

 private:
  std::string name_;
  const void* agent_ = nullptr;
};

struct OptArgs {
  std::vector<Backend> backends = {};  ///< Only these; empty: all that can.
  /// Delivered after the data. An empty but present one is delivered, too.
  std::optional<std::string> notification = {};
  bool skip_desc_merge = false;     ///< A hint; neighbours are merged all the same.
  bool include_connection = false;  ///< Partial metadata with descriptors can be loaded by who knows nothing else.
  std::optional<std::string> ip_address = {};
  std::uint16_t port = 8888;
  std::string metadata_label = {};
  std::string custom_param = {};
};

/// By sender, in order of arrival; any bytes.
using NotificationMap = std::map<std::string, std::vector<std::string>, std::less<>>;
/// Per descriptor: its attributes, or nothing when there is no such thing.
using QueryResponses = std::vector<std::optional<Params>>;

/// Registered memory. Deregisters when it goes, and waits until nothing uses the memory. Move-only.
class HAWSER_API RegistrationHandle {
 public:
  RegistrationHandle() = default;
  RegistrationHandle(std::shared_ptr<AgentCore> core, RegDescList list, OptArgs opt);
  RegistrationHandle(RegistrationHandle&& other) noexcept;
  RegistrationHandle& operator=(RegistrationHandle&& other) noexcept;
  ~RegistrationHandle();

  const RegDescList& list() const { return list_; }
  /// Now, and with its outcome. Nothing when it was before.
  Status deregister();
  /// Leaves the memory registered until Agent::deregister_memory or the agent's end.
  void detach();

 private:
  std::shared_ptr<AgentCore> core_;
  RegDescList list_;
  OptArgs opt_;
};

/// A part of a memory view.
struct ViewDesc : Desc {
  std::string_view agent;  ///< Empty, or "NULL_AGENT": a hole.
};

/// A list that was checked and resolved once, for make_xfer_req. Cheap to copy; a copy is the same list.
class HAWSER_API PreparedList {
 public:
  PreparedList() = default;
  explicit PreparedList(std::shared_ptr<const PreparedCore> core) : core_(std::move(core)) {}
  std::uint64_t size() const;
  bool is_local() const;
  std::string_view agent_name() const;  ///< Empty when it is local.

 private:
  friend struct hawser::Inside;
  std::shared_ptr<const PreparedCore> core_;
};

/// A transfer, posted again and again. Dropped or released in flight, it is cancelled and waited for, so that nothing
/// touches the memory afterwards. Move-only.
class HAWSER_API TransferRequest {
 public:
  TransferRequest();
  explicit TransferRequest(std::unique_ptr<RequestCore> core);
  TransferRequest(TransferRequest&&) noexcept;
  TransferRequest& operator=(TransferRequest&&) noexcept;
  ~TransferRequest();

  /// Released, or its agent was closed.
  bool is_released() const;
  /// Fails when it cannot be ended in time: then it is in flight still, and may be released again.
  Status release();
  /// From now on `word` is `tag` while the last post has ended well and get_xfer_status would say so, else 0; stored
  /// with release. `word` must outlive the request; null ends it.
  void mirror_finished(std::atomic<std::uint64_t>* word, std::uint64_t tag);

 private:
  friend struct hawser::Inside;
  std::unique_ptr<RequestCore> core_;
};

class HAWSER_API Agent {
 public:
  static Result<Agent> open(std::string_view name, const AgentConfig& config = {});
  Agent() = default;
  explicit Agent(std::shared_ptr<AgentCore> core) : core_(std::move(core)) {}

  /// Ends the agent now, whatever handles are left: transfers end, peers are told, calls answer that it is closed. Only
  /// kOk means that nothing touches registered memory any more.
  Status close();

  std::string_view name() const;
  /// True where both are handles of one agent.
  friend bool operator==(const Agent&, const Agent&) = default;

  // Plugins and backends. Names are in either case.
  std::vector<std::string> get_available_plugins() const;
  Result<PluginParams> get_plugin_params(std::string_view plugin) const;
  /// `params` overlay the defaults; unknown ones warn. Refused when there is one already.
  Result<Backend> create_backend(std::string_view plugin, const Params& params = {});
  std::optional<Backend> get_backend(std::string_view name) const;
  /// In the order in which they were created.
  std::vector<std::string> backend_names() const;
  Result<PluginParams> get_backend_params(const Backend& backend) const;

  // Memory.
  Result<RegistrationHandle> register_memory(const RegDescList& list, const OptArgs* opt = nullptr);
  Status deregister_memory(const RegDescList& list, const OptArgs* opt = nullptr);
  /// `opt` must name one backend.
  Result<QueryResponses> query_mem(const RegDescList& list, const OptArgs* opt) const;

  // Metadata.
  Result<std::string> get_local_md() const;
  /// Of some registrations; an empty list: how to connect, only.
  Result<std::string> get_local_partial_md(const RegDescList& list, const OptArgs* opt = nullptr) const;
  /// Gives the name of the agent that made it. Loading again adds; that of a restarted agent replaces.
  Result<std::string> load_remote_md(std::string_view bytes);
  /// True where that agent lives and, with a list, has registered all of it.
  bool check_remote_metadata(std::string_view name, const XferDescList* list = nullptr) const;
  /// Memory views need a backend of a GPU, and there is none: kNotSupported. kNotFound for what no view can be of: an
  /// agent that is not known, memory that is not registered there, or only holes. Own memory goes by the own name.
  Status prep_mem_view(MemType type, std::span<const ViewDesc> list) const;
  Status invalidate_remote_md(std::string_view name);
  Status invalidate_all_remotes();
  Status make_connection(std::string_view name, const OptArgs* opt = nullptr);
  // By address (`opt` has one) or through a store of metadata.
  Status send_local_md(const OptArgs* opt = nullptr);
  Status send_local_partial_md(const RegDescList& list, const OptArgs* opt = nullptr);
  Status fetch_remote_md(std::string_view name, const OptArgs* opt = nullptr);
  Status invalidate_local_md(const OptArgs* opt = nullptr);

  // Transfers. An empty name is this agent's own side; its own name is itself as a peer.
  Result<PreparedList> prepare_xfer_dlist(std::string_view name, const XferDescList& list,
                                          const OptArgs* opt = nullptr);
  /// Index i counts the blocks row by row.
  Result<PreparedList> prepare_xfer_dlist(std::string_view name, MemType type, std::span<const StridedDesc> rows,
                                          const OptArgs* opt = nullptr);
  Result<TransferRequest> make_xfer_req(XferOp op, const PreparedList& local, std::span<const std::int32_t> local_index,
                                        const PreparedList& remote, std::span<const std::int32_t> remote_index,
                                        const OptArgs* opt = nullptr);
  Result<TransferRequest> create_xfer_req(XferOp op, const XferDescList& local, const XferDescList& remote,
                                          std::string_view name, const OptArgs* opt = nullptr);
  Result<CostEstimate> estimate_xfer_cost(const TransferRequest& request, const OptArgs* opt = nullptr) const;
  /// `opt` given without a notification takes away the one before. True: in progress.
  Result<bool> post_xfer_req(TransferRequest& request, const OptArgs* opt = nullptr);
  Result<XferStatus> get_xfer_status(TransferRequest& request);
  /// Whether get_xfer_status would say `in progress`.
  Result<bool> in_progress(TransferRequest& request);
  /// As `in_progress`, where that takes neither work nor a wait: for a caller that holds a lock of its own meanwhile.
  std::optional<bool> in_progress_at_once(const TransferRequest& request) const;
  /// No value while it is in progress.
  Result<std::optional<XferTelemetry>> get_xfer_telemetry(TransferRequest& request);
  Result<Backend> query_xfer_backend(const TransferRequest& request) const;

  // Notifications.
  /// Takes what came and appends it.
  Status get_notifications(NotificationMap& into, const OptArgs* opt = nullptr);
  /// False: `get_notifications` finds nothing, and takes neither work nor a wait to say so.
  bool may_have_notifications() const;
  Status send_notification(std::string_view name, std::string_view bytes, const OptArgs* opt = nullptr);

 private:
  friend struct hawser::Inside;
  std::shared_ptr<AgentCore> core_;
};

/// Its name, backends, registrations and remotes in one line.
HAWSER_API std::string to_string(const Agent& agent);
HAWSER_API std::ostream& operator<<(std::ostream& out, const Agent& agent);

}  // namespace compat
HAWSER_NAMESPACE_END
