#include "compat/core.h"

#include <net/if.h>

#include <algorithm>
#include <utility>

#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "backend/address_space.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/small_vector.h"
#include "base/try.h"
#include "compat/backend_wish.h"
#include "compat/blob.h"
#include "compat/environment.h"
#include "compat/file_descs.h"
#include "compat/parts.h"
#include "compat/prepared.h"
#include "compat/spot_maker.h"
#include "wire/limits.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr Duration kRegionCloseTimeout = std::chrono::seconds(2);
constexpr Duration kConnectTimeout = std::chrono::seconds(10);
/// A death on the same host is noticed in half of that.
constexpr Duration kNoticeMax = std::chrono::milliseconds(100);
constexpr std::size_t kFewClosing = 2;  ///< Lists of so many take no memory of their own.
constexpr std::size_t kRoomFrom = 64;   ///< Shorter lists are rows, and need no room for blocks.

ConfigSources::Texts environment_of(const AgentConfig& config) {
  return config.environment ? *config.environment : ConfigSources::from_process().environment;
}

bool is_interface(const std::string& name) { return ::if_nametoindex(name.c_str()) != 0; }

Status unknown_agent(std::string_view call, std::string_view name) {
  return refusal(NixlCode::kNotFound, call, base::format("no metadata of agent '{}' is loaded", name));
}

/// Null: whatever there is will do. What is of no bytes is everywhere.
template <typename Range>
bool has_all(const Book<Range>& book, const XferDescList* list) {
  if (list == nullptr) return true;
  typename Book<Range>::Cursor cursor(book, list->type());
  std::uint64_t offset = 0;
  return std::all_of(list->begin(), list->end(),
                     [&](const Desc& desc) { return desc.len == 0 || cursor.find(desc, &offset) != nullptr; });
}

}  // namespace

AgentCore::AgentCore(std::string_view name, const AgentConfig& config, AgentOptions options, EtcdOptions etcd)
    : name_(name),
      config_(config),
      telemetry_(telemetry_wanted(environment_of(config), config.capture_telemetry)),
      options_(std::move(options)),
      log_(options_.log),
      backends_(name_, this),
      remotes_([this](const Peer& peer) { return agent_->invalidate(peer); }),
      inbox_(log_),
      exchange_({.name = name_,
                 .listen = config_.listen_thread ? std::optional(config_.listen_port) : std::nullopt,
                 .etcd = std::move(etcd),
                 .security = options_.security,
                 .identity = options_.identity,
                 .directory = options_.directory,
                 .log = log_},
                [this] { return exchange_links(); }) {}

AgentCore::~AgentCore() {
  if (!home_.is_this()) {
    if (driver_) (void)new Driver(std::move(*driver_));  // Its thread is not in this process: joining would hang.
    exchange_.disown();
    (void)new metrics::Entry(std::move(page_));
    feeder_.disown();
    return;
  }
  feeder_.stop();
  page_ = metrics::Entry();  // A scrape and these threads use what follows.
  exchange_.close();
  if (agent_) (void)agent_->close(kCloseTimeout);
}

Status AgentCore::close() {
  if (!home_.is_this()) return {};
  closed_.store(true, std::memory_order_release);
  exchange_.close();  // Its threads use the agent. The port is free, and what was published is taken back.
  return has_backend() ? agent_->close(kCloseTimeout) : Status();
}

Result<std::shared_ptr<AgentCore>> AgentCore::open(std::string_view name, const AgentConfig& config) {
  if (!wire::is_agent_name(name)) {
    return refusal(NixlCode::kInvalidParam, "create_agent",
                   base::format("a name of {} bytes is not 1 to 255 bytes without control characters", name.size()));
  }
  EtcdOptions etcd;
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(name, config, &etcd));
  HAWSER_TRY_ASSIGN(TelemetryExport exported, telemetry_export(environment_of(config)));
  std::shared_ptr<AgentCore> core(new AgentCore(name, config, std::move(options), std::move(etcd)));
  if (const std::string note = telemetry_note(environment_of(config)); !note.empty()) {
    HAWSER_LOG(core->log_, kWarn, "create_agent: {}", note);
  }
  if (!exported.listen.empty()) core->open_exporter(std::move(exported));
  if (core->exchange_.is_wanted_at_once()) HAWSER_TRY(core->exchange_.get("create_agent").status());
  return core;
}

