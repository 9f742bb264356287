// The agents' messages of a path: which carrier takes them (messages.h).

#include <algorithm>
#include <utility>

#include "backend/verbs/path/path.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {

void VerbsPath::open_messages() {
  const std::uint32_t slots = shared_.options.pair.messages;
  if (slots == 0) return;
  Result<std::unique_ptr<Messages>> opened = Messages::open(shared_.lanes, slots, receives(), shared_.events, this);
  if (!opened) {
    HAWSER_LOG(shared_.context.log, kWarn, "verbs: messages to {} go by the control stream alone: {}", name_,
               opened.error().to_string());
    return;
  }
  messages_ = *std::move(opened);
}

/// Those that the peer may use for this queue pair: the one that it chose, where it opened the path.
std::vector<Gid> VerbsPath::peer_gids(const Pair& pair) const {
  if (pair.remote >= ports_.size()) return {};
  const RailPort told = rail_port(ports_[pair.remote]);
  const std::span<const Gid> all = told.all();
  if (!inbound_) return {all.begin(), all.end()};
  Gid chosen = gid_of({.bytes = pair.peer.gid, .type = ports_[pair.remote].gid_type});
  // An address may be there by both versions; it prefers the better, which is told first.
  const auto known = std::ranges::find(all, chosen.bytes, &Gid::bytes);
  return {known != all.end() ? *known : chosen};
}

/// Pairs of addresses that the opener's attempts go through, one after the other.
std::uint32_t VerbsPath::ways_of(const Pair& pair) const {
  if (pair.remote >= ports_.size()) return 1;
  const RailPort told = rail_port(ports_[pair.remote]);
  const Nic& nic = pair.qp.nic();
  const NicAddress own = nic.address();
  return static_cast<std::uint32_t>(gids_towards(own.gids, nic.port.netdev, told.all()).size() *
                                    gids_towards(told.all(), {}, own.gids).size());
}

QueuePairAttempt VerbsPath::attempt_of(const Pair& pair, std::span<const Gid> peer) const {
  QueuePairAttempt attempt{.peer = peer, .further = pair.ways.in_vain(), .mtu_max = pair.ways.mtu_max()};
  if (!inbound_ || pair.remote >= ports_.size()) return attempt;
  const RailPort told = rail_port(ports_[pair.remote]);
  const auto peers = gids_towards(told.all(), {}, pair.qp.nic().address().gids).size();
  attempt.further = pair.ways.in_vain_for_all(static_cast<std::uint32_t>(peers));
  return attempt;
}

/// A queue pair gets its receives before the peer can hear of it.
Status VerbsPath::make(Pair& pair) {
  pair.ways.begin();
  const std::vector<Gid> peer = peer_gids(pair);
  HAWSER_TRY(pair.qp.make(pair.machine.epoch(), shared_.rng, attempt_of(pair, peer)));
  if (messages_ != nullptr && is_first(pair)) HAWSER_TRY(messages_->post_receives(pair.qp, pair.lane));
  return open_immediates(pair);
}

bool VerbsPath::send_numbered(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  Pair* first = pairs_.empty() || !pairs_[0]->machine.is_ready() ? nullptr : pairs_[0].get();
  Status failed;
  const bool taken = messages_->send(first == nullptr ? nullptr : &first->qp, first == nullptr ? 0 : first->lane,
                                     *control_, link, head, body, &failed);
  // The adapter is at fault, not the caller: what was taken is sent again.
  if (!failed.ok()) {
    message_fault_ = failed;
    shared_.attention = true;
  }
  return taken;
}

std::size_t VerbsPath::on_agent_message(std::span<const std::byte> bytes, Instant now) {
  if (state_ != PathState::kUp) {
    go_down(Status(Code::kCorrupt, "the peer sent a message before the path was up").with_scope(Scope::kPath));
    return 0;
  }
  const bool numbered = bytes[0] == std::byte{wire::kNumberedMessage};
  if (numbered != (messages_ != nullptr)) {
    go_down(Status(Code::kCorrupt, "the peer's messages are not numbered as was agreed").with_scope(Scope::kPath));
    return 0;
  }
  if (!numbered) return 1;
  const Result<bool> next = messages_->on_stream(bytes);
  if (!next) {
    go_down(next.error().with_scope(Scope::kPath));
    return 0;
  }
  repost(now);
  if (messages_->has_work()) shared_.attention = true;
  return *next ? wire::kMessageHeadSize : 0;
}

void VerbsPath::on_message_completion(const Completed& completed, Instant now) {
  if (messages_ == nullptr) return;
  if (completed.kind == Completed::Kind::kSent) {
    messages_->on_sent(completed.place);
    return;
  }
  if (Status status = messages_->on_receive(completed.place, completed.bytes); !status.ok()) {
    go_down(status.with_scope(Scope::kPath));
    return;
  }
  repost(now);
}

void VerbsPath::repost(Instant now) {
  if (Status status = messages_->repost(pairs_[0]->qp, pairs_[0]->lane); !status.ok()) fault(0, status, now);
}

void VerbsPath::turn_messages(Instant now) {
  if (!message_fault_.ok()) fault(0, std::exchange(message_fault_, Status()), now);
  if (is_down() || control_ == nullptr || state_ != PathState::kUp) return;
  messages_->deliver();
  repost(now);
  if (is_down() || !outgoing_.empty() || !messages_->replay(*control_) || !messages_->is_word_due()) return;
  const std::string word = wire::encode(wire::MessagesReceived{.received = messages_->received()});
  if (control_->send(Priority::kCritical, std::as_bytes(std::span(word)), {})) messages_->take_received();
}

}  // namespace hawser::backend::verbs
