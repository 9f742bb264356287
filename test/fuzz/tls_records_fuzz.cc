// What somebody on the way makes of the records of a TLS session: whoever reads gets a beginning of what was said, and
// then an error or nothing.

#include <sodium.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "tls/session.h"

namespace {

using namespace hawser::tls;
using Bytes = std::vector<std::byte>;

void carry(Session& from, Session& to) {
  const std::size_t size = std::min(from.to_send().size(), to.room().size());
  if (size > 0) std::memcpy(to.room().data(), from.to_send().data(), size);
  from.sent(size);
  to.came(size);
}

/// Four bytes of input each: where (two), what to do, and with what. Bytes are changed, taken out and put in.
void change(Bytes& sealed, std::span<const std::uint8_t> orders) {
  for (; orders.size() >= 4 && !sealed.empty(); orders = orders.subspan(4)) {
    const std::size_t at = (orders[0] * 256u + orders[1]) % sealed.size();
    const auto from = sealed.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t count = std::min<std::size_t>(orders[3], sealed.size() - at);
    if (orders[2] % 3 == 0) sealed[at] ^= static_cast<std::byte>(orders[3]);
    if (orders[2] % 3 == 1) sealed.erase(from, from + static_cast<std::ptrdiff_t>(count));
    if (orders[2] % 3 == 2) sealed.insert(from, count, static_cast<std::byte>(orders[2]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto credentials = [] {
    HAWSER_ASSERT(sodium_init() >= 0, "libsodium starts");
    return Credentials::make(KeyPair::make()).value();
  }();
  const auto sealer = Session::open(credentials, End::kOpener).value();
  const auto reader = Session::open(credentials, End::kAcceptor).value();
  for (int i = 0; i < 10 && !(sealer->is_up() && reader->is_up()); ++i) {
    HAWSER_ASSERT(sealer->handshake().ok() && reader->handshake().ok(), "they meet");
    carry(*sealer, *reader), carry(*reader, *sealer);
  }
  Bytes said;
  for (const std::size_t bytes : {1u, 300u, 17'000u, 40u}) {
    Bytes next(bytes);
    for (std::size_t i = 0; i < bytes; ++i) next[i] = static_cast<std::byte>(said.size() + i * 7);
    const iovec part = {next.data(), next.size()};
    HAWSER_ASSERT(sealer->write({&part, 1}).value() == bytes, "it is taken");
    said.insert(said.end(), next.begin(), next.end());
    if (bytes == 300) HAWSER_ASSERT(sealer->renew_keys().ok(), "keys are renewed");
  }
  sealer->say_done();
  Bytes sealed(sealer->to_send().begin(), sealer->to_send().end());
  change(sealed, {data, size});
  Bytes got, room(1 + (size > 0 ? data[0] * 100u : 5000u));
  bool is_broken = false;
  for (std::size_t at = 0; at < sealed.size() && !is_broken && !reader->room().empty();) {
    const std::size_t step = std::min({reader->room().size(), sealed.size() - at, std::size_t{5000}});
    std::memcpy(reader->room().data(), sealed.data() + at, step);
    reader->came(step);
    at += step;
    if (at == sealed.size()) reader->ended();
    for (bool more = true; more;) {
      const iovec part = {room.data(), room.size()};
      const auto count = reader->read({&part, 1});
      is_broken = !count;
      more = count && *count > 0;
      if (more) got.insert(got.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(*count));
    }
  }
  HAWSER_ASSERT(got.size() <= said.size() && std::equal(got.begin(), got.end(), said.begin()),
                "what was read is a beginning of what was said");
  HAWSER_ASSERT(!reader->is_done() || got == said, "the goodbye comes behind the last byte");
  return 0;
}