/// Several processes of a host often get one port: those that come later go on without, and say so.
void AgentCore::open_exporter(TelemetryExport what) {
  exporter_.emplace(name_, std::move(what));
  Result<metrics::Entry> page =
      metrics::serve(exporter_->listen(), [this](metrics::Exposition& to) { exporter_->add_to(to); });
  if (page) {
    page_ = *std::move(page);
    HAWSER_LOG(log_, kInfo, "create_agent: telemetry of '{}' at http://{}/metrics", name_, page_.address());
    return;
  }
  HAWSER_LOG(log_, kWarn, "create_agent: telemetry of '{}' is not exported: {}", name_, page.error().to_string());
}

Exchange::Links AgentCore::exchange_links() {
  return {
      .load = [this](std::string_view blob, std::string_view label,
                     const std::function<bool()>& is_wanted) { return load(blob, &is_wanted, label); },
      .invalidate =
          [this](std::string_view name, const std::optional<base::Id128>& incarnation) {
            return lapse(name, [&] { return incarnation ? invalidate_one(name, *incarnation) : invalidate(name); });
          },
      .drop =
          [this](std::string_view name, std::string_view label, const std::function<bool()>& is_wanted) {
            return lapse(name, [&] { return drop(name, label, is_wanted); });
          },
      .metadata = [this] { return metadata("get_local_md", nullptr, nullptr); },
      .self = [this]() -> std::optional<Exchange::Self> {
        if (!has_backend()) return std::nullopt;
        const Peer us = agent_->self();
        return Exchange::Self{.incarnation = agent::inner::incarnation_of(us), .born = agent::inner::born_of(*agent_)};
      },
  };
}

Result<std::shared_ptr<Exchange>> AgentCore::exchange(std::string_view call) {
  HAWSER_TRY(need_home(call));
  return exchange_.get(call);
}

Status AgentCore::forget(std::string_view name) {
  HAWSER_TRY(need_home("invalidate_remote_md"));
  exchange_.forget(name);
  const Status status = invalidate(name);
  const std::lock_guard lock(mutex_);
  const bool went = lapsed_.take(name);
  return went && code_of(status) == NixlCode::kNotFound ? Status() : status;
}

/// What the exchange of metadata invalidated, the user may be about to invalidate, too: that is no error of theirs.
/// It is noted before, for the user may see that the agent is gone before `end` has returned.
Status AgentCore::lapse(std::string_view name, const std::function<Status()>& end) {
  {
    const std::lock_guard lock(mutex_);
    lapsed_.add(name);
  }
  Status status = end();
  const std::lock_guard lock(mutex_);
  if (!status.ok() || remotes_.knows(name)) lapsed_.take(name);
  return status;
}

Status AgentCore::start(const AgentOptions& options) {
  const Result<std::shared_ptr<identity::Authenticator>> own = exchange_.identity();
  // The agent tells what is wrong with its identity when it opens.
  HAWSER_TRY_ASSIGN(hawser::Agent agent, agent::inner::open_with_identity(options, own ? *own : nullptr));
  if (config_.progress_thread) {
    HAWSER_TRY_ASSIGN(Driver driver, Driver::start());
    HAWSER_TRY(driver.attach(agent));
    driver_.emplace(std::move(driver));
  }
  agent_.emplace(std::move(agent));
  return {};
}

/// Who asked for RDMA is told that it is not there: what takes its place works, but is slower.
void AgentCore::tell_of_rdma(std::string_view wish) const {
  if (wish.empty()) return;
  for (const BackendReport& report : agent_->backends()) {
    if (report.name != "verbs" || report.open) continue;
    HAWSER_LOG(log_, kWarn, "create_backend: UCX: {}: RDMA is not used: {}", wish, report.cause.to_string());
  }
}

