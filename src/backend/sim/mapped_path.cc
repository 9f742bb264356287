#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backend/sim/mapped_port.h"

#include "base/planted.h"

namespace hawser::sim {

using backend::Chunk;
using backend::PathState;
using backend::Piece;
using backend::PortEvent;

bool MappedPath::peer_gone() const { return link_->noticed_death[1 - end_] || !link_->ended.ok(); }

Result<backend::Binding*> MappedPath::bind(const backend::RemoteRegionRef& region) {
  for (const auto& known : bindings_) {
    if (known->index == region.index && known->generation == region.generation) return known.get();
  }
  bindings_.push_back(std::make_unique<MappedBinding>(region));
  return bindings_.back().get();
}

void MappedPath::unbind(std::uint32_t index, std::uint32_t generation) {
  std::erase_if(bindings_, [&](const auto& one) { return one->index == index && one->generation == generation; });
}

backend::Submitted MappedPath::submit(std::span<const Chunk> chunks, Instant) {
  backend::Submitted result;
  if (state_ != PathState::kUp || peer_gone()) return result;
  const MappedOptions& options = port_.hub_.options();
  bool in_line = queue_.empty();  // Not before what came earlier: chunks end in order here.
  for (const Chunk& chunk : chunks) {
    if (queue_.size() >= options.queue_chunks) break;
    ++result.taken;
    ++counters_.chunks;
    queue_.push_back({chunk});
    if (!in_line || chunk.bytes > options.inline_bytes || peer() == nullptr) {
      in_line = false;
      continue;
    }
    Work& work = queue_.back();
    Status failed;
    while (failed.ok() && work.piece < chunk.pieces.size()) step(work, chunk.bytes, &failed);
    const bool good = failed.ok();
    if (good) ++result.done;
    if (!good) finish(chunk, failed);
    queue_.pop_back();
    in_line = good;
  }
  if (!queue_.empty()) port_.host_->wake();
  return result;
}

bool MappedPath::can_fetch() const {
  return state_ == PathState::kUp && !peer_gone() && port_.hub_.options().may_be_read;
}

/// The address is the peer's word, and what lay there may have gone meanwhile: the kernel looks. All simulated
/// processes are this one. Whether the memory is still there must not decide what happens next: equal seeds take equal
/// courses.
bool MappedPath::fetch(std::uint64_t address, std::span<std::byte> into) {
  if (!can_fetch() || link_->hosts[1 - end_]->dead()) return false;
  const iovec local{.iov_base = into.data(), .iov_len = into.size()};
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = into.size()};
  const ssize_t count = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  if (count != static_cast<ssize_t>(into.size())) std::ranges::fill(into, std::byte{0});
  return true;
}

bool MappedPath::move_at_once(const Chunk& chunk) {
  const bool is_free = state_ == PathState::kUp && !peer_gone() && queue_.empty() && peer() != nullptr;
  // A piece that may not be copied leaves nothing behind; of several, those before it would.
  if (!is_free || chunk.bytes > port_.hub_.options().inline_bytes || chunk.pieces.size() != 1) return false;
  Work work{chunk};
  Status failed;
  while (failed.ok() && work.piece < chunk.pieces.size()) step(work, chunk.bytes, &failed);
  if (!failed.ok()) return false;
  ++counters_.chunks;
  return true;
}

bool MappedPath::send(wire::Link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (state_ != PathState::kUp || peer_gone()) return false;
  const std::size_t size = head.size() + body.size();
  std::size_t& used = link_->ring_used[end_];
  if (used + size > std::max(port_.hub_.options().ring_bytes, size)) return false;
  if (base::planted(base::Planted::kMessageLost) && !link_->rings[end_].empty()) return true;
  std::vector<std::byte> message(head.begin(), head.end());
  message.insert(message.end(), body.begin(), body.end());
  used += size;
  link_->untaken[end_].push_back(message);
  link_->rings[end_].push_back(std::move(message));
  ++counters_.messages_out;
  port_.hub_.world().count_send(link_->hosts[end_]->number());
  port_.hub_.wake(link_->hosts[1 - end_]);
  return true;
}

bool MappedPath::each_untaken(const backend::SeeMessage& see) const {
  for (const std::vector<std::byte>& each : link_->untaken[end_]) {
    see(std::span(each).first(std::min(each.size(), backend::kMessageBegin)));
  }
  return true;
}

bool MappedPath::each_whole_untaken(const backend::SeeMessage& see) const {
  for (const std::vector<std::byte>& each : link_->untaken[end_]) see(each);
  return true;
}

