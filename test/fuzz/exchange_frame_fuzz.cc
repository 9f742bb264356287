// Frames of metadata by address: whatever comes, decoding answers, and what it accepts is written the same way again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::compat;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto frame = decode_frame(input);
  if (frame && *frame) {
    const std::string again = encode_frame(**frame);
    HAWSER_ASSERT(again == input.substr(0, again.size()), "a frame that is not in canonical form was accepted");
  }
  return 0;
}
