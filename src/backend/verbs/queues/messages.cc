#include "backend/verbs/queues/messages.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::align_val_t kPageAlignment{4096};

Status broken_rule(std::string_view what) {
  return Status(Code::kCorrupt, base::format("messages of a path: {}", what)).with_scope(Scope::kPath);
}

}  // namespace

Messages::Messages(std::uint32_t slots, std::uint32_t more, stream::EventQueue& events, Path* path)
    : slots_(slots), receives_(slots + more), events_(events), path_(path), sends_(slots) {
  const auto free_pages = [](std::byte* bytes) { ::operator delete[](bytes, kPageAlignment); };
  memory_.reset(static_cast<std::byte*>(::operator new[](memory_size(), kPageAlignment)), free_pages);
  std::memset(memory_.get(), 0, memory_size());
  for (std::uint32_t i = slots; i > 0; --i) free_.push_back(i - 1);
}

Result<std::unique_ptr<Messages>> Messages::open(std::span<const std::unique_ptr<NicLane>> lanes, std::uint32_t slots,
                                                 std::uint32_t more, stream::EventQueue& events, Path* path) {
  std::unique_ptr<Messages> made(new Messages(slots, more, events, path));
  const std::size_t size = made->memory_size();
  for (const auto& lane : lanes) {
    if (lane->is_away()) {
      made->registered_.emplace_back(nullptr, nullptr);  // No queue pair is made there.
      continue;
    }
    Domain& domain = *lane->nic->domain;
    const auto of_device = [&domain](const auto& each) { return each.first == &domain; };
    const auto other_port = std::ranges::find_if(made->registered_, of_device);
    if (other_port != made->registered_.end()) {
      made->registered_.push_back(*other_port);
      continue;
    }
    ibv_mr* mr = domain.verbs().reg_mr(domain.pd(), made->memory_.get(), size, IBV_ACCESS_LOCAL_WRITE);
    if (mr == nullptr) {
      return base::errno_status(base::format("registering the messages' {} bytes with {}", size, domain.name()), errno);
    }
    made->registered_.emplace_back(&domain, mr);
  }
  return made;
}

Messages::~Messages() {
  std::ranges::sort(registered_, {}, &std::pair<Domain*, ibv_mr*>::second);
  const auto last = std::unique(registered_.begin(), registered_.end());  // Ports of one device share it.
  registered_.erase(last, registered_.end());
  for (const auto& [domain, mr] : registered_) {
    if (domain == nullptr) continue;
    // No peer has its key. A queue pair that was neither ended nor reset may still put into it what comes.
    domain->end([verbs = &domain->verbs(), key = mr, memory = memory_] { return verbs->dereg_mr(key); },
                {reinterpret_cast<std::uintptr_t>(memory_.get()), memory_size()});
  }
}

bool Messages::on_peer(std::uint32_t receives, std::uint32_t receive_bytes) {
  credits_ = std::min(slots_, receives);
  size_max_ = std::min(kSlotBytes, receive_bytes);
  word_after_ = std::max(1u, credits_ / 2);
  return credits_ > 0;
}

std::span<std::byte> Messages::receive_slot(std::uint32_t slot) const {
  return {memory_.get() + std::size_t{slot} * kSlotBytes, kSlotBytes};
}

std::span<std::byte> Messages::send_slot(std::uint32_t slot) const { return receive_slot(receives_ + slot); }

Status Messages::post_receive(QueuePair& pair, std::uint32_t lane, std::uint32_t slot) {
  return pair.post_receive(slot, {.addr = reinterpret_cast<std::uintptr_t>(receive_slot(slot).data()),
                                  .length = kSlotBytes,
                                  .lkey = registered_[lane].second->lkey});
}

Status Messages::post_receives(QueuePair& pair, std::uint32_t lane) {
  repost_.clear();
  for (std::uint32_t slot = 0; slot < receives_; ++slot) HAWSER_TRY(post_receive(pair, lane, slot));
  return {};
}

Status Messages::repost(QueuePair& pair, std::uint32_t lane) {
  for (const std::uint32_t slot : repost_) HAWSER_TRY(post_receive(pair, lane, slot));
  repost_.clear();
  return {};
}

void Messages::on_reset() {
  repost_.clear();
  for (auto& [number, early] : early_) {
    if (!early.in_slot) continue;
    const auto bytes = receive_slot(early.slot).first(early.size);
    early = {.in_slot = false, .passed = false, .slot = 0, .size = 0, .copy = {bytes.begin(), bytes.end()}};
  }
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    if (!sends_[slot].posted) continue;
    sends_[slot].posted = false;
    free_if_idle(slot);
  }
}

void Messages::free_if_idle(std::uint32_t slot) {
  if (!sends_[slot].posted && !sends_[slot].kept) free_.push_back(slot);
}

void Messages::drop_front() {
  const std::uint32_t slot = kept_.front().slot;
  kept_.pop_front();
  sends_[slot].kept = false;
  free_if_idle(slot);
  if (!kept_.empty()) return;
  ahead_.clear();
  replaying_ = false;
}