void MappedPath::stop_taking() {
  takes_ = false;
  const auto leave_untaken = [this](MappedPort::Event& entry) {
    if (entry.event.path == this) entry.link.reset();
  };
  std::ranges::for_each(port_.events_, leave_untaken);
  std::ranges::for_each(port_.handed_out_, leave_untaken);
}

std::size_t MappedPath::read_ring() {
  if (!takes_) return 0;
  auto& ring = link_->rings[1 - end_];
  std::size_t count = 0;
  // What broke is read on slowly: meanwhile the same messages may come by another path.
  const std::size_t most = link_->ended.ok() ? 16 : 1;
  for (; !ring.empty() && count < most; ++count) {
    MappedPort::Event entry;
    entry.event.kind = PortEvent::Kind::kMessage;
    entry.event.path = this;
    entry.bytes = std::move(ring.front());
    entry.link = link_;
    entry.from = 1 - end_;
    ring.pop_front();
    link_->ring_used[1 - end_] -= entry.bytes.size();
    ++counters_.messages_in;
    port_.events_.push_back(std::move(entry));
  }
  if (count > 0 && peer() != nullptr) port_.hub_.wake(link_->hosts[1 - end_]);  // There is room again.
  return count;
}

Status MappedPath::enter(const Work& work, const Piece& piece, std::byte** remote) {
  MappedPort* const target = peer();
  if (target == nullptr) return Status(Code::kDisconnected, "the peer's process is gone");
  const auto& binding = static_cast<const MappedBinding&>(*work.chunk.target);
  // Pin first, look second: the closer bumps first and looks for pins second.
  if (!base::planted(base::Planted::kPinSkipped)) link_->pins[end_] = Pin{binding.index, binding.generation};
  const Rights right = work.chunk.op == Operation::kWrite ? Rights::kWrite : Rights::kRead;
  const base::Id128& self = link_->identities[end_].incarnation;
  auto entry = target->regions().find(binding.index, binding.generation, binding.key, right, self);
  Status status = entry.error();
  const bool is_spent = status.ok() && (*entry)->once != nullptr &&
                        !(*entry)->once->admits(self, work.chunk.transfer) &&
                        !base::planted(base::Planted::kSecondUseServed);
  if (is_spent) status = Status(Code::kDenied, "the grant is another transfer's");
  if (status.ok() && !backend::in_bounds(piece.remote, piece.size, (*entry)->size)) {
    status = Status(Code::kDenied, "a piece lies outside of the region");
  }
  if (!status.ok()) {
    link_->pins[end_].reset();
    return status;
  }
  *remote = (*entry)->base;
  return {};
}

namespace {

class SimView final : public backend::View {
 public:
  SimView(std::shared_ptr<MappedLink> link, int end, std::shared_ptr<const backend::RegionEntry> entry,
          std::shared_ptr<bool> lives)
      : link_(std::move(link)), end_(end), entry_(std::move(entry)), lives_(std::move(lives)) {}
  /// What a dead process held stays so, until its peers notice that it died.
  ~SimView() override { let_go(); }
  void let_go() override {
    if (!std::exchange(holds_, false) || link_->hosts[end_]->dead() || !*lives_) return;
    auto& all = link_->views[end_];
    const auto its = std::ranges::find_if(
        all, [this](const Pin& pin) { return pin.region == entry_->index && pin.generation == entry_->generation; });
    if (its != all.end()) all.erase(its);
  }
  std::span<const std::byte> bytes() const override {
    if (!*lives_ || link_->noticed_death[1 - end_]) return {};
    return {entry_->base, static_cast<std::size_t>(entry_->size)};
  }
  std::uint64_t first() const override { return 0; }

 private:
  bool holds_ = true;
  const std::shared_ptr<MappedLink> link_;
  const int end_;
  const std::shared_ptr<const backend::RegionEntry> entry_;
  const std::shared_ptr<bool> lives_;
};

}  // namespace

Result<std::unique_ptr<backend::View>> MappedPath::view(backend::Binding& region) {
  auto& binding = static_cast<MappedBinding&>(region);
  MappedPort* const target = peer();
  if (state_ != PathState::kUp || peer_gone() || target == nullptr) return Status(Code::kBusy, "the path is not up");
  if (!std::exchange(binding.was_asked_for, true)) return Status(Code::kBusy, "the peer is being asked");
  auto& held = link_->views[end_];
  if (held.size() >= backend::kViewsMax) return Status(Code::kBusy, "all views of the path are held");
  held.push_back({binding.index, binding.generation});
  const base::Id128& self = link_->identities[end_].incarnation;
  auto entry = target->regions().find(binding.index, binding.generation, binding.key, Rights::kRead, self);
  if (!entry) {
    held.pop_back();
    return entry.error();
  }
  return std::unique_ptr<backend::View>(std::make_unique<SimView>(link_, end_, std::move(*entry), lives_));
}

