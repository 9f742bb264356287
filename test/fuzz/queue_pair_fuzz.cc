// The handshake of queue pairs from a peer: decoding answers, and what it accepts survives being encoded again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/queue_pair.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto head = hawser::wire::decode_head(bytes)) {
    const auto encoded = hawser::wire::encode_head(*head);
    HAWSER_ASSERT(std::ranges::equal(encoded, bytes.first(encoded.size())), "a message's head changed");
  }
  const auto message = hawser::wire::decode_queue_pair(bytes);
  if (!message) return 0;
  const std::string again = hawser::wire::encode(*message);
  HAWSER_ASSERT(again.size() <= size, "a message grew");
  const auto second = hawser::wire::decode_queue_pair(hawser::base::as_bytes(again));
  HAWSER_ASSERT(second && hawser::wire::encode(*second) == again, "a message changed");
  return 0;
}