/// What the plugin needs of Hawser's own backends beyond those that an agent has anyway.
Status AgentCore::open_for(const Plugin& plugin, Params file) {
  if (!takes(plugin, MemType::kFile)) return {};
  if (agent_->has_backend("file")) {
    if (!file.empty()) {
      HAWSER_LOG(log_, kWarn, "create_backend: POSIX: its parameters change nothing: the backend file is open already");
    }
    return {};
  }
  // What the user of the machine says about Hawser itself goes before what a client says about POSIX.
  if (const auto set = options_.backend_params.find("file"); set != options_.backend_params.end()) {
    for (const auto& [key, value] : set->second) file.erase(key);
  }
  return agent_->add_backend({.name = "file", .params = std::move(file)});
}

Result<Backend> AgentCore::create_backend(std::string_view name, const Params& params) {
  constexpr std::string_view kCall = "create_backend";
  const Plugin* const plugin = find_plugin(name);
  if (plugin == nullptr) {
    return refusal(NixlCode::kNotFound, kCall, base::format("there is no plugin '{}'; {}", name, known_plugins()));
  }
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (backends_.has(*plugin)) {
    return refusal(NixlCode::kInvalidParam, kCall,
                   base::format("agent '{}' has a backend {} already", name_, plugin->name));
  }
  CreatedBackend made{.plugin = plugin, .params = params_in_force(*plugin, params, log_)};
  HAWSER_TRY_ASSIGN(BackendWish wish, read_wish(options_, *plugin, params, agent_.has_value(), is_interface, log_));
  // What was asked for may not be there. Then the next call may ask for less.
  Status opened = agent_ ? Status() : start(wish.options);
  if (opened.ok()) opened = open_for(*plugin, std::move(wish.file));
  if (!opened.ok()) {
    return refusal(NixlCode::kBackend, kCall, base::format("{} does not open for agent '{}'", plugin->name, name_),
                   opened);
  }
  tell_of_rdma(wish.rdma);
  backends_.add(std::move(made));
  return Backend(std::string(plugin->name), this);
}

std::vector<CreatedBackend> AgentCore::backends() const {
  const std::lock_guard lock(mutex_);
  return backends_.all();
}

Status AgentCore::need_home(std::string_view call) const { return home_.need(call, name_); }

Status AgentCore::need_backend(std::string_view call) const {
  HAWSER_TRY(need_home(call));
  if (has_backend()) return {};
  return refusal(NixlCode::kBackend, call, base::format("agent '{}' has no backend yet", name_))
      .with_advice("create_backend comes first");
}

Result<BackendMask> AgentCore::backends_in(std::string_view call, const OptArgs* opt) const {
  if (opt == nullptr || opt->backends.empty()) return kAllBackends;
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  return backends_.named(call, opt);
}

Status AgentCore::need_remote(std::string_view call, const OptArgs* opt) const {
  HAWSER_TRY(need_home(call));
  HAWSER_TRY_ASSIGN(const BackendMask mask, backends_in(call, opt));
  if (!has_backend() || (mask & backends_.remote()) != 0) return {};
  return refusal(NixlCode::kBackend, call,
                 mask == kAllBackends ? base::format("agent '{}' has no backend that reaches other agents", name_)
                                      : "none of the backends in the options reaches other agents")
      .with_advice("create the backend UCX, and name it or none");
}

Backend AgentCore::first_of(BackendMask mask) const {
  if (Backend first = backends_.first(mask); first.agent() != nullptr) return first;
  const std::lock_guard lock(mutex_);  // Of calls that asked for their home before.
  return backends_.first_of(mask);
}

