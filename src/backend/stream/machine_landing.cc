#include "backend/stream/machine_landing.h"

#include <algorithm>
#include <array>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

/// Pieces of one step; a datagram has bytes of no more as a rule.
constexpr std::size_t kStepParts = 64;

}  // namespace

std::size_t MachineLanding::place(std::span<const std::byte> bytes) {
  std::size_t total = 0;
  while (total < bytes.size() && status_.ok() && machine_.wants(stream_)) total += place_some(bytes.subspan(total));
  return base::planted(base::Planted::kPushedTwice) && total > 0 ? total - 1 : total;
}

std::size_t MachineLanding::place_some(std::span<const std::byte> bytes) {
  std::array<iovec, kStepParts> parts;
  const std::size_t count = machine_.landing(stream_, parts, bytes.size());
  std::size_t got = 0;
  for (const iovec& part : std::span(parts).first(count)) {
    const std::size_t size = std::min(part.iov_len, bytes.size() - got);
    if (size > 0) base::copy_cached(static_cast<std::byte*>(part.iov_base), bytes.data() + got, size);
    got += size;
  }
  status_ = machine_.received(stream_, got);
  return got;
}

}  // namespace hawser::backend::stream
