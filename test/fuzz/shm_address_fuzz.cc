// Addresses of shm in cards from anyone: decoding answers, and what it accepts is written the same way again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/shm/place.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace shm = hawser::backend::shm;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const hawser::Result<shm::Address> address = shm::decode_address(input);
  if (!address) return 0;
  HAWSER_ASSERT(shm::encode(*address) == input, "an address that is not in canonical form was accepted");
  static_cast<void>(shm::reach(*address, address->boot));
  return 0;
}