Status AgentCore::register_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "register_mem";
  HAWSER_TRY(need_home(kCall));
  // To open files and to adopt pages takes long, and other calls need not wait for it; registrations wait for each
  // other, so nothing comes between what is checked and what is booked.
  const std::lock_guard making_lock(making_mutex_);
  BackendMask mask = 0;
  std::map<std::uint64_t, FileId> files;
  {
    const std::lock_guard lock(mutex_);
    HAWSER_TRY_ASSIGN(mask, backends_.takers(kCall, list.type(), opt));
    if (list.type() == MemType::kFile) files = book_.files_of(list);
  }
  SpotMaker maker(kCall, *agent_, list.type(), std::move(files));
  {
    const backend::AreaSurvey survey(
        backend::AreaDetail::kFlags);     // One look at the process, where regions are adopted.
    HAWSER_TRY(maker.make(list.span()));  // All or nothing.
  }
  std::vector<LocalSpot> spots = maker.take();
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Desc& desc = list.span()[i];
    book_.add(list.type(), desc, std::move(spots[i]), mask);
    if (exporter_) exporter_->registered(book_desc(list.type(), desc).len);
  }
  return {};
}

template <typename Closing>
void AgentCore::take_spots(std::string_view call, const RegDescList& list, std::span<const RegDesc> some,
                           BackendMask mask, Closing* closing, Status* answer) {
  const std::lock_guard lock(mutex_);
  for (const RegDesc& desc : some) {
    std::optional<LocalBook::Entry> entry;
    if (!book_.take(list.type(), desc, mask, &entry)) {
      *answer = refusal(NixlCode::kNotFound, call,
                        base::format("descriptor {} is not registered (any more)", &desc - list.span().data()));
    }
    if (exporter_ && entry) exporter_->deregistered(entry->len);
    if (entry) closing->push_back(std::move(entry->range));
  }
}

Status AgentCore::deregister_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "deregister_mem";
  HAWSER_TRY(need_home(kCall));
  HAWSER_TRY_ASSIGN(const BackendMask mask, backends_in(kCall, opt));
  {
    const std::lock_guard lock(mutex_);
    HAWSER_TRY(book_.check(kCall, list, mask));
  }
  Status answer, closed;
  const backend::AreaSurvey survey(backend::AreaDetail::kPlain);  // One look at the process, too, to give pages back.
  for (auto rest = list.span(); !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    const auto some = rest.first(std::min(kRegionsAtOnce, rest.size()));
    base::SmallVector<LocalSpot, kFewClosing> closing;
    closing.reserve(some.size());
    take_spots(kCall, list, some, mask, &closing, &answer);
    // The caller frees the memory next, so what still uses it must be over.
    const Status status = close_all(closing, kCall);
    if (closed.ok()) closed = status;
  }
  return answer.ok() ? closed : answer;
}

Status AgentCore::close_all(std::span<LocalSpot> closing, std::string_view call) {
  base::SmallVector<std::shared_ptr<agent::LocalRegion>, kFewClosing> regions;
  regions.reserve(closing.size());
  for (LocalSpot& spot : closing) {
    if (spot.region) regions.push_back(std::move(spot.region));
  }
  if (regions.empty()) return {};
  const Status status = agent::inner::close_regions(*agent_, regions, kRegionCloseTimeout);
  return status.ok() ? status : refusal(NixlCode::kBackend, call, "the memory is in use", status);
}

Result<QueryResponses> AgentCore::query_mem(const RegDescList& list, const OptArgs* opt) const {
  constexpr std::string_view kCall = "query_mem";
  HAWSER_TRY(backends_in(kCall, opt).status());
  if (opt == nullptr || opt->backends.size() != 1) {
    return refusal(NixlCode::kInvalidParam, kCall, "the options must name exactly one backend");
  }
  const std::string& name = opt->backends.front().name();
  if (list.type() != MemType::kFile || !takes(*find_plugin(name), MemType::kFile)) {
    return refusal(NixlCode::kNotSupported, kCall,
                   base::format("{} knows nothing of {} beyond its registration", name, to_string(list.type())));
  }
  QueryResponses answers;
  for (const RegDesc& desc : list) {
    Result<std::optional<Params>> answer = query_file_desc(desc);
    if (!answer) {
      return refusal(NixlCode::kBackend, kCall, base::format("descriptor {}", answers.size()), answer.error());
    }
    answers.push_back(*std::move(answer));
  }
  return answers;
}

