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
  const std::string again = shm::encode(*address);
  HAWSER_ASSERT(again == input.substr(0, again.size()), "an address that is not in canonical form was accepted");
  static_cast<void>(shm::reach(*address, address->boot));
  return 0;
}
