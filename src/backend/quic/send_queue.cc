#include "backend/quic/send_queue.h"

namespace hawser::backend::quic {

void SendQueue::abort() {
  is_aborted_ = is_ending_ = is_end_sent_ = true;
  sent_ = bytes_.size();
}

SendParts SendQueue::unsent(std::size_t chunks_max) const {
  SendParts found;
  while (found.count < found.parts.size() && found.count < chunks_max) {
    const std::span<const std::byte> next = bytes_.from(sent_ + found.bytes);
    if (next.empty()) break;
    auto* const base = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(next.data()));
    found.parts[found.count++] = {.base = base, .len = next.size()};
    found.bytes += next.size();
  }
  return found;
}

void SendQueue::note_sent(std::size_t bytes, bool is_last) {
  sent_ += bytes;
  if (is_last && unsent() == 0) is_end_sent_ = true;
}

void SendQueue::note_acknowledged(std::size_t bytes) {
  bytes_.drop(bytes);
  sent_ -= bytes;
}

}  // namespace hawser::backend::quic
