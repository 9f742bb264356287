// Messages between ranks and their seed: decoding answers, and what it accepts is written the same again.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/seed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Result<wire::SeedMessage> message = wire::decode_seed(bytes);
  if (!message) return 0;
  HAWSER_ASSERT(wire::encode(*message) == base::as_text(bytes), "a message has one form");
  return 0;
}
