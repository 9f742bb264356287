// What neighbours of a sparse world say: the decoder answers, and what it accepts encodes to the same bytes again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/relay.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result<wire::RelayMessage> message = wire::decode_relay(bytes);
  if (!message) {
    HAWSER_ASSERT(message.error().code() == Code::kCorrupt, "another error than kCorrupt");
    return 0;
  }
  const std::string head = wire::encode(*message);
  HAWSER_ASSERT(head.size() <= wire::kRelayHeadMax, "a head is longer than its bound");
  HAWSER_ASSERT(std::ranges::equal(base::as_bytes(head), bytes.first(head.size())), "the head changed");
  HAWSER_ASSERT(std::ranges::equal(message->body, bytes.subspan(head.size())), "the body changed");
  return 0;
}
