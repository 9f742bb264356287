#include "directory/desk.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hawser::directory {
namespace {

/// Given when there is no room for a ticket of its own; every poll of it answers kBusy.
constexpr Ticket kBusyTicket = UINT64_MAX;

Status busy() {
  return Status(Code::kBusy, base::format("directory: {} requests are not yet answered, or {} tickets are in use",
                                          kRequestsMax, kTicketsMax))
      .with_advice("poll or cancel earlier tickets, then try again");
}

Status check(const Request& request) {
  const auto invalid = [](std::string text, std::string_view advice) {
    return Status(Code::kInvalid, std::move(text)).with_advice(advice);
  };
  if (request.key.size() > kDirectoryKeyMax) {
    return invalid(base::format("directory: a key of {} bytes", request.key.size()),
                   base::format("keys have at most {} bytes", kDirectoryKeyMax));
  }
  if (request.lists()) return {};
  if (request.key.empty()) return invalid("directory: an empty key", "give a key of at least one byte");
  if (request.value.size() > kDirectoryValueMax) {
    return invalid(base::format("directory: a value of {} bytes under \"{}\"", request.value.size(), request.key),
                   base::format("values have at most {} bytes", kDirectoryValueMax));
  }
  if (request.options.lease < Duration::zero()) {
    return invalid(base::format("directory: a lease of {} ns under \"{}\"", request.options.lease.count(), request.key),
                   "a lease is positive, or zero for none");
  }
  if (request.options.tied && request.options.lease > Duration::zero()) {
    return invalid(base::format("directory: \"{}\" is tied and has a lease", request.key), "give one of the two");
  }
  return {};
}

}  // namespace

Ticket Desk::submit(Request request) {
  Status wrong = check(request);
  base::MutexLock lock(mutex_);
  if (tickets_.size() >= kTicketsMax || open_ >= kRequestsMax) return kBusyTicket;
  request.ticket = next_ticket_++;
  State& state = tickets_[request.ticket];
  if (wrong.ok()) {
    if (request.kind == Request::Kind::kWatch) ++watches_;
    state.is_watch = request.kind == Request::Kind::kWatch;
    state.is_open = true;
    ++open_;
    waiting_.push_back(std::move(request));
  } else {
    state.answer = DirectoryEvent{.ticket = request.ticket, .status = std::move(wrong), .entries = {}};
  }
  return next_ticket_ - 1;
}

void Desk::settle(State& state) {
  if (std::exchange(state.is_open, false)) --open_;
}

std::optional<Request> Desk::take() {
  base::MutexLock lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  Request request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

std::optional<Request> Desk::take_listing() {
  base::MutexLock lock(mutex_);
  if (waiting_.empty() || !waiting_.front().lists()) return std::nullopt;
  Request request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

void Desk::put_back(Request request) {
  base::MutexLock lock(mutex_);
  if (tickets_.contains(request.ticket)) waiting_.push_front(std::move(request));
}

bool Desk::has_requests() const {
  base::MutexLock lock(mutex_);
  return !waiting_.empty();
}

bool Desk::has_watches() const {
  base::MutexLock lock(mutex_);
  return watches_ != 0;
}

void Desk::answer(const Request& request, Status status, std::vector<DirectoryEntry> entries) {
  base::MutexLock lock(mutex_);
  const auto at = tickets_.find(request.ticket);
  if (at == tickets_.end()) return;
  settle(at->second);
  if (std::exchange(at->second.is_watch, false)) --watches_;  // A watch that failed to begin is over.
  at->second.answer =
      DirectoryEvent{.ticket = request.ticket, .status = std::move(status), .entries = std::move(entries)};
}

void Desk::answer_listing(const Request& request, const SharedStore& store) {
  base::MutexLock lock(mutex_);
  const auto at = tickets_.find(request.ticket);
  if (at == tickets_.end()) return;
  settle(at->second);
  DirectoryEvent& event = at->second.answer.emplace();
  event.ticket = request.ticket;
  base::MutexLock store_lock(store.mutex);
  event.entries = store.store.list(request.key);
  at->second.told = store.store.revision();
  at->second.prefix = request.key;
  at->second.begun = true;
}

void Desk::cancel(Ticket ticket) {
  base::MutexLock lock(mutex_);
  const auto at = tickets_.find(ticket);
  if (at == tickets_.end()) return;
  settle(at->second);
  if (at->second.is_watch) --watches_;
  tickets_.erase(at);
  std::erase_if(waiting_, [&](const Request& request) { return request.ticket == ticket; });
}

bool Desk::is_wanted(Ticket ticket) const {
  base::MutexLock lock(mutex_);
  const auto at = tickets_.find(ticket);
  return at != tickets_.end() && (at->second.is_watch || !at->second.answer);
}

std::vector<std::string> Desk::watched() const {
  base::MutexLock lock(mutex_);
  std::vector<std::string> prefixes;
  for (const auto& [ticket, state] : tickets_) {
    if (state.is_watch && state.begun) prefixes.push_back(state.prefix);
  }
  return prefixes;
}

std::optional<DirectoryEvent> Desk::poll(Ticket ticket, const SharedStore& store) {
  if (ticket == kBusyTicket) return DirectoryEvent{.ticket = ticket, .status = busy(), .entries = {}};
  base::MutexLock lock(mutex_);
  const auto at = tickets_.find(ticket);
  if (at == tickets_.end()) return std::nullopt;
  State& state = at->second;
  if (!state.answer) return state.is_watch && state.begun ? news(ticket, state, store) : std::nullopt;
  DirectoryEvent event = *std::exchange(state.answer, std::nullopt);
  if (!state.is_watch) tickets_.erase(at);
  return event;
}

std::optional<DirectoryEvent> Desk::news(Ticket ticket, State& state, const SharedStore& store) {
  base::MutexLock store_lock(store.mutex);
  if (store.store.revision() == state.told) return std::nullopt;
  Store::Changes changes = store.store.changes(state.prefix, state.told, kChangesPerEvent);
  state.told = changes.through;
  if (changes.lost) return DirectoryEvent{.ticket = ticket, .status = {}, .entries = store.store.list(state.prefix)};
  std::optional<DirectoryEvent> event;
  if (!changes.erased.empty()) {
    event = DirectoryEvent{
        .kind = DirectoryEvent::Kind::kErased, .ticket = ticket, .status = {}, .entries = std::move(changes.erased)};
  }
  if (!changes.changed.empty()) {
    state.answer = std::exchange(event, std::nullopt);  // One kind now, the other at the next poll.
    event = DirectoryEvent{
        .kind = DirectoryEvent::Kind::kChanged, .ticket = ticket, .status = {}, .entries = std::move(changes.changed)};
  }
  return event;
}

}  // namespace hawser::directory
