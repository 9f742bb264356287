#include "backend/quic/flow.h"

#include <span>

namespace hawser::backend::quic {

FlowParts unsent_of(const Flow& flow, std::size_t chunks_max) {
  FlowParts found;
  while (found.count < found.parts.size() && found.count < chunks_max) {
    const std::span<const std::byte> next = flow.out.from(flow.out_sent + found.bytes);
    if (next.empty()) break;
    auto* const base = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(next.data()));
    found.parts[found.count++] = {.base = base, .len = next.size()};
    found.bytes += next.size();
  }
  return found;
}

}  // namespace hawser::backend::quic
