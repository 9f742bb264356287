// The data of a path: regions, posting, cancelling. How its queue pairs come up is in path_connect.cc.

#include "backend/verbs/path/path.h"

#include <algorithm>

#include "backend/verbs/memory/region_keys.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

/// What was cancelled may end by itself for so long; then its queue pair is broken, so that it does.
constexpr Duration kCancelPatience = std::chrono::milliseconds(50);
/// Whether still somebody waits for the peer is looked at so often: chunks come and end faster than it matters.
constexpr Duration kAwaitedRest = std::chrono::milliseconds(10);
/// No event tells of an MTU that shrank, and some devices (Soft-RoCE) then never end what is posted.
constexpr Duration kMtuEvery = std::chrono::milliseconds(250);

Status not_allowed(std::string_view what) {
  return Status(Code::kDenied, std::string(what)).with_scope(Scope::kRequest).with_buffer(BufferState::kUntouched);
}

bool fits(const Chunk& chunk, std::uint64_t size) {
  return std::ranges::all_of(
      chunk.pieces, [size](const Piece& piece) { return piece.size <= size && piece.remote <= size - piece.size; });
}

}  // namespace

Status cancelled() { return Status(Code::kCancelled, "the transfer was cancelled").with_scope(Scope::kRequest); }

Result<Binding*> VerbsPath::bind(const RemoteRegionRef& region) {
  auto& binding = bindings_[{region.index, region.generation}];
  if (binding != nullptr && (binding->told == region.extra.size() || region.extra.empty())) return binding.get();
  Result<std::vector<RemoteKey>> keys = decode_region_keys(region.extra, region.key);
  if (binding != nullptr) {  // Plans hold it: it gets the keys that came behind those that it has.
    if (keys && keys->size() > binding->keys.size()) binding->keys = *std::move(keys);
    return binding.get();
  }
  if (!keys) {
    bindings_.erase({region.index, region.generation});
    return Status(Code::kUnsupported, base::format("region {} of {} cannot be reached by RDMA", region.index, name_))
        .with_scope(Scope::kPath)
        .because(keys.error());
  }
  // Ports that came later have keys in newer cards alone, and such a card may be on its way.
  auto made = std::make_unique<VerbsBinding>();
  made->size = region.size;
  made->rights = region.rights;
  made->keys = *std::move(keys);
  made->told = region.extra.size();
  if (!pairs_.empty() && std::ranges::none_of(pairs_, [&](const auto& pair) { return made->has_key(pair->remote); })) {
    bindings_.erase({region.index, region.generation});
    return Status(Code::kUnsupported,
                  base::format("the card of {} has no keys of region {} for the ports in use", name_, region.index))
        .with_scope(Scope::kPath);
  }
  binding = std::move(made);
  return binding.get();
}

void VerbsPath::unbind(std::uint32_t index, std::uint32_t generation) { bindings_.erase({index, generation}); }

std::uint64_t VerbsPath::rail_speed(std::uint32_t lane, std::uint32_t remote) const {
  if (remote >= ports_.size()) return 0;
  return std::min(shared_.lanes[lane]->nic->port.mbit_per_s, ports_[remote].mbit_per_s);
}

bool VerbsPath::is_reached(const VerbsBinding& binding) const {
  return ready_ == 0 || std::ranges::any_of(pairs_, [&binding](const auto& pair) {
           return pair->machine.is_ready() && binding.has_key(pair->remote);
         });
}

VerbsPath::Pair* VerbsPath::best_pair(const Chunk& chunk, const VerbsBinding& binding, std::uint64_t* passed) const {
  static_assert(wire::kPairsMax <= 64);
  if (pairs_.size() == 1) {  // Most paths have no choice.
    Pair& only = *pairs_.front();
    const bool fits = *passed == 0 && only.machine.is_ready() && binding.has_key(only.remote);
    *passed = 1;
    return fits ? &only : nullptr;
  }
  std::size_t best = pairs_.size();
  std::pair<std::uint8_t, double> best_cost;
  // Where one speed is not known all count as equally fast.
  const bool is_known = std::ranges::all_of(pairs_, [](const auto& pair) { return pair->mbit_per_s > 0; });
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = *pairs_[i];
    if ((*passed >> i & 1) != 0 || !pair.machine.is_ready() || !binding.has_key(pair.remote)) continue;
    const auto bytes = static_cast<double>(pair.qp.bytes_posted() + chunk.bytes);
    const std::pair cost(pair.qp.distance(chunk), is_known ? bytes / static_cast<double>(pair.mbit_per_s) : bytes);
    if (best != pairs_.size() && cost >= best_cost) continue;
    best = i;
    best_cost = cost;
  }
  if (best == pairs_.size()) return nullptr;
  *passed |= std::uint64_t{1} << best;
  return pairs_[best].get();
}

