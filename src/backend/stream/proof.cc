#include "backend/stream/proof.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/bytes.h"
#include "base/check.h"
#include "base/format.h"
#include "base/shown.h"
#include "tls/secret_mac.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {
namespace {

static_assert(std::is_same_v<wire::Proof, tls::SecretMac> && std::is_same_v<identity::Transcript, tls::SecretMac>);

constexpr std::size_t kProofReasonMax = 255;

wire::Proof mac(const base::Id128& secret, std::string_view label, const Hellos& hellos) {
  return tls::secret_mac(secret, {base::as_bytes(label), hellos.opener, hellos.acceptor, hellos.binding});
}

}  // namespace

wire::Proof acceptor_proof(const base::Id128& secret, const Hellos& hellos) {
  constexpr std::size_t kProofEnd = wire::kHelloProofAt + std::tuple_size_v<wire::Proof>;
  HAWSER_ASSERT(hellos.acceptor.size() >= kProofEnd && hellos.acceptor.size() <= wire::kHelloSizeMax,
                "a hello was decoded before it is proven");
  std::array<std::byte, wire::kHelloSizeMax> blank;
  std::copy(hellos.acceptor.begin(), hellos.acceptor.end(), blank.begin());
  std::fill(blank.begin() + wire::kHelloProofAt, blank.begin() + kProofEnd, std::byte{0});
  return mac(secret, "acceptor", {hellos.opener, std::span(blank).first(hellos.acceptor.size()), hellos.binding});
}

wire::Proof opener_proof(const base::Id128& secret, const Hellos& hellos) { return mac(secret, "opener", hellos); }

identity::Transcript transcript_of(const Hellos& hellos) { return mac(base::Id128(), "identity", hellos); }

bool is_same(const wire::Proof& proof, std::span<const std::byte> bytes) {
  return bytes.size() == proof.size() && sodium_memcmp(proof.data(), bytes.data(), proof.size()) == 0;
}

std::string encode_verdict(const Status& status) {
  const std::string_view reason = status.message().substr(0, kProofReasonMax);
  std::string bytes;
  bytes += static_cast<char>(status.code());
  bytes += static_cast<char>(reason.size());
  bytes += reason;
  bytes.resize(static_cast<std::size_t>(wire::padded(bytes.size())));
  return bytes;
}

std::size_t verdict_size(std::span<const std::byte, kVerdictHead> head) {
  return static_cast<std::size_t>(wire::padded(2 + std::to_integer<std::size_t>(head[1])));
}

Status decode_verdict(std::span<const std::byte> bytes) {
  const auto code = std::to_integer<std::uint8_t>(bytes[0]);
  const auto size = std::to_integer<std::size_t>(bytes[1]);
  if (code > static_cast<std::uint8_t>(Code::kFailed) || 2 + size > bytes.size()) {
    return Status(Code::kCorrupt, base::format("a verdict of status {} with {} bytes of reason", code, size));
  }
  if (code == 0) return Status();
  return Status(static_cast<Code>(code), base::shown(base::as_text(bytes.subspan(2, size))));
}

}  // namespace hawser::backend::stream
