#include "agent/engine/strangers.h"

#include <algorithm>
#include <utility>

namespace hawser::agent {
namespace {

/// The first of them that is open speaks to addresses that people type.
constexpr std::string_view kTypedBackends[] = {"tcp", "quic"};

}  // namespace

Result<std::uint64_t> Strangers::open(std::string_view address, std::string_view name, const AdmissionTicket& ticket,
                                      Instant deadline, Instant now) {
  for (const std::string_view backend : kTypedBackends) {
    const auto found = std::ranges::find(ports_.all(), backend, &OpenBackend::name);
    if (found == ports_.all().end()) continue;
    Result<backend::Path*> path = found->port->open_path({.peer = name,
                                                          .incarnation = {},
                                                          .address = address,
                                                          .supersedes = {},
                                                          .deadline = deadline,
                                                          .admission = ticket.admission,
                                                          .public_key = ticket.public_key},
                                                         now);
    if (!path) return path.error();
    all_.push_back({.number = next_number_++,
                    .backend = static_cast<std::size_t>(found - ports_.all().begin()),
                    .path = *path,
                    .name = std::string(name),
                    .peer = {},
                    .failure = {}});
    return all_.back().number;
  }
  return Status(Code::kUnsupported, "an address is asked over tcp or quic, and neither is open in this agent");
}

Result<std::shared_ptr<PeerCore>> Strangers::take(std::uint64_t number) const {
  const auto found = std::ranges::find(all_, number, &Stranger::number);
  if (found == all_.end()) return Status(Code::kDisconnected, "the agent was closed meanwhile");
  if (!found->failure.ok()) return found->failure;
  return found->peer;
}

void Strangers::drop(std::uint64_t number) {
  std::erase_if(all_, [&](const Stranger& stranger) {
    if (stranger.number != number) return false;
    if (stranger.path != nullptr) ports_[stranger.backend].port->release_path(stranger.path);
    return true;
  });
}

void Strangers::drop_all() {
  for (const Stranger& stranger : all_) {
    if (stranger.path != nullptr) ports_[stranger.backend].port->release_path(stranger.path);
  }
  all_.clear();
}

Strangers::Stranger* Strangers::find(const backend::Path* path) {
  const auto found = std::ranges::find(all_, path, &Stranger::path);
  return found == all_.end() ? nullptr : &*found;
}

bool Strangers::is_theirs(const backend::Path* path) const {
  return std::ranges::find(all_, path, &Stranger::path) != all_.end();
}

void Strangers::on_up(const backend::Path* path, const Result<std::shared_ptr<PeerCore>>& met) {
  Stranger* const stranger = find(path);
  if (stranger == nullptr) return;
  stranger->path = nullptr;
  if (met) {
    stranger->peer = *met;
  } else {
    stranger->failure = met.error();
  }
}

void Strangers::on_down(const backend::Path* path, const Status& why) {
  Stranger* const stranger = find(path);
  if (stranger == nullptr) return;
  stranger->failure = why;
  stranger->path = nullptr;
}

}  // namespace hawser::agent