QueuePair::Staged VerbsPath::stage(const Chunk& chunk, const VerbsBinding& binding, Status* why) {
  const bool waits = chunk.priority == Priority::kBulk && chunk.bytes > kSmallChunk;
  std::uint64_t passed = 0;
  // The nearest one may have no room, or little under way in bytes and no request to spare: then the next has its turn.
  while (Pair* pair = best_pair(chunk, binding, &passed)) {
    if (waits && pair->qp.bytes_posted() >= shared_.options.window) continue;
    const QueuePair::Staged staged = pair->qp.stage(chunk, binding.keys[pair->remote], why);
    if (staged != QueuePair::Staged::kNoRoom) return staged;
  }
  return QueuePair::Staged::kNoRoom;
}

VerbsPath::Posted VerbsPath::post(const Chunk& chunk, bool is_cancelled) {
  const auto& binding = *static_cast<const VerbsBinding*>(chunk.target);
  const Rights need = chunk.op == Operation::kWrite ? Rights::kWrite : Rights::kRead;
  Status why;
  if (is_cancelled) {
    why = cancelled();
  } else if (!is_reached(binding)) {
    why = Status(Code::kUnsupported, base::format("no port that {} has keys for is ready", name_))
              .with_scope(Scope::kPath)
              .with_buffer(BufferState::kUntouched);
  } else if (!allows(binding.rights, need)) {
    why = not_allowed("the region does not allow this operation");
  } else if (!fits(chunk, binding.size)) {
    why = not_allowed("a range lies outside the region");
  } else {
    switch (stage(chunk, binding, &why)) {
      case QueuePair::Staged::kYes:
        return Posted::kYes;
      case QueuePair::Staged::kNoRoom:
        return Posted::kNoRoom;
      case QueuePair::Staged::kRefused:
        break;
    }
  }
  end({.chunk = chunk, .cancelled = is_cancelled, .struck = false, .failure = {}, .immediate = 0}, why);
  return Posted::kEnded;
}

Submitted VerbsPath::submit(std::span<const Chunk> chunks, Instant now) {
  Submitted result;
  if (state_ != PathState::kUp) return result;
  held_back_ = ready_ == 0;
  if (held_back_ || !again_.empty()) chunks = {};
  for (const Chunk& chunk : chunks) {
    if (post(chunk, false) == Posted::kNoRoom) break;
    ++result.taken;
  }
  flush(now);
  if (result.taken > 0 && mtu_at_ == Instant::max()) watch_mtu(now);
  if (!is_awaited_) tell_awaited(now);
  return result;
}

void VerbsPath::watch_mtu(Instant now) {
  mtu_at_ = now + kMtuEvery;
  shared_.attention = true;
}

void VerbsPath::look_at_mtu(Instant now) {
  mtu_at_ = Instant::max();
  bool is_busy = !again_.empty();
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    const QueuePair& qp = pairs_[i]->qp;
    is_busy = is_busy || !pairs_[i]->lost.empty();
    if (!pairs_[i]->machine.is_ready() || qp.is_idle()) continue;
    is_busy = true;
    qp.nic().refresh_mtu();
    const std::uint8_t most = qp.nic().address().mtu;
    if (qp.mtu() <= most) continue;
    fault(
        i,
        Status(Code::kDisconnected, base::format("{}: its MTU shrank: packets of {} bytes leave it no more, {} at most",
                                                 qp.nic().describe(), 128u << qp.mtu(), 128u << most))
            .with_scope(Scope::kPath)
            .with_device(qp.nic().device.name),
        now);
  }
  if (is_busy && !is_down()) watch_mtu(now);
}

