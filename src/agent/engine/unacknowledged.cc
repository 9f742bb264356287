#include "agent/engine/unacknowledged.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "agent/peer_core.h"
#include "base/planted.h"
#include "wire/session.h"

namespace hawser::agent {
namespace {

using Counts = std::map<std::uint32_t, std::uint64_t>;

/// Nothing: it is no message on a channel.
std::optional<Adrift> look_at(std::span<const std::byte> message) {
  const Result<wire::Envelope> envelope = wire::open_envelope(message);
  if (!envelope || envelope->kind != wire::SessionKind::kSend) return std::nullopt;
  const Result<wire::Send> send = wire::decode_send(*envelope);
  if (!send) return std::nullopt;
  return Adrift{.place = send->place, .channel = send->channel};
}

/// The path that carries messages, if it is one that keeps nothing for sending again.
const PathEntry* lossless_control(const Session& session) {
  if (session.control_serial == 0 || !session.links.lossless()) return nullptr;
  const auto found = std::ranges::find(session.paths, session.control_serial, &PathEntry::serial);
  return found == session.paths.end() ? nullptr : &*found;
}

/// The peer told by its greeting that it has those up to `acknowledged`.
bool is_untaken(const Session& session, const Adrift& message) {
  return message.place.seq > session.links.out(message.place.link).acknowledged();
}

/// By channel: messages that have left the sender's hands and that the peer is not known to have. Nothing: any may be.
std::optional<Counts> untaken_of(const Session& session) {
  Counts counts;
  if (!base::planted(base::Planted::kKeptForgotten)) {
    session.links.each_kept([&counts](std::span<const std::byte> message) {
      if (const auto found = look_at(message)) ++counts[found->channel];
    });
  }
  if (session.adrift != nullptr) {
    if (!session.adrift->is_known) return std::nullopt;
    for (const Adrift& each : session.adrift->messages) counts[each.channel] += is_untaken(session, each) ? 1 : 0;
  }
  const PathEntry* const control = lossless_control(session);
  if (control == nullptr || base::planted(base::Planted::kUntakenForgotten)) return counts;
  const bool is_known = control->path->each_untaken([&](std::span<const std::byte> begin) {
    const auto found = look_at(begin);
    if (found && is_untaken(session, *found)) ++counts[found->channel];
  });
  return is_known ? std::optional(std::move(counts)) : std::nullopt;
}

std::uint64_t acknowledged_by(const std::optional<Counts>& untaken, std::uint32_t channel,
                              const ChannelCredits::Numbered& numbered) {
  if (!untaken) return 0;
  const auto found = untaken->find(channel);
  const std::uint64_t behind = numbered.left + (found == untaken->end() ? 0 : found->second);
  return behind < numbered.last ? numbered.last - behind : 0;
}

/// The link has it, to send it again.
bool is_kept(const Session& session, const wire::Place& place) {
  const proto::LinkSender& link = session.links.out(place.link);
  return place.seq >= link.next_seq() - link.kept();
}

/// Nothing: it has no number.
std::optional<wire::Place> place_of(std::span<const std::byte> message) {
  const Result<wire::Envelope> envelope = wire::open_envelope(message);
  if (!envelope || !wire::is_reliable(envelope->kind)) return std::nullopt;
  return envelope->place;
}

/// What a lost path does not hold any more the peer took, though a Welcome that was under way may not say so. False:
/// the path does not know.
bool acknowledge_taken(Session& session, const backend::Path& lost) {
  proto::LinkSet::Numbers first;  // That the peer did not take, of each link.
  for (std::size_t each = 0; each < wire::kLinks; ++each) {
    const proto::LinkSender& link = session.links.out(wire::Link::at(each));
    first[each] = link.next_seq() - link.kept();
  }
  const bool is_known = lost.each_untaken([&first](std::span<const std::byte> begin) {
    if (const auto place = place_of(begin)) {
      first[place->link.index()] = std::min(first[place->link.index()], place->seq);
    }
  });
  for (std::size_t each = 0; is_known && each < wire::kLinks; ++each) {
    if (first[each] > 1) static_cast<void>(session.links.on_ack({wire::Link::at(each), first[each] - 1}));
  }
  return is_known;
}

/// The last messages of one link that a path shows, without a gap between them.
struct Run {
  wire::Place first;
  proto::Messages messages;
  void add(const wire::Place& place, std::span<const std::byte> message) {
    if (messages.empty() || place.seq != first.seq + messages.size()) {
      messages.clear();
      first = place;
    }
    messages.emplace_back(message.begin(), message.end());
  }
  void drop_first() {
    messages.erase(messages.begin());
    ++first.seq;
  }
};

}  // namespace

std::vector<Acknowledged> acknowledged_of(const Session& session) {
  std::vector<Acknowledged> all;
  const std::vector<std::pair<std::uint32_t, ChannelCredits::Numbered>> numbered =
      session.peer->use().channels.numbered();
  if (numbered.empty()) return all;
  const std::optional<Counts> untaken = untaken_of(session);
  all.reserve(numbered.size());
  for (const auto& [channel, its] : numbered) {
    all.push_back({.channel = channel, .number = acknowledged_by(untaken, channel, its)});
  }
  return all;
}

std::uint64_t acknowledged_on(const Session& session, std::uint32_t channel) {
  const ChannelCredits::Numbered numbered = session.peer->use().channels.numbered(channel);
  return numbered.last == 0 ? 0 : acknowledged_by(untaken_of(session), channel, numbered);
}

void note_adrift(Session& session) {
  const PathEntry* const control = lossless_control(session);
  if (control == nullptr || base::planted(base::Planted::kUntakenForgotten)) return;
  auto book = session.adrift == nullptr ? std::make_unique<AdriftBook>() : std::move(session.adrift);
  const bool is_known = control->path->each_untaken([&](std::span<const std::byte> begin) {
    const auto found = look_at(begin);
    if (found && is_untaken(session, *found) && !is_kept(session, found->place)) book->messages.push_back(*found);
  });
  book->is_known = book->is_known && is_known;
  if (!book->messages.empty() || !book->is_known) session.adrift = std::move(book);
}

void forget_adrift(Session& session) { session.adrift.reset(); }

void keep_untaken(Session& session) {
  const PathEntry* const control = lossless_control(session);
  if (control == nullptr || !acknowledge_taken(session, *control->path)) return;
  std::map<std::size_t, Run> runs;  // By link.
  static_cast<void>(control->path->each_whole_untaken([&](std::span<const std::byte> message) {
    const std::optional<wire::Place> place = place_of(message);
    if (!place || place->seq <= session.links.out(place->link).acknowledged()) return;
    runs[place->link.index()].add(*place, wire::without_ack(message));
  }));
  for (auto& [link, run] : runs) {
    if (base::planted(base::Planted::kReplayBeginsLate)) run.drop_first();
    // Where they do not follow upon each other, some are gone, or the peer wrote on our memory.
    session.links.keep_again(run.first, run.messages);
  }
}

}  // namespace hawser::agent