void Messages::on_sent(std::uint32_t slot) {
  if (slot >= slots_ || !sends_[slot].posted) return;
  sends_[slot].posted = false;
  free_if_idle(slot);
}

Status Messages::on_told(std::uint64_t received) {
  if (received >= next_) return broken_rule("the peer received one that was never sent");
  while (!kept_.empty() && kept_.front().number <= received) drop_front();
  while (!ahead_.empty() && ahead_.front() <= received) ahead_.pop_front();
  return {};
}

bool Messages::replay(Path& control) {
  while (replaying_) {
    const Kept& oldest = kept_.front();
    if (!control.send(Priority::kCritical, send_slot(oldest.slot).first(oldest.size), {})) return false;
    drop_front();
  }
  return true;
}

bool Messages::fits(const QueuePair* pair, std::size_t size) const {
  return pair != nullptr && size <= size_max_ && !free_.empty() && kept_.size() < credits_ && pair->has_message_room();
}

bool Messages::send(QueuePair* pair, std::uint32_t lane, Path& control, wire::Link link,
                    std::span<const std::byte> head, std::span<const std::byte> body, Status* fault) {
  if (!replay(control)) return false;
  const std::size_t size = wire::kMessageHeadSize + head.size() + body.size();
  const auto numbered = wire::encode_head({.sequence = next_, .received = expected_ - 1});
  if (fits(pair, size)) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    auto out = std::ranges::copy(numbered, send_slot(slot).begin()).out;
    out = std::ranges::copy(head, out).out;
    std::ranges::copy(body, out);
    kept_.push_back({.number = next_, .slot = slot, .size = static_cast<std::uint32_t>(size)});
    sends_[slot].kept = true;
    *fault = pair->post_message(slot, {.addr = reinterpret_cast<std::uintptr_t>(send_slot(slot).data()),
                                       .length = static_cast<std::uint32_t>(size),
                                       .lkey = registered_[lane].second->lkey});
    sends_[slot].posted = fault->ok();
    ++sent_;
  } else {
    if (ahead_.size() == kAheadMax) return false;
    head_.assign(numbered.begin(), numbered.end());
    head_.insert(head_.end(), head.begin(), head.end());
    if (!control.send(link, head_, body)) return false;
    if (!kept_.empty()) ahead_.push_back(next_);
  }
  ++next_;
  take_received();
  return true;
}

void Messages::take_received() {
  untold_ = 0;
  word_wanted_ = false;
}

void Messages::tell(std::span<const std::byte> message) {
  const std::span<const std::byte> bytes = message.subspan(wire::kMessageHeadSize);
  stream::MessageBuffer buffer = events_.buffer(bytes.size());
  std::ranges::copy(bytes, buffer.bytes.get());
  events_.message(path_, std::move(buffer));
}

/// The next message, out of its receive.
void Messages::deliver_slot(std::uint32_t slot, std::uint32_t size) {
  tell(receive_slot(slot).first(size));
  repost_.push_back(slot);
  ++untold_;
  ++expected_;
}

void Messages::deliver() {
  while (can_deliver()) {
    const Early& early = early_.begin()->second;
    if (early.in_slot) {
      deliver_slot(early.slot, early.size);
    } else {
      tell(early.copy);
      if (early.passed) --passed_;
      word_wanted_ = true;
      ++expected_;
    }
    early_.erase(early_.begin());
  }
}

Status Messages::on_immediate(std::uint32_t slot) {
  if (slot >= receives_) return broken_rule("a receive that is not there");
  repost_.push_back(slot);
  return {};
}

Status Messages::on_receive(std::uint32_t slot, std::uint32_t size) {
  if (slot >= receives_ || size > kSlotBytes) return broken_rule("a receive that is not there");
  HAWSER_TRY_ASSIGN(const wire::MessageHead head, wire::decode_head(receive_slot(slot).first(size)));
  HAWSER_TRY(on_told(head.received));
  ++received_;
  if (head.sequence < expected_ || early_.contains(head.sequence)) {
    repost_.push_back(slot);
    return {};
  }
  if (head.sequence == expected_ && allowed_ && !events_.messages_full()) {
    deliver_slot(slot, size);
  } else {
    early_[head.sequence] = {.in_slot = true, .passed = false, .slot = slot, .size = size, .copy = {}};
  }
  deliver();
  return {};
}

Result<bool> Messages::on_stream(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(const wire::MessageHead head, wire::decode_head(bytes));
  HAWSER_TRY(on_told(head.received));
  deliver();
  if (head.sequence < expected_ || early_.contains(head.sequence)) return false;
  if (head.sequence == expected_) {
    word_wanted_ = true;  // The sender may wait for it before it sends more than kAheadMax.
    const bool direct = events_.empty();
    if (!direct) tell(bytes);
    ++expected_;
    deliver();
    return direct;
  }
  if (passed_ == kAheadMax) return broken_rule("too many passed one that is missing");
  ++passed_;
  early_[head.sequence] = {
      .in_slot = false, .passed = true, .slot = 0, .size = 0, .copy = {bytes.begin(), bytes.end()}};
  return false;
}

}  // namespace hawser::backend::verbs
