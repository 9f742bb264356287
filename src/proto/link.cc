#include "proto/link.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/copy.h"
#include "base/format.h"
#include "base/planted.h"

namespace hawser::proto {
namespace {

// A record is its message's size and the message. Records do not wrap around: one that does not fit before the end goes
// to the start, and this stands in its place (when there is room for it).
constexpr std::size_t kPrefix = sizeof(std::uint32_t);
constexpr std::uint32_t kToStart = UINT32_MAX;
constexpr std::size_t kCapacityMin = 512;

}  // namespace

std::size_t MessageRing::record_at(std::size_t at) const {
  return kPrefix + base::load_little_endian<std::uint32_t>(bytes_.get() + at);
}

// Where the record after the one at `at` is; there must be one.
std::size_t MessageRing::after(std::size_t at) const {
  const std::size_t next = at + record_at(at);
  if (capacity_ - next < kPrefix) return 0;
  return base::load_little_endian<std::uint32_t>(bytes_.get() + next) == kToStart ? 0 : next;
}

// Moves back_ to where `record` bytes fit. False: nowhere.
bool MessageRing::place(std::size_t record) {
  if (count_ == 0) {
    front_ = back_ = 0;
    return record <= capacity_;
  }
  if (back_ <= front_) return record <= front_ - back_;
  if (record <= capacity_ - back_) return true;
  if (record > front_) return false;
  if (capacity_ - back_ >= kPrefix) base::store_little_endian(bytes_.get() + back_, kToStart);
  back_ = 0;
  return true;
}

bool MessageRing::grow(std::size_t record) {
  if (capacity_ >= bytes_max_) return false;
  const std::size_t wanted = std::max({kCapacityMin, capacity_ * 2, std::bit_ceil(used_ + record)});
  move_to(std::min(wanted, bytes_max_), {});
  return true;
}

// All messages to fresh memory, behind those that come in front.
void MessageRing::move_to(std::size_t capacity, const Messages& in_front) {
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(capacity);
  std::size_t to = 0;
  for (const std::vector<std::byte>& each : in_front) {
    base::store_little_endian(bytes.get() + to, static_cast<std::uint32_t>(each.size()));
    std::ranges::copy(each, bytes.get() + to + kPrefix);
    to += kPrefix + each.size();
  }
  std::size_t from = front_;
  for (std::size_t i = 0; i < count_; ++i) {
    if (count_ - i == ahead_) cursor_ = to;
    const std::size_t size = record_at(from);
    std::memcpy(bytes.get() + to, bytes_.get() + from, size);
    to += size;
    if (i + 1 < count_) from = after(from);
  }
  bytes_ = std::move(bytes);
  capacity_ = capacity;
  front_ = 0;
  back_ = to;
}

void MessageRing::put_in_front(const Messages& messages) {
  std::size_t more = 0;
  for (const std::vector<std::byte>& each : messages) more += kPrefix + each.size();
  move_to(std::max(capacity_, used_ + more), messages);
  used_ += more;
  count_ += messages.size();
}

bool MessageRing::push(std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  const std::size_t record = kPrefix + size;
  if (used_ + record > bytes_max_) return false;
  if (!place(record) && !(grow(record) && place(record))) return false;
  std::byte* to = bytes_.get() + back_;
  base::store_little_endian(to, static_cast<std::uint32_t>(size));
  if (!head.empty()) std::memcpy(to + kPrefix, head.data(), head.size());
  if (!body.empty()) base::copy_cached(to + kPrefix + head.size(), body.data(), body.size());
  if (ahead_++ == 0) cursor_ = back_;
  ++count_;
  back_ += record;
  used_ += record;
  return true;
}

void MessageRing::drop_front() {
  HAWSER_ASSERT(count_ > 0, "no message to drop");
  const bool cursor_here = ahead_ == count_;
  used_ -= record_at(front_);
  if (--count_ > 0) front_ = after(front_);
  if (!cursor_here) return;
  --ahead_;
  cursor_ = front_;
}

std::span<const std::byte> MessageRing::at_cursor() const {
  if (ahead_ == 0) return {};
  return message_at(cursor_);
}

std::span<const std::byte> MessageRing::message_at(std::size_t at) const {
  return {bytes_.get() + at + kPrefix, record_at(at) - kPrefix};
}

void MessageRing::advance_cursor() {
  HAWSER_ASSERT(ahead_ > 0, "the cursor is at the end");
  if (--ahead_ > 0) cursor_ = after(cursor_);
}

void MessageRing::reset_cursor() {
  cursor_ = front_;
  ahead_ = count_;
}

void MessageRing::trim() {
  if (count_ != 0) return;
  bytes_.reset();
  capacity_ = 0;
}

void LinkSender::pass() {
  HAWSER_ASSERT(can_pass(), "messages wait, or the path may lose them");
  ++next_;
}

bool LinkSender::push(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!ring_) ring_ = std::make_unique<MessageRing>(limits_.bytes);
  if (ring_->count() >= limits_.count || !ring_->push(head, body)) return false;
  ++next_;
  return true;
}

void LinkSender::sent() {
  HAWSER_ASSERT(ring_ != nullptr, "no message waits");
  ring_->advance_cursor();
  if (lossless_) release_through(next_ - ring_->ahead() - 1);
}

void LinkSender::release_through(std::uint64_t seq) {
  while (kept() > 0 && first_kept() <= seq) ring_->drop_front();
}

Status LinkSender::on_ack(std::uint64_t up_to) {
  if (up_to >= next_) {
    return Status(Code::kCorrupt,
                  base::format("the peer acknowledged message {}, the last one is {}", up_to, next_ - 1));
  }
  acked_ = std::max(acked_, up_to);
  release_through(up_to);
  return {};
}

Status LinkSender::replay_from(std::uint64_t received) {
  if (Status fault = on_ack(received); !fault.ok()) return fault;
  if (acked_ + 1 < first_kept()) {
    return Status(
        Code::kDisconnected,
        base::format("the peer said that it has message {}, but {} is the oldest still kept", acked_, first_kept()));
  }
  if (ring_ && !base::planted(base::Planted::kReplayForgotten)) ring_->reset_cursor();
  return {};
}

bool LinkSender::keep_again(std::uint64_t first, const Messages& messages) {
  if (first + messages.size() != first_kept()) return false;
  if (!ring_) ring_ = std::make_unique<MessageRing>(limits_.bytes);
  if (base::planted(base::Planted::kReplayComesLast)) {
    for (const std::vector<std::byte>& each : messages) ring_->push(each, {});
    return true;
  }
  ring_->put_in_front(messages);
  return true;
}

Received LinkReceiver::on_unexpected(std::uint64_t seq) {
  if (seq > received_) return Received::kGap;
  const bool takes_again =
      base::planted(base::Planted::kDuplicateDelivered) || base::planted(base::Planted::kReplayTakenTwice);
  if (takes_again) return Received::kDeliver;
  ++unacked_messages_;  // told again, for the sender may wait for it to free its memory
  return Received::kDuplicate;
}

}  // namespace hawser::proto
