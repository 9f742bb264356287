// Grants from anyone, and what holders tell of them: decoding answers, and what it accepts survives being encoded
// again. Each input is tried as it is and with its checksum mended, or the fuzzer would never come past that.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/checksum.h"
#include "wire/grant.h"

namespace {

using namespace hawser::wire;
using hawser::base::as_bytes;
using hawser::base::as_text;

void try_grant(std::span<const std::byte> bytes) {
  const hawser::Result<Grant> grant = decode_grant(bytes);
  if (!grant) return;
  const hawser::Result<std::string> again = encode(*grant);
  HAWSER_ASSERT(again, "what was decoded cannot be encoded");
  HAWSER_ASSERT(*again == as_text(bytes), "a grant has two forms");
}

void try_used(std::span<const std::byte> bytes) {
  const hawser::Result<GrantUsed> used = decode_grant_used(bytes);
  if (!used) return;
  GrantUsedBuffer buffer;
  HAWSER_ASSERT(as_text(encode(*used, buffer)) == as_text(bytes), "what is told of a grant has two forms");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_grant(bytes);
  try_used(bytes);
  if (size < kChecksumSize) return 0;
  std::string mended(reinterpret_cast<const char*>(data), size);
  const std::size_t covered = size - kChecksumSize;
  hawser::base::store_little_endian(mended.data() + covered, checksum(as_bytes(mended).first(covered)));
  try_grant(as_bytes(mended));
  return 0;
}
