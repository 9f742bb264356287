// Handles of remote buffers and requests to their owners, from anyone: decoding answers, and what it accepts survives
// being encoded again.

#include <hawser/rdma.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "rdma/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::rdma;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (const auto buffer = RemoteBuffer::decode(bytes)) {
    const std::string again = buffer->encode();
    const auto second = RemoteBuffer::decode(again);
    HAWSER_ASSERT(second && second->encode() == again, "a handle changed");
    HAWSER_ASSERT(second->contexts() == buffer->contexts(), "a handle's contexts changed");
  }
  const Parsed parsed = parse(hawser::base::as_text(bytes));
  HAWSER_ASSERT(!parsed.ask || !parsed.reply, "bytes that are two things");
  if (parsed.ask) HAWSER_ASSERT(encode(*parsed.ask) == hawser::base::as_text(bytes), "a request changed");
  if (parsed.reply) HAWSER_ASSERT(parse(encode(*parsed.reply)).reply.has_value(), "a reply changed");
  return 0;
}