Result<std::string> AgentCore::metadata(std::string_view call, const RegDescList* only, const OptArgs* opt) const {
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  HAWSER_TRY_ASSIGN(BackendMask mask, backends_.named(call, opt));
  mask &= backends_.remote();
  if (mask == 0) return refusal(NixlCode::kInvalidParam, call, "the agent has no backend that reaches others");
  if (only == nullptr) {
    return encode_blob(name_, true, book_.entries(mask),
                       [&](std::string* out) { return agent::inner::append_card(*agent_, out); });
  }
  std::vector<std::uint32_t> indices;
  HAWSER_TRY_ASSIGN(const BlobEntries entries, book_.entries(call, *only, mask, &indices));
  // As in NIXL: a part of no descriptors is the connection's data; one of some has it where that was asked for.
  const bool introduces = only->empty() || (opt != nullptr && opt->include_connection);
  return encode_blob(name_, introduces, entries,
                     [&](std::string* out) { return agent::inner::append_card(*agent_, indices, out); });
}

Result<std::string> AgentCore::load(std::string_view bytes, const std::function<bool()>* is_wanted,
                                    std::string_view label) {
  constexpr std::string_view kCall = "load_remote_md";
  HAWSER_TRY_ASSIGN(const Blob blob, decode_blob(bytes));
  HAWSER_TRY(need_backend(kCall));
  Result<wire::Card> card = wire::decode_card(base::as_bytes(blob.card));
  if (!card) return refusal(NixlCode::kMismatch, kCall, "the card is refused", card.error());
  if (card->name != blob.agent) {
    return refusal(NixlCode::kMismatch, kCall,
                   base::format("the metadata of agent '{}' holds the card of '{}'", blob.agent, card->name));
  }
  HAWSER_TRY_ASSIGN(const RemoteCopy copy, copy_of(kCall, blob, *card));
  await_end(blob.agent, *card);
  const std::lock_guard lock(mutex_);
  if (is_wanted != nullptr && !(*is_wanted)()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, blob.agent));
  }
  if (blob.agent == name_) return refusal(NixlCode::kInvalidParam, kCall, "this is the agent's own metadata");
  if (!blob.introduces && !remotes_.knows(blob.agent)) {
    return refusal(NixlCode::kNotFound, kCall,
                   base::format("agent '{}' is not known, and this part has no connection", blob.agent))
        .with_advice("load its metadata first, or have it send this part with the connection's data");
  }
  HAWSER_TRY(agent::inner::usable(*agent_, "add_peer"));
  Result<Peer> peer = agent::inner::take_anew(*agent_, *std::move(card));
  if (!peer) return refusal(NixlCode::kMismatch, kCall, "the card is refused", peer.error());
  HAWSER_TRY(remotes_.enter(kCall, blob.agent, *std::move(peer), copy, label));
  return std::string(blob.agent);
}

void AgentCore::await_end(std::string_view name, const wire::Card& younger) {
  std::optional<Peer> known;
  {
    const std::lock_guard lock(mutex_);
    known = remotes_.last_peer(name);
  }
  const auto is_up = [&] { return known->state() == PeerState::kUp; };
  const bool is_older = known && agent::inner::incarnation_of(*known) != younger.incarnation &&
                        agent::inner::born_of(*known) < younger.born;
  if (!is_older || !is_up()) return;
  (void)agent::inner::wait_until(
      *agent_, [&] { return !is_up(); }, agent::inner::now(*agent_) + kNoticeMax);
}

