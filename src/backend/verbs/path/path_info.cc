// What a path tells of itself: counters, a line for people, and its queue pairs for who posts on one by himself.

#include <algorithm>
#include <cstring>

#include "backend/verbs/path/path.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

std::uint32_t mtu_bytes_of(std::uint8_t code) { return code == 0 ? 0 : 128u << code; }

std::string text_of(const wire::GidBytes& bytes) {
  if (std::ranges::all_of(bytes, [](auto byte) { return byte == decltype(byte){}; })) return {};
  Gid gid;
  std::memcpy(gid.bytes.data(), bytes.data(), bytes.size());
  return gid.text();
}

}  // namespace

QueuePairCounters VerbsPath::counters_of(const Pair& pair) const {
  const Nic& nic = pair.qp.nic();
  return {.number = pair.qp.number(),
          .peer_number = pair.peer.number,
          .state = std::string(to_string(pair.machine.state())),
          .epoch = pair.machine.epoch(),
          .device = nic.device.name,
          .port = nic.port.number,
          .gid = pair.qp.gid().text(),
          .peer_gid = text_of(pair.peer.gid),
          .mtu_bytes = mtu_bytes_of(pair.qp.mtu() == 0 ? nic.address().mtu : pair.qp.mtu()),
          .in_flight_gauge = pair.qp.in_flight(),
          .bytes_in_flight_gauge = pair.qp.bytes_posted(),
          .flow = pair.qp.flow()};
}

Result<QueuePairView> VerbsPath::queue_pair(const Binding& target, const Piece& piece) const {
  const auto& binding = static_cast<const VerbsBinding&>(target);
  std::uint64_t passed = 0;
  Status refused;
  Chunk wanted;
  if (piece.size > 0) wanted.pieces = {&piece, 1};
  while (const Pair* pair = best_pair(wanted, binding, &passed)) {
    QueuePairView view;
    view.state = counters_of(*pair);
    view.remote_key = binding.keys[pair->remote].rkey;
    view.remote_address = binding.keys[pair->remote].iova + piece.remote;
    Status status = pair->qp.view(piece, &view);
    if (status.ok()) return view;
    refused = std::move(status);
  }
  if (!refused.ok()) return refused;
  Status none(Code::kNotFound, base::format("no queue pair to {} is ready", name_));
  for (const auto& pair : pairs_) none = pair->cause.ok() ? none : none.because(pair->cause);
  return none.with_scope(Scope::kPath).with_peer(name_);
}

PathCounters VerbsPath::counters() const {
  PathCounters counters = counts_;
  counters.peer = name_;
  counters.backend = "verbs";
  counters.state = state_ == PathState::kConnecting ? "connecting" : state_ == PathState::kUp ? "up" : "down";
  if (control_ != nullptr) {
    const PathCounters control = control_->counters();
    counters.messages_in = control.messages_in;
    counters.messages_out = control.messages_out;
  }
  if (messages_ != nullptr) {
    counters.messages_in += messages_->received_count();
    counters.messages_out += messages_->sent_count();
  }
  for (const auto& pair : pairs_) {
    counters.epochs += pair->machine.epoch();
    counters.queue_pairs.push_back(counters_of(*pair));
  }
  return counters;
}

/// "queue pair 0 (mock0:1 (RoCE v2, 10.0.0.1) to 10.0.0.2, 4096-byte packets): ready, 3 in flight".
std::string VerbsPath::condition_of(std::size_t index) const {
  const Pair& pair = *pairs_[index];
  const std::string peer = text_of(pair.peer.gid);
  std::string text = base::format("queue pair {} ({} to {}, {}-byte packets): {}, {} in flight", index,
                                  pair.qp.nic().describe(), peer.empty() ? "an address not told yet" : peer,
                                  mtu_bytes_of(pair.qp.mtu()), to_string(pair.machine.state()), pair.qp.in_flight());
  if (pair.qp.is_full()) text += base::format(" (send_depth = {} is full)", pair.qp.depth());
  if (!pair.lost.empty()) text += base::format(", {} lost with the last connection", pair.lost.size());
  if (pair.failures > 0) text += base::format(", {} attempts in vain", pair.failures);
  return text;
}

Status VerbsPath::condition(Instant now) const {
  const bool is_idle = state_ == PathState::kUp && !is_awaited() && outgoing_.empty();
  return is_idle || is_down() ? Status() : standing(now);
}

/// All that is known of its queue pairs and of the peer.
Status VerbsPath::standing(Instant now) const {
  std::string text = base::format("verbs to {}", name_);
  for (std::size_t i = 0; i < pairs_.size(); ++i) text += (i == 0 ? ": " : "; ") + condition_of(i);
  if (pairs_.empty()) text += ports_.empty() ? ": the peer has not told its ports" : ": no queue pair was asked for";
  std::size_t lost = again_.size();
  for (const auto& pair : pairs_) lost += pair->lost.size();
  if (lost > 0) text += base::format("; {} waits to be posted again", lost);
  if (outgoing_.size() == kOutgoingMax) text += "; the control stream takes no more";
  if (heard_ != Instant::min()) {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - heard_);
    text += base::format("; the peer last said {} on the control stream, {} ms ago", last_word_, ago.count());
  }
  Status status = Status(Code::kTimedOut, std::move(text)).with_scope(Scope::kPath);
  for (const auto& pair : pairs_) {
    if (!pair->cause.ok() && !pair->machine.is_ready()) status = status.because(why_not(*pair));
  }
  return control_ == nullptr ? status : status.because(control_->condition(now));
}

std::string VerbsPath::describe() const {
  std::string text = base::format("verbs {} {}", inbound_ ? "from" : "to", name_);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = *pairs_[i];
    const QueuePairFlow& flow = pair.qp.flow();
    text += base::format(
        ", queue pair {} ({} {} to {}, epoch {}, {}, {} in flight, {} operations, {} errors, {} reconnects)", i,
        pair.qp.nic().describe(), pair.qp.number(), pair.peer.number, pair.machine.epoch(),
        to_string(pair.machine.state()), pair.qp.in_flight(), flow.operations, flow.errors, flow.reconnects);
  }
  text += base::format(", {} chunks, {} bytes out, {} bytes in", counts_.chunks, counts_.bytes_out, counts_.bytes_in);
  if (messages_ != nullptr) {
    text += base::format(", {} messages sent and {} received by queue pair", messages_->sent_count(),
                         messages_->received_count());
  }
  for (const auto& lane : shared_.lanes) {
    text += base::format(", {}: {}", lane->nic->device.name, lane->nic->memory.describe());
  }
  if (credits_ > 0) {
    text += base::format(", {} chunks told by immediates ({} without, none was left), {} of the peer's", counted_out_,
                         uncounted_, counted_in_);
  }
  return is_down() ? text + ", down" : text;
}

}  // namespace hawser::backend::verbs
