// Range tables from anyone: decoding answers, and what it accepts survives being encoded again. Each input is tried as
// it is and with its checksum mended, or the fuzzer would never come past that.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/checksum.h"
#include "wire/table.h"

namespace {

using namespace hawser::wire;
using hawser::base::as_bytes;

void try_table(std::span<const std::byte> bytes) {
  const hawser::Result<TableShape> table = decode_table(bytes);
  if (!table) return;
  const hawser::Result<std::string> again = encode(*table);
  HAWSER_ASSERT(again, "what was decoded cannot be encoded");
  const hawser::Result<TableShape> second = decode_table(as_bytes(*again));
  HAWSER_ASSERT(second && encode(*second).value() == *again, "a table changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_table(std::as_bytes(std::span(data, size)));
  std::string mended(reinterpret_cast<const char*>(data), size);
  if (size < kChecksumSize) return 0;
  const std::size_t covered = size - kChecksumSize;
  hawser::base::store_little_endian(mended.data() + covered, checksum(as_bytes(mended).first(covered)));
  try_table(as_bytes(mended));
  return 0;
}