Result<Peer> AgentCore::need_peer(std::string_view call, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (agent_ && name == name_) return agent_->self();
  const Remote* const remote = remotes_.find(name);
  if (remote != nullptr) return remote->peer;
  return unknown_agent(call, name).with_advice("load_remote_md with the metadata of that agent");
}

Status AgentCore::current(std::string_view call, const Peer& peer) {
  HAWSER_TRY(need_home(call));
  if (peer.is_self()) return {};
  const std::lock_guard lock(mutex_);
  return remotes_.current(call, peer);
}

bool AgentCore::check(std::string_view name, const XferDescList* list) {
  if (!need_home("check_remote_md").ok()) return false;
  if (has_backend()) poll_at_times();  // A peer that died is found out by who asks for it, too.
  const std::lock_guard lock(mutex_);
  // As in NIXL, an agent knows itself once it has memory.
  if (name == name_) return !book_.book().entries().empty() && has_all(book_.book(), list);
  const Remote* const remote = remotes_.find(name);
  return remote != nullptr && has_all(remote->book, list);
}

Status AgentCore::invalidate(std::string_view name) {
  constexpr std::string_view kCall = "invalidate_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (name == name_) return refusal(NixlCode::kInvalidParam, kCall, "an agent cannot forget itself");
  return remotes_.forget(kCall, name);
}

Status AgentCore::invalidate_one(std::string_view name, const base::Id128& incarnation) {
  constexpr std::string_view kCall = "invalidate_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  return remotes_.forget_one(kCall, name, incarnation);
}

Status AgentCore::drop(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted) {
  constexpr std::string_view kCall = "fetch_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (!is_wanted()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, name));
  }
  return remotes_.drop(kCall, name, label);
}

std::vector<std::string> AgentCore::remote_names() const {
  const std::lock_guard lock(mutex_);
  return remotes_.names();
}

Status AgentCore::connect(std::string_view name) {
  constexpr std::string_view kCall = "make_connection";
  HAWSER_TRY(need_home(kCall));
  HAWSER_TRY_ASSIGN(const Peer peer, need_peer(kCall, name));
  if (peer.is_self()) return {};
  const Status status = peer.connect(kConnectTimeout);
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, base::format("to agent '{}'", name), status);
}

Status AgentCore::notify(std::string_view name, std::string_view text) {
  constexpr std::string_view kCall = "gen_notif";
  HAWSER_TRY(need_backend(kCall));
  HAWSER_TRY_ASSIGN(const Peer peer, need_peer(kCall, name));
  HAWSER_TRY(NotificationSender::check_length(kCall, text));
  const Status status = sender_.send(
      peer, text, [this](Duration most) { (void)agent_->wait(most); }, [this] { advance(); });
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, base::format("to agent '{}'", name), status);
}

void AgentCore::leave_long(LongRequest* request) {
  if (long_requests_.empty()) return;
  if (!need_home("release_xfer_req").ok()) return;  // The lock may be held by a thread that is not in this process.
  long_requests_.leave(request);
}

void AgentCore::advance_all() {
  if (need_home("get_xfer_status").ok()) long_requests_.look_at_all();
}

bool AgentCore::may_have_notifications() const {
  if (!need_backend("get_notifs").ok() || !is_at_rest()) return true;
  return inbox_.may_have(*agent_);
}

Status AgentCore::take_notifications(NotificationMap& into) {
  HAWSER_TRY(need_backend("get_notifs"));
  poll();
  advance();
  inbox_.take(*agent_, into);
  return {};
}

template <typename Row>
Status AgentCore::resolve_of(std::string_view call, std::string_view name, std::span<const Row> list,
                             ResolvedList& resolved) {
  if (name.empty()) return resolve_local(call, book_.book(), list, resolved);
  if (agent_ && name == name_) {
    resolved.peer = agent_->self();
    return resolve_own(call, book_.book(), list, resolved);
  }
  const Remote* const remote = remotes_.find(name);
  if (remote == nullptr) return unknown_agent(call, name);
  resolved.peer = remote->peer;
  HAWSER_TRY(resolve_remote(call, remote->book, list, resolved));
  resolved.backends &= backends_.remote();
  return {};
}

