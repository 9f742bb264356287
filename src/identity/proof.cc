#include "identity/proof.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::identity {
namespace {

constexpr std::size_t kAlign = 16;
constexpr std::uint8_t kForm = 1;
constexpr std::string_view kLabel = "hawser identity proof 1";

Status corrupt(std::string_view what) { return Status(Code::kCorrupt, base::format("an identity's proof: {}", what)); }

}  // namespace

std::string proof_content(Speaker speaker, Occasion occasion, const Transcript& transcript) {
  std::string content(kLabel);
  content += '\0';
  content += static_cast<char>(speaker);
  content += static_cast<char>(occasion);
  content += base::as_text(transcript);
  return content;
}

std::string encode(const IdentityProof& proof) {
  HAWSER_ASSERT(!proof.chain.empty() && proof.chain.size() <= kChainMax, "a chain has 1 to 4 certificates");
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.u32(0);
  out.u8(kForm);
  out.u8(static_cast<std::uint8_t>(proof.chain.size()));
  out.u16(proof.signature.scheme);
  out.u16(static_cast<std::uint16_t>(proof.signature.bytes.size()));
  bytes.resize(kProofHead);
  bytes += proof.signature.bytes;
  for (const std::string& der : proof.chain) {
    base::ByteWriter(&bytes).u16(static_cast<std::uint16_t>(der.size()));
    bytes += der;
  }
  bytes.resize((bytes.size() + kAlign - 1) / kAlign * kAlign);
  base::store_little_endian(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  return bytes;
}

Result<std::size_t> proof_size(std::span<const std::byte, kProofHead> head) {
  const auto size = base::load_little_endian<std::uint32_t>(head.data());
  if (head[4] != std::byte{kForm}) return corrupt("another form than 1");
  if (size <= kProofHead || size > kProofMax || size % kAlign != 0) return corrupt(base::format("{} bytes", size));
  return size;
}

Result<IdentityProof> decode_proof(std::span<const std::byte> bytes) {
  if (bytes.size() < kProofHead) return corrupt("it is cut off");
  HAWSER_TRY_ASSIGN(const std::size_t size, proof_size(bytes.first<kProofHead>()));
  if (size != bytes.size()) return corrupt(base::format("{} bytes instead of {}", bytes.size(), size));
  base::ByteReader in(bytes.subspan(5));
  const std::size_t count = in.u8();
  IdentityProof proof;
  proof.signature.scheme = in.u16();
  const std::size_t signature_size = in.u16();
  in.bytes(kProofHead - 10);
  if (count == 0 || count > kChainMax) return corrupt(base::format("{} certificates", count));
  if (signature_size == 0 || signature_size > kSignatureMax) {
    return corrupt(base::format("a signature of {} bytes", signature_size));
  }
  proof.signature.bytes = base::as_text(in.bytes(signature_size));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t der_size = in.u16();
    if (der_size == 0) return corrupt("an empty certificate");
    proof.chain.emplace_back(base::as_text(in.bytes(der_size)));
  }
  if (!in.ok()) return corrupt("it is cut off");
  if (in.remaining() >= kAlign) return corrupt("something follows it");
  return proof;
}

}  // namespace hawser::identity
