// Packed elements of another rank: whatever they are, unpacking answers kOk or kCorrupt, and touches no other memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "reduce/codecs.h"

namespace {

using namespace hawser;

std::shared_ptr<const Codec> codec_of(std::uint8_t kind) {
  switch (kind % 5) {
    case 0:
      return reduce::make_top_k(0.25);
    case 1:
      return reduce::make_top_k(1);
    case 2:
      return reduce::make_random_k(0.25, 1);
    case 3:
      return reduce::make_int8();
    default:
      return reduce::make_fp8(kind % 2 == 0 ? DataType::kFloat8E4M3 : DataType::kFloat8E5M2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 3;  // Codec, type, count.
  if (size < kHead) return 0;
  constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBFloat16};
  const auto codec = codec_of(data[0]);
  const DataType type = kTypes[data[1] % 3];
  std::vector<float> into(data[2], 0.0F);
  const auto packed = std::as_bytes(std::span(data, size)).subspan(kHead);
  const Status status = codec->unpack(packed, type, data[1], 1.0F, into);
  HAWSER_ASSERT(status.ok() || status.code() == Code::kCorrupt, "another error than kCorrupt");
  const bool fits = packed.size() == codec->packed_bytes(into.size(), type);
  HAWSER_ASSERT(fits || !status.ok(), "a part of the wrong size was taken");
  return 0;
}
