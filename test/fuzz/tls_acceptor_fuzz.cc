// What a stranger says to the TLS of an acceptor, in pieces: it answers with an error or waits, within its bounds.

#include <sodium.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "tls/session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::tls;
  static const auto credentials = [] {
    HAWSER_ASSERT(sodium_init() >= 0, "libsodium starts");
    return Credentials::make(KeyPair::make()).value();
  }();
  const auto session = Session::open(credentials, End::kAcceptor).value();
  std::span<const std::uint8_t> left(data, size);
  hawser::Status status;
  while (!left.empty() && status.ok() && !session->room().empty()) {
    const std::size_t step = std::min({left.size(), session->room().size(), std::size_t{1} + left[0] * 8});
    std::memcpy(session->room().data(), left.data(), step);
    session->came(step);
    left = left.subspan(step);
    status = session->handshake();
    HAWSER_ASSERT(session->room().size() <= Session::kInFirst, "a stranger gets a small buffer only");
    HAWSER_ASSERT(session->to_send().size() <= Session::kRecordMax, "a stranger is answered shortly");
  }
  session->ended();
  HAWSER_ASSERT(!session->handshake().ok() || !session->is_up(), "nobody comes in by bytes that were made up before");
  return 0;
}