void VerbsPath::flush(Instant now) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (Status status = pairs_[i]->qp.flush(); !status.ok()) fault(i, status, now);
  }
}

std::size_t VerbsPath::post_again(Instant now) {
  std::size_t count = 0;
  while (!again_.empty() && ready_ > 0) {
    const Flight flight = again_.front();
    if (post(flight.chunk, flight.cancelled) == Posted::kNoRoom) break;
    again_.pop_front();
    ++count;
  }
  if (count > 0) flush(now);
  return count;
}

void VerbsPath::end(const Flight& flight, const Status& status) {
  const bool uncounted = flight.chunk.covered && flight.immediate == 0;
  if (status.ok()) {
    ++counts_.chunks;
    uncounted_ += uncounted;
    counted_out_ += flight.immediate != 0;
    (flight.chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += flight.chunk.bytes;
  }
  if (!struck_.empty()) struck_.erase(flight.chunk.cookie);
  shared_.events.chunk_done(this, flight.chunk.cookie, status, uncounted);
}

void VerbsPath::on_completion(std::uint32_t lane, const ibv_wc& wc, Instant now) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Pair& pair = *pairs_[i];
    if (pair.lane != lane || pair.qp.number() != wc.qp_num) continue;
    const Completed completed = pair.qp.on_completion(wc);
    switch (completed.kind) {
      case Completed::Kind::kNothing:
        break;
      case Completed::Kind::kChunk:
        end(completed.flight, completed.flight.failure.ok() ? Status() : completed.flight.failure.with_peer(name_));
        break;
      case Completed::Kind::kProved:
        feed(i, proto::QueuePairEvent::kProved, now);
        break;
      case Completed::Kind::kFault:
        fault(i, completed.cause, now);
        break;
      case Completed::Kind::kSent:
      case Completed::Kind::kReceived:
        if (is_first(pair)) on_message_completion(completed, now);
        break;
      case Completed::Kind::kImmediate:
        on_immediate(pair, completed, now);
        break;
    }
    if (is_down()) return;
    const bool draining = pair.machine.state() == proto::QueuePairState::kDraining;
    if (draining && pair.qp.is_drained()) feed(i, proto::QueuePairEvent::kDrained, now);
    return;
  }
}

bool VerbsPath::has_number(std::uint32_t lane, std::uint32_t number) const {
  return std::ranges::any_of(pairs_,
                             [&](const auto& pair) { return pair->lane == lane && pair->qp.number() == number; });
}

bool VerbsPath::may_use(const KeysInUse& keys) const {
  return std::ranges::any_of(pairs_, [&keys](const auto& pair) {
    return &pair->qp.nic().cache == keys.cache && pair->qp.may_use(keys.address, keys.size, keys.before);
  });
}

bool VerbsPath::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (state_ != PathState::kUp || !outgoing_.empty()) return false;
  if (messages_ != nullptr) return send_numbered(link, head, body);
  head_.resize(1 + head.size());
  head_[0] = std::byte{wire::kAgentMessage};
  std::ranges::copy(head, head_.begin() + 1);
  return control_->send(link, head_, body);
}

void VerbsPath::send_outgoing() {
  while (!outgoing_.empty() && control_ != nullptr) {
    const std::string& message = outgoing_.front();
    if (!control_->send(Priority::kCritical, std::as_bytes(std::span(message)), {})) return;
    outgoing_.pop_front();
  }
}

void VerbsPath::cancel(std::uint64_t transfer) {
  shared_.attention = true;
  const auto mark = [transfer](Flight& flight) { flight.cancelled |= flight.chunk.transfer == transfer; };
  std::ranges::for_each(again_, mark);
  for (const auto& pair : pairs_) {
    std::ranges::for_each(pair->lost, mark);
    cancel_asked_ = pair->qp.cancel(transfer) || cancel_asked_;
  }
  // What waits has touched nothing that could still change: it ends now.
  std::erase_if(again_, [this](const Flight& flight) {
    if (flight.cancelled) end(flight, cancelled());
    return flight.cancelled;
  });
}

