// Packets on a path of shm from anyone: decoding answers, and what it accepts survives being encoded again.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/shm/control.h"
#include "backend/shm/packet.h"
#include "base/bytes.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace shm = hawser::backend::shm;
  const hawser::Result<shm::Control> first = shm::decode_control(std::as_bytes(std::span(data, size)));
  if (!first) return 0;
  const std::string again = std::visit([](const auto& message) { return shm::encode(message); }, *first);
  HAWSER_ASSERT(again.size() <= shm::kPacketMax, "a packet grew");
  const hawser::Result<shm::Control> second = shm::decode_control(hawser::base::as_bytes(again));
  HAWSER_ASSERT(second && second->index() == first->index(), "a packet changed");
  const std::string third = std::visit([](const auto& message) { return shm::encode(message); }, *second);
  HAWSER_ASSERT(third == again, "a packet's form is not stable");
  return 0;
}
