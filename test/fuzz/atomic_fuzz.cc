// Atomic asks and answers from a peer: every decoder answers, and what it accepts encodes to the same bytes again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "wire/atomic.h"

namespace {

template <typename M>
void check_atomic(std::span<const std::byte> bytes, const hawser::Result<M>& message) {
  if (!message) {
    HAWSER_ASSERT(message.error().code() == hawser::Code::kCorrupt, "another error than kCorrupt");
    return;
  }
  hawser::wire::AtomicBuffer buffer;
  HAWSER_ASSERT(std::ranges::equal(hawser::wire::encode(*message, buffer), bytes), "the bytes changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check_atomic(bytes, hawser::wire::decode_atomic_ask(bytes));
  check_atomic(bytes, hawser::wire::decode_atomic_answer(bytes));
  return 0;
}
