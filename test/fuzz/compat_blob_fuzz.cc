// What NIXL calls metadata, from anyone: decoding answers, and what it accepts survives being encoded again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/blob.h"

namespace {

bool same(const hawser::compat::BlobEntry& a, const hawser::compat::BlobEntry& b) {
  return a.type == b.type && a.region == b.region && a.desc.addr == b.desc.addr && a.desc.len == b.desc.len &&
         a.desc.dev == b.desc.dev;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::compat;
  const auto first = decode_blob({reinterpret_cast<const char*>(data), size});
  if (!first) return 0;
  HAWSER_ASSERT(first->entries.size() <= size, "more entries than bytes");
  const std::string again = encode_blob(*first);
  HAWSER_ASSERT(again.size() <= size, "metadata grew");
  const auto second = decode_blob(again);
  HAWSER_ASSERT(second && second->agent == first->agent && second->card == first->card, "metadata changed");
  HAWSER_ASSERT(second->introduces == first->introduces, "what it is for changed");
  HAWSER_ASSERT(second->entries.size() == first->entries.size(), "entries were lost");
  for (std::size_t i = 0; i < first->entries.size(); ++i) {
    HAWSER_ASSERT(same(first->entries[i], second->entries[i]), "an entry changed");
  }
  return 0;
}
