// What is known of other agents.

#include <algorithm>

#include "base/format.h"
#include "base/try.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds(10);

Status unknown_agent(std::string_view call, std::string_view name) {
  return refusal(NixlCode::kNotFound, call, base::format("no metadata of agent '{}' is loaded", name))
      .with_advice("load_remote_md with the metadata of that agent");
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

/// Unless it came by another way, too.
void drop_one(Remote& remote, const Remote::Brought::value_type& one) {
  const bool is_held = std::any_of(remote.labels.begin(), remote.labels.end(),
                                   [&](const auto& label) { return label.second.contains(one); });
  if (is_held) return;
  const auto& [type, dev, addr, len] = one;
  const Desc desc{.addr = addr, .len = len, .dev = dev};
  std::optional<Book<RemoteSpot>::Entry> old;
  if (!remote.book.take(type, desc, kAllBackends, &old) || !old->range.stays) return;
  remote.book.add(type, desc, *std::move(old));
}

}  // namespace

std::optional<Peer> AgentCore::find_peer(std::string_view name) {
  if (!agent_) return std::nullopt;
  if (name == name_) return agent_->self();
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return std::nullopt;
  if (found->second.peer.state() != PeerState::kDown) return found->second.peer;
  // It died or was restarted; whoever asks again is told to load its new metadata.
  remotes_.erase(found);
  return std::nullopt;
}

Result<Peer> AgentCore::need_peer(std::string_view call, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::optional<Peer> peer = find_peer(name);
  if (!peer) return unknown_agent(call, name);
  return std::move(*peer);
}

Status AgentCore::current(std::string_view call, const Peer& peer) {
  HAWSER_TRY(need_home(call));
  if (peer.is_self()) return {};
  const std::lock_guard lock(mutex_);
  const auto found = remotes_.find(peer.name());
  if (found == remotes_.end() || found->second.peer.core() != peer.core()) {
    return refusal(NixlCode::kNotFound, call,
                   base::format("agent '{}' is gone, or its metadata was loaded anew since", peer.name()))
        .with_advice("prepare the list again");
  }
  if (peer.state() != PeerState::kDown) return {};
  remotes_.erase(found);
  return refusal(NixlCode::kRemoteDisconnect, call, base::format("agent '{}' is gone", peer.name()))
      .with_peer(peer.name())
      .with_advice("load the metadata of its successor");
}

bool AgentCore::check(std::string_view name, const XferDescList* list) {
  if (!need_home("check_remote_md").ok()) return false;
  if (has_backend()) poll_at_times();  // A peer that died is found out by who asks for it, too.
  const std::lock_guard lock(mutex_);
  // As in NIXL, an agent knows itself once it has memory.
  if (name == name_) return !book_.entries().empty() && has_all(book_, list);
  return find_peer(name) && has_all(remotes_.find(name)->second.book, list);
}

Status AgentCore::invalidate(std::string_view name, const std::function<bool()>* is_wanted) {
  constexpr std::string_view kCall = "invalidate_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (is_wanted != nullptr && !(*is_wanted)()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, name));
  }
  if (name == name_) return refusal(NixlCode::kInvalidParam, kCall, "an agent cannot forget itself");
  return let_go(kCall, name);
}

Status AgentCore::let_go(std::string_view call, std::string_view name) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return unknown_agent(call, name);
  const Peer peer = found->second.peer;
  remotes_.erase(found);
  const Status status = agent_->invalidate(peer);
  return status.ok() ? status : refusal(NixlCode::kBackend, call, "the peer is not let go", status);
}

Status AgentCore::drop(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted) {
  constexpr std::string_view kCall = "fetch_remote_md";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (!is_wanted()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, name));
  }
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return unknown_agent(kCall, name);
  Remote& remote = found->second;
  if (label.empty()) return remote.has_main ? let_go(kCall, name) : Status();  // Else a successor's labels are there.
  const auto its = remote.labels.find(label);
  if (its == remote.labels.end()) return {};
  const Remote::Brought brought = std::move(its->second);
  remote.labels.erase(its);
  if (remote.labels.empty() && !remote.has_main) return let_go(kCall, name);
  for (const auto& one : brought) drop_one(remote, one);
  return {};
}

std::vector<std::string> AgentCore::remote_names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, remote] : remotes_) names.push_back(name);
  return names;
}

Status AgentCore::connect(std::string_view name) {
  constexpr std::string_view kCall = "make_connection";
  HAWSER_TRY(need_home(kCall));
  HAWSER_TRY_ASSIGN(const Peer peer, need_peer(kCall, name));
  if (peer.is_self()) return {};
  const Status status = peer.connect(kConnectTimeout);
  return status.ok() ? status : refusal(NixlCode::kBackend, kCall, base::format("to agent '{}'", name), status);
}

}  // namespace compat
HAWSER_NAMESPACE_END
