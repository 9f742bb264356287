// What somebody on the network does to a QUIC connection: each byte of the input decides what becomes of one datagram.
// Bytes that arrive are those that were sent, in order, or the connection ends; and it does end.

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/quic/test_pair.h"
#include "base/check.h"

namespace {

using namespace hawser;
using namespace hawser::backend::quic;

constexpr std::size_t kBytes = 20'000;

std::byte at(std::size_t place) { return static_cast<std::byte>(place * 31 >> 2); }

/// What the input's bytes say, datagram by datagram; once they are used up nothing happens any more.
class Fate {
 public:
  explicit Fate(std::span<const std::uint8_t> input) : input_(input) {}

  bool operator()(std::vector<std::byte>& datagram) {
    if (input_.empty() || datagram.empty()) return true;
    const unsigned what = input_[0], where = input_.size() > 1 ? input_[1] : 0;
    input_ = input_.subspan(std::min<std::size_t>(2, input_.size()));
    std::byte& changed = datagram[where * datagram.size() / 256];
    switch (what % 8) {
      case 0:
        return false;
      case 1:
        changed ^= static_cast<std::byte>(1u << (what >> 5));
        break;
      case 2:
        changed = static_cast<std::byte>(what);
        break;
      case 3:
        datagram.resize(1 + where * (datagram.size() - 1) / 256);
        break;
      case 4:
        std::swap(datagram, kept_);
        return !datagram.empty();
      case 5:
        datagram.insert(datagram.end(), where, static_cast<std::byte>(what));
        break;
      default:
        break;
    }
    return true;
  }

 private:
  std::span<const std::uint8_t> input_;
  std::vector<std::byte> kept_;  ///< It comes in the place of a later one.
};

std::size_t check_arrived(TestPair& pair, Flow& flow, std::size_t got) {
  std::array<std::byte, 4096> room;
  const iovec part = {room.data(), room.size()};
  while (const std::size_t count = pair.acceptor.connection->read(flow, {&part, 1})) {
    for (std::size_t i = 0; i < count; ++i) HAWSER_ASSERT(room[i] == at(got + i), "other bytes arrived than were sent");
    got += count;
  }
  HAWSER_ASSERT(got <= kBytes, "more bytes arrived than were sent");
  return got;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool has_quic = sodium_init() >= 0 && ngtcp2().has_value();
  if (!has_quic) return 0;
  TestPair pair(1, {}, {.handshake_timeout = std::chrono::seconds(5), .idle_timeout = std::chrono::seconds(5)});
  Fate fate(std::span(data, size));
  pair.tap = [&fate](int, std::vector<std::byte>& datagram) { return fate(datagram); };
  std::vector<std::byte> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = at(i);
  Flow* flow = nullptr;
  std::size_t sent = 0, got = 0;
  const auto is_ended = [](const auto& side) {
    return side.connection != nullptr && side.connection->state() == Connection::State::kEnded;
  };
  const bool is_over = pair.run(
      [&] {
        if (flow == nullptr) flow = pair.opener.connection->open_flow();
        if (flow != nullptr && sent < kBytes && flow->reset.ok()) {
          const iovec part = {bytes.data() + sent, kBytes - sent};
          sent += pair.opener.connection->write(*flow, {&part, 1}, pair.now());
        }
        if (!pair.acceptor.opened.empty()) got = check_arrived(pair, *pair.acceptor.opened[0], got);
        return got == kBytes || is_ended(pair.opener) || is_ended(pair.acceptor);
      },
      std::chrono::seconds(120));
  HAWSER_ASSERT(is_over, "it neither arrives nor ends");
  return 0;
}
