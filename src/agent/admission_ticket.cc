#include "agent/admission_ticket.h"

#include <sodium.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kBytes = 32 + 16;
constexpr std::size_t kCharacters = kBytes * 4 / 3;
constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
static_assert(kCharacters + 1 == sodium_base64_ENCODED_LEN(kBytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING));

}  // namespace

std::string to_string(const AdmissionTicket& ticket) {
  std::array<std::byte, kBytes> bytes;
  base::ByteWriter out{std::span<std::byte>(bytes)};
  out.bytes(ticket.public_key);
  out.id(ticket.admission);
  std::array<char, kCharacters + 1> text;
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  return std::string(text.data(), kCharacters);
}

Result<AdmissionTicket> parse_ticket(std::string_view text) {
  std::array<std::byte, kBytes> bytes;
  std::size_t size = 0;
  const bool is_read =
      text.size() == kCharacters && sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                                      text.data(), text.size(), nullptr, &size, nullptr, kVariant) == 0;
  AdmissionTicket ticket;
  if (is_read && size == kBytes) {
    base::ByteReader in{std::span<const std::byte>(bytes)};
    std::ranges::copy(in.bytes(ticket.public_key.size()), ticket.public_key.begin());
    ticket.admission = in.id();
    if (to_string(ticket) == text) return ticket;  // libsodium takes some bytes above 127 for characters, too.
  }
  return Status(Code::kInvalid,
                "what stands behind the '#' of the address is no ticket: it is not 64 characters of A-Z, a-z, 0-9, - "
                "and _")
      .with_advice("copy all that `hawser serve` prints, or what Agent::ticket returns");
}

Result<TicketedAddress> split_ticket(std::string_view typed) {
  const std::size_t mark = typed.rfind('#');
  TicketedAddress result;
  result.address = typed.substr(0, mark);
  if (mark == std::string_view::npos) return result;
  HAWSER_TRY_ASSIGN(result.ticket, parse_ticket(typed.substr(mark + 1)));
  return result;
}

}  // namespace hawser::agent
