#pragma once

// IdentityProof: by which one end of a TLS connection shows, inside of it, that it has the key of a certificate: the
// idea of RFC 9261 (exported authenticators). The signature covers a number that only the two ends of this connection
// know, so nobody can pass it on.
//
// Grammar: size:u32 (of all, a multiple of 16), 1:u8, count:u8 (of certificates, 1 to 4), scheme:u16,
// signature_size:u16, zeros:6, signature, then for each certificate size:u16 and DER, zeros.
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "identity/credential.h"

namespace hawser::identity {

inline constexpr std::size_t kProofHead = 16;        ///< As much as there always is; it tells the size of all.
inline constexpr std::size_t kProofMax = 16 * 1024;  ///< Bytes of the longest.

enum class Speaker : std::uint8_t { kOpener = 1, kAcceptor = 2 };
enum class Occasion : std::uint8_t { kOpening = 1, kRenewal = 2 };

/// What the two ends of one connection have in common and nobody else knows.
using Transcript = std::array<std::byte, 32>;

struct IdentityProof {
  Signature signature;
  std::vector<std::string> chain;  ///< DER.
};

/// What is signed.
std::string proof_content(Speaker speaker, Occasion occasion, const Transcript& transcript);

std::string encode(const IdentityProof& proof);
/// Bytes of the whole; kCorrupt: it is none, or too long.
Result<std::size_t> proof_size(std::span<const std::byte, kProofHead> head);
/// kCorrupt.
Result<IdentityProof> decode_proof(std::span<const std::byte> bytes);

}  // namespace hawser::identity