template <typename Row>
Status AgentCore::resolve_list(std::string_view call, std::string_view name, MemType type, std::span<const Row> list,
                               const OptArgs* opt, ResolvedList& resolved) {
  if (list.empty()) return refusal(NixlCode::kInvalidParam, call, "the list is empty");
  if (list.size() > kBlocksMax) return refusal(NixlCode::kInvalidParam, call, "the list has more than 2^31 entries");
  if (list.size() >= kRoomFrom) resolved.rows.reuse(rooms_.take());
  HAWSER_TRY_ASSIGN(resolved.backends, backends_.named(call, opt));
  resolved.type = type;
  HAWSER_TRY(resolve_of(call, name, list, resolved));
  if (resolved.backends == 0) return refusal(NixlCode::kNotFound, call, "no backend has all of the list");
  return {};
}

template <typename Row>
Result<PreparedList> AgentCore::prepare_any(std::string_view call, std::string_view name, MemType type,
                                            std::span<const Row> list, const OptArgs* opt,
                                            const std::shared_ptr<AgentCore>& self) {
  HAWSER_TRY(need_home(call));
  auto prepared = std::make_shared<PreparedCore>(self);
  const std::lock_guard lock(mutex_);
  HAWSER_TRY(resolve_list(call, name, type, list, opt, *prepared));
  return PreparedList(std::move(prepared));
}

Status AgentCore::prepare_pair(std::string_view call, const XferDescList& local, std::string_view name,
                               const XferDescList& remote, const OptArgs* opt, PreparedPair& pair) {
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  HAWSER_TRY(resolve_list(call, {}, local.type(), local.span(), opt, pair.local));
  HAWSER_TRY(resolve_list(call, name, remote.type(), remote.span(), opt, pair.remote));
  const BackendMask can = movers(local.type(), remote.type(), pair.remote.peer->is_self());
  if ((pair.local.backends & pair.remote.backends & can) != 0) return {};
  return refusal(NixlCode::kNotFound, call, "no backend moves between the memories of both sides");
}

Result<PreparedList> AgentCore::prepare(std::string_view call, std::string_view name, MemType type,
                                        std::span<const Desc> list, const OptArgs* opt,
                                        const std::shared_ptr<AgentCore>& self) {
  return prepare_any(call, name, type, list, opt, self);
}

Result<PreparedList> AgentCore::prepare(std::string_view call, std::string_view name, MemType type,
                                        std::span<const StridedDesc> rows, const OptArgs* opt,
                                        const std::shared_ptr<AgentCore>& self) {
  return prepare_any(call, name, type, rows, opt, self);
}

std::optional<JoinedLists> AgentCore::join_lists(const XferDescList& local, std::string_view name,
                                                 const XferDescList& remote, const OptArgs* opt) {
  if (local.size() != remote.size() || local.empty() || local.size() > plan::kPairsMax) return std::nullopt;
  if (!need_home("create_xfer_req").ok()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Remote* const theirs = name == name_ ? nullptr : remotes_.find(name);
  const Result<BackendMask> wanted = backends_.named("create_xfer_req", opt);
  if (theirs == nullptr || !wanted) return std::nullopt;
  const BackendMask mask = *wanted & movers(local.type(), remote.type(), false);
  return compat::join_lists(book_.book(), local, *theirs, remote, mask);
}

std::string AgentCore::describe() const {
  if (const Status home = need_home("describe"); !home.ok()) return home.to_string();
  const std::lock_guard lock(mutex_);
  std::string peers;
  for (const std::string& name : remotes_.names()) peers.append(peers.empty() ? "" : ", ").append(name);
  return base::format("agent {}: backends [{}], {} registrations, remotes [{}]", name_, backends_.names(),
                      book_.book().entries().size(), peers);
}

}  // namespace compat
HAWSER_NAMESPACE_END
