// Parts of long notifications. An input that begins with an even byte is one notification: what is accepted is written
// the same way again. Any other is orders of two bytes (what to take, of which body): whatever their order, only what
// was sent is delivered, and the books end where they began.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "compat/parts.h"

namespace {

using namespace hawser::compat;
using Kind = NotificationPart::Kind;

constexpr std::size_t kOrdersMax = 256;

/// Of the body `id`: some need two parts, some three.
const std::string& body_of(std::uint64_t id) {
  static const auto bodies = [] {
    std::array<std::string, 8> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].assign(kPlainMax + 1 + i * 20'000, static_cast<char>('a' + i));
      for (std::size_t at = 0; at < all[i].size(); at += 997) all[i][at] = static_cast<char>(at >> 8);
    }
    return all;
  }();
  return bodies[id % 8];
}

/// The part that begins at the `piece`th place, or the words that end the body.
std::string order(std::uint8_t what, std::uint64_t id) {
  const std::string& text = body_of(id);
  const auto total = static_cast<std::uint32_t>(text.size());
  const std::size_t piece = what & 3, offset = piece * kPartBytesMax;
  if (offset < text.size() && (what & 8) == 0) {
    return encode_part({.kind = Kind::kPart,
                        .id = id,
                        .total = total + (what >> 6 == 3 ? 1 : 0),
                        .offset = static_cast<std::uint32_t>(offset) + (what >> 6 == 2 ? 1 : 0),
                        .bytes = std::string_view(text).substr(offset, kPartBytesMax - (what >> 6 == 1 ? 1 : 0))});
  }
  if ((what & 16) != 0) return encode_part({.kind = Kind::kDrop, .id = id});
  return encode_part({.kind = Kind::kWhole, .id = id, .total = total});
}

void run_orders(std::string_view orders) {
  AssemblyBudget budget{.max = 300'000};
  {
    Assembler peers[2] = {Assembler(&budget), Assembler(&budget)};
    for (std::size_t i = 0; i + 1 < orders.size() && i < 2 * kOrdersMax; i += 2) {
      const std::uint64_t id = 1 + (static_cast<std::uint8_t>(orders[i + 1]) & 7);
      Assembler& peer = peers[static_cast<std::uint8_t>(orders[i + 1]) >> 7];
      const Assembler::Taken taken = peer.take(order(static_cast<std::uint8_t>(orders[i]), id));
      HAWSER_ASSERT(!taken.text || *taken.text == body_of(id), "a notification that nobody sent");
      HAWSER_ASSERT(!taken.text || taken.lost.ok(), "delivered and lost");
      HAWSER_ASSERT(budget.used == peers[0].bytes() + peers[1].bytes() && budget.used <= budget.max, "wrong books");
    }
  }
  HAWSER_ASSERT(budget.used == 0, "room that nobody gave back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 != 0) {
    run_orders(input);
    return 0;
  }
  const std::string text = std::string(kPartMagic).append(input);
  if (const auto part = decode_part(text)) {
    HAWSER_ASSERT(encode_part(*part) == text, "a part that is not in canonical form was accepted");
  }
  AssemblyBudget budget;
  Assembler peer(&budget);
  (void)peer.take(text);
  return 0;
}
