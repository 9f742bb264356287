#include "backend/shm/message_rings.h"

#include <sys/eventfd.h>

#include <array>
#include <utility>
#include <vector>

namespace hawser::backend::shm {

void MessageRings::begin(const Link& link, int peer_door) {
  producer_ = link.producer();
  consumer_ = link.consumer();
  line_count_ = link.line_count();
  peer_door_ = peer_door;
}

Put MessageRings::send(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (has_outbox()) return Put::kFull;
  if (head.size() + body.size() <= part_max()) return put(RecordKind::kMessage, head, body);
  return send_in_parts(head, body);
}

Put MessageRings::put(RecordKind kind, std::span<const std::byte> head, std::span<const std::byte> body) {
  const Put result = producer_.put(kind, head, body);
  if (result == Put::kDone) {
    refused_size_ = 0;
    if (producer_.must_ring()) static_cast<void>(::eventfd_write(peer_door_, 1));
  } else if (result == Put::kFull) {
    refused_size_ = static_cast<std::uint32_t>(std::max<std::size_t>(head.size() + body.size(), 1));
  }
  return result;
}

/// As many parts as there is room for now; the rest is copied to the outbox.
Put MessageRings::send_in_parts(std::span<const std::byte> head, std::span<const std::byte> body) {
  bool has_begun = false;
  while (!head.empty() || !body.empty()) {
    const auto first = head.first(std::min(head.size(), part_max()));
    const auto second = body.first(std::min(body.size(), part_max() - first.size()));
    const bool is_last = first.size() + second.size() == head.size() + body.size();
    const std::uint64_t position = producer_.position();
    const Put result = put(is_last ? RecordKind::kLast : RecordKind::kFragment, first, second);
    if (result != Put::kDone && !has_begun) return result;
    if (result != Put::kDone) break;  // flush() tells of a ring that is corrupt.
    if (!has_begun) parts_sent_.begin(first, second, position, producer_.known_read());
    if (is_last) parts_sent_.finish(producer_.position());
    has_begun = true;
    head = head.subspan(first.size());
    body = body.subspan(second.size());
  }
  outbox_.assign(reinterpret_cast<const char*>(head.data()), head.size());
  outbox_.append(reinterpret_cast<const char*>(body.data()), body.size());
  outbox_sent_ = 0;
  return Put::kDone;
}

Put MessageRings::flush() {
  while (has_outbox()) {
    const std::size_t size = std::min(part_max(), outbox_.size() - outbox_sent_);
    const bool is_last = outbox_sent_ + size == outbox_.size();
    const auto part = std::as_bytes(std::span<const char>(outbox_.data() + outbox_sent_, size));
    const Put result = put(is_last ? RecordKind::kLast : RecordKind::kFragment, part, {});
    if (result != Put::kDone) return result;
    outbox_sent_ += size;
    if (!is_last) continue;
    parts_sent_.finish(producer_.position());
    outbox_.clear();
  }
  return Put::kDone;
}

bool MessageRings::each_untaken(const SeeMessage& see) const {
  parts_sent_.each_behind(producer_.given_back(), see);
  return producer_.each_unread([&](const Record& record, std::uint64_t position) {
    std::array<std::byte, kLinePayload> begin;
    if (record.kind == RecordKind::kMessage) see(producer_.read_begin(record, position, begin));
  });
}

bool MessageRings::each_whole_untaken(const SeeMessage& see) const {
  std::vector<std::byte> message;
  bool is_whole = false;  // The ring has the first part of the message whose parts are read now.
  const bool is_known = producer_.each_unread([&](const Record& record, std::uint64_t position) {
    const bool begins = record.kind == RecordKind::kMessage || parts_sent_.begins_at(position);
    if (begins) message.clear();
    is_whole = is_whole || begins;
    if (!is_whole) return;
    const std::size_t before = message.size();
    message.resize(before + record.size);
    producer_.read(record, position, message.data() + before);
    if (record.kind == RecordKind::kFragment) return;
    see(message);
    is_whole = false;
  });
  if (!is_known || !is_whole) return is_known;
  const auto rest = std::as_bytes(std::span(outbox_)).subspan(outbox_sent_);
  message.insert(message.end(), rest.begin(), rest.end());
  see(message);
  return true;
}

bool MessageRings::take_room() {
  if (!producer_.has_room(refused_size_)) return false;
  refused_size_ = 0;
  return true;
}

void MessageRings::give_back() {
  if (takes_ && !holds_parts() && consumer_.give_back()) static_cast<void>(::eventfd_write(peer_door_, 1));
}

void MessageRings::begin_taking() {
  give_back();
  if (std::exchange(is_assembled_, false)) assembled_ = 0;
}

MessageRings::Took MessageRings::take(Inbox& inbox, std::span<const std::byte>* bytes) {
  while (is_readable() && !is_assembled_) {
    Record record;
    const Got got = consumer_.next(&record);
    if (got == Got::kNone) return Took::kNothing;
    if (got == Got::kCorrupt || !fits_assembly(record)) {
      is_broken_ = true;
      return Took::kCorrupt;
    }
    const bool is_part = record.kind != RecordKind::kMessage;
    // Parts are given back before the next begin_taking(), and what was given out now is not.
    if (is_part && holds_taken()) return Took::kNothing;
    std::byte* const at = is_part ? assembly_.get() + assembled_ : inbox.take(record.size);
    if (at == nullptr) return Took::kNothing;
    count_drained();
    consumer_.take(record, at);
    *bytes = {at, record.size};
    if (!is_part) return Took::kMessage;
    assembled_ += record.size;
    if (record.kind == RecordKind::kFragment) {
      give_back();  // In a small ring, so that the next part comes in while this one is copied out.
      continue;
    }
    is_assembled_ = true;
    *bytes = {assembly_.get(), assembled_};
    return Took::kMessage;
  }
  return Took::kNothing;
}

void MessageRings::count_drained() {
  if (drain_left_ > 0 && --drain_left_ == 0) is_broken_ = true;
}

/// Whether `record` may come now: a part that does not make its message too long, or a message that is alone.
bool MessageRings::fits_assembly(const Record& record) {
  if (record.kind == RecordKind::kMessage) return assembled_ == 0;
  if (assembly_ == nullptr) assembly_ = std::make_unique_for_overwrite<std::byte[]>(kAssemblyMax);
  return assembled_ + record.size <= kAssemblyMax;
}

}  // namespace hawser::backend::shm
