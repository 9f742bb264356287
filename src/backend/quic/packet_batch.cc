#include "backend/quic/packet_batch.h"

#include <cstring>
#include <utility>

#include "base/planted.h"

namespace hawser::backend::quic {

using base::Planted;
using base::planted;

bool PacketBatch::is_open(std::size_t bytes) const {
  return !is_last_short_ && count_ < kSendPacketsMax && used_ + bytes <= kSendBytesMax;
}

std::span<std::byte> PacketBatch::room(std::size_t bytes) {
  if (count_ > 0 && !is_open(bytes) && !flush()) return {};
  if (is_blocked_ && !flush()) return {};
  if (bytes_ == nullptr) bytes_ = std::move(spare_);
  if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kSendBytesMax);
  return {bytes_.get() + used_, bytes};
}

void PacketBatch::add(const Route& route, std::size_t bytes) {
  const bool fits = count_ == 0 || (bytes <= segment_ && is_same_route(route, route_));
  if (!fits) {  // It goes alone, behind those before it.
    const std::size_t at = used_;
    static_cast<void>(flush());
    if (is_blocked_) return;  // It is lost, and QUIC sends it again.
    bytes_ = std::move(spare_);
    std::memmove(bytes_.get(), bytes_.get() + at, bytes);
  }
  if (count_ == 0) {
    route_ = route;
    segment_ = bytes;
  }
  used_ += bytes;
  ++count_;
  is_last_short_ = bytes < segment_;
}

bool PacketBatch::flush() {
  if (count_ == 0) {
    if (bytes_ != nullptr) spare_ = std::move(bytes_);
    return true;
  }
  const bool is_taken = sender_.send(route_, {bytes_.get(), used_}, segment_);
  is_blocked_ = !is_taken || (is_blocked_ && planted(Planted::kBlockedKept));
  if (!is_taken) return false;
  spare_ = std::move(bytes_);
  used_ = count_ = 0;
  is_last_short_ = false;
  return true;
}

}  // namespace hawser::backend::quic