std::uint64_t MappedPath::step(Work& work, std::uint64_t budget, Status* failed) {
  const Piece& piece = work.chunk.pieces[work.piece];
  if (work.offset == 0) {
    *failed = enter(work, piece, &remote_base_);
    if (!failed->ok() && work.piece > 0) *failed = failed->with_buffer(BufferState::kPartlyWritten);
    if (!failed->ok()) return 0;
  }
  const std::uint64_t size = std::min(budget, piece.size - work.offset);
  std::byte* const remote = remote_base_ + piece.remote + work.offset;
  std::byte* const local = piece.local + work.offset;
  if (work.chunk.op == Operation::kWrite) {
    std::memcpy(remote, local, size);
    counters_.bytes_out += size;
  } else {
    std::memcpy(local, remote, size);
    counters_.bytes_in += size;
  }
  work.offset += size;
  if (work.offset == piece.size) {
    link_->pins[end_].reset();
    work.offset = 0;
    ++work.piece;
  }
  return size;
}

std::uint64_t MappedPath::copy_some(std::uint64_t budget) {
  std::uint64_t copied = 0;
  while (!queue_.empty() && copied < budget && state_ == PathState::kUp) {
    Work& work = queue_.front();
    Status failed;
    copied += work.piece < work.chunk.pieces.size() ? step(work, budget - copied, &failed) : 0;
    if (failed.ok() && work.piece < work.chunk.pieces.size()) continue;
    if (failed.code() == Code::kDisconnected) break;  // The death will be noticed, and ends them all.
    const Chunk chunk = work.chunk;
    queue_.pop_front();
    finish(chunk, failed);
  }
  return copied;
}

void MappedPath::finish(const Chunk& chunk, Status status) {
  PortEvent event;
  event.kind = PortEvent::Kind::kChunkDone;
  event.path = this;
  event.cookie = chunk.cookie;
  event.transfer = chunk.transfer;
  event.chunk = chunk.index;
  event.status = std::move(status);
  port_.push(std::move(event));
}

/// What a dead process had pinned stays so, until its peers notice that it died.
void MappedPath::leave() {
  if (!port_.host_->dead()) link_->pins[end_].reset();
}

/// The path is down, or goes: its views show nothing any more.
void MappedPath::end_views() {
  *lives_ = false;
  if (!port_.host_->dead()) link_->views[end_].clear();
}

void MappedPath::cancel(std::uint64_t transfer) {
  // The copy is done by ourselves, so stopping is done at once.
  if (!queue_.empty() && queue_.front().chunk.transfer == transfer) leave();
  std::deque<Work> kept;
  for (Work& work : queue_) {
    if (work.chunk.transfer == transfer) {
      const bool begun = work.piece > 0 || work.offset > 0;
      finish(work.chunk, Status(Code::kCancelled, "cancelled")
                             .with_buffer(begun ? BufferState::kPartlyWritten : BufferState::kUntouched));
    } else {
      kept.push_back(work);
    }
  }
  queue_ = std::move(kept);
  port_.host_->wake();
}

void MappedPath::go_down(const Status& why) {
  if (state_ == PathState::kDown) return;
  state_ = PathState::kDown;
  leave();
  end_views();
  for (const Work& work : queue_) finish(work.chunk, why);
  queue_.clear();
  PortEvent event;
  event.kind = PortEvent::Kind::kPathDown;
  event.path = this;
  event.inbound = inbound_;
  event.session = link_->session;
  event.status = why;
  port_.push(std::move(event));
}

/// The other end hears of it, and what was said before.
void MappedPath::give_up(const Status& why) {
  if (state_ == PathState::kDown) return;
  if (link_->ended.ok()) link_->ended = why;
  port_.hub_.wake(link_->hosts[1 - end_]);
  go_down(why);
}

PathCounters MappedPath::counters() const {
  PathCounters all = counters_;
  all.peer = link_->identities[1 - end_].name;
  all.backend = "sim";
  all.state = state_ == PathState::kUp ? "up" : state_ == PathState::kDown ? "down" : "connecting";
  all.epochs = 1;
  return all;
}

std::string MappedPath::describe() const {
  return "mapped memory of host " + std::to_string(link_->hosts[1 - end_]->number());
}

}  // namespace hawser::sim
