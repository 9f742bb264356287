// Session messages from a peer: every decoder answers, and what it accepts encodes to the same head again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "wire/session.h"

namespace {

using namespace hawser::wire;

template <typename M>
void check(std::span<const std::byte> bytes, const hawser::Result<M>& message) {
  if (!message) {
    HAWSER_ASSERT(message.error().code() == hawser::Code::kCorrupt, "another error than kCorrupt");
    return;
  }
  std::array<std::byte, kHeadMax> buffer;
  const std::span<const std::byte> head = encode(*message, HeadBuffer(buffer));
  HAWSER_ASSERT(head.size() <= bytes.size() && std::equal(head.begin(), head.end(), bytes.begin()), "a head changed");
}

std::span<const std::byte> behind_ack(std::span<const std::byte> bytes, const Ack& ack) {
  std::array<std::byte, kHeadMax> buffer;
  const std::span<const std::byte> head = encode_acked(ack, HeadBuffer(buffer));
  HAWSER_ASSERT(head.size() <= bytes.size() && std::equal(head.begin(), head.end(), bytes.begin()), "an ack changed");
  return bytes.subspan(head.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  const hawser::Result<Envelope> envelope = open_envelope(bytes);
  if (!envelope) return 0;
  if (envelope->acked.up_to != 0) bytes = behind_ack(bytes, envelope->acked);
  switch (envelope->kind) {
    case SessionKind::kArrive:
      check(bytes, decode_arrive(*envelope));
      break;
    case SessionKind::kSend:
      check(bytes, decode_send(*envelope));
      break;
    case SessionKind::kCardRequest:
      check(bytes, decode_card_request(*envelope));
      break;
    case SessionKind::kCardPart:
      check(bytes, decode_card_part(*envelope));
      break;
    case SessionKind::kAck:
      check(bytes, decode_ack(*envelope));
      break;
    case SessionKind::kCredit:
      check(bytes, decode_credit(*envelope));
      break;
    case SessionKind::kWelcome:
      check(bytes, decode_welcome(*envelope));
      break;
    case SessionKind::kBye:
      check(bytes, decode_bye(*envelope));
      break;
    case SessionKind::kAcked:
      __builtin_trap();  // open_envelope looks behind it.
  }
  return 0;
}
