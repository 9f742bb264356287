// Hellos from anyone: decoding answers, and what it accepts survives being encoded again.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const hawser::Result<std::size_t> whole = hawser::wire::hello_size(bytes);
  const hawser::Result<hawser::wire::Hello> hello = hawser::wire::decode_hello(bytes);
  if (!hello) return 0;
  HAWSER_ASSERT(whole && *whole == size, "a hello of another size was decoded");
  const std::string again = hawser::wire::encode(*hello);
  HAWSER_ASSERT(again.size() <= hawser::wire::kHelloSizeMax, "a hello grew");
  const hawser::Result<hawser::wire::Hello> second = hawser::wire::decode_hello(hawser::base::as_bytes(again));
  HAWSER_ASSERT(second && second->name == hello->name && second->session == hello->session, "a hello changed");
  return 0;
}
