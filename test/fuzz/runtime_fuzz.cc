// What ranks say to one another: the decoder answers, and what it accepts encodes to the same bytes again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "wire/runtime.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const hawser::Result<hawser::wire::RuntimeMessage> message = hawser::wire::decode_runtime(bytes);
  if (!message) {
    HAWSER_ASSERT(message.error().code() == hawser::Code::kCorrupt, "another error than kCorrupt");
    return 0;
  }
  hawser::wire::RuntimeBuffer buffer;
  const auto head = hawser::wire::encode(*message, buffer);
  HAWSER_ASSERT(std::ranges::equal(head, bytes.first(head.size())), "the head changed");
  HAWSER_ASSERT(std::ranges::equal(message->body, bytes.subspan(head.size())), "the body changed");
  return 0;
}
