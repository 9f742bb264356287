#include "runtime/landings.h"

#include <algorithm>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;
using wire::RuntimeKind;

void put(const Receive& receive, std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const std::span<std::byte> into = receive.run(offset);
    const std::size_t size = std::min(into.size(), from.size());
    base::copy_cached(into.data(), from.data(), size);
    offset += size;
    from = from.subspan(size);
  }
}

void Landings::want(agent::Session& session, MailDesk& desk, Receive& receive, std::uint64_t id, std::uint64_t address,
                    Instant now) {
  receive.asked_id = id;
  receive.landing = next_++;
  const bool is_fetched = address != 0 && receive.got.bytes != 0 && carrier_.can_fetch(session);
  if (is_fetched) {
    receive.address = address;
    desk.fetches.push_back(receive);
  } else if (!lend(session, desk, receive)) {
    desk.say({.kind = RuntimeKind::kGrant, .id = id, .landing = receive.landing});
  }
  carrier_.serve(session, now);
  if (receive.got.bytes == 0) return end_(receive, {});
  desk.landing.emplace(receive.landing, &receive);
}

/// False: it comes in parts.
bool Landings::lend(agent::Session& session, MailDesk& desk, Receive& receive) {
  if (receive.got.bytes < kLendMin || receive.pieces != nullptr || !carrier_.lends(session)) return false;
  const Result<wire::Lent> lent = carrier_.lend(session, {receive.data, receive.got.bytes});
  if (!lent) return false;
  receive.lent = *lent;
  desk.say({.kind = RuntimeKind::kLend, .id = receive.asked_id, .landing = receive.landing, .lent = *lent});
  return true;
}

void Landings::take_back(Receive& receive) {
  if (receive.lent && !planted(Planted::kLentKept)) carrier_.take_back(*receive.lent);
  receive.lent.reset();
}

void Landings::forget(agent::Session& session, MailDesk& desk, Receive& receive, Instant now) {
  desk.landing.erase(receive.landing);
  take_back(receive);
  if (!receive.fetch_hook.is_linked()) return;
  desk.say({.kind = RuntimeKind::kFetched, .id = receive.asked_id, .landing = receive.landing});  // It waits for one.
  carrier_.serve(session, now);
}

std::vector<Receive*> Landings::of_world(const MailDesk& desk, std::uint64_t world) {
  std::vector<Receive*> all;
  for (const auto& [id, receive] : desk.landing) {
    if (receive->pattern.world == world) all.push_back(receive);
  }
  std::ranges::sort(all, {}, &Receive::landing);
  return all;
}

bool Landings::fetch_next(agent::Session& session, MailDesk& desk) {
  if (desk.fetches.empty()) return false;
  fetch_part(session, desk, *desk.fetches.front());
  carrier_.serve(session, carrier_.now());
  return true;
}

/// What cannot be read is granted, and comes in parts.
void Landings::fetch_part(agent::Session& session, MailDesk& desk, Receive& receive) {
  const std::span<std::byte> free = receive.run(receive.received);
  const std::uint64_t left = std::min<std::uint64_t>(receive.got.bytes - receive.received, kFetchPart);
  const std::span<std::byte> into = free.first(std::min<std::uint64_t>(left, free.size()));
  const bool is_read = carrier_.fetch(session, receive.address + receive.received, into);
  receive.fetch_hook.unlink();
  if (is_read) receive.received += into.size();
  if (is_read && receive.received < receive.got.bytes) return desk.fetches.push_back(receive);
  if (!is_read) {
    receive.received = 0;
    receive.address = 0;
  }
  const RuntimeKind kind = is_read ? RuntimeKind::kFetched : RuntimeKind::kGrant;
  desk.say({.kind = kind, .id = receive.asked_id, .landing = receive.landing});
  if (is_read && planted(Planted::kFetchedIsTaken)) {
    desk.landing.erase(receive.landing);
    end_(receive, {});
  }
}

Status Landings::on_part(MailDesk& desk, const wire::RuntimeMessage& message) {
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) return {};
  Receive& receive = *found->second;
  if (receive.address != 0 || receive.lent)
    return Status(Code::kCorrupt, "a peer sends a part of a message that it was not granted");
  if (message.offset != receive.received || message.body.size() > receive.got.bytes - receive.received) {
    return Status(Code::kCorrupt, "parts of a message do not follow each other");
  }
  put(receive, receive.received, message.body);
  receive.received += message.body.size();
  if (receive.received < receive.got.bytes && !planted(Planted::kPartEndsReceive)) return {};
  desk.landing.erase(found);
  end_(receive, {});
  return {};
}

/// The sender's memory was the message's until the sender had heard that all of it was read.
Status Landings::on_taken(MailDesk& desk, const wire::RuntimeMessage& message) {
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) return {};
  Receive& receive = *found->second;
  if (receive.address == 0 || receive.received < receive.got.bytes || receive.fetch_hook.is_linked()) {
    return Status(Code::kCorrupt, "a peer says of a message that it was taken, which was not read");
  }
  desk.landing.erase(found);
  end_(receive, {});
  return {};
}

Status Landings::on_written(MailDesk& desk, const wire::RuntimeMessage& message) {
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) return {};
  Receive& receive = *found->second;
  if (!receive.lent)
    return Status(Code::kCorrupt, "a peer says of a message that it was written, for which it was lent nothing");
  receive.received = receive.got.bytes;
  desk.landing.erase(found);
  take_back(receive);
  end_(receive, {});
  return {};
}

/// The sender's message ends with the word that it was wanted no more.
Status Landings::on_unwritten(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message,
                              Instant now) {
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) {
    desk.say({.kind = RuntimeKind::kFetched, .id = message.id, .landing = message.landing});
  } else {
    Receive& receive = *found->second;
    if (!receive.lent || receive.asked_id != message.id) {
      return Status(Code::kCorrupt, "a peer says of a message that it is not written, for which it was lent nothing");
    }
    take_back(receive);
    desk.say({.kind = RuntimeKind::kGrant, .id = message.id, .landing = message.landing});
  }
  carrier_.serve(session, now);
  return {};
}

void Landings::on_gone(MailDesk& desk, const wire::RuntimeMessage& message, const Status& why) {
  const auto granted =
      std::ranges::find_if(desk.landing, [&](const auto& entry) { return entry.second->asked_id == message.id; });
  if (granted == desk.landing.end()) return;
  Receive& receive = *granted->second;
  desk.landing.erase(granted);
  take_back(receive);
  end_(receive, why);
}

}  // namespace hawser::runtime