void VerbsPath::force_cancelled(Instant now) {
  if (cancel_asked_) cancel_by_ = std::min(cancel_by_, now + kCancelPatience);
  cancel_asked_ = false;
  if (now < cancel_by_) return;
  cancel_by_ = Instant::max();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!pairs_[i]->machine.is_ready() || !pairs_[i]->qp.has_cancelled()) continue;
    fault(i, Status(Code::kCancelled, "an operation was cancelled and did not end by itself").with_scope(Scope::kPath),
          now);
  }
}

bool VerbsPath::is_awaited() const {
  return agent_waits_ || held_back_ || !again_.empty() ||
         std::ranges::any_of(pairs_, [](const auto& pair) { return !pair->qp.is_idle() || !pair->lost.empty(); });
}

void VerbsPath::set_awaited(bool awaited, Instant now) {
  agent_waits_ = awaited;
  if (awaited) return tell_awaited(now);
  if (!is_awaited_ || awaited_until_ != Instant::max()) return;
  awaited_until_ = now + kAwaitedRest;
  shared_.attention = true;
}

void VerbsPath::tell_awaited(Instant now) {
  if (control_ == nullptr || is_down() || (is_awaited_ && now < awaited_until_)) return;
  const bool awaited = is_awaited();
  awaited_until_ = awaited && !agent_waits_ ? now + kAwaitedRest : Instant::max();
  if (awaited == is_awaited_) return;
  is_awaited_ = awaited;
  shared_.attention = true;
  control_->set_awaited(awaited, now);
}

std::size_t VerbsPath::turn(Instant now) {
  if (is_down()) return 0;
  if (cancel_asked_ || now >= cancel_by_) force_cancelled(now);
  if (now >= mtu_at_) look_at_mtu(now);
  if (is_down()) return 0;
  std::size_t work = run_timers(now);
  if (!outgoing_.empty()) send_outgoing();
  if (!again_.empty()) work += post_again(now);
  if (messages_ != nullptr && !is_down()) turn_messages(now);
  if (words_due_ && !is_down()) tell_counted();
  if (ports_due_ && !is_down() && outgoing_.empty()) {
    ports_due_ = false;
    say(told_ports());
  }
  return work;
}

Instant VerbsPath::next_deadline() const {
  if (is_down()) return Instant::max();
  Instant next = std::min({deadline_, cancel_by_, awaited_until_, mtu_at_});
  if (lost_since_ != Instant::max()) next = std::min(next, lost_since_ + shared_.options.patience);
  for (const auto& pair : pairs_) {
    next = std::min({next, pair->timer, pair->expires});
    if (!pair->lost.empty()) next = std::min(next, pair->stuck_at);
    if (std::ranges::any_of(pair->lost, &Flight::cancelled)) next = std::min(next, pair->quiet_at);
  }
  return cancel_asked_ ? Instant::min() : next;
}

void VerbsPath::go_down(const Status& why, bool refused) {
  if (is_down()) return;
  state_ = PathState::kDown;
  shared_.attention = true;
  HAWSER_LOG(shared_.context.log, kDebug, "verbs path to {} ended: {}", name_, why.to_string());
  const Status told = why.with_peer(name_);
  for (const auto& pair : pairs_) {
    pair->machine.on(proto::QueuePairEvent::kClose);
    reset(*pair, Instant::max());
    std::ranges::move(pair->lost, std::back_inserter(again_));
    pair->lost.clear();
  }
  const Scope scope = why.scope() == Scope::kPeer ? Scope::kPeer : Scope::kPath;
  Status chunk_status = told;
  // kTimedOut of a chunk would mean its own deadline: silence of the peer is only the cause.
  if (scope == Scope::kPath || why.code() == Code::kTimedOut) {
    chunk_status = Status(Code::kDisconnected, base::format("the path to {} was lost", name_))
                       .with_scope(scope)
                       .with_peer(name_)
                       .because(told);
  }
  for (const Flight& flight : again_) end(flight, flight.cancelled ? cancelled() : chunk_status);
  again_.clear();
  outgoing_.clear();
  ready_ = 0;
  if (is_known()) shared_.events.path_down(this, told, refused);
}

}  // namespace hawser::backend::verbs
